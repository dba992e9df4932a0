"""What a traced function writes: the contents of all that it reaches, and what is another value after the trace.

Only what is there before the trace is looked at, so that a list or object that the function makes for itself is its own.
"""

from __future__ import annotations

import dis
import functools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from ...late_dataclass import dataclass
from ..tensor import Tensor
from .code import Reads, inner
from .places import (
    LIBRARIES,
    MISSING,
    OURS,
    PLAIN,
    equal,
    in_cell,
    in_object,
    is_closed,
    is_fixed,
    own_attributes,
    package,
    same_array,
)

MOST_ITEMS: Final = 10_000
"""Of a container that is looked into for others."""
MOST_COPIED: Final = 100_000
"""Of a container that is copied; one that has more is refused if it is read."""
MOST_HOLDERS: Final = 100_000
DEPTH: Final = 4
"""How far a Tensor is looked for in what was written."""
WRITERS: Final = frozenset(
    {
        "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL",
    }
)  # fmt: skip
"""Instructions that write to what may outlive a call; STORE_DEREF does if the variable is of an outer function."""
WRITING_NAMES: Final = frozenset(
    {
        "add", "append", "appendleft", "at", "clear", "copyto", "difference_update", "discard", "extend", "extendleft", "fill",
        "iadd", "insert", "intersection_update", "itemset", "move_to_end", "out", "partition", "place", "pop", "popitem",
        "popleft", "put", "putmask", "remove", "resize", "reverse", "rotate", "setattr", "setdefault", "setfield", "setflags",
        "setitem", "shuffle", "sort", "subtract", "symmetric_difference_update", "update", "__setattr__", "__setitem__", "__dict__",
        "vars", "globals",
    }
)  # fmt: skip
"""Names of functions that write to what they are given."""

Contents = dict[Any, Any]


@dataclass(frozen=True)
class ContentKind:
    """A kind of holder. contents: what it holds by key; restore: make it hold that again; label: of a key."""

    contents: Callable[[Any, Any], Contents]
    restore: Callable[[Any, Contents], object]
    label: Callable[[str, Any], str]


def _put_items(holder: dict[Any, Any], contents: Contents) -> None:
    for key, x in contents.items():
        if x is MISSING:
            holder.pop(key, None)
        else:
            holder[key] = x


def _put_attributes(holder: Any, contents: Contents) -> None:
    own = own_attributes(holder)
    for key in [k for k in own if k not in contents]:
        del own[key]
    for key, x in contents.items():
        if in_object(holder, key) is not x:
            if x is MISSING:
                object.__delattr__(holder, key)
            else:
                object.__setattr__(holder, key, x)


def _put_class(holder: type, contents: Contents) -> None:
    for key in [k for k in vars(holder) if k not in contents]:
        type.__delattr__(holder, key)
    for key, x in contents.items():
        if vars(holder).get(key) is not x:
            type.__setattr__(holder, key, x)


def _put_cell(holder: CellType, contents: Contents) -> None:
    for x in contents.values():
        if x is not MISSING:
            holder.cell_contents = x


def _put_dict(holder: Any, contents: Contents) -> None:
    own: Any = OrderedDict if isinstance(holder, OrderedDict) else dict  # not what a class of the user's does beside
    own.clear(holder)
    own.update(holder, contents)


def _put_list(holder: Any, contents: Contents) -> None:
    holder.clear()
    holder.extend(contents.values())


def _put_set(holder: set[Any], contents: Contents) -> None:
    holder.clear()
    holder.update(contents)


def _put_array(holder: np.ndarray, contents: Contents) -> None:
    if holder.flags.writeable:
        holder[...] = contents[()]


def _attributes(holder: Any, _: Any) -> Contents:
    slots = [s for c in type(holder).__mro__ for s in _slots(c)]
    return {**{s: in_object(holder, s) for s in slots}, **own_attributes(holder)}


def _slots(c: type) -> Iterator[str]:
    names = vars(c).get("__slots__", ())
    for s in (names,) if isinstance(names, str) else names:
        if isinstance(s, str) and not s.startswith("__"):
            yield s


def _item(label: str, key: Any) -> str:
    return f"{label}[{key!r:.40}]"


def _attribute(label: str, key: Any) -> str:
    return f"{label}.{key}"


def _variable(label: str, key: Any) -> str:
    return label or str(key)


