"""The rows that contract: matrix products and convolutions. Two are primitives, `dot` and `conv_last`; the others are
composed of them.

`conv_last` is channels-last (n, …space, channels) with weights (…window, channels per group, outputs): the channels of
a position are contiguous in memory. ONNX's channels-first ops become a `conv_last` between two transposes. The rewrite
moves the transposes towards the outputs until they meet others and cancel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...dtypes import COMPLEX, FLOATS, NUMBERS, float32, int32
from ...errors import ShapeError
from ...ir import affine
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const, select, size
from ...shapes import Shape, broadcast, dim_max, product, same, show
from ..folds.window import window_sizes
from ..kinds import Composite, Folds, Nest, Read, Shaped, as_dtype, matrix_transpose, register, sum_to
from ..movement.move import project
from .transposed import conv_or_dot, resized, transposed_last

# --- dot -------------------------------------------------------------------------------------------------------------


def _dot_shape(a: Shaped, b: Shaped) -> Shape:
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise ShapeError(f"dot: got {show(a.shape)} and {show(b.shape)}, expected matrices (or stacks of them)")
    if not same(a.shape[-1], b.shape[-2], "matmul"):
        raise ShapeError(
            f"matmul: {show(a.shape)} @ {show(b.shape)}: inner sizes {a.shape[-1]} and {b.shape[-2]} differ; transpose one side?"
        )
    return (*broadcast([a.shape[:-2], b.shape[:-2]], "matmul"), a.shape[-2], b.shape[-1])


def _dot_nest(coords: Sequence[Expr], read: Read, a: Shaped, b: Shaped) -> Folds:
    *batch, m, n = coords

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        (k,) = inner
        return read(0, [*project(batch, a.shape[:-2]), m, k]) * read(1, [*project(batch, b.shape[:-2]), k, n])

    depth = b.shape[-2] if isinstance(b.shape[-2], int) else a.shape[-1]
    return Folds((depth,), [("add", value)])


def _dot_evaluate(xp: ArrayAdapter, a: Array, b: Array) -> Array:
    x, y = xp.wide(a), xp.wide(b)
    if y.ndim == 2 and x.ndim > 2:  # one large product instead of a stack of small ones
        rows = xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        return xp.cast(xp.reshape(xp.matmul(rows, y), (*x.shape[:-1], y.shape[-1])), xp.dtype(a))
    return xp.cast(xp.matmul(x, y), xp.dtype(a))


def _dot_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    left, right = inputs
    if (
        len(right.shape) == 2 and len(left.shape) > 2
    ):  # one product of all rows, and not one for each stack, which are added
        rows = product(left.shape[:-1])
        flat = b.reshape(left, shape=(rows, left.shape[-1]))
        weights = b.dot(matrix_transpose(b, flat), b.reshape(g, shape=(rows, g.shape[-1])))
        return [sum_to(b, b.dot(g, matrix_transpose(b, right)), left.shape), weights]
    return [
        sum_to(b, b.dot(g, matrix_transpose(b, right)), left.shape),
        sum_to(b, b.dot(matrix_transpose(b, left), g), right.shape),
    ]


def _matmul(b: Any, x: Any, y: Any) -> Any:
    """The product by NumPy's rule: a vector counts as a row on the left and as a column on the right."""
    if not x.shape or not y.shape:
        raise ShapeError(f"matmul: got {show(x.shape)} @ {show(y.shape)}, expected at least one axis on each side")
    left = b.reshape(x, shape=(1, *x.shape)) if len(x.shape) == 1 else x
    right = b.reshape(y, shape=(*y.shape, 1)) if len(y.shape) == 1 else y
    out = b.dot(left, right)
    shape = out.shape
    if len(y.shape) == 1:
        shape = shape[:-1]
    if len(x.shape) == 1:
        shape = shape[:-1] if len(y.shape) == 1 else (*shape[:-2], shape[-1])
    return b.reshape(out, shape=shape)


