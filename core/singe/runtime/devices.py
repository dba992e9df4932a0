"""Devices, as Tensors and Models see them: something that holds values and applies rows to them.

A Device is eager: an op runs when it is called, through a Program of one op that is compiled once for each set of
shapes. Fusion is a decorator: it wraps a Device, remembers ops instead of running them, and runs all that a value needs
as one Program when the value is read. Both have the same methods, so what is written for one runs on the other.

Threads may share a device: it does one thing at a time.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from .. import dtypes
from ..compiler.build import compile_graph
from ..dtypes import DType
from ..errors import DeviceError
from ..graph.graph import INTERNED_BYTES, Builder, Graph, Node, postorder
from .backend import Backend, Executable, backend_names, open_backend
from .recent import Recent
from .waiting import Later, finished, now, soon, then

Build: TypeAlias = Callable[..., Node]
"""(builder, *nodes) ↦ a node: what an op does, whether now or later."""

PROGRAMS: Final = 512
"""How many compiled Programs a device keeps; the one unused for longest goes first."""
AUTO: Final = ("webgpu", "wasm", "numpy")
"""What `device("auto")` tries, in order. A software adapter does not count as a GPU."""


class Value:
    """A tensor's elements on a device: a node, and for an eager device the backend's array."""

    __slots__ = ("__weakref__", "array", "node")

    def __init__(self, node: Node, array: Any = None) -> None:
        self.node = node
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape  # pyright: ignore[reportReturnType]

    @property
    def dtype(self) -> DType:
        return self.node.dtype


class Device:
    """A backend with eager execution; see the module's docstring."""

    adopts = False
    """Whether values of other devices may meet its own: it then takes them in by `adopt`."""

    def __init__(self, backend: Backend) -> None:
        self.backend: Final = backend
        self.lock = threading.RLock()
        self._programs: Recent[Executable] = Recent(PROGRAMS)

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def label(self) -> str:
        """Its name with its decorators', as people see it."""
        return self.name

    def __repr__(self) -> str:
        return f"<device {self.label}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.name,)

    def upload(self, array: np.ndarray) -> Value:
        kind = dtypes.dtype(array.dtype)
        with self.lock:
            return Value(
                Node(None, (), {}, array.shape, kind),
                self.backend.upload(np.ascontiguousarray(array).reshape(array.shape)),
            )

    def download(self, value: Value) -> np.ndarray:
        """The value's elements as an array that the caller owns."""
        return now(self.fetch(value), "await tensor.numpy_async()")

    def fetch(self, value: Value) -> Later[np.ndarray]:
        """What `download` waits for."""
        with self.lock:
            return self.backend.download(self.realise(value))

    def adopt(self, value: Value, source: Device) -> Value:
        """Another device's value as one of this device's."""
        raise DeviceError(f"a value of {source!r} meets one of {self!r}; move one of them with .to(device)")

    def apply(self, build: Build, values: Sequence[Value]) -> Value:
        """The value of `build(builder, *nodes)`."""
        nodes = [Node(None, (), {}, v.shape, v.dtype, name=f"x{i}") for i, v in enumerate(values)]
        made = build(Builder(), *nodes)
        graph = Graph(tuple(nodes), (made,), ("y",))
        (array,) = self._run(graph, [self.realise(v) for v in values])
        return Value(Node(None, (), {}, made.shape, made.dtype), array)

    def realise(self, value: Value) -> Any:
        """The value as an array of the backend."""
        if value.array is None:
            raise DeviceError(f"{self!r} was given a value that another device has yet to compute")
        return value.array

    def _run(self, graph: Graph, arrays: Sequence[Any]) -> list[Any]:
        """Run a graph whose inputs are the arrays, by its Program, compiled when it is first met."""
        key = structure(graph)

        def prepared() -> Executable:
            return self.backend.prepare(compile_graph(graph, self.backend.target))

        with self.lock:
            return self._programs.at(key, prepared).run(arrays)

    def synchronize(self) -> None:
        """Wait until all work handed over is done."""
        now(self.backend.synchronize(), "await tensor.numpy_async(), which waits for what it reads")

    def describe(self) -> Mapping[str, Any]:
        return self.backend.describe()


