"""PyTorch's `.pth` and `.pt` files → arrays by name, without executing what is in them.

A pickle is a program for a stack machine. Here the machine of pickles.py reads it, with an allowlist of names (GLOBALS),
none of which runs code of the file. A tensor is first read as a description of its place in a storage, and becomes an
array after the whole file is read. Two layouts are supported: the ZIP archive of PyTorch 1.6 and later, and the older
stream of pickles. Anything else is a FormatError that gives the position.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np

from ..errors import FormatError, InputError
from ..shapes import bytes_text
from .pickles import Machine, shown

ZIP: Final = b"PK\x03\x04"
LEGACY: Final = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of the stream of pickles: a pickle of PyTorch's magic number."""
LEGACY_VERSION: Final = 1001
SHARING: Final = 8
"""Tensors may share storages; all arrays together take at most this many times the file's bytes."""
SHOWN: Final = 8
_RANK: Final = 32


def is_pytorch(data: bytes) -> bool:
    """Whether these bytes begin like a file of PyTorch."""
    return data.startswith((ZIP, LEGACY))


def read_pytorch(data: bytes, name: str = "weights", key: str | None = None) -> dict[str, np.ndarray]:
    """The tensors of a state dict by name, in its order; bfloat16 becomes float32, strided views become contiguous.

    key: the key of the state dict in the file's dict; needed only if several entries are state dicts.
    """
    file = _Archive(data, name) if data.startswith(ZIP) else _Stream(data, name)
    state = _state(file.root, name, key)
    return _TensorReader(file, len(data), name).arrays(state)


# --- the values of a pickle -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StorageType:
    """The element type of a storage. bfloat16 is kept as its upper halves of float32s."""

    name: str
    numpy: np.dtype[Any]

    def array(self, raw: np.ndarray) -> np.ndarray:
        return (raw.astype(np.uint32) << 16).view(np.float32) if self.name == "bfloat16" else raw


@dataclass(frozen=True)
class _Storage:
    key: str
    element: _StorageType
    count: int


@dataclass(frozen=True)
class _TensorView:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Global:
    """An entry of GLOBALS; `call` implements REDUCE, or is None if the name is not a function."""

    name: str
    call: Callable[[tuple[Any, ...]], Any] | None = None
    element: _StorageType | None = None


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError(f"{what} is {shown(value)}, expected a count")
    return value


