"""The axes of plots: limits that show what matters, round numbers to write at them, and numbers as short texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
SPIKE: Final = 4.0
"""A few values further from the others than this many times their spread are cut off."""


def limits(values: Iterable[float]) -> tuple[float, float]:
    """The least and the most that an axis shows of finite values. A few that lie far outside the others are left out."""
    found = sorted(values)
    if not found:
        return 0.0, 1.0
    low, high = found[0], found[-1]
    few = len(found) // 50
    if few:
        inner = found[few], found[-1 - few]
        reach = SPIKE * (inner[1] - inner[0])
        low, high = max(low, inner[0] - reach), min(high, inner[1] + reach)
    if high - low < 1e-9 * max(abs(high), abs(low), 1e-30):
        room = abs(high) * 0.1 or 0.5
        return low - room, high + room
    return low, high


def ticks(low: float, high: float, count: int, integers_only: bool = False) -> list[float]:
    """At most `count` round numbers between two, with even gaps; at least one, if there is one between them.

    integers_only: whole numbers only, if two lie between them.
    """
    if count < 1 or not high > low:
        return []
    power = 10.0 ** math.floor(math.log10((high - low) / count))
    gaps = [power * step * more for more in (1, 10) for step in STEPS]
    for gap in gaps:
        if integers_only and high - low >= 2 and gap % 1:
            continue
        first, last = math.ceil(low / gap - 1e-9), math.floor(high / gap + 1e-9)
        if 0 < last - first + 1 <= count:
            return [n * gap for n in range(first, last + 1)]
    return []


def powers(low: float, high: float, count: int) -> tuple[list[float], list[str]]:
    """Ticks of an axis of logarithms between two, and their texts: round numbers such as 0.05, 0.1 and 0.2."""
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [(n, d) for n in range(math.floor(low), math.ceil(high) + 1) for d in digits]
        found = [(n, d) for n, d in found if low <= n + math.log10(d) <= high]
        if 1 < len(found) <= count:
            return [n + math.log10(d) for n, d in found], [f"{d * 10.0**n:.6g}" for n, d in found]
    values = ticks(low, high, count)
    return values, [number(10.0**v) for v in values]


def labels(values: Sequence[float]) -> list[str]:
    """Ticks as texts with as many digits as tell them apart."""
    if not values:
        return []
    gap = abs(values[1] - values[0]) if len(values) > 1 else abs(values[0]) or 1.0
    most = max(abs(v) for v in values)
    if most >= 1e6 or 0 < gap < 1e-4:
        digits = _digits(values, gap, "e")
        return [f"{v:.{digits}e}".replace("e-0", "e-").replace("e+0", "e") if v else "0" for v in values]
    return [f"{v + 0.0:,.{_digits(values, gap, 'f')}f}" for v in values]


def _digits(values: Sequence[float], gap: float, form: str) -> int:
    """The least number of digits with which every value is written exactly, compared with the gap between them."""
    for digits in range(7):
        if all(abs(float(f"{v:.{digits}{form}}") - v) <= gap * 1e-3 for v in values):
            return digits
    return 7


def number(value: float) -> str:
    """A value of a metric, in at most seven characters where it can be; a count as it is."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if value == 0:
        return "0"
    if size < 1e-3:
        return f"{value:.2e}".replace("e-0", "e-")
    if size >= 1e6:
        return f"{value:.3e}".replace("e+0", "e")
    return f"{value:,.{max(0, 4 - max(0, math.floor(math.log10(size))))}f}" if size < 1e4 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A time: 0:42, 12:05, 3:02:11, 2 d 4 h."""
    whole = round(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"
