"""Curves as inline SVG, whose colours are those of the page around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal

from ....late_dataclass import dataclass
from ....texts import in_html
from ...best_value import Mode
from ..plot_scales import labels, limits, number, powers, ticks
from .batches import Point

WIDTH: Final = 400
HEIGHT: Final = 236
TOP: Final = 8
BOTTOM: Final = 26
RIGHT: Final = 10
CHARACTER: Final = 6.4
"""About the width of a digit in a label."""
DECADES: Final = 1.5
"""A metric of which less is better has an axis of logarithms if its values span as many powers of ten."""


@dataclass(frozen=True)
class Series:
    """A curve: its name, the class of its colour, and how it is drawn: with its points, or without (smooth, faint)."""

    name: str
    colour: str
    points: Sequence[Point]
    way: Literal["line", "smooth", "faint", "dashed"] = "line"
    best: int | None = None
    """The epoch whose point is marked."""


def chart(title: str, series: Sequence[Series], mode: Mode | None) -> str:
    """A figure with a metric's curves; each point of an epoch tells its value when it is pointed at."""
    shown = [s for s in series if s.points]
    values = [y for s in shown for _, y in s.points]
    low, high = min(values, default=0.0), max(values, default=0.0)
    logarithms = mode == "least" and low > 0 and math.log10(high / low) >= DECADES
    y = limits(map(math.log10, values) if logarithms else values)
    heights, texts = powers(*y, 6) if logarithms else (found := ticks(*y, 5), labels(found))
    least, most = min((s.points[0][0] for s in shown), default=0.0), max((s.points[-1][0] for s in shown), default=1.0)
    x = (0.0 if least <= 1 < most else least, most) if most > least else (least - 0.5, least + 0.5)
    left = 10 + CHARACTER * max(map(len, texts), default=0)

    def place(at: float, value: float) -> Point:
        value = (math.log10(value) if value > 0 else y[0]) if logarithms else value
        down = (y[1] - value) / (y[1] - y[0])
        return (
            left + (at - x[0]) / (x[1] - x[0]) * (WIDTH - left - RIGHT),
            TOP + min(1.02, max(-0.02, down)) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{in_html(title)} by epoch">']
    for value, text in zip(heights, texts, strict=True):
        down = TOP + (y[1] - value) / (y[1] - y[0]) * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<path class="grid" d="M{left:.1f} {down:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="value" x="{left - 6:.1f}" y="{down + 3.5:.1f}">{in_html(text)}</text>')
    places = ticks(*x, 7, integers_only=True)
    for value, text in zip(places, labels(places), strict=True):
        across = left + (value - x[0]) / (x[1] - x[0]) * (WIDTH - left - RIGHT)
        parts.append(f'<text class="epoch" x="{across:.1f}" y="{HEIGHT - 10}">{in_html(text)}</text>')
    parts += [_curve(s, place) for s in shown]
    note = " <small>logarithmic</small>" if logarithms else ""
    return f"<figure><figcaption>{in_html(title)}{note}</figcaption>{''.join(parts)}</svg></figure>"


def _curve(series: Series, place: Callable[[float, float], Point]) -> str:
    at = [place(*point) for point in series.points]
    line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in at)
    parts = [f'<path class="{series.way} {series.colour}" d="{line}"/>'] if len(at) > 1 else []
    if series.way in ("smooth", "faint"):
        return "".join(parts)
    many = len(at) > 60
    for (x, value), (a, b) in zip(series.points, at, strict=True):
        epoch = math.ceil(x)
        best = epoch == series.best
        kind = "best" if best else "many" if many else "point"
        text = f"{series.name}, epoch {epoch}: {number(value)}{' (best)' if best else ''}"
        size = 4.5 if best else 2.2
        parts.append(
            f'<circle class="{kind} {series.colour}" cx="{a:.1f}" cy="{b:.1f}" r="{size}"><title>{in_html(text)}</title></circle>'
        )
    return "".join(parts)
