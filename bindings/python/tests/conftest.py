"""Fixtures: the project's own samples and models, and the command that results are compared with."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import wave

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ["woman-1", "woman-2", "man-1", "man-2"]


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    """Paths in tests are those of the project, and no setting of the machine decides which model is meant."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("SRF_MODEL", raising=False)


@pytest.fixture
def command():
    """Runs `srf` with these arguments and returns what it printed."""
    program = os.environ.get("SRF_COMMAND")
    assert program, "SRF_COMMAND names the program `srf`: run the tests by `cargo xtask python`"

    def run(*args, ok=True):
        result = subprocess.run([program, *map(str, args)], capture_output=True, text=True, cwd=ROOT)
        assert not ok or result.returncode == 0, result.stderr
        return result

    return run


def read_wav(path):
    """Samples of a 16-bit mono WAV file as integers, and their rate."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2 and file.getnchannels() == 1
        return np.frombuffer(file.readframes(file.getnframes()), dtype="<i2"), file.getframerate()


def references():
    """The manifest of the samples, by id."""
    lines = (ROOT / "samples/samples.jsonl").read_text().splitlines()
    return {utterance["id"]: utterance for utterance in map(json.loads, lines)}
