"""Weights of a quantised model: bytes in a bundle, also where a kernel reads them in wider numbers or another order.

A kernel for floats reads the integers of 8 bits that a model holds as float32s, or their multiples by scales; `narrow`
finds the integers again, and only if the same bits come of them. `Order` says where a packer puts the elements of an
array, so that the array is stored once for several kernels: row-major, as the model has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ....compiler.schedule.memory import WeightUse
from ....dtypes import float32, int32
from ....graph import Graph
from ....program.program import Buffer
from ....program.weight_codecs import WIDER, Order, StoredPart, places
from ....shapes import known

LEAST: Final = 1 << 12
"""The fewest elements of an array that is worth an entry in the manifest."""
MOST: Final = 1 << 29
"""The most bytes of a part that has an order, which is one file."""
_SAMPLE: Final = 8
_BYTE: Final = 256

Uses: TypeAlias = Mapping[int, WeightUse]
"""The offset of weights ↦ how a kernel reads them."""


def uses_of(uses: Sequence[WeightUse]) -> Uses:
    return {u.buffer.place[1]: u for u in reversed(uses)}


def scales_in(graph: Graph) -> list[np.ndarray]:
    """The constants of a graph that may be scales of its weights, each once."""
    found = {
        n.value.tobytes(): n.value.reshape(-1)
        for n in graph.nodes
        if n.value is not None
        and n.dtype is float32
        and n.value.size == max(n.value.shape, default=1)
        and _usable(n.value)
    }
    return list(found.values())


def _usable(scale: np.ndarray) -> bool:
    return bool((np.abs(scale) < np.finfo(np.float32).max / _BYTE).all())


def narrow(buffer: Buffer, raw: np.ndarray, use: WeightUse | None, scales: Sequence[np.ndarray]) -> StoredPart | None:
    """A buffer's float32s or int32s as bytes; None if they are no whole numbers of 8 bits."""
    if buffer.dtype not in (float32, int32) or raw.size < 4 * LEAST:
        return None
    at = buffer.place[1]
    packed = use is not None and use.packer is not None
    if use is not None and packed:
        values = use.values
        if values.dtype != buffer.dtype.numpy or values.size < LEAST:
            return None
    else:
        values = raw.view(buffer.dtype.numpy).reshape([known(d, {}) for d in buffer.shape])
    if buffer.dtype is int32:
        part = _whole("integers", at, values, None)
    else:
        chosen = (s for s in (None, *_fitting(values, scales)) if _may_be(values, s))
        part = next((p for p in (_whole("int8", at, values, s) for s in chosen) if p is not None), None)
    if part is None or use is None or not packed:
        return part
    return ordered(part, use, raw)


