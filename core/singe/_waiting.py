"""What may have to be waited for, written once for the plain forms and their async twins.

Natively a backend answers at once. In a page nothing may block, so a backend there may answer an awaitable: `Later[T]`
is either. Code that passes such an answer on uses `then` and `together`; an async form ends in `await soon(…)`, a plain
one in `now(…, twin)`, which waits where the engine can suspend, and else is a DeviceError that names the twin.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias, TypeVar, cast

from ._errors import DeviceError

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
            return run_sync(value)
    if iscoroutine(value):
        value.close()
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

    async def used(awaited: Awaitable[T]) -> U:
        return use(await awaited)

    return used(value) if isawaitable(value) else use(cast(T, value))


def together(values: Sequence[Later[T]]) -> Later[list[T]]:
    """All of the values."""

    async def gathered() -> list[T]:
        return [await soon(v) for v in values]

    return gathered() if any(map(isawaitable, values)) else cast("list[Any]", list(values))
