"""What layers give, or what weights and gradients hold, in figures: one line for each, as a table and as a picture.

The mean, the deviation, and the least and the most are those of the finite numbers; NaN and infinity are counted beside them. Figures
of several calls of a layer are those of all of their numbers together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from ..dtypes import widened
from ..errors import InputError
from ..files import write
from ..late_dataclass import dataclass
from ..report import LEFT, LINE, NAMES, RIGHT, PictureLine, bar, picture, table
from ..shapes import show

SCALE: Final = 330
FIGURES: Final = 170
"""The widths of the picture's scale and its figures, in pixels."""
BOX: Final = "#2f5eb5"
FAULT: Final = "#b04646"
"""The colour of a line's box, and that of one which holds NaN or infinity."""


@dataclass(frozen=True)
class Figures:
    """Of one layer, parameter or gradient. shape: of the first array, size: how many numbers all of them have."""

    name: str
    kind: str
    shape: tuple[int, ...]
    size: int
    mean: float
    std: float
    least: float
    most: float
    zeros: float
    """The share of zeros, from 0 to 1."""
    nan: int
    infinite: int
    bins: tuple[int, ...] = ()
    """How many finite numbers are in each of equal parts from the least to the most, where that was counted; equal numbers are one part."""

    @property
    def norm(self) -> float:
        """The root of the sum of the squares of the finite numbers."""
        return (
            math.sqrt((self.size - self.nan - self.infinite) * (self.std**2 + self.mean**2))
            if math.isfinite(self.mean)
            else 0.0
        )

    def __add__(self, other: Figures) -> Figures:
        """Those of both."""
        counts = [x.size - x.nan - x.infinite for x in (self, other)]
        both = sum(counts)
        if not all(counts):
            mean, std = (self.mean, self.std) if counts[0] else (other.mean, other.std)
        else:
            mean = (self.mean * counts[0] + other.mean * counts[1]) / both
            parts = zip(counts, (self, other), strict=True)
            std = math.sqrt(sum(n * (x.std**2 + (x.mean - mean) ** 2) for n, x in parts) / both)
        size = self.size + other.size
        zeros = (self.zeros * self.size + other.zeros * other.size) / size if size else 0.0
        least, most = np.fmin(self.least, other.least), np.fmax(self.most, other.most)
        nan, infinite = self.nan + other.nan, self.infinite + other.infinite
        return Figures(
            self.name, self.kind, self.shape, size, mean, std, float(least), float(most), zeros, nan, infinite
        )


def figures(name: str, kind: str, x: Any, bins: int = 0) -> Figures:
    """The figures of an array of numbers. bins: in how many parts they are counted."""
    array = np.asarray(widened(np.asarray(x)))
    wide = np.abs(array) if array.dtype.kind == "c" else array
    values = wide.astype(np.float64).ravel()
    nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    finite = values[np.isfinite(values)] if nan or infinite else values
    zeros = float((values == 0).mean()) if values.size else 0.0
    mean, std, least, most = (float(f(finite)) if finite.size else math.nan for f in (np.mean, np.std, np.min, np.max))
    counts = tuple(map(int, np.histogram(finite, bins if most > least else 1)[0])) if bins and finite.size else ()
    return Figures(name, kind, array.shape, values.size, mean, std, least, most, zeros, nan, infinite, counts)


@dataclass(frozen=True)
class LayerStatistics:
    """Figures of layers, in their order: print it for a table; a notebook shows a picture, and `save` writes it."""

    rows: tuple[Figures, ...]

    @staticmethod
    def of(found: Iterable[Figures]) -> LayerStatistics:
        """Those of one name are added up."""
        rows: dict[str, Figures] = {}
        for each in found:
            rows[each.name] = rows[each.name] + each if each.name in rows else each
        return LayerStatistics(tuple(rows.values()))

    def __getitem__(self, name: str) -> Figures:
        """The figures of one layer."""
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(row.name for row in self.rows) or "none"
        raise InputError(f"statistics: there is no layer {name!r}; there are {names}")

    def __str__(self) -> str:
        columns = [
            ("layer", LEFT), ("kind", LEFT), ("shape", LEFT), ("mean", RIGHT), ("std", RIGHT), ("min", RIGHT), ("max", RIGHT),
            ("zeros", RIGHT), ("NaN", RIGHT), ("inf", RIGHT),
        ]  # fmt: skip
        lines = [
            (r.name, r.kind, show(r.shape), *(f"{v:.4g}" for v in (r.mean, r.std, r.least, r.most)), f"{r.zeros:.1%}", r.nan or "", r.infinite or "")
            for r in self.rows
        ]  # fmt: skip
        return table(columns, lines)

    def _repr_svg_(self) -> str:
        """A line from the least to the most, and a box of a deviation on each side of the mean. The scale is the logarithm of large numbers
        of each sign, and even near zero."""
        unit = median([r.std for r in self.rows if r.std > 0] or [1.0])
        ends = [v for r in self.rows for v in (r.least, r.most) if math.isfinite(v)]
        low, high = (math.asinh(f([*ends, 0.0]) / unit) for f in (min, max))
        wide = (high - low) or 1.0

        def at(value: float) -> float:
            return NAMES + SCALE * (math.asinh(value / unit) - low) / wide

        lines: list[PictureLine] = []
        for r in self.rows:
            label = f"{r.name} {r.kind}".strip()
            faults = [f"{n} {what}" for n, what in ((r.nan, "NaN"), (r.infinite, "infinite")) if n]
            colour, marks = FAULT if faults else BOX, ""
            if math.isfinite(r.mean):
                left, right = at(max(r.mean - r.std, r.least)), at(min(r.mean + r.std, r.most))
                told = f"{label}: mean {r.mean:.4g}, std {r.std:.4g}, min {r.least:.4g}, max {r.most:.4g}"
                marks = f'<path d="M{at(r.least):.1f} 10H{at(r.most):.1f}" stroke="{colour}"/>{bar(left, right - left, colour, told)}'
            said = ", ".join(faults) or f"{r.mean:.3g} ± {r.std:.3g}" + (f", {r.zeros:.0%} zeros" if r.zeros else "")
            lines.append(PictureLine(label, marks, said, NAMES + SCALE + 8))
        zero = (
            f'<path d="M{at(0.0):.1f} {LINE}V{LINE * (len(lines) + 1) + 8}" stroke="#8b95a3" stroke-dasharray="2 3"/>'
        )
        heading = "min to max; mean and one deviation on each side"
        return picture("The numbers that each layer gives", heading, lines, NAMES + SCALE + FIGURES, zero)

    def save(self, path: str | Path) -> None:
        """Write the picture (.svg)."""
        if Path(path).suffix.lower() != ".svg":
            raise InputError(f"save: {path}: statistics are a picture, .svg; got {Path(path).suffix or 'no suffix'}")
        write(Path(path), [self._repr_svg_().encode()])
