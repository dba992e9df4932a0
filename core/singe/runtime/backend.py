"""The protocol of a Backend, a device that holds arrays and runs Programs that its Target wrote.

A Backend needs no compiler. It is found through the entry-point group `singe.backends` (registry.py), so that this package
imports no engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..dtypes import DType
from ..program.program import ProgramData
from .waiting import Later


@runtime_checkable
class Array(Protocol):
    """A tensor's elements on some device. It is freed when nothing refers to it."""

    shape: tuple[int, ...]
    dtype: DType


class Executable(Protocol):
    """A Program made ready on a device: pipelines built, weights in place."""

    program: ProgramData

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[Any]:
        """Arrays of the backend in, in the order of the Program's inputs; new arrays out.

        `states` are the arrays of a session, one for each of the Program's states, which the run changes in place.
        """
        ...

    def new_states(self) -> list[Any]:
        """Arrays for a new session, with the initial values of the Program's states."""
        ...

    def memory(self) -> Mapping[str, int]:
        """Bytes held: weights, scratch, and states, those of all sessions together."""
        ...

    def dispose(self) -> None:
        """Free everything at once."""
        ...


@runtime_checkable
class DirectExecutable(Executable, Protocol):
    """An Executable with a shorter way for NumPy arrays than through arrays of its backend."""

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[Any] = ()) -> Later[list[np.ndarray]]:
        """NumPy arrays in, in the order of the Program's inputs; new ones out, which the caller owns. States as in `run`."""
        ...


@dataclass(frozen=True)
class Span:
    """One step's part of a timed run.

    step is its number among the Program's steps (as program.walk counts them), None for a copy that the runner adds. start counts from the beginning
    of the run. overhead is what the call cost besides the work, where it was measured apart; it is not in `seconds`.
    """

    step: int | None
    start: float
    seconds: float
    overhead: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """A timed run: what it gave, the seconds until all of it was done, its steps, what clock they were timed by, and the
    sizes that it ran at, those found in mid-run included."""

    outputs: list[Any]
    seconds: float
    spans: tuple[Span, ...]
    clock: str
    sizes: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class TimedExecutable(Executable, Protocol):
    """An Executable that can time its steps."""

    def profile(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> Timeline:
        """`run`, waiting for its end."""
        ...


class Backend(Protocol):
    """A device that holds arrays and runs Programs; in a page, what it answers may have to be waited for."""

    name: str
    target: Any  # a Target; None for the backend that runs ops on whole arrays

    def upload(self, array: np.ndarray) -> Any:
        """A NumPy array as an array of the device."""
        ...

    def download(self, array: Any) -> Later[np.ndarray]:
        """An array of the device as a NumPy array that the caller owns."""
        ...

    def prepare(self, program: ProgramData) -> Executable:
        """Make a Program of this backend's target ready to run."""
        ...

    def synchronize(self) -> Later[None]:
        """Wait until all work handed over is done."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What the device is, for people: adapter, features, limits."""
        ...

    def dispose(self) -> None:
        """Free the device; arrays of it become unusable."""
        ...


@dataclass(eq=False)
class HostArray:
    """The plainest Array: NumPy memory. A state's is replaced by what it becomes."""

    data: np.ndarray
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape
