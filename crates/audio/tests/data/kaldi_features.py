"""Writes kaldi_features.safetensors: features of two recordings as Kaldi computes them.

pip install kaldi-native-fbank numpy; python kaldi_features.py
"""

import json
import struct
import wave

import kaldi_native_fbank as knf
import numpy as np

N_SAMPLES = 10_000


def static(samples):
    """Kaldi's compute-fbank-feats --num-mel-bins=40 --use-energy=true --dither=0."""
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = 16000
    options.mel_opts.num_bins = 40
    options.use_energy = True
    fbank = knf.OnlineFbank(options)
    fbank.accept_waveform(16000, samples.tolist())
    fbank.input_finished()
    return np.stack([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])


def with_deltas(frames):
    """Kaldi's add-deltas: order 2, window 2, ends repeated."""
    first = np.array([-2, -1, 0, 1, 2]) / 10
    parts = [frames]
    for weights in (first, np.convolve(first, first)):
        reach = len(weights) // 2
        index = np.clip(np.arange(len(frames))[:, None] + np.arange(-reach, reach + 1), 0, len(frames) - 1)
        parts.append(np.einsum("w,twd->td", weights, frames.astype(np.float64)[index]))
    return np.concatenate(parts, axis=1)


tensors = {}
for name in ("woman-1", "man-1"):
    with wave.open(f"{name}.wav") as recording:
        samples = np.frombuffer(recording.readframes(N_SAMPLES), dtype="<i2").astype(np.float32)
    frames = static(samples)
    tensors[f"{name}.static"] = frames
    tensors[f"{name}.deltas"] = with_deltas(frames)

header, body = {}, b""
for name, values in tensors.items():
    values = values.astype("<f4")
    header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + values.nbytes]}
    body += values.tobytes()
head = json.dumps(header).encode()
head += b" " * (-len(head) % 8)
with open("kaldi_features.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + body)
