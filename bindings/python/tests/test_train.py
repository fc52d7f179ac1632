"""Training: the bytes of the command, exact resume, events, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import srf
from conftest import ROOT, references

RECIPE = """
[model]
architecture = "srf"
filters = 2
layers = 2
primary_height = 4
hidden_height = 4
primary_depth = 2
hidden_depth = 2
class_depth = 2

[features]
cmvn = "online"

[training]
epochs = 3
batch_frames = 400
average_epochs = 2
validation_utterances = 2

[training.schedule.warmup]
steps = 20
kappa = [{ from_epoch = 1, value = 0.05 }]
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The samples as a corpus, and a recipe for a tiny network."""
    folder = tmp_path_factory.mktemp("corpus")
    utterances = list(references().values())
    for utterance in utterances:
        utterance["audio_filepath"] = str(ROOT / "samples" / utterance["audio_filepath"])
    lines = [json.dumps(utterance) + "\n" for utterance in utterances]
    (folder / "train.jsonl").write_text("".join(lines))
    (folder / "dev.jsonl").write_text("".join(lines[:2]))
    (folder / "labels.txt").write_bytes((ROOT / "models/en-phones/labels.txt").read_bytes())
    (folder / "tiny.toml").write_text(RECIPE)
    return folder


def weights(run):
    return (run / "model/weights.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(corpus):
    """A run that was never stopped."""
    events = []
    trained = srf.train(corpus / "tiny.toml", corpus, corpus / "whole", on_event=events.append)
    assert trained.model == corpus / "whole/model" and trained.left_out == 0 and trained.dev["n_utterances"] == 2
    return corpus / "whole", events


def test_events_are_those_of_the_log(whole):
    run, events = whole
    logged = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [event for event in events if event["event"] not in ("step", "remark")] == logged
    steps = [event for event in events if event["event"] == "step"]
    assert steps and steps[-1]["n_epochs"] == 3 and steps[-1]["loss"] > 0


def test_the_bytes_are_those_of_the_command(whole, corpus, command, tmp_path):
    command("-q", "train", corpus / "tiny.toml", "--data", corpus, "--out", tmp_path / "run")
    assert weights(tmp_path / "run") == weights(whole[0])


def test_an_exception_in_a_callback_stops_and_the_same_call_resumes(whole, corpus, tmp_path):
    def stop(event):
        if event["event"] == "epoch":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as caught:
        srf.train(corpus / "tiny.toml", [corpus], tmp_path / "run", on_event=stop)
    assert "the same call resumes" in caught.value.__notes__[0]
    trained = srf.train(corpus / "tiny.toml", [corpus], tmp_path / "run")
    assert weights(tmp_path / "run") == weights(whole[0])
    assert srf.Recognizer(trained.model).units == "phones"


SCRIPT = """
import sys, srf
try:
    srf.train(sys.argv[1] + "/tiny.toml", sys.argv[1], sys.argv[2], changes={"training.epochs": int(sys.argv[3])},
              on_event=lambda event: print(event["event"], flush=True))
except KeyboardInterrupt as interrupt:
    print(interrupt.__notes__[0])
    sys.exit(130)
"""


def test_ctrl_c_saves_and_the_same_call_resumes(corpus, tmp_path):
    def start(run, n_epochs):
        return [sys.executable, "-c", SCRIPT, str(corpus), str(run), str(n_epochs)]

    n_epochs = 60
    process = subprocess.Popen(start(tmp_path / "a", n_epochs), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    for line in process.stdout:
        if line.strip() == "epoch":
            break
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(60) == 130, rest
    assert "stopped; saved `" in rest and not (tmp_path / "a/model/weights.safetensors").exists()
    subprocess.run(start(tmp_path / "a", n_epochs), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    subprocess.run(start(tmp_path / "b", n_epochs), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


def test_changes_and_wrong_ones(corpus, tmp_path):
    changes = {"training.epochs": 1, "training.average_epochs": 1, "features.cmvn": "utterance"}
    srf.train(corpus / "tiny.toml", corpus, tmp_path / "run", changes=changes)
    assert 'cmvn = "utterance"' in (tmp_path / "run/model/config.toml").read_text()
    with pytest.raises(srf.Error, match="`training.epoch=1`") as caught:
        srf.train(corpus / "tiny.toml", corpus, tmp_path / "no", changes={"training.epoch": 1})
    assert "training.epochs" in caught.value.hint
    with pytest.raises(srf.Error, match="was started with") as caught:
        srf.train(corpus / "tiny.toml", corpus, tmp_path / "run")
    with pytest.raises(srf.Error, match="labels.txt"):
        srf.train(corpus / "tiny.toml", tmp_path, tmp_path / "no")
    with pytest.raises(srf.Error, match="is for a new folder or the run to resume"):
        srf.train(corpus / "tiny.toml", corpus, ROOT / "samples")
