"""`singe train NAME`: the examples of singe.train as commands; each setting of an example is an option."""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
import types
import typing
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import InputError
from ..train.config import field_types, read_config
from ..train.examples import EXAMPLES, Run, example
from ..train.learner import CHECKPOINTS, CONFIG
from .report import LEFT, table

RUNS: Final = "runs"
"""The folder of all runs for which --run names no other."""
INTERRUPTED: Final = 130
"""The exit code of a command that Ctrl-C ended."""
SETTING: Final = "setting_"
"""How the names of parsed settings begin."""


def add_examples(command: argparse.ArgumentParser, devices: Sequence[str]) -> None:
    """Give the command `train` a command for each example."""
    commands = command.add_subparsers(dest="example", metavar="NAME", parser_class=type(command))
    for name, text in EXAMPLES.items():
        made = commands.add_parser(name, help=_literal(text), description=f"{text}.", allow_abbrev=False)
        made.add_argument(
            "--verbose", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )
        made.add_argument("--device", choices=devices, default="auto", help="the device to train on (default: auto)")
        text = f"the folder of the run: checkpoints, weights, logs (default: a new one, {RUNS}/{name}-1, …)"
        made.add_argument("--run", metavar="DIR", help=text)
        text = "go on from the newest checkpoint of the run, with its settings (without --run: of the newest run)"
        made.add_argument("--resume", action="store_true", help=text)
        made.add_argument("--quick", action="store_true", help="take seconds, to see whether all works")
        made.add_argument("--plain", action="store_true", help="print lines, also where there is a terminal")
        settings = made.add_argument_group("settings")
        kind = example(name).Config
        for field in dataclasses.fields(kind):
            _add(settings, field, field_types(kind)[field.name])


def _add(group: Any, field: dataclasses.Field[Any], kind: Any) -> None:
    """The option of a setting."""
    options: dict[str, Any] = {"dest": f"{SETTING}{field.name}", "default": argparse.SUPPRESS}
    text = field.metadata.get("text", "")
    shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    default = "" if field.default is None else f" (default: {shown})"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if kind is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif typing.get_origin(kind) is typing.Literal:
        options["choices"] = typing.get_args(kind)
    elif typing.get_origin(kind) in (tuple, list):
        part = typing.get_args(kind)[0]
        options |= {"type": lambda given: tuple(part(x) for x in given.split(",")), "metavar": "A,B,…"}
    else:
        options |= {"type": kind, "metavar": {int: "N", float: "X"}.get(kind, "TEXT")}
    group.add_argument(
        f"--{field.name.replace('_', '-')}", help=_literal(f"{text}{default}".strip()) or None, **options
    )


def _literal(text: str) -> str:
    """A text as argparse's help, in which % begins a field."""
    return text.replace("%", "%%")


def train(args: Namespace) -> int:
    """Run an example; without one, list them. 130 if it was interrupted, and can be resumed."""
    if args.example is None:
        print(table([("name", LEFT), ("what it trains", LEFT)], list(EXAMPLES.items())))
        print("\nsinge train NAME --help shows the settings of an example.")
        return 0
    module = example(args.example)
    given = {name.removeprefix(SETTING): v for name, v in vars(args).items() if name.startswith(SETTING)}
    folder = Path(args.run) if args.run else _folder(Path(RUNS), args.example, args.resume)
    if args.resume and (folder / CONFIG).is_file():
        config = dataclasses.replace(read_config(folder / CONFIG, module.Config), **given)
    else:
        config = module.Config(**{**(module.QUICK if args.quick else {}), **given})
    run = Run(folder, args.device, args.resume, "plain" if args.plain else "auto")
    _, summary = module.train(config, run)
    if summary.reason in ("asked", "interrupted"):
        print(f"to go on: singe train {args.example} --resume --run {shlex.quote(str(folder))}")
    return INTERRUPTED if summary.reason == "interrupted" else 0


def _folder(runs: Path, name: str, resume: bool) -> Path:
    """The newest folder of an example's runs, or the next one."""
    found = [re.fullmatch(rf"{re.escape(name)}-(\d+)", p.name) for p in (runs.iterdir() if runs.is_dir() else ())]
    newest = max((int(m[1]) for m in found if m), default=0)
    if not resume:
        return runs / f"{name}-{newest + 1}"
    if not newest or not (runs / f"{name}-{newest}" / CHECKPOINTS).is_dir():
        raise InputError(f"there is no run of {name} with checkpoints in {runs}/ to resume; name its folder with --run")
    return runs / f"{name}-{newest}"
