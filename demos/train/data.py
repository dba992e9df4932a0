"""The images of the training page, packed into one file: `digits(folder)`.

`python demos/train/data.py FOLDER` writes small.bin, for sites that are built where MNIST cannot be had, from a folder with
MNIST's files.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path
from typing import Final

import numpy as np

import singe as sg

HERE: Final = Path(__file__).resolve().parent
SMALL: Final = HERE / "small.bin"
COUNTS: Final = (20_000, 10_000)
"""Of images to learn from, and to test with."""
SMALL_COUNTS: Final = (1_000, 400)


def digits(folder: Path) -> bytes:
    """The packed images of MNIST, whose files are in a folder, or else are fetched."""
    return packed(folder if folder.is_dir() else None, COUNTS)


def stamp() -> str:
    """A hash of this file: what `digits` gives changes only with it."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def packed(source: Path | None, counts: tuple[int, int]) -> bytes:
    """Two counts (uint32, little-endian), all labels, all images as bytes, compressed by gzip: digits.js reads it."""
    parts = [sg.data.MNIST(source, train=train) for train in (True, False)]
    labels, images = [
        np.concatenate([np.asarray(part.columns[column][:count]) for part, count in zip(parts, counts, strict=True)])
        for column in (1, 0)
    ]
    return gzip.compress(
        np.array(counts, "<u4").tobytes() + labels.astype(np.uint8).tobytes() + images.tobytes(), 9, mtime=0
    )


if __name__ == "__main__":
    SMALL.write_bytes(packed(Path(sys.argv[1]), SMALL_COUNTS))
