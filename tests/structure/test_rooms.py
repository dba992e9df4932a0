"""The drawing of the rooms says what they import."""

from __future__ import annotations

import re

from structure.rooms import DRAWING, PACKAGE, drawing, exceptions, imports, rooms


def shape(text: str) -> str:
    """A drawing without the numbers of lines, which change with each commit."""
    return re.sub(r'(<text class="lines"[^>]*>)[\d,]+', r"\1", text)


def test_the_drawing_is_current() -> None:
    assert shape(DRAWING.read_text("utf-8")) == shape(drawing()), "python tests/structure/rooms.py writes it anew"


def test_every_room_is_drawn() -> None:
    there = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} - {"__init__"}
    assert set(rooms()) == there


def test_imports_run_down() -> None:
    known, found = rooms(), imports()
    assert sum(found["tensors"].values()) > 50
    order = {room: k for k, room in enumerate(known)}
    up = {(room, other) for room in known for other in found[room] if order[other] < order[room]}
    assert up == exceptions()
