"""The references of the structured rows, used only by tests: definitions written out element by element, sharing no
code with the rows. They compute in the type of their arrays, which is float64 in tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

Index = tuple[int, ...]


def each(shape: Sequence[int], kind: Any, element: Callable[[Index], Any]) -> np.ndarray:
    """The array whose element at every place is element(place)."""
    out = np.empty(tuple(shape), kind)
    for place in np.ndindex(*shape):
        out[place] = element(place)
    return out


# --- elementwise -----------------------------------------------------------------------------------------------------


def divide(a: Any, b: Any) -> Any:
    """a / b; integers are rounded toward zero, computed with Python's integers."""
    if a.dtype.kind == "f":
        return a / b
    exact = np.vectorize(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), otypes=[object])
    return exact(a.astype(object), b.astype(object)).astype(a.dtype)


def cast(x: np.ndarray, to: Any) -> np.ndarray:
    """Floats go to integers toward zero, saturating at 32 or 64 bits, NaN to 0; integers wrap."""
    if x.dtype.kind != "f" or not to.is_int:
        return x.astype(to.numpy)
    limits = np.iinfo(np.int64 if to.size == 8 else np.int32)

    def one(v: float) -> int:
        if math.isnan(v):
            return 0
        return (
            limits.max if v == math.inf else limits.min if v == -math.inf else min(max(int(v), limits.min), limits.max)
        )

    return np.array([one(v) for v in x.ravel().tolist()], np.int64).astype(to.numpy).reshape(x.shape)


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# --- reductions ------------------------------------------------------------------------------------------------------


def extreme(pick: Callable[[Any, Any], Any], empty: Callable[[np.dtype[Any]], Any]) -> Callable[..., np.ndarray]:
    """A fold with max or min; `empty` gives the result for no elements."""

    def fold(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        axes = [a % x.ndim for a in axes]
        out = np.full([1 if i in axes else d for i, d in enumerate(x.shape)], empty(x.dtype), x.dtype)
        for place in np.ndindex(*x.shape):
            target = tuple(0 if i in axes else c for i, c in enumerate(place))
            out[target] = pick(out[target], x[place])
        return out

    return fold


def mean(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    wide = np.int32 if x.dtype.kind in "iu" and x.dtype.itemsize < 4 else x.dtype
    total = x.sum(tuple(axes), keepdims=True, dtype=wide)
    return divide(total, np.asarray(math.prod(x.shape[a] for a in axes), wide))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-math.inf))
    return e / e.sum(axis, keepdims=True)


# --- movement --------------------------------------------------------------------------------------------------------


