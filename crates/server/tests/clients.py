"""Unmodified clients against a running server: each prints the text it received, one line per client.

usage: clients.py ADDRESS WYOMING_PORT RECORDING
The recording is a WAV file of 16-bit samples at 16 kHz, one channel.
"""

import asyncio
import json
import struct
import sys
import wave

ADDRESS, WYOMING_PORT, RECORDING = sys.argv[1], int(sys.argv[2]), sys.argv[3]
HOST = ADDRESS.split(":")[0]


def samples():
    with wave.open(RECORDING, "rb") as recording:
        assert (recording.getnchannels(), recording.getsampwidth()) == (1, 2)
        return recording.getframerate(), recording.readframes(recording.getnframes())


async def vosk():
    """As Vosk's documentation shows it: a configuration, pieces of 0.2 s with a reply each, the end."""
    import websockets

    rate, pcm = samples()
    texts = []
    async with websockets.connect(f"ws://{ADDRESS}") as socket:
        await socket.send('{ "config" : { "sample_rate" : %d } }' % rate)
        for at in range(0, len(pcm), rate // 5 * 2):
            await socket.send(pcm[at : at + rate // 5 * 2])
            texts.append(json.loads(await socket.recv()).get("text"))
        await socket.send('{"eof" : 1}')
        texts.append(json.loads(await socket.recv())["text"])
    return " ".join(text for text in texts if text)


def openai_file():
    from openai import OpenAI

    client = OpenAI(base_url=f"http://{ADDRESS}/v1", api_key="none")
    with open(RECORDING, "rb") as audio:
        return client.audio.transcriptions.create(model="whisper-1", file=audio).text


def openai_stream():
    from openai import OpenAI

    client = OpenAI(base_url=f"http://{ADDRESS}/v1", api_key="none")
    with open(RECORDING, "rb") as audio:
        events = client.audio.transcriptions.create(model="whisper-1", file=audio, stream=True)
        return "".join(event.delta for event in events if event.type == "transcript.text.delta")


def openai_words():
    from openai import OpenAI

    client = OpenAI(base_url=f"http://{ADDRESS}/v1", api_key="none")
    with open(RECORDING, "rb") as audio:
        result = client.audio.transcriptions.create(
            model="whisper-1", file=audio, response_format="verbose_json", timestamp_granularities=["word", "segment"]
        )
    assert result.words and all(word.end >= word.start for word in result.words)
    return result.text


async def wyoming():
    from wyoming.asr import Transcribe, Transcript
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.client import AsyncTcpClient

    rate, pcm = samples()
    async with AsyncTcpClient(HOST, WYOMING_PORT) as client:
        await client.write_event(Transcribe().event())
        await client.write_event(AudioStart(rate=rate, width=2, channels=1).event())
        for at in range(0, len(pcm), 2048):
            await client.write_event(AudioChunk(rate=rate, width=2, channels=1, audio=pcm[at : at + 2048]).event())
        await client.write_event(AudioStop().event())
        while True:
            event = await client.read_event()
            if Transcript.is_type(event.type):
                return Transcript.from_event(event).text


async def sherpa_streaming():
    """What the streaming client of sherpa-onnx sends: 32-bit samples, `Done`; it reads until `Done!`."""
    import websockets

    rate, pcm = samples()
    floats = [value / 32768 for (value,) in struct.iter_unpack("<h", pcm)]
    finals = {}
    async with websockets.connect(f"ws://{ADDRESS}") as socket:
        for at in range(0, len(floats), 8000):
            piece = floats[at : at + 8000]
            await socket.send(struct.pack(f"<{len(piece)}f", *piece))
        await socket.send("Done")
        async for message in socket:
            if message == "Done!":
                break
            result = json.loads(message)
            if result["is_final"]:
                finals[result["segment"]] = result["text"]
    return " ".join(text for _, text in sorted(finals.items()) if text)


async def sherpa_offline():
    import websockets

    rate, pcm = samples()
    floats = [value / 32768 for (value,) in struct.iter_unpack("<h", pcm)]
    body = struct.pack("<ii", rate, 4 * len(floats)) + struct.pack(f"<{len(floats)}f", *floats)
    async with websockets.connect(f"ws://{ADDRESS}") as socket:
        for at in range(0, len(body), 10240):
            await socket.send(body[at : at + 10240])
        text = json.loads(await socket.recv())["text"]
        await socket.send("Done")
    return text


def main():
    clients = [vosk, sherpa_streaming, sherpa_offline, openai_file, openai_stream, openai_words, wyoming]
    for client in clients:
        text = asyncio.run(client()) if asyncio.iscoroutinefunction(client) else client()
        print(f"{client.__name__}\t{text}", flush=True)


main()
