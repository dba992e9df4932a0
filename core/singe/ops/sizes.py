"""Rows that turn numbers computed by a run into sizes. They run on the host, where sizes are known.

A row gives a size n as an array of shape (n, 0): the run learns the size from its shape, and the array takes no memory.
Invalid numbers are refused here, before memory is allocated; the error names the op that needs the size (`what`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..dtypes import bool_, dtype, int64
from ..errors import ShapeError
from ..ir.arrays import convert
from ..shapes import Dim, axis_of, show
from .kinds import GIVES_SHAPES, SIZE_RESULTS, Opaque, Results, Shaped, register

_SIZE: Final = ((None, 0), bool_)
_FAR: Final = 1 << 40
"""Larger than any size may be. Larger numbers are replaced by this one, and refused like it."""
FAR: Final = 10**9
"""From here on, the end of a slice means "to the end" (jax2tf writes just this number)."""


def _empty(sizes: Sequence[int]) -> tuple[np.ndarray, ...]:
    return tuple(np.empty((min(n, _FAR), 0), np.bool_) for n in sizes)


def _listed(x: Shaped, what: str) -> int:
    """How many numbers a vector of integers has; a scalar has one."""
    count = x.shape[0] if len(x.shape) == 1 else 1
    if not x.dtype.is_int or len(x.shape) > 1 or not isinstance(count, int):
        raise ShapeError(f"{what}: got {x.dtype}{show(x.shape)}, expected a vector of integers of known length")
    return count


def _numbers(x: np.ndarray) -> list[int]:
    return [int(v) for v in x.reshape(-1)]


# --- shapes ----------------------------------------------------------------------------------------------------------


def _sizes_shapes(x: Shaped, what: str, total: Dim | None = None, most: Dim | None = None) -> Results:
    return (_SIZE,) * _listed(x, what)


def _sizes(x: np.ndarray, what: str, total: int | None = None, most: int | None = None) -> tuple[np.ndarray, ...]:
    found = _numbers(x)
    if any(v < 0 or v > (v if most is None else most) for v in found):
        limit = "no number below 0" if most is None else f"numbers from 0 to {most}"
        raise ShapeError(f"{what}: got {show(found)}, expected {limit}")
    if total is not None and sum(found) != total:
        raise ShapeError(f"{what}: the parts {show(found)} make {sum(found)}, expected {total}")
    return _empty(found)


def _signed_shapes(x: Shaped, what: str) -> Results:
    return (_SIZE,) * (2 * _listed(x, what))


def _signed(x: np.ndarray, what: str) -> tuple[np.ndarray, ...]:
    return _empty([abs(v) if (v < 0) == below else 0 for v in _numbers(x) for below in (False, True)])


def _reshaped_shapes(x: Shaped, what: str, shape: Sequence[Dim], allow_zero: bool) -> Results:
    return (_SIZE,) * _listed(x, what)


def _reshaped(x: np.ndarray, what: str, shape: Sequence[int], allow_zero: bool) -> tuple[np.ndarray, ...]:
    asked = found = _numbers(x)
    if not allow_zero:
        if any(v == 0 and i >= len(shape) for i, v in enumerate(asked)):
            raise ShapeError(f"{what}: {show(asked)} copies an axis that {show(shape)} does not have")
        found = [shape[i] if v == 0 else v for i, v in enumerate(asked)]
    count = math.prod(shape)
    if found.count(-1) == 1:
        rest = math.prod(v for v in found if v != -1)
        found[found.index(-1)] = count // rest if rest else 0
    if any(v < 0 for v in found) or math.prod(found) != count:
        raise ShapeError(f"{what}: {show(shape)} has {count} elements, and cannot be reshaped to {show(asked)}")
    return _empty(found)


def _expanded_shapes(x: Shaped, what: str, shape: Sequence[Dim]) -> Results:
    return (_SIZE,) * max(_listed(x, what), len(shape))


def _expanded(x: np.ndarray, what: str, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    asked = _numbers(x)
    rank = max(len(asked), len(shape))
    pairs = list(zip([1] * (rank - len(shape)) + list(shape), [1] * (rank - len(asked)) + asked, strict=True))
    if any(v < 0 or (v != d and 1 not in (v, d)) for d, v in pairs):
        raise ShapeError(f"{what}: {show(shape)} does not broadcast with {show(asked)}")
    return _empty([v if d == 1 else d for d, v in pairs])


def _number(x: np.ndarray) -> float:
    kind = dtype(x.dtype)
    return (x if kind.is_int else convert(x, np.dtype(np.float64))).reshape(-1)[0].item()


def _range_shapes(start: Shaped, limit: Shaped, step: Shaped, what: str) -> Results:
    return (_SIZE,)


def _range(start: np.ndarray, limit: np.ndarray, step: np.ndarray, what: str) -> np.ndarray:
    first, last, by = (_number(v) for v in (start, limit, step))
    count = (last - first) / by if by else math.nan
    if isinstance(by, int) and by:
        count = -((first - last) // by)
    if not math.isfinite(count):
        raise ShapeError(f"{what}: from {first} to {last} by {by} has no end")
    return _empty([max(0, math.ceil(count))])[0]


# --- axes ------------------------------------------------------------------------------------------------------------

CHANGES: Final = ("dropped", "added", "kept")
"""What happens to the named axes. dropped: axes of length 1 are removed. added: axes of length 1 are inserted.
kept: the axes get length 1."""


def _named(x: np.ndarray, rank: int, what: str) -> list[int]:
    found = [axis_of(v, rank, what) for v in _numbers(x)]
    if len(set(found)) != len(found):
        raise ShapeError(f"{what}: the axes {show(found)} name one axis twice")
    return found


def _axes_shapes(axes: Shaped, what: str, shape: Sequence[Dim], change: str) -> Results:
    if change not in CHANGES:
        raise ShapeError(f"{what}: {change!r}, expected one of {', '.join(CHANGES)}")
    count = {"dropped": -1, "added": 1, "kept": 0}[change] * _listed(axes, what) + len(shape)
    if count < 0:
        raise ShapeError(f"{what}: got {show(axes.shape)} axes for the shape {show(shape)}")
    return (_SIZE,) * count


def _axes(axes: np.ndarray, what: str, shape: Sequence[int], change: str) -> tuple[np.ndarray, ...]:
    rank = len(shape) + (axes.size if change == "added" else 0)
    named = _named(axes, rank, what)
    if change == "added":
        rest = iter(shape)
        return _empty([1 if i in named else next(rest) for i in range(rank)])
    if change == "dropped" and any(shape[i] != 1 for i in named):
        raise ShapeError(f"{what}: the axes {show(named)} of {show(shape)} are not all of length 1")
    return _empty([1 if i in named else d for i, d in enumerate(shape) if change == "kept" or i not in named])


def _last_shapes(axes: Shaped, what: str, shape: Sequence[Dim]) -> Results:
    _listed(axes, what)
    return ((None,) * len(shape), int64), (tuple(shape), int64)


def _last(axes: np.ndarray, what: str, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    named = _named(axes, len(shape), what)
    perm = [*(i for i in range(len(shape)) if i not in named), *named]
    there = np.arange(math.prod(shape)).reshape(shape).transpose(perm)
    back = np.empty(there.size, np.int64)
    back[there.reshape(-1)] = np.arange(there.size)
    return np.ascontiguousarray(there), back.reshape(shape)


# --- parts -----------------------------------------------------------------------------------------------------------


def slice_range(start: int, end: int, step: int, d: int) -> tuple[int, int]:
    """A slice of an axis as its first element and its number of elements, by NumPy's rules with one exception: a slice
    with a negative step that starts before the axis begins at the axis's first element."""
    low, high = (0, d) if step > 0 else (-1, d - 1)
    first, last = (d if v >= FAR else v + d if -FAR < v < 0 else v for v in (start, end))
    first, last = min(max(first, 0), high), min(max(last, low), high)
    count = max(-((first - last) // step), 0) if d else 0
    return (first, count) if count else (0, 0)


def _slice_shapes(
    starts: Shaped, ends: Shaped, axes: Shaped, steps: Shaped, what: str, shape: Sequence[Dim], cuts: Sequence[int]
) -> Results:
    if len({_listed(x, what) for x in (starts, ends, axes, steps)}) != 1:
        raise ShapeError(f"{what}: the starts, ends, axes and steps differ in number")
    return tuple(((None,), int64) for _ in cuts)


def _slice(
    starts: np.ndarray, ends: np.ndarray, axes: np.ndarray, steps: np.ndarray, what: str, shape: Sequence[int], cuts: Sequence[int]
) -> tuple[np.ndarray, ...]:  # fmt: skip
    by_axis = dict(
        zip(_named(axes, len(shape), what), zip(*map(_numbers, (starts, ends, steps)), strict=True), strict=True)
    )
    found = []
    for axis in cuts:
        start, end, step = by_axis.get(axis, (0, shape[axis], 1))
        if step == 0:
            raise ShapeError(f"{what}: a step is 0, expected any other number")
        first, count = slice_range(start, end, step, shape[axis])
        found.append(first + step * np.arange(count, dtype=np.int64))
    return tuple(found)


def _row(name: str, doc: str, **facts: Any) -> Opaque:
    return Opaque(name=name, public=False, doc=doc, host=GIVES_SHAPES, no_gradient=SIZE_RESULTS, **facts)


register(
    _row("sizes", "integers as sizes, each at most `most`; their sum is `total`", results=_sizes_shapes, on_host=_sizes),
    _row("signed_sizes", "each integer n as two sizes: max(n, 0) and max(−n, 0)", results=_signed_shapes, on_host=_signed),
    _row("reshaped_sizes", "the shape to which a tensor is reshaped, by the rules of ONNX's Reshape", results=_reshaped_shapes, on_host=_reshaped),
    _row("expanded_sizes", "the shape to which a tensor and a given shape broadcast", results=_expanded_shapes, on_host=_expanded),
    _row("range_size", "how many numbers a range from a start to a limit by a step has", results=_range_shapes, on_host=_range,
         index_inputs=(0, 1, 2)),
    _row("axes_sizes", "a shape after computed axes are dropped, added or made 1", results=_axes_shapes, on_host=_axes),
    _row("moved_last", "flat indices that move computed axes of a tensor to the end, and those that move them back", results=_last_shapes,
         on_host=_last),
    _row("slice_places", "the indices along each axis that a slice with computed ends selects", results=_slice_shapes, on_host=_slice),
)  # fmt: skip