VARIABLES: Final = ContentKind(lambda h, names: {k: h.get(k, MISSING) for k in names}, _put_items, _variable)
ATTRIBUTES: Final = ContentKind(_attributes, _put_attributes, _attribute)
CLASS: Final = ContentKind(lambda h, _: dict(vars(h)), _put_class, _attribute)
CELL: Final = ContentKind(lambda h, _: {"cell_contents": in_cell(h, None)}, _put_cell, _variable)
DICT: Final = ContentKind(lambda h, _: dict.copy(h), _put_dict, _item)
LIST: Final = ContentKind(lambda h, _: dict(enumerate(h)), _put_list, _item)
SET: Final = ContentKind(lambda h, _: dict.fromkeys(h, True), _put_set, _variable)
BYTES: Final = ContentKind(lambda h, _: dict(enumerate(h)), _put_list, _item)
ARRAY: Final = ContentKind(lambda h, _: {(): h.copy()}, _put_array, _variable)
CONTAINERS: Final[tuple[tuple[type, ContentKind], ...]] = (
    (dict, DICT), (list, LIST), (deque, LIST), (set, SET), (bytearray, BYTES), (np.ndarray, ARRAY),
)  # fmt: skip


@dataclass(frozen=True)
class Holder:
    """Something in which values are kept by key, and what was there."""

    label: str
    value: Any
    kind: ContentKind
    names: Any
    was: Contents

    def now(self) -> Contents:
        return self.kind.contents(self.value, self.names)

    def restore(self, changes: Mapping[Any, Any] | None = None) -> None:
        """Make it what it was, but for these items."""
        self.kind.restore(self.value, {**self.was, **(changes or {})})


@dataclass(frozen=True)
class Change:
    """A key at which another value is now."""

    holder: Holder
    key: Any
    was: Any
    now: Any

    @property
    def label(self) -> str:
        return self.holder.kind.label(self.holder.label, self.key)

    @property
    def place(self) -> tuple[int, Any]:
        return id(self.holder.value), self.key


