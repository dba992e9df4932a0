"""Instruction trees, and the Writer that puts them into a body: each shared one once, each as far out as it can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from ..encode import Body, Spelling, Type

EFFECT: Final = 1 << 30
"""The level of a store: it is never hoisted."""


class Node:
    """Instructions on the results of other nodes; `level` is the number of loops that must be open to know it."""

    __slots__ = ("args", "code", "level", "local", "trivial", "type", "uses")

    def __init__(self, code: Spelling, args: tuple[Node, ...], kind: Type, level: int, trivial: bool = False) -> None:
        self.code: Final = code
        self.args: Final = args
        self.type: Final[Type] = kind
        self.level: Final = level
        self.trivial: Final = trivial  # as cheap as reading a local
        self.local: int | None = None
        self.uses = 0
        for a in args:
            a.uses += 1


class Writer:
    """Puts nodes into a body."""

    def __init__(self, body: Body) -> None:
        self.body: Final = body
        self._scopes: list[list[Node]] = [[]]

    def push(self, node: Node) -> None:
        """The node's value onto the stack."""
        if node.local is not None:
            self.body.get(node.local)
            return
        for a in node.args:
            self.push(a)
        self.body.apply(node.code)
        if node.uses > 1 and not node.trivial:
            self.body.tee(self._keep(node))

    def _keep(self, node: Node) -> int:
        node.local = self.body.local(node.type)
        self._scopes[-1].append(node)
        return node.local

    def hoist(self, roots: Iterable[Node], level: int) -> None:
        """Compute now what the roots use and `level` open loops suffice to know."""
        stack = list(roots)
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen or node.local is not None or node.trivial:
                continue
            seen.add(node)
            if node.level > level:
                stack.extend(node.args)
                continue
            for a in node.args:
                self.push(a)
            self.body.apply(node.code)
            self.body.set(self._keep(node))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A loop's body or a branch: what is computed inside is forgotten outside."""
        self._scopes.append([])
        yield
        for node in self._scopes.pop():
            assert node.local is not None
            self.body.free(node.local)
            node.local = None

    @contextmanager
    def loop(
        self, variable: int, limit: bytes, step: int = 1, sure: bool = False, hoist: Iterable[Node] = (), level: int = 0
    ) -> Iterator[None]:
        """A counted loop (see Body.count) inside which the level is `level`."""
        with self.body.count(variable, limit, step, sure), self.scope():
            self.hoist(hoist, level)
            yield
