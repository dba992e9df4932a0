"""The rows that contract in 8-bit integers: `dot_int8` and `conv_int8`, the quantised forms of `dot` and `conv_last`.

Weights are symmetric, −127 to 127 with a scale for each output channel. They are stored as uint8 with 128 added.
The other operand is quantised to 7 bits at run time, each row (the elements summed into one output) by itself:
x ≈ (q − zero) · step with q and zero from 0 to 127. So 0 is represented exactly, and the range of q covers the row's
least value, its largest value and 0. WebAssembly's relaxed dot product takes 7 bits. Sums are integers and are scaled
back to float32, so later ops do not change.

A row that holds NaN or an infinity gives NaN. A row whose step is not a normal float32 counts as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import LEAST_NORMAL, float32, float64, int32, uint8
from ...errors import ShapeError
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape, same, show
from ..kinds import ROWS, Folds, Nest, Read, Shaped, register
from ..movement.move import project
from . import contract

TOP: Final = 127
"""The largest q."""
OFFSET: Final = 128
"""The number that is added to a weight when it is stored."""
DEEPEST: Final = (2**31 - 1) // (TOP * TOP)
"""The most elements that a sum may have: more could overflow an int32."""
LARGEST: Final = float(np.finfo(np.float32).max)
PART: Final = float(np.float32(1 / TOP))
_FLOATS: Final = ROWS["conv_last"]
assert isinstance(_FLOATS, Nest)


# --- as scalar expressions -------------------------------------------------------------------------------------------


def step_of(most: Expr, least: Expr) -> Expr:
    """A row's step, from its largest and its least value; NaN if these are not finite."""
    raw = scalar.maximum(most, 0.0) * PART - scalar.minimum(least, 0.0) * PART
    return scalar.select(scalar.le(raw, LARGEST), raw, const(math.nan, float32))


def _quantised(x: Expr, most: Expr, least: Expr) -> Expr:
    """q − zero of an element, from the largest and the least value of its row."""
    step = step_of(most, least)
    inverse = scalar.select(scalar.le(LEAST_NORMAL, step), scalar.div(1.0, step), const(0.0, float32))
    zero = scalar.round_(scalar.neg(scalar.minimum(least, 0.0)) * inverse)
    q = scalar.clip(scalar.cast(scalar.round_(x * inverse) + zero, int32), 0, TOP)
    return q - scalar.cast(zero, int32)


def _folds(inner: Shape, x: Any, weight: Any, scale: Expr) -> Folds:
    """The folds of one output element; `x` and `weight` give their elements for values of the inner variables."""

    def total(at: Sequence[Expr], folded: Sequence[Expr]) -> Expr:
        return _quantised(x(at), *folded) * (weight(at) - OFFSET)

    def result(folded: Sequence[Expr]) -> Expr:
        return scalar.cast(folded[2], float32) * step_of(*folded[:2]) * scale

    return Folds(inner, [("max", lambda at, _: x(at)), ("min", lambda at, _: x(at)), ("add", total)], result)


def _dot_nest(coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, scale: Shaped) -> Folds:
    *batch, m, n = coords
    rows = project(batch, x.shape[:-2])
    return _folds(w.shape[:1], lambda at: read(0, [*rows, m, *at]), lambda at: read(1, [*at, n]), read(2, [n]))


def _conv_nest(coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, scale: Shaped, **facts: Any) -> Folds:
    floats = _FLOATS.nest(coords, lambda k, at: read(0, at) if k == 0 else const(1.0, float32), x, w, **facts, group=1)
    ((_, value),) = floats.folds
    o = coords[-1]
    return _folds(floats.inner, lambda at: value(at, ()), lambda at: read(1, [*at, o]), read(2, [o]))


# --- over whole arrays -----------------------------------------------------------------------------------------------


def quantise_rows(xp: ArrayAdapter, x: Array) -> tuple[Array, Array]:
    """q − zero of each element of some rows, as float32, and each row's step."""
    zeros = xp.full((), 0, float32)
    most = xp.maximum(xp.fold("max", x, (-1,)), zeros)
    least = xp.minimum(xp.fold("min", x, (-1,)), zeros)
    raw = most * PART - least * PART
    step = xp.where(raw <= LARGEST, raw, xp.full((), math.nan, float32))
    inverse = xp.where(step >= LEAST_NORMAL, 1 / step, zeros)
    zero = xp.round(-least * inverse)
    q = xp.clip(xp.round(x * inverse) + zero, 0, TOP)
    return xp.where(xp.isnan(q), zeros, q) - xp.where(xp.isnan(zero), zeros, zero), step