def _fitting(values: np.ndarray, scales: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The scales that fit an array: one for all elements, or one for each index of its last or first axis."""
    found: list[np.ndarray] = []
    for s in scales:
        if s.size == 1:
            found.append(s.reshape((1,) * values.ndim))
            continue
        for axis in dict.fromkeys((values.ndim - 1, 0)):
            if values.ndim and values.shape[axis] == s.size:
                found.append(s.reshape([-1 if k == axis else 1 for k in range(values.ndim)]))
    return found


def _may_be(values: np.ndarray, scale: np.ndarray | None) -> bool:
    """Whether some elements, of both ends of the array, are whole multiples of the scale."""
    corner = tuple(slice(0, _SAMPLE) for _ in values.shape)
    some = values[corner]
    if scale is not None:
        some = _over(some, scale[tuple(slice(0, n) for n in some.shape)])
    return bool((np.abs(some) < _BYTE).all() and (np.abs(some - np.rint(some)) < 2.0**-10).all())


def _over(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(scale != 0, values / scale, 0)


def _whole(encoding: str, at: int, values: np.ndarray, scale: np.ndarray | None) -> StoredPart | None:
    """The part of which the same bits come; None if there is none."""
    exact = np.rint(values if scale is None else _over(values, scale))
    least, most = exact.min(), exact.max()
    if not -_BYTE < least <= most < _BYTE or most - least >= _BYTE:  # also if one is no number
        return None
    zero = 0 if least >= -128 and most <= 127 else int(most) - 127
    kept = None if scale is None else np.ascontiguousarray(scale, np.float32)
    part = StoredPart(encoding, at, np.ascontiguousarray(exact - zero).astype(np.int8), kept, zero)
    same = np.array_equal(part.decoded().view(np.uint32), np.ascontiguousarray(values).view(np.uint32))
    return part if same else None


# --- the order of elements --------------------------------------------------------------------------------------------


def ordered(part: StoredPart, use: WeightUse, raw: np.ndarray) -> StoredPart | None:
    """A row-major part of a constant, in the order of its packer; None if that is no Order, or does not give these bytes."""
    if use.packer is None or part.bytes > MOST or raw.size > WIDER * part.bytes:
        return None
    found = _positions(use)
    if found is None:
        return None
    for shape in dict.fromkeys(((-1, part.values.shape[-1]), part.values.shape)):
        steps = _separate(found.reshape(shape))
        order = [_digits(s) for s in steps or ()]
        if steps is None or not all(np.array_equal(places(len(s), d), s) for s, d in zip(steps, order, strict=True)):
            continue
        values = part.values.reshape(shape)
        scales = part.scales
        if scales is not None:
            scales = _joined(np.broadcast_to(scales, part.values.shape).reshape(shape))
        made = replace(part, values=values, scales=scales, order=order)
        candidates = [made, replace(made, sums=_sums(order))] if part.encoding == "bytes" else [made]
        right = next((p for p in candidates if _gives(p, raw)), None)
        if right is not None:
            return right
    return None


def _positions(use: WeightUse) -> np.ndarray | None:
    """For each element of a constant the place of it among the packed elements, from 0."""
    assert use.packer is not None
    kind = np.float32 if use.values.dtype == np.float32 else np.int32
    # A packer copies: the bits of whole numbers pass it as those of floats.
    given = np.arange(1, use.values.size + 1, dtype=np.int32).view(kind).reshape(use.values.shape)
    numbers = use.packer(given).reshape(-1).view(np.int32)
    at = np.flatnonzero(numbers)
    if at.size != use.values.size:
        return None
    found = np.zeros(use.values.size, np.int64)
    found[numbers[at] - 1] = at
    return found if found[0] == 0 else None


def as_kept(use: WeightUse) -> list[WeightUse]:
    """The use of a constant, with a packer, as of the array that the model keeps, if the constant is a view of it with its axes in
    another order; and as of the constant itself, if it has a packer."""
    x = use.values
    axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    kept, back = x.transpose(axes), np.argsort(axes)
    pack = use.packer or np.ascontiguousarray
    found = [replace(use, values=kept, packer=lambda given: pack(given.transpose(back)))]
    own = [] if use.packer is None else [replace(use, values=np.ascontiguousarray(x))]
    return own if x.flags.c_contiguous or not kept.flags.c_contiguous else found + own


def _separate(values: np.ndarray) -> list[np.ndarray] | None:
    """The steps of each axis, of which the sum is every place; None if there are none."""
    steps: list[np.ndarray] = []
    total = np.zeros((1,) * values.ndim, np.int64)
    for axis, n in enumerate(values.shape):
        line = values[tuple(slice(None) if k == axis else 0 for k in range(values.ndim))]
        steps.append(line)
        total = total + line.reshape([n if k == axis else 1 for k in range(values.ndim)])
    return steps if np.array_equal(total, values) else None


def _digits(steps: np.ndarray) -> list[tuple[int, int]]:
    """The digits of an axis with these steps, if it has any."""
    found: list[tuple[int, int]] = []
    rest = steps
    while len(rest) > 1:
        step = int(rest[1])
        n = int(np.argmin(np.append(rest == np.arange(len(rest)) * step, False)))
        found.append((n, step))
        rest = rest[::n]
    return found or [(1, 0)]


def _sums(order: Order) -> int:
    """Where the sum of a panel's first column is, if sums follow the elements of each panel: behind those of the last row."""
    inner, *outer = order[-1]
    return int(outer[0][1]) - 4 * inner[0] if outer else sum(n * step for n, step in order[0][-1:])


def _joined(scales: np.ndarray) -> np.ndarray:
    """Scales with length 1 along each axis on which they are the same."""
    for axis in range(scales.ndim):
        one = scales[tuple(slice(0, 1) if k == axis else slice(None) for k in range(scales.ndim))]
        if (scales == one).all():
            scales = one
    return np.ascontiguousarray(scales)


def _gives(part: StoredPart, raw: np.ndarray) -> bool:
    """Whether a part decodes to exactly these bytes."""
    if part.sums is not None and part.order is not None:
        steps = part.sums + places(part.values.shape[-1], part.order[-1])
        if (steps % 4).any() or steps.max() + 4 > raw.size:
            return False
    block = np.zeros(-(-raw.size // 4) * 4, np.uint8)
    replace(part, at=0).put(block)
    return np.array_equal(block[: raw.size], raw)
