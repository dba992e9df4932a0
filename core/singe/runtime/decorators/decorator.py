"""Decorator: a Device that passes every call on to the device that it wraps. Subclasses override a method or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, overload

import numpy as np

from ...awaitables import MaybeAwaitable
from ...compiler.target import Target
from ...graph import Graph
from ...program.program import ProgramData
from ..backend import Executable
from ..device import Build, Device
from ..devices import device
from ..memory.settings import Memory
from ..memory.usage import MemoryUse

if TYPE_CHECKING:
    from .router import Router


class Decorator(Device):
    """A Device that passes every call on to another, which is given or named, and has its values. Around a Router it is a
    Router of such devices."""

    @overload
    def __new__(cls, inner: Router, *args: Any, **named: Any) -> Router: ...
    @overload
    def __new__(cls, inner: Device | str, *args: Any, **named: Any) -> Self: ...
    def __new__(cls, inner: Device | str, *args: Any, **named: Any) -> Any:
        from .router import Router  # noqa: PLC0415 (which is a Decorator)

        if isinstance(inner, Router):
            return Router(*(cls(one, *args, **named) for one in inner))
        return super().__new__(cls)

    def __init__(self, inner: Device | str) -> None:
        self.inner: Final = device(inner)
        self.lock = self.inner.lock
        self.shares = self.inner.shares
        self.counts_memory = self.inner.counts_memory

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def label(self) -> str:
        return f"{type(self).__name__.lower()}({self.inner.label})"

    @property
    def written(self) -> str:
        return "x.device"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner,)

    def upload(self, array: np.ndarray) -> Any:
        return self.inner.upload(array)

    def fetch(self, value: Any) -> MaybeAwaitable[np.ndarray]:
        return self.inner.fetch(value)

    def exported(self, value: Any) -> Any:
        return self.inner.exported(value)

    def imported(self, array: Any) -> Any:
        return self.inner.imported(array)

    def integers(self, value: Any) -> np.ndarray | None:
        return self.inner.integers(value)

    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        return self.inner.apply(build, values)

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        return self.inner.run(graph, values)

    def synchronize(self) -> None:
        self.inner.synchronize()

    def describe(self) -> Mapping[str, Any]:
        return self.inner.describe()

    def memory(self) -> MemoryUse:
        return self.inner.memory()

    def clean(self) -> None:
        self.inner.clean()

    def reset_peak(self) -> None:
        self.inner.reset_peak()

    def configure(self, memory: Memory) -> None:
        self.inner.configure(memory)

    def watched(self, value: Any) -> Any:
        return self.inner.watched(value)

    def detached(self, value: Any) -> Any:
        return self.inner.detached(value)

    def is_recorded(self, value: Any) -> bool:
        return self.inner.is_recorded(value)

    def backward(self, value: Any, keep: bool, seed: Any = None) -> Sequence[tuple[Device, Any, Any]]:
        return self.inner.backward(value, keep, seed)

    @property
    def eager(self) -> Device:
        below = self.inner.eager
        return self if below is self.inner else below

    @property
    def target(self) -> Target:
        return self.inner.target

    def prepare(self, program: ProgramData) -> Executable:
        return self.inner.prepare(program)
