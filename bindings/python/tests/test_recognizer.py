"""Transcripts of files, arrays and lists: the same as the command's, whatever the form of the input."""

import json
import threading

import numpy as np
import pytest

import srf
from conftest import ROOT, SAMPLES, read_wav, references

FILES = [f"samples/{name}.wav" for name in SAMPLES]


@pytest.fixture(scope="module")
def recognizer():
    return srf.Recognizer(ROOT / "models/en-phones")


def without_times_of_computing(value):
    """JSON without delays, which are measured and differ from run to run."""
    if isinstance(value, dict):
        return {key: without_times_of_computing(item) for key, item in value.items() if key != "delay"}
    return [without_times_of_computing(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", FILES)
def test_the_text_is_that_of_the_command(recognizer, command, file):
    transcript = recognizer.transcribe(file)
    assert transcript.text
    for name in ["text", "trn", "ctm", "srt", "vtt", "textgrid", "csv"]:
        assert transcript.format(name) == command("-q", "transcribe", "-m", "models/en-phones", file, "--format", name).stdout
    expected = json.loads(command("-q", "transcribe", "-m", "models/en-phones", file, "--format", "json").stdout)
    found = recognizer.with_options(evidence=True).transcribe(file).to_dict()
    assert without_times_of_computing(found) == without_times_of_computing(expected)


def test_samples_give_what_their_file_gives(recognizer):
    integers, rate = read_wav("samples/woman-1.wav")
    # Samples have no name, for which this format has a sign.
    expected = recognizer.transcribe("samples/woman-1.wav").to_ctm().replace("woman-1", "%")
    floats = integers / 32768
    for samples in [integers, floats, floats.astype(np.float32), np.stack([floats, floats])[1], list(floats)]:
        assert recognizer.transcribe(samples, rate).to_ctm() == expected
    strided = np.repeat(floats, 2)[::2]
    assert recognizer.transcribe(strided, rate).to_ctm() == expected


def test_formats_have_their_methods(recognizer):
    transcript = recognizer.transcribe(FILES[0])
    for name in ["text", "json", "trn", "ctm", "srt", "vtt", "textgrid", "csv"]:
        assert getattr(transcript, f"to_{name}")() == transcript.format(name)
    assert str(transcript) == transcript.text
    with pytest.raises(srf.Error, match="unknown format `docx`, expected one of text"):
        transcript.format("docx")


def test_parts_have_times_and_confidences(recognizer):
    segment = recognizer.with_options(n_best=3, evidence=True).transcribe(FILES[0]).segments[0]
    assert [token.text for token in segment.tokens] == segment.text.split()
    assert all(token.start_s <= token.end_s for token in segment.tokens)
    assert all(0 <= token.confidence <= 1 for token in segment.tokens)
    assert len(segment.alternatives) == 2
    evidence = segment.tokens[0].evidence
    assert 0 <= evidence.posterior <= 1 and 0 <= evidence.coupling_mass <= 1 and evidence.runner_up
    assert segment.tokens[0].delay.algorithmic_ms == pytest.approx(recognizer.delay_ms)
    assert recognizer.transcribe(FILES[0]).segments[0].tokens[0].evidence is None


def test_a_part_of_a_file(recognizer):
    integers, rate = read_wav(FILES[0])
    part = recognizer.transcribe(FILES[0], part=(0.5, 1.5, None))
    assert part.duration_s == 1.0
    assert part.text == recognizer.transcribe(integers[rate // 2 : rate * 3 // 2], rate).text


def test_a_list_is_in_order_and_equals_its_items(recognizer):
    many = FILES * 5
    texts = {file: recognizer.transcribe(file).text for file in FILES}
    transcripts = recognizer.transcribe_all(many, progress=True)
    assert [transcript.text for transcript in transcripts] == [texts[file] for file in many]
    pairs = [read_wav(file) for file in FILES]
    assert [transcript.text for transcript in recognizer.transcribe_all(pairs)] == list(texts.values())
    assert list(recognizer.transcribe_all([])) == []


def test_an_item_that_fails_raises_or_is_returned(recognizer):
    bad = [FILES[0], "no-such.wav", FILES[1]]
    first, error, last = recognizer.transcribe_all(bad, errors="return")
    assert first.text and last.text and isinstance(error, srf.Error) and "no-such.wav" in str(error)
    transcripts = recognizer.transcribe_all(bad)
    assert next(transcripts).text
    with pytest.raises(srf.Error, match="no-such.wav"):
        next(transcripts)
    assert next(transcripts).id == last.id


def test_other_threads_run_meanwhile(recognizer):
    """The GIL is free while we compute: native code that keeps it would stop all other threads until it returns."""
    counted, is_done = 0, threading.Event()

    def count():
        nonlocal counted
        while not is_done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    recognizer.transcribe(np.zeros(16000 * 60), 16000)
    during = counted - before
    is_done.set()
    thread.join()
    # One or two could also run just before and just after.
    assert during > 5


def test_phrases_hotwords_and_lexicons_decide_what_is_written():
    digits = srf.Recognizer("en-digits")
    file = FILES[0]
    assert digits.units == "words"
    only = digits.with_options(phrases=["seven", "two"], phrases_repeat=True)
    assert set(only.transcribe(file).text.split()) <= {"seven", "two"}
    free = srf.Recognizer("en-phones")
    reference = references()["woman-1"]
    words = {word: " ".join(p for a, b, p in reference["phones"] if start <= (a + b) / 2 <= end) for start, end, word in reference["words"]}
    lexicon = free.with_options(lexicon=words)
    text = lexicon.transcribe(file).text
    assert text and set(text.split()) <= set(words)
    assert [word.text for word in lexicon.transcribe(file).segments[0].words] == text.split()
    avoided = free.transcribe(file).text.split()[0]
    assert avoided not in free.with_options(hotwords={avoided: -50.0}).transcribe(file).text.split()


def test_endpoint_rules_are_arguments(recognizer):
    integers, rate = read_wav(FILES[0])
    pause = np.zeros(rate, dtype=np.int16)
    twice = np.concatenate([integers, pause, integers, pause])
    eager = recognizer.with_options(endpoint={"rule2": {"min_trailing_silence_s": 0.5}})
    assert len(eager.transcribe(twice, rate).segments) == 2
    whole = recognizer.with_options(endpoint=False).transcribe(twice, rate)
    assert len(whole.segments) == 1 and whole.segments[0].ended_by == "flush"


def test_models_are_found_by_name_and_path(monkeypatch, tmp_path):
    bundled = srf.Recognizer("en-digits")
    assert bundled.directory.parent.name == "models" and bundled.directory.parent.parent.name == "srf"
    assert srf.Recognizer("models/en-digits").labels == bundled.labels
    monkeypatch.chdir(tmp_path)
    default = srf.Recognizer()
    assert default.directory.name == srf.DEFAULT_MODEL
    assert srf.Recognizer("models/en-digits").directory == bundled.directory
    monkeypatch.setenv("SRF_MODEL", str(ROOT / "models/en-digits"))
    assert srf.Recognizer().directory == ROOT / "models/en-digits"


def test_wrong_arguments_say_what_was_expected(recognizer):
    with pytest.raises(TypeError, match="samples need their rate"):
        recognizer.transcribe(np.zeros(1600))
    with pytest.raises(TypeError, match="a file knows its own"):
        recognizer.transcribe(FILES[0], 16000)
    with pytest.raises(ValueError, match=r"shape \(2, 1600\), expected one channel"):
        recognizer.transcribe(np.zeros((2, 1600)), 16000)
    with pytest.raises(TypeError, match="samples are int64"):
        recognizer.transcribe(np.zeros(1600, dtype=np.int64), 16000)
    with pytest.raises(TypeError, match="unknown option `bean`, expected one of alpha, beam"):
        recognizer.with_options(bean=3)
    with pytest.raises(srf.Error, match="the beam is 0, expected 1 to 10000"):
        recognizer.with_options(beam=0)
    with pytest.raises(srf.Error, match="0 hypotheses were asked for"):
        recognizer.with_options(n_best=0)
    with pytest.raises(srf.Error, match="unknown variant `letters`, expected `words` or `labels`"):
        recognizer.with_options(lm_of="letters")
    with pytest.raises(srf.Error, match="sample 3 of the stream is NaN"):
        recognizer.transcribe(np.array([0, 0, 0, np.nan]), 16000)
    with pytest.raises(srf.Error, match="sample rate of 3 Hz|3 Hz"):
        recognizer.transcribe(np.zeros(100), 3)