class Snapshot:
    """The contents of all that a function reaches: by its variables, and from there by the names in the code of functions that
    are found on the way. copied: modules by name of which the function has copies, and what
    changes in these changes in them."""

    def __init__(self, root: Any, copied: Mapping[str, Any]) -> None:
        self._holders: Final[dict[int, Holder]] = {}
        self._reads: Final = Reads()
        self._codes: Final[set[int]] = set()
        self._seen: dict[int, Any] = {}
        known = -1
        while known < len(self._reads.attributes):  # a function that is found has names by which more is found
            known = len(self._reads.attributes)
            self._seen = {}
            left = [("", root), *copied.items()]
            while left and len(self._seen) < MOST_HOLDERS:
                label, value = left.pop()
                if isinstance(value, (*PLAIN, Tensor)) or value is MISSING or id(value) in self._seen:
                    continue
                self._seen[id(value)] = value
                left.extend(self._inside(label, value))

    def changes(self) -> list[Change]:
        """What is another value now."""
        found: list[Change] = []
        for holder in self._holders.values():
            now, was = holder.now(), holder.was
            if now.keys() == was.keys() and all(now[k] is x for k, x in was.items()):
                continue
            keys = dict.fromkeys([*was, *now])
            pairs = ((k, was.get(k, MISSING), now.get(k, MISSING)) for k in keys)
            found.extend(Change(holder, k, a, b) for k, a, b in pairs if not _same(a, b))
        return found

    def restore(self, changed: Change | None = None, value: Any = None) -> None:
        """Make everything what it was, but for one value."""
        for holder in {id(c.holder): c.holder for c in self.changes()}.values():
            holder.restore()
        if changed is not None:
            self._holders[id(changed.holder.value)].restore({changed.key: value})

    def _keep(self, label: str, value: Any, kind: ContentKind, names: Any = ()) -> None:
        if id(value) not in self._holders:
            self._holders[id(value)] = Holder(label, value, kind, names, kind.contents(value, names))

    def _inside(self, label: str, value: Any) -> Iterator[tuple[str, Any]]:
        """What is directly in a value, which is kept if it is a holder."""
        names = self._reads.attributes
        match value:
            case FunctionType():
                yield from self._in_function(label, value)
            case MethodType():
                yield from ((label, value.__func__), (label or "self", value.__self__))
            case functools.partial():
                yield from ((label, x) for x in (value.func, *value.args, *value.keywords.values()))
            case staticmethod() | classmethod():
                yield label, value.__func__
            case property():
                yield from ((label, f) for f in (value.fget, value.fset, value.fdel))
            case type():
                for c in value.__mro__:
                    if package(c) not in LIBRARIES:
                        self._keep(c.__name__, c, CLASS)
                        for name, x in vars(c).items():
                            if name in names or name.startswith("__"):
                                yield f"{c.__name__}.{name}", x
            case ModuleType():
                if package(value) not in LIBRARIES:
                    found = names & vars(value).keys()
                    self._keep("", vars(value), VARIABLES, tuple(found))
                    yield from ((name, vars(value)[name]) for name in found)
            case tuple():
                yield from self._items(label, value)
            case _ if (kind := next((k for of, k in CONTAINERS if isinstance(value, of)), None)) is not None:
                if not is_fixed(value) if isinstance(value, np.ndarray) else len(value) <= MOST_COPIED:
                    self._keep(label, value, kind)
                if kind in (DICT, LIST):
                    yield from self._items(label, value)
            case _ if is_closed(value):
                at = label or "self"
                yield from ((f"{at}.{name}", x) for name, x in own_attributes(value).items())
                yield type(value).__name__, type(value)
            case _ if package(type(value)) not in OURS:
                at = label or "self"
                self._keep(at, value, ATTRIBUTES)
                whole = self._reads.whole_objects
                yield from ((f"{at}.{k}", x) for k, x in self._holders[id(value)].now().items() if whole or k in names)
                yield type(value).__name__, type(value)
            case _:  # of Singe's own, only what is called
                yield from ((label, x) for x in own_attributes(value).values() if callable(x))

    def _in_function(self, label: str, f: FunctionType) -> Iterator[tuple[str, Any]]:
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._keep(name, cell, CELL)
            yield name, in_cell(cell, None)
        yield label, vars(f).get("__wrapped__")
        if package(f) in LIBRARIES:
            return
        for code in (f.__code__, *inner(f.__code__)):
            if id(code) not in self._codes:
                self._codes.add(id(code))
                self._reads.add(code)
        known = f.__globals__
        found = {n for code in (f.__code__, *inner(f.__code__)) for n in code.co_names}
        held = self._holders.get(id(known))
        if held is not None:
            found -= set(held.names)
            self._holders[id(known)] = Holder(
                "",
                known,
                VARIABLES,
                (*held.names, *found),
                {**held.was, **VARIABLES.contents(known, found)},
            )
        else:
            self._keep("", known, VARIABLES, tuple(found))
        yield from ((name, known[name]) for name in found & known.keys())
        count, defaults = f.__code__.co_argcount, f.__defaults__ or ()
        yield from zip(f.__code__.co_varnames[count - len(defaults) : count], defaults, strict=False)
        yield from (f.__kwdefaults__ or {}).items()

    def _items(self, label: str, value: Any) -> Iterator[tuple[str, Any]]:
        if len(value) <= MOST_ITEMS:
            items = list(dict.items(value)) if isinstance(value, dict) else list(enumerate(value))
            yield from ((_item(label, k), x) for k, x in items if not isinstance(x, (*PLAIN, Tensor)))


def _same(was: Any, now: Any) -> bool:
    if was is now:
        return True
    if isinstance(was, np.ndarray) and isinstance(now, np.ndarray):
        return same_array(was, now)
    return isinstance(was, PLAIN) and equal(was, now)


def has_traced(value: Any, depth: int = DEPTH) -> bool:
    """Whether a value is, or holds, a Tensor of a function that is traced."""
    if isinstance(value, Tensor):
        return bool(value.device.trace_depth)
    if isinstance(value, PLAIN) or depth == 0:
        return False
    if isinstance(value, dict):
        return any(has_traced(x, depth - 1) for x in value.values())
    if isinstance(value, (list, tuple, deque, set)):
        return any(has_traced(x, depth - 1) for x in value)
    return any(has_traced(x, depth - 1) for x in own_attributes(value).values())


def can_write(code: CodeType) -> bool:
    """Whether a function may write to what outlives a call of it."""
    if WRITING_NAMES.intersection(code.co_names):
        return True
    return any(writes_itself(i, code) or _in_place(i) for i in dis.get_instructions(code))


def writes_itself(i: dis.Instruction, code: CodeType) -> bool:
    """Whether an instruction writes to what may outlive a call."""
    return i.opname in WRITERS or (i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars)


def _in_place(i: dis.Instruction) -> bool:
    """Whether an instruction is `+=` or the like, which changes a list or an array."""
    return i.opname == "BINARY_OP" and i.argrepr.endswith("=")
