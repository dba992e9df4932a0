"""The protocol of a Device: what Tensors, Models and decorators may ask of where values lie and ops run.

    EagerDevice(backend)   runs an op when it is called                 devices.py
    Fusion(device)         runs what a value needs when it is read      decorators/fusion.py
    Tracer()               runs nothing: it records a Graph             ../frontend/tracing.py

A decorator is a Device that wraps another and talks to it by these methods alone, so decorators compose in any order:
whatever a decorator has run, the device inside it sees. A value is what a device says it is; others read its shape and
dtype, and hand it back. Threads may share a device: it does one thing at a time, under its lock.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..compiler.target import Target
from ..dtypes import DType
from ..errors import DeviceError
from ..graph import Graph, Node
from ..program.program import ProgramData
from .backend import Executable
from .waiting import Later, now

Build: TypeAlias = Callable[..., Node | tuple[Node, ...]]
"""(builder, *nodes) ↦ a node, or several: what an op does, whether now or later."""


class Value(Protocol):
    """A tensor's elements on a device."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> DType: ...


class Device(ABC):
    """See the module's docstring."""

    adopts = False
    """Whether values of other devices may meet its own: it then takes them in by `adopt`."""
    lock: threading.RLock
    """Held while the device, or whatever it wraps, does something."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The backend's."""

    @property
    def label(self) -> str:
        """Its name with its decorators', as people see it."""
        return self.name

    def __repr__(self) -> str:
        return f"<device {self.label}>"

    # values

    @abstractmethod
    def upload(self, array: np.ndarray) -> Any:
        """The value of an array's elements."""

    @abstractmethod
    def fetch(self, value: Any) -> Later[np.ndarray]:
        """The value's elements as an array that the caller owns."""

    def download(self, value: Any) -> np.ndarray:
        """`fetch` without an await."""
        return now(self.fetch(value), "await tensor.numpy_async()")

    def adopt(self, value: Any, source: Device) -> Any:
        """Another device's value as one of this device's."""
        raise DeviceError(f"a value of {source!r} meets one of {self!r}; move one of them with .to(device)")

    # ops

    @abstractmethod
    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the nodes that `build(builder, *nodes)` makes."""

    @abstractmethod
    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of a Graph whose inputs are the values, in order."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work handed over is done."""

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """What the device is, for people: adapter, features, limits."""

    # Programs

    @property
    def eager(self) -> Device:
        """The device below all laziness: `prepare` is asked of it, and its values are what an Executable takes."""
        return self

    @property
    @abstractmethod
    def target(self) -> Target | None:
        """The Target whose Programs it runs; None: Programs of host steps."""

    @abstractmethod
    def prepare(self, program: ProgramData) -> Executable:
        """A Program made ready to run over this device's values."""


def nodes_of(made: Node | tuple[Node, ...]) -> tuple[Node, ...]:
    """What a Build gave, as a tuple."""
    return made if isinstance(made, tuple) else (made,)
