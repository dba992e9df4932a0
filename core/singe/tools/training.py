"""`singe train NAME`: the examples of singe.train as commands; each setting of an example is an option."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
import shlex
import types
import typing
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError, InputError
from ..report import LEFT, table
from ..texts import say
from ..train.config import field_types, read_config
from ..train.events import Reason
from ..train.examples import EXAMPLES, Example, example
from ..train.folder import CHECKPOINTS, CONFIG
from ..train.saving.checkpoints import CheckpointFolder

RUNS: Final = "runs"
"""The folder of all runs for which --run names no other."""
ENDED: Final[Mapping[Reason, int]] = {"interrupted": 130, "terminated": 143, "nonfinite": 1}
"""The exit codes of a command that Ctrl-C, SIGTERM or a number that is not finite ended."""
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
        kind = example(name).SETTINGS
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
        options |= {
            "type": _within(kind, field.metadata) if kind in (int, float) else kind,
            "metavar": {int: "N", float: "X"}.get(kind, "TEXT"),
        }
    group.add_argument(
        f"--{field.name.replace('_', '-')}", help=_literal(f"{text}{default}".strip()) or None, **options
    )


def _within(kind: type[int] | type[float], bounds: Mapping[str, Any]) -> Callable[[str], float]:
    """What reads a number between the bounds of a setting, if it has some."""

    def read(text: str) -> float:
        value = kind(text)
        least, most = bounds.get("least"), bounds.get("most")
        expected = [*([] if least is None else [f"at least {least}"]), *([] if most is None else [f"at most {most}"])]
        if not math.isfinite(value) or (least is not None and value < least) or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"got {text}, expected {' and '.join(expected) or 'a finite number'}")
        return value

    read.__name__ = kind.__name__  # which argparse's messages name
    return read


def _literal(text: str) -> str:
    """A text as argparse's help, in which % begins a field."""
    return text.replace("%", "%%")


def train(args: Namespace) -> int:
    """Run an example; without one, list them. Another code than 0 if it was ended early, and can be resumed."""
    if args.example is None:
        say(table([("name", LEFT), ("what it trains", LEFT)], list(EXAMPLES.items())))
        say("\nsinge train NAME --help shows the settings of an example.")
        return 0
    module = example(args.example)
    given = {name.removeprefix(SETTING): v for name, v in vars(args).items() if name.startswith(SETTING)}
    folder = Path(args.run) if args.run else _folder(Path(RUNS), args.example, args.resume)
    if args.resume:
        config = dataclasses.replace(_settings_of(folder, args.example), **given)
    else:
        config = module.SETTINGS(**{**(module.QUICK if args.quick else {}), **given})
    run = Example(folder, args.device, args.resume, "plain" if args.plain else "auto")
    _, summary = module.train(config, run)
    if summary.reason in ("asked", "interrupted", "terminated") and CheckpointFolder(folder / CHECKPOINTS, 1).steps():
        say(f"to go on: singe train {args.example} --resume --run {shlex.quote(str(folder))}")
    return ENDED.get(summary.reason, 0)


def _settings_of(folder: Path, name: str) -> Any:
    """The settings of a run of an example."""
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"there is no run in {folder} to resume: it has no {CONFIG}; without --resume a run begins there"
        )
    try:
        return read_config(folder / CONFIG, example(name).SETTINGS)
    except FormatError:
        for other in EXAMPLES:
            if other != name and _fits(folder, other):
                raise InputError(
                    f"{folder} is a run of {other}: singe train {other} --resume --run {shlex.quote(str(folder))}"
                ) from None
        raise


def _fits(folder: Path, name: str) -> bool:
    """Whether a run has the settings of an example."""
    try:
        read_config(folder / CONFIG, example(name).SETTINGS)
    except FormatError:
        return False
    return True


def _folder(runs: Path, name: str, resume: bool) -> Path:
    """The newest folder of an example's runs, or the next one."""
    found = [re.fullmatch(rf"{re.escape(name)}-(\d+)", p.name) for p in (runs.iterdir() if runs.is_dir() else ())]
    newest = max((int(m[1]) for m in found if m), default=0)
    if not resume:
        return runs / f"{name}-{newest + 1}"
    if not newest or not (runs / f"{name}-{newest}" / CHECKPOINTS).is_dir():
        raise InputError(f"there is no run of {name} with checkpoints in {runs}/ to resume; name its folder with --run")
    return runs / f"{name}-{newest}"
