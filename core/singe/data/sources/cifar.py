"""CIFAR-10 and CIFAR-100: archives of pictures of 32 × 32, in the binary version and in that of Python's pickles.

A binary file is a sequence of records: the labels (one byte; in CIFAR-100 two, the coarse one first) and 3072 pixels. A
pickle is read by the machine of weights/pickles.py, which executes nothing of it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from ...errors import FormatError, InputError
from ...files import reason
from ...late_dataclass import dataclass
from ...weights.pickles import Machine, shown
from .labelled import LabelledPictures, Read

PIXELS: Final = 3 * 32 * 32
MOST: Final = 1 << 28
"""The most bytes of a file, and of what an archive has; the largest archive has 185 MB."""
MOST_MEMBERS: Final = 64


_FINE: Final = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle wardrobe whale
willow_tree wolf woman worm
"""
_COARSE: Final = """
aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices household_furniture
insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores
medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
"""


@dataclass
class _PickledArray:
    """An array of a pickle: its bytes, once its state is set."""

    data: _Latin | bytes | str | None = None
    shape: Any = None


@dataclass(frozen=True)
class _Latin:
    """The bytes that a text of Latin-1 has. It is encoded when the file has been read: a file may ask for that any number of
    times, of one long text."""

    text: str


def _dtype(args: tuple[Any, ...]) -> dict[str, Any]:
    if not args or args[0] not in ("u1", "|u1"):
        raise ValueError(f"an array of {shown(args[0]) if args else 'nothing'}, expected uint8")
    return {}  # its state, which would say the byte order, is ignored


def _encoded(args: tuple[Any, ...]) -> _Latin:
    if len(args) != 2 or not isinstance(args[0], str) or args[1] != "latin1":
        raise ValueError("bytes are not written as Python 3 does for Python 2")
    return _Latin(args[0])


def _uncalled(args: tuple[Any, ...]) -> Any:
    raise ValueError("calls numpy.ndarray")


_GLOBALS: Final[Mapping[str, Any]] = {
    "numpy.ndarray": _uncalled,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": lambda args: _PickledArray(),
    "numpy._core.multiarray._reconstruct": lambda args: _PickledArray(),
    "_codecs.encode": _encoded,
}


def _build(target: Any, state: Any) -> bool:
    """The state of an array: version, shape, dtype, whether columns come first, bytes."""
    if not isinstance(target, _PickledArray):
        return False
    if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[4], (bytes, str, _Latin)) or state[3]:
        raise ValueError("the state of an array is not as NumPy writes it")
    target.shape, target.data = state[1], state[4]
    return True


