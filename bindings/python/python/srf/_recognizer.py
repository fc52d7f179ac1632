"""The recogniser and its streams."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _srf
from ._arguments import Audio, Part, is_path, samples, sound
from ._srf import Said, Segment, Transcript

#: Models that came with the package.
_BUNDLED = Path(__file__).parent / "models"

PathLike = Union[str, "os.PathLike[str]"]


class Recognizer:
    """A model that is ready to recognise; it can be shared by threads.

    `model` is a model directory, a run that contains one, or the name of an installed or bundled model. Without it the
    model is that of `SRF_MODEL`, `./model`, or the one that comes with the package.

    >>> recognizer = Recognizer("en-digits")
    >>> recognizer.units, recognizer.sample_rate_hz
    ('words', 16000)

    How it decodes:

    - `beam`: width of the search; `greedy=True` takes the most probable label of each slice instead.
    - `phones=True` writes the labels of the model even if it has words.
    - `lm`: n-gram language model, a file in ARPA format; `lm_of` says whether it is over "words" or "labels";
      `alpha` is its weight, `beta` the bonus per word.
    - `lexicon`: the words that can be written: a file, or a dict from words to pronunciations (a list of them, or one),
      or a list of words for models of characters.
    - `hotwords`: phrases to favour: a file, a list, or a dict from phrases to scores; `hotword_score` is that of those
      without one, negative to avoid them.
    - `phrases`: the only phrases there are: a file or a list; `phrases_repeat=True` allows sequences of them.
    - `n_best`: hypotheses per segment. `evidence=True` reports what the routing decided for each label.
    - `endpoint`: False takes a recording as one utterance; a dict changes rules, for example
      `{"rule2": {"min_trailing_silence_s": 0.8}, "end_of_sentence": False}`.

    >>> yes_no = Recognizer("en-digits", phrases=["one", "two"], n_best=2)
    >>> yes_no.with_options(phrases=None, hotwords={"seven": 2.0})
    Recognizer('...en-digits')
    """

    def __init__(
        self,
        model: Optional[PathLike] = None,
        *,
        beam: Optional[int] = None,
        greedy: bool = False,
        phones: bool = False,
        n_best: int = 1,
        evidence: bool = False,
        lm: Optional[PathLike] = None,
        lm_of: str = "words",
        alpha: Optional[float] = None,
        beta: Optional[float] = None,
        lexicon: Union[None, PathLike, Mapping[str, Union[str, Sequence[str]]], Sequence[str]] = None,
        hotwords: Union[None, PathLike, Mapping[str, float], Sequence[str]] = None,
        hotword_score: float = 1.5,
        phrases: Union[None, PathLike, Sequence[str]] = None,
        phrases_repeat: bool = False,
        endpoint: Union[bool, Mapping[str, Any]] = True,
    ) -> None:
        given = dict(
            beam=beam,
            greedy=greedy,
            phones=phones,
            n_best=n_best,
            evidence=evidence,
            lm=lm,
            lm_of=lm_of,
            alpha=alpha,
            beta=beta,
            lexicon=lexicon,
            hotwords=hotwords,
            hotword_score=hotword_score,
            phrases=phrases,
            phrases_repeat=phrases_repeat,
            endpoint=endpoint,
        )
        self._set(_srf.Model.open(None if model is None else os.fspath(model), _BUNDLED), given)

    def _set(self, model: "_srf.Model", given: Dict[str, Any]) -> None:
        self._model, self._given = model, given
        self._options = _srf.Options(model, json.dumps(_settings(given)))

    def with_options(self, **changes: Any) -> "Recognizer":
        """The same model with other options; the model is shared, not loaded again.

        >>> Recognizer("en-digits").with_options(greedy=True).transcribe(np.zeros(16000), 16000).text
        ''
        """
        unknown = sorted(set(changes) - set(self._given))
        if unknown:
            raise TypeError(f"unknown option `{unknown[0]}`, expected one of {', '.join(sorted(self._given))}")
        other = Recognizer.__new__(Recognizer)
        other._set(self._model, {**self._given, **changes})
        return other

    @property
    def directory(self) -> Path:
        """Where the model was found."""
        return Path(self._model.directory)

    @property
    def labels(self) -> List[str]:
        """The symbols of the classes. The first (padding) and the last (blank) are empty."""
        return self._model.labels

    @property
    def blank(self) -> int:
        """The class of CTC's blank: the last one."""
        return self._model.blank

    @property
    def units(self) -> str:
        """What the labels are: "phones", "chars" or "words"."""
        return self._model.units

    @property
    def has_words(self) -> bool:
        """Whether the model has a lexicon and a language model of its own."""
        return self._model.has_words

    @property
    def sample_rate_hz(self) -> int:
        """The rate that recordings are resampled to."""
        return self._model.sample_rate_hz

    @property
    def slice_s(self) -> float:
        """From one slice (row of log-probabilities) to the next."""
        return self._model.slice_s

    @property
    def delay_ms(self) -> Optional[float]:
        """The algorithmic delay; None if the model needs the whole utterance."""
        return self._model.delay_ms

    @property
    def card(self) -> str:
        """The description of the model, in Markdown."""
        return self._model.card

    def slice_times(self, n_slices: int) -> np.ndarray:
        """The middle of each of the first `n_slices` slices.

        >>> [round(float(time), 4) for time in Recognizer("en-digits").slice_times(2)]
        [0.0125, 0.0525]
        """
        return self._model.start_s + (np.arange(n_slices) + 0.5) * self.slice_s

    def transcribe(self, audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None) -> Transcript:
        """Transcribes a recording, or samples at `rate` Hz.

        `part` is (start, end, channel) of a file, the end None for the end of the file and the channel None to mix all.

        >>> recognizer = Recognizer("en-phones")
        >>> transcript = recognizer.transcribe("samples/woman-1.wav")
        >>> segment = transcript.segments[0]
        >>> segment.tokens[0].start_s < segment.tokens[0].end_s
        True
        >>> recognizer.transcribe("samples/woman-1.wav", part=(0.0, 1.0, None)).duration_s
        1.0
        """
        return self._model.transcribe(self._options, *sound(audio, rate, part))

    def transcribe_all(
        self,
        recordings: Iterable[Union[PathLike, Tuple[Audio, int]]],
        *,
        progress: Optional[bool] = None,
        errors: str = "raise",
    ) -> Iterator[Transcript]:
        """Transcribes a list on all cores: an iterator over the transcripts in the order of the list.

        Items are files, or pairs of samples and rate. `progress=True` shows a bar with tqdm; None shows one if tqdm is
        installed and stderr is a terminal. With `errors="return"` an item that fails yields its `srf.Error` instead of
        raising it.

        >>> files = ["samples/woman-1.wav", "samples/man-1.wav"]
        >>> [transcript.id for transcript in Recognizer("en-phones").transcribe_all(files)]
        ['woman-1', 'man-1']
        """
        if errors not in ("raise", "return"):
            raise ValueError(f"errors is {errors!r}, expected 'raise' or 'return'")
        items = [sound(item, None, None) if is_path(item) else sound(*item, None) for item in recordings]  # type: ignore[misc]
        made = self._model.transcripts(self._options, [item[:2] for item in items], errors == "return")
        return _with_progress(made, progress)

    def stream(self) -> "Stream":
        """Starts a live stream of one speaker.

        >>> stream = Recognizer("en-phones").stream()
        >>> stream.accept(np.zeros(1600), 16000)
        >>> stream.partial() is None
        True
        """
        return Stream(self._model.stream(self._options))

    def log_probs(self, audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None) -> np.ndarray:
        """See `srf.log_probs`."""
        return self._model.log_probs(*sound(audio, rate, part))

    def couplings(
        self, audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None
    ) -> Dict[str, np.ndarray]:
        """See `srf.couplings`."""
        return dict(self._model.couplings(*sound(audio, rate, part)))

    def align(self, audio: Audio, text: str, rate: Optional[int] = None, *, part: Optional[Part] = None) -> Segment:
        """See `srf.align`."""
        return self._model.align(*sound(audio, rate, part), text)

    def gop(self, audio: Audio, text: str, rate: Optional[int] = None, *, part: Optional[Part] = None) -> List[Said]:
        """See `srf.gop`."""
        return self._model.gop(*sound(audio, rate, part), text)

    def __repr__(self) -> str:
        return f"Recognizer({str(self.directory)!r})"


