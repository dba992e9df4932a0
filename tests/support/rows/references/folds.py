"""Folds over axes and windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .each import Index, each
from .elementwise import divide


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


def _numbered(shape: Any, facts: Any, numbers: Any) -> Callable[[Index], list[tuple[Index, int]]]:
    """For the place of a window its elements' places, each with the number of its place in the window."""
    taps, strides, dilations, before = (facts[k] for k in ("window", "strides", "dilations", "before"))
    return lambda at: [
        (place, int(np.dot(tap, numbers))) for tap, place in window(at, shape, taps, strides, dilations, before)
    ]


def _places(shape: Any, facts: Any) -> list[int]:
    names = ("window", "strides", "dilations", "before", "after")
    return [places(*every) for every in zip(shape, *(facts[k] for k in names), strict=True)]


def pool_place(x: np.ndarray, *, numbers: Any, **facts: Any) -> np.ndarray:
    met = _numbered(x.shape, facts, numbers)

    def first(at: Index) -> int:
        top = max(x[p] for p, _ in met(at))
        return min(number for p, number in met(at) if x[p] == top)

    return each(_places(x.shape, facts), np.int32, first)


def pool_pick(x: np.ndarray, place: np.ndarray, *, numbers: Any, **facts: Any) -> np.ndarray:
    met = _numbered(x.shape, facts, numbers)
    return each(place.shape, x.dtype, lambda at: sum(x[p] for p, number in met(at) if number == place[at]))


def unpool_pick(g: np.ndarray, place: np.ndarray, *, sizes: Any, numbers: Any, **facts: Any) -> np.ndarray:
    met, out = _numbered(sizes, facts, numbers), np.zeros(sizes, g.dtype)
    for at in np.ndindex(*g.shape):
        for p, number in met(at):
            out[p] += g[at] if number == place[at] else 0
    return out


def unpool_sum(g: np.ndarray, *, sizes: Any, numbers: Any, **facts: Any) -> np.ndarray:
    met, out = _numbered(sizes, facts, numbers), np.zeros(sizes, g.dtype)
    for at in np.ndindex(*g.shape):
        for p, _ in met(at):
            out[p] += g[at]
    return out


def joint_norm(*several: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(np.concatenate([x.ravel() for x in several])))


def layer_norm(x: np.ndarray, scale: Any = 1.0, shift: Any = 0.0, axis: int = -1, epsilon: float = 1e-5) -> np.ndarray:
    axes = tuple(range(axis % x.ndim, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon) * scale + shift


def rms_norm(x: np.ndarray, scale: Any = 1.0, axis: int = -1, epsilon: float = 1e-5) -> np.ndarray:
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x / np.sqrt(np.square(x).mean(axes, keepdims=True) + epsilon) * scale


def place(extreme: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """The index of the extreme element along an axis, found one line at a time."""

    def reference(x: np.ndarray, axis: int, last: bool = False) -> np.ndarray:
        axis %= x.ndim

        def one(at: Index) -> int:
            line = x[(*at[:axis], slice(None), *at[axis + 1 :])]
            hits = np.flatnonzero((line == extreme(line)) | (line != line))
            return int(hits[-1 if last else 0])

        return each([1 if i == axis else d for i, d in enumerate(x.shape)], np.int64, one)

    return reference


def hardmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return (np.indices(x.shape)[axis % x.ndim] == place(np.max)(x, axis)).astype(x.dtype)


def nll_loss(
    x: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:
    """Minus x at the targets, one place at a time."""
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(*target.shape):
        kind = int(target[place])
        if kind != ignore_index:
            weights[place] = 1 if weight is None else weight[kind]
            losses[place] = -x[(place[0], kind, *place[1:])] * weights[place]
    if reduction == "none":
        return losses
    return losses.sum() / (weights.sum() if reduction == "mean" else 1)


def cross_entropy(x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, **attrs: Any) -> Any:
    return nll_loss(np.log(softmax(x, 1)), target, weight, **attrs)


def path_sums(first: np.ndarray, *steps: np.ndarray) -> np.ndarray:
    found, sums = [], first
    for number in range(len(steps[0])):
        after = np.full_like(sums, -np.inf)
        for jump, step in enumerate(steps):
            for state in range(jump, sums.shape[1]):
                after[:, state] = np.logaddexp(after[:, state], sums[:, state - jump] + step[number, :, state])
        sums = after
        found.append(sums)
    return np.array(found).reshape(len(steps[0]), *first.shape)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "argmax": place(np.max),
    "argmin": place(np.min),
    "hardmax": hardmax,
    "nll_loss": nll_loss,
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "joint_norm": joint_norm,
    "rms_norm": rms_norm,
    "path_sums": path_sums,
    "reduce_sum": lambda x, axes: x.sum(axes, keepdims=True, dtype=np.float64 if x.dtype.kind == "f" else x.dtype),
    "reduce_prod": lambda x, axes: x.prod(axes, keepdims=True, dtype=np.float64 if x.dtype.kind == "f" else x.dtype),
    "reduce_max": extreme(np.maximum, lambda d: -np.inf if d.kind == "f" else np.iinfo(d).min),
    "reduce_min": extreme(np.minimum, lambda d: np.inf if d.kind == "f" else np.iinfo(d).max),
    "reduce_mean": mean,
    "softmax": softmax,
    "log_softmax": lambda x, axis=-1: np.log(softmax(x, axis)),
    "global_average_pool": lambda x: mean(x, tuple(range(2, x.ndim))),
    "global_max_pool": lambda x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "running_sum": running(np.cumsum),
    "running_prod": running(np.cumprod),
    "running_max": running(np.maximum.accumulate),
    "pool_place": pool_place,
    "pool_pick": pool_pick,
    "unpool_pick": unpool_pick,
    "unpool_sum": unpool_sum,
    "max_pool": max_pool,
    "max_pool_index": max_pool_index,
    "pool_sum": pool_sum,
}
"""By the names of rows."""
