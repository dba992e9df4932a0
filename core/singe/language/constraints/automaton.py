"""A grammar as an automaton over bytes: its states are made when they are first met, as rows of a table.

A place in a text is a set of configurations: a node, and the nodes to which the rules that contain it return. A state is such a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from ...errors import InputError
from .grammar import ByteRange, Choice, Expression, Repeated, RuleName, Sequenced

MAX_NODES: Final = 100_000
MAX_STATES: Final = 20_000
MAX_DEPTH: Final = 64
"""How many rules may be within each other in a text."""
MAX_CONFIGURATIONS: Final = 5000
"""Of a state."""
DEAD: Final = 0

Stack: TypeAlias = "tuple[int, Stack] | None"
Configuration: TypeAlias = "tuple[int, Stack]"


class GrammarNodes:
    """The nodes of a grammar's rules. after: without a byte; on: with one; into: (rule, where to return); of a rule's end there is
    none of these."""

    def __init__(self, rules: Mapping[str, Expression]) -> None:
        self._rules: Final = rules
        self.after: Final = list[list[int]]()
        self.on: Final = list[tuple[ByteRange, int] | None]()
        self.into: Final = list[tuple[str, int] | None]()
        self.starts: Final = dict[str, int]()
        self.ends: Final = set[int]()
        for name, expression in rules.items():
            end = self._node()
            self.ends.add(end)
            self.starts[name] = self._of(expression, end)

    def _node(self, *after: int) -> int:
        if len(self.after) >= MAX_NODES:
            raise InputError(
                f"the schema or regex has more than {MAX_NODES} places; give a smaller one, or smaller counts"
            )
        self.after.append([*after])
        self.on.append(None)
        self.into.append(None)
        return len(self.after) - 1

    def _of(self, e: Expression, end: int) -> int:
        """The first node of an expression, after which comes `end`."""
        match e:
            case ByteRange():
                start = self._node()
                self.on[start] = e, end
                return start
            case RuleName():
                if e.name not in self._rules:
                    raise InputError(f"the rule {e.name!r:.80} is missing; name one that is there")
                start = self._node()
                self.into[start] = e.name, end
                return start
            case Sequenced():
                for part in reversed(e.parts):
                    end = self._of(part, end)
                return end
            case Choice():
                return self._node(*(self._of(part, end) for part in e.parts))
            case Repeated():
                return self._repeated(e, end)

    def _repeated(self, e: Repeated, end: int) -> int:
        if e.most is None:
            again = self._node(end)
            self.after[again].append(self._of(e.part, again))
            at = again
        else:
            at = end
            for _ in range(e.most - e.least):
                at = self._node(end, self._of(e.part, at))
        for _ in range(e.least):
            at = self._of(e.part, at)
        return at


class Automaton:
    """States of a grammar, by number; DEAD is the one that matches nothing. `start` is the first; `accepts[s]` says whether a text may
    end there."""

    def __init__(self, rules: Mapping[str, Expression], first: str) -> None:
        self._nodes: Final = GrammarNodes(rules)
        self._numbers: Final = dict[frozenset[Configuration], int]()
        self._sets: Final = list[frozenset[Configuration]]()
        self.accepts: Final = list[bool]()
        self._rows: Final = list[np.ndarray | None]()
        self._state(frozenset())
        self.start: Final = self._state(self._closed([(self._nodes.starts[first], None)]))

    def row(self, state: int) -> np.ndarray:
        """The state after each byte."""
        found = self._rows[state]
        if found is None:
            found = self._rows[state] = self._made(state)
        return found

    def _state(self, configurations: frozenset[Configuration]) -> int:
        number = self._numbers.get(configurations)
        if number is None:
            if len(self._sets) >= MAX_STATES:
                raise InputError(f"the schema or regex has more than {MAX_STATES} states; give a simpler one")
            number = self._numbers[configurations] = len(self._sets)
            self._sets.append(configurations)
            self._rows.append(None)
            self.accepts.append(any(n in self._nodes.ends and stack is None for n, stack in configurations))
        return number

    def _made(self, state: int) -> np.ndarray:
        edges = [(*on, stack) for n, stack in self._sets[state] if (on := self._nodes.on[n]) is not None]
        row = np.zeros(256, np.int32)
        cuts = sorted({x for r, _, _ in edges for x in (r.first, r.last + 1)})
        for low, high in pairwise(cuts):
            targets = [(to, stack) for r, to, stack in edges if r.first <= low <= r.last]
            if targets:
                row[low:high] = self._state(self._closed(targets))
        return row

    def _closed(self, first: list[Configuration]) -> frozenset[Configuration]:
        """What can be reached without a byte; of it, what takes a byte, or ends the text."""
        seen, todo = set(first), [*first]
        while todo:
            for c in self._reached(*todo.pop()):
                if c not in seen:
                    seen.add(c)
                    todo.append(c)
            if len(seen) > MAX_CONFIGURATIONS:
                raise InputError("the schema or regex can be read in too many ways at once; give a simpler one")
        nodes = self._nodes
        return frozenset(
            (n, stack) for n, stack in seen if nodes.on[n] is not None or (n in nodes.ends and stack is None)
        )

    def _reached(self, n: int, stack: Stack) -> Iterator[Configuration]:
        nodes = self._nodes
        for after in nodes.after[n]:
            yield after, stack
        into = nodes.into[n]
        if into is not None and _depth(stack) < MAX_DEPTH:
            yield nodes.starts[into[0]], (into[1], stack)
        if n in nodes.ends and stack is not None:
            yield stack


def _depth(stack: Stack) -> int:
    found = 0
    while stack is not None:
        found, stack = found + 1, stack[1]
    return found
