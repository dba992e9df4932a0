"""What the bundle of a task that says something holds beside its model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError, InputError
from ...language.tokenizing import Tokenizer
from ...late_dataclass import dataclass
from ...program.bundle_reader import read_file, read_manifest

MOST: Final = 1 << 20
"""Of anything that a preparation counts, where nothing else is said."""


@dataclass(frozen=True)
class BundleFacts:
    """Of the task in a bundle's manifest. preparation: what its medium says; files: what travels with it."""

    folder: Path
    preparation: Mapping[str, Any]
    files: Mapping[str, Any]
    licence: str

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def file(self, name: str) -> bytes:
        if name not in self.files:
            raise FormatError(f"{self.folder}: no {name} travels with its task; export it once more")
        return read_file(self.folder, self.files[name])

    def tokenizer(self, name: str) -> Tokenizer:
        return Tokenizer.of_json(self.file(name), f"{self.folder}: {name}")

    def number(self, name: str, most: int = MOST) -> int:
        found = self.preparation.get(name)
        if type(found) is not int or not 0 < found <= most:
            raise FormatError(f"{self.folder}: its {name} is {found!r:.40}, expected a number from 1 to {most}")
        return found


def bundle_facts(folder: Path, kind: str, *media: str) -> BundleFacts:
    """Of the task of this kind, of one of these media, in a bundle."""
    told: Any = read_manifest(folder).get("task")
    facts: Mapping[str, Any] = told if isinstance(told, dict) else {}
    if facts.get("kind") != kind:
        raise InputError(f"{folder}: its task is {facts.get('kind')!r:.60}, got {kind!r}; give the kind that it has")
    preparation: Any = facts.get("preparation")
    files: Any = facts.get("files")
    licence: Any = facts.get("licence")
    fits = isinstance(preparation, dict) and isinstance(files, dict) and isinstance(licence, str)
    if not fits or preparation.get("medium") not in media:
        raise FormatError(f"{folder}: not the facts of a task that this Singe knows; export it once more")
    return BundleFacts(folder, preparation, files, licence)
