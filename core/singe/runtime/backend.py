"""The protocol of a Backend, a device that holds arrays and runs Programs that its Target wrote.

A Backend needs no compiler. It is found through the entry-point group `singe.backends` (registry.py), so that this package
imports no engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..awaitables import MaybeAwaitable
from ..dtypes import DType
from ..late_dataclass import dataclass
from ..program.program import ProgramData


@runtime_checkable
class Array(Protocol):
    """A tensor's elements on some device. It is freed when nothing refers to it."""

    shape: tuple[int, ...]
    dtype: DType


class Executable(Protocol):
    """A Program that is ready to run on a device: pipelines are built, weights uploaded."""

    program: ProgramData

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[Any]:
        """Take arrays of the backend, in the order of the Program's inputs, and return new arrays.

        If an output is computed in a donated input, the array that was given is overwritten and returned. `states` are
        the arrays of a session, one for each of the Program's states. The run changes them in place.
        """
        ...

    def new_states(self) -> list[Any]:
        """Arrays for a new session, with the initial values of the Program's states."""
        ...

    def memory(self) -> Mapping[str, int]:
        """Bytes held: weights, `shared` weights (which other Programs of the Model use too), scratch, and the states of
        all sessions."""
        ...

    def dispose(self) -> None:
        """Free everything at once."""
        ...


@runtime_checkable
class DirectExecutable(Executable, Protocol):
    """An Executable that takes NumPy arrays directly, which is faster than through arrays of its backend."""

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[Any] = ()) -> MaybeAwaitable[list[np.ndarray]]:
        """Take NumPy arrays, in the order of the Program's inputs, and return new ones, which the caller owns, or
        donated ones, as in runtime/donated_inputs.py. States as in `run`."""
        ...


@dataclass(frozen=True)
class Span:
    """One group's part of a timed run.

    at: its position among the Program's words. start: seconds since the beginning of the run. overhead: the time of the
    call itself, if it was measured separately; it is not part of `seconds`.
    """

    at: int
    start: float
    seconds: float
    overhead: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """A timed run: its outputs, its total seconds, its steps, the clock that timed them, and its sizes, including those
    found in mid-run."""

    outputs: list[Any]
    seconds: float
    spans: tuple[Span, ...]
    clock: str
    sizes: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class TimedExecutable(Executable, Protocol):
    """An Executable that can time its steps."""

    def profile(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> Timeline:
        """`run`, timed until everything is done."""
        ...


class Backend(Protocol):
    """A device that holds arrays and runs Programs. In a page, its results may have to be awaited.

    Attributes that may be left out: `survives_fork = False`: it is refused in a forked process. `renews = True`: a forked
    process may use it even if a thread did, since it keeps nothing between runs. `reads_now = True`: `download` waits for
    nothing. `export(array)`: an object with DLPack over an array's memory; `adopt(object)`: an array over the memory of such an object,
    where that is this device's, or with its elements. `lost`: whether the device went away; it is opened anew when it is asked for again.
    `memory()`, `clean()`, `reset_peak()`, `configure(memory)`, `use_threads(count)`: as of a Device (device.py), under its lock. `counts_memory = False`:
    `memory()` has to ask for it elsewhere.
    """

    name: str
    target: Any  # a Target; of arrays (ArrayTarget) if it calls each op with arrays, for which None may stand too

    def upload(self, array: np.ndarray) -> Any:
        """A NumPy array as an array of the device."""
        ...

    def download(self, array: Any) -> MaybeAwaitable[np.ndarray]:
        """An array of the device as a NumPy array that the caller owns."""
        ...

    def prepare(self, program: ProgramData) -> Executable:
        """Make a Program of this backend's target ready to run.

        Its weights are in `program.blocks`. Programs of one Model share blocks (the same arrays), which a device needs to
        hold only once; `singe.extension.alone` gives a Program with a single block.
        """
        ...

    def synchronize(self) -> MaybeAwaitable[None]:
        """Wait until all submitted work is done."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Facts about the device for people: adapter, features, limits."""
        ...

    def dispose(self) -> None:
        """Free the device; arrays of it become unusable."""
        ...


@dataclass(eq=False)
class LibraryArray:
    """An Array of an array library; of NumPy if that lacks the element type. `data` of a state is replaced by its next value."""

    data: Any
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)


@dataclass(eq=False)
class HostArray(LibraryArray):
    """The simplest Array: NumPy memory."""

    data: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape
