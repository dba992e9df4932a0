"""What a code object can read from outside: the names, attributes and keys that its bytecode has. Python 3.11 to 3.14."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final

WHOLE_DICTS: Final = frozenset(
    {"GET_ITER", "DICT_MERGE", "DICT_UPDATE", "CALL_FUNCTION_EX", "LIST_EXTEND", "SET_UPDATE", "MATCH_KEYS", "GET_LEN", "CONTAINS_OP"}
)  # fmt: skip
"""Instructions that may read any item of a dict."""
WHOLE_DICT_NAMES: Final = frozenset(
    {
        "items",
        "values",
        "keys",
        "pop",
        "popitem",
        "copy",
        "dict",
        "list",
        "sorted",
        "sum",
        "max",
        "min",
        "any",
        "all",
        "zip",
        "enumerate",
        "map",
        "filter",
        "len",
        "set",
        "tuple",
        "vars",
    }
)
WHOLE_OBJECT_NAMES: Final = frozenset(["vars", "__dict__", "asdict", "astuple", "getattr", "attrgetter"])
ABSENT_NAMES: Final = frozenset(["get", "setdefault", "hasattr", "getattr"])
"""Names of what asks for an item or attribute that may not be there."""
MUTATORS: Final = frozenset(["append", "extend", "insert", "appendleft", "clear", "remove", "reverse", "sort"])
"""Methods that change a list and give nothing of it."""
_SUBSCRIPT: Final = "[]"


@dataclass
class Reads:
    """What some code objects read and write, together."""

    globals: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    keys: set[Any] = field(default_factory=set)
    """Constants, any of which may be a key."""
    imports: set[str] = field(default_factory=set)
    whole_dicts: bool = False
    whole_objects: bool = False
    absent: bool = False
    loads: Counter[str] = field(default_factory=Counter)
    stores: Counter[str] = field(default_factory=Counter)
    """How often a variable or attribute is read and set; a name that is read no more often than set only counts."""
    changes: Counter[str] = field(default_factory=Counter)
    """How often a list in it is changed by a method."""

    def add(self, code: CodeType) -> Reads:
        """What a code object reads, which is added to this."""
        own = _reads(code)
        for name in ("globals", "attributes", "keys", "imports"):
            getattr(self, name).update(getattr(own, name))
        self.whole_dicts |= own.whole_dicts
        self.whole_objects |= own.whole_objects
        self.absent |= own.absent
        self.loads += own.loads
        self.stores += own.stores
        self.changes += own.changes
        return own


def _reads(code: CodeType) -> Reads:
    found = Reads(keys=set(_keys(code.co_consts)))
    before: dis.Instruction | None = None
    for i in dis.get_instructions(code):
        op, name = i.opname, i.argval
        if op in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.globals.add(name)
        elif op in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            found.attributes.add(name)
        elif op == "IMPORT_NAME":
            found.imports.add(name)
        elif op == "LOAD_SMALL_INT":  # of Python 3.14, which has these not among the constants
            found.keys.add(name)
        elif op == "MATCH_CLASS":
            found.whole_objects = True
        if op in WHOLE_DICTS or (_subscripts(i) and not _constant(before)):
            found.whole_dicts = True
        if op.startswith("LOAD_") and isinstance(name, str):
            found.loads[name] += op != "LOAD_CONST"
            if name in MUTATORS and before is not None and isinstance(before.argval, str):
                found.changes[before.argval] += 1
        elif op.startswith("STORE_") and isinstance(name, str):
            found.stores[name] += 1
        if op == "CONTAINS_OP":
            found.absent = True
        if op not in ("NOP", "EXTENDED_ARG", "CACHE"):
            before = i
    named = found.globals | found.attributes
    found.whole_dicts |= bool(named & WHOLE_DICT_NAMES)
    found.whole_objects |= bool(named & WHOLE_OBJECT_NAMES)
    found.absent |= bool(named & ABSENT_NAMES)
    if named & {"getattr", "hasattr"}:
        found.attributes.update(k for k in found.keys if isinstance(k, str) and k.isidentifier())
    return found


def _subscripts(i: dis.Instruction) -> bool:
    return i.opname == "BINARY_SUBSCR" or (i.opname == "BINARY_OP" and i.argrepr == _SUBSCRIPT)


def _constant(i: dis.Instruction | None) -> bool:
    """Whether an instruction gives a constant, or a slice, which is no key of a dict."""
    return i is not None and i.opname in ("LOAD_CONST", "LOAD_SMALL_INT", "BUILD_SLICE")


def _keys(constants: tuple[Any, ...]) -> Iterator[Any]:
    for x in constants:
        if isinstance(x, tuple):
            yield x
            yield from _keys(x)
        elif not isinstance(x, CodeType):
            yield x


def inner(code: CodeType) -> Iterator[CodeType]:
    """The code objects of the functions that are written in a function, at any depth."""
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x
            yield from inner(x)
