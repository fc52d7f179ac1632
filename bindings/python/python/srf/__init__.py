"""Speech recognition with capsule networks.

>>> import srf
>>> recognizer = srf.Recognizer()
>>> transcript = recognizer.transcribe("samples/woman-1.wav")
>>> transcript.duration_s > 1.0
True
>>> transcript.to_srt().startswith("1\\n00:00:00")
True

Times are in seconds, samples are mono and from -1 to 1 (or 16-bit integers), rates are in Hz. Everything computes on
all cores and without the GIL. What goes wrong raises `srf.Error`, whose `hint` says what to do about it.
"""

from __future__ import annotations

import json as _json
import os as _os
import sys as _sys
from pathlib import Path as _Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _srf
from ._arguments import Audio, Part, Texts, pairs as _pairs, rules as _rules, sound as _sound
from ._recognizer import Recognizer, Stream, recognizer as _recognizer
from ._srf import (
    DEFAULT_MODEL,
    Alternative,
    Delay,
    Error,
    Evidence,
    Said,
    Score,
    Segment,
    Token,
    Transcript,
    Word,
    __version__,
    isa,
    recipes,
    set_threads,
)

import numpy as _np

__all__ = [
    "Alternative",
    "DEFAULT_MODEL",
    "Delay",
    "Error",
    "Evidence",
    "Recognizer",
    "Said",
    "Score",
    "Segment",
    "Stream",
    "Token",
    "Trained",
    "Transcript",
    "Word",
    "__version__",
    "align",
    "compare",
    "couplings",
    "features",
    "gop",
    "isa",
    "log_probs",
    "recipes",
    "score",
    "set_threads",
    "train",
]

Model = Union[None, str, "_os.PathLike[str]", Recognizer]


def features(audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None, **settings: Any) -> _np.ndarray:
    """Filterbank features as Kaldi computes them, `[frames, values]`: what `srf features` writes.

    `settings` are the keys of the table `[features]` of a recipe (docs/FORMATS.md): `mel_bins`, `energy`,
    `delta_order`, `cmvn`, `dither` and so on. By default there are 40 log-mel bins and the energy, with deltas of
    order 2, normalised over the recording.

    >>> frames = features("samples/woman-1.wav")
    >>> frames.shape[1], frames.dtype.name
    (123, 'float32')
    >>> features("samples/woman-1.wav", mel_bins=80, energy=False, delta_order=0, cmvn="none", dither=0).shape[1]
    80
    """
    return _srf.features(*_sound(audio, rate, part), _json.dumps(settings))


def log_probs(
    audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None, model: Model = None
) -> _np.ndarray:
    """Log-probabilities of the classes, `[slices, classes]`, for other decoders.

    `Recognizer.labels` names the classes. The first one is padding and never occurs; the last one is CTC's blank.

    >>> log_probs("samples/woman-1.wav").shape[1] == len(Recognizer().labels)
    True
    """
    return _recognizer(model).log_probs(audio, rate, part=part)


def couplings(
    audio: Audio, rate: Optional[int] = None, *, part: Optional[Part] = None, model: Model = None
) -> Dict[str, _np.ndarray]:
    """The coupling coefficients of every capsule layer, `[slices, input capsules, output capsules]` each.

    The couplings of an input capsule sum to 1. Input capsules are those of a window of slices, the oldest slice first;
    the output capsules of the last layer are the classes.

    >>> layers = couplings("samples/woman-1.wav")
    >>> [name for name in layers][:2]
    ['caps1', 'caps2']
    >>> bool(abs(layers["caps1"].sum(axis=2) - 1).max() < 1e-4)
    True
    """
    return _recognizer(model).couplings(audio, rate, part=part)


def align(
    audio: Audio,
    text: str,
    rate: Optional[int] = None,
    *,
    part: Optional[Part] = None,
    model: Model = None,
) -> Segment:
    """When each label of a known transcript was said. `text` is in the labels of the model, as `srf align` wants it.

    >>> phones = align("samples/man-1.wav", "d ih d dh ah th iy f", model="en-phones")
    >>> [token.text for token in phones.tokens][:3]
    ['d', 'ih', 'd']
    """
    return _recognizer(model).align(audio, text, rate, part=part)


def gop(
    audio: Audio,
    text: str,
    rate: Optional[int] = None,
    *,
    part: Optional[Part] = None,
    model: Model = None,
) -> List[Said]:
    """How well each label of a known transcript was said ("goodness of pronunciation"), 0 to 100.

    >>> said = gop("samples/man-1.wav", "d ih d dh ah th iy f", model="en-phones")
    >>> all(0 <= label.score <= 100 for label in said)
    True
    """
    return _recognizer(model).gop(audio, text, rate, part=part)


