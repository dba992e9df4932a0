"""Finds the places that functions which ran could read: variables, then attributes and items by the names in their code.

An attribute of an object that was reached counts as read if some function that ran has its name, and an item of a dict if its
key is a constant there, or if a function may read any item. So a value may be observed that was not read, and a change of it
costs a trace; a value that was read is not missed.
"""

from __future__ import annotations

import builtins
import functools
import gc
import io
import operator
import random
import sys
import threading
import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..tensor import Tensor
from .code import Reads, inner, names_in
from .places import (
    DICTS,
    LIBRARIES,
    MISSING,
    OURS,
    PLAIN,
    SEQUENCES,
    Read,
    ValuePlace,
    ancestors,
    called,
    copied,
    in_cell,
    in_class,
    in_context,
    in_dict,
    in_module,
    in_object,
    in_part,
    in_sequence,
    in_thread,
    inherited,
    is_closed,
    itself,
    length,
    own_attributes,
    package,
    size_of_copy,
)

MOST_PLACES: Final = 10_000
MOST_ITEMS: Final = 100_000
"""Of one container."""
LARGE: Final = 1_000
"""Of a container of more items, only those are observed that are read, if the code tells which."""
MOST_BYTES: Final = 64 << 20
"""Of arrays that can be written to, in one trace."""
WRAPPERS: Final = ("collections", "configparser", "weakref")
"""Modules of classes that are written in Python and keep a container in an attribute."""
CHANGED_WHOLE: Final = (list, deque, set, bytearray, np.ndarray)
"""Containers that are left alone when a part of them is the traced function's own business."""
DEPTH: Final = 8
"""How far a function is looked for behind the one that is traced: in closures, partial functions and attributes."""


def is_generator(value: Any) -> bool:
    """Whether a value draws random numbers from a state of its own."""
    if isinstance(value, random.Random):
        return not isinstance(value, random.SystemRandom)
    drawing = sys.modules.get("numpy.random")  # which takes time to load, and `import singe` does not
    return drawing is not None and isinstance(value, (drawing.Generator, drawing.RandomState, drawing.BitGenerator))


