"""Weights in fewer bytes, as a bundle's files have them: parts that become float32s, or stay words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import FormatError
from .container import ALIGN, count

STORED_BYTES: Final = {"words": 4, "float16": 2, "int8": 1}
"""An encoding ↦ bytes per stored element; each decodes to four bytes."""
WIDER: Final = 4 * ALIGN
"""At most so many bytes come of one that is stored: of an int8 that a buffer of its own holds."""


@dataclass(frozen=True)
class StoredPart:
    """An array, or some of its rows, as stored; `at` is where it begins in the decoded weights."""

    encoding: str
    at: int
    values: np.ndarray  # as stored: uint32, float16 or int8
    scales: np.ndarray | None = None  # float32, with axes of length 1 along which the scale is the same

    @property
    def end(self) -> int:
        return self.at + 4 * self.values.size

    @property
    def bytes(self) -> int:
        return self.values.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def stored(self) -> bytes:
        """Scales, then elements, little-endian."""
        return (b"" if self.scales is None else self.scales.tobytes()) + self.values.tobytes()

    def decoded(self) -> np.ndarray:
        """The decoded part: float32, or the words unchanged."""
        if self.encoding == "words":
            return self.values
        wide = self.values.astype(np.float32)
        return wide if self.scales is None else wide * self.scales

    def facts(self, start: int) -> dict[str, Any]:
        """The part's entry in a manifest, for a file that begins at `start`."""
        shape = self.values.shape if self.scales is not None else (self.values.size,)
        found: dict[str, Any] = {"encoding": self.encoding, "at": self.at - start, "shape": list(shape)}
        return found if self.scales is None else {**found, "scales": list(self.scales.shape)}


def decode(parts: Sequence[StoredPart], size: int) -> np.ndarray:
    """The weights that a runner decodes from the parts, of the given number of bytes."""
    block = np.zeros(size, np.uint8)
    for part in parts:
        block[part.at : part.end] = np.ascontiguousarray(part.decoded()).reshape(-1).view(np.uint8)
    return block


def read_piece(entry: Mapping[str, Any], data: bytes) -> np.ndarray:
    """Decode a bundle's file of weights by its entry in the manifest, in NumPy."""
    parts: list[StoredPart] = []
    at = 0

    def take(kind: str, shape: Sequence[int]) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(data, kind, int(np.prod(shape)), at).reshape(shape)
        at += values.nbytes
        return values

    if count(entry["decoded"]) > WIDER * len(data):
        raise FormatError(f"{entry['file']}: {len(data)} bytes cannot become {entry['decoded']}")
    for part in entry["parts"]:
        scales = take("<f4", part["scales"]) if "scales" in part else None
        values = take({"words": "<u4", "float16": "<f2", "int8": "i1"}[part["encoding"]], part["shape"])
        parts.append(StoredPart(part["encoding"], count(part["at"]), values, scales))
        if parts[-1].end > entry["decoded"]:
            raise FormatError(f"{entry['file']}: a part ends at {parts[-1].end}, the weights at {entry['decoded']}")
    if at != len(data):
        raise FormatError(f"{entry['file']}: its parts are {at} bytes, the file has {len(data)}")
    return decode(parts, entry["decoded"])
