"""`singe zoo`: a table of the ready models, or the files of some of them, fetched."""

from __future__ import annotations

from argparse import Namespace
from time import perf_counter
from typing import Final

import numpy as np

from .. import zoo as rows
from ..files.urls import ZOO
from ..files.zoo import find
from ..report import LEFT, RIGHT, fields, seconds, table
from ..shapes import bytes_text
from ..tasks.building import ELSEWHERE
from ..tasks.chains import CHAINS
from ..tasks.kinds import KINDS
from ..tasks.task import task
from ..texts import say
from .progress import doing

LEAST_RUNS: Final = 4
SECONDS: Final = 1.0
"""A task is timed so often, and so long, at least."""


def zoo(args: Namespace) -> None:
    """Show the ready models, fetch some, or remove them from the cache."""
    models = [find(name) for name in args.names]
    if args.clear:
        removed = sum(rows.clear(m.name) for m in models) if models else rows.clear()
        say(f"removed {bytes_text(removed)}")
    elif models:
        for model in models:
            _fetch(model)
    else:
        _list(args.speed)


def _list(timed: bool) -> None:
    columns = [("name", LEFT), ("task", LEFT), ("size", RIGHT), ("licence", LEFT), ("here", LEFT), ("what", LEFT)]
    found: list[tuple[str, ...]] = []
    for m in rows.models.values():
        here = "yes" if rows.is_here(m) else ""
        if here and timed:
            with doing(f"timing {m.name}"):
                here = _speed(m) or here
        found.append((m.name, m.task, bytes_text(m.bytes), m.licence, here, m.about))
    say(table(columns, found))
    say()
    if timed:
        say("Times are from a picture of 640 by 480 pixels, with nothing to find on it, to its answer.")
    for kind, told in ELSEWHERE.items():
        say(f"{kind}: {told}.")
    say('`singe zoo NAME` fetches one; "zoo:NAME" stands in place of a file in every command, and in sg.load.')


def _speed(model: rows.ZooModel) -> str:
    """How long a task takes for a picture here; "" if it takes none."""
    row = KINDS.get(model.task)
    if model.task not in CHAINS and (row is None or row.medium.name != "picture"):
        return ""
    picture = np.full((480, 640, 3), 128, np.uint8)
    with task(model.task, f"{ZOO}{model.name}") as ask:
        begun, taken = perf_counter(), [0.0]
        while len(taken) < LEAST_RUNS or perf_counter() - begun < SECONDS:
            start = perf_counter()
            ask(picture)
            taken.append(perf_counter() - start)
        return f"{seconds(min(taken[2:]))} on {ask.device.name}"  # the first call compiles


def _fetch(model: rows.ZooModel) -> None:
    several = len(model.files) > 1
    found = []
    for file in model.files:
        with doing(f"fetching {file.name}"):
            found.append(rows.fetch(f"{ZOO}{model.name}/{file.name}"))
    say(fields([
        ("name", f"{ZOO}{model.name}"),
        ("task", model.task),
        ("what", model.about),
        ("by", f"{model.maker}, {model.home}"),
        ("licence", model.licence),
        *((("expected", f"{model.expected[1]}, for {model.expected[0]} of demos/tasks/samples"),) if model.expected else ()),
        *((file.name if several else "file", str(path)) for file, path in zip(model.files, found, strict=True)),
    ]))  # fmt: skip
