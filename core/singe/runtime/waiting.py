"""What may have to be waited for, written once for the plain forms and their async twins.

Natively a backend answers at once. In a page nothing may block, so a backend there may answer an awaitable: `Later[T]`
is either. Code that passes such an answer on uses `then` and `together`; an async form ends in `await soon(…)`, a plain
one in `now(…, twin)`, which waits where the engine can suspend, and else is a DeviceError that names the twin.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias, TypeVar, cast

from ..errors import DeviceError

T = TypeVar("T")
U = TypeVar("U")
Later: TypeAlias = T | Awaitable[T]

IN_PAGE = sys.platform == "emscripten"
"""Whether this is Pyodide: in a page, a worker or node."""


async def soon(value: Later[T]) -> T:
    """The value, awaited if need be."""
    return cast(T, await value if isawaitable(value) else value)


def now(value: Later[T], twin: str) -> T:
    """The value without an await; `twin` is what to write where this engine cannot suspend."""
    if not isawaitable(value):
        return cast(T, value)
    if IN_PAGE:
        from pyodide.ffi import can_run_sync, run_sync  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        if can_run_sync():
            return run_sync(soon(value))
    _drop(value)
    raise DeviceError(f"this has to wait, and nothing can wait here without await: write {twin}")


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits only what is there already."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the coroutine waits for something")


def then(value: Later[T], use: Callable[[T], U]) -> Later[U]:
    """use(value), when the value is there."""
    return _All([value], lambda found: use(found[0])) if isawaitable(value) else use(cast(T, value))


def together(values: Sequence[Later[T]]) -> Later[list[T]]:
    """All of the values."""
    return _All(values, list) if any(map(isawaitable, values)) else cast("list[Any]", list(values))


class _All(Awaitable[U]):
    """What is made of values when all of them are there."""

    def __init__(self, values: Sequence[Later[Any]], use: Callable[[list[Any]], U]) -> None:
        self.values = values
        self._use = use

    def __await__(self) -> Generator[Any, Any, U]:
        found = []
        for value in self.values:
            found.append((yield from soon(value).__await__()))
        return self._use(found)


def _drop(value: Any) -> None:
    """Close coroutines that nobody will wait for, so that Python does not complain of them."""
    for part in value.values if isinstance(value, _All) else ():
        _drop(part)
    if iscoroutine(value):
        value.close()
