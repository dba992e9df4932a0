"""The Writer puts typed Values and instruction trees into a body, statement by statement.

Locals that it declares live to the end of the innermost scope: a loop's body, a branch, or a `scope`. A Tree is code whose
loop level is known: a Tree that is used several times is computed once, in the outermost loop possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeVar

from .encode import Body, Function, Spelling, Type, memory
from .values import F32, F64, I32, I64, F32x4, I32x4, Int, Value

EFFECT: Final = 1 << 30
"""The level of a store: it is never hoisted."""
Some = TypeVar("Some", bound=Value)
_VALUES: Final[Mapping[Type, type[Value]]] = {"i32": I32, "i64": I64, "f32": F32, "f64": F64, "v128": F32x4}
_STORES: Final = {"i32": "i32.store", "i64": "i64.store", "f32": "f32.store", "v128": "v128.store"}


class Tree:
    """Instructions on the results of other trees; `level` is the number of loops that must be open to compute it."""

    __slots__ = ("args", "code", "level", "local", "trivial", "type", "uses")

    def __init__(self, code: Spelling, args: tuple[Tree, ...], kind: Type, level: int, trivial: bool = False) -> None:
        self.code: Final = code
        self.args: Final = args
        self.type: Final[Type] = kind
        self.level: Final = level
        self.trivial: Final = trivial  # as cheap as reading a local
        self.local: int | None = None
        self.uses = 0
        for a in args:
            a.uses += 1


class _Scope:
    """There are many: this is quicker than a generator."""

    __slots__ = ("_close", "_open")

    def __init__(self, open_: Callable[[], None], close: Callable[[], None]) -> None:
        self._open = open_
        self._close = close

    def __enter__(self) -> None:
        self._open()

    def __exit__(self, *_: object) -> None:
        self._close()


class Writer:
    """See the module's docstring."""

    def __init__(self, body: Body) -> None:
        self.body: Final = body
        self._kept: list[list[Tree]] = [[]]
        self._declared: list[list[int]] = [[]]

    def finish(self, result: Value | None = None) -> Function:
        """The function, which returns this value if it returns one."""
        if result is not None:
            result.push(self.body)
        return self.body.finish()

    def leave(self, result: Value) -> None:
        """Return from the function."""
        result.push(self.body)
        self.body.op("return")

    def parameters(self) -> list[I32]:
        """The parameters of a function whose parameters are all i32."""
        return [I32(number=i) for i in range(len(self.body.signature.params))]

    # --- locals

    def local(self, value: Some) -> Some:
        """A new local with this value."""
        into = self._declare(type(value))
        self.set(into, value)
        return into

    def i32(self, value: Int | None = None) -> I32:
        """A new local, with this value or to be set before it is read."""
        return self._declare(I32) if value is None else self.local(I32.of(value))

    def f32(self, value: F32 | float | None = None) -> F32:
        return self._declare(F32) if value is None else self.local(F32.of(value))

    def i64(self, value: I64) -> I64:
        return self.local(value)

    def f64(self, value: F64) -> F64:
        return self.local(value)

    def f32x4(self, value: F32x4 | float | None = None) -> F32x4:
        return self._declare(F32x4) if value is None else self.local(F32x4.of(value))

    def i32x4(self, value: I32x4 | int | None = None) -> I32x4:
        return self._declare(I32x4) if value is None else self.local(I32x4.of(value))

    def _declare(self, kind: type[Some]) -> Some:
        number = self.body.local(kind.kind)
        self._declared[-1].append(number)
        return kind(number=number)

    def declare(self, kind: Type) -> Value:
        """A new local of the given type."""
        return self._declare(_VALUES[kind])

    def simple(self, value: Int) -> I32:
        """The value itself if using it again is free, otherwise a local with it."""
        value = I32.of(value)
        return value if value.simple else self.i32(value)

    def set(self, local: Value, value: Value | float) -> None:
        """local = value."""
        assert local.number is not None
        given: Value = value if isinstance(value, Value) else type(local).of(value)  # pyright: ignore[reportAttributeAccessIssue]
        assert given.kind == local.kind, (given.kind, local.kind)
        given.push(self.body)
        self.body.set(local.number)

    def add(self, local: I32, by: Int) -> None:
        """local += by."""
        self.set(local, local + by)

    def multiply_add(self, into: Value, a: Value, b: Value) -> None:
        """into += a · b, rounded once where the linked level has relaxed SIMD."""
        a.push(self.body)
        b.push(self.body)
        assert into.number is not None
        self.body.multiply_add(into.number, into.kind == "v128")

    def fold(self, into: Value, value: Value, code: Spelling) -> None:
        """into = code(into, value)."""
        into.push(self.body)
        value.push(self.body)
        self.body.apply(code)
        assert into.number is not None
        self.body.set(into.number)

    # --- memory and calls

    def store(self, at: Int, value: Value, offset: int = 0, op: str | None = None) -> None:
        """Write the value at an address."""
        I32.of(at).push(self.body)
        value.push(self.body)
        self.body.add(memory(op or _STORES[value.kind], offset))

    def store_lane(self, at: Int, value: Value, bits: int) -> None:
        """Write the first lane of a vector."""
        I32.of(at).push(self.body)
        value.push(self.body)
        self.body.add(memory(f"v128.store{bits}_lane") + b"\x00")

    def put(self, at: Int, tree: Tree, offset: int = 0) -> None:
        """Write a tree's value at an address."""
        I32.of(at).push(self.body)
        self.push(tree)
        self.body.add(memory(_STORES[tree.type], offset))

    def move(self, to: Int, source: Int, size: Int) -> None:
        """Copy bytes."""
        for a in (to, source, size):
            I32.of(a).push(self.body)
        self.body.op("memory.copy")

    def call(self, name: str, *arguments: Int) -> None:
        """A call for its effect."""
        for a in arguments:
            I32.of(a).push(self.body)
        self.body.call(name)

    # --- control

    def scope(self) -> AbstractContextManager[None]:
        """A scope: locals declared inside end with it, and trees computed inside are dropped."""
        return _Scope(self._open, self._close)

    def _open(self) -> None:
        self._kept.append([])
        self._declared.append([])

    def _close(self) -> None:
        for tree in self._kept.pop():
            assert tree.local is not None
            self.body.free(tree.local)
            tree.local = None
        self.body.free(*self._declared.pop())

    @contextmanager
    def when(self, condition: I32) -> Iterator[None]:
        """Code that runs if the condition is not 0; after `otherwise`, code that runs if it is 0."""
        condition.push(self.body)
        with self.body.when(), self.scope():
            yield

    def otherwise(self) -> None:
        """The start of the other branch of `when`."""
        self._close()
        self.body.otherwise()
        self._open()

    @contextmanager
    def loop(
        self, variable: I32, limit: Int, step: int = 1, start: Int | None = None, sure: bool = False,
        hoist: Iterable[Tree] = (), level: int = 0,
    ) -> Iterator[None]:  # fmt: skip
        """A loop while variable < limit, from `start` or from the variable's value; sure: it runs at least once.

        Inside, `level` loops are open, and the parts of the trees `hoist` that need only these are computed first.
        """
        start = None if start is None else I32.of(start)
        if start is not None:
            self.set(variable, start)
        limit = I32.of(limit)
        sure = sure or (
            start is not None and start.known is not None and limit.known is not None and start.known < limit.known
        )
        assert variable.number is not None
        with self.scope():
            limit = self.simple(limit)
            code = limit.push
            with self.body.count(variable.number, code, step, sure), self.scope():
                self.hoist(hoist, level)
                yield

    @contextmanager
    def repeat_while(self, again: I32) -> Iterator[None]:
        """A loop that runs at least once, and again as long as the condition, evaluated at its end, is not 0."""
        with self.body.repeat():
            with self.scope():
                yield
            again.push(self.body)

    # --- trees

    def value(self, tree: Tree) -> I32:
        """A tree, usually an address, as a Value."""
        return _VALUES[tree.type](lambda _: self.push(tree))  # pyright: ignore[reportReturnType]

    def push(self, tree: Tree) -> None:
        """Write the tree: its value goes onto the stack, unless it is a store."""
        if tree.local is not None:
            self.body.get(tree.local)
            return
        for a in tree.args:
            self.push(a)
        self.body.apply(tree.code)
        if tree.uses > 1 and not tree.trivial:
            self.body.tee(self._keep(tree))

    def _keep(self, tree: Tree) -> int:
        tree.local = self.body.local(tree.type)
        self._kept[-1].append(tree)
        return tree.local

    def hoist(self, roots: Iterable[Tree], level: int) -> None:
        """Compute now the parts of the roots for which `level` open loops suffice."""
        stack = list(roots)
        seen: set[Tree] = set()
        while stack:
            tree = stack.pop()
            if tree in seen or tree.local is not None or tree.trivial:
                continue
            seen.add(tree)
            if tree.level > level:
                stack.extend(tree.args)
                continue
            for a in tree.args:
                self.push(a)
            self.body.apply(tree.code)
            self.body.set(self._keep(tree))
