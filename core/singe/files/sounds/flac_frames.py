"""The frames of a .flac file: bits become what is left of a prediction, and all predictions of a group are made at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NoReturn

import numpy as np

from ...errors import InputError
from ...late_dataclass import dataclass

LENGTHS: Final = {1: 192, **{k: 576 << (k - 2) for k in range(2, 6)}, **{k: 256 << (k - 8) for k in range(8, 16)}}
"""The codes of lengths in samples; 6 and 7 say that a length of 1 or 2 bytes follows."""
RATE_BYTES: Final = {12: 1, 13: 2, 14: 2}
"""The codes of rates that are followed by bytes."""
BITS: Final = {1: 8, 2: 12, 4: 16, 5: 20, 6: 24, 7: 32}
"""The codes of sizes; 0 means that of the header."""
FIXED: Final = ((), (1,), (2, -1), (3, -3, 1), (4, -6, 4, -1))
"""The weights of the latest samples in predictors that have a number."""
SIDES: Final = {8: 1, 9: 0, 10: 1}
"""The codes of two channels that are coded by their difference ↦ which of the two is that."""
MOST_BYTES_OF_FRAME: Final = 20
ONE: Final = b"\1"


@cache
def _moved(level: int) -> np.ndarray:
    """What 2^level bytes of zeros make of each checksum of 16 bits."""
    if level:
        half = _moved(level - 1)
        return half[half]
    value = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(8):
        value = (value << 1) ^ np.where(value & 0x8000, 0x18005, 0).astype(np.uint32)
    return value.astype(np.uint16)


def checksum(data: bytes) -> int:
    """The CRC of a frame. Halves are joined: the checksum of the first is moved past the second."""
    values = _moved(0)[np.frombuffer(data, np.uint8).astype(np.uint16) << 8]
    level = 0
    while len(values) > 1:
        if len(values) % 2:
            values = np.concatenate([np.zeros(1, np.uint16), values])
        values = _moved(level)[values[::2]] ^ values[1::2]
        level += 1
    return int(values[0]) if len(values) else 0


@dataclass(frozen=True)
class FlacChannel:
    """A channel of a frame: the first samples, as many as there are weights, and what is left of each further one when the sum of the
    latest samples times their weights, shifted right, is taken from it. All of it is shifted left by `wasted` in the end."""

    values: np.ndarray
    weights: Sequence[int]
    shift: int
    wasted: int


@dataclass(frozen=True)
class FlacFrame:
    """side: the code of how channels are coded."""

    length: int
    parts: Sequence[FlacChannel]
    side: int


class FlacReader:
    """Reads frame after frame from a place on."""

    def __init__(self, data: bytes, start: int, channels: int, bits: int, name: object) -> None:
        self._data = data
        self._next = start
        self._channels = channels
        self._bits = bits
        self._name = name
        self._at = 0
        self._window = b""
        self._base = 0

    @property
    def ended(self) -> bool:
        return self._next >= len(self._data)

    def _fail(self, what: str) -> NoReturn:
        raise InputError(
            f"{self._name}: the frame at byte {self._next} {what}; the .flac file is damaged: fetch it once more"
        )

    def _number(self, bits: int) -> int:
        end = self._at + bits
        if end > len(self._data) * 8:
            self._fail("ends too early")
        found = int.from_bytes(self._data[self._at >> 3 : (end + 7) >> 3], "big") >> (-end & 7)
        self._at = end
        return found & ((1 << bits) - 1)

    def _signed(self, bits: int) -> int:
        found = self._number(bits)
        return found - ((found >> (bits - 1)) << bits) if bits else 0

    def _next_one(self, start: int) -> int:
        """The place of the next bit that is set; the places are bits of the window."""
        found = self._window.find(ONE, start)
        if found < 0:
            self._fail("ends too early")
        return found

    def read(self) -> FlacFrame:
        self._at = self._next * 8
        if self._number(15) != 0x7FFC:
            self._fail("does not begin as one")
        self._number(1)
        length_code, rate_code, channel_code, bits_code = (self._number(n) for n in (4, 4, 4, 3))
        self._number(1)
        first = self._number(8)
        self._skip_number(first)
        length = LENGTHS.get(length_code) or (self._number(8 * (length_code - 5)) + 1 if length_code in (6, 7) else 0)
        self._number(8 * RATE_BYTES.get(rate_code, 0))
        bits = self._bits if bits_code == 0 else BITS.get(bits_code, 0)
        channels = 2 if channel_code in SIDES else channel_code + 1
        if not length or bits != self._bits or channels != self._channels or channel_code > 10:
            self._fail(f"has {length} samples in {channels} channels of {bits} bits, expected those of the header")
        self._number(8)
        self._base = self._at
        most = MOST_BYTES_OF_FRAME + channels * (length * (bits + 2) // 4 + MOST_BYTES_OF_FRAME)
        whole = np.frombuffer(self._data, np.uint8)[self._at >> 3 : (self._at >> 3) + most]
        self._window = np.unpackbits(whole).tobytes()
        difference = SIDES.get(channel_code)
        parts = [self._part(length, bits + (k == difference)) for k in range(channels)]
        self._at += -self._at % 8
        end = self._at >> 3
        if self._number(16) != checksum(self._data[self._next : end]):
            self._fail("is not that of its checksum")
        self._next = end + 2
        return FlacFrame(length, parts, channel_code)

    def _skip_number(self, first: int) -> None:
        """The rest of a number in UTF-8's form, of up to 7 bytes: that of the frame, which is not needed."""
        ones = 8 - (first ^ 0xFF).bit_length()
        if ones in (1, 8):
            self._fail("has no number")
        self._number(8 * max(0, ones - 1))

    def _part(self, length: int, bits: int) -> FlacChannel:
        if self._number(1):
            self._fail("has a channel that does not begin as one")
        kind = self._number(6)
        wasted = 0
        if self._number(1):
            one = self._next_one(self._at - self._base)
            wasted = one + 1 - (self._at - self._base)
            self._at = self._base + one + 1
        bits -= wasted
        if bits < 1:
            self._fail("has channels of no bits")
        if kind == 0:
            return FlacChannel(np.full(length, self._signed(bits), np.int64), (), 0, wasted)
        if kind == 1:
            return FlacChannel(self._raw(length, bits), (), 0, wasted)
        is_fixed = 8 <= kind <= 12
        if not is_fixed and kind < 32:
            self._fail(f"has a channel of kind {kind}")
        order = kind - 8 if is_fixed else kind - 31
        if order > length:
            self._fail(f"has {length} samples, fewer than its predictor needs")
        first = self._raw(order, bits)
        weights, shift = (FIXED[order], 0) if is_fixed else self._predictor(order)
        return FlacChannel(np.concatenate([first, *self._residual(length, order)]), weights, shift, wasted)

    def _predictor(self, order: int) -> tuple[Sequence[int], int]:
        precision, shift = self._number(4) + 1, self._signed(5)
        if precision == 16 or shift < 0:
            self._fail("has a predictor of no precision")
        return [self._signed(precision) for _ in range(order)], shift

    def _residual(self, length: int, order: int) -> Iterator[np.ndarray]:
        method, partitions = self._number(2), 1 << self._number(4)
        if method > 1 or length % partitions or length // partitions < order:
            self._fail(f"has {partitions} partitions of method {method}")
        width = 4 + method
        for k in range(partitions):
            count = length // partitions - (order if k == 0 else 0)
            parameter = self._number(width)
            if parameter == (1 << width) - 1:
                yield self._raw(count, self._number(5))
            else:
                yield self._rice(count, parameter)

    def _raw(self, count: int, bits: int) -> np.ndarray:
        """Signed numbers of the same size."""
        if count * bits > len(self._data) * 8 - self._at:
            self._fail("ends too early")
        places = np.arange(count)[:, None] * bits + np.arange(bits) + (self._at - self._base)
        self._at += count * bits
        found = self._bits_at(places)
        return found - ((found >> (bits - 1)) << bits) if bits else found

    def _rice(self, count: int, parameter: int) -> np.ndarray:
        """Numbers whose high part is in the count of bits before the next that is set."""
        start = at = self._at - self._base
        ends: list[int] = []
        find, step = self._window.find, parameter + 1
        for _ in range(count):
            one = find(ONE, at)
            if one < 0:
                self._fail("ends too early")
            ends.append(one)
            at = one + step
        self._at = self._base + at
        ones = np.array(ends, np.int64)
        starts = np.concatenate([np.array([start], np.int64)[:count], ones[:-1] + step])
        low = self._bits_at(ones[:, None] + 1 + np.arange(parameter))
        folded = ((ones - starts) << parameter) | low
        return (folded >> 1) ^ -(folded & 1)

    def _bits_at(self, places: np.ndarray) -> np.ndarray:
        """The numbers whose bits are in rows of places."""
        window = np.frombuffer(self._window, np.uint8)
        if places.size and places[-1, -1] >= len(window):
            self._fail("ends too early")
        return window[places].astype(np.int64) @ (1 << np.arange(places.shape[1], dtype=np.int64)[::-1])


