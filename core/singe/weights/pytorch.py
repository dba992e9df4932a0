"""PyTorch's `.pth`, `.pt` and `.bin` files → arrays by name, without executing what is in them.

A pickle is a program for a stack machine. Here the machine of pickles.py reads it, with an allowlist of names (GLOBALS),
none of which runs code of the file. A tensor is first read as a description of its place in a storage, and becomes an
array after the whole file is read. Three layouts are supported: the ZIP archive of PyTorch 1.6 and later, the archive of
TorchScript, whose modules are read for their tensors alone, and the older stream of pickles. Anything else is a
FormatError that gives the position.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, DType
from ..errors import FormatError, InputError
from ..late_dataclass import dataclass
from ..shapes import MAX_RANK, bytes_text
from .archive import Archive
from .pickles import Instance, Machine, is_key, shown
from .stored import elements

LEGACY: Final = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of the stream of pickles: a pickle of PyTorch's magic number."""
LEGACY_VERSION: Final = 1001
EXPORTED: Final = "/archive_format"
"""The end of an entry's name that only the archives of torch.export have."""
SHARING: Final = 8
"""Tensors may share storages; all arrays together take at most this many times the file's bytes."""
SHOWN: Final = 8
MOST_PARTS: Final = 200_000
MAX_DEPTH: Final = 100
MAX_PATH: Final = 1000
"""How many parts a TorchScript module may have, how deep one may be in others, and how long the name of a part may be."""


def is_stream(data: memoryview) -> bool:
    """Whether these bytes begin like the older layout of PyTorch's files."""
    return data[: len(LEGACY)] == LEGACY


def read_pytorch(
    data: memoryview | bytes | Archive, name: str = "weights", key: str | None = None
) -> dict[str, np.ndarray]:
    """The tensors of a state dict by name, in its order. Contiguous ones are views of the data.

    key: the key of the state dict in the file's dict; needed only if several entries are state dicts.
    """
    if not isinstance(data, Archive):
        view = memoryview(data)
        data = view if is_stream(view) else Archive(view, name)
    file = _Zip(data, name) if isinstance(data, Archive) else _Stream(data, name)
    state = _state(file.root, name, key)
    return _TensorReader(file, len(data), name).arrays(state)


# --- the values of a pickle -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Storage:
    """element: None for a storage of bytes, in which a tensor says what they are."""

    key: str
    element: DType | None
    count: int

    @property
    def size(self) -> int:
        return self.count * (1 if self.element is None else self.element.size)


@dataclass(frozen=True)
class _TensorView:
    storage: _Storage
    element: DType
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Global:
    """A name that a file may use; `call` implements REDUCE, or is None if the name is not a function."""

    name: str
    call: Callable[[tuple[Any, ...]], Any] | None = None
    element: DType | None = None  # of a dtype, or of a storage type
    storage: bool = False
    instances: bool = False  # whether it is a class whose objects may be in the file, as Instances


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError(f"{what} is {shown(value)}, expected a count")
    return value


