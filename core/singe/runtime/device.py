"""The protocol of a Device: the methods by which Tensors, Models and decorators store values and run ops.

    EagerDevice(backend)   runs an op when it is called                 eager.py
    Fusion(device)         runs what a value needs when it is read      decorators/fusion.py
    Autodiff(device)       records ops for gradients                    decorators/autodiff.py
    Router(a, b)           several devices under one name               decorators/router.py
    Tracer()               runs nothing: it records a Graph             ../tensors/tracing.py

A decorator is a Device that wraps another. It uses the inner device only through these methods, so decorators compose
in any order, and the inner device sees everything that is run. Each device has its own kind of value; other code only
reads its shape and dtype, and passes it back. Threads may share a device: it does one thing at a time, under its lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ..awaitables import MaybeAwaitable, map_result, resolve
from ..dtypes import DType
from ..errors import DeviceError
from ..lazy_names import LateModule
from ..program.program import ProgramData
from .backend import Executable
from .device_lock import DeviceLock
from .memory.settings import Memory
from .memory.usage import MemoryUse

if TYPE_CHECKING:
    from .. import hints
    from ..compiler.target import Target
    from ..graph import Graph, Node
else:
    hints = LateModule("hints")

Build: TypeAlias = "Callable[..., Node | tuple[Node, ...]]"
"""(builder, *nodes) ↦ a node, or several: what an op computes, now or later."""


class DeviceValue(Protocol):
    """A tensor's elements on a device."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> DType: ...


class Device(ABC):
    """What stores values and runs ops: `sg.device("wasm")` gives that of a backend, `sg.Fusion` and `sg.Autodiff` wrap one.

        x = sg.tensor(array, device="wasm")     # a name will do wherever a device is expected
        x.device, x.to("webgpu")

    Threads may share a device: it does one thing at a time.
    """

    precedence = 0
    """Operations may mix its values with those of devices with a smaller number, which it takes over with `import_value`."""
    trace_depth = 0
    """If not 0, nothing runs on it: it traces a function, within so many others."""
    lock: DeviceLock
    """Held while the device, or a device that it wraps, does something."""
    reads_now = False
    """Whether `fetch` waits for nothing, so that a step may depend on a value."""
    counts_memory = False
    """Whether `memory()` knows something, and waits for nothing."""
    shares = False
    """Whether `exported` gives the value's own memory."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the backend."""

    @property
    def label(self) -> str:
        """The name with those of decorators, for people."""
        return self.name

    @property
    def first(self) -> Device:
        """The device on which something is that is made on this one: itself, or the first of a Router's."""
        return self

    @property
    def written(self) -> str:
        """The device as code."""
        return f'"{self.name}"'

    def __repr__(self) -> str:
        return f"<device {self.label}>"

    # values

    @abstractmethod
    def upload(self, array: np.ndarray) -> Any:
        """A new value with the elements of an array."""

    @abstractmethod
    def fetch(self, value: Any) -> MaybeAwaitable[np.ndarray]:
        """The value's elements as an array that the caller owns."""

    def exported(self, value: Any) -> Any:
        """An object with DLPack over the value's memory, or over a copy on the host."""
        return self.download(value)

    def imported(self, array: Any) -> Any:
        """A value with the elements of an object with DLPack, over its memory if this device can use that."""
        return self.upload(np.from_dlpack(array))

    def integers(self, value: Any) -> np.ndarray | None:
        """The elements of a value of integers, if they can be had without waiting for the device. They must not be changed."""
        return None

    def download(self, value: Any) -> np.ndarray:
        """`fetch` without an await."""
        return resolve(self.fetch(value), "await tensor.numpy_async()")

    def import_value(self, value: Any, source: Device) -> Any:
        """Another device's value as one of this device's."""
        if repr(source) == repr(self):
            raise DeviceError(
                f"values of two devices {self!r} meet, which were made by two calls; make one device, and give it to both tensors"
            )
        raise DeviceError(
            f"a value of {source!r} meets one of {self!r}; move one of them with .to({self.written}) or .to({source.written})"
        )

    def destination(self, target: Device) -> Device:
        """Where a value of this device goes that is moved to another one."""
        return target

    def receive(self, value: Any, source: Device) -> MaybeAwaitable[Any]:
        """Another device's value, moved to this device."""
        return map_result(source.fetch(value), self.upload)

    # ops

    @abstractmethod
    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the nodes that `build(builder, *nodes)` makes."""

    @abstractmethod
    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of a Graph whose inputs are the values, in order."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all submitted work is done."""

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """Facts about the device for people: adapter, features, limits."""

    # memory

    def memory(self) -> MemoryUse:
        """What the device holds, in bytes, by what it is for; a device that does not count it says None."""
        return MemoryUse()

    def clean(self) -> None:  # noqa: B027 (one that keeps nothing has nothing to do)
        """Free idle memory, and the scratch memory of Programs, which the next run takes again."""

    def reset_peak(self) -> None:  # noqa: B027 (nor has one that does not count)
        """Begin to measure the peak of `memory()` anew."""

    def configure(self, memory: Memory) -> None:
        """Take memory in this way from now on."""
        raise DeviceError(f"{self!r} does not take memory by itself; leave memory= out")

    def use_threads(self, count: int) -> None:
        """Share long runs among so many threads from now on."""
        raise DeviceError(f"{self!r} does not share runs among threads; leave threads= out")

    # gradients (see decorators/autodiff.py)

    def watched(self, value: Any) -> Any:
        """The same elements as a value by which can be differentiated."""
        raise DeviceError(f"{self!r} does not record gradients; use the device sg.Autodiff(…) around it")

    def detached(self, value: Any) -> Any:
        """The same elements as a value through which no gradient goes."""
        return value

    def is_recorded(self, value: Any) -> bool:
        """Whether the value depends on a watched one."""
        return False

    def backward(self, value: Any, keep: bool, seed: Any = None) -> Sequence[tuple[Device, Any, Any]]:
        """The gradients of the sum of a value: of each watched value on which it depends, the device, the value, the gradient.
        keep: they are recorded, too. seed: a value of the same shape, by whose elements those of the first are multiplied
        before."""
        raise DeviceError(f"backward: {self!r} does not record gradients{hints.suggest('backward', '')}")

    # Programs

    @property
    def eager(self) -> Device:
        """The device below all lazy decorators. Executables are prepared by it, and take its values."""
        return self

    @property
    @abstractmethod
    def target(self) -> Target:
        """The Target whose Programs the device runs."""

    @abstractmethod
    def prepare(self, program: ProgramData) -> Executable:
        """An Executable of the Program, which takes values of this device."""


def nodes_of(nodes: Node | tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes that a Build returned, as a tuple."""
    return nodes if isinstance(nodes, tuple) else (nodes,)
