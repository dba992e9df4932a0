"""Methods that move elements or change the shape."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import int64
from ...errors import InputError, ShapeError, SizeNeeded
from ...ir.scalar import Number
from ...ops import ROWS
from ...ops.movement.move import amount
from ...shapes import axis_of, dim_max, dim_min, floordiv, show, symbols
from .. import shaping
from ..calls import call_row
from ..host import elements
from ..shaping import Axis, unpacked
from ..tensor import Tensor, apply
from .attach import alias, method

PAD_MODES: Final = {"replicate": "edge", "circular": "wrap"}
"""PyTorch's modes of padding ↦ ours."""


@method
def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in row-major order under another shape, in which one dimension may be -1."""
    wanted = unpacked(shape)
    return apply(lambda b, x: b.reshape(x, shape=shaping.inferred_shape(x.shape, wanted)), x)


@method
def flatten(x: Tensor, start: int = 0, end: int = -1) -> Tensor:
    """The axes from start to end (inclusive) merged into one."""
    return x.reshape(*shaping.flattened(x.shape, start, end))


@method
def squeeze(x: Tensor, axis: Axis = None) -> Tensor:
    """The tensor without axes of length 1: without those given, or without all of them."""
    return x.reshape(*shaping.squeezed(x.shape, axis))


@method
def unsqueeze(x: Tensor, axis: int) -> Tensor:
    """The tensor with a new axis of length 1 at this position of the result."""
    at = axis_of(axis, x.ndim + 1, "unsqueeze")
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


@method
def permute(x: Tensor, *order: Any) -> Tensor:
    """The axes in another order."""
    axes = tuple(axis_of(p, x.ndim, "permute") for p in unpacked(order))
    return call_row(ROWS["transpose"], (x,), perm=axes)


@method
def transpose(x: Tensor, *axes: Any) -> Tensor:
    """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
    if len(axes) == 2:
        return x.swapaxes(*axes)
    return x.permute(unpacked(axes) or tuple(reversed(range(x.ndim))))


@method
@property
def T(x: Tensor) -> Tensor:
    return x.transpose()


@method
@property
def mT(x: Tensor) -> Tensor:
    """Every matrix of a stack transposed: the last two axes are swapped."""
    if x.ndim < 2:
        raise ShapeError(f"mT: got {show(x.shape)}, expected at least two axes")
    return x.swapaxes(-2, -1)


@method
def broadcast_to(x: Tensor, *shape: Any) -> Tensor:
    """The tensor repeated along axes of length 1, and along new leading axes."""
    return call_row(ROWS["expand"], (x,), shape=unpacked(shape))


@method
def expand(x: Tensor, *shape: Any) -> Tensor:
    """Like broadcast_to; -1 keeps a dimension."""
    return x.broadcast_to(shaping.expanded(x.shape, unpacked(shape)))


@method
def pad(x: Tensor, width: int | Sequence[Any], mode: str = "constant", value: Number = 0) -> Tensor:
    """The tensor with elements added before and after its axes. width: one number for all axes, (before, after) for each
    axis, or PyTorch's flat sequence of numbers, which begins with the last axis. mode: "constant" (of `value`),
    "reflect", "edge" (or "replicate") or "wrap" (or "circular")."""
    before, after = shaping.pad_widths(width, x.ndim)
    return call_row(ROWS["pad"], (x, value), before=before, after=after, mode=PAD_MODES.get(mode, mode))


# parts


