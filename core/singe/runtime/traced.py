"""Whether a function is being traced. It is known here, below what traces functions, as calls that never trace one ask for it too."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

from ..errors import InputError


class Tracing(Protocol):
    """The device of a function that is being traced."""

    @property
    def runs_again(self) -> bool:
        """Whether the function runs later and more than once, so that constants are the same in every run."""
        ...


TRACER: Final[ContextVar[Tracing | None]] = ContextVar("tracer", default=None)
"""The device of the function that is being traced at present, if any."""


def refuse_when_traced(what: str, instead: str) -> None:
    """Refuse what gives something else later, while a function is traced that runs again: a constant of the trace, it would be
    the same in every run. instead: what to write."""
    on = TRACER.get()
    if on is not None and on.runs_again:
        raise InputError(
            f"{what}: it gives something else later, and a compiled function would have in every run what it gives now; {instead}"
        )
