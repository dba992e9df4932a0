"""Regions of a map, on the host: connected components, and the smallest rectangles around them. Plain NumPy, a run of pixels at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ...late_dataclass import dataclass

MOST: Final = 1000
"""So many regions are looked at, the largest of a map."""
LEAST: Final = 3.0
"""A rectangle with a side of fewer pixels is noise."""
ALIKE: Final = 1 + 1e-9
DIGITS: Final = 6
"""Areas whose ratio is less are equal, and so are places with the same digits: rounding, which differs by language, does not choose."""


@dataclass(frozen=True)
class MapRegion:
    """corners (4, 2): x and y in the map, with edges at whole numbers, the top left one first, then clockwise. score: the map's mean
    within the rectangle before it grew."""

    corners: np.ndarray
    score: float


@dataclass(frozen=True)
class MaskRuns:
    """The runs of a mask, in reading order: row, first and last column of each, and the number of its component."""

    row: np.ndarray
    first: np.ndarray
    last: np.ndarray
    component: np.ndarray


def regions_of(chances: np.ndarray, threshold: float, least: float, grow: float) -> list[MapRegion]:
    """The regions of a map (height, width) above a threshold whose score is at least `least`, as rectangles that stand off by `grow`
    times the ratio of their area to their perimeter."""
    runs = runs_of(widened(chances > threshold))
    found: list[MapRegion] = []
    for points in _outlines(runs):
        corners = smallest_rectangle(points)
        if min(np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])) < LEAST:
            continue
        score = mean_within(chances, corners)
        if score >= least:
            found.append(MapRegion(ordered(grown(corners, grow)) + 0.5, score))
    return found


def widened(mask: np.ndarray) -> np.ndarray:
    """A mask with the pixels right of and below its own, which joins what is a pixel apart."""
    found = mask.copy()
    found[1:] |= mask[:-1]
    found[:, 1:] |= found[:, :-1].copy()
    return found


def runs_of(mask: np.ndarray) -> MaskRuns:
    """The runs of a mask, whose components join also at corners."""
    height, width = mask.shape
    stride = width + 2
    flat = np.zeros((height, stride), np.int8)
    flat[:, 1:-1] = mask
    changes = np.diff(flat.reshape(-1))
    first, last = np.flatnonzero(changes > 0), np.flatnonzero(changes < 0) - 1  # of columns, within rows of `stride`
    # The runs of the next row that touch a run are those that end no sooner than just before it, and begin no later than just after it.
    low = np.searchsorted(last, first + stride - 1)
    counts = np.maximum(np.searchsorted(first, last + stride + 1, "right") - low, 0)
    upper = np.repeat(np.arange(len(first)), counts)
    lower = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    return MaskRuns(first // stride, first % stride, last % stride, joined(len(first), upper, lower))


def joined(count: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The number of each element's component, where pairs of elements belong together; from 0, by their first elements."""
    root = np.arange(count)
    while True:
        a, b = root[one], root[other]
        apart = a != b
        if not apart.any():
            return np.unique(root, return_inverse=True)[1].reshape(-1)
        one, other, a, b = one[apart], other[apart], a[apart], b[apart]
        np.minimum.at(root, np.maximum(a, b), np.minimum(a, b))
        while not np.array_equal(root, root[root]):
            root = root[root]


def _outlines(runs: MaskRuns) -> Sequence[np.ndarray]:
    """For each component that is large enough, the ends of its runs as points (n, 2) of x and y; the largest MOST alone."""
    if not len(runs.row):
        return []
    order = np.argsort(runs.component, kind="stable")
    starts = np.flatnonzero(np.diff(runs.component[order], prepend=-1))
    row, first, last = (x[order] for x in (runs.row, runs.first, runs.last))
    high = np.maximum.reduceat(row, starts) - row[starts] + 1
    wide = np.maximum.reduceat(last, starts) - np.minimum.reduceat(first, starts) + 1
    sizes = np.add.reduceat(last - first + 1, starts)
    large = np.flatnonzero(np.minimum(high, wide) > LEAST)
    kept = np.sort(large[np.argsort(-sizes[large], kind="stable")[:MOST]])
    ends = np.append(starts[1:], len(order))
    return [
        np.stack([np.concatenate([first[a:b], last[a:b]]), np.concatenate([row[a:b], row[a:b]])], 1)
        for a, b in zip(starts[kept].tolist(), ends[kept].tolist(), strict=True)
    ]


