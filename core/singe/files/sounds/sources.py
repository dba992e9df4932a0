"""`sound_of`: a sound of all that a caller may give: a file, an address, bytes, an array with its rate. `blocks_at`: the same of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..local import reason
from ..places import local_file
from . import flac, wav
from .decoders import decoded
from .resampling import Resampler
from .sound import RATES, Sound, mixed

SUFFIXES: Final = frozenset(
    (".aac", ".aif", ".aiff", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wave")
)
MAX_BYTES: Final = 1 << 31
READERS: Final[Mapping[bytes, Callable[[bytes, object], Sound]]] = {
    wav.MAGIC: wav.read_wav,
    wav.LONG: wav.read_wav,
    flac.MAGIC: flac.read_flac,
}
"""The first bytes of a file ↦ what reads it; optional packages read others."""
MAX_CHANNELS: Final = 64
_WHOLE: Final = {np.dtype(kind): -np.iinfo(kind).min for kind in (np.int8, np.int16, np.int32)}
"""The types of whole numbers that samples may have ↦ what stands for 1."""


def sound_of(source: Any, sampling_rate: int | None = None) -> Sound:
    """The sound of a source, the mean of its channels.

    source: a path, a URL, a file's bytes, a Sound, an array of samples with their `sampling_rate`, or a dict of both as
    `{"array": …, "sampling_rate": …}`. An array has one axis, or two, of which the shorter is that of the channels; it is of
    floats around −1 to 1, or of int8, int16 or int32.
    """
    if isinstance(source, Mapping):
        source, sampling_rate = _of_dict(source)  # pyright: ignore[reportUnknownArgumentType]
    is_array = not isinstance(source, (str, Path, bytes, bytearray, memoryview, Sound))
    if is_array:
        return _of_array(source, sampling_rate)
    if sampling_rate is not None:
        raise InputError("sound: a file says its rate itself; give sampling_rate with an array of samples alone")
    if isinstance(source, Sound):
        return source
    if isinstance(source, (str, Path)):
        return _read(_bytes_of(local_file(source)), source)
    return _read(bytes(source), "sound")


def blocks_at(rate: int, blocks: Iterable[Any], sampling_rate: int | None = None) -> Iterator[tuple[np.ndarray, bool]]:
    """Samples, `rate` a second, of the blocks of a stream, and whether the stream has ended: one array for each block as `sound_of`
    takes it, and one for what is left at the end."""
    resampler, first = None, rate
    for block in blocks:
        sound = sound_of(block, sampling_rate)
        if resampler is None:
            resampler, first = Resampler(sound.rate, rate), sound.rate
        if sound.rate != first:
            raise InputError(f"sound: a block of {sound.rate} samples a second, expected {first}, as those before it")
        yield resampler.push(sound.samples), False
    yield (np.zeros(0, np.float32) if resampler is None else resampler.finish()), True


def _read(data: bytes, name: object) -> Sound:
    if not data:
        raise InputError(f"{name}: the file is empty; expected a sound")
    return READERS.get(data[:4], decoded)(data, name)


def _bytes_of(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path}: {size} bytes, more than the {MAX_BYTES} that are read; cut it into parts")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file, expected the path of a sound; look for a slip in its name") from None
    except OSError as e:
        raise InputError(f"{path}: {reason(e)}") from None


def _of_dict(source: Mapping[str, Any]) -> tuple[Any, int]:
    array = source.get("array", source.get("raw"))
    if array is None or not isinstance(source.get("sampling_rate"), int):
        raise InputError(
            f"sound: got a dict with {', '.join(map(repr, source)) or 'nothing'}; expected 'array' and 'sampling_rate'"
        )
    return array, source["sampling_rate"]


def _of_array(source: Any, rate: int | None) -> Sound:
    try:
        array = np.asarray(source)
    except (ValueError, TypeError):
        array = np.zeros((), object)
    known = array.dtype.kind == "f" or array.dtype in _WHOLE
    frames: Any = array[:, None] if array.ndim == 1 else array
    if not known or frames.ndim != 2 or min(frames.shape) > MAX_CHANNELS:
        told = (
            f"an array {array.dtype}{array.shape}" if isinstance(source, np.ndarray) else f"a {type(source).__name__}"
        )
        raise InputError(
            f"sound: got {told}, expected a path, a URL, bytes, or an array of samples, with its sampling_rate: floats, int8, int16 or int32"
        )
    if rate is None:
        raise InputError(
            "sound: an array does not say how many samples are a second: give sampling_rate=16000, or as it is"
        )
    if rate not in RATES:
        raise InputError(f"sound: {rate} samples a second; expected {RATES[0]} to {RATES[-1]}")
    if array.ndim == 2 and len(frames) < frames.shape[1]:
        frames = frames.T
    scale = 1 / _WHOLE.get(array.dtype, 1)
    return Sound(mixed(frames, lambda x: x * scale, "sound"), rate)
