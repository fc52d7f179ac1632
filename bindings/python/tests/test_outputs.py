"""Features, log-probabilities, couplings and alignments: equal to the command's, and fit for other decoders."""

import json

import numpy as np
import pytest

import srf
from conftest import SAMPLES, read_wav, references

FILE = "samples/woman-1.wav"


def read_text_archive(path):
    """The matrices of a Kaldi archive in text form."""
    matrices, rows = {}, None
    for line in path.read_text().splitlines():
        fields = line.split()
        if fields[1:] == ["["]:
            rows = matrices.setdefault(fields[0], [])
            continue
        rows.append([float(field) for field in fields if field != "]"])
    return {key: np.array(rows, dtype=np.float32) for key, rows in matrices.items()}


@pytest.mark.parametrize(
    "options, settings",
    [
        ([], {}),
        (["--no-cmvn", "--dither", "0", "--static"], {"cmvn": "none", "dither": 0, "delta_order": 0}),
        (["--cmvn", "online", "--mels", "23"], {"cmvn": "online", "mel_bins": 23}),
        (["--cmvn", "utterance", "--mean-only"], {"cmvn": "utterance", "cmvn_variance": False}),
        (["--rate", "8000", "--no-energy"], {"sample_rate_hz": 8000, "energy": False}),
    ],
)
def test_features_are_those_of_the_command(command, tmp_path, options, settings):
    command("-q", "features", FILE, "--out", tmp_path / "a.ark", "--format", "text", *options)
    expected = read_text_archive(tmp_path / "a.ark")["woman-1"]
    found = srf.features(FILE, **settings)
    assert found.dtype == np.float32 and found.shape == expected.shape
    assert np.array_equal(found, expected)
    samples, rate = read_wav(FILE)
    assert np.array_equal(srf.features(samples, rate, **settings), expected)


def test_wrong_settings_of_features_are_refused():
    with pytest.raises(srf.Error, match="settings of features: unknown field `mels`, expected one of"):
        srf.features(FILE, mels=23)
    with pytest.raises(srf.Error, match="mel_bins"):
        srf.features(FILE, mel_bins=0)
    with pytest.raises(srf.Error, match="samples"):
        srf.features(np.zeros(10), 16000)


def test_log_probs_are_a_distribution_and_decode_to_the_greedy_text():
    recognizer = srf.Recognizer("en-phones")
    for name in SAMPLES:
        file = f"samples/{name}.wav"
        log_probs = srf.log_probs(file, model=recognizer)
        assert log_probs.shape[1] == len(recognizer.labels) and recognizer.blank == len(recognizer.labels) - 1
        assert np.allclose(np.exp(log_probs.astype(np.float64)).sum(axis=1), 1, atol=1e-5)
        samples, rate = read_wav(file)
        assert np.array_equal(recognizer.log_probs(samples, rate), log_probs)
        path = log_probs.argmax(axis=1)
        kept = [c for i, c in enumerate(path) if c != recognizer.blank and (i == 0 or c != path[i - 1])]
        greedy = recognizer.with_options(greedy=True, endpoint=False).transcribe(file)
        assert " ".join(recognizer.labels[c] for c in kept) == greedy.text


def test_pyctcdecode_reads_the_log_probs():
    from pyctcdecode import build_ctcdecoder

    digits = srf.Recognizer("en-digits", endpoint=False)
    # One letter for each digit, because pyctcdecode joins labels; it wants the blank as an empty label.
    letters = {label: chr(ord("a") + index) for index, label in enumerate(digits.labels) if label}
    decoder = build_ctcdecoder([letters.get(label, "") or "_" for label in digits.labels[:-1]] + [""])
    for name in SAMPLES:
        log_probs = digits.log_probs(f"samples/{name}.wav")
        expected = "".join(letters[word] for word in digits.transcribe(f"samples/{name}.wav").text.split())
        assert decoder.decode(log_probs, beam_width=100, beam_prune_logp=-100, token_min_logp=-100) == expected


