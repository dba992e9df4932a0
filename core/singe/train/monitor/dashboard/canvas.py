"""A screen as a grid of cells: texts, bars, and lines drawn in the 2 × 4 dots of braille characters.

A cell has a character and a style, which `STYLES` turns into a terminal's codes. Only the terminal's own colours of text and
background are used besides, so that a screen is readable on dark and on light ones.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ....texts import escaped

Point: TypeAlias = tuple[float, float]
STYLES: Final = {
    "": "",
    "bold": "1",
    "dim": "38;5;244",
    "faint": "38;5;240",
    "train": "38;5;39",
    "valid": "38;5;208",
    "good": "38;5;35",
    "warning": "38;5;172",
    "tab": "7",
    "question": "1;38;5;16;48;5;214",
}
"""Codes of the Select Graphic Rendition sequence for each style."""
COLOURLESS: Final = {"bold": "1", "dim": "2", "faint": "2", "tab": "7", "question": "7"}
"""Those for who wants no colours."""
DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a braille character, by row and column."""
BRAILLE: Final = 0x2800
EDGE: Final = 0.499
"""A point belongs to the nearest dot."""
BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NO_CELL: Final = ("Mn", "Me", "Cf")
"""The categories of characters that belong to the cell before them."""


class Canvas:
    """A grid of cells. What does not fit is cut off."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cells = [[(" ", "")] * width for _ in range(height)]

    def text(self, row: int, column: int, text: str, style: str = "", end: int | None = None) -> int:
        """Write a text that ends before the column `end`; returns the column after it."""
        end = self.width if end is None else min(end, self.width)
        if not 0 <= row < self.height:
            return column
        for char in escaped(text):
            if unicodedata.category(char) in _NO_CELL:
                continue
            wide = unicodedata.east_asian_width(char) in "WF"
            if column + wide >= end:
                break
            if column >= 0:
                self.cells[row][column] = (char, style)
                if wide:
                    self.cells[row][column + 1] = ("", style)
            column += 1 + wide
        return column

    def right(self, row: int, end: int, text: str, style: str = "", start: int = 0) -> int:
        """Write a text that ends before the column `end`, if it then begins at `start` or later; returns where it begins."""
        text = escaped(text)
        column = end - len(text)
        if column < start:
            return end
        self.text(row, column, text, style)
        return column

    def bar(self, row: int, column: int, width: int, part: float, style: str) -> None:
        """A bar of which a part is full."""
        halves = round(2 * width * min(1.0, max(0.0, part)))
        full, half = divmod(halves, 2)
        self.text(row, column, "─" * width, "faint")
        self.text(row, column, "━" * full + "╸" * half, style)

    def spark(self, row: int, column: int, width: int, values: Sequence[float], style: str) -> None:
        """A line of blocks, whose heights are the averages of even parts of the values."""
        if not values or width < 1:
            return
        count = min(width, len(values))
        parts = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
        means = [sum(p) / len(p) for p in parts]
        low, high = min(means), max(means)
        scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
        self.text(row, column, "".join(BLOCKS[round((m - low) * scale)] for m in means), style)

    def lines(self, colours: bool = True) -> list[str]:
        """Each row with the codes of its styles."""
        return [_coded(row, STYLES if colours else COLOURLESS) for row in self.cells]

    def plain(self) -> str:
        """The characters alone."""
        return "\n".join("".join(char for char, _ in row).rstrip() for row in self.cells)


def _coded(row: Sequence[tuple[str, str]], styles: Mapping[str, str]) -> str:
    parts, present = [], ""
    for char, style in row:
        codes = styles.get(style, "")
        if codes != present:
            parts.append(f"\x1b[0;{codes}m" if codes else "\x1b[0m")
            present = codes
        parts.append(char)
    return "".join(parts) + ("\x1b[0m" if present else "")


class Plot:
    """A rectangle of a canvas in which curves are drawn; x and y have their limits at its edges."""

    def __init__(self, canvas: Canvas, row: int, column: int, width: int, height: int, x: Point, y: Point) -> None:
        self.canvas, self.row, self.column, self.width, self.height = canvas, row, column, width, height
        self.x, self.y = x, y
        self._bits: dict[tuple[int, int], tuple[int, str]] = {}

    def dot(self, x: float, y: float) -> Point:
        """A point in dots from the upper left corner."""
        (left, right), (low, high) = self.x, self.y
        return (
            (x - left) / (right - left) * (2 * self.width - 1),
            (high - y) / (high - low) * (4 * self.height - 1),
        )

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """The row and the column of the canvas in which a point lies, or the nearest."""
        across, down = self.dot(x, y)
        return (
            self.row + min(self.height - 1, max(0, round(down) // 4)),
            self.column + min(self.width - 1, max(0, round(across) // 2)),
        )

    def line(self, points: Iterable[Point], style: str, gap: int = 1) -> None:
        """Join points by lines, of which each `gap`-th dot is drawn; what lies outside is cut off."""
        before: Point | None = None
        for point in points:
            here = self.dot(*point)
            self._segment(before or here, here, style, gap)
            before = here

    def _segment(self, start: Point, end: Point, style: str, gap: int) -> None:
        wide, high = 2 * self.width, 4 * self.height
        part = _inside(start, end, wide - 1, high - 1)
        if part is None:
            return
        (x0, y0), (x1, y1) = part
        count = max(1, round(max(abs(x1 - x0), abs(y1 - y0))))
        for i in range(0, count + 1, gap):
            x, y = (math.floor(a + (b - a) * i / count + 0.5) for a, b in ((x0, x1), (y0, y1)))
            if 0 <= x < wide and 0 <= y < high:
                at = y // 4, x // 2
                bits, owner = self._bits.get(at, (0, style))
                self._bits[at] = (bits if owner == style else 0) | DOTS[y % 4][x % 2], style

    def draw(self) -> None:
        """Put the curves on the canvas."""
        for (row, column), (bits, style) in self._bits.items():
            self.canvas.cells[self.row + row][self.column + column] = (chr(BRAILLE | bits), style)


def _inside(start: Point, end: Point, width: float, height: float) -> tuple[Point, Point] | None:
    """The part of a line within the dots from (0, 0) to (width, height)."""
    (x0, y0), (x1, y1) = start, end
    first, last = 0.0, 1.0
    for at, way, most in ((x0, x1 - x0, width), (y0, y1 - y0, height)):
        low, high = -EDGE, most + EDGE
        if way == 0:
            if not low <= at <= high:
                return None
            continue
        a, b = sorted(((low - at) / way, (high - at) / way))
        first, last = max(first, a), min(last, b)
    if first > last:
        return None
    return (x0 + (x1 - x0) * first, y0 + (y1 - y0) * first), (x0 + (x1 - x0) * last, y0 + (y1 - y0) * last)


def columns(points: Sequence[Point], x: Point, count: int) -> list[Point]:
    """The averages of points within each of `count` even parts of an axis: a curve with a point for a column of dots."""
    if len(points) <= count:
        return list(points)
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(int((point[0] - x[0]) / (x[1] - x[0]) * count), []).append(point)
    return [(sum(a for a, _ in p) / len(p), sum(b for _, b in p) / len(p)) for _, p in sorted(parts.items())]
