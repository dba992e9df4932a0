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
from numpy.lib.stride_tricks import sliding_window_view

from ...dtypes import LEAST_NORMAL, float32, int32, uint8
from ...errors import ShapeError
from ...ir import scalar
from ...ir.scalar import Expr, const
from ...shapes import Shape, same, show
from ..kinds import ROWS, Folds, Nest, Read, Shaped, register
from ..movement.move import project
from . import contract  # noqa: F401 (registers conv_last)

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


def quantise_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q − zero of each element of some rows, as float32, and each row's step."""
    most = np.maximum(x.max(-1, keepdims=True, initial=-np.inf), np.float32(0))
    least = np.minimum(x.min(-1, keepdims=True, initial=np.inf), np.float32(0))
    part = np.float32(PART)
    with np.errstate(all="ignore"):
        raw = most * part - least * part
        step = np.where(raw <= np.float32(LARGEST), raw, np.float32(np.nan))
        inverse = np.where(step >= np.float32(LEAST_NORMAL), np.float32(1) / step, np.float32(0))
        zero = np.rint(-least * inverse)
        q = np.rint(x * inverse) + zero
        return np.nan_to_num(np.clip(q, 0, TOP), nan=0.0) - np.nan_to_num(zero, nan=0.0), step


def _rows_whole(x: np.ndarray, w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The product of float32 rows and a matrix of stored weights."""
    q, step = quantise_rows(x)
    exact = np.float32 if x.shape[-1] * TOP * TOP < 2**24 else np.float64  # so that no sum is rounded
    total = q.astype(exact, copy=False) @ (w.astype(exact) - exact(OFFSET))
    with np.errstate(all="ignore"):
        return total.astype(np.float32) * step * scale


def _dot_whole(x: np.ndarray, w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return _rows_whole(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w, scale).reshape(*x.shape[:-1], w.shape[-1])


def _conv_whole(
    x: np.ndarray, w: np.ndarray, scale: np.ndarray, strides: Any, dilations: Any, before: Any, after: Any
) -> np.ndarray:
    x = np.pad(x, [(0, 0), *zip(before, after, strict=True), (0, 0)])
    *window, channels, outputs = w.shape
    spaces = len(window)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(window, dilations, strict=True))
    every = sliding_window_view(x, reach, axis=tuple(range(1, spaces + 1)))
    steps = (*(slice(None, None, s) for s in strides), slice(None), *(slice(None, None, d) for d in dilations))
    patches = np.moveaxis(every[(slice(None), *steps)], spaces + 1, -1)  # (n, …space, …window, channels)
    depth = math.prod(window) * channels
    rows = _rows_whole(np.ascontiguousarray(patches).reshape(-1, depth), w.reshape(depth, outputs), scale)
    return rows.reshape(*patches.shape[: spaces + 1], outputs)


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
         dtypes=(float32,), argument_types=_TAKES, result_type=float32, shape=_dot_shape, nest=_dot_nest, whole=_dot_whole,
         tolerance=16, floor=1e-5),
    Nest(name="conv_int8", public=False, doc="convolution, channels last, with 8-bit weights, summed in integers", routine="conv_int8",
        no_gradient="it rounds its input to 8 bits",
         dtypes=(float32,), argument_types=_TAKES, result_type=float32, shape=_conv_shape, nest=_conv_nest, whole=_conv_whole,
         facts=_conv_facts, tolerance=16, floor=1e-5),
)  # fmt: skip
