"""A stack machine that reads pickles without executing them: a closed list of opcodes, and an allowlist of names.

A pickle is a program that builds an object. Here it can only build numbers, strings, lists, tuples and dicts, and what
the caller's functions return for these; anything else is a FormatError with the position. Memory is proportional to the
bytes read: every opcode pushes at most one value and none copies.

A few bytes can say that a value holds itself, or one value twice, which holds one value twice, and so on: to walk through
all of it never ends. So what comes out is a tree of a bounded number of values. What the caller's functions are given is
not yet: they look at values that are known to be of a few parts, and never compare, hash or print containers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from ..errors import FormatError
from ..late_dataclass import dataclass

STEPS: Final = 4_000_000
"""The most opcodes in a pickle; a model of a thousand layers has about a hundred thousand."""
PARTS: Final = 4_000_000
"""The most values in what a pickle makes; one that is there twice counts twice, with what it holds."""
DEEP: Final = 1000
"""How deep a value may be in others."""
KEYS: Final = 1 << 63
"""Keys that are numbers are smaller: larger ones can be chosen such that all have one hash."""
_MARK: Final = object()


@dataclass(eq=False)
class Instance:
    """An object of a class that only its name is known of: its attributes."""

    attributes: dict[str, Any] = field(default_factory=dict)


_CONTAINERS: Final = (dict, list, tuple, Instance)


class _Walk:
    """How far a value has been walked through: the parts that are left, and how many values there were."""

    def __init__(self, value: Any) -> None:
        self.value, self.count = value, 1
        self.left: Iterator[Any] = iter(
            value.values() if isinstance(value, dict)
            else value if isinstance(value, (list, tuple))
            else (value.attributes,) if isinstance(value, Instance)
            else ()
        )  # fmt: skip


class Machine:
    """Runs one pickle that begins at `at`. Afterwards `value` is its result and `at` the position after it.

    known(name) is the value pushed for a name, or None if it is not allowed. call(value, arguments) implements REDUCE for such a value,
    persistent(id) resolves a persistent id, new(value) makes an Instance for NEWOBJ. Keys of dicts are strings and ints.
    BUILD, which would set attributes, sets those of Instances, is ignored for dicts, is done by build(value, attributes) if
    that returns True, and is refused for all else. Strings of Python 2 that are not UTF-8 are bytes.
    """

    def __init__(
        self,
        data: memoryview,
        at: int,
        name: str,
        known: Callable[[str], Any],
        call: Callable[[Any, tuple[Any, ...]], Any],
        persistent: Callable[[Any], Any],
        new: Callable[[Any], Any] | None = None,
        build: Callable[[Any, Any], bool] = lambda value, attributes: False,
    ) -> None:
        self._known, self._call, self._persistent, self._new, self._build = known, call, persistent, new, build
        self._data, self.at, self._name = data, at, name
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self.value: Any = None
        for _ in range(STEPS):
            start = self.at
            code = self.take(1)[0]
            try:
                if code == 0x2E:  # STOP
                    self.value = self.pop()
                    self._count_parts()
                    return
                if code not in OPCODES:
                    raise ValueError(f"the opcode {code:#04x} is not among those that state dicts use")
                OPCODES[code](self)
            except FormatError:
                raise
            except (ValueError, IndexError, KeyError, TypeError, struct.error) as e:
                what = str(e) if isinstance(e, ValueError) else "the pickle is damaged"
                raise FormatError(f"{name}, byte {start}: {what}") from None
        raise FormatError(f"{name}: a pickle of more than {STEPS:,} steps")

    def _count_parts(self) -> None:
        """Refuse a value that is no tree of at most PARTS values."""
        counts: dict[int, int] = {id(self.value): 0}  # by the identity of a container; 0 while it is walked through
        walked = [_Walk(self.value)]
        while walked:
            walk = walked[-1]
            for part in walk.left:
                if not isinstance(part, _CONTAINERS):
                    walk.count += 1
                elif found := counts.get(id(part)):
                    walk.count += found
                elif found == 0:
                    raise FormatError(f"{self._name}: a pickle with {shown(part)} that holds itself")
                elif len(walked) == DEEP:
                    raise FormatError(f"{self._name}: a pickle of values nested more than {DEEP} deep")
                else:
                    counts[id(part)] = 0
                    walked.append(_Walk(part))
                    break
            else:
                walked.pop()
                counts[id(walk.value)] = walk.count
                if walked:
                    walked[-1].count += walk.count
            if walk.count > PARTS:
                raise FormatError(f"{self._name}: a pickle that unfolds to more than {PARTS:,} values")

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise FormatError(f"{self._name}, byte {self.at}: ends within a pickle, {count} bytes more expected")
        self.at += count
        return bytes(self._data[self.at - count : self.at])

    def number(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))[0]

    def text(self, layout: str) -> str:
        try:
            return self.take(self.number(layout)).decode()
        except UnicodeDecodeError:
            raise ValueError("a string is not UTF-8") from None

    def old_text(self, layout: str) -> str | bytes:
        found = self.take(self.number(layout))
        try:
            return found.decode()
        except UnicodeDecodeError:
            return found

    def line(self) -> str:
        length = bytes(self._data[self.at : self.at + 256]).find(b"\n")
        if length < 0:
            raise ValueError("a name without an end")
        return self.take(length + 1)[:-1].decode("latin-1")

    def long(self, layout: str) -> int:
        return int.from_bytes(self.take(self.number(layout)), "little", signed=True)

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value is expected")
        return value

    def mark(self) -> None:
        self._stack.append(_MARK)

    def _marked(self) -> list[Any]:
        """Pop the values above the topmost mark, and the mark."""
        found: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            found.append(value)
        found.reverse()
        return found

    def pack(self, count: int | None) -> None:
        self.push(tuple(self._marked() if count is None else reversed([self.pop() for _ in range(count)])))

    def put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def memoize(self) -> None:
        self.put(len(self._memo))

    def get(self, index: int) -> None:
        if index not in self._memo:
            raise ValueError(f"the memo has no number {index}")
        self.push(self._memo[index])

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise ValueError(f"appends to {shown(target)}, expected a list")
        target.extend(values)

    def appends(self) -> None:
        self.append(self._marked())

    def append_one(self) -> None:
        self.append([self.pop()])

    def update(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(pairs) % 2:
            raise ValueError(f"sets items of {shown(target)}, expected a dict and pairs")
        for k, v in zip(pairs[::2], pairs[1::2], strict=True):
            if not is_key(k):
                raise ValueError(f"a key is {shown(k)}, expected a string")
            if k in target:
                raise ValueError(f"the key {k!r:.60} comes twice")
            target[k] = v

    def set_items(self) -> None:
        self.update(self._marked())

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.update([key, value])

    def find(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError(f"names {shown(name)} in {shown(module)}, expected two strings")
        full = f"{module}.{name}"
        value = self._known(full)
        if value is None:
            raise ValueError(
                f"the file uses {full!r:.120}, which state dicts do not need and Singe does not run; "
                "save model.state_dict() alone, with torch.save"
            )
        self.push(value)

    def find_named(self) -> None:
        module = self.line()
        self.find(module, self.line())

    def find_stacked(self) -> None:
        name, module = self.pop(), self.pop()
        self.find(module, name)

    def reduce(self) -> None:
        args, function = self.pop(), self.pop()
        if not isinstance(args, tuple):
            raise ValueError(f"calls with {shown(args)}, expected a tuple")
        self.push(self._call(function, args))

    def new(self) -> None:
        args, kind = self.pop(), self.pop()
        if self._new is None or not isinstance(args, tuple) or args:
            raise ValueError(f"makes an object of {shown(kind)}, which state dicts do not need")
        self.push(self._new(kind))

    def build(self) -> None:
        attributes, target = self.pop(), self._stack[-1]
        if isinstance(target, Instance):
            if not isinstance(attributes, dict) or target.attributes:
                raise ValueError("sets attributes of an object twice, or to something other than a dict")
            target.attributes = attributes
        elif not isinstance(target, dict) and not self._build(target, attributes):
            raise ValueError(f"sets attributes of {shown(target)}, expected an OrderedDict")

    def persistent(self) -> None:
        self.push(self._persistent(self.pop()))


OPCODES: Final[Mapping[int, Callable[[Machine], None]]] = {
    ord(code): run
    for code, run in {
        "\x80": lambda m: m.number("B"),  # PROTO
        "\x95": lambda m: m.number("Q"),  # FRAME
        "(": Machine.mark,
        "0": lambda m: m.pop(),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(True),
        "\x89": lambda m: m.push(False),
        "K": lambda m: m.push(m.number("B")),
        "M": lambda m: m.push(m.number("H")),
        "J": lambda m: m.push(m.number("i")),
        "\x8a": lambda m: m.push(m.long("B")),
        "G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
        "\x8c": lambda m: m.push(m.text("B")),
        "X": lambda m: m.push(m.text("I")),
        "C": lambda m: m.push(m.take(m.number("B"))),
        "B": lambda m: m.push(m.take(m.number("I"))),
        "U": lambda m: m.push(m.old_text("B")),  # Python 2's strings
        "T": lambda m: m.push(m.old_text("I")),
        "}": lambda m: m.push({}),
        "]": lambda m: m.push([]),
        ")": lambda m: m.push(()),
        "t": lambda m: m.pack(None),
        "\x85": lambda m: m.pack(1),
        "\x86": lambda m: m.pack(2),
        "\x87": lambda m: m.pack(3),
        "q": lambda m: m.put(m.number("B")),
        "r": lambda m: m.put(m.number("I")),
        "\x94": Machine.memoize,
        "h": lambda m: m.get(m.number("B")),
        "j": lambda m: m.get(m.number("I")),
        "a": Machine.append_one,
        "e": Machine.appends,
        "s": Machine.set_item,
        "u": Machine.set_items,
        "c": Machine.find_named,
        "\x93": Machine.find_stacked,
        "R": Machine.reduce,
        "\x81": Machine.new,
        "b": Machine.build,
        "Q": Machine.persistent,
    }.items()
}
"""Opcode ↦ its action. STOP is handled by the machine."""


def is_key(value: Any) -> bool:
    """Whether a value may be a key of a dict."""
    return type(value) is str or (type(value) is int and abs(value) < KEYS)


def shown(value: Any) -> str:
    """A value for a message; containers are shown by their type."""
    if isinstance(value, (int, float, str, type(None))):
        return f"{value!r:.60}"
    return "an object" if isinstance(value, Instance) else f"a {type(value).__name__}"