class Stream:
    """The state of one speaker's live stream; made by `Recognizer.stream`.

    Pieces of any size give the same results.

    >>> stream = Recognizer("en-phones").stream()
    >>> for piece in np.array_split(np.zeros(48000), 30):
    ...     stream.accept(piece, 16000)
    ...     for segment in stream.take_ended():
    ...         print(segment.text)
    >>> stream.accepted_s
    3.0
    >>> stream.finish()
    ()
    """

    def __init__(self, stream: "_srf.Stream") -> None:
        self._stream = stream

    def accept(self, samples_: Union[np.ndarray, Sequence[float]], rate: int) -> None:
        """Accepts mono samples at `rate` Hz; the rate of a stream stays the same until it is reset."""
        self._stream._accept(samples(samples_), rate)

    def partial(self) -> Optional[Segment]:
        """The current utterance so far; None if nothing was recognised yet."""
        return self._stream.partial()

    def take_ended(self) -> Tuple[Segment, ...]:
        """Takes the segments that have ended."""
        return self._stream.take_ended()

    def flush(self) -> None:
        """Ends the utterance now, without waiting for later samples. The stream goes on, and so do its times."""
        self._stream.flush()

    def finish(self) -> Tuple[Segment, ...]:
        """Ends the stream and returns the segments that were not taken yet. The stream is at its start again."""
        return self._stream.finish()

    def reset(self) -> None:
        """Forgets everything."""
        self._stream.reset()

    @property
    def accepted_s(self) -> float:
        """Length of all samples accepted since the start."""
        return self._stream.accepted_s


