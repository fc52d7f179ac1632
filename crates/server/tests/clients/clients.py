"""Unmodified clients against a running server: each must give exactly the text that is expected.

usage: clients.py ADDRESS WYOMING_PORT RECORDING TEXT
The recording is a WAV file of 16-bit samples at 16 kHz, one channel.
"""

import asyncio
import base64
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
import wave

ADDRESS, WYOMING_PORT, RECORDING, EXPECTED = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
HOST, PORT = ADDRESS.split(":")


def samples():
    with wave.open(RECORDING, "rb") as recording:
        assert (recording.getnchannels(), recording.getsampwidth()) == (1, 2)
        return recording.getframerate(), recording.readframes(recording.getnframes())


def joined(texts):
    return " ".join(text for text in texts if text)


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
    return joined(texts)


def openai_client():
    from openai import OpenAI

    return OpenAI(base_url=f"http://{ADDRESS}/v1", api_key="none")


def openai_file():
    with open(RECORDING, "rb") as audio:
        return openai_client().audio.transcriptions.create(model="whisper-1", file=audio).text


def openai_stream():
    with open(RECORDING, "rb") as audio:
        events = list(openai_client().audio.transcriptions.create(model="whisper-1", file=audio, stream=True))
    assert events[-1].type == "transcript.text.done", events[-1]
    text = "".join(event.delta for event in events if event.type == "transcript.text.delta")
    assert text == events[-1].text, text
    return text


def openai_words():
    with open(RECORDING, "rb") as audio:
        result = openai_client().audio.transcriptions.create(
            model="whisper-1", file=audio, response_format="verbose_json", timestamp_granularities=["word", "segment"]
        )
    assert result.words and all(word.end >= word.start for word in result.words)
    assert joined(word.word for word in result.words) == result.text, result.words
    return result.text


def openai_models():
    """Not a text, but the list of models has to be read by the client, and a model in it must be served."""
    models = [model.id for model in openai_client().models.list()]
    with open(RECORDING, "rb") as audio:
        return openai_client().audio.transcriptions.create(model=models[0], file=audio).text


def openai_error():
    """Errors have the form that the client knows; after it everything works."""
    from openai import BadRequestError, NotFoundError

    for fields, error in [({"model": "no-such-model"}, NotFoundError), ({"model": "whisper-1", "prompt": "x"}, None)]:
        try:
            with open(RECORDING, "rb") as audio:
                text = openai_client().audio.transcriptions.create(file=audio, **fields).text
            assert error is None, fields
        except (BadRequestError, NotFoundError) as found:
            assert error is not None and isinstance(found, error) and found.code == "model_not_found", found
    return text


def openai_realtime():
    rate, pcm = samples()
    texts = []
    with openai_client().realtime.connect(model="gpt-realtime", extra_query={"intent": "transcription"}) as connection:
        audio_format = {"type": "audio/pcm", "rate": rate}
        session = {"type": "transcription", "audio": {"input": {"format": audio_format}}}
        connection.session.update(session=session)
        for at in range(0, len(pcm), 6400):
            connection.input_audio_buffer.append(audio=base64.b64encode(pcm[at : at + 6400]).decode())
        connection.input_audio_buffer.commit()
        is_committed = False
        for event in connection:
            assert event.type != "error", event
            is_committed |= event.type == "input_audio_buffer.committed"
            if event.type == "conversation.item.input_audio_transcription.completed":
                texts.append(event.transcript)
                if is_committed:
                    break
    return joined(texts)


def deepgram_client():
    from deepgram import DeepgramClient
    from deepgram.environment import DeepgramClientEnvironment

    here = {"base": f"http://{ADDRESS}", "production": f"ws://{ADDRESS}", "agent": "", "agent_rest": ""}
    return DeepgramClient(api_key="none", environment=DeepgramClientEnvironment(**here))