class Fusion(Device):
    """A decorator: laziness. Ops are remembered, and run together when a value is read."""

    def __init__(self, device: Device) -> None:
        super().__init__(device.backend)
        self.inner: Final = device
        self.lock = device.lock  # one backend, one lock
        # Which nodes have arrays by now; a node lives as long as a value or a node made of it does.
        self._arrays: weakref.WeakKeyDictionary[Node, Any] = weakref.WeakKeyDictionary()

    @property
    def label(self) -> str:
        return f"fusion({self.inner.label})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Fusion, (self.inner,)

    def upload(self, array: np.ndarray) -> Value:
        with self.lock:
            value = super().upload(array)
            self._arrays[value.node] = value.array
        return value

    def apply(self, build: Build, values: Sequence[Value]) -> Value:
        return Value(build(Builder(), *(v.node for v in values)))

    def realise(self, value: Value) -> Any:
        """The value as an array of the backend, computed now if it is not yet."""
        with self.lock:
            array = self._arrays.get(value.node)
            if array is None:
                graph, leaves = self._pending(value.node)
                (array,) = self._run(graph, leaves)
                self._arrays[value.node] = array
                # From now on a leaf: what it was computed from can be freed.
                value.node = Node(None, (), {}, value.shape, value.dtype)
                self._arrays[value.node] = array
        return array

    def _pending(self, node: Node) -> tuple[Graph, list[Any]]:
        """The graph from what has been computed to a node, with the arrays of its inputs."""
        inputs: dict[Node, Node] = {}
        done: dict[Node, Node] = {}
        builder = Builder()
        for n in postorder([node], lambda m: () if m in self._arrays else m.inputs):
            if n in self._arrays:
                done[n] = inputs[n] = Node(None, (), {}, n.shape, n.dtype, name=f"x{len(inputs)}")
            else:
                done[n] = n if n.row is None else builder.apply(n.row, *(done[x] for x in n.inputs), **n.attrs)
        return Graph(tuple(inputs.values()), (done[node],), ("y",)), [self._arrays[n] for n in inputs]


def structure(graph: Graph) -> Any:
    """A key that equal graphs share: rows, attributes, shapes and constants, by position."""
    number = {n: i for i, n in enumerate(graph.inputs)}
    parts: list[Any] = [(n.shape, n.dtype) for n in graph.inputs]
    for n in graph.nodes:
        if n not in number:
            number[n] = len(number)
            if n.value is not None:
                parts.append((n.dtype, n.shape, _contents(n.value)))
            else:
                assert n.row is not None
                parts.append((n.row.name, tuple(sorted(n.attrs.items())), tuple(number[x] for x in n.inputs)))
    return tuple(parts), tuple(number[n] for n in graph.outputs)


def _contents(value: np.ndarray) -> Any:
    """What equal constants have in common; not their identity, which a new array may take over from a freed one."""
    if value.dtype == object:
        return tuple(value.ravel())
    return value.tobytes() if value.nbytes <= INTERNED_BYTES else hashlib.blake2b(value.tobytes()).digest()


_opening: Final = threading.Lock()
_devices: Final[dict[str, Device]] = {}


def _opened(name: str) -> Later[Device]:
    """The one device of a backend: who asks for it together gets the same."""

    def kept(backend: Backend) -> Device:
        found = _devices.setdefault(name, Device(backend))
        if found.backend is not backend:  # two waited for it at once
            backend.dispose()
        return found

    with _opening:
        return _devices[name] if name in _devices else then(open_backend(name), kept)


def _opened_now(name: str) -> Device:
    return now(_opened(name), f'await singe.device_async("{name}")')


def device(name: str | Device = "auto") -> Device:
    """The device of a backend's name, opened once and shared; "auto" is the first of AUTO that is there."""
    return finished(_chosen(name, _opened_now))


async def device_async(name: str | Device = "auto") -> Device:
    """`device` for a page, where opening one may have to be waited for."""
    return await _chosen(name, _opened)


async def _chosen(name: str | Device, opened: Callable[[str], Later[Device]]) -> Device:
    if isinstance(name, Device):
        return name
    if name != "auto":
        return await soon(opened(name))
    reasons: list[str] = []
    for candidate in AUTO:
        try:
            found = await soon(opened(candidate))
        except DeviceError as e:
            reasons.append(f"{candidate}: {e}")
            continue
        if not found.describe().get("software"):
            return found
        reasons.append(f"{candidate}: a software adapter")
    raise DeviceError("no device: " + "; ".join(reasons))


def devices() -> dict[str, Device | DeviceError]:
    """Every backend by name: its device, or why there is none."""
    found: dict[str, Device | DeviceError] = {}
    for name in backend_names():
        try:
            found[name] = _opened_now(name)
        except DeviceError as e:
            found[name] = e
    return found


def Numpy() -> Device:
    """The device "numpy": whole arrays on the CPU; there wherever Singe is."""
    return device("numpy")


def Wasm() -> Device:
    """The device "wasm": WebAssembly SIMD kernels on the CPU."""
    return device("wasm")


def WebGpu() -> Device:
    """The device "webgpu": WGSL kernels on a GPU, natively through wgpu or a browser's own."""
    return device("webgpu")