@method
def chunk(x: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
    d = x.shape[axis_of(axis, x.ndim, "chunk")]
    if not isinstance(d, int):
        raise SizeNeeded(f"chunk: axis {axis} of {show(x.shape)} has no number until a run", symbols(d))
    if chunks < 1:
        raise ShapeError(f"chunk: got {chunks} chunks, expected at least 1")
    return x.split(max(1, -(-d // chunks)), axis) if d else (x,) * chunks


@method
def unbind(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it."""
    at = axis_of(axis, x.ndim, "unbind")
    d = x.shape[at]
    if not isinstance(d, int):
        raise SizeNeeded(f"unbind: axis {axis} of {show(x.shape)} has no number until a run", symbols(d))
    return tuple(x.select(at, i) for i in range(d))


@method
def select(x: Tensor, axis: int, index: int) -> Tensor:
    """The slice at an index along an axis, without the axis."""
    return x[(slice(None),) * axis_of(axis, x.ndim, "select") + (index,)]


@method
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """The elements from `start` to `start + length` along an axis."""
    at = axis_of(axis, x.ndim, "narrow")
    if start < 0:
        start = start + x.shape[at]  # pyright: ignore[reportAssignmentType]
    return x[(slice(None),) * at + (slice(start, start + length),)]


@method
def unfold(x: Tensor, axis: int, size: int, step: int = 1) -> Tensor:
    """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
    at = axis_of(axis, x.ndim, "unfold")
    if size < 0 or step < 1:
        raise ShapeError(
            f"unfold: windows of {size}, {step} apart; expected a size of at least 0 and a step of at least 1"
        )
    count = dim_max(floordiv(x.shape[at] - size, step) + 1, 0)

    def build(b: Any, n: Any) -> Any:
        starts = b.reshape(b.arange(b.const(0), b.const(step), count=count), shape=(count, 1))
        places = b.add(starts, b.arange(b.const(0), b.const(1), count=size))
        return b.gather(n, places, axis=at)

    return apply(build, x).movedim(at + 1, -1)


# order of axes and elements


@method
def movedim(x: Tensor, source: Axis, destination: Axis) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
    moved, to = ([a] if isinstance(a, int) else list(a or ()) for a in (source, destination))
    if len(moved) != len(to):
        raise ShapeError(f"movedim: {len(moved)} axes to {len(to)} positions")
    of = {axis_of(t, x.ndim, "movedim"): axis_of(m, x.ndim, "movedim") for m, t in zip(moved, to, strict=True)}
    if len(of) != len(moved) or len({*of.values()}) != len(moved):
        raise ShapeError(f"movedim: from {source} to {destination}: an axis is named twice")
    rest = iter(i for i in range(x.ndim) if i not in of.values())
    return x.permute([of[i] if i in of else next(rest) for i in range(x.ndim)])


alias("moveaxis", movedim)


@method
def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """The tensor with two axes exchanged."""
    order = list(range(x.ndim))
    i, j = (axis_of(a, x.ndim, "swapaxes") for a in (axis0, axis1))
    order[i], order[j] = j, i
    return x.permute(order)


alias("swapdims", swapaxes)


@method
def t(x: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
    if x.ndim > 2:
        raise ShapeError(f"t: got {show(x.shape)}, expected at most two axes; use transpose")
    return x.transpose()


@method
def flip(x: Tensor, *axis: Any) -> Tensor:
    """The elements in reverse order along axes (all, if none is given)."""
    named = unpacked(axis)
    axes = shaping.chosen_axes(None if named in ((), (None,)) else named, x.ndim, "flip")
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))] if axes else x


@method
def roll(x: Tensor, shifts: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
    if axis is None:
        if not isinstance(shifts, int):
            raise InputError(f"roll: got the shifts {shifts} without axes")
        return x.flatten().roll(shifts, 0).reshape(x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    by = [shifts] * len(axes) if isinstance(shifts, int) else list(shifts)
    if len(by) != len(axes):
        raise InputError(f"roll: {len(by)} shifts for {len(axes)} axes")
    for a, s in zip(axes, by, strict=True):
        at = axis_of(a, x.ndim, "roll")
        d = x.shape[at]
        s = s % d if isinstance(d, int) and d else s
        if s and d != 0:
            whole = (slice(None),) * at
            parts = x[(*whole, slice(-s, None))], x[(*whole, slice(None, -s))]
            x = apply(lambda b, *n: b.concat(*n, axis=at), *parts)  # noqa: B023 (called at once)
    return x


@method
def repeat(x: Tensor, *times: Any) -> Tensor:
    """The tensor repeated as a whole along each axis; more numbers than axes add leading axes."""
    by = unpacked(times)
    if len(by) < x.ndim:
        raise ShapeError(f"repeat: {len(by)} numbers for {x.ndim} axes; use tile, or give one for each")
    return x.tile(by)


@method
def tile(x: Tensor, *times: Any) -> Tensor:
    """The tensor repeated as a whole along its last axes."""
    by = unpacked(times)
    by = (1,) * (x.ndim - len(by)) + tuple(by)
    old = (1,) * (len(by) - x.ndim) + x.shape
    pairs = [d for n, o in zip(by, old, strict=True) for d in (n, o)]
    ones = x.reshape([d for o in old for d in (1, o)])
    return ones.broadcast_to(pairs).reshape([n * o for n, o in zip(by, old, strict=True)])


@method
def repeat_interleave(x: Tensor, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each."""
    if axis is None:
        return x.flatten().repeat_interleave(repeats, 0)
    at = axis_of(axis, x.ndim, "repeat_interleave")
    if isinstance(repeats, int):
        d = x.shape[at]
        wide = x.unsqueeze(at + 1).broadcast_to(*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
        return wide.reshape(*x.shape[:at], d * repeats, *x.shape[at + 1 :])
    counts = elements(repeats, "repeat_interleave") if isinstance(repeats, Tensor) else np.asarray(repeats)
    return x.take(np.repeat(np.arange(len(x) if at == 0 else operator.index(x.shape[at])), counts), at)  # pyright: ignore


# matrices


@method
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal of each matrix; zeros elsewhere."""
    return _triangle(x, diagonal, below=True)


@method
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal of each matrix; zeros elsewhere."""
    return _triangle(x, diagonal, below=False)


def _triangle(x: Tensor, diagonal: int, below: bool) -> Tensor:
    if x.ndim < 2:
        raise ShapeError(f"{'tril' if below else 'triu'}: got {show(x.shape)}, expected at least two axes")
    rows, columns = x.shape[-2:]

    def build(b: Any, n: Any) -> Any:
        down = b.reshape(b.arange(b.const(diagonal), b.const(1), count=rows), shape=(rows, 1))
        across = b.arange(b.const(0), b.const(1), count=columns)
        kept = b.less_equal(across, down) if below else b.greater_equal(across, down)
        return b.where(kept, n, b.const(0, n.dtype))

    return apply(build, x)


@method
def diagonal(x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements of a diagonal of each matrix, as a new last axis."""
    y = x.movedim((axis1, axis2), (-2, -1))
    rows, columns = y.shape[-2:]
    first = max(-offset, 0) * columns + max(offset, 0)
    count = dim_max(dim_min(rows - max(-offset, 0), columns - max(offset, 0)), 0)
    flat = y.reshape(*y.shape[:-2], rows * columns)

    def build(b: Any, n: Any) -> Any:
        places = b.add(b.arange(b.const(0), amount(b, columns + 1, int64), count=count), amount(b, first, int64))
        return b.gather(n, places, axis=len(n.shape) - 1)

    return apply(build, flat)


@method
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if x.ndim == 2:
        return x.diagonal(diagonal)
    if x.ndim != 1:
        raise ShapeError(f"diag: got {show(x.shape)}, expected a vector or a matrix")
    n = x.shape[0] + abs(diagonal)
    wide = x.pad([(max(diagonal, 0), max(-diagonal, 0))]).broadcast_to(n, n)
    return _triangle(_triangle(wide, diagonal, below=True), diagonal, below=False)


# PyTorch's other names


@method
def view(x: Tensor, *shape: Any) -> Tensor:
    """Like reshape: a tensor does not change, so views and copies are the same."""
    return x.reshape(*shape)


@method
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
    return x.reshape(other.shape)


alias("reshape_as", view_as)


@method
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated to the shape of another."""
    return x.broadcast_to(other.shape)


@method
def ravel(x: Tensor) -> Tensor:
    """The elements as a vector."""
    return x.reshape(-1)
