"""Facts as aligned plain text: tables, lists of fields, and numbers with their units; and as a picture with a line for each.

Names may come from untrusted files: control characters are shown escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Final, TypeAlias

from .late_dataclass import dataclass
from .texts import escaped

Column: TypeAlias = tuple[str, Callable[[str, int], str]]
"""A heading, and LEFT or RIGHT."""
LEFT: Final[Callable[[str, int], str]] = str.ljust
RIGHT: Final[Callable[[str, int], str]] = str.rjust
GAP: Final = "  "
LINE: Final = 20
NAMES: Final = 300
"""The height of a line of a picture, and the width of its names, in pixels."""
LETTERS: Final = 40
"""The most letters of a name in a picture."""


def clean(value: Any) -> str:
    """A value's text in one line, with control characters escaped."""
    return escaped(" ".join(str(value).split()))


def table(columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int | None = None) -> str:
    """Headings and rows, each column as wide as its widest cell. width: a table that is wider is cut into several, one below the
    other, each with the first column."""
    cells = [[clean(heading) for heading, _ in columns], *([clean(v) for v in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    parts: list[list[int]] = [[0]]
    for k in range(1, len(columns)):
        part = parts[-1]
        whole = sum(widths[i] + len(GAP) for i in part) + widths[k]
        if width is not None and whole > width and len(part) > 1:
            parts.append([0, k])
        else:
            part.append(k)
    tables = (
        "\n".join(GAP.join(columns[k][1](line[k], widths[k]) for k in part).rstrip() for line in cells)
        for part in parts
    )
    return "\n\n".join(tables)


def fields(pairs: Sequence[tuple[str, Any]]) -> str:
    """Names and values, one pair a line."""
    width = max(len(clean(name)) for name, _ in pairs)
    return "\n".join(f"{clean(name).ljust(width)}{GAP}{clean(value)}" for name, value in pairs)


def seconds(value: float) -> str:
    """A duration: 1.24 s, 38.1 ms, 0.21 ms."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.{1 if value >= 0.01 else 2}f} ms"


def quantity(count: float, unit: str) -> str:
    """A count with an SI prefix: 385.9 MFLOP."""
    for prefix in ("", "k", "M", "G"):
        if abs(count) < 1000:
            return f"{count:.{1 if prefix else 0}f} {prefix}{unit}"
        count /= 1000
    return f"{count:.1f} T{unit}"


# --- a picture --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PictureLine:
    """A line of a picture: a name, what is drawn behind it, and a note."""

    name: str
    marks: str
    """SVG, in a line whose top is at 0."""
    note: str
    note_left: float


def bar(left: float, width: float, colour: str, about: str) -> str:
    """The SVG of a bar in a line, which says what it is when it is pointed at."""
    return (
        f'<rect x="{left:.1f}" y="3" width="{max(1.0, width):.1f}" height="{LINE - 6}" fill="{colour}">'
        f"<title>{escape(clean(about))}</title></rect>"
    )


def picture(about: str, heading: str, lines: Sequence[PictureLine], width: int, behind: str = "") -> str:
    """The SVG of lines below a heading, in the colours of a light or a dark page. about: what it shows, for those who do not see it;
    behind: SVG below all lines."""
    height = LINE * (len(lines) + 1) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(clean(about))}">',
        "<style>text { font: 12px system-ui, sans-serif; fill: #5b6675 } "
        "@media (prefers-color-scheme: dark) { text { fill: #97a3b2 } }</style>",
        f'<text x="0" y="14">{escape(clean(heading))}</text>{behind}',
    ]
    for k, line in enumerate(lines, 1):
        name = clean(line.name)
        short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
        parts.append(
            f'<g transform="translate(0 {LINE * k})"><text x="0" y="14">{escape(short)}</text>{line.marks}'
            f'<text x="{line.note_left:.1f}" y="14">{escape(clean(line.note))}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])
