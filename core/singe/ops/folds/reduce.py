"""The rows that fold axes. Reductions keep the axes with length 1 (a reshape drops them, which costs nothing); running
folds keep every step.

Elements are folded in their compute type; integers wrap to their own width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ...dtypes import COMPLEX, FLOATS, NUMBERS, int32
from ...ir.arrays.adapter import Array
from ...ir.scalar import Expr
from ...shapes import Shape, axes_of, axis_of, product
from ..kinds import Composite, Folds, Nest, Read, Running, Shaped, as_dtype, register
from ..movement.move import amount, numbered_along


def _shape(x: Shaped, axes: Sequence[int]) -> Shape:
    axes = axes_of(axes, len(x.shape), "reduce")
    return tuple(1 if i in axes else d for i, d in enumerate(x.shape))


def _nest(word: str) -> Callable[..., Folds]:
    def nest(coords: Sequence[Expr], read: Read, x: Shaped, axes: Sequence[int]) -> Folds:
        axes = axes_of(axes, len(x.shape), "reduce")

        def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
            place = dict(zip(axes, inner, strict=True))
            return read(0, [place.get(i, c) for i, c in enumerate(coords)])

        return Folds(tuple(x.shape[a] for a in axes), [(word, value)])

    return nest


def _evaluate(word: str) -> Callable[..., Array]:
    return lambda xp, x, axes: xp.fold(word, x, axes)


def _extreme_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axes: Sequence[int]) -> list[Any]:
    """The gradient goes to the largest (or least) element; if several are equal, each gets an equal part."""
    (x,) = inputs
    hits = b.cast(b.equal(x, y), to=x.dtype)
    return [b.mul(hits, b.div(g, b.reduce_sum(hits, axes=axes)))]


def _folded_count(b: Any, x: Shaped, axes: Sequence[int]) -> Any:
    """How many elements are folded into one, as a scalar of x's dtype."""
    return amount(b, product(x.shape[a] for a in axes_of(axes, len(x.shape), "reduce")), x.dtype)


def _prod_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axes: Sequence[int]) -> list[Any]:
    """g · y / x. If one element is zero, only that element has a gradient, g times the product of the others. If two or
    more are zero, all gradients are zero."""
    (x,) = inputs
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    is_zero = b.equal(x, zero)
    others = b.where(is_zero, one, x)
    zeros = b.reduce_sum(b.cast(is_zero, to=x.dtype), axes=axes)
    counts = b.equal(zeros, b.cast(is_zero, to=x.dtype))  # whether no other element is zero
    return [b.where(counts, b.mul(g, b.div(b.reduce_prod(others, axes=axes), others)), zero)]


