"""The writer that puts expressions into statements of kernel text.

Expressions are interned, so a part used twice is found by identity and bound by `let`; `hoist` binds, before a loop opens,
the expressions that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from singe.extension import CompileError, Expr

from .shader import Shader

MAX_INLINE_CHARACTERS: Final = 120
"""A longer text is bound to a name even if it is used once: compilers limit the depth of expressions."""


class Statements:
    """A scope of a function under construction: its lines, and the names of the values bound so far."""

    def __init__(self, shader: Shader, names: Mapping[Expr, str] | None = None, depth: int = 1) -> None:
        self.shader = shader
        self.names = dict(names or {})
        self.depth = depth
        self.lines: list[str] = []

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def let(self, name: str, text: str, *means: Expr) -> str:
        """Bind a name, which stands for the given expressions from here on."""
        self.put(f"let {name} = {text};")
        self.names.update(dict.fromkeys(means, name))
        return name

    @contextmanager
    def scope(self, header: str) -> Iterator[Statements]:
        """`header { … }`: names bound inside end with it."""
        inner = Statements(self.shader, self.names, self.depth + 1)
        self.put(f"{header} {{")
        yield inner
        self.lines += inner.lines
        self.put("}")

    def value(self, e: Expr) -> str:
        return self.values([e])[0]

    def values(self, roots: Sequence[Expr]) -> list[str]:
        """The texts of expressions; parts that are used more than once are bound first."""
        order = self._pending(roots)
        uses: dict[Expr, int] = {}
        for e in (*roots, *(a for x in order for a in x.args)):
            uses[e] = uses.get(e, 0) + 1
        texts: dict[Expr, str] = {}
        for e in order:
            text = self._text(e, [self.names.get(a) or texts[a] for a in e.args])
            if e.args and (uses[e] > 1 or len(text) > MAX_INLINE_CHARACTERS):
                text = self.let(self.shader.fresh(), text, e)
            texts[e] = text
        return [self.names.get(r) or texts[r] for r in roots]

    def hoist(self, roots: Iterable[Expr]) -> None:
        """Bind the largest parts of the roots whose variables all have values here."""
        order = self._pending(roots)
        free: dict[Expr, bool] = {}
        for e in order:
            free[e] = e.word == "var" or any(free.get(a, False) for a in e.args)
        wanted = [a for e in order if free[e] for a in e.args if a.args and a in free and not free[a]]
        wanted += [r for r in roots if r.args and r in free and not free[r]]
        wanted = list(dict.fromkeys(wanted))
        for e, text in zip(wanted, self.values(wanted), strict=True):
            if e not in self.names:
                self.let(self.shader.fresh(), text, e)

    def _pending(self, roots: Iterable[Expr]) -> list[Expr]:
        """The expressions below the roots that have no name yet, arguments first."""
        order: dict[Expr, None] = {}
        stack = [(r, False) for r in reversed(list(roots))]
        while stack:
            e, ready = stack.pop()
            if ready:
                order[e] = None
            elif e not in order and e not in self.names:
                stack.append((e, True))
                stack.extend((a, False) for a in reversed(e.args))
        return list(order)

    def _text(self, e: Expr, args: Sequence[str]) -> str:
        if e.word == "const":
            return self.shader.dialect.literal(e.value, e.dtype)
        if e.word == "size":
            return self.shader.dim(e.value)
        if e.word == "load":
            return self.shader.load(e.value, args[0])
        if e.word == "var":
            raise CompileError(f"the variable {e.value[0]} has no value where it is used")
        return self.shader.dialect.spell(e, args)
