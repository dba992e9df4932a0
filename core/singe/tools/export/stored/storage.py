"""Weights in fewer bytes: how a bundle stores a Program's float32s as float16 or int8, and reads them back.

static/README.md, "Encoded weights", documents the encodings; kernels always see float32. Whole numbers of one byte, and
their multiples by the scales of a quantised model, are stored as such (narrow.py), which loses nothing. Any other array is
stored as

  float16  if no element exceeds its range, and none loses more than 2⁻¹⁰ of the largest element in its group. A group
           is an output channel for the weights of a matmul or conv, a row for other arrays of several axes, otherwise
           the whole array. Channels that are too small or too large get a scale each, a power of 2;
  int8     if it is the weights of a matmul or conv and large enough: symmetric, with a scale for each output channel.
           Other arrays are stored as float16, whose error is a small fraction of int8's;
  words    otherwise: unchanged.

Weights are packed for their kernels before they are stored. To find the output channel of each packed element,
`output_channels` packs an array of channel numbers as the weights were packed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....compiler.schedule.memory import WeightUse
from ....dtypes import LEAST_NORMAL, float32
from ....errors import InputError
from ....ir import scalar
from ....ir.arrays import NUMPY
from ....ir.kernel import Kernel, Reduce, Routine
from ....late_dataclass import dataclass
from ....program.elements import stored_type
from ....program.program import ProgramData
from ....program.weight_codecs import StoredPart
from ....program.words import COPY
from ....shapes import known
from .narrow import Uses, narrow

DTYPES: Final = ("float32", "float16", "int8")
PRECISION: Final = 2.0**-10
STEPS: Final = 127
PAYS: Final = 16
"""The fewest elements in an output channel for which int8 is worth its scale and its error."""

Channels = Mapping[bytes, np.ndarray | None]
"""Digest of an array ↦ for each element, the number of its output channel, from 1; 0 is padding."""


# --- output channels --------------------------------------------------------------------------------------------------


def output_channels(program: ProgramData, uses: Sequence[WeightUse]) -> Channels:
    """The output channels of the float32 constants of a Program, both plain and packed for its kernels.

    A Program stores equal arrays once; if their channels differ, none are recorded.
    """
    channels: dict[bytes, np.ndarray | None] = {}

    def note(values: np.ndarray, numbers: np.ndarray | None) -> None:
        key = digest(values)
        flat = None if numbers is None else numbers.reshape(-1).astype(np.int32)
        before = channels.get(key, flat)
        channels[key] = flat if before is not None and flat is not None and np.array_equal(before, flat) else None

    for u in uses:
        if u.values.dtype == np.float32:
            numbers = channels_of(u.kernel, u.port, u.values)
            note(u.values, numbers)
            if u.packer is not None:
                note(program.view(u.buffer), None if numbers is None else u.packer(numbers))
    return channels


def digest(values: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data, digest_size=16).digest()


def channels_of(kernel: Kernel | Routine, port: int, values: np.ndarray) -> np.ndarray | None:
    """For each element of a Routine's operand the number of its output channel, from 1; None if it has none.

    A channel is a point of the grid loops in the operand's index: elements that are summed together share it.
    """
    if not isinstance(kernel, Routine):
        return None
    plain, first = kernel.kernel, kernel.kernel.stages[0]
    if not isinstance(first, Reduce) or first.value.word != "mul":
        return None
    loads = [e for e in set(scalar.postorder(plain.roots)) if e.word == "load" and e.value == port]
    if len(loads) != 1 or loads[0] not in first.value.args:
        return None
    index = loads[0].args[0]
    below = set(scalar.postorder([index]))
    axes = [
        (v, extent, v in plain.grid_vars)
        for v, extent in zip((*plain.grid_vars, *plain.inner_vars), (*plain.grid, *plain.inner), strict=True)
        if v.word == "var" and v in below
    ]
    extents = [extent for _, extent, _ in axes]
    if {outer for *_, outer in axes} != {True, False} or any(e.word in ("size", "load") for e in below):
        return None
    if not all(isinstance(e, int) for e in extents):
        return None
    shape = [known(e, {}) for e in extents]
    if math.prod(shape) > values.size:
        return None
    places = _over(index, {v: i for i, (v, *_) in enumerate(axes)}, shape)
    outer = [n if is_grid else 1 for n, (*_, is_grid) in zip(shape, axes, strict=True)]
    own = np.broadcast_to(np.arange(1, np.prod(outer) + 1, dtype=np.int32).reshape(outer), shape)
    numbers = np.zeros(values.size, np.int32)
    numbers[places] = own
    return numbers.reshape(values.shape).astype(np.float32) if np.array_equal(numbers[places], own) else None


def _over(index: scalar.Expr, axis_of: Mapping[scalar.Expr, int], shape: Sequence[int]) -> np.ndarray:
    """The values of an index at every point of its loops."""

    def step(e: scalar.Expr, args: tuple[np.ndarray, ...]) -> np.ndarray:
        if e.word == "const":
            return np.asarray(e.value, np.int32)
        if e.word == "var":
            axis = axis_of[e]
            return np.arange(shape[axis], dtype=np.int32).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return np.asarray(NUMPY[e.word](*args))

    return np.broadcast_to(scalar.fold([index], step)[0], shape)


# --- encoding ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """An array that stays float32 although a smaller dtype was requested, and why."""

    name: str
    bytes: int
    why: str


def encode(
    program: ProgramData, dtype: str, channels: Channels, uses: Uses | None = None, scales: Sequence[np.ndarray] = ()
) -> tuple[list[StoredPart], list[Kept]]:
    """All weights of a Program in order, and the float32 arrays that could not be stored in fewer bytes.

    uses: how kernels read the weights. scales: numbers by which whole ones may be multiplied.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype: got {dtype!r}, expected one of {', '.join(DTYPES)}")
    programs = program.programs
    copied = {p.buffers[g.reads[0]].place for p in programs for g in p.groups if g.head == COPY}
    found: dict[int, StoredPart] = {}
    kept: list[Kept] = []
    for buffer in (b for p in programs for b in p.buffers):
        kind, at = buffer.place
        raw = program.view(buffer) if kind == "weights" else np.zeros(0, np.uint8)
        if not raw.size or at in found:
            continue
        exact = narrow(buffer, raw, (uses or {}).get(at), scales)
        if exact is not None:
            found[at] = exact
            continue
        if dtype == "float32" or stored_type(buffer.dtype, buffer.size) != float32.numpy:
            found[at] = _words(program, at, raw.size)
            continue
        values = raw.view(np.float32).reshape([known(d, {}) for d in buffer.shape])
        numbers = None if buffer.place in copied else channels.get(digest(values))
        part, why = _smaller(at, values, numbers if numbers is None else numbers.reshape(values.shape), dtype)
        if part is None:
            kept.append(Kept(buffer.name, raw.size, why))
            part = _words(program, at, raw.size)
        found[at] = part
    return [found[at] for at in sorted(found)], kept