def wide(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering in the compute type of its first input, so that sums neither overflow nor lose digits."""

    @wraps(lower)
    def lowered(b: Any, x: Any, *more: Any, **attrs: Any) -> Any:
        if x.dtype is x.dtype.compute:
            return lower(b, x, *more, **attrs)
        return b.cast(lower(b, b.cast(x, to=x.dtype.compute), *more, **attrs), to=x.dtype)

    return lowered


def _mean(b: Any, x: Any, *, axes: Sequence[int]) -> Any:
    return b.div(b.reduce_sum(x, axes=axes), _folded_count(b, x, axes))


def _softmax(b: Any, x: Any, *, axis: int = -1) -> Any:
    e = b.falling_exp(b.sub(x, b.reduce_max(x, axes=(axis,))))
    return b.div(e, b.reduce_sum(e, axes=(axis,)))


def _softmax_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int = -1) -> list[Any]:
    """y · (g − Σ g · y), for which of a run only y is kept."""
    (x,) = inputs
    g, y = (as_dtype(b, t, x.dtype.compute) for t in (g, y))
    return [as_dtype(b, b.mul(y, b.sub(g, b.reduce_sum(b.mul(g, y), axes=(axis,)))), x.dtype)]


def _log_softmax(b: Any, x: Any, *, axis: int = -1) -> Any:
    shifted = b.sub(x, b.reduce_max(x, axes=(axis,)))
    return b.sub(shifted, b.log(b.reduce_sum(b.exp(shifted), axes=(axis,))))


def _log_softmax_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int = -1) -> list[Any]:
    """g − eʸ · Σ g."""
    (x,) = inputs
    g, y = (as_dtype(b, t, x.dtype.compute) for t in (g, y))
    return [as_dtype(b, b.sub(g, b.mul(b.exp(y), b.reduce_sum(g, axes=(axis,)))), x.dtype)]


def _spaces(x: Shaped) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


def _running_sum_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, reverse: bool = False) -> list[Any]:
    return [b.running_sum(g, axis=axis, reverse=not reverse)]


def _running_prod_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, reverse: bool = False) -> list[Any]:
    """The sum over later products of g · product / x. Products with the first zero have no other zero in them only up to
    the second; elements after the first zero have no gradient."""
    (x,) = inputs
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    is_zero = b.equal(x, zero)
    count = b.running_sum(b.cast(is_zero, to=int32), axis=axis, reverse=reverse)
    first = b.logical_and(is_zero, b.equal(count, b.const(1, int32)))
    others = b.running_prod(b.where(first, one, x), axis=axis, reverse=reverse)

    def later(products: Any) -> Any:
        return b.running_sum(b.mul(g, products), axis=axis, reverse=not reverse)

    rest = b.where(is_zero, zero, b.div(later(y), b.where(is_zero, one, x)))
    return [b.where(first, later(others), rest)]


def _running_max_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, reverse: bool = False) -> list[Any]:
    """Each gradient goes to the last of the largest elements so far."""
    (x,) = inputs
    axis = axis_of(axis, len(x.shape), "running_max")
    numbers = numbered_along(b, x.shape, axis)
    last = amount(b, x.shape[axis] - 1, int32)
    turn = b.sub(last, numbers) if reverse else numbers  # in the order of the fold
    place = b.running_max(b.where(b.equal(x, y), turn, b.const(0, int32)), axis=axis, reverse=reverse)
    place = b.sub(last, place) if reverse else place
    wide = as_dtype(b, g, x.dtype.compute)
    zeros = b.expand(b.const(0, wide.dtype), shape=x.shape)
    return [as_dtype(b, b.scatter_elements_reduce(zeros, wide, place, axis=axis, reduction="add"), x.dtype)]


register(
    Nest(name="reduce_sum", public=False, also=("sum",), along="axes", promote="sum",
         doc="The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before.",
         shape=_shape, over_axes=True, nest=_nest("add"), evaluate=_evaluate("add"), dtypes=(*NUMBERS, *COMPLEX),
         vjp=lambda b, g, inputs, y, axes: [b.expand(g, shape=inputs[0].shape)],
         tolerance=64, floor=1e-5),
    Nest(name="reduce_prod", public=False, also=("prod",), along="axes", promote="sum",
         doc="The product over axes, as `sum`.", shape=_shape, over_axes=True, nest=_nest("mul"), evaluate=_evaluate("mul"), dtypes=(*NUMBERS, *COMPLEX),
         vjp=_prod_vjp,
         tolerance=64),
    Nest(name="reduce_max", public=False,
         doc="the largest element over axes", shape=_shape, nest=_nest("max"), evaluate=_evaluate("max"), dtypes=NUMBERS, vjp=_extreme_vjp,
         over_axes=True),
    Nest(name="reduce_min", public=False,
         doc="the least element over axes", shape=_shape, nest=_nest("min"), evaluate=_evaluate("min"), dtypes=NUMBERS, vjp=_extreme_vjp,
         over_axes=True),
    Composite(name="reduce_mean", public=False, also=("mean",), along="axes", promote="float",
              doc="The mean over axes; integers become float32 first.", dtypes=(*NUMBERS, *COMPLEX), lower=wide(_mean),
              tolerance=64, floor=1e-5),
    Composite(name="softmax", along="axis", doc="exp(x), divided by its sum along an axis. dtype: of the elements before.",
              dtypes=FLOATS, lower=wide(_softmax), vjp=_softmax_vjp,
              tolerance=32),
    Composite(name="log_softmax", along="axis", doc="The logarithm of `softmax`.", dtypes=FLOATS, lower=wide(_log_softmax), vjp=_log_softmax_vjp,
              tolerance=64, floor=1e-5),
    Composite(name="global_average_pool", doc="the mean over all spatial axes", onnx="GlobalAveragePool", dtypes=FLOATS,
              lower=lambda b, x: b.reduce_mean(x, axes=_spaces(x)), tolerance=64, floor=1e-5),
    Composite(name="global_max_pool", doc="the largest element over all spatial axes", onnx="GlobalMaxPool", dtypes=NUMBERS,
              lower=lambda b, x: b.reduce_max(x, axes=_spaces(x))),
    Running(name="running_sum", public=False, also=("cumsum",), along="axis", promote="sum", numpy="cumsum", complex=True,
            doc="The sum of all elements up to each one along an axis; integers are summed as int64.", word="add",
            dtypes=NUMBERS, vjp=_running_sum_vjp, tolerance=64, floor=1e-5),
    Running(name="running_prod", public=False, also=("cumprod",), along="axis", promote="sum", numpy="cumprod", complex=True,
            doc="The product of all elements up to each one along an axis; integers are multiplied as int64.", word="mul",
            dtypes=NUMBERS, vjp=_running_prod_vjp, tolerance=64, floor=1e-5),
    Running(name="running_max", public=False, doc="the largest element up to each one along an axis", word="max",
            dtypes=NUMBERS, vjp=_running_max_vjp),
)  # fmt: skip
