"""Sounds in other formats, as optional packages decode them: soundfile (mp3, ogg, aiff, …), or PyAV (m4a, webm, the sound of videos).

Only this module needs them (`pip install 'singe[sounds]'` has the first).
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..pictures import SUFFIXES as PICTURES
from .sound import PART, RATES, Sound, check_frames, mixed


def decoded(data: bytes, name: object) -> Sound:
    """The sound in the bytes of a file, by the first package that is installed and reads it; name: how errors name it."""
    if Path(str(name)).suffix.lower() in PICTURES:
        raise InputError(f"{name}: a picture, expected a sound")
    problems: list[str] = []
    for package, parts_of in DECODERS.items():
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        try:
            return _joined(*parts_of(module, io.BytesIO(data)), name)
        except InputError:
            raise
        except Exception as e:  # each has errors of its own, and of its libraries
            problems.append(f"{package}: {e}")
    if problems:
        raise InputError(f"{name}: cannot be read as a sound: {'; '.join(problems)}; expected a file that has one")
    raise InputError(
        f"{name}: neither a .wav nor a .flac file; pip install 'singe[sounds]' reads .mp3, .ogg and .aiff, pip install av .m4a and videos, too"
    )


def _joined(rate: int, parts: Iterator[np.ndarray], name: object) -> Sound:
    """The sound of blocks of floats (count, channels)."""
    if rate not in RATES:
        raise InputError(f"{name}: {rate} samples a second; expected {RATES[0]} to {RATES[-1]}")
    found = [np.zeros(0, np.float32)]
    count = 0
    for part in parts:
        count += len(part)
        check_frames(count, name)
        found.append(mixed(part, np.asarray, name))
    return Sound(np.concatenate(found), rate)


def _soundfile(module: Any, file: io.BytesIO) -> tuple[int, Iterator[np.ndarray]]:
    opened = module.SoundFile(file)

    def parts() -> Iterator[np.ndarray]:
        while len(part := opened.read(PART, dtype="float32", always_2d=True)):
            yield part

    return opened.samplerate, parts()


def _av(module: Any, file: io.BytesIO) -> tuple[int, Iterator[np.ndarray]]:
    opened = module.open(file, metadata_errors="ignore")
    stream = opened.streams.audio[0]
    planar = module.AudioResampler(format="fltp", rate=stream.rate)

    def parts() -> Iterator[np.ndarray]:
        for frame in opened.decode(stream):
            yield from (x.to_ndarray().T for x in planar.resample(frame))
        yield from (x.to_ndarray().T for x in planar.resample(None))

    return stream.rate, parts()


DECODERS: Final[Mapping[str, Callable[[Any, io.BytesIO], tuple[int, Iterator[np.ndarray]]]]] = {
    "soundfile": _soundfile,
    "av": _av,
}
"""Packages ↦ the rate, and blocks of samples, of a file."""