def _counts(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > _RANK:
        raise ValueError(f"{what} is {shown(value)}, expected at most {_RANK} counts")
    return tuple(_count(v, what) for v in value)


def _tensor(args: tuple[Any, ...]) -> _TensorView:
    if not 4 <= len(args) <= 7 or not isinstance(args[0], _Storage):
        raise ValueError("a tensor is not made of a storage, an offset, sizes and strides")
    shape, strides = _counts(args[2], "a tensor's size"), _counts(args[3], "a tensor's stride")
    if len(shape) != len(strides):
        raise ValueError(f"a tensor has {len(shape)} sizes and {len(strides)} strides")
    tensor = _TensorView(args[0], _count(args[1], "a tensor's offset"), shape, strides)
    last = tensor.offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if 0 not in shape and last >= tensor.storage.count:
        raise ValueError(f"a tensor reaches to element {last} of a storage of {tensor.storage.count}")
    return tensor


def _parameter(args: tuple[Any, ...]) -> _TensorView:
    if not args or not isinstance(args[0], _TensorView):
        raise ValueError("a parameter is not made of a tensor")
    return args[0]


def _size(args: tuple[Any, ...]) -> tuple[int, ...]:
    return _counts(args[0] if args else None, "a size")


def _ordered(args: tuple[Any, ...]) -> dict[Any, Any]:
    """An empty OrderedDict, filled later; or, as Python 2 wrote it, one made of a list of [key, value]."""
    pairs = args[0] if len(args) == 1 else []
    if len(args) > 1 or not isinstance(pairs, list):
        raise ValueError("an OrderedDict is made of something other than nothing or one list")
    made: dict[Any, Any] = {}
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or type(pair[0]) not in (str, int) or pair[0] in made:
            raise ValueError("an OrderedDict is not made of different strings, each with a value")
        made[pair[0]] = pair[1]
    pairs.clear()  # a list that is used repeatedly would be copied each time
    return made


_STORAGE_TYPES: Final = {
    "Float": ("float32", "<f4"), "Double": ("float64", "<f8"), "Half": ("float16", "<f2"), "BFloat16": ("bfloat16", "<u2"),
    "Long": ("int64", "<i8"), "Int": ("int32", "<i4"), "Short": ("int16", "<i2"), "Char": ("int8", "i1"),
    "Byte": ("uint8", "u1"), "Bool": ("bool", "?"),
}  # fmt: skip
_KINDS: Final = {kind: _StorageType(name, np.dtype(spelled)) for kind, (name, spelled) in _STORAGE_TYPES.items()}

GLOBALS: Final[Mapping[str, _Global]] = {
    g.name: g
    for g in (
        _Global("collections.OrderedDict", _ordered),
        _Global("torch._utils._rebuild_tensor", _tensor),
        _Global("torch._utils._rebuild_tensor_v2", _tensor),
        _Global("torch._utils._rebuild_parameter", _parameter),
        _Global("torch.Size", _size),
        _Global("torch.device", lambda args: None),
        *(_Global(f"torch.{kind}Storage", element=element) for kind, element in _KINDS.items()),
        *(_Global(f"torch.{element.name}") for element in _KINDS.values()),
    )
}
"""Every name that a file may use."""


def _storage(pid: Any) -> _Storage:
    """The storage of a persistent id: ("storage", type, key, location, count), with a view before PyTorch 1.6."""
    if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
        raise ValueError("a persistent id is not a storage")
    kind, key, view = pid[1], pid[2], pid[5] if len(pid) == 6 else None
    if not isinstance(kind, _Global) or kind.element is None or not isinstance(key, str) or view is not None:
        raise ValueError("a storage is not as PyTorch writes it: a type, a key, a device, a count, no view")
    return _Storage(key, kind.element, _count(pid[4], "a storage's count"))


def _call(function: Any, args: tuple[Any, ...]) -> Any:
    if not isinstance(function, _Global) or function.call is None:
        raise ValueError(f"calls {function.name if isinstance(function, _Global) else shown(function)}")
    return function.call(args)


def _machine(data: bytes, at: int, name: str) -> Machine:
    return Machine(data, at, name, GLOBALS, _call, _storage)


# --- the two layouts of files -----------------------------------------------------------------------------------------


class _Archive:
    """A ZIP archive: X/data.pkl, and storages by key in X/data/. PyTorch never compresses; compressed files are refused."""

    def __init__(self, data: bytes, name: str) -> None:
        self._name = name
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as e:  # zipfile raises many kinds of errors for damaged archives
            self._refuse("the archive", e)
        entries = self._zip.infolist()
        self._entries = {i.filename: i for i in entries}
        if len(self._entries) != len(entries):
            raise FormatError(f"{name}: two entries of the archive have one name")
        for i in entries:
            parts = i.filename.split("/")
            if ".." in parts or parts[0] == "" or "\\" in i.filename:
                raise FormatError(f"{name}: the archive's entry {i.filename!r:.80} leads out of it")
            if i.compress_type != zipfile.ZIP_STORED or i.compress_size != i.file_size or i.flag_bits & 1:
                raise FormatError(
                    f"{name}: the archive's entry {i.filename!r:.80} is compressed or encrypted; PyTorch stores"
                )
        # Overlapping entries are how a small archive expands to a huge one.
        if sum(i.file_size for i in entries) > len(data):
            raise FormatError(f"{name}: the archive's entries are larger than the file")
        roots = [n[: -len("data.pkl")] for n in self._entries if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(roots) != 1:
            raise FormatError(
                f"{name}: an archive with {len(roots)} entries data.pkl, expected one: no file of PyTorch's"
            )
        (self._root,) = roots
        if self._root + "constants.pkl" in self._entries:
            raise FormatError(
                f"{name}: a TorchScript model, expected a state dict: torch.save(model.state_dict(), path)"
            )
        order = self._root + "byteorder"
        if order in self._entries and self._read(order) != b"little":
            raise FormatError(f"{name}: written on a big-endian machine, which is not supported")
        self.root = _machine(self._read(self._root + "data.pkl"), 0, f"{name}: data.pkl").value

    def bytes_of(self, storage: _Storage) -> memoryview:
        entry = f"{self._root}data/{storage.key}"
        if entry not in self._entries:
            raise FormatError(f"{self._name}: the storage {storage.key!r:.60} is not in the archive")
        return memoryview(self._read(entry))

    def _read(self, entry: str) -> bytes:
        try:
            return self._zip.read(self._entries[entry])
        except Exception as e:
            self._refuse(f"the archive's entry {entry!r:.80}", e)

    def _refuse(self, what: str, e: Exception) -> NoReturn:
        raise FormatError(f"{self._name}: {what} is damaged: {e or type(e).__name__}") from None


class _Stream:
    """A sequence of pickles: magic, version, facts about the system, the object, the keys of its storages. Then comes
    each storage, as a count (int64) and its elements."""

    def __init__(self, data: bytes, name: str) -> None:
        self._name, at, made = name, len(LEGACY), []
        if not data.startswith(LEGACY):
            raise FormatError(f"{name}: starts with {data[:8]!r}, expected a file of PyTorch's")
        for _ in range(4):
            machine = _machine(data, at, name)
            made.append(machine.value)
            at = machine.at
        version, system, self.root, keys = made
        if version != LEGACY_VERSION:
            raise FormatError(f"{name}: version {shown(version)} of PyTorch's files, expected {LEGACY_VERSION}")
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise FormatError(f"{name}: written on a big-endian machine, which is not supported")
        if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys) or len(set(keys)) != len(keys):
            raise FormatError(f"{name}: the keys of its storages are not a list of different strings")
        self._data, self._keys, self._at = data, keys, at
        self._places: dict[str, int] = {}

    def bytes_of(self, storage: _Storage) -> memoryview:
        if not self._places:
            self._find(_storages(self.root))
        if storage.key not in self._places:
            raise FormatError(f"{self._name}: the storage {storage.key!r:.60} is not in the file")
        at = self._places[storage.key]
        return memoryview(self._data)[at : at + storage.count * storage.element.numpy.itemsize]

    def _find(self, storages: Mapping[str, _Storage]) -> None:
        """Find where each storage's elements begin. The file has only counts; element types come from the object."""
        at = self._at
        for key in self._keys:
            storage = storages.get(key)
            if storage is None or at + 8 > len(self._data):
                raise FormatError(f"{self._name}, byte {at}: no storage {key!r:.60}, or none that a tensor uses")
            (count,) = struct.unpack_from("<q", self._data, at)
            size = storage.count * storage.element.numpy.itemsize
            if count != storage.count or at + 8 + size > len(self._data):
                raise FormatError(
                    f"{self._name}, byte {at}: storage {key!r:.60} has {count} elements, expected {storage.count}, "
                    f"and {len(self._data) - at - 8} bytes follow"
                )
            self._places[key] = at + 8
            at += 8 + size


def _storages(root: Any) -> dict[str, _Storage]:
    """Every storage that tensors use, by key."""
    found: dict[str, _Storage] = {}
    seen: set[int] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, _TensorView):
            found.setdefault(value.storage.key, value.storage)
        elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            stack.extend(value.values() if isinstance(value, dict) else value)
    return found


