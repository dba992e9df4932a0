"""The page that lists a folder without a page of its own: what `singe serve` would serve of it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from ...shapes import bytes_text

MOST: Final = 1000
"""How many entries are listed."""
STYLE: Final = (
    ":root { color-scheme: light dark } body { font: 16px/1.6 system-ui; margin: 2rem auto; max-width: 40rem; padding: 0 1rem } "
    "li { display: flex; gap: 1rem; justify-content: space-between } ul { list-style: none; padding: 0 } a { overflow-wrap: anywhere }"
)


def listing(folder: Path, address: str, find: Callable[[str], Path | None]) -> bytes:
    """HTML of what there is in a folder. address: its path in URLs, which ends with a slash; find: the file or folder that is served
    for such a path."""
    names = sorted(path.name for path in folder.iterdir())
    served = ((name, find(address + quote(name))) for name in names)
    there = [(name, found) for name, found in served if found is not None and (found.is_dir() or found.is_file())]
    entries = sorted(there, key=lambda entry: not entry[1].is_dir())
    rows = [_row(name, found) for name, found in entries[:MOST]]
    if address != "/":
        rows.insert(0, '<li><a href="../">../</a></li>')
    if len(entries) > MOST:
        rows.append(f"<li>and {len(entries) - MOST} more</li>")
    title = escape(folder.resolve().name + "/" if address == "/" else unquote(address, errors="replace"))
    none = "" if entries else "<p>There is nothing here that is served: names that begin with a dot are not.</p>"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
        f'<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n{none}<ul>\n{chr(10).join(rows)}\n</ul>\n"
    ).encode()


def _row(name: str, found: Path) -> str:
    if found.is_dir():
        return f'<li><a href="{escape(quote(name))}/">{escape(name)}/</a></li>'
    return (
        f'<li><a href="{escape(quote(name))}">{escape(name)}</a> <span>{bytes_text(found.stat().st_size)}</span></li>'
    )
