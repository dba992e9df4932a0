"""What data sets of pictures with labels share, and where their files are: in a folder, at a URL, or at their ordinary source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...awaitables import IN_PAGE
from ...errors import FormatError, InputError
from ...files import reason
from ...files.folder import cache_folder
from ...files.places import fetched_bytes, local_file
from ...files.urls import is_url
from ..dataset import ArrayDataset

Read = Callable[[str], bytes]
"""The name of a file ↦ its bytes."""


class LabelledPictures(ArrayDataset):
    """Items (picture, label): uint8 (channels, height, width), and an int64.

    source: a folder with the files, or the URL of one; without it the files are fetched from where their authors have
    them, and kept in the cache folder (SINGE_CACHE). Fetched files are compared with their SHA-256.
    """

    classes: tuple[str, ...]
    ADDRESSES: ClassVar[tuple[str, ...]]
    """Folders at which the files are."""
    SHA256: ClassVar[Mapping[str, str]]
    """Name of a file ↦ its hash."""

    def __init__(self, source: str | Path | None = None, *, train: bool = True) -> None:
        if source is None or is_url(source):
            names = self._files(train)
            addresses = self.ADDRESSES if source is None else (str(source).rstrip("/") + "/",)
            hashes = {n: self.SHA256[n] for n in names}
            files = dict(zip(names, _fetched_to_disk(type(self).__name__, addresses, hashes), strict=True))
            self._take(train, lambda name: _bytes(files[name]))
        else:
            self._from_folder(Path(source), train)

    @classmethod
    async def load_async(cls, source: str | None = None, *, train: bool = True) -> Any:
        """The same in a page, which has to await what it fetches; `source` is a URL."""
        made = cls.__new__(cls)
        if not IN_PAGE or (source is not None and not is_url(source)):
            cls.__init__(made, source, train=train)
            return made
        failures: list[str] = []
        for address in cls.ADDRESSES if source is None else (source.rstrip("/") + "/",):
            try:
                files = {
                    name: await fetched_bytes(f"{address}{name}#sha256={cls.SHA256[name]}")
                    for name in cls._files(train)
                }
            except InputError as e:
                failures.append(str(e))
            else:
                made._take(train, files.__getitem__)
                return made
        raise InputError("\n".join(failures))

    @property
    def images(self) -> np.ndarray:
        """All pictures (items, channels, height, width)."""
        return self.columns[0]

    @property
    def labels(self) -> np.ndarray:
        return self.columns[1]

    @classmethod
    def _files(cls, train: bool) -> tuple[str, ...]:
        """The names of the files to fetch."""
        raise NotImplementedError

    def _take(self, train: bool, read: Read) -> None:
        """Read fetched files."""
        raise NotImplementedError

    def _from_folder(self, folder: Path, train: bool) -> None:
        raise NotImplementedError

    def _keep(self, images: np.ndarray, labels: np.ndarray, name: str) -> None:
        """These pictures and labels, from the file of this name."""
        if len(images) != len(labels):
            raise FormatError(f"{name}: {len(images)} pictures and {len(labels)} labels")
        if labels.size and not 0 <= labels.min() <= labels.max() < len(self.classes):
            raise FormatError(
                f"{name}: labels from {labels.min()} to {labels.max()}, expected 0 to {len(self.classes) - 1}"
            )
        super().__init__((images, labels.astype(np.int64)))


def file_in(folder: Path, names: Sequence[str]) -> Path:
    """The first of some files that is in a folder."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    missing = "" if folder.is_dir() else "; there is no such folder"
    raise InputError(
        f"{folder}: expected a file {' or '.join(names)} in it{missing}; without `source` (--data on a command line) it is fetched"
    )


def _fetched_to_disk(what: str, addresses: Sequence[str], files: Mapping[str, str]) -> list[Path]:
    failures: list[str] = []
    for address in addresses:
        try:
            return [local_file(f"{address}{name}#sha256={digest}") for name, digest in files.items()]
        except InputError as e:
            failures.append(re.sub(r"#sha256=\w+", "", str(e)))
    raise InputError(
        f"{what} is neither in the cache ({cache_folder()}) nor can it be fetched: {'; '.join(failures)}. Without a network, give the "
        f"folder that holds {', '.join(files)}: source=… in Python, --data FOLDER on a command line"
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {reason(e)}") from None