def restored(frames: Sequence[FlacFrame], bits: int, name: object) -> Iterator[np.ndarray]:
    """The samples (length, channels) of frames of one length."""
    parts = [part for frame in frames for part in frame.parts]
    most = max(len(part.weights) for part in parts)
    weights = np.zeros((most, len(parts)), np.int64)  # the oldest first
    shifts = np.array([part.shift for part in parts])
    orders = np.array([len(part.weights) for part in parts])
    for k, part in enumerate(parts):
        weights[most - len(part.weights) :, k] = part.weights[::-1]
    held = np.zeros((most + frames[0].length, len(parts)), np.int64)
    held[most:] = np.stack([part.values for part in parts], 1)
    for t in range(frames[0].length if most else 0):
        predicted = (weights * held[t : t + most]).sum(0) >> shifts
        held[t + most] += predicted if t >= most else np.where(t >= orders, predicted, 0)
    held = held[most:] << np.array([part.wasted for part in parts])
    channels = len(frames[0].parts)
    for k, frame in enumerate(frames):
        samples = _joined(held[:, k * channels : (k + 1) * channels], frame.side)
        if (samples >> (bits - 1) != samples >> 63).any():
            raise InputError(f"{name}: samples beyond their {bits} bits; the .flac file is damaged: fetch it once more")
        yield samples


def _joined(samples: np.ndarray, side: int) -> np.ndarray:
    if side not in SIDES:
        return samples
    a, b = samples[:, 0], samples[:, 1]
    if side == 8:
        pair = a, a - b
    elif side == 9:
        pair = a + b, b
    else:
        middle = (a << 1) | (b & 1)
        pair = (middle + b) >> 1, (middle - b) >> 1
    return np.stack(pair, 1)
