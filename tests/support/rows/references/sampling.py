"""Elements read at places between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from .each import Index, each


def _reflect(place: float, low: float, high: float) -> float:
    if high <= low:
        return low
    while not low <= place <= high:
        place = 2 * low - place if place < low else 2 * high - place
    return place


def _keys(t: float) -> float:
    """The cubic weight at a distance, with the coefficient −0.75."""
    a, t = -0.75, abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


_TAPS: Final[Mapping[str, Callable[[float], list[tuple[int, float]]]]] = {
    "nearest": lambda x: [(round(x), 1.0)],
    "linear": lambda x: [(i, 1 - abs(x - i)) for i in (math.floor(x), math.floor(x) + 1)],
    "cubic": lambda x: [(i, _keys(x - i)) for i in range(math.floor(x) - 1, math.floor(x) + 3)],
}


def _axis(
    place: float, d: int, mode: str, padding: str, low: float, high: float, by_element: bool = False
) -> Iterator[tuple[int, float]]:
    """The pairs (index, weight) of the elements around a place; elements that count as zero are left out."""
    place = round(place) if mode == "nearest" else place
    if not low <= place <= high:
        if padding == "border" and not by_element:
            place = min(max(place, 0), d - 1)
        elif padding == "reflection":
            place = _reflect(place, low, high)
    for index, weight in _TAPS[mode](place):
        if padding == "border":
            yield min(max(index, 0), d - 1), weight
        elif padding == "reflection":
            yield min(max(int(_reflect(index, low, high)), 0), d - 1), weight
        elif 0 <= index < d:
            yield index, weight


def _at(x: np.ndarray, axes: Sequence[Sequence[tuple[int, float]]]) -> Any:
    if all(len(taps) == 1 and taps[0][1] == 1 for taps in axes):
        return x[tuple(taps[0][0] for taps in axes)]
    return sum(x[tuple(i for i, _ in taps)] * math.prod(w for _, w in taps) for taps in product(*axes))


def grid_sample(
    x: np.ndarray, grid: np.ndarray, mode: str = "linear", padding: str = "zeros", align_corners: bool = False, by_element: bool = False
) -> np.ndarray:  # fmt: skip
    space = x.shape[2:]

    def element(at: Index) -> Any:
        n, c, *place = at
        axes = []
        for d, g in zip(space, grid[(n, *place)][::-1], strict=True):
            where = (g + 1) / 2 * (d - 1) if align_corners else ((g + 1) * d - 1) / 2
            low, high = (0, d - 1) if align_corners else (-0.5, d - 0.5)
            axes.append(list(_axis(float(where), d, mode, padding, low, high, by_element)))
        return _at(x[n, c], axes)

    return each((*x.shape[:2], *grid.shape[1:-1]), x.dtype, element)


def affine_grid(theta: np.ndarray, space: Sequence[int], align_corners: bool = False) -> np.ndarray:
    out = np.empty((theta.shape[0], *space, len(space)), theta.dtype)
    for at in np.ndindex(*space):
        place = [
            (2 * i / max(d - 1, 1) if align_corners else (2 * i + 1) / d) - 1 for i, d in zip(at, space, strict=True)
        ]
        out[(slice(None), *at)] = theta @ np.array([*reversed(place), 1.0])
    return out


def deform_conv(
    x: np.ndarray, w: np.ndarray, offset: np.ndarray, bias: Any = None, mask: Any = None, *,
    strides: Any, dilations: Any, before: Any, after: Any, group: int, offset_group: int,
) -> np.ndarray:  # fmt: skip
    space, window = x.shape[2:], w.shape[2:]
    places = offset.shape[2:]
    moved = offset.reshape(x.shape[0], offset_group, *window, len(space), *places)
    marks = np.ones((x.shape[0], offset_group, *window, *places)) if mask is None else mask
    marks = marks.reshape(x.shape[0], offset_group, *window, *places)

    def element(at: Index) -> Any:
        n, o, *place = at
        total = 0.0 if bias is None else bias[o]
        for i, *tap in np.ndindex(*w.shape[1:]):
            c = o // (w.shape[0] // group) * w.shape[1] + i
            g = c // (x.shape[1] // offset_group)
            axes = []
            for axis, d in enumerate(space):
                start = place[axis] * strides[axis] - before[axis] + tap[axis] * dilations[axis]
                axes.append(list(_axis(float(start + moved[(n, g, *tap, axis, *place)]), d, "linear", "zeros", 0, d)))
            total += w[(o, i, *tap)] * marks[(n, g, *tap, *place)] * _at(x[n, c], axes)
        return total

    return each((x.shape[0], w.shape[0], *places), x.dtype, element)


def roi_align(
    x: np.ndarray, rois: np.ndarray, batches: np.ndarray, *, size: Sequence[int], samples: Sequence[int],
    adaptive: bool = False, mode: str = "avg", scale: float = 1.0, half_pixel: bool = True,
) -> np.ndarray:  # fmt: skip
    def element(at: Index) -> Any:
        r, c, *part = at
        picture = x[int(batches[r]), c]
        axes = []
        for axis in range(2):
            start, end = (rois[r, k - axis] * scale - (0.5 if half_pixel else 0) for k in (1, 3))
            extent = (end - start if half_pixel else max(end - start, 1.0)) / size[axis]
            count = min(max(0, math.ceil(extent)), samples[axis]) if adaptive else samples[axis]
            axes.append([start + part[axis] * extent + (k + 0.5) * extent / count for k in range(count)])
        values = []
        for place in product(*axes):
            if any(not -1 <= p <= d for p, d in zip(place, picture.shape, strict=True)):
                values.append([0.0])
                continue
            taps = (
                _axis(min(max(p, 0), d - 1), d, "linear", "border", 0, d)
                for p, d in zip(place, picture.shape, strict=True)
            )
            values.append([picture[i, j] * u * v for (i, u), (j, v) in product(*map(list, taps))])
        if not values:
            return 0.0
        return max(map(max, values)) if mode == "max" else sum(map(sum, values)) / len(values)

    return each((rois.shape[0], x.shape[1], *size), x.dtype, element)


def _rounded(x: float) -> int:
    """The nearest integer; halves are rounded away from 0."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def max_roi_pool(
    x: np.ndarray, rois: np.ndarray, batches: np.ndarray, *, size: Sequence[int], scale: float = 1.0
) -> np.ndarray:
    def element(at: Index) -> Any:
        r, c, *part = at
        cuts = []
        for axis in range(2):
            start, end = (_rounded(rois[r, k - axis] * scale) for k in (1, 3))
            extent = max(end - start + 1, 1) / size[axis]
            low, high = start + math.floor(part[axis] * extent), start + math.ceil((part[axis] + 1) * extent)
            cuts.append(slice(max(low, 0), max(high, 0)))
        inside = x[(int(batches[r]), c, *cuts)]
        return inside.max() if inside.size else 0

    return each((rois.shape[0], x.shape[1], *size), x.dtype, element)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "grid_sample": grid_sample,
    "affine_grid": affine_grid,
    "deform_conv": deform_conv,
    "roi_align": roi_align,
    "max_roi_pool": max_roi_pool,
}
"""By the names of rows."""
