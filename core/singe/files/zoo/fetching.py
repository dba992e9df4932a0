"""Files of ready models: found by name, fetched from the first source that has them, compared with their hash, kept."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from ...awaitables import IN_PAGE
from ...errors import InputError
from ...shapes import bytes_text
from ..download import OFFLINE, alone, digest_of, is_offline
from ..folder import cache_folder
from ..local import reason
from ..urls import ZOO
from .rows import DEFAULTS, MODELS, ZooFile, ZooModel

_log: Final = logging.getLogger("singe")


def zoo_file(path: str) -> tuple[ZooModel, ZooFile]:
    """The model and the file of `zoo:NAME` or `zoo:NAME/FILE`."""
    name, _, file = path.removeprefix(ZOO).partition("/")
    model = find(name)
    if not file and len(model.files) == 1:
        return model, model.files[0]
    found = next((f for f in model.files if f.name == file), None)
    if found is None:
        whole = ", ".join(f"{ZOO}{name}/{f.name}" for f in model.files)
        if file:
            raise InputError(f"{path}: no such file in {name}; give {whole}")
        raise InputError(
            f"{path}: {name} has several files, which sg.task({model.task!r}, {path!r}) opens together, and --task {model.task} in a command; "
            f"or give one of {whole}"
        )
    return model, found


def find(name: str) -> ZooModel:
    """The row of a model."""
    found = MODELS.get(name.removeprefix(ZOO))
    if found is None:
        from difflib import get_close_matches  # noqa: PLC0415 (only an error needs it)

        bare = name.removeprefix(ZOO)
        near = [known for known in MODELS if bare and bare in known] or get_close_matches(bare, MODELS)
        meant = f": did you mean {' or '.join(near)}? The zoo has" if near else ", which has"
        raise InputError(f"{name!r:.80} is no model of the zoo{meant} {', '.join(MODELS)}")
    return found


def default_for(task: str) -> str:
    """`zoo:NAME` of the model that a kind of task has by itself."""
    if task not in DEFAULTS:
        meant = f" ({ZOO}{task} is one of {MODELS[task].task})" if task in MODELS else ""
        raise InputError(
            f"{task}: which model? The zoo has one of its own for {', '.join(DEFAULTS)}{meant}; give a file, or one that `singe zoo` lists"
        )
    return f"{ZOO}{DEFAULTS[task]}"


def fetch(path: str) -> Path:
    """Where the file of `zoo:NAME` or `zoo:NAME/FILE` is in the cache; it is fetched if need be. Its hash is right."""
    model, file = zoo_file(path)
    place = _place(file)
    try:
        if _is_right(place, file):
            return place
        if is_offline():
            raise InputError(f"{path} is not in {_folder()}, and {OFFLINE} is set: nothing is fetched")
        if IN_PAGE:
            raise InputError(f"{path}: in a page, models are fetched by `await singe.load_async({path!r})`")
        place.parent.mkdir(parents=True, exist_ok=True)
        with alone(place.with_suffix(".lock")):  # another process may have fetched it by now
            return place if _is_right(place, file) else _fetched(model, file, place)
    except OSError as e:
        raise InputError(f"cannot keep {path} in {place.parent}: {reason(e)}; SINGE_CACHE names another folder") from e


def fetch_all(name: str) -> dict[str, Path]:
    """Where all files of `zoo:NAME` are, by their names, as `fetch` gives them."""
    model = find(name)
    return {file.name: fetch(f"{ZOO}{model.name}/{file.name}") for file in model.files}


def address(path: str) -> str:
    """A URL with the hash of the file of `zoo:NAME`, for pages, which ask no package index."""
    model, file = zoo_file(path)
    for source in file.sources:
        if source.address is not None:
            return f"{source.address}#sha256={file.sha256}"
    raise InputError(f"{path} is only in {file.sources[0]}, which a page cannot open; export {model.name} to a folder")


def is_here(model: ZooModel) -> bool:
    """Whether all files of a model are in the cache."""
    return all(_place(f).is_file() for f in model.files)


def clear(name: str | None = None) -> int:
    """Remove the files of a model, or of all, from the cache; how many bytes they had."""
    models = MODELS.values() if name is None else (find(name),)
    removed = 0
    for file in (f for m in models for f in m.files):
        place = _place(file)
        if place.is_file():
            removed += place.stat().st_size
        shutil.rmtree(place.parent, ignore_errors=True)
    return removed


def _folder() -> Path:
    return cache_folder() / "zoo"


def _place(file: ZooFile) -> Path:
    return _folder() / file.sha256[:16] / file.name


def _is_right(path: Path, file: ZooFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and digest_of(path) == file.sha256


def _fetched(model: ZooModel, file: ZooFile, place: Path) -> Path:
    failures: list[str] = []
    for source in file.sources:
        _say(f"{model.name}: {file.name}, {bytes_text(file.bytes)}, {model.licence}, from {source}")
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            made = Path(folder) / file.name
            try:
                source.write(made, file.bytes, file.sha256)
            except InputError as e:
                failures.append(str(e))
                continue
            if _is_right(made, file):
                return made.replace(place)
            failures.append(
                f"{source}: {made.stat().st_size} bytes with the sha256 {digest_of(made)}, expected {file.bytes} with {file.sha256}"
            )
    raise InputError(
        f"{ZOO}{model.name} could not be fetched. With a network, try again; without one, put {file.name} at {place}, or give a model of your "
        f"own in its place (of a task, --model FILE). What failed: {'; '.join(failures)}"
    )


def _say(text: str) -> None:
    """On a terminal, and to those who listen, before something long begins."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s", text)
    elif sys.stderr.isatty():
        print(text, file=sys.stderr)
