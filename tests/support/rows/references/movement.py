"""Moved, resampled and updated elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .each import Index, each


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


def gather_elements(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    def element(at: Index) -> Any:
        place = list(at)
        place[axis] = int(index[at])
        return x[tuple(place)]

    return each(index.shape, x.dtype, element)


def gather_nd(x: np.ndarray, index: np.ndarray, batch: int) -> np.ndarray:
    out = np.empty((*index.shape[:-1], *x.shape[batch + index.shape[-1] :]), x.dtype)
    for at in np.ndindex(*index.shape[:-1]):
        out[at] = x[(*at[:batch], *map(int, index[at]))]
    return out


def diagonal(x: np.ndarray, axis1: int = 0, axis2: int = 1, offset: int = 0) -> np.ndarray:
    moved = np.moveaxis(x, (axis1, axis2), (-2, -1))
    pairs = [(i, i + offset) for i in range(moved.shape[-2]) if 0 <= i + offset < moved.shape[-1]]
    return each((*moved.shape[:-2], len(pairs)), x.dtype, lambda at: moved[(*at[:-1], *pairs[at[-1]])])


def unfold(x: np.ndarray, axis: int, length: int, step: int = 1, dilation: int = 1) -> np.ndarray:
    moved = np.moveaxis(x, axis, -1)
    starts = range(0, moved.shape[-1] - (length - 1) * dilation, step)
    rows = [moved[..., start : start + (length - 1) * dilation + 1 : dilation] for start in starts]
    return np.stack(rows, axis % x.ndim)


def overlap_add(x: np.ndarray, axis: int, length: int, step: int = 1, dilation: int = 1) -> np.ndarray:
    axis %= x.ndim - 1
    out = np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 : -1]), x.dtype)
    for at in np.ndindex(*x.shape):
        *place, k = at
        place[axis] = place[axis] * step + k * dilation
        out[tuple(place)] += x[at]
    return out


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


def _limits(kind: np.dtype[Any]) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


def tree_steps(at: np.ndarray, x: np.ndarray, *table: np.ndarray, steps: int) -> np.ndarray:
    def walk(place: Index) -> int:
        here = at[min(place[0], len(at) - 1), place[1]]
        for _ in range(steps):
            feature, split, below, other, *missing = (t[here] for t in table)
            value = x[place[0], feature]
            here = below if value <= split or (missing and missing[0] and math.isnan(value)) else other
        return int(here)

    return each((x.shape[0], at.shape[1]), np.int32, walk)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "gather": gather,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "reshape": lambda x, shape: np.array(x.ravel().tolist(), x.dtype).reshape(shape),
    "transpose": lambda x, perm: np.moveaxis(x, perm, range(x.ndim)),
    "expand": expand,
    "slice": slice_,
    "pad": pad,
    "concat": concat,
    "arange": lambda start, step, count: np.array([start + i * step for i in range(count)], start.dtype),
    "resize": resize,
    "diagonal": diagonal,
    "unfold": unfold,
    "overlap_add": overlap_add,
    "tree_steps": tree_steps,
    "tril": lambda x, diagonal=0: np.tril(x, diagonal),
    "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "update_slice": update_slice,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
}
"""By the names of rows."""