def deepgram_file():
    with open(RECORDING, "rb") as audio:
        result = deepgram_client().listen.v1.media.transcribe_file(request=audio.read(), model="nova-3", utterances=True)
    assert joined(utterance.transcript for utterance in result.results.utterances) == EXPECTED
    return result.results.channels[0].alternatives[0].transcript


def deepgram_live():
    from deepgram.core.events import EventType

    rate, pcm = samples()
    finals, partials = [], []

    def take(message):
        if message.type == "Results":
            text = message.channel.alternatives[0].transcript
            (finals if message.is_final else partials).append(text)

    settings = {"encoding": "linear16", "sample_rate": rate, "interim_results": True}
    with deepgram_client().listen.v1.connect(model="nova-3", **settings) as connection:
        connection.on(EventType.MESSAGE, take)
        listener = threading.Thread(target=connection.start_listening)
        listener.start()
        for at in range(0, len(pcm), 3200):
            connection.send_media(pcm[at : at + 3200])
        connection.send_keep_alive()
        connection.send_close_stream()
        listener.join(60)
    assert partials, "no interim results"
    return joined(finals)


async def wyoming():
    from wyoming.asr import Transcribe, Transcript
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.client import AsyncTcpClient
    from wyoming.info import Describe, Info

    rate, pcm = samples()
    async with AsyncTcpClient(HOST, WYOMING_PORT) as client:
        await client.write_event(Describe().event())
        info = Info.from_event(await client.read_event())
        assert info.asr[0].models[0].name, info
        await client.write_event(Transcribe(name=info.asr[0].models[0].name, language="en").event())
        await client.write_event(AudioStart(rate=rate, width=2, channels=1).event())
        for at in range(0, len(pcm), 2048):
            await client.write_event(AudioChunk(rate=rate, width=2, channels=1, audio=pcm[at : at + 2048]).event())
        await client.write_event(AudioStop().event())
        while True:
            event = await client.read_event()
            if Transcript.is_type(event.type):
                return Transcript.from_event(event).text


def sherpa_program():
    """The streaming client in the package `sherpa-onnx-bin`, as it is."""
    program = os.path.join(os.path.dirname(sys.executable), "sherpa-onnx-online-websocket-client")
    command = [program, f"--server-ip={HOST}", f"--server-port={PORT}", "--seconds-per-message=0.02", RECORDING]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert output.returncode == 0, output
    finals = {}
    for message in re.findall(r"\{.*\}", output.stdout + output.stderr):
        result = json.loads(message)
        if result["is_final"]:
            finals[result["segment"]] = result["text"]
    assert finals, output
    return joined(text for _, text in sorted(finals.items()))


async def sherpa_streaming():
    """What the Python script among sherpa-onnx's examples sends, which no package has: samples, then `Done`."""
    import websockets

    _, pcm = samples()
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
    return joined(text for _, text in sorted(finals.items()))


async def sherpa_offline():
    """What the script for offline models sends: a header, samples in pieces of 10,240 bytes, `Done` after the result."""
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


CLIENTS = [
    vosk,
    sherpa_program,
    sherpa_streaming,
    sherpa_offline,
    openai_file,
    openai_stream,
    openai_words,
    openai_models,
    openai_error,
    openai_realtime,
    deepgram_file,
    deepgram_live,
    wyoming,
]


def main():
    failed = []
    for client in CLIENTS:
        start = time.monotonic()
        try:
            text = asyncio.run(client()) if asyncio.iscoroutinefunction(client) else client()
            problem = None if text == EXPECTED else f"expected `{EXPECTED}`, found `{text}`"
        except Exception as error:  # Any failure of a client is a result.
            problem = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        if problem:
            print(f"{client.__name__}, after {seconds:.1f} s: {problem}", flush=True)
        if problem:
            failed.append(client.__name__)
    if failed:
        sys.exit(f"{RECORDING}: clients that failed: {', '.join(failed)}")
    print(f"{os.path.basename(RECORDING)}: {len(CLIENTS)} clients give `{EXPECTED}`", flush=True)


main()
