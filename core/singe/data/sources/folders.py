"""Folders with a subfolder for each class: of pictures, and of texts. Files are read when their items are asked for."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...files import reason
from ...files.pictures import MODES, SUFFIXES, read_pixels
from ..dataset import Dataset, Field

MOST_TEXT: Final = 1 << 26
"""The most bytes of a text."""


class _ClassFolder(Dataset):
    """Items (content, label). classes: the names of the subfolders, sorted; a label is the place of one. paths, labels: of
    the items, in the order of classes, then of paths. Names that begin with a dot are left out."""

    def __init__(self, folder: str | Path, suffixes: Container[str], what: str) -> None:
        root = Path(folder)
        try:
            self.classes: Final = tuple(sorted(p.name for p in root.iterdir() if p.is_dir() and p.name[0] != "."))
        except OSError as e:
            raise InputError(f"{folder}: cannot be read: {reason(e)}") from None
        self.paths: Final[list[Path]] = []
        counts: list[int] = []
        for name in self.classes:
            found: list[Path] = []
            for place, folders, files in os.walk(root / name):
                folders[:] = [folder for folder in folders if folder[0] != "."]
                found += [Path(place, f) for f in files if f[0] != "." and Path(f).suffix.lower() in suffixes]
            if not found:
                raise InputError(f"{root / name}: no {what} in it; every subfolder of {folder} is a class")
            self.paths.extend(sorted(found))
            counts.append(len(found))
        if not self.classes:
            raise InputError(f"{folder}: expected a subfolder for each class, with {what} in it")
        self.labels: Final = np.repeat(np.arange(len(counts)), counts)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        at = self._at(index)
        return self._content(self.paths[at]), int(self.labels[at])

    def _content(self, path: Path) -> Any:
        raise NotImplementedError

    def column(self, field: Field) -> Any:
        return self.labels if field in (1, -1) else super().column(field)


class ImageFolder(_ClassFolder):
    """Items (picture, label): uint8 (channels, height, width), 3 channels or 1, read by Pillow (the extra `images`).

    size: (height, width) to which the largest centred part with these proportions is resized; `crop` takes a smaller part.
    Without it pictures have their own sizes.
    """

    def __init__(
        self, folder: str | Path, size: tuple[int, int] | None = None, *, channels: int = 3, crop: float = 1.0
    ) -> None:
        if channels not in MODES or not 0 < crop <= 1 or (size is not None and not (len(size) == 2 and min(size) > 0)):
            raise InputError(
                f"ImageFolder: got size={size}, channels={channels} and crop={crop}; expected (height, width), 1 or 3, and "
                "a part of the picture, above 0 and at most 1"
            )
        super().__init__(folder, SUFFIXES, "pictures")
        self._size, self._channels, self._crop = size, channels, crop

    def _content(self, path: Path) -> np.ndarray:
        pixels = read_pixels(path, self._channels, self._size, self._crop)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))


class TextFolder(_ClassFolder):
    """Items (text, label): the contents of files whose names end in `suffix`, in UTF-8."""

    def __init__(self, folder: str | Path, *, suffix: str = ".txt") -> None:
        super().__init__(folder, (suffix.lower(),), f"files *{suffix}")

    def _content(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                found = file.read(MOST_TEXT + 1)
        except OSError as e:
            raise InputError(f"{path}: cannot be read: {reason(e)}") from None
        if len(found) > MOST_TEXT:
            raise FormatError(f"{path}: a text of more than {MOST_TEXT} bytes")
        try:
            return found.decode()
        except UnicodeDecodeError as e:
            raise FormatError(f"{path}, byte {e.start}: not UTF-8") from None
