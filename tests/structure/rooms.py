"""Draws the rooms of `singe`, and what each imports: `python tests/structure/rooms.py` writes docs/rooms.svg.

Rooms stand in the order of the import contract in pyproject.toml, from the command line down to the leaves. A dot says that
the room of its row imports that of its column, a larger one that more files do. What is above the diagonal would be an import
upwards: the contract's few exceptions. test_rooms.py compares the file with the imports.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "core" / "singe"
DRAWING: Final = ROOT / "docs" / "rooms.svg"
CELL: Final = 18
LABELS: Final = 150
TOP: Final = 96
"""Pixels: the side of a cell, the width of the names at the left, and the height of those above."""
STYLE: Final = (
    "text { fill: #5b6675 } .name { fill: #1d2430 } .lines { text-anchor: end } .grid { stroke: #8884 } .dot { fill: #2f5eb5 } "
    ".up { fill: #bd7531 } @media (prefers-color-scheme: dark) { text { fill: #97a3b2 } .name { fill: #e4e8ee } "
    ".dot { fill: #7da2e8 } .up { fill: #e0a05a } }"
)


def contract() -> Mapping[str, Any]:
    """The contract in pyproject.toml of the imports between rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = [c for c in contracts if c.get("containers") == ["singe"]]
    return found


def rooms() -> Sequence[str]:
    """The rooms from the top down, as the contract has them."""
    return [name.strip() for layer in contract()["layers"] for name in layer.split("|")]


def exceptions() -> frozenset[tuple[str, ...]]:
    """The imports upwards that the contract allows: the room that imports, the room that is imported."""
    return frozenset(tuple(m.split(".")[1] for m in line.split(" -> ")) for line in contract()["ignore_imports"])


def files(room: str) -> Sequence[Path]:
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{room}.py"]


def imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports, wherever the import stands."""
    package = ["singe", *path.relative_to(PACKAGE).with_suffix("").parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else ())]
            yield from (base[1],) if len(base) > 1 else (name.name for name in node.names)


def imports() -> Mapping[str, Counter[str]]:
    """Each room ↦ the rooms that it imports ↦ how many of its files do."""
    known, found = rooms(), defaultdict[str, Counter[str]](Counter)
    for room in known:
        for path in files(room):
            found[room].update({other for other in imported(path) if other in known and other != room})
    return found


def lines(room: str) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in files(room))


def drawing() -> str:
    """The matrix as SVG."""
    known, found = rooms(), imports()
    side = CELL * len(known)
    width, height = LABELS + side + 8, TOP + side + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="11" role="img">',
        "<title>The rooms of singe: each row imports the rooms of its dots</title>",
        f"<style>{STYLE}</style>",
    ]
    for k, room in enumerate(known):
        at = k * CELL + CELL // 2
        names = ", ".join(other for other in known if found[room][other]) or "nothing"
        parts += [
            f'<g><title>{room} imports {names}</title><text class="name" x="4" y="{TOP + at + 4}">{room}</text></g>',
            f'<text class="lines" x="{LABELS - 6}" y="{TOP + at + 4}">{lines(room):,}</text>',
            f'<text class="name" transform="translate({LABELS + at + 4} {TOP - 6}) rotate(-90)">{room}</text>',
            f'<path class="grid" d="M{LABELS} {TOP + at}h{side}M{LABELS + at} {TOP}v{side}"/>',
        ]
        for j, other in enumerate(known):
            if count := found[room][other]:
                radius = 3 if count < 3 else 4.5 if count < 10 else 6
                where = f'cx="{LABELS + j * CELL + CELL // 2}" cy="{TOP + at}" r="{radius}"'
                parts.append(f'<circle class="{"dot" if j > k else "up"}" {where}/>')
    return "\n".join((*parts, "</svg>", ""))


if __name__ == "__main__":
    DRAWING.write_text(drawing(), "utf-8")
    print(DRAWING.relative_to(ROOT))
