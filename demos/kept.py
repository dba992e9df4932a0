"""What the parts of the build share: where things are, and what takes time is kept in demos/.cache."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
STATIC: Final = ROOT / "static"
CACHE: Final = HERE / ".cache"

Say = Callable[[str], None]


class BuildError(Exception):
    """A site that cannot be built; the message says why."""


def module(folder: Path, name: str) -> ModuleType:
    """A script beside this one, or elsewhere in the repository."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def keep(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache, made if it is missing; older ones of its kind are removed."""
    kept = CACHE / "site" / name
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=kept.parent) as made:
        folder = Path(made) / name
        folder.mkdir()
        make(folder)
        for old in kept.parent.glob(f"{name.rsplit('-', maxsplit=1)[0]}-*"):
            shutil.rmtree(old)
        folder.rename(kept)
    return kept


def files_under(folder: Path) -> Iterator[Path]:
    """All files, in order, except in hidden folders and Python's caches."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name == "__pycache__" or path.name.startswith(".") or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from files_under(path)
        else:
            yield path
