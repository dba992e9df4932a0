"""Weights in fewer bytes, as a bundle's files have them: parts that become 32-bit numbers, or stay as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ..errors import FormatError
from ..late_dataclass import dataclass
from .container import ALIGN, count

STORED: Final[Mapping[str, str]] = {"words": "<u4", "float16": "<f2", "int8": "i1", "integers": "i1", "bytes": "i1"}
"""An encoding ↦ the type of a stored element."""
STORED_BYTES: Final = {name: np.dtype(kind).itemsize for name, kind in STORED.items()}
DECODED: Final[Mapping[str, np.dtype[Any]]] = {
    "words": np.dtype("<u4"), "float16": np.dtype("<f4"), "int8": np.dtype("<f4"), "integers": np.dtype("<i4"),
    "bytes": np.dtype("i1"),
}  # fmt: skip
"""An encoding ↦ the type of a decoded element."""
WIDER: Final = 16
"""A file decodes to at most so many bytes for each that is stored, and ALIGN more for each part."""
_WHOLE: Final = ("int8", "integers")
"""The encodings of integers, to which a zero point may be added."""
_MOST_ZERO: Final = 255

Order: TypeAlias = Sequence[Sequence[tuple[int, int]]]
"""Where elements go: for each axis the digits of an index, the fastest first, each as (how many values, step)."""


@dataclass(frozen=True)
class StoredPart:
    """An array, or some of its rows, as stored; `at` is where it begins in the decoded weights."""

    encoding: str
    at: int
    values: np.ndarray  # as stored
    scales: np.ndarray | None = None  # float32, with axes of length 1 along which the scale is the same
    zero: int = 0  # added to each integer before it is scaled
    order: Order | None = None  # None: row-major
    sums: int | None = None  # bytes from the first element of a column to the int32 of its sum

    @property
    def end(self) -> int:
        """The end of a part that has no order, in whole words."""
        return self.at + -(-DECODED[self.encoding].itemsize * self.values.size // 4) * 4

    @property
    def bytes(self) -> int:
        return self.values.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def stored(self) -> bytes:
        """Scales, then elements, little-endian."""
        return (b"" if self.scales is None else self.scales.tobytes()) + self.values.tobytes()

    def decoded(self) -> np.ndarray:
        """The decoded elements, row-major."""
        if self.encoding in ("words", "bytes"):
            return self.values
        if self.encoding == "integers":
            return self.values.astype(np.int32) + np.int32(self.zero)
        wide = self.values.astype(np.float32) + np.float32(self.zero) if self.zero else self.values.astype(np.float32)
        return wide if self.scales is None else wide * self.scales

    def put(self, block: np.ndarray) -> None:
        """Write the part to where it belongs in the decoded weights."""
        kind = DECODED[self.encoding]
        if self.order is None:
            raw = np.ascontiguousarray(self.decoded()).reshape(-1).view(np.uint8)
            block[self.at : self.at + raw.size] = raw
            return
        steps = [places(n, digits) for n, digits in zip(self.values.shape, self.order, strict=True)]
        target = block[self.at : self.at + (len(block) - self.at) // 4 * 4]
        target.view(kind)[_added(steps)] = self.decoded()
        if self.sums is not None:
            target.view(np.int32)[(self.sums + steps[-1]) // 4] = self.values.sum(
                tuple(range(self.values.ndim - 1)), dtype=np.int32
            )

    def facts(self, start: int) -> dict[str, Any]:
        """The part's entry in a manifest, for a file that begins at `start`."""
        keeps = self.scales is not None or self.order is not None
        found: dict[str, Any] = {
            "encoding": self.encoding,
            "at": self.at - start,
            "shape": list(self.values.shape) if keeps else [self.values.size],
        }
        if self.scales is not None:
            found["scales"] = list(self.scales.shape)
        if self.zero:
            found["zero"] = self.zero
        if self.order is not None:
            found["order"] = [[list(digit) for digit in digits] for digits in self.order]
        if self.sums is not None:
            found["sums"] = self.sums
        return found


