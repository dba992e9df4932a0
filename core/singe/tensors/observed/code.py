"""What a code object can read from outside: the names, attributes and keys that its bytecode has. Python 3.11 to 3.14."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from types import CodeType
from typing import Any, Final

from ...late_dataclass import dataclass

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
        "format_map",
        "substitute",
        "safe_substitute",
    }
)
WHOLE_OBJECT_NAMES: Final = frozenset(["vars", "__dict__", "asdict", "astuple"])
BY_NAME: Final = frozenset(["getattr", "hasattr"])
"""Functions that take the name of an attribute: one, if that is a constant."""
BY_PATH: Final = frozenset(["attrgetter", "methodcaller"])
"""Functions that take names of attributes, with dots, of an object that comes later."""
ABSENT_NAMES: Final = frozenset(["get", "setdefault", *BY_NAME])
"""Names of what asks for an item or attribute that may not be there."""
MUTATORS: Final = frozenset(["append", "extend", "insert", "appendleft", "clear", "remove", "reverse", "sort"])
"""Methods that change a list and give nothing of it."""
_SUBSCRIPT: Final = "[]"
_SILENT: Final = ("NOP", "EXTENDED_ARG", "CACHE", "PRECALL", "RESUME")
_SIMPLE: Final = (
    "LOAD_FAST",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_DEREF",
    "LOAD_CLASSDEREF",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
)


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
    """Whether something is asked for that may not be there, any constant of which may be a key."""
    caught: bool = False
    """Whether an error may be caught: of a name, an attribute or an item that is not there."""
    every_global: bool = False
    """Whether any global variable may be read, by a name that is computed."""
    asked: set[str] = field(default_factory=set)
    """Attributes that may be asked for where they are not."""
    subscripts: set[Any] = field(default_factory=set)
    """Constants that are keys of items."""
    loads: Counter[str] = field(default_factory=Counter)
    stores: Counter[str] = field(default_factory=Counter)
    """How often a variable or attribute is read and set; a name that is read no more often than set only counts."""
    changes: Counter[str] = field(default_factory=Counter)
    """How often a list in it is changed by a method."""
    partly: Counter[str] = field(default_factory=Counter)
    """How often a variable or attribute is read for its length, or for an item at a constant, alone."""

    def add(self, code: CodeType) -> Reads:
        """What a code object reads, which is added to this."""
        own = _reads(code)
        for name in (
            "globals",
            "attributes",
            "keys",
            "imports",
            "asked",
            "subscripts",
            "loads",
            "stores",
            "changes",
            "partly",
        ):
            getattr(self, name).update(getattr(own, name))
        for name in ("whole_dicts", "whole_objects", "absent", "caught"):
            setattr(self, name, getattr(self, name) or getattr(own, name))
        return own

    def learn(
        self, attributes: Iterable[str] = (), keys: Iterable[Any] = (), *, dicts: bool = False, objects: bool = False
    ) -> bool:
        """Add what an object reads that is not written in Python, and say whether it is new. dicts: it may read any item of a
        dict, and look for some that are not there. objects: the same of attributes."""
        before = len(self.attributes), len(self.keys), self.whole_dicts, self.caught, self.whole_objects
        self.attributes.update(attributes)
        self.keys.update(keys)
        self.whole_dicts |= dicts
        self.caught |= dicts or objects
        self.whole_objects |= objects
        return before != (len(self.attributes), len(self.keys), self.whole_dicts, self.caught, self.whole_objects)

    def absent_keys(self) -> set[Any]:
        """Keys that may be looked for where they are not."""
        return self.keys if self.absent else self.subscripts if self.caught else set()


def _reads(code: CodeType) -> Reads:
    found = Reads(keys=set(_keys(code.co_consts)), caught=bool(code.co_exceptiontable))
    before: dis.Instruction | None = None
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _SILENT]
    for k, i in enumerate(instructions):
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
        elif _subscripts(i) and before is not None and isinstance(before.argval, Hashable):
            found.subscripts.add(before.argval)
        elif op == "BINARY_OP" and i.argrepr == "%" and not _constant(before):  # "%(name)s" % of a dict
            found.whole_dicts = True
        elif name in BY_NAME and op.startswith("LOAD_"):
            asked = _asked(instructions[k + 1 :]) if op == "LOAD_GLOBAL" else None
            found.attributes.update([] if asked is None else [asked])
            found.whole_objects |= asked is None
        if op.startswith("LOAD_") and isinstance(name, str):
            found.loads[name] += op != "LOAD_CONST"
            found.partly[name] += op != "LOAD_CONST" and _is_partly(instructions, k)
            if name in MUTATORS and before is not None and isinstance(before.argval, str):
                found.changes[before.argval] += 1
        elif op.startswith("STORE_") and isinstance(name, str):
            found.stores[name] += 1
        if op == "CONTAINS_OP":
            found.absent = True
        before = i
    named = found.globals | found.attributes
    found.whole_dicts |= bool(named & WHOLE_DICT_NAMES)
    found.whole_objects |= bool(named & WHOLE_OBJECT_NAMES)
    found.absent |= bool(named & ABSENT_NAMES)
    if named & BY_NAME:
        found.asked.update(k for k in found.keys if isinstance(k, str) and k.isidentifier())
        found.attributes |= found.asked
    if named & BY_PATH:
        found.attributes.update(names_in(found.keys))
        found.whole_objects = True
    if found.caught:
        found.asked |= found.attributes
    if "globals" in found.globals:
        found.globals.update(k for k in found.keys if isinstance(k, str) and k.isidentifier())
        found.every_global = found.whole_dicts
    return found


def names_in(keys: Iterable[Any]) -> Iterator[str]:
    """The names of attributes that constants may be, also with dots."""
    for key in keys:
        if isinstance(key, str) and key.replace(".", "_").isidentifier():
            yield from key.split(".")


def _asked(after: Sequence[dis.Instruction]) -> str | None:
    """The constant that a call of getattr or hasattr gets as its second argument, by the instructions behind the one that loads
    the function; None if it is none. Followed on a stack in which all but constants is None."""
    stack: list[Any] = []
    for i in after:
        op = i.opname
        if op == "CALL" and len(stack) == i.arg:
            return stack[1] if len(stack) > 1 and isinstance(stack[1], str) else None
        if op == "LOAD_CONST":
            stack.append(i.argval)
        elif op == "PUSH_NULL" or op in _SIMPLE:
            stack += [None] * dis.stack_effect(i.opcode, i.arg)
        else:
            effect = -1 - (i.arg or 0) if op == "CALL" else dis.stack_effect(i.opcode, i.arg, jump=False)
            taken = max(1 - effect, 1)
            if "JUMP" in op or op.startswith(("STORE", "POP", "RETURN", "COPY", "SWAP", "YIELD")) or taken > len(stack):
                return None
            stack[len(stack) - taken :] = [None] * (taken + effect)
    return None


def _is_partly(instructions: Sequence[dis.Instruction], k: int) -> bool:
    """Whether what instruction k reads is read for an item at a constant, or its length, alone."""
    follows, beyond = (instructions[at] if at < len(instructions) else None for at in (k + 1, k + 2))
    if follows is not None and beyond is not None and _subscripts(beyond):
        return follows.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(follows.argval, (int, str))
    while k > 0 and instructions[k].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        k -= 1
    call = follows is not None and follows.opname == "CALL" and follows.arg == 1
    return call and k > 0 and instructions[k - 1].opname == "LOAD_GLOBAL" and instructions[k - 1].argval == "len"


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
