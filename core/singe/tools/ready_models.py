"""`singe zoo`: a table of the ready models, or the files of some of them, fetched."""

from __future__ import annotations

from argparse import Namespace

from .. import zoo as rows
from ..errors import InputError
from ..files.urls import ZOO
from ..report import LEFT, RIGHT, fields, table
from ..shapes import bytes_text
from ..texts import say
from .progress import doing


def zoo(args: Namespace) -> None:
    """Show the ready models, fetch some, or remove them from the cache."""
    names = [name.removeprefix(ZOO) for name in args.names]
    if unknown := [name for name in names if name not in rows.models]:
        raise InputError(f"{unknown[0]!r:.80} is no model of the zoo, which has {', '.join(rows.models)}")
    if args.clear:
        removed = sum(rows.clear(name) for name in names) if names else rows.clear()
        say(f"removed {bytes_text(removed)}")
    elif names:
        for name in names:
            _fetch(name)
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


def _fetch(name: str) -> None:
    model = rows.models[name]
    several = len(model.files) > 1
    found = []
    for file in model.files:
        with doing(f"fetching {file.name}"):
            found.append(rows.fetch(f"{ZOO}{name}/{file.name}"))
    say(fields([
        ("name", f"{ZOO}{name}"),
        ("task", model.task),
        ("what", model.about),
        ("by", f"{model.maker}, {model.home}"),
        ("licence", model.licence),
        *((file.name if several else "file", str(path)) for file, path in zip(model.files, found, strict=True)),
    ]))  # fmt: skip