def _counts(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > MAX_RANK:
        raise ValueError(f"{what} is {shown(value)}, expected at most {MAX_RANK} counts")
    return tuple(_count(v, what) for v in value)


def _tensor(arguments: tuple[Any, ...]) -> _TensorView:
    """Of a storage, an offset, sizes and strides; then what gradients need, and in a storage of bytes the dtype."""
    args = list(arguments)
    if not 4 <= len(args) <= 8 or not isinstance(args[0], _Storage):
        raise ValueError("a tensor is not made of a storage, an offset, sizes and strides")
    storage, element = args[0], args[0].element
    if element is None:
        element = args[6].element if len(args) > 6 and isinstance(args[6], _Global) else None
        if element is None:
            raise ValueError("a tensor in a storage of bytes has no dtype")
    shape, strides = _counts(args[2], "a tensor's size"), _counts(args[3], "a tensor's stride")
    if len(shape) != len(strides):
        raise ValueError(f"a tensor has {len(shape)} sizes and {len(strides)} strides")
    tensor = _TensorView(storage, element, _count(args[1], "a tensor's offset"), shape, strides)
    last = tensor.offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if 0 not in shape and last >= storage.size // element.size:
        raise ValueError(f"a tensor reaches to element {last} of a storage of {storage.size // element.size}")
    return tensor


def _of_type(args: tuple[Any, ...]) -> Any:
    """What a function made, in a subclass of tensors: (function, class, arguments, attributes)."""
    if len(args) != 4 or not isinstance(args[2], tuple) or getattr(args[0], "call", None) is _of_type:
        raise ValueError("a tensor of a subclass is not made of a function, a class and arguments")
    return _call(args[0], args[2])


def _first(args: tuple[Any, ...]) -> Any:
    return args[0] if args else None


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
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not is_key(pair[0]) or pair[0] in made:
            raise ValueError("an OrderedDict is not made of different strings, each with a value")
        made[pair[0]] = pair[1]
    pairs.clear()  # a list that is used repeatedly would be copied each time
    return made


_STORAGE_TYPES: Final = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
_DTYPES: Final = (
    *_STORAGE_TYPES.values(), "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip

GLOBALS: Final[Mapping[str, _Global]] = {
    g.name: g
    for g in (
        _Global("collections.OrderedDict", _ordered),
        _Global("torch._utils._rebuild_tensor", _tensor),
        _Global("torch._utils._rebuild_tensor_v2", _tensor),
        _Global("torch._utils._rebuild_tensor_v3", _tensor),
        _Global("torch._utils._rebuild_parameter", _parameter),
        _Global("torch._utils._rebuild_parameter_with_state", _parameter),
        _Global("torch._tensor._rebuild_from_type_v2", _of_type),
        _Global("torch.Size", _size),
        _Global("torch.device", lambda args: None),
        _Global("torch.Tensor"),
        _Global("torch.nn.parameter.Parameter"),
        *(_Global(f"torch.{kind}Storage", element=DTYPES[name], storage=True) for kind, name in _STORAGE_TYPES.items()),
        _Global("torch.storage.UntypedStorage", storage=True),
        *(_Global(f"torch.{name}", element=DTYPES[name]) for name in _DTYPES),
        # What checkpoints have beside weights; their values are not kept.
        _Global("argparse.Namespace", instances=True),
        _Global("numpy.dtype", lambda args: {}),
        _Global("numpy.core.multiarray.scalar", lambda args: None),
        _Global("numpy._core.multiarray.scalar", lambda args: None),
        _Global("_codecs.encode", lambda args: None),
    )
}
"""Every name that a file of `torch.save` may use."""

SCRIPT_GLOBALS: Final[Mapping[str, _Global]] = {
    f"torch.jit._pickle.{name}": _Global(name, _first)
    for name in ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist", "restore_type_tag")
}
"""What TorchScript's files may use as well."""
_SCRIPT_CLASS: Final = "__torch__."


def _script_global(name: str) -> _Global | None:
    """A name in a file of TorchScript's: its classes have names of the file's own."""
    if name.startswith(_SCRIPT_CLASS) and not name.startswith("__torch__.torch.classes."):
        return _Global(name, instances=True)
    return GLOBALS.get(name) or SCRIPT_GLOBALS.get(name)


def _storage(pid: Any) -> _Storage:
    """The storage of a persistent id: ("storage", type, key, location, count), with a view before PyTorch 1.6."""
    if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
        raise ValueError("a persistent id is not a storage")
    kind, key, view = pid[1], pid[2], pid[5] if len(pid) == 6 else None
    if not isinstance(kind, _Global) or not kind.storage or not isinstance(key, str) or view is not None:
        raise ValueError("a storage is not as PyTorch writes it: a type, a key, a device, a count, no view")
    return _Storage(key, kind.element, _count(pid[4], "a storage's count"))


def _call(function: Any, args: tuple[Any, ...]) -> Any:
    if not isinstance(function, _Global) or function.call is None:
        raise ValueError(f"calls {function.name if isinstance(function, _Global) else shown(function)}")
    return function.call(args)


def _new(kind: Any) -> Instance:
    if not isinstance(kind, _Global) or not kind.instances:
        raise ValueError(f"makes an object of {kind.name if isinstance(kind, _Global) else shown(kind)}")
    return Instance()


def _machine(data: memoryview, at: int, name: str, known: Callable[[str], Any] = GLOBALS.get) -> Machine:
    return Machine(data, at, name, known, _call, _storage, _new)


# --- the layouts of files ---------------------------------------------------------------------------------------------


class _Zip:
    """A ZIP archive: X/data.pkl, and storages by key in X/data/. PyTorch compresses nothing but the code of TorchScript
    in X/code/, which is not read; other compressed entries are refused."""

    def __init__(self, archive: Archive, name: str) -> None:
        self._name, self._archive = name, archive
        roots = [n[: -len("data.pkl")] for n in archive.entries if n == "data.pkl" or n.endswith("/data.pkl")]
        if not roots and any(n.endswith(EXPORTED) for n in archive.entries):
            raise FormatError(
                f"{name}: a program of torch.export, expected a state dict: torch.save(torch.export.load(path).state_dict, "
                "other_path); or export the model to ONNX and load that"
            )
        if len(roots) != 1:
            raise FormatError(
                f"{name}: an archive with {len(roots)} entries data.pkl, expected one: no file of PyTorch's"
            )
        (self._root,) = roots
        archive.refuse_compressed(but=f"{self._root}code/")
        order = self._root + "byteorder"
        if order in archive.entries and archive.read(order) != b"little":
            raise FormatError(f"{name}: written on a big-endian machine, which is not supported")
        script = self._root + "constants.pkl" in archive.entries
        pickled, where = archive.read(self._root + "data.pkl"), f"{name}: data.pkl"
        made = _machine(pickled, 0, where, _script_global if script else GLOBALS.get).value
        self.root = _script_state(made, name) if script else made

    def bytes_of(self, storage: _Storage) -> memoryview:
        entry = f"{self._root}data/{storage.key}"
        if entry not in self._archive.entries:
            raise FormatError(f"{self._name}: the storage {storage.key!r:.60} is not in the archive")
        return self._archive.read(entry)


class _Stream:
    """A sequence of pickles: magic, version, facts about the system, the object, the keys of its storages. Then comes
    each storage, as a count (int64) and its elements."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._name, at, made = name, len(LEGACY), []
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
        return self._data[at : at + storage.size]

    def _find(self, storages: Mapping[str, _Storage]) -> None:
        """Find where each storage's elements begin. The file has only counts; element types come from the object."""
        at = self._at
        for key in self._keys:
            storage = storages.get(key)
            if storage is None or at + 8 > len(self._data):
                raise FormatError(f"{self._name}, byte {at}: no storage {key!r:.60}, or none that a tensor uses")
            (count,) = struct.unpack_from("<q", self._data, at)
            size = storage.size
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


def _script_state(root: Any, name: str) -> dict[str, _TensorView]:
    """The tensors of a TorchScript module by their paths."""
    if not isinstance(root, Instance):
        raise FormatError(f"{name}: a TorchScript model that holds {shown(root)}, expected a module")
    found: dict[str, _TensorView] = {}
    stack: list[tuple[str, Any, int]] = [("", root, 0)]
    for _ in range(MOST_PARTS):
        if not stack:
            return found
        path, value, depth = stack.pop()
        if isinstance(value, _TensorView):
            found[path] = value
        elif isinstance(value, Instance):
            if depth == MAX_DEPTH:
                raise FormatError(f"{name}: a TorchScript module with parts nested more than {MAX_DEPTH} deep")
            if len(path) > MAX_PATH:
                raise FormatError(f"{name}: a TorchScript module with names of more than {MAX_PATH} characters")
            parts = [(f"{path}.{k}" if path else str(k), v, depth + 1) for k, v in value.attributes.items()]
            stack.extend(reversed(parts))
    raise FormatError(f"{name}: a TorchScript module of more than {MOST_PARTS:,} parts")


def _state(root: Any, name: str, key: str | None) -> dict[str, _TensorView]:
    """The state dict: the object itself, or its one entry that is a state dict ({"epoch": 3, "state_dict": {…}})."""
    if not isinstance(root, dict):
        held = "a tensor" if isinstance(root, _TensorView) else shown(root)
        raise FormatError(f"{name}: holds {held}, expected a state dict: torch.save(model.state_dict(), path)")
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

    def __init__(self, file: _Zip | _Stream, size: int, name: str) -> None:
        self._file, self._name, self._room = file, name, SHARING * size
        self._limit = self._room
        self._storages: dict[str, memoryview] = {}
        self._known: dict[str, _Storage] = {}
        self._made: dict[_TensorView, np.ndarray] = {}

    def arrays(self, state: Mapping[str, _TensorView]) -> dict[str, np.ndarray]:
        return {k: self._array(k, t) for k, t in state.items()}

    def _array(self, key: str, tensor: _TensorView) -> np.ndarray:
        if tensor not in self._made:
            count = 1
            for n in tensor.shape:
                count *= n
            element = tensor.element
            self._room -= count * max(4, element.size)
            if self._room < 0:
                raise FormatError(
                    f"{self._name}: {key!r:.60} and those before it take more than {bytes_text(self._limit)}, "
                    f"{SHARING} times the file"
                )
            raw = self._storage(tensor.storage)
            storage = elements(raw[: len(raw) // element.size * element.size], element, (-1,))
            strides = tuple(s * storage.itemsize for s in tensor.strides)
            if count == 0:
                view = np.empty(tensor.shape, storage.dtype)
            else:  # within the storage, as _tensor and _storage have checked
                view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, strides, writeable=False)
            self._made[tensor] = np.ascontiguousarray(view).reshape(tensor.shape)
        return self._made[tensor]

    def _storage(self, storage: _Storage) -> memoryview:
        if self._known.setdefault(storage.key, storage) != storage:
            raise FormatError(f"{self._name}: the storage {storage.key!r:.60} is described in two ways")
        if storage.key not in self._storages:
            raw = self._file.bytes_of(storage)
            if len(raw) != storage.size:
                kind = "bytes" if storage.element is None else f"elements of {storage.element.name}"
                raise FormatError(
                    f"{self._name}: the storage {storage.key!r:.60} has {len(raw)} bytes, expected {storage.count} {kind}"
                )
            self._storages[storage.key] = raw
        return self._storages[storage.key]
