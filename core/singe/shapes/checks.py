"""Conditions on dimensions that a run checks, where they depend on its sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from ..errors import ShapeError
from .sizes import Dim, Size, at_least, equal, plain, undivided

Checks: TypeAlias = "dict[Dim, str]"
"""Dimensions that must be at least 0 when a run's sizes are known ↦ the error's text if one is not."""
_CHECKS: Final[ContextVar[Checks | None]] = ContextVar("checks", default=None)
_KEPT: Final[ContextVar[Checks | None]] = ContextVar("kept", default=None)
_TURNS: Final[ContextVar[tuple[Dim, ...]]] = ContextVar("turns", default=())
"""The numbers of turns of the loops whose bodies are built, where they may be 0."""


@contextmanager
def repeating(count: Dim | None) -> Iterator[None]:
    """A context in which the body of a loop of so many turns (None: not known) is built: its conditions must hold only if
    it makes a turn."""
    more = () if count is None or at_least(count, 1) else (plain(count),)
    token = _TURNS.set((*_TURNS.get(), *more))
    try:
        yield
    finally:
        _TURNS.reset(token)


def repetitions() -> tuple[Dim, ...]:
    """The numbers of turns on which the conditions required here depend."""
    return _TURNS.get()


def deferred() -> bool:
    """Whether a run checks what depends on its sizes."""
    return _CHECKS.get() is not None


@contextmanager
def deferring() -> Iterator[Checks]:
    """A context in which conditions that depend on the sizes of a run are assumed to hold. They are collected in the
    Checks that it gives, and the run must check them."""
    found: Checks = {}
    token = _CHECKS.set(found)
    try:
        yield found
    finally:
        _CHECKS.reset(token)


@contextmanager
def keeping(kept: Checks) -> Iterator[None]:
    """A context in which dimensions may rely on the checks collected so far. These are added to `kept`, and the run must check them, whatever
    becomes of the nodes that required them."""
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)


def same(a: Dim, b: Dim, what: str) -> bool:
    """Like `equal`, for dimensions that must be equal:
    if that depends on the sizes, the run may check it (`deferring`)."""
    gap = a - b
    checks = _CHECKS.get()
    if checks is None or not isinstance(gap, Size) or at_least(gap, 1) or at_least(-gap, 1):
        return equal(a, b, what)
    require(gap, f"{what}: {a} must be {b}")
    require(-gap, f"{what}: {a} must be {b}")
    return True


def holds(dim: Dim) -> bool:
    """Whether a dimension is at least 0 in every run: always, or by a check collected so far, which is kept then (`keeping`)."""
    wanted = undivided(dim)
    if at_least(wanted, 0):
        return True
    kept, found = _KEPT.get(), _CHECKS.get()
    if kept is None or found is None:
        return False
    check = next((check for check in found if at_least(wanted - undivided(check), 0)), None)
    if check is None:
        return False
    kept.setdefault(check, found[check])
    return True


def differ(a: Dim, b: Dim) -> bool:
    """Whether two dimensions differ in every run that passes the checks collected so far: where a length must be at least
    0, it is not -1."""
    return any(at_least(gap - dim, 1) for gap in (a - b, b - a) for dim in _CHECKS.get() or ())


def require(dim: Dim, text: str) -> None:
    """Require a dimension of at least 0: ShapeError(text) if it never is;
    if that depends on sizes, the run checks it. In a loop's body it is required only if the loop makes a turn."""
    if at_least(dim, 0):
        return
    for count in _TURNS.get():
        # Either no turn is made, or that one is made (count ≥ 1) implies the condition.
        if at_least(-count, 0) or at_least(dim - count + 1, 0):
            return
    if at_least(-dim, 1):
        raise ShapeError(text)
    checks = _CHECKS.get()
    if checks is not None:
        checks.setdefault(plain(dim), text)