def _words(program: ProgramData, at: int, count: int) -> StoredPart:
    """The bytes, padded with zeros to whole words; buffers are aligned to more than that."""
    return StoredPart("words", at, program.weights[at : at + -(-count // 4) * 4].view(np.uint32))


def _smaller(at: int, values: np.ndarray, numbers: np.ndarray | None, dtype: str) -> tuple[StoredPart | None, str]:
    """The array in fewer bytes; or None and the reason."""
    finite = bool(np.isfinite(values).all())
    weights = numbers if numbers is not None and finite and not values[numbers == 0].any() else None
    if dtype == "int8" and weights is not None:
        part = _quantised(at, values, weights)
        if part is not None:
            return part, ""
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    with np.errstate(invalid="ignore"):
        lost = np.where(values == halves, 0, np.abs(halves.astype(np.float32) - values))
    lost[np.isnan(values)] = 0
    sizes = np.abs(np.where(np.isfinite(values), values, 0))
    if numbers is not None:
        sizes = _per_channel(sizes, numbers)[numbers]
    elif values.ndim > 1:
        sizes = sizes.max(-1, keepdims=True)
    wrong = lost > PRECISION * sizes
    if not wrong.any():
        return StoredPart("float16", at, halves), ""
    if weights is not None and np.count_nonzero(weights) > 2 * weights.max():
        return _scaled_halves(at, values, weights), ""
    worst = np.abs(values[wrong]).max() if np.isinf(lost).any() else np.abs(values[wrong]).min()
    return None, f"holds {worst:.3g}, {'beyond' if np.isinf(lost).any() else 'too small for'} float16"


def _per_channel(sizes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The largest element of each channel, by its number."""
    largest = np.zeros(int(numbers.max(initial=0)) + 1, np.float32)
    np.maximum.at(largest, numbers, sizes)
    return largest


def _scaled_halves(at: int, values: np.ndarray, numbers: np.ndarray) -> StoredPart:
    """The array as float16; each channel is scaled so that its maximum is just below the largest float16."""
    _, exponents = np.frexp(_per_channel(np.abs(values), numbers))
    scales = np.ldexp(np.float32(1), np.clip(exponents - 15, -126, 127))[_narrowed(numbers)]
    return StoredPart("float16", at, (values / scales).astype(np.float16), scales)


def _quantised(at: int, values: np.ndarray, numbers: np.ndarray) -> StoredPart | None:
    """The array as int8; None if its channels are too short, or too small for a float32 scale."""
    if np.count_nonzero(numbers) < PAYS * numbers.max():
        return None
    steps = (_per_channel(np.abs(values), numbers) / np.float32(STEPS)).astype(np.float32)
    if ((steps > 0) & (steps < LEAST_NORMAL)).any():
        return None
    scales = steps[_narrowed(numbers)]
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.where(scales > 0, values / scales, 0)
    return StoredPart("int8", at, np.clip(np.rint(exact), -STEPS, STEPS).astype(np.int8), scales)


def _narrowed(numbers: np.ndarray) -> np.ndarray:
    """Channel numbers, with length 1 along each axis on which the channel is constant, ignoring padding."""
    for axis in range(numbers.ndim):
        one = numbers.max(axis, keepdims=True)
        if ((numbers == one) | (numbers == 0)).all():
            numbers = one
    return numbers