def expand(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return each(
        shape,
        x.dtype,
        lambda at: x[tuple(0 if d == 1 else c for c, d in zip(at[len(shape) - x.ndim :], x.shape, strict=True))],
    )


def slice_(x: np.ndarray, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    return each(
        sizes, x.dtype, lambda at: x[tuple(start + c * step for start, step, c in zip(starts, steps, at, strict=True))]
    )


def pad(x: np.ndarray, fill: np.ndarray, before: Sequence[int], after: Sequence[int], mode: str) -> np.ndarray:
    source: Mapping[str, Callable[[int, int], int]] = {
        "edge": lambda c, d: min(max(c, 0), d - 1),
        "wrap": lambda c, d: c % d,
        "reflect": lambda c, d: d - 1 - abs(d - 1 - abs(c)),
    }

    def element(at: Index) -> Any:
        inner = [c - lo for c, lo in zip(at, before, strict=True)]
        if mode == "constant":
            return x[tuple(inner)] if all(0 <= c < d for c, d in zip(inner, x.shape, strict=True)) else fill
        return x[tuple(source[mode](c, d) for c, d in zip(inner, x.shape, strict=True))]

    return each([d + lo + hi for d, lo, hi in zip(x.shape, before, after, strict=True)], x.dtype, element)


def concat(*xs: np.ndarray, axis: int) -> np.ndarray:
    axis %= xs[0].ndim
    owner = [(k, c) for k, x in enumerate(xs) for c in range(x.shape[axis])]
    shape = [len(owner) if i == axis else d for i, d in enumerate(xs[0].shape)]
    return each(
        shape, xs[0].dtype, lambda at: xs[owner[at[axis]][0]][(*at[:axis], owner[at[axis]][1], *at[axis + 1 :])]
    )


def gather(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    axis %= x.ndim
    end = axis + index.ndim
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return each(shape, x.dtype, lambda at: x[(*at[:axis], int(index[at[axis:end]]), *at[end:])])


# --- windows ---------------------------------------------------------------------------------------------------------


def places(d: int, window: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How many places a window has along an axis, by counting them."""
    return sum(
        1 for start in range(0, d + before + after, stride) if start + dilation * (window - 1) < d + before + after
    )


def window(
    at: Index,
    shape: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
) -> Iterator[tuple[Index, Index]]:
    """The pairs (tap, place in the input) of a window whose place lies inside the input."""
    for tap in np.ndindex(*taps):
        place = tuple(c * s + t * d - lo for c, s, t, d, lo in zip(at, strides, tap, dilations, before, strict=True))
        if all(0 <= c < d for c, d in zip(place, shape, strict=True)):
            yield tap, place


def _pool(finish: Callable[[np.ndarray, list[Index]], Any], kind: Any = None) -> Callable[..., np.ndarray]:
    def pool(
        x: np.ndarray, *, window: Any, strides: Any, dilations: Any, before: Any, after: Any, **more: Any
    ) -> np.ndarray:
        shape = [places(*facts) for facts in zip(x.shape, window, strides, dilations, before, after, strict=True)]
        met = _window_of(x.shape, window, strides, dilations, before)
        return each(shape, kind or x.dtype, lambda at: finish(x, met(at), **more))

    return pool


def _window_of(shape: Any, taps: Any, strides: Any, dilations: Any, before: Any) -> Callable[[Index], list[Index]]:
    return lambda at: [place for _, place in window(at, shape, taps, strides, dilations, before)]


def _first_largest(x: np.ndarray, met: list[Index], column_major: bool = False) -> int:
    def flat(place: Index) -> int:
        turn = slice(None, None, -1) if column_major else slice(None)
        return int(np.ravel_multi_index((*place[:2], *place[2:][turn]), (*x.shape[:2], *x.shape[2:][turn])))

    top = max(x[p] for p in met)
    return min(flat(p) for p in met if x[p] == top)


max_pool: Final = _pool(lambda x, met: np.max([x[p] for p in met]))
pool_sum: Final = _pool(lambda x, met: sum(x[p] for p in met))
max_pool_index: Final = _pool(_first_largest, np.int64)


# --- contraction -----------------------------------------------------------------------------------------------------


def conv_last(
    x: np.ndarray, w: np.ndarray, strides: Any, dilations: Any, before: Any, after: Any, group: int
) -> np.ndarray:
    *taps, per_group, outputs = w.shape
    space = x.shape[1:-1]
    shape = [places(*facts) for facts in zip(space, taps, strides, dilations, before, after, strict=True)]

    def element(at: Index) -> Any:
        n, *where, o = at
        first = o // (outputs // group) * per_group
        met = window(tuple(where), space, taps, strides, dilations, before)
        return sum(
            (x[(n, *place, slice(first, first + per_group))] @ w[(*tap, slice(None), o)] for tap, place in met), 0.0
        )

    return each((x.shape[0], *shape, outputs), x.dtype, element)


def conv(x: np.ndarray, w: np.ndarray, bias: Any = None, **facts: Any) -> np.ndarray:
    y = np.moveaxis(conv_last(np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2)), **facts), -1, 1)
    return y if bias is None else y + bias.reshape(-1, *(1,) * (x.ndim - 2))


def conv_transpose(
    x: np.ndarray, w: np.ndarray, bias: Any = None, *, strides: Any, dilations: Any, before: Any, sizes: Any, group: int
) -> np.ndarray:
    """Every input element adds the window, times its value, to the output."""
    channels, per_group, *taps = w.shape
    out = np.zeros((x.shape[0], per_group * group, *sizes), x.dtype)
    for n, c, *where in np.ndindex(*x.shape):
        first = c // (channels // group) * per_group
        for tap in np.ndindex(*taps):
            place = tuple(
                p * s + t * d - lo for p, s, t, d, lo in zip(where, strides, tap, dilations, before, strict=True)
            )
            if all(0 <= p < d for p, d in zip(place, sizes, strict=True)):
                out[(n, slice(first, first + per_group), *place)] += x[(n, c, *where)] * w[(c, slice(None), *tap)]
    return out if bias is None else out + bias.reshape(-1, *(1,) * (x.ndim - 2))


def gemm(
    x: np.ndarray,
    y: np.ndarray,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> np.ndarray:
    product = (x.T if trans_a else x) @ (y.T if trans_b else y) * x.dtype.type(alpha)
    return product if c is None else product + c * x.dtype.type(beta)


def batch_norm(x: np.ndarray, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float = 1e-5) -> np.ndarray:
    along = (-1, *(1,) * (x.ndim - 2))
    scale, shift, mean, variance = (p.reshape(along) for p in (scale, shift, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + shift


# --- resampling ------------------------------------------------------------------------------------------------------


def _original(i: int, d: int, out: int, scale: float, coordinates: str, roi: tuple[float, float]) -> float:
    """The place of output index i in an input of length d, as ONNX's Resize defines it."""
    length = scale * d
    if coordinates == "align_corners":
        return 0.0 if length == 1 else i * (d - 1) / (length - 1)
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "tf_crop_and_resize":
        middle = 0.5 * (roi[0] + roi[1]) * (d - 1)
        return roi[0] * (d - 1) + i * (roi[1] - roi[0]) * (d - 1) / (out - 1) if out > 1 else middle
    if coordinates == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if coordinates == "pytorch_half_pixel" and out <= 1:
        return 0.0
    moved = d / 2 * (1 - out / length) if coordinates == "half_pixel_symmetric" else 0.0
    return moved + (i + 0.5) / scale - 0.5


def _weight(distance: float, mode: str, cubic: float) -> float:
    t = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - t)
    if t <= 1:
        return (cubic + 2) * t**3 - (cubic + 3) * t**2 + 1
    return cubic * t**3 - 5 * cubic * t**2 + 8 * cubic * t - 4 * cubic if t < 2 else 0.0


_ROUND: Final[Mapping[str, Callable[[float], int]]] = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def _axis_matrix(
    d: int,
    out: int,
    scale: float,
    roi: tuple[float, float],
    mode: str,
    coordinates: str,
    nearest: str,
    cubic: float,
    exclude: bool,
    antialias: bool,
) -> np.ndarray:
    """A matrix [out, d]: the weight of each input element in each output element; NaN for outputs outside the input."""
    matrix = np.zeros((out, d))
    for i in range(out):
        x = _original(i, d, out, scale, coordinates, roi)
        if coordinates == "tf_crop_and_resize" and not 0 <= x <= d - 1:
            matrix[i] = math.nan
        elif mode == "nearest":
            matrix[i, min(max(_ROUND[nearest](x), 0), d - 1)] = 1
        else:
            shrink = min(scale, 1.0) if antialias else 1.0
            reach = math.ceil(2 / shrink) + 1
            taps = [
                (k, _weight((k - x) * shrink, mode, cubic))
                for k in range(math.floor(x) - reach, math.floor(x) + reach + 1)
            ]
            taps = [(k, v) for k, v in taps if not exclude or 0 <= k < d]
            total = sum(v for _, v in taps) if antialias or exclude else 1.0
            for k, v in taps:
                matrix[i, min(max(k, 0), d - 1)] += v / total
    return matrix


def resize(
    x: np.ndarray, *, sizes: Sequence[int], scales: Sequence[float] = (), mode: str = "nearest", coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor", cubic: float = -0.75, exclude_outside: bool = False, extrapolation: float = 0.0,
    roi: Sequence[float] = (), antialias: bool = False,
) -> np.ndarray:  # fmt: skip
    """A matrix product along each axis; integers saturate."""
    ends = roi or (*(0.0,) * x.ndim, *(1.0,) * x.ndim)
    outside = np.zeros(tuple(sizes), bool)
    y = x.astype(np.longdouble)  # holds every int64
    for axis in range(x.ndim):
        span = (ends[axis], ends[axis + x.ndim])
        matrix = _axis_matrix(
            x.shape[axis],
            sizes[axis],
            sizes[axis] / x.shape[axis] if not scales else scales[axis],
            span,
            mode,
            coordinates,
            nearest,
            cubic,
            exclude_outside,
            antialias,
        )
        lost = np.isnan(matrix)
        outside |= np.any(lost, axis=1).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        y = np.moveaxis(np.tensordot(np.where(lost, 0, matrix), y, (1, axis)), 0, axis)
    y = np.where(outside, extrapolation, y)
    return y if x.dtype.kind == "f" else np.clip(np.trunc(y), *_limits(x.dtype)).astype(x.dtype)


def _limits(kind: np.dtype[Any]) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


def running(accumulate: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A fold along an axis that keeps every step."""

    def reference(x: np.ndarray, axis: int, reverse: bool = False) -> np.ndarray:
        turned = x[
            tuple(slice(None, None, -1) if i == axis % x.ndim and reverse else slice(None) for i in range(x.ndim))
        ]
        out = np.asarray(accumulate(turned, axis=axis)).astype(x.dtype)
        return out[
            tuple(slice(None, None, -1) if i == axis % x.ndim and reverse else slice(None) for i in range(x.ndim))
        ]

    return reference


# --- updates ---------------------------------------------------------------------------------------------------------


def update_slice(x: np.ndarray, part: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = x.copy()
    first = [min(max(s.item(), 0), d - p) for s, d, p in zip(starts, x.shape, part.shape, strict=True)]
    for place in np.ndindex(*part.shape):
        out[tuple(a + c for a, c in zip(first, place, strict=True))] = part[place]
    return out


def scatter_elements(x: np.ndarray, part: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    out = x.copy()
    for place in np.ndindex(*part.shape):
        to = list(place)
        to[axis] = int(indices[place])
        out[tuple(to)] = part[place]
    return out


def scatter_nd(x: np.ndarray, part: np.ndarray, indices: np.ndarray) -> np.ndarray:
    out = x.copy()
    for place in np.ndindex(*indices.shape[:-1]):
        out[tuple(int(i) for i in indices[place])] = part[place]
    return out


# --- recurrent -------------------------------------------------------------------------------------------------------

ACTIVATIONS: Final[Mapping[str, Callable[[Any, float, float], Any]]] = {
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "elu": lambda x, alpha, _: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "leakyrelu": lambda x, alpha, _: np.where(x < 0, alpha * x, x),
    "relu": lambda x, *_: np.maximum(x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "sigmoid": lambda x, *_: 1 / (1 + np.exp(-x)),
    "softplus": lambda x, *_: np.log1p(np.exp(x)),
    "softsign": lambda x, *_: x / (1 + np.abs(x)),
    "tanh": lambda x, *_: np.tanh(x),
    "thresholdedrelu": lambda x, alpha, _: np.where(x > alpha, x, 0),
}


def recurrent(op: str) -> Callable[..., tuple[np.ndarray, ...]]:
    """lstm, gru or rnn: one sequence after the other, one step after the other, gate by gate."""
    functions = {"lstm": 3, "gru": 2, "rnn": 1}[op]

    def reference(
        x: np.ndarray, w: np.ndarray, r: np.ndarray, *rest: np.ndarray, given: Sequence[str] = (),
        activations: Sequence[tuple[str, float, float]], direction: str = "forward", clip: float = 0.0, **options: bool,
    ) -> tuple[np.ndarray, ...]:  # fmt: skip
        named = dict(zip(given, rest, strict=True))
        (length, batch, _), (directions, rows, hidden) = x.shape, r.shape
        gates = rows // hidden
        steps = np.zeros((length, directions, batch, hidden))
        last = np.zeros((2, directions, batch, hidden))
        for d, k in np.ndindex(directions, batch):
            f = [
                lambda v, a=a: ACTIVATIONS[a[0]](np.clip(v, -clip, clip) if clip else v, *a[1:])
                for a in activations[functions * d : functions * (d + 1)]
            ]
            bias = named["bias"][d] if "bias" in named else np.zeros(2 * rows)
            wb, rb = bias[:rows].reshape(gates, hidden), bias[rows:].reshape(gates, hidden)
            wd, rd = w[d].reshape(gates, hidden, -1), r[d].reshape(gates, hidden, hidden)
            p = named["peepholes"][d].reshape(3, hidden) if "peepholes" in named else np.zeros((3, hidden))
            h, c = (named[s][d, k] if s in named else np.zeros(hidden) for s in ("state", "cell"))
            count = int(named["lengths"][k]) if "lengths" in named else length
            backward = direction == "reverse" or (direction == "bidirectional" and d == 1)
            for t in reversed(range(count)) if backward else range(count):
                of_x, of_h = wd @ x[t, k] + wb, rd @ h + rb
                if op == "rnn":
                    h = f[0](of_x[0] + of_h[0])
                elif op == "gru":
                    update, reset = f[0](of_x[0] + of_h[0]), f[0](of_x[1] + of_h[1])
                    seen = reset * of_h[2] if options.get("linear_before_reset") else rd[2] @ (reset * h) + rb[2]
                    h = (1 - update) * f[1](of_x[2] + seen) + update * h
                else:
                    z = of_x + of_h
                    i = f[0](z[0] + p[0] * c)
                    forget = 1 - i if options.get("input_forget") else f[0](z[2] + p[2] * c)
                    c = forget * c + i * f[1](z[3])
                    cell = activations[functions * d + 2]
                    h = f[0](z[1] + p[1] * c) * ACTIVATIONS[cell[0]](c, *cell[1:])
                steps[t, d, k] = h
            last[0, d, k], last[1, d, k] = h, c
        return (steps, last[0], last[1]) if op == "lstm" else (steps, last[0])

    return reference
