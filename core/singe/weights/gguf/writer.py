"""GGUF files, version 3, of tensors in float32: what a small file, such as an adapter, needs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from .reader import MAGIC

_VERSION: Final = 3
_ALIGNMENT: Final = 32
_FLOAT, _STRING = 6, 8


def gguf_pieces(metadata: Mapping[str, str | float], arrays: Mapping[str, np.ndarray]) -> Iterator[bytes]:
    """The file of these texts and numbers, and these arrays, as consecutive bytes."""
    head = [MAGIC, struct.pack("<IQQ", _VERSION, len(arrays), len(metadata))]
    for key, value in metadata.items():
        head.append(_text(key))
        if isinstance(value, str):
            head += [struct.pack("<I", _STRING), _text(value)]
        else:
            head.append(struct.pack("<If", _FLOAT, value))
    at = 0
    for name, array in arrays.items():
        sides = array.shape[::-1]
        head += [_text(name), struct.pack(f"<I{len(sides)}QIQ", len(sides), *sides, 0, at)]
        at += _padded(4 * array.size)
    whole = b"".join(head)
    yield whole + bytes(_padded(len(whole)) - len(whole))
    for array in arrays.values():
        data = np.ascontiguousarray(array, np.float32).tobytes()
        yield data + bytes(_padded(len(data)) - len(data))


def _padded(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
