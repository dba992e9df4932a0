"""MNIST and FashionMNIST, and IDX, the format of their files: a type, the lengths of axes, and numbers, big-endian."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from ...errors import FormatError, InputError
from ...files import reason
from .labelled import LabelledPictures, Read, file_in

TYPES: Final = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP: Final = b"\x1f\x8b"
_EXPANSION: Final = 1032
"""Deflate makes at most this many bytes of one."""
MOST: Final = 1 << 30
"""The most bytes of a file, and of an array."""
_PARTS: Final = {True: "train", False: "t10k"}


def read_idx(path: str | Path) -> np.ndarray:
    """The array in an IDX file, which may be compressed by gzip."""
    try:
        with Path(path).open("rb") as file:
            found = file.read(MOST + 1)
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {reason(e)}") from None
    if len(found) > MOST:
        raise FormatError(f"{path}: more than the {MOST} bytes that are read")
    return parse_idx(found, str(path))


def parse_idx(data: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an IDX file. Memory is taken after the lengths have been compared with the bytes."""
    packed = data[:2] == _GZIP
    file = gzip.GzipFile(fileobj=io.BytesIO(data)) if packed else io.BytesIO(data)
    try:
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in TYPES:
            raise FormatError(f"{name}: begins with {head.hex(' ')}, which is no IDX file")
        dtype, rank = np.dtype(TYPES[head[2]]), head[3]
        sizes = file.read(4 * rank)
        if len(sizes) < 4 * rank:
            raise FormatError(f"{name}: ends within the lengths of its {rank} axes")
        shape = struct.unpack(f">{rank}I", sizes)
        size = math.prod(shape) * dtype.itemsize
        most = min(MOST, len(data) * (_EXPANSION if packed else 1))
        if size > most:
            raise FormatError(
                f"{name}: {shape} of {dtype.name} are {size} bytes, more than the {most} that can be in it"
            )
        values = file.read(size)
        if len(values) < size or file.read(1):
            raise FormatError(f"{name}: {shape} of {dtype.name} are {size} bytes, and {len(values)} or more follow")
    except (OSError, EOFError, zlib.error) as e:
        raise FormatError(f"{name}: the gzip stream is damaged: {e}") from None
    try:
        array = np.frombuffer(values, dtype).reshape(shape)
    except ValueError as e:
        raise FormatError(f"{name}: {rank} axes of lengths {shape}: {e}") from None
    return array.astype(dtype.newbyteorder("="), copy=False)


class MNIST(LabelledPictures):
    """Handwritten digits, 28 × 28: 60,000 for training (`train`), 10,000 for tests. LabelledPictures says what `source` is."""

    classes = tuple("0123456789")
    ADDRESSES = (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    )
    SHA256: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }

    @classmethod
    def _files(cls, train: bool) -> tuple[str, ...]:
        return tuple(name for name in cls.SHA256 if name.startswith(_PARTS[train]))

    def _take(self, train: bool, read: Read) -> None:
        images, labels = self._files(train)
        self._set(parse_idx(read(images), images), parse_idx(read(labels), labels), images)

    def _from_folder(self, folder: Path, train: bool) -> None:
        paths = [file_in(folder, _spellings(name)) for name in self._files(train)]
        images, labels = map(read_idx, paths)
        self._set(images, labels, str(paths[0]))

    def _set(self, images: np.ndarray, labels: np.ndarray, name: str) -> None:
        if images.ndim != 3 or labels.ndim != 1 or images.dtype != np.uint8 or labels.dtype != np.uint8:
            raise FormatError(
                f"{name}: got pictures {images.shape} of {images.dtype} and labels {labels.shape} of {labels.dtype}, "
                "expected (items, height, width) and (items,) of uint8"
            )
        self._keep(images[:, None], labels, name)


class FashionMNIST(MNIST):
    """Pictures of clothes, in the form of MNIST."""

    classes = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
    ADDRESSES = (
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    )
    SHA256: ClassVar[Mapping[str, str]] = {
        "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }


def _spellings(name: str) -> tuple[str, ...]:
    """How the file of this name may be called once it is on a disk."""
    plain = name.removesuffix(".gz")
    dotted = plain.replace("-idx", ".idx")
    return plain, name, dotted, f"{dotted}.gz"
