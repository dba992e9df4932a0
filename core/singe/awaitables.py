"""Results that may have to be awaited, so that code is written once for the plain functions and their async twins.

Natively a backend returns its results at once. In a page nothing may block, so a backend may return an awaitable there.
`MaybeAwaitable[T]` is either of them. Code that passes such a result on uses `map_result` and `together`. An async function ends in
`await resolve_async(…)`, a plain one in `resolve(…, twin)`, which waits if the engine can suspend, and otherwise raises a
DeviceError that names the twin.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias, TypeVar, cast

from .errors import DeviceError

T = TypeVar("T")
U = TypeVar("U")
MaybeAwaitable: TypeAlias = T | Awaitable[T]

IN_PAGE = sys.platform == "emscripten"
"""Whether this is Pyodide: in a page, a worker or node."""


async def resolve_async(value: MaybeAwaitable[T]) -> T:
    """The value, awaited if necessary."""
    return cast(T, await value if isawaitable(value) else value)


def resolve(value: MaybeAwaitable[T], twin: str) -> T:
    """The value without an await. `twin`: the code to write instead if this engine cannot suspend."""
    if not isawaitable(value):
        return cast(T, value)
    if IN_PAGE:
        from pyodide.ffi import can_run_sync, run_sync  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        if can_run_sync():
            return run_sync(resolve_async(value))
    _drop(value)
    raise DeviceError(f"this has to wait, and nothing can wait here without await: write {twin}")


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the coroutine waits for something")


def map_result(value: MaybeAwaitable[T], use: Callable[[T], U]) -> MaybeAwaitable[U]:
    """use(value), once the value is available."""
    return _All([value], lambda found: use(found[0])) if isawaitable(value) else use(cast(T, value))


def together(values: Sequence[MaybeAwaitable[T]]) -> MaybeAwaitable[list[T]]:
    """All values, once they are available."""
    return _All(values, list) if any(map(isawaitable, values)) else cast("list[Any]", list(values))


class _All(Awaitable[U]):
    """An awaitable for the result of a function of values, once all of them are available."""

    def __init__(self, values: Sequence[MaybeAwaitable[Any]], use: Callable[[list[Any]], U]) -> None:
        self.values = values
        self._use = use

    def __await__(self) -> Generator[Any, Any, U]:
        found = []
        for value in self.values:
            found.append((yield from resolve_async(value).__await__()))
        return self._use(found)


def _drop(value: Any) -> None:
    """Close coroutines that will not be awaited, so that Python does not warn about them."""
    for part in value.values if isinstance(value, _All) else ():
        _drop(part)
    if iscoroutine(value):
        value.close()