def recognizer(model: Union[None, PathLike, Recognizer]) -> Recognizer:
    """The recogniser itself, or that of a model; models are kept."""
    return model if isinstance(model, Recognizer) else _opened(None if model is None else os.fspath(model))


@functools.lru_cache(maxsize=4)
def _opened(model: Optional[str]) -> Recognizer:
    return Recognizer(model)


def _settings(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Options as JSON can hold them; lists and dicts become the text of the file they stand for."""
    settings = {key: value for key, value in given.items() if value is not None}
    if "lm" in settings:
        settings["lm"] = os.fspath(settings["lm"])
    for key, text in (("lexicon", _lexicon), ("hotwords", _hotwords), ("phrases", "\n".join)):
        value = settings.get(key)
        if value is not None:
            settings[key] = {"path": os.fspath(value)} if is_path(value) else {"text": text(value) + "\n"}
    if isinstance(settings["endpoint"], Mapping):
        settings["endpoint"] = {key: value for key, value in settings["endpoint"].items()}
    return settings


def _lexicon(words: Union[Mapping[str, Union[str, Sequence[str]]], Sequence[str]]) -> str:
    if not isinstance(words, Mapping):
        return "\n".join(words)
    lines = []
    for word, pronunciations in words.items():
        each = [pronunciations] if isinstance(pronunciations, str) else pronunciations
        lines.extend(f"{word} {pronunciation}" for pronunciation in each)
    return "\n".join(lines)


def _hotwords(words: Union[Mapping[str, float], Sequence[str]]) -> str:
    if isinstance(words, Mapping):
        return "\n".join(f"{phrase}\t{score}" for phrase, score in words.items())
    return "\n".join(words)


def _with_progress(made: Any, progress: Optional[bool]) -> Iterator[Transcript]:
    import sys

    if progress is False or (progress is None and not sys.stderr.isatty()):
        return iter(made)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise
        return iter(made)
    return iter(tqdm(made, total=len(made), unit="file"))
