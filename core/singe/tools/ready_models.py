"""`singe zoo`: a table of the ready models, or the files of some of them, fetched."""

from __future__ import annotations

from argparse import Namespace

from .. import zoo as rows
from ..files.urls import ZOO
from ..files.zoo import find
from ..report import LEFT, RIGHT, fields, table
from ..shapes import bytes_text
from ..texts import say
from .progress import doing


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
        _list()


def _list() -> None:
    columns = [("name", LEFT), ("task", LEFT), ("size", RIGHT), ("licence", LEFT), ("here", LEFT), ("what", LEFT)]
    models = rows.models.values()
    say(
        table(
            columns,
            [
                (m.name, m.task, bytes_text(m.bytes), m.licence, "yes" if rows.is_here(m) else "", m.about)
                for m in models
            ],
        )
    )
    say()
    say('`singe zoo NAME` fetches one; "zoo:NAME" stands in place of a file in every command, and in sg.load.')


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
        *((file.name if several else "file", str(path)) for file, path in zip(model.files, found, strict=True)),
    ]))  # fmt: skip
