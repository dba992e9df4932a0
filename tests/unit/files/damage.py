"""Files of weights that are damaged at random, and what must come of reading them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Mapping

import numpy as np

import singe as sg


def scrambled(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one to three changes: a bit flipped, a number written, some bytes taken out or repeated."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at : at + 8] = struct.pack("<q", rng.choice([-1, 1 << 31, 1 << 62, 0, 255]))
            case 2:
                del changed[at : at + rng.randrange(1, 9)]
            case _:
                changed[at:at] = changed[at : at + rng.randrange(1, 20)]
    return bytes(changed) or b"\0"


def assert_read_or_refused(
    files: Iterable[bytes], most: int, read: Callable[[bytes], Mapping[str, np.ndarray]] = sg.read_weights
) -> None:
    """Each file gives a typed error, or arrays of at most so many bytes, which are as they are listed; one at least is read."""
    count = 0
    for data in files:
        try:
            found = read(data)
            arrays = {name: found[name] for name in found}
        except (sg.FormatError, sg.InputError):
            continue
        count += 1
        stored = getattr(found, "stored", arrays)
        for name, array in arrays.items():
            told = stored[name]
            assert (array.shape, sg.dtype(array.dtype)) == (told.shape, sg.dtype(told.dtype)), name
            assert array.nbytes <= most, name
    assert count