# --- from the object to arrays ----------------------------------------------------------------------------------------


def _state(root: Any, name: str, key: str | None) -> dict[str, _TensorView]:
    """The state dict: the object itself, or its one entry that is a state dict ({"epoch": 3, "state_dict": {…}})."""
    if not isinstance(root, dict):
        raise FormatError(f"{name}: holds {shown(root)}, expected a state dict: torch.save(model.state_dict(), path)")
    found = {str(k): v for k, v in root.items() if _is_state(v)}
    keys = _listed(list(map(str, root))) or "none"
    if key is not None:
        if key not in found:
            raise InputError(f"{name}: no state dict under the key {key!r}; its keys are {keys}")
        return found[key]
    if _is_state(root):
        return root
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise InputError(f"{name}: several state dicts; choose one with key=: {_listed(list(found))}")
    raise FormatError(f"{name}: neither a state dict nor a dict that holds one; its keys are {keys}")


def _is_state(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, _TensorView) for k, v in value.items())
    )


def _listed(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(f"{n!r:.60}" for n in names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


class _TensorReader:
    """Turns tensors into arrays; equal tensors share one array."""

    def __init__(self, file: _Archive | _Stream, size: int, name: str) -> None:
        self._file, self._name, self._room = file, name, SHARING * size
        self._limit = self._room
        self._storages: dict[str, np.ndarray] = {}
        self._known: dict[str, _Storage] = {}
        self._made: dict[_TensorView, np.ndarray] = {}

    def arrays(self, state: Mapping[str, _TensorView]) -> dict[str, np.ndarray]:
        return {k: self._array(k, t) for k, t in state.items()}

    def _array(self, key: str, tensor: _TensorView) -> np.ndarray:
        if tensor not in self._made:
            count = 1
            for n in tensor.shape:
                count *= n
            self._room -= count * max(4, tensor.storage.element.numpy.itemsize)
            if self._room < 0:
                raise FormatError(
                    f"{self._name}: {key!r:.60} and those before it take more than {bytes_text(self._limit)}, "
                    f"{SHARING} times the file"
                )
            element = tensor.storage.element
            storage = self._storage(tensor.storage)
            strides = tuple(s * storage.itemsize for s in tensor.strides)
            if count == 0:
                view = np.empty(tensor.shape, storage.dtype)
            else:  # within the storage, as _tensor and _storage have checked
                view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, strides, writeable=False)
            self._made[tensor] = element.array(np.ascontiguousarray(view).reshape(tensor.shape))
        return self._made[tensor]

    def _storage(self, storage: _Storage) -> np.ndarray:
        if self._known.setdefault(storage.key, storage) != storage:
            raise FormatError(f"{self._name}: the storage {storage.key!r:.60} is described in two ways")
        if storage.key not in self._storages:
            raw = self._file.bytes_of(storage)
            if len(raw) != storage.count * storage.element.numpy.itemsize:
                raise FormatError(
                    f"{self._name}: the storage {storage.key!r:.60} has {len(raw)} bytes, "
                    f"expected {storage.count} elements of {storage.element.name}"
                )
            self._storages[storage.key] = np.frombuffer(raw, storage.element.numpy)
        return self._storages[storage.key]
