"""Live streams: pieces of any size give what the whole recording gives."""

import numpy as np
import pytest

import srf
from conftest import SAMPLES, read_wav


def shown(segments):
    return [(segment.text, segment.start_s, segment.end_s, [token.start_s for token in segment.tokens]) for segment in segments]


@pytest.mark.parametrize("name", SAMPLES)
def test_pieces_give_what_the_whole_gives(name):
    recognizer = srf.Recognizer("en-phones")
    samples, rate = read_wav(f"samples/{name}.wav")
    expected = shown(recognizer.transcribe(samples, rate).segments)
    random = np.random.default_rng(7)
    for n_pieces in [1, 3, 50]:
        stream, ended = recognizer.stream(), []
        for piece in np.split(samples, np.sort(random.integers(0, len(samples), n_pieces - 1))):
            stream.accept(piece, rate)
            ended.extend(stream.take_ended())
        assert stream.accepted_s == pytest.approx(len(samples) / rate)
        ended.extend(stream.finish())
        assert shown(ended) == expected
        assert stream.accepted_s == 0.0


def test_a_partial_result_grows_and_flush_ends_the_utterance():
    stream = srf.Recognizer("en-phones").stream()
    samples, rate = read_wav("samples/man-1.wav")
    assert stream.partial() is None
    stream.accept(samples[: 2 * rate], rate)
    partial = stream.partial()
    assert partial.text and partial.ended_by is None
    stream.flush()
    (segment,) = stream.take_ended()
    assert segment.text.startswith(partial.text.split()[0]) and segment.ended_by == "flush"
    assert segment.to_dict()["text"] == segment.text
    stream.reset()
    assert stream.finish() == ()


def test_the_rate_stays_the_same():
    stream = srf.Recognizer("en-phones").stream()
    stream.accept(np.zeros(1600), 16000)
    with pytest.raises(srf.Error, match="started at 16000 Hz and goes on at 8000 Hz"):
        stream.accept(np.zeros(1600), 8000)
