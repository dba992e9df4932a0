"""Boxes, lines and texts of a drawing, as SVG. Colours are classes, which docs.css sets for light and dark."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, TypeVar

GLYPH: Final = 7
"""The width of a letter, about: texts are set in 12 px."""
Key = TypeVar("Key", bound=Hashable)


@dataclass
class Sheet:
    """A drawing while it is made; it becomes as large as what is on it."""

    parts: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, text: str, quiet: bool = False, middle: bool = False) -> None:
        """y: of the line on which the letters stand."""
        kinds = " ".join([*(["quiet"] if quiet else []), *(["middle"] if middle else [])])
        self.parts.append(
            f'<text{f" class={chr(34)}{kinds}{chr(34)}" if kinds else ""} x="{x:g}" y="{y:g}">{escape(text)}</text>'
        )
        self._reach(x + GLYPH * len(text) / (2 if middle else 1), y + 4)

    def box(self, x: float, y: float, width: float, height: float, kind: int | str = 0, corner: float = 4) -> None:
        """kind: the number of a colour, or "outline"."""
        name = f"c{kind % 4}" if isinstance(kind, int) else kind
        self.parts.append(
            f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}"/>'
        )
        self._reach(x + width, y + height)

    def path(self, commands: str, kind: str = "line") -> None:
        """A line that is not filled; what it reaches is not counted."""
        self.parts.append(f'<path class="{kind}" d="{commands}"/>')

    def html(self, title: str) -> str:
        """The drawing, as wide as it is: a narrow page moves it from side to side."""
        width, height = self.width + 2, self.height + 2
        return f'<div class="scroll" role="group" aria-label="{escape(title)}" tabindex="0"><svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">{"".join(self.parts)}</svg></div>'  # noqa: E501


@dataclass(frozen=True)
class Item:
    """A box of a net: two lines of text, a colour, and the boxes that it reads."""

    text: str
    below: str = ""
    kind: int = 0
    reads: Sequence[Hashable] = ()


def net(items: dict[Key, Item], title: str) -> str:
    """Boxes in columns: each stands right of all that it reads. The items come in an order in which they can run."""
    column: dict[Hashable, int] = {}
    for key, item in items.items():
        column[key] = max((column[k] + 1 for k in item.reads if k in column), default=0)
    last = max(column.values())
    for key, item in items.items():  # what reads nothing stands beside its reader
        readers = [column[k] for k, other in items.items() if key in other.reads]
        if not item.reads and readers:
            column[key] = min(readers) - 1
    wide = [
        max(GLYPH * max(len(items[k].text), len(items[k].below)) + 16 for k in items if column[k] == c)
        for c in range(last + 1)
    ]
    lefts = [sum(wide[:c]) + 26 * c for c in range(last + 1)]
    rows: dict[Hashable, int] = {}
    taken: dict[int, set[int]] = {}
    for key, item in items.items():
        wanted = min((rows[k] for k in item.reads if k in rows), default=0)
        # A row on which no line from what it reads would pass behind another box.
        spans = [(column[k] + 1, column[key]) for k in item.reads if k in column] or [(column[key], column[key])]
        between = range(min(a for a, _ in spans), column[key] + 1)
        row = next(r for r in range(wanted, 99) if all(r not in taken.get(c, ()) for c in between))
        rows[key] = row
        for c in between:
            taken.setdefault(c, set()).add(row)
    sheet = Sheet()
    for key, item in items.items():
        x, y = lefts[column[key]], 46 * rows[key]
        for k in item.reads:
            from_x, from_y = lefts[column[k]] + wide[column[k]], 46 * rows[k] + 17
            bend = from_x + 26
            sheet.path(
                f"M{from_x:g} {from_y:g}C{bend - 9:g} {from_y:g} {from_x + 9:g} {y + 17:g} {bend:g} {y + 17:g}H{x:g}"
            )
    for key, item in items.items():
        x, y = lefts[column[key]], 46 * rows[key]
        sheet.box(x, y, wide[column[key]], 36, item.kind)
        sheet.text(x + 8, y + (15 if item.below else 22), item.text)
        if item.below:
            sheet.text(x + 8, y + 29, item.below, quiet=True)
    return sheet.html(title)
