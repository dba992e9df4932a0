"""The walk of CONTRIBUTING.md: what it says that a call enters, and what a call enters.

The numbered list is the eager call, and the line "On its way" names the other files and folders that it enters. The
paragraph after it, and the table, are the way of a Graph to the code of a target. A link with names in backticks behind
it is a file and its functions; `f` also stands for the functions within f.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from snippets import ROOT

LINK: Final = re.compile(r"\[[^\]]+\]\(([^)#]+)\)((?:(?:,| and)? `[\w.]+`)*)")
PACKAGES: Final = tuple(
    str(ROOT / name) for name in ("core/singe", "gpu/singe_gpu", "webgpu/singe_webgpu", "wasm/singe_wasm")
)


@dataclass(frozen=True)
class Place:
    """A function of a file. name: qualified, without `<locals>`."""

    file: str
    name: str


@dataclass(frozen=True)
class Walk:
    """eager: functions in order. beside: files and folders. compiled: functions in order. rows: those of each target."""

    eager: list[Place]
    beside: list[str]
    compiled: list[Place]
    rows: dict[str, list[Place]]


def read() -> Walk:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    lines = text[text.index("Follow `x.exp()`") : text.index("## Common changes")].splitlines()
    eager = [place for line in lines if re.match(r"\d+\. ", line) for place in _places(line)]
    (beside,) = (line for line in lines if line.startswith("On its way"))
    (compiled,) = (line for line in lines if "`compile_graph`" in line)
    cells = [line.split(" | ") for line in lines if line.startswith("| the ")]
    rows = {first.removeprefix("| "): _places(rest) for first, rest in cells}
    return Walk(eager, [path for path, _ in LINK.findall(beside)], _places(compiled), rows)


def _places(text: str) -> list[Place]:
    return [
        Place(path, name)
        for path, names in LINK.findall(text)
        for name in re.findall(r"[\w.]+", names)
        if name != "and"
    ]


def follow(call: Callable[[], Any]) -> list[Place]:
    """The functions of Singe that a call enters, in the order in which each is entered first."""
    return list(dict.fromkeys(place for place in _entered(call) if place is not None))


def calls(call: Callable[[], Any]) -> list[str]:
    """The file of each Python function that a call enters, as often as it enters one: Singe's, NumPy's and Python's own."""
    return ["" if place is None else place.file for place in _entered(call)]


def _entered(call: Callable[[], Any]) -> list[Place | None]:
    """The functions that a call enters, in order; None for one of another package."""
    found: list[Place | None] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            ours = code.co_filename.startswith(PACKAGES)
            name = code.co_qualname.replace(".<locals>", "")
            found.append(Place(Path(code.co_filename).relative_to(ROOT).as_posix(), name) if ours else None)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def when(place: Place, entered: list[Place]) -> int | None:
    """The position of a place among those that were entered, None if it is not among them."""
    within = (place.name, f"{place.name}.")
    found = (
        i
        for i, p in enumerate(entered)
        if p.file == place.file and (p.name == within[0] or p.name.startswith(within[1]))
    )
    return next(found, None)
