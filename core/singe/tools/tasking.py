"""The command `task`: answers for files, as text, as JSON, or as files of their own."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from ..errors import InputError
from ..files.urls import ZOO, is_url
from ..files.zoo import MODELS
from ..report import seconds
from ..tasks.calling import AnyTask
from ..tasks.chains import CHAINS
from ..tasks.kinds import KINDS
from ..tasks.kinds.search import SEARCH
from ..tasks.labels import labels_of
from ..tasks.saying import SAYING
from ..tasks.task import Task
from ..tasks.task import task as make_task
from ..tasks.text.index import read_index
from ..tasks.text.medium import TEXT
from ..texts import say
from .progress import doing

PREPARATION: Final = ("size", "crop", "mean", "std", "layout", "fit", "order", "beside", "before")
"""Options that say how what a model takes is prepared."""
SETTINGS: Final = (
    "threshold", "top", "language", "translate", "beams", "prompt", "dimensions", "hypothesis", "several",
    "words", "speed", "speaker", "src_lang", "tgt_lang",
)  # fmt: skip
OF_TEXTS: Final = ("speak", "translate")
"""Kinds of speech that are called with texts."""
_TEXTS: Final = {
    "documents": "--documents FILE, one a line, or --document TEXT",
    "labels": "--labels FILE, one a line, or --label TEXT",
}
"""Texts that some kinds look at beside what they are called with ↦ how a command gives them."""


def task(args: Namespace) -> None:
    """Answer for each of the files, and print or write each answer when it is there: an error in a later file loses none."""
    beside = _beside(args)
    settings = {name: value for name in SETTINGS if (value := getattr(args, name)) is not None}
    _check_files(args)
    made = task_of(args, args.kind, args.device or "auto", None if "labels" in beside else args.labels)
    passed, total = 0.0, len(args.files)
    if args.kind == SEARCH.name:
        with doing("reading the documents") as reading:
            made = _looking(made, _documents(args))
        passed = reading.seconds
    told: list[Any] = []
    hint = ""
    for k, (path, name) in enumerate(zip(args.files, _names(args), strict=True), 1):
        with doing(path if total == 1 else f"{path}, {k} of {total}") as running:
            answer = made(path, **beside, **settings)
        passed += running.seconds
        if args.json:
            told.append(answer.to_dict())
        else:
            say(f"{path}: {answer!r}")
        if args.out is not None:
            answer.save(args.out if total == 1 else Path(args.out) / f"{name}{answer.suffix}")
        hint = f"; -o FILE{answer.suffix} writes it" if args.out is None else f"; written to {args.out}"
    if args.json:
        say(json.dumps(told if total > 1 else told[0]))
    else:
        say(f"{total} in {seconds(passed)} on {made.device.name}{hint}")


def _beside(args: Namespace) -> dict[str, list[str]]:
    """The texts that a call chooses, of which some kinds need some, and others take none. An index takes them before it is called."""
    settings = KINDS[args.kind].settings if args.kind in KINDS else {}
    given = {
        "documents": [] if args.kind == SEARCH.name else _documents(args),
        "labels": [*(filter(str.strip, labels_of(args.labels)) if "labels" in settings else ()), *args.label],
    }
    for name, texts in given.items():
        if texts and name not in settings:
            raise InputError(f"{args.kind}: got {name}, which it does not take")
        if name in settings and not texts:
            raise InputError(f"{args.kind}: no {name}: give {_TEXTS[name]}, as often as you like")
    return {name: texts for name, texts in given.items() if texts}


def _documents(args: Namespace) -> list[str]:
    """Those of the file, then those of the command; a line of spaces is none."""
    if args.documents is None:
        return args.document
    try:
        lines = Path(args.documents).read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            f"--documents {args.documents}: expected a file of UTF-8 text, one document a line: {error}"
        ) from None
    found = [line for line in lines if line.strip()]
    if not found:
        raise InputError(f"--documents {args.documents}: an empty file, expected one document a line")
    return [*found, *args.document]


def _looking(made: AnyTask, documents: list[str]) -> AnyTask:
    """A search that has something to look through: these texts, after those that its file has."""
    if not isinstance(made, Task) or (not documents and read_index(made.files) is None):
        raise InputError(
            f"{made.kind}: there is nothing to look through: give {_TEXTS['documents']}, as often as you like, or --model with the file of "
            "an index that was saved"
        )
    return made.index(documents) if documents else made


def _check_files(args: Namespace) -> None:
    """Refuse what is no file before a model is loaded, of the kinds that take files."""
    if _takes_texts(args.kind):
        return
    for path in args.files:
        if not is_url(path) and not Path(path).is_file():
            raise InputError(f"{path}: cannot be read: {'a folder' if Path(path).is_dir() else 'no such file'}")


def _takes_texts(kind: str) -> bool:
    return kind in OF_TEXTS or (kind in KINDS and KINDS[kind].medium is TEXT)


def _names(args: Namespace) -> list[str]:
    """The files, without suffixes, that several answers are written to, in a folder: the names of the sources; of texts, and where names
    are alike, their numbers. The folder is there then."""
    names = [str(k) if _takes_texts(args.kind) else Path(path).stem for k, path in enumerate(args.files, 1)]
    if len(set(names)) < len(names):
        names = [f"{k}-{name}" for k, name in enumerate(names, 1)]
    if args.out is not None:
        folder = Path(args.out)
        (folder if len(names) > 1 else folder.parent).mkdir(parents=True, exist_ok=True)
    return names


def task_of_ready(model: str) -> str | None:
    """The kind of task that a model of the zoo is by itself."""
    row = MODELS.get(model.removeprefix(ZOO)) if model.startswith(ZOO) else None
    return row.task if row is not None and row.task in {*KINDS, *CHAINS, *SAYING} else None


def task_of(args: Namespace, kind: str, device: str, labels: str | None) -> AnyTask:
    """The task that options name. labels: of the model."""
    given = {name: value for name in (*PREPARATION, "weights") if (value := getattr(args, name, None)) is not None}
    with doing("loading"):
        return make_task(kind, args.model, labels=labels, head=args.head or "", device=device, **given)