def _pixels(array: Any, name: str) -> np.ndarray:
    """The pixels of an array, a row for each picture."""
    if not isinstance(array, _PickledArray) or array.data is None:
        raise FormatError(f"{name}: expected a dict with an array `data`")
    given = array.data
    try:  # bytes that happen to be UTF-8 were read as a text
        data = (
            given
            if isinstance(given, bytes)
            else given.encode()
            if isinstance(given, str)
            else given.text.encode("latin-1")
        )
    except UnicodeEncodeError:
        raise FormatError(f"{name}: the array `data` is not made of bytes") from None
    if array.shape != (len(data) // PIXELS, PIXELS) or len(data) % PIXELS:
        raise FormatError(
            f"{name}: an array of shape {shown(array.shape)} has {len(data)} bytes, expected rows of {PIXELS}"
        )
    return np.frombuffer(data, np.uint8).reshape(-1, PIXELS)


def _call(function: Any, args: tuple[Any, ...]) -> Any:
    return function(args)


def _none(value: Any) -> Any:
    raise ValueError("a persistent id, which these files do not have")


def read_pickle(data: bytes, name: str, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (items, 3072) and the labels of a key, of a file of the Python version."""
    root = Machine(memoryview(data), 0, name, _GLOBALS.get, _call, _none, build=_build).value
    labels = root.get(key) if isinstance(root, dict) else None
    if not isinstance(root, dict) or not isinstance(labels, list):
        raise FormatError(f"{name}: expected a dict with an array `data` and a list `{key}`")
    if not all(type(x) is int and 0 <= x < 256 for x in labels):
        raise FormatError(f"{name}: the list `{key}` has other values than labels")
    return _pixels(root.get("data"), name), np.array(labels, np.int64)


def read_records(data: bytes, name: str, labels: int, which: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (items, 3072) and one of the labels of the records of a binary file."""
    if len(data) % (PIXELS + labels):
        raise FormatError(f"{name}: {len(data)} bytes, expected records of {PIXELS + labels}")
    records = np.frombuffer(data, np.uint8).reshape(-1, PIXELS + labels)
    return records[:, labels:], records[:, which]


class CIFAR10(LabelledPictures):
    """Photographs of ten things: 50,000 for training (`train`), 10,000 for tests. `source` may also be an archive, of the
    binary version or of Python's, or a folder with the files of one; LabelledPictures says more."""

    classes: tuple[str, ...] = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip
    ADDRESSES = ("https://www.cs.toronto.edu/~kriz/",)
    SHA256: ClassVar[Mapping[str, str]] = {
        "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    }
    STEMS: ClassVar[Mapping[bool, tuple[str, ...]]] = {
        True: tuple(f"data_batch_{i}" for i in range(1, 6)),
        False: ("test_batch",),
    }
    """The files of a part, by `train`; those of the binary version end in .bin."""
    LABELS: ClassVar[int] = 1
    """How many labels a record has."""
    _which, _key = 0, "labels"

    @classmethod
    def _files(cls, train: bool) -> tuple[str, ...]:
        return tuple(cls.SHA256)

    def _take(self, train: bool, read: Read) -> None:
        (name,) = self.SHA256
        self._set(_members(read(name), name, self._names(train)), train, name)

    def _from_folder(self, folder: Path, train: bool) -> None:
        names = self._names(train)
        try:
            if folder.is_file():
                found = _members(_bounded(folder), str(folder), names)
            else:
                places = [folder, *sorted(p for p in folder.iterdir() if p.is_dir())]
                paths = [p / name for p in places for name in names if (p / name).is_file()]
                found = {path.name: _bounded(path) for path in paths}
        except OSError as e:
            raise InputError(f"{folder}: cannot be read: {reason(e)}") from None
        self._set(found, train, str(folder))

    def _names(self, train: bool) -> tuple[str, ...]:
        return tuple(stem + end for stem in self.STEMS[train] for end in (".bin", ""))

    def _set(self, files: Mapping[str, bytes], train: bool, where: str) -> None:
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for stem in self.STEMS[train]:
            if f"{stem}.bin" in files:
                parts.append(read_records(files[f"{stem}.bin"], f"{where}: {stem}.bin", self.LABELS, self._which))
            elif stem in files:
                parts.append(read_pickle(files[stem], f"{where}: {stem}", self._key))
            else:
                raise InputError(f"{where}: expected a file {stem}.bin or {stem} in it; without `source` it is fetched")
        pixels, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._keep(pixels.reshape(-1, 3, 32, 32), labels, where)


class CIFAR100(CIFAR10):
    """The same of a hundred things, or, if `coarse`, of the twenty groups that they are in."""

    classes = tuple(_FINE.split())
    COARSE: Final = tuple(_COARSE.split())
    SHA256: ClassVar[Mapping[str, str]] = {
        "cifar-100-binary.tar.gz": "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
    }
    STEMS: ClassVar[Mapping[bool, tuple[str, ...]]] = {True: ("train",), False: ("test",)}
    LABELS = 2
    _which, _key = 1, "fine_labels"

    def __init__(self, source: str | Path | None = None, *, train: bool = True, coarse: bool = False) -> None:
        if coarse:
            self.classes, self._which, self._key = self.COARSE, 0, "coarse_labels"
        super().__init__(source, train=train)


def _bounded(path: Path) -> bytes:
    if path.stat().st_size > MOST:
        raise FormatError(
            f"{path}: {path.stat().st_size} bytes, more than the {MOST} that a file of these data sets has"
        )
    return path.read_bytes()


class _Limited:
    """A stream of at most MOST bytes: the headers of an archive, too, may claim any size."""

    def __init__(self, file: gzip.GzipFile, name: str) -> None:
        self._file, self._name, self._left = file, name, MOST

    def read(self, count: int) -> bytes:
        found = self._file.read(min(count, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise FormatError(f"{self._name}: the archive has more than {MOST} bytes")
        return found


def _members(data: bytes, name: str, wanted: tuple[str, ...]) -> dict[str, bytes]:
    """Files of an archive by their names without folders. Nothing is written to the disk."""
    found: dict[str, bytes] = {}
    stream: Any = _Limited(gzip.GzipFile(fileobj=io.BytesIO(data)), name)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for number, member in enumerate(archive):
                if number >= MOST_MEMBERS:
                    raise FormatError(f"{name}: more files than these data sets have")
                plain = member.name.rpartition("/")[2]
                if plain in wanted and member.isreg():
                    if plain in found:
                        raise FormatError(f"{name}: two files are named {plain}")
                    file = archive.extractfile(member)
                    content = file.read() if file else b""
                    if len(content) < member.size:
                        raise FormatError(f"{name}: ends within {plain}")
                    found[plain] = content
    except FormatError:
        raise
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as e:
        raise FormatError(f"{name}: the archive is damaged: {e}") from None
    return found
