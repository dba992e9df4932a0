"""The command `task`: answers for files, as text, as JSON, or as files of their own."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from ..files.urls import ZOO
from ..files.zoo import MODELS
from ..report import seconds
from ..tasks.calling import AnyTask
from ..tasks.chains import CHAINS
from ..tasks.task import task as make_task
from ..texts import say
from .progress import doing

PICTURES: Final = ("size", "crop", "mean", "std", "layout", "fit", "order")
"""Options that say how a picture is prepared."""
SETTINGS: Final = ("threshold", "top", "language", "translate", "beams")


def task(args: Namespace) -> None:
    """Answer for each of the files."""
    made = task_of(args, args.kind, args.device or "auto")
    settings = {name: value for name in SETTINGS if (value := getattr(args, name)) is not None}
    answers: list[Any] = []
    with doing("running") as running:
        for path in args.files:
            running(path)
            answers.append(made(path, **settings))
    if args.json:
        say(json.dumps([answer.to_dict() for answer in answers] if len(answers) > 1 else answers[0].to_dict()))
    else:
        for path, answer in zip(args.files, answers, strict=True):
            say(f"{path}: {answer!r}")
        say(f"{len(answers)} in {seconds(running.seconds)} on {made.device.name}")
    if args.out is not None:
        for path, answer in zip(args.files, answers, strict=True):
            answer.save(_place(args, path, answer.suffix))


def _place(args: Namespace, path: str, suffix: str) -> Path:
    """The file that an answer is written to: with several, one of the same name in the folder."""
    if len(args.files) == 1:
        return Path(args.out)
    Path(args.out).mkdir(parents=True, exist_ok=True)
    return Path(args.out) / f"{Path(path).stem}{suffix}"


def task_of_several(model: str) -> str | None:
    """The kind of task that a model of the zoo is by itself, as several models are."""
    row = MODELS.get(model.removeprefix(ZOO)) if model.startswith(ZOO) else None
    return row.task if row is not None and row.task in CHAINS else None


def task_of(args: Namespace, kind: str, device: str) -> AnyTask:
    """The task that options name."""
    given = {name: value for name in PICTURES if (value := getattr(args, name)) is not None}
    with doing("loading"):
        return make_task(kind, args.model, labels=args.labels, head=args.head or "", device=device, **given)