def score(
    references: Texts,
    hypotheses: Texts,
    *,
    unit: str = "word",
    missing: str = "strict",
    fold: Optional[int] = None,
    case_sensitive: bool = False,
    optional_words: bool = False,
    fragments: bool = False,
) -> Score:
    """Counts errors as NIST's sclite does.

    Texts are a list, a dict of ids (a speaker, `-` or `_`, and the rest), or a file (trn, Kaldi's text, stm, ctm).
    `unit` is word, char or phone. `missing` says what happens to utterances that only the references have: `strict`
    refuses, `all` counts their words as deleted, `present` leaves them out. `fold` folds TIMIT's phones to 48 or 39.

    >>> result = score(["the cat sat", "yes"], ["the cat sat down", "no"])
    >>> result.rate, result.substitutions, result.insertions
    (0.5, 1, 1)
    >>> print(result)
    %WER 50.00 [ 2 / 4, 1 ins, 0 del, 1 sub ]
    >>> result.alignments()[0][1][-1]
    (None, 'down', 'insertion')
    >>> low, high = result.interval()
    >>> score(["abc"], ["abd"], unit="char").rate
    0.3333333333333333
    """
    rules = _rules(unit, missing, fold, case_sensitive, optional_words, fragments)
    return _srf.score(_pairs(references, "references"), _pairs(hypotheses, "hypotheses"), rules)


def compare(
    references: Texts,
    hypotheses_a: Texts,
    hypotheses_b: Texts,
    *,
    unit: str = "word",
    missing: str = "strict",
    fold: Optional[int] = None,
    case_sensitive: bool = False,
    optional_words: bool = False,
    fragments: bool = False,
    replications: int = 10_000,
    seed: int = 0,
) -> Dict[str, Any]:
    """Tests whether one of two recognisers is significantly better: NIST's tests and the bootstrap.

    The result says of each test its p, and the better side: "a", "b", or None if that may be chance.

    >>> references = {f"ann-{i}": "one two three four" for i in range(40)}
    >>> worse = {id: text.replace("two", "too") for id, text in references.items()}
    >>> result = compare(references, worse, references)
    >>> result["rate_a"]["measured"], result["rate_b"]["measured"]
    (0.25, 0.0)
    >>> result["tests"]["mcnemar"]["winner"]
    'b'
    """
    rules = _rules(unit, missing, fold, case_sensitive, optional_words, fragments)
    reference = _pairs(references, "references")
    hypotheses = (_pairs(hypotheses_a, "hypotheses_a"), _pairs(hypotheses_b, "hypotheses_b"))
    return _json.loads(_srf.compare((reference, reference), hypotheses, rules, replications, seed))


class Trained(NamedTuple):
    """What a training ended with."""

    #: The model directory.
    model: _Path
    #: Loss and errors on `dev`, as in the log; None if there is none.
    dev: Optional[Dict[str, Any]]
    #: Utterances and batches that were left out.
    left_out: int


def train(
    recipe: Union[str, "_os.PathLike[str]"],
    data: Union[str, "_os.PathLike[str]", Sequence[Union[str, "_os.PathLike[str]"]]],
    out: Union[str, "_os.PathLike[str]"],
    *,
    changes: Optional[Mapping[str, Any]] = None,
    epochs: Optional[int] = None,
    start_from: Union[None, str, "_os.PathLike[str]"] = None,
    restart: bool = False,
    save_every_minutes: float = 3.0,
    cache_gib: float = 6.0,
    on_event: Optional[Callable[[Dict[str, Any]], Any]] = None,
) -> Trained:
    """Trains a model, as `srf train` does; the same call resumes a stopped run and ends with the same bytes.

    `recipe` is a TOML file or a name of `srf.recipes()`, `changes` are changes to it such as
    `{"training.epochs": 20, "features.cmvn": "online"}`. `data` are folders that `srf prepare` made.

    `on_event` is called with a dict for every line of the log (`"event"` is start, epoch, examples and so on), for
    every step ("step", with loss and speed) and for remarks ("remark"); an exception in it stops the training.
    Ctrl-C finishes the step, saves, and raises KeyboardInterrupt.

    >>> "own/srf" in recipes()
    True
    >>> trained = train("own/srf", "data/mine", "runs/mine", on_event=print)  # doctest: +SKIP
    """
    folders = [data] if isinstance(data, (str, _os.PathLike)) else list(data)
    callback = None if on_event is None else lambda event: on_event(_json.loads(event))
    arguments = {
        "recipe": recipe,
        "data": folders,
        "out": out,
        "changes": [(key, value if isinstance(value, str) else _json.dumps(value)) for key, value in (changes or {}).items()],
        "epochs": epochs,
        "start_from": start_from,
        "restart": restart,
        "save_every_minutes": save_every_minutes,
        "cache_gib": cache_gib,
        "command": list(_sys.argv),
    }
    ended = _json.loads(_srf.train(arguments, callback))
    return Trained(_Path(ended["model"]), ended["dev"], ended["left_out"])