class Explorer:
    """The places of one trace.

    ran: the code of the functions that ran, by id. written: the (id of the holder, key) of what they change in each trace, which
    is their own business.
    """

    def __init__(
        self,
        reads: Reads,
        ran: Mapping[int, CodeType],
        written: frozenset[tuple[int, Any]],
    ) -> None:
        self._reads: Final = reads
        self._ran: Final = ran
        self._written: Final = written
        self._altered: Final = {at for at, _ in written}
        self._seen: Final[dict[int, Any]] = {}
        self._first: Final[dict[int, ValuePlace]] = {}
        """The first place of each object."""
        self._count = self.bytes = 0
        self.learned = False
        """Whether the reads have grown by those of an object that is not written in Python, so that a place may be missing."""
        self._functions: Final[dict[int, FunctionType]] = {}
        self._found: Final[set[int]] = set()
        """The codes of which a function was found."""
        self.roots: Final[list[tuple[ValuePlace, Any]]] = []
        """Places and their holders."""
        self.iterators: Final[list[tuple[str, Any]]] = []
        self.generators: Final[list[tuple[str, Any]]] = []

    # --- roots ---

    def global_names(self, reads: Reads, holder: dict[str, Any]) -> None:
        """What a code object reads of its module; a variable that is not there may get there, before a builtin, say."""
        for name in [n for n in holder if not n.startswith("__")] if reads.every_global else reads.globals:
            if name in holder or self._reads.caught or name in vars(builtins):
                self._root(name, in_dict, name, holder)

    def modules(self, names: Iterable[str]) -> None:
        """Modules that a function imports when it runs."""
        for name in names:
            if name in sys.modules:
                self.object(name, sys.modules[name])

    def object(self, label: str, value: Any) -> None:
        """What is in an object that no variable led to: the function that is traced, an argument of another."""
        if is_closed(value):  # made for this trace, perhaps, and large: only what is in it is kept
            if id(value) not in self._seen:
                self._seen[id(value)] = value
                self.roots.extend((x, None) for x in self._in_object(label, value) if x is not None)
        elif id(value) not in self._seen:
            self._root(label, itself, value, None)

    def containers(self, label: str, module: Any) -> None:
        """The lists and dicts of a module of which the function has a copy, and of the modules in it."""
        if is_closed(module) and id(module) not in self._seen:
            self._seen[id(module)] = module
            ours = package(type(module)) in OURS
            for name, value in own_attributes(module).items():
                if is_closed(value):
                    self.containers(f"{label}.{name}", value)
                elif isinstance(value, (list, tuple, dict)):
                    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                        self.containers(f"{label}.{name}[{key!r}]", part)
                    if ours or name in self._reads.attributes:
                        self._root(f"{label}.{name}", itself, value, None)

    def functions(self) -> None:
        """The closures of the functions that ran, as far as they were found by now."""
        done: set[int] = set()
        while True:
            left = [f for key, f in self._functions.items() if key not in done]
            for f in left:
                done.add(id(f))
                self.roots.append((ValuePlace(f"{f.__name__}.__code__", in_object, "__code__", f.__code__), f))
                for name in ("__defaults__", "__kwdefaults__"):
                    self._root(f"{f.__name__}.{name}", in_object, name, f)
                for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
                    if id(cell) in self._seen:
                        continue
                    self._seen[id(cell)] = cell
                    self._root(name, in_cell, "cell_contents", cell)
            if not left:
                return

    def search(self, root: Any) -> None:
        """Look for the functions that ran: behind the one that was traced, then among all."""
        behind: dict[int, Any] = {}
        layer = [root]
        for _ in range(DEPTH):
            layer = [x for value in layer for x in _behind(value) if behind.setdefault(id(x), x) is x]
            for x in layer:
                if isinstance(x, FunctionType):
                    self._register(x)
        within = {id(c) for code in self._ran.values() for c in inner(code)}
        lost = [c for key, c in self._ran.items() if c.co_freevars and key not in self._found and key not in within]
        for x in gc.get_referrers(*lost) if lost else ():
            if isinstance(x, FunctionType):
                self._register(x)

    def _root(self, label: str, read: Read, key: Any, holder: Any) -> None:
        found = self._place(label, read, key, holder)
        if found is not None:
            self.roots.append((found, holder))

    # --- what is at a place, and in it ---

    def _place(self, label: str, read: Read, key: Any, holder: Any) -> ValuePlace | None:
        value = read(holder, key)
        if read is not itself and (id(holder), key) in self._written:
            return None
        self._count += 1
        if self._count > MOST_PLACES:
            raise InputError(
                f"the traced function may read more than {MOST_PLACES} values from outside, {label} among them, which are too many "
                "to observe in each run: pass what it needs as arguments, or keep it in a Module or in Tensors, which do not change"
            )
        place = ValuePlace(label, read, key, value)
        if isinstance(value, str) and self._reads.whole_objects:  # a name, perhaps
            self._learn(names_in([value]))
        if isinstance(value, PLAIN) or (isinstance(value, CHANGED_WHOLE) and id(value) in self._altered):
            return place
        if id(value) in self._seen:
            place.alias = True
            if id(value) in self._first:
                self._first[id(value)].alias = True
            if isinstance(value, (*SEQUENCES, set, frozenset)) and not self._is_partly(label, value):
                self._check_length(label, value)
                place.content = copied(value)
            return place
        self._seen[id(value)] = value
        self._first[id(value)] = place
        if not self._is_partly(label, value):
            self._check_length(label, value)
            self.bytes += size_of_copy(value)
            if self.bytes > MOST_BYTES:
                raise InputError(
                    f"the traced function may read {label}, and with it more than {MOST_BYTES >> 20} MB of arrays that may change, "
                    "which are too many to compare in each run: pass it as an argument, make a Tensor of it, or make it read-only, "
                    f"{label}.setflags(write=False)"
                )
            place.content = copied(value)
        place.parts = [x for x in self._inside(place, value) if x is not None]
        return place

    def _inside(self, place: ValuePlace, value: Any) -> Iterator[ValuePlace | None]:
        label = place.label
        match value:
            case FunctionType():
                self._register(value)
                for name in self._reads.attributes & vars(value).keys():
                    yield self._place(f"{label}.{name}", in_object, name, value)
            case MethodType():
                self._register(value.__func__)
                yield self._place(label, itself, value.__self__, None)
            case functools.partial():
                for part in (value.func, *value.args):
                    yield self._place(label, itself, part, None)
                held = ValuePlace(f"{label}.keywords", in_object, "keywords", value.keywords)
                held.content = list(value.keywords)
                for name in value.keywords:
                    found = self._place(f"{label}.keywords[{name!r}]", in_dict, name, value.keywords)
                    held.parts += [] if found is None else [found]
                yield held
            case BuiltinMethodType() | MethodWrapperType() if not isinstance(value.__self__, (ModuleType, type(None))):
                self._learn(dicts=True)
                yield self._place(label, itself, value.__self__, None)
            case BuiltinMethodType() if value in (getattr, hasattr, vars):  # by another name
                self._learn(objects=True)
            case operator.itemgetter():
                self._learn(keys=[k for k in value.__reduce__()[1] if isinstance(k, Hashable)])
            case type() if value is operator.attrgetter or value is operator.methodcaller:  # by another name
                self._learn(names_in(self._reads.keys), objects=True)
            case operator.attrgetter() | operator.methodcaller():
                self._learn(x for name in value.__reduce__()[1] if isinstance(name, str) for x in name.split("."))
            case ContextVar():
                yield self._place(f"{label}.get()", in_context, None, value)
                if in_context(value, None) is MISSING and (default := _default(value)) is not MISSING:
                    yield self._place(f"{label}.get()", itself, default, None)
            case weakref.ref():
                yield self._place(f"{label}()", called, None, value)
            case _ if isinstance(value, weakref.ProxyTypes):
                with suppress(ReferenceError):  # of an object that is gone
                    yield self._place(label, itself, value.__init__.__self__, None)
            case threading.local():
                for name in self._reads.attributes:
                    if isinstance(inherited(type(value), name), PLAIN) or inherited(type(value), name) is MISSING:
                        yield self._place(f"{label}.{name}", in_thread, name, value)
                yield self._place(type(value).__name__, itself, type(value), None)
            case staticmethod() | classmethod():
                self._register(value.__func__)
            case property():
                for f in (value.fget, value.fset):
                    self._register(f)
            case type():
                yield from self._in_class(label, value)
            case ModuleType():
                if package(value) not in LIBRARIES:
                    for name in (self._reads.attributes & vars(value).keys()) | self._reads.asked | self._plain(value):
                        yield self._place(f"{label}.{name}", in_module, name, value)
            case _ if isinstance(value, DICTS):
                yield from self._in_dict(place, value)
                if package(type(value)) not in LIBRARIES:
                    yield from self._in_object(label, value)
            case _ if isinstance(value, SEQUENCES):
                yield from self._in_sequence(place, value)
                if package(type(value)) not in LIBRARIES:
                    yield from self._in_object(label, value)
            case set() | frozenset():
                for x in value:
                    if not isinstance(x, (*PLAIN, Tensor)):
                        yield self._place(f"{label}: {type(x).__name__}", itself, x, None)
            case np.ndarray() if value.dtype.hasobject:
                for i, x in enumerate(value.flat):
                    if not isinstance(x, (*PLAIN, Tensor)):
                        yield self._place(f"{label}.flat[{i}]", itself, x, None)
            case np.ndarray() | Tensor():
                pass
            case _ if is_generator(value):
                self.generators.append((label, value))
            case _ if hasattr(type(value), "__next__") and not isinstance(value, io.IOBase):
                if place.read is not in_object or place.key in self._reads.attributes:
                    self.iterators.append((label, value))
            case _ if any(c.__module__ == "_ctypes" and c.__name__ == "_Pointer" for c in type(value).__mro__):
                raise InputError(
                    f"the traced function may read {label}, a pointer of ctypes, and what it points to cannot be observed: pass the "
                    "value as an argument"
                )
            case _ if place.content is not None:  # bytes
                pass
            case _:
                yield from self._in_object(label, value)

    def _check_length(self, label: str, value: Any) -> None:
        if isinstance(value, (*SEQUENCES, *DICTS, set, frozenset)) and len(value) > MOST_ITEMS:
            raise InputError(
                f"the traced function may read {label}, a {type(value).__name__} of {len(value)} items, which are too many to "
                "observe in each run: pass it as an argument, or make a Tensor of it"
            )

    def _learn(self, attributes: Iterable[str] = (), keys: Iterable[Any] = (), **wholes: bool) -> None:
        self.learned |= self._reads.learn(attributes, keys, **wholes)

    def _is_partly(self, label: str, value: Any) -> bool:
        """Whether only the length, or single items, of a large container are read."""
        if not isinstance(value, (*SEQUENCES, *DICTS, set, frozenset)) or len(value) <= LARGE:
            return False
        name, reads = label.rpartition(".")[2], self._reads
        return 0 < reads.loads[name] == reads.partly[name]

    def _in_sequence(self, place: ValuePlace, value: Any) -> Iterator[ValuePlace | None]:
        if place.content is None:
            yield ValuePlace(f"len({place.label})", length, None, len(value))
            for i in self._reads.subscripts:
                if isinstance(i, int):
                    yield self._place(f"{place.label}[{i}]", in_part, i, value)
            return
        for i, x in enumerate(place.content):
            if not isinstance(x, (*PLAIN, Tensor)):
                yield self._place(f"{place.label}[{i}]", in_sequence, i, value)

    def _in_dict(self, place: ValuePlace, value: Mapping[Any, Any]) -> Iterator[ValuePlace | None]:
        reads, kind = self._reads, type(value)
        if self._is_partly(place.label, value):
            yield ValuePlace(f"len({place.label})", length, None, len(value))
            keys = reads.subscripts
        elif reads.whole_dicts or (place.read is in_object and place.key == "__kwdefaults__"):
            place.content = list(value)
            keys = list(value)
        else:
            absent = reads.subscripts if hasattr(kind, "__missing__") else reads.absent_keys()
            keys = {k for k in reads.keys if k in value} | absent
        getter = inherited(kind, "__getattr__")
        if getter is not MISSING and not isinstance(getter, FunctionType):  # dict.__getitem__, say
            keys = {*keys, *reads.attributes}
        for key in keys:
            yield self._place(f"{place.label}[{key!r:.40}]", in_dict, key, value)

    def _in_class(self, label: str, value: type) -> Iterator[ValuePlace | None]:
        own, *bases = [c for c in value.__mro__ if c is value or package(c) not in LIBRARIES]
        kind = type(value)
        if package(own) not in LIBRARIES:
            known = {name for c in (own, *bases, *ancestors(kind)) for name in vars(c)}
            if inherited(kind, "__getattr__") is not MISSING:
                known |= self._reads.attributes
            ran = {
                n for c in (own, *bases) for n, f in vars(c).items() if self._ran_here(f)
            }  # __call__ and others without a name
            for name in (
                (self._reads.attributes & known) | self._reads.asked | ran | self._plain(own)
            ):  # also those of a base or a metaclass, which the class may get later
                yield self._place(f"{label}.{name}", in_class, name, own)
        for c in (*bases, *([] if package(kind) in LIBRARIES else [kind])):
            if id(c) not in self._seen:
                yield self._place(c.__name__, itself, c, None)

    def _plain(self, holder: type | ModuleType) -> set[str]:
        """The names of a class's or module's plain values, if any may be read by a name that is computed."""
        if not self._reads.whole_objects:
            return set()
        return {n for n, x in vars(holder).items() if isinstance(x, PLAIN) and not n.startswith("__")}

    def _ran_here(self, f: Any) -> bool:
        return isinstance(f, FunctionType) and id(f.__code__) in self._ran

    def _in_object(self, label: str, value: Any) -> Iterator[ValuePlace | None]:
        kind, own = type(value), own_attributes(value)
        names = self._reads.attributes
        if is_closed(value):
            for name, x in own.items():
                only_named = is_generator(x) or hasattr(type(x), "__next__")
                if not isinstance(x, (*PLAIN, Tensor)) and (name in names or not only_named):
                    yield self._place(f"{label}.{name}", itself, x, None)
        elif package(kind) in OURS:
            return
        else:
            slots = {s for c in kind.__mro__ for s in vars(c).get("__slots__", ()) if isinstance(s, str)}
            taken = own.keys() | slots
            wraps = any(c.__module__ in WRAPPERS for c in kind.__mro__)
            if wraps:
                self._learn(dicts=True)
            for name in taken if self._reads.whole_objects or wraps else names & taken:
                yield self._place(f"{label}.{name}", in_object, name, value)
            if in_object(value, "__dict__") is own:
                held = ValuePlace(f"{label}.__dict__", in_object, "__dict__", own)
                held.content = list(own) if self._reads.whole_objects else None
                yield held
                yield from self._absent(label, value, names - taken)
            if package(kind) not in LIBRARIES:
                yield ValuePlace(f"{label}.__class__", in_object, "__class__", kind)
        if id(kind) not in self._seen and package(kind) not in LIBRARIES:
            yield self._place(kind.__name__, itself, kind, None)

    def _absent(self, label: str, value: Any, names: Iterable[str]) -> Iterator[ValuePlace | None]:
        """Attributes that an object may get later, where its class's would be read, or none."""
        kind, reads = type(value), self._reads
        asked = reads.absent or reads.caught or inherited(kind, "__getattr__") is not MISSING
        for name in names:
            default = inherited(kind, name)
            if asked if default is MISSING else not hasattr(type(default), "__set__"):
                yield self._place(f"{label}.{name}", in_object, name, value)

    def _register(self, f: Any) -> None:
        """A function of which the code may have run."""
        f = getattr(f, "__wrapped__", None) if not isinstance(f, FunctionType) else f
        while isinstance(f, FunctionType):
            if id(f.__code__) in self._ran:
                self._found.add(id(f.__code__))
                self._functions[id(f)] = f
            f = getattr(f, "__wrapped__", None)


def _default(variable: ContextVar[Any]) -> Any:
    try:
        return variable.get()
    except LookupError:
        return MISSING


def _behind(value: Any) -> Iterator[Any]:
    """What is directly behind a callable: of closures, methods, partial functions, and of attributes that can be called."""
    match value:
        case FunctionType():
            yield from (in_cell(c, None) for c in value.__closure__ or ())
            if "__wrapped__" in vars(value):
                yield vars(value)["__wrapped__"]
        case MethodType():
            yield from (value.__func__, value.__self__)
        case functools.partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case CellType():
            yield in_cell(value, None)
        case _:
            yield from (x for x in own_attributes(value).values() if callable(x))
            yield from (f for c in ancestors(type(value)) for f in vars(c).values() if isinstance(f, FunctionType))
