"""Arguments as the native half wants them."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

#: A file, or mono samples: floats from -1 to 1 or 16-bit integers.
Audio = Union[str, "os.PathLike[str]", np.ndarray, Sequence[float]]

#: Which part of a file: start and end in seconds (None is the end of the file), and channel (None mixes all).
Part = Tuple[float, Optional[float], Optional[int]]

#: Texts to score: a list, a dict from ids to texts, or a file.
Texts = Union[Sequence[str], Mapping[str, str], "os.PathLike[str]", str]

_I16_SCALE = 32768.0


def samples(audio: Any) -> np.ndarray:
    """Mono samples as contiguous 32-bit floats from -1 to 1."""
    array = np.asarray(audio)
    if array.ndim != 1:
        raise ValueError(
            f"samples have the shape {array.shape}, expected one channel: mix it (`samples.mean(axis=...)`) or choose one"
        )
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(_I16_SCALE)
    if not np.issubdtype(array.dtype, np.floating):
        raise TypeError(f"samples are {array.dtype}, expected floats from -1 to 1, or int16")
    return np.ascontiguousarray(array, dtype=np.float32)


def is_path(audio: Any) -> bool:
    return isinstance(audio, (str, os.PathLike))


def sound(audio: Audio, rate: Optional[int], part: Optional[Part]) -> Tuple[Any, Optional[int], Part]:
    """A path or samples, the rate, and the part."""
    if is_path(audio):
        if rate is not None:
            raise TypeError("`rate` is the rate of samples; a file knows its own")
        return audio, None, part or (0.0, None, None)
    if rate is None:
        raise TypeError("samples need their rate in Hz: transcribe(samples, 16000)")
    if part is not None:
        raise TypeError("`part` is a part of a file; slice the samples instead")
    return samples(audio), int(rate), (0.0, None, None)


def pairs(texts: Texts, name: str) -> Any:
    """A path, or pairs of id and text."""
    if is_path(texts):
        return texts
    if isinstance(texts, Mapping):
        return [(str(key), text) for key, text in texts.items()]
    listed: List[str] = list(texts)
    wrong = next((text for text in listed if not isinstance(text, str)), None)
    if wrong is not None:
        raise TypeError(f"`{name}` has a {type(wrong).__name__}, expected strings")
    return [(f"all-{index + 1:09}", text) for index, text in enumerate(listed)]


def rules(
    unit: str, missing: str, fold: Optional[int], case_sensitive: bool, optional_words: bool, fragments: bool
) -> Tuple[str, str, Optional[int], List[bool]]:
    return unit, missing, fold, [case_sensitive, optional_words, fragments]