def _rows_evaluate(xp: ArrayAdapter, x: Array, w: Array, scale: Array) -> Array:
    """The product of float32 rows and a matrix of stored weights."""
    q, step = quantise_rows(xp, x)
    exact = float32 if x.shape[-1] * TOP * TOP < 2**24 else float64  # so that no sum is rounded
    total = xp.matmul(xp.cast(q, exact), xp.cast(w, exact) - OFFSET)
    return xp.cast(total, float32) * step * scale


def _dot_evaluate(xp: ArrayAdapter, x: Array, w: Array, scale: Array) -> Array:
    rows = xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    return xp.reshape(_rows_evaluate(xp, rows, w, scale), (*x.shape[:-1], w.shape[-1]))


def _conv_evaluate(xp: ArrayAdapter, x: Array, w: Array, scale: Array, **facts: Any) -> Array:
    *window, channels, outputs = w.shape
    patches, depth = contract.windows_last(xp, x, window, **facts), math.prod(window) * channels
    places = patches.shape[: x.ndim - 1]
    rows = xp.reshape(patches, (math.prod(places), depth))
    return xp.reshape(_rows_evaluate(xp, rows, xp.reshape(w, (depth, outputs)), scale), (*places, outputs))


def quantise_weights(w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """float32 weights, output channels last, as they are stored, and the scale of each channel. None if a weight is not
    finite, or a channel so small that its scale is not a normal float32."""
    sizes = np.abs(w.reshape(-1, w.shape[-1])).max(0, initial=0)
    steps = (sizes / np.float32(TOP)).astype(np.float32)
    if not np.isfinite(w).all() or ((sizes > 0) & (steps < np.float32(LEAST_NORMAL))).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.where(steps > 0, w / steps, 0)
    return (np.clip(np.rint(whole), -TOP, TOP) + OFFSET).astype(np.uint8), steps


# --- shapes, rows ----------------------------------------------------------------------------------------------------


def _check(w: Shaped, scale: Shaped, depth: Shape) -> None:
    if scale.shape != w.shape[-1:] or not all(isinstance(d, int) for d in w.shape):
        raise ShapeError(
            f"int8: got scales {show(scale.shape)} for weights {show(w.shape)}, expected one for each output"
        )
    if math.prod(d for d in depth if isinstance(d, int)) > DEEPEST:
        raise ShapeError(f"int8: {show(depth)} elements in a sum, expected at most {DEEPEST}")


def _dot_shape(x: Shaped, w: Shaped, scale: Shaped) -> Shape:
    if len(x.shape) < 2 or len(w.shape) != 2 or not same(x.shape[-1], w.shape[0], "dot_int8"):
        raise ShapeError(f"dot_int8: got {show(x.shape)} and {show(w.shape)}, expected (…, m, k) and (k, n)")
    _check(w, scale, w.shape[:1])
    return (*x.shape[:-1], w.shape[1])


def _conv_shape(x: Shaped, w: Shaped, scale: Shaped, **facts: Any) -> Shape:
    _check(w, scale, w.shape[:-1])
    return _FLOATS.shape(x, w, **facts, group=1)


def _conv_facts(x: Shaped, w: Shaped, scale: Shaped, **facts: Any) -> Mapping[str, Any] | None:
    return _FLOATS.facts(x, w, **facts, group=1)


_TAKES: Final = (float32, uint8, float32)
register(
    Nest(name="dot_int8", public=False, doc="product of float rows and a matrix of 8-bit weights, summed in integers", routine="matmul_int8",
        no_gradient="it rounds its input to 8 bits",
         dtypes=(float32,), argument_types=_TAKES, result_type=float32, shape=_dot_shape, nest=_dot_nest, evaluate=_dot_evaluate,
         tolerance=16, floor=1e-5),
    Nest(name="conv_int8", public=False, doc="convolution, channels last, with 8-bit weights, summed in integers", routine="conv_int8",
        no_gradient="it rounds its input to 8 bits",
         dtypes=(float32,), argument_types=_TAKES, result_type=float32, shape=_conv_shape, nest=_conv_nest, evaluate=_conv_evaluate,
         facts=_conv_facts, tolerance=16, floor=1e-5),
)  # fmt: skip