def places(length: int, digits: Sequence[tuple[int, int]]) -> np.ndarray:
    """For each index of an axis, how far its elements are from those of index 0."""
    rest, found = np.arange(length), np.zeros(length, np.int64)
    for n, step in digits:
        found += rest % n * step
        rest //= n
    return found


def _added(steps: Sequence[np.ndarray]) -> np.ndarray:
    """The places of all elements."""
    total = np.zeros((1,) * len(steps), np.int64)
    for axis, found in enumerate(steps):
        total = total + found.reshape([-1 if k == axis else 1 for k in range(len(steps))])
    return total


def decode(parts: Sequence[StoredPart], size: int) -> np.ndarray:
    """The weights that a runner decodes from the parts, of the given number of bytes."""
    block = np.zeros(size, np.uint8)
    for part in parts:
        part.put(block)
    return block


def read_piece(entry: Mapping[str, Any], data: bytes) -> np.ndarray:
    """Decode a bundle's file of weights by its entry in the manifest, in NumPy."""
    parts: list[StoredPart] = []
    at = 0

    def take(kind: str, shape: Sequence[int]) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(data, kind, math.prod(shape), at).reshape(shape)
        at += values.nbytes
        return values

    if count(entry["decoded"]) > WIDER * len(data) + ALIGN * len(entry["parts"]):
        raise FormatError(f"{entry['file']}: {len(data)} bytes cannot become {entry['decoded']}")
    for part in entry["parts"]:
        scales = take("<f4", part["scales"]) if "scales" in part else None
        values = take(STORED[part["encoding"]], part["shape"])
        order = (
            [[(count(n), count(step)) for n, step in digits] for digits in part["order"]] if "order" in part else None
        )
        sums = count(part["sums"]) if "sums" in part else None
        zero = _zero(part, entry["file"])
        parts.append(StoredPart(part["encoding"], count(part["at"]), values, scales, zero, order, sums))
        end = _end(parts[-1], entry["file"])
        if end > entry["decoded"]:
            raise FormatError(f"{entry['file']}: a part ends at {end}, the weights at {entry['decoded']}")
    if at != len(data):
        raise FormatError(f"{entry['file']}: its parts are {at} bytes, the file has {len(data)}")
    return decode(parts, entry["decoded"])


def _zero(part: Mapping[str, Any], file: str) -> int:
    """What is added to the integers of a part of a file."""
    zero = part.get("zero", 0)
    if type(zero) is not int or abs(zero) > _MOST_ZERO or (zero and part["encoding"] not in _WHOLE):
        raise FormatError(
            f"{file}: a part of {part['encoding']} has the zero {zero!r:.40}, expected an integer from -{_MOST_ZERO} to "
            f"{_MOST_ZERO}, and 0 unless the part is {' or '.join(_WHOLE)}"
        )
    return zero


def _end(part: StoredPart, file: str) -> int:
    """The end of a part of a file, whose order is checked."""
    if part.order is None:
        if part.sums is not None:
            raise FormatError(f"{file}: a part with sums has no order")
        return part.end
    shape, size = part.values.shape, DECODED[part.encoding].itemsize
    if len(part.order) != len(shape) or part.at % 4:
        raise FormatError(f"{file}: a part of the shape {shape} has an order of {len(part.order)} axes, at {part.at}")
    lengths = [math.prod(n for n, _ in digits) for digits in part.order]
    if any(have < want for have, want in zip(lengths, shape, strict=True)):
        raise FormatError(f"{file}: a part of the shape {shape} has an order for {lengths}")
    furthest = [sum((n - 1) * step for n, step in digits) for digits in part.order]
    if sum(furthest) > 1 << 48:
        raise FormatError(f"{file}: a part reaches {sum(furthest)} elements far")
    last = [int(places(n, digits).max(initial=0)) for n, digits in zip(shape, part.order, strict=True)]
    end = part.at + size * (sum(last) + 1)
    if part.sums is None:
        return -(-end // 4) * 4
    steps = [part.sums, *(step for _, step in part.order[-1])]
    if part.encoding != "bytes" or any(step % 4 for step in steps):
        raise FormatError(
            f"{file}: a part with sums is {part.encoding}, with the steps {steps}; expected bytes in words"
        )
    return max(end, part.at + part.sums + last[-1] + 4)