def _gemm(
    b: Any,
    x: Any,
    y: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Any:
    out = b.dot(matrix_transpose(b, x) if trans_a else x, matrix_transpose(b, y) if trans_b else y)
    out = out if alpha == 1 else b.mul(out, b.const(alpha, out.dtype))
    if c is None or beta == 0:
        return out
    return b.add(out, c if beta == 1 else b.mul(c, b.const(beta, c.dtype)))


# --- convolution, channels last --------------------------------------------------------------------------------------


def _conv_shape(
    x: Shaped,
    w: Shaped,
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Shape,
    after: Shape,
    group: int,
) -> Shape:
    spaces = len(x.shape) - 2
    if spaces < 1 or len(w.shape) != len(x.shape):
        raise ShapeError(
            f"conv: got an input {show(x.shape)} and weights {show(w.shape)}; expected as many axes in both, at least 3"
        )
    if not len(strides) == len(dilations) == len(before) == len(after) == spaces:
        raise ShapeError(f"conv: strides, dilations and pads must each name {spaces} axes")
    channels, outputs = x.shape[-1], w.shape[-1]
    if not same(w.shape[-2] * group, channels, "conv") or not (
        isinstance(outputs, int) and group >= 1 and outputs % group == 0
    ):
        raise ShapeError(
            f"conv: {channels} channels in {group} group(s) do not fit weights for {w.shape[-2]} channels per group and {outputs} outputs"
        )
    window = [d for d in w.shape[:-2] if isinstance(d, int)]
    lengths = zip(x.shape[1:-1], window, strides, dilations, before, after, strict=True)
    return (x.shape[0], *window_sizes("conv", x.shape, window, lengths), outputs)


def _conv_nest(
    coords: Sequence[Expr],
    read: Read,
    x: Shaped,
    w: Shaped,
    strides: Any,
    dilations: Any,
    before: Any,
    after: Any,
    group: int,
) -> Folds:
    n, *space, o = coords
    per_group = w.shape[-2]

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        if 0 in x.shape:  # the input is empty and windows cover only padding: there is no element to read
            return const(0, x.dtype.compute)
        *taps, c = inner
        inside: Expr | None = None
        place: list[Expr] = []
        for axis, (v, t) in enumerate(zip(space, taps, strict=True)):
            d = x.shape[axis + 1]
            p = v * strides[axis] + t * dilations[axis] - size(before[axis])
            if before[axis] != 0 or after[axis] != 0:
                ok = (p >= 0) & (p < size(d))
                inside = ok if inside is None else inside & ok
                p = affine.clamp(p, d)
            place.append(p)
        channel = c if group == 1 else affine.index_div(o, w.shape[-1] // group) * size(per_group) + c
        v = read(0, [n, *place, channel])
        if inside is not None:
            v = select(inside, v, const(0, v.dtype))
        return v * read(1, [*taps, c, o])

    return Folds((*w.shape[:-2], per_group), [("add", value)])


def _conv_facts(
    x: Shaped, w: Shaped, strides: Any, dilations: Any, before: Any, after: Any, group: int
) -> Mapping[str, Any] | None:
    if 0 in x.shape or x.dtype.compute is not float32:
        return None
    return {
        "x_shape": x.shape,
        "w_shape": w.shape,
        "strides": tuple(strides),
        "dilations": tuple(dilations),
        "pads": tuple(before),
        "group": group,
    }


def windows_last(
    xp: ArrayAdapter, x: Array, window: Sequence[int], strides: Any, dilations: Any, before: Any, after: Any
) -> Array:
    """The windows of x (n, …space, channels), as (n, …space, …window, channels)."""
    every = xp.windows(x, 0, (1, *window, 1), (1, *strides, 1), (1, *dilations, 1), (0, *before, 0), (0, *after, 0))
    return xp.moveaxis(every[(slice(None),) * x.ndim + (0, ..., 0)], x.ndim - 1, -1)


def _conv_evaluate(xp: ArrayAdapter, x: Array, w: Array, group: int, **facts: Any) -> Array:
    kind, (*window, per_group, outputs) = xp.dtype(x), w.shape
    x, w = xp.wide(x), xp.wide(w)
    patches = windows_last(xp, x, window, **facts)
    places = patches.shape[: x.ndim - 1]
    rows, taps = math.prod(places), math.prod(window)
    left = xp.permute_dims(xp.reshape(patches, (rows, taps, group, per_group)), (2, 0, 1, 3))
    right = xp.permute_dims(xp.reshape(w, (taps * per_group, group, outputs // group)), (1, 0, 2))
    found = xp.matmul(xp.reshape(left, (group, rows, taps * per_group)), right)
    return xp.cast(xp.reshape(xp.permute_dims(found, (1, 0, 2)), (*places, outputs)), kind)


def _conv_vjp(
    b: Any,
    g: Any,
    inputs: Sequence[Any],
    y: Any,
    strides: Any,
    dilations: Any,
    before: Any,
    after: Any,
    group: int,
) -> list[Any]:
    x, w = inputs
    spaces = len(strides)
    *window, per_group, outputs = w.shape
    # The gradient of x: the transposed convolution, with inputs and outputs of the weights swapped within each group.
    turned = b.reshape(w, shape=(*window, per_group, group, outputs // group))
    turned = b.transpose(turned, perm=(*range(spaces), spaces + 1, spaces + 2, spaces))
    turned = b.reshape(turned, shape=(*window, outputs, per_group))
    dx = transposed_last(b, g, turned, strides, dilations, before, x.shape[1:-1], group)
    if all(isinstance(d, int) and d > 0 for d in g.shape[1:-1]):
        return [dx, _by_weights(b, g, x, w, strides, dilations, before, after, group)]
    # The gradient of w: for each place of the window, the inputs read there times the gradients of the outputs.
    padded = b.pad(x, b.const(0, x.dtype), before=(0, *before, 0), after=(0, *after, 0), mode="constant")
    rows = product(g.shape[:-1])
    taps = []
    for tap in itertools.product(*map(range, window)):
        starts = (0, *(t * d for t, d in zip(tap, dilations, strict=True)), 0)
        met = b.slice(padded, starts=starts, steps=(1, *strides, 1), sizes=(*g.shape[:-1], x.shape[-1]))
        left = b.transpose(b.reshape(met, shape=(rows, group, per_group)), perm=(1, 2, 0))
        right = b.transpose(b.reshape(g, shape=(rows, group, outputs // group)), perm=(1, 0, 2))
        taps.append(b.reshape(b.transpose(b.dot(left, right), perm=(1, 0, 2)), shape=(1, per_group, outputs)))
    return [dx, b.reshape(b.concat(*taps, axis=0), shape=w.shape)]


def _by_weights(
    b: Any, g: Any, x: Any, w: Any, strides: Any, dilations: Any, before: Any, after: Any, group: int
) -> Any:
    """The gradient of the weights: a convolution over x with the window g, where the batch takes the place of the channels,
    and strides that of dilations."""
    batch, *space, _ = x.shape
    *window, per_group, _ = w.shape
    spaces = len(space)
    places = g.shape[1:-1]
    turned = b.reshape(x, shape=(batch, *space, group, per_group))
    turned = b.transpose(turned, perm=(spaces + 2, *range(1, spaces + 1), spaces + 1, 0))
    turned = b.reshape(turned, shape=(per_group, *space, group * batch))
    # Where the last windows leave out elements, the padding after x is cut so that no more places fit.
    ends = [
        s * (n - 1) + r * (k - 1) + 1 - d - lo
        for s, n, r, k, d, lo in zip(strides, places, dilations, window, space, before, strict=True)
    ]
    for axis, (end, hi) in enumerate(zip(ends, after, strict=True)):
        if end != hi and isinstance(end, int) and end < 0:
            turned = resized(b, turned, axis + 1, 0, space[axis] + end)
    reach = [hi if end == hi else dim_max(end, 0) for end, hi in zip(ends, after, strict=True)]
    y = b.conv_last(
        turned, b.transpose(g, perm=(*range(1, spaces + 1), 0, spaces + 1)),
        strides=tuple(dilations), dilations=tuple(strides), before=tuple(before), after=tuple(reach), group=group,
    )  # fmt: skip
    return b.transpose(y, perm=(*range(1, spaces + 1), 0, spaces + 1))


# --- convolution, as ONNX and PyTorch spell it -----------------------------------------------------------------------


def _last(b: Any, x: Any) -> Any:
    return b.transpose(x, perm=(0, *range(2, len(x.shape)), 1))


def _first(b: Any, x: Any) -> Any:
    return b.transpose(x, perm=(0, len(x.shape) - 1, *range(1, len(x.shape) - 1)))


def _conv(b: Any, x: Any, w: Any, bias: Any = None, **facts: Any) -> Any:
    spaces = len(w.shape) - 2
    weights = b.transpose(w, perm=(*range(2, spaces + 2), 1, 0))
    y = conv_or_dot(b, _last(b, x), weights, **facts)
    return _first(b, y if bias is None else b.add(y, bias))


def _conv_transpose(
    b: Any, x: Any, w: Any, bias: Any = None, *, strides: Any, dilations: Any, before: Any, sizes: Any, group: int
) -> Any:
    spaces = len(w.shape) - 2
    fits = same(x.shape[1], w.shape[0], "conv_transpose")
    if not fits or not isinstance(w.shape[0], int) or w.shape[0] % group:
        raise ShapeError(
            f"conv_transpose: {x.shape[1]} channels in {group} group(s) do not fit weights {show(w.shape)}"
        )
    weights = b.transpose(w, perm=(*range(2, spaces + 2), 0, 1))
    y = transposed_last(b, _last(b, x), weights, strides, dilations, before, sizes, group)
    return _first(b, y if bias is None else b.add(y, bias))


def _batch_norm(b: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5) -> Any:
    """(x − mean) / √(variance + ε) · scale + shift along axis 1, computed as one multiplication and one addition."""
    kind, wide = x.dtype, x.dtype.compute
    if len(scale.shape) != 1:
        raise ShapeError(f"batch_norm: a scale of shape {show(scale.shape)}, expected one number for each channel")
    scale, shift, mean, variance = (as_dtype(b, p, wide) for p in (scale, shift, mean, variance))
    factor = b.div(scale, b.sqrt(b.add(variance, b.const(epsilon, wide))))
    shape = (scale.shape[0], *(1,) * (len(x.shape) - 2))
    offset = b.sub(shift, b.mul(mean, factor))
    y = b.add(b.mul(as_dtype(b, x, wide), b.reshape(factor, shape=shape)), b.reshape(offset, shape=shape))
    return as_dtype(b, y, kind)


register(
    Nest(name="dot", doc="matrix product over the last two axes; the axes before them broadcast", routine="matmul", dtypes=(*NUMBERS, *COMPLEX),
         shape=_dot_shape, nest=_dot_nest, evaluate=_dot_evaluate, vjp=_dot_vjp, tolerance=64, floor=1e-5,
         facts=lambda a, b: {} if a.dtype.compute is float32 else None),
    Nest(name="conv_last", public=False, doc="convolution, channels last", routine="conv", dtypes=(*FLOATS, int32), shape=_conv_shape, nest=_conv_nest,
         evaluate=_conv_evaluate, vjp=_conv_vjp, facts=_conv_facts, tolerance=64, floor=1e-5),
    Composite(name="matmul", doc="product of matrices, stacks of them, or vectors, as in NumPy", onnx="MatMul", dtypes=(*NUMBERS, *COMPLEX), lower=_matmul,
              tolerance=64, floor=1e-5),
    Composite(name="gemm", public=False, doc="alpha · a @ b + beta · c, where a and b may be transposed", dtypes=NUMBERS, lower=_gemm,
              tolerance=64, floor=1e-5),
    Composite(name="conv", doc="convolution, channels first, weights (outputs, channels per group, …window)", dtypes=(*FLOATS, int32), lower=_conv,
              tolerance=64, floor=1e-5),
    Composite(name="conv_transpose", doc="transposed convolution, weights (channels, outputs per group, …window); sizes: of the output",
              dtypes=FLOATS, lower=_conv_transpose, tolerance=64, floor=1e-5),
    Composite(name="batch_norm", doc="normalisation along axis 1 with given mean and variance", dtypes=FLOATS, lower=_batch_norm,
              tolerance=64, floor=1e-5),
)  # fmt: skip
