"""Errors: the text of the command, with the hint as a note; a panic is an exception like others."""

import pytest

import srf
from srf import _srf


@pytest.mark.parametrize(
    "args, call",
    [
        (["transcribe", "-m", "samples", "samples/man-1.wav"], lambda: srf.Recognizer("samples")),
        (["score", "samples/README.md", "no.trn"], lambda: srf.score("samples/README.md", "no.trn")),
        (["train", "own/srf", "--data", "samples", "--out", "target/no"], lambda: srf.train("own/srf", "samples", "target/no")),
    ],
)
def test_the_text_and_the_hint_are_those_of_the_command(command, args, call):
    printed = command(*args, ok=False).stderr.splitlines()
    with pytest.raises(srf.Error) as caught:
        call()
    error = caught.value
    assert printed[0] == f"error: {error}"
    hints = [line for line in printed if line.startswith("hint: ")]
    assert (hints or [None])[0] == (f"hint: {error.hint}" if error.hint else None)
    assert getattr(error, "__notes__", []) == hints


def test_a_problem_of_a_recording_has_the_text_of_the_command(command, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF\x04\x00\x00\x00WAVE")
    printed = command("-q", "transcribe", "-m", "models/en-phones", broken, ok=False).stderr
    with pytest.raises(srf.Error) as caught:
        srf.Recognizer("en-phones").transcribe(broken)
    assert str(caught.value) in printed


def test_a_panic_is_an_exception(capfd):
    with pytest.raises(srf.Error, match="internal error: on purpose") as caught:
        _srf._panic()
    assert "please report" in caught.value.hint
    assert srf.Recognizer("en-digits").labels


def test_garbage_as_a_recording_never_gets_further_than_an_exception(tmp_path):
    import random

    recognizer = srf.Recognizer("en-digits")
    good = open("samples/man-1.wav", "rb").read()
    chance = random.Random(3)
    for _ in range(60):
        bad = bytearray(good[: chance.randint(0, 4000)])
        for _ in range(min(len(bad), 20)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        path = tmp_path / "bad.wav"
        path.write_bytes(bytes(bad))
        try:
            recognizer.transcribe(path)
        except srf.Error as error:
            assert "internal error" not in str(error)
