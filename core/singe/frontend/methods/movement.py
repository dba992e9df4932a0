"""Methods that move elements or change the shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...ir.scalar import Number
from ...ops import ROWS
from ...shapes import axis_of, show
from .. import shaping
from ..shaping import Axis, unpacked
from ..tensor import Tensor, apply
from .attach import alias, method
from .rows import call_row


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
def transpose(x: Tensor, *perm: Any) -> Tensor:
    """The axes in another order; reversed if none is given."""
    order = unpacked(perm) or tuple(reversed(range(x.ndim)))
    return call_row(ROWS["transpose"], (x,), perm=tuple(axis_of(p, x.ndim, "transpose") for p in order))


alias("permute", transpose)


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
    return x.transpose(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)


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
    """The tensor with elements added before and after every axis. width: one number, or (before, after) for each
    axis. mode: "constant" (of `value`), "reflect", "edge" or "wrap"."""
    before, after = shaping.pad_widths(width, x.ndim)
    return call_row(ROWS["pad"], (x, value), before=before, after=after, mode=mode)
