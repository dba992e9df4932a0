"""Places: where a traced function found its values (a variable, an attribute, an item), and what was there."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import is_
from pathlib import PurePath
from types import CellType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any, Final

import numpy as np

from ...dtypes import DType
from ..tensor import Tensor

MISSING: Final = object()
"""What is read where nothing is."""
PLAIN: Final = (
    bool, int, float, complex, str, bytes, type(None), type(...), np.generic, Enum, DType, np.dtype, slice, range,
    Decimal, Fraction, PurePath,
)  # fmt: skip
"""Values that do not change and are compared by their value."""
SEQUENCES: Final = (list, tuple, deque)
DICTS: Final = (dict, MappingProxyType)
HOLDER: Final = ("__class__", "__dict__")
"""What an object has beside its attributes, which may be replaced as a whole."""
BLOCK: Final = 1 << 15
"""So many elements of arrays are compared at a time, for which the cache has room."""
OURS: Final = frozenset({"singe", "singe_gpu", "singe_wasm", "singe_webgpu", "numpy", "wasmtime", "wgpu", "cffi"})
"""Singe and what it stands on."""
LIBRARIES: Final = OURS | sys.stdlib_module_names
"""Packages whose functions are not looked into: what they read is their own."""

Read = Callable[[Any, Any], Any]
"""(holder, key) ↦ what is there."""


# --- what is at a place ----------------------------------------------------------------------------------------------


def itself(holder: Any, key: Any) -> Any:
    """An object that was reached in no other way than by running: its own place does not change."""
    return key


def in_cell(holder: CellType, key: Any) -> Any:
    try:
        return holder.cell_contents
    except ValueError:  # not set
        return MISSING


def in_dict(holder: Any, key: Any) -> Any:
    return holder.get(key, MISSING)


def in_module(holder: ModuleType, key: str) -> Any:
    return vars(holder).get(key, MISSING)


def in_sequence(holder: Any, key: int) -> Any:
    return holder[key] if key < len(holder) else MISSING


def in_part(holder: Any, key: int) -> Any:
    """An item of a list or tuple of which no others are read."""
    return holder[key] if -len(holder) <= key < len(holder) else MISSING


def length(holder: Any, key: Any) -> Any:
    return len(holder)


def in_context(holder: ContextVar[Any], key: Any) -> Any:
    return holder.get(MISSING)


def in_thread(holder: Any, key: str) -> Any:
    """An attribute of a threading.local, of which each thread has its own."""
    return getattr(holder, key, MISSING)


def called(holder: Any, key: Any) -> Any:
    """What a weak reference refers to."""
    return holder()


def own_attributes(holder: Any) -> dict[str, Any]:
    """The attributes that an object itself has."""
    try:
        found = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def in_object(holder: Any, key: str) -> Any:
    """An attribute of an object itself, in its `__dict__` or a slot."""
    own = own_attributes(holder)
    if key in own:
        return own[key]
    for c in type(holder).__mro__:
        slot = vars(c).get(key)
        if isinstance(slot, (MemberDescriptorType, GetSetDescriptorType)):
            try:
                return slot.__get__(holder)
            except AttributeError:
                return MISSING
    return MISSING


def in_class(holder: type, key: str) -> Any:
    """An attribute of a class itself, not of its bases."""
    return vars(holder).get(key, MISSING)


def inherited(kind: type, name: str) -> Any:
    """An attribute of a class or of the first of its bases that has it."""
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), MISSING)


def is_closed(value: Any) -> bool:
    """Whether a value is a Module, the fields of which do not change."""
    return "_closed" in own_attributes(value)


class ValuePlace:
    """A place, what was there, and the places in that."""

    __slots__ = ("alias", "content", "key", "label", "parts", "read", "value")

    def __init__(self, label: str, read: Read, key: Any, value: Any) -> None:
        self.label = label
        self.read = read
        self.key = key
        self.value = value
        self.content: Any = None
        """Of what may change in place: a copy."""
        self.parts: list[ValuePlace] = []
        self.alias = False
        """Whether another place has the same object, so that an equal one would not do."""


# --- comparing -------------------------------------------------------------------------------------------------------


def changed(place: ValuePlace, holder: Any, checks: ValueChecks) -> ValuePlace | None:
    """The first place, of this one and those in it, at which another value is now; read from these holders.

    What is equal is added to the checks. Each place is read once, since other threads may write to it: what is compared is what
    the checks keep.
    """
    now = place.read(holder, place.key)
    items = tuple(now) if isinstance(now, SEQUENCES) and place.content is not None else now
    if not _same(place, now, items):
        return place
    checks.add(place, holder, now, items)
    return next((found for part in place.parts if (found := changed(part, items, checks)) is not None), None)


def _same(place: ValuePlace, now: Any, items: Any) -> bool:
    """Whether what is at a place is as it was, and the items if it is a list or tuple; what its parts compare is left to them."""
    was, content = place.value, place.content
    if isinstance(was, PLAIN) or was is MISSING:
        return equal(was, now)
    if type(was) is not type(now) or (place.alias and now is not was):
        return False
    if isinstance(was, np.ndarray):
        return (content is None and now is was) or same_array(now, was if content is None else content)
    if isinstance(content, bytes):
        return held_bytes(now) == content
    if isinstance(was, (*SEQUENCES, set, frozenset)) and content is None:
        return now is was
    if isinstance(was, SEQUENCES):
        return len(items) == len(content) and all(
            same_tensor(a, b) if isinstance(a, Tensor) else equal(a, b)
            for a, b in zip(content, items, strict=True)
            if isinstance(a, (*PLAIN, Tensor))
        )
    if isinstance(was, DICTS):
        return content is None or list(now) == content
    if isinstance(was, (set, frozenset)):
        return now == content
    if now is was:
        return True
    if place.alias or isinstance(was, (type, ModuleType)):
        return False
    if isinstance(was, Tensor):
        return same_tensor(was, now)
    if isinstance(was, FunctionType):
        return _same_function(was, now)
    if is_closed(was):
        return not place.parts and alike(was, now)  # its parts are those of the old one
    parts = [part for part in place.parts if part.key not in HOLDER]
    return bool(parts) and all(part.read in (in_object, in_class) for part in parts)


def _same_function(was: FunctionType, now: FunctionType) -> bool:
    """Whether two functions are one, made twice of the same values."""
    mine, others = (
        [in_cell(c, None) for c in f.__closure__ or ()] + [f.__defaults__, f.__kwdefaults__, f.__globals__]
        for f in (was, now)
    )
    return was.__code__ is now.__code__ and all(
        a is b or (isinstance(a, PLAIN) and equal(a, b)) for a, b in zip(mine, others, strict=True)
    )


def alike(was: Any, now: Any) -> bool:
    """Whether two values have the same contents, of Modules all fields."""
    if was is now:
        return True
    if isinstance(was, PLAIN):
        return equal(was, now)
    if type(was) is not type(now):
        return False
    if isinstance(was, np.ndarray):
        return same_array(was, now)
    if isinstance(was, Tensor):
        return same_tensor(was, now)
    if is_closed(was):
        was, now = own_attributes(was), own_attributes(now)
    if isinstance(was, dict):
        return list(was) == list(now) and all(alike(x, now[key]) for key, x in was.items())
    if isinstance(was, (list, tuple)):
        return len(was) == len(now) and all(map(alike, was, now))
    return False


def same_tensor(was: Tensor, now: Any) -> bool:
    return isinstance(now, Tensor) and was._value is now._value


def equal(was: Any, now: Any) -> bool:
    """Whether two plain values are one: of the same type, and equal; NaN is NaN, and 0.0 is not -0.0."""
    if was is now:
        return True
    if type(was) is not type(now) or isinstance(was, Enum):
        return False
    if isinstance(was, float):
        return (was == now and math.copysign(1, was) == math.copysign(1, now)) or (was != was and now != now)
    if isinstance(was, np.generic):
        return was.dtype == now.dtype and was.tobytes() == now.tobytes()
    return bool(was == now)


def same_array(was: np.ndarray, now: np.ndarray) -> bool:
    """Whether two arrays have the same bytes: exact, and as fast as memory is read."""
    if was.shape != now.shape or was.dtype != now.dtype:
        return False
    if was.dtype.hasobject:
        return all(map(is_, was.ravel().tolist(), now.ravel().tolist()))
    if was.flags.c_contiguous and now.flags.c_contiguous and was.nbytes:
        if was.nbytes <= 1024:
            return was.tobytes() == now.tobytes()
        kind = np.uint64 if was.nbytes % 8 == 0 else np.uint8
        a, b = (x.reshape(-1).view(kind) for x in (was, now))
        return all(bool((a[k : k + BLOCK] == b[k : k + BLOCK]).all()) for k in range(0, len(a), BLOCK))
    return was.tobytes() == now.tobytes()


# --- many places at once ---------------------------------------------------------------------------------------------


class ValueChecks:
    """What was found at places that are as they were, as flat lists that each run compares: by identity, and arrays by content."""

    def __init__(self) -> None:
        self._dicts: list[tuple[Callable[[Any, Any], Any], Any, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._slots: list[tuple[Any, str, Any]] = []
        self._sequences: list[tuple[Any, tuple[Any, ...]]] = []
        self._keys: list[tuple[Any, list[Any]]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self._bytes: list[tuple[Any, bytes]] = []
        self._lengths: list[tuple[Any, int]] = []
        self._others: list[tuple[Read, Any, Any, Any]] = []

    def __len__(self) -> int:
        each = (
            self._dicts, self._cells, self._slots, self._sequences, self._keys, self._contents, self._arrays, self._bytes,
            self._lengths, self._others,
        )  # fmt: skip
        return sum(map(len, each))

    def add(self, place: ValuePlace, holder: Any, now: Any, items: Any) -> None:
        """A place, with what is there now, and the items if it is a list or tuple."""
        match place.read:
            case _ if place.read is in_dict:
                self._dicts.append((holder.get, place.key, now))
            case _ if place.read is in_module:
                self._dicts.append((vars(holder).get, place.key, now))
            case _ if place.read is in_cell:
                self._cells.append((holder, now))
            case _ if place.read is in_object and not is_closed(holder):
                own = own_attributes(holder)
                if place.key in own or (now is MISSING and in_object(holder, "__dict__") is own):
                    self._dicts.append((own.get, place.key, now))
                else:
                    self._slots.append((holder, place.key, now))
            case _ if place.read is in_class:
                self._dicts.append((vars(holder).get, place.key, now))
            case _ if place.read is length:
                self._lengths.append((holder, now))
            case _ if place.read in (in_context, in_thread, in_part, called):
                self._others.append((place.read, holder, place.key, now))
            case _:
                pass
        if place.content is not None:
            if isinstance(place.content, bytes):
                self._bytes.append((now, place.content))
            elif isinstance(now, np.ndarray):
                self._arrays.append((now, place.content))
            elif isinstance(now, (list, deque)):
                self._sequences.append((now, items))
            elif isinstance(now, DICTS):
                self._keys.append((now, place.content))
            elif isinstance(now, set):
                self._contents.append((now, place.content))

    def hold(self) -> bool:
        """Whether all is as it was."""
        missing = MISSING
        try:
            for get, key, was in self._dicts:
                if get(key, missing) is not was:
                    return False
            for cell, was in self._cells:
                if cell.cell_contents is not was:
                    return False
            for holder, name, was in self._slots:
                if getattr(holder, name, missing) is not was:
                    return False
            for found, items in self._sequences:
                if len(found) != len(items) or not all(map(is_, found, items)):
                    return False
            for found, keys in self._keys:
                if len(found) != len(keys) or list(found) != keys:
                    return False
            for found, items in self._contents:
                if found != items:
                    return False
            for found, copy in self._arrays:
                if not same_array(found, copy):
                    return False
            for found, data in self._bytes:
                if held_bytes(found) != data:
                    return False
            for found, count in self._lengths:
                if len(found) != count:
                    return False
            for read, holder, key, was in self._others:
                if read(holder, key) is not was:
                    return False
        except (ValueError, RuntimeError):  # a cell that is empty now; a container that another thread changes
            return False
        return True


def copied(value: Any) -> Any:
    """A copy of what may change in place, to compare it with; None for values that cannot."""
    if isinstance(value, np.ndarray):
        return None if is_fixed(value) else value.copy()
    if isinstance(value, SEQUENCES):
        return tuple(value)
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    return held_bytes(value)


def size_of_copy(value: Any) -> int:
    """How many bytes `copied` copies."""
    if isinstance(value, np.ndarray):
        return 0 if is_fixed(value) else value.nbytes
    return 0 if (view := _view(value)) is None else view.nbytes


def held_bytes(value: Any) -> bytes | None:
    """What is in a bytearray, an array of Python's, a memoryview or what ctypes made; None for what holds no bytes."""
    return None if (view := _view(value)) is None else view.tobytes()


def _view(value: Any) -> memoryview | None:
    if (
        not hasattr(type(value), "__buffer__") and package(type(value)) in OURS
    ):  # Singe's and NumPy's speak for themselves
        return None
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None


def is_fixed(value: np.ndarray) -> bool:
    """Whether no array can write to the memory of this one."""
    at: Any = value
    while isinstance(at, np.ndarray):
        if at.flags.writeable:
            return False
        at = at.base
    return at is None or isinstance(at, bytes)


def package(value: Any) -> str:
    """The package in which a function, class or module was written."""
    name = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    return name.partition(".")[0] if isinstance(name, str) else ""


def ancestors(kind: type) -> Iterator[type]:
    """A class and its bases that users wrote."""
    return (c for c in kind.__mro__ if package(c) not in LIBRARIES)