def test_flashlight_reads_the_log_probs():
    decoder = pytest.importorskip("flashlight.lib.text.decoder", reason="flashlight-text has no wheel for this Python")
    phones = srf.Recognizer("en-phones", endpoint=False)
    options = decoder.LexiconFreeDecoderOptions(
        beam_size=100, beam_size_token=len(phones.labels), beam_threshold=100, lm_weight=0, sil_score=0, log_add=True,
        criterion_type=decoder.CriterionType.CTC,
    )  # fmt: skip
    # Silence is a label that never occurs here: the padding class.
    search = decoder.LexiconFreeDecoder(options, decoder.ZeroLM(), 0, phones.blank, [])
    for name in SAMPLES:
        log_probs = np.ascontiguousarray(phones.log_probs(f"samples/{name}.wav"))
        best = search.decode(log_probs.ctypes.data, *log_probs.shape)[0]
        path = [c for i, c in enumerate(best.tokens) if c != phones.blank and (i == 0 or c != best.tokens[i - 1])]
        text = " ".join(phones.labels[c] for c in path if phones.labels[c])
        assert text == phones.transcribe(f"samples/{name}.wav").text


def test_couplings_of_every_layer_sum_to_one_and_to_the_mass_of_the_evidence():
    recognizer = srf.Recognizer("en-phones", evidence=True, endpoint=False)
    couplings = srf.couplings(FILE, model=recognizer)
    log_probs = recognizer.log_probs(FILE)
    for layer in couplings.values():
        assert layer.dtype == np.float32 and len(layer) == len(log_probs)
        assert np.abs(layer.sum(axis=2) - 1).max() < 1e-5
    last = couplings[f"caps{len(couplings)}"]
    assert last.shape[2] == len(recognizer.labels) and not last[:, :, 0].any()
    mass = last.sum(axis=1) / last.shape[1]
    times = recognizer.slice_times(len(log_probs))
    assert np.diff(times) == pytest.approx(recognizer.slice_s)
    for token in recognizer.transcribe(FILE).segments[0].tokens:
        near = np.abs(mass[:, recognizer.labels.index(token.text)] - token.evidence.coupling_mass).min()
        assert near < 1e-5
    samples, rate = read_wav(FILE)
    assert np.array_equal(recognizer.couplings(samples, rate)["caps1"], couplings["caps1"])


def test_alignments_and_pronunciations_are_those_of_the_command(command, tmp_path):
    recognizer = srf.Recognizer("models/en-phones")
    of_model = ["-m", "models/en-phones", "samples/samples.jsonl"]
    command("-q", "align", *of_model, "--out", tmp_path, "--format", "json")
    lines = command("-q", "gop", *of_model, "--json").stdout.splitlines()
    scored = {line["id"]: line["labels"] for line in map(json.loads, lines)}
    for name, utterance in references().items():
        file, text = f"samples/{name}.wav", utterance["text"]
        segment = srf.align(file, text, model=recognizer)
        (expected,) = json.loads((tmp_path / f"{name}.json").read_text())["segments"]
        assert [token.text for token in segment.tokens] == text.split()
        assert segment.to_dict()["tokens"] == expected["tokens"]
        said = srf.gop(file, text, model=recognizer)
        found = [(label.text, label.start_s, label.end_s, label.score) for label in said]
        wanted = [(label["label"], label["start_s"], label["end_s"], label["score"]) for label in scored[name]]
        assert [one[:1] for one in found] == [one[:1] for one in wanted]
        assert np.allclose([one[1:] for one in found], [one[1:] for one in wanted], atol=1e-5)
        samples, rate = read_wav(file)
        again = recognizer.gop(samples, text, rate)
        assert [(label.score, label.heard) for label in again] == [(label.score, label.heard) for label in said]
    with pytest.raises(srf.Error, match="`samples/man-1.wav`.*slices"):
        srf.align("samples/man-1.wav", "d ih " * 500, model=recognizer)
