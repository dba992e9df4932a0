"""A search along a line for a step that satisfies the strong Wolfe conditions: the loss falls enough, and its slope enough.

As in Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with cubic interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ..late_dataclass import dataclass

ENOUGH_FALL: Final = 1e-4
"""The loss must fall by this share of what its slope at the start promises."""
ENOUGH_FLAT: Final = 0.9
"""The slope must shrink to this share of that at the start."""
MOST_TRIALS: Final = 25


@dataclass(frozen=True)
class LinePoint:
    """A point on the line: how far it is along the direction, and the loss, its slope along the line and its gradient."""

    at: float
    loss: float
    slope: float
    gradient: Any


def search(
    visit: Callable[[float], LinePoint], start: LinePoint, first: float, reach: float, smallest: float
) -> tuple[LinePoint, int]:
    """A place that satisfies the conditions, or else the best one found; and how many were visited.

    first: the step to try first. reach: the largest change of an element per step of 1; `smallest`: the least change that
    matters.
    """

    def rises(place: LinePoint, best: LinePoint) -> bool:
        return place.loss > start.loss + ENOUGH_FALL * place.at * start.slope or (
            best is not start and place.loss >= best.loss
        )

    def flat(place: LinePoint) -> bool:
        return abs(place.slope) <= -ENOUGH_FLAT * start.slope

    before, here = start, visit(first)
    trials = 0
    while trials < MOST_TRIALS:
        # The first two places are only held against the start: a slower rise there may still lead to a deeper valley.
        if rises(here, before if trials > 1 else start):
            break
        if flat(here):
            return here, trials + 1
        if here.slope >= 0:
            break
        low, high = here.at + 0.01 * (here.at - before.at), 10 * here.at
        before, here = here, visit(between(before, here, low, high))
        trials += 1
    if trials == MOST_TRIALS:
        before = start
    low, high = (before, here) if before.loss <= here.loss else (here, before)
    stuck = False
    while trials < MOST_TRIALS and abs(high.at - low.at) * reach >= smallest:
        left, right = sorted((low.at, high.at))
        at = between(low, high, left, right)
        margin = 0.1 * (right - left)
        near = min(right - at, at - left) < margin
        if near and (stuck or at >= right or at <= left):
            at = right - margin if abs(at - right) < abs(at - left) else left + margin
            near = False
        stuck = near
        here = visit(at)
        trials += 1
        if here.loss > start.loss + ENOUGH_FALL * here.at * start.slope or here.loss >= low.loss:
            low, high = (low, here) if low.loss <= here.loss else (here, low)
        elif flat(here):
            low = here
            break
        else:
            low, high = here, low if here.slope * (high.at - low.at) >= 0 else high
    return low, trials + 1


def between(a: LinePoint, b: LinePoint, low: float, high: float) -> float:
    """Where the cubic through two places, with their slopes, is smallest; within low and high."""
    a, b = (a, b) if a.at <= b.at else (b, a)
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = bend * bend - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = b.slope - a.slope + 2 * root
    if below == 0:
        return (low + high) / 2
    return min(max(b.at - (b.at - a.at) * ((b.slope + root - bend) / below), low), high)