def hull(points: np.ndarray) -> np.ndarray:
    """The corners of the convex hull of points (n, 2), clockwise as pictures have it, none on a line between others."""
    rows: list[tuple[float, float]] = sorted({(float(x), float(y)) for x, y in points.tolist()})
    if len(rows) < 3:
        return np.array(rows)
    halves: list[list[tuple[float, float]]] = []
    for way in (rows, rows[::-1]):
        half: list[tuple[float, float]] = []
        for x, y in way:
            while len(half) > 1:
                (x0, y0), (x1, y1) = half[-2:]
                if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0:
                    break
                half.pop()
            half.append((x, y))
        halves.append(half[:-1])
    return np.array(halves[0] + halves[1])


def smallest_rectangle(points: np.ndarray) -> np.ndarray:
    """The corners (4, 2) of the rectangle of least area around points: one of its sides lies on a side of their hull."""
    corners = hull(points)
    edges = np.roll(corners, -1, 0) - corners
    lengths = np.hypot(edges[:, 0], edges[:, 1])
    edges = edges[lengths > 0] / lengths[lengths > 0, None]
    if not len(edges):
        return np.repeat(corners[:1], 4, 0)
    along = edges @ corners.T
    across = np.stack([-edges[:, 1], edges[:, 0]], 1) @ corners.T
    spans = [x.min(1) for x in (along, across)], [x.max(1) for x in (along, across)]
    areas = (spans[1][0] - spans[0][0]) * (spans[1][1] - spans[0][1])
    best = int(np.argmax(areas <= areas.min() * ALIKE))
    u = edges[best]
    v = np.array([-u[1], u[0]])
    ways = ((0, 0), (1, 0), (1, 1), (0, 1))
    return np.array([spans[a][0][best] * u + spans[b][1][best] * v for a, b in ways])


def grown(corners: np.ndarray, ratio: float) -> np.ndarray:
    """A rectangle whose sides move out by `ratio` times its area by its perimeter."""
    right, down = corners[1] - corners[0], corners[3] - corners[0]
    width, height = np.linalg.norm(right), np.linalg.norm(down)
    far = ratio * width * height / (2 * (width + height))
    u, v = right / width * far, down / height * far
    return corners + np.stack([-u - v, u - v, u + v, v - u])


def ordered(corners: np.ndarray) -> np.ndarray:
    """Corners from the top left one on, clockwise: of the two on the left, the upper one is the first. One below another is not left of it."""
    around = corners - corners.mean(0)
    corners = corners[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
    left = np.lexsort((corners[:, 1], np.round(corners[:, 0], DIGITS)))[:2]
    return np.roll(corners, -int(left[np.argmin(corners[left, 1])]), 0)


def mean_within(values: np.ndarray, corners: np.ndarray) -> float:
    """The mean of a map's elements whose centres, at whole numbers, lie in a rectangle."""
    height, width = values.shape
    low = np.maximum(np.floor(corners.min(0)).astype(int), 0)
    high = np.minimum(np.ceil(corners.max(0)).astype(int), (width - 1, height - 1))
    part = values[low[1] : high[1] + 1, low[0] : high[0] + 1]
    x, y = np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)
    inside = np.ones(part.shape, bool)
    for side in (corners[1] - corners[0], corners[3] - corners[0]):
        length = float(np.linalg.norm(side)) or 1.0
        far = ((x - corners[0, 0]) * side[0])[None] / length + ((y - corners[0, 1]) * side[1])[:, None] / length
        inside &= (far > -0.5) & (far < length + 0.5)
    return float(part[inside].mean()) if inside.any() else 0.0
