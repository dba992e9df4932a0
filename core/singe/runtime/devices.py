"""The eager device, and the functions that open devices. A backend's device is opened once and shared.

An op on an eager device runs when it is called, as a Graph of one op. Graphs of equal structure share one Program.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from ..awaitables import MaybeAwaitable, finished, map_result, resolve, resolve_async
from ..compiler.compile import compile_graph
from ..compiler.index_ranges import input_ranges
from ..compiler.target import Target
from ..dtypes import TEXT, outward, own, strings
from ..errors import DeviceError, InputError, OutOfRange
from ..graph import Builder, Graph, leaf
from ..graph.structure import structure
from ..program.program import ProgramData
from .backend import Backend, Executable, HostArray
from .debugging import check_run, looking, note_origins
from .device import Build, Device, nodes_of
from .device_lock import DeviceLock
from .recent_values import Recent
from .registry import backend_names, backends_for, factories, open_backend

MAX_CACHED_PROGRAMS: Final = 512
"""How many compiled Programs a device keeps; the least recently used is dropped first."""
MAX_HOST_COPY_BYTES: Final = 1 << 20
"""The most bytes of an array of integers, of 32 bits or more, of which a device whose elements must be waited for keeps a copy on
the host, by which indices are checked: smaller types are those of pictures and quantised weights."""
DEFAULT: Final = "numpy"
"""The backend in this package, which is always available."""


class EagerDevice(Device):
    """A backend that runs ops when they are called. Its values are the backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self.backend: Final = backend
        self.lock = DeviceLock(backend.name, backend.target is None, getattr(backend, "survives_fork", True))
        self._programs: Recent[Executable] = Recent(MAX_CACHED_PROGRAMS)
        self._reads: Final = getattr(backend, "reads_at_once", False)
        self._integers: Final[WeakKeyDictionary[Any, np.ndarray]] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def target(self) -> Target | None:
        return self.backend.target

    @property
    def lost(self) -> bool:
        """Whether the device went away, with all that it held."""
        return getattr(self.backend, "lost", False)

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.name,)

    def upload(self, array: np.ndarray) -> Any:
        with self.lock:
            array = strings(array) if array.dtype.kind in TEXT else own(array)
            value = self.backend.upload(np.ascontiguousarray(array).reshape(array.shape))
            if (
                not self._reads
                and array.dtype.kind in "iu"
                and array.itemsize >= 4
                and array.nbytes <= MAX_HOST_COPY_BYTES
            ):
                self._integers[value] = array.copy()
            return value

    def fetch(self, value: Any) -> MaybeAwaitable[np.ndarray]:
        with self.lock:
            return map_result(self.backend.download(value), outward)

    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        nodes = tuple(leaf(v.shape, v.dtype, f"x{i}") for i, v in enumerate(values))
        builder = Builder()
        made = nodes_of(build(builder, *nodes))
        return self.run(Graph(nodes, made, tuple(f"y{k}" for k in range(len(made))), builder.size_nodes), values)

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run the graph's Program, which is compiled the first time that a graph has this structure."""
        key = structure(graph)
        with self.lock:
            found = self._programs.at(key, lambda: self.prepare(compile_graph(graph, self.target)))
            if found.program.ranges:
                used = {r.input for r in found.program.ranges}
                arrays = [self.integers(v) if k in used else None for k, v in enumerate(values)]
                try:
                    found.program.check_indices(arrays, named=False)
                except OutOfRange:
                    self._check_indices(graph, values, arrays)
                    raise
            out = tuple(found.run(values))
            if looking():
                self._look(graph, values, out)
            return out

    def _check_indices(self, graph: Graph, values: Sequence[Any], arrays: Sequence[np.ndarray | None]) -> None:
        """Refuse indices out of range as those of this call: a Program serves the calls of several layers."""
        nodes = {id(v): n for v, n in zip(values, graph.inputs, strict=True)}
        note_origins(graph.nodes, lambda value: nodes.get(id(value)))
        for r in input_ranges(graph):
            array = arrays[r.input]
            if array is not None and not r.sizes:
                r.check(array, {})

    def _look(self, graph: Graph, values: Sequence[Any], out: Sequence[Any]) -> None:
        """Refuse results that are not finite."""

        def again(of: Graph) -> list[np.ndarray]:
            return [self._read(v) for v in self.prepare(compile_graph(of, self.target)).run(values)]

        found = dict(zip(graph.output_names, map(self._read, out), strict=True))
        check_run(graph, [self._read(v) for v in values], found, again)

    def _read(self, value: Any) -> np.ndarray:
        return resolve(self.backend.download(value), "await tensor.numpy_async()")

    def integers(self, value: Any) -> np.ndarray | None:
        if isinstance(value, HostArray):
            return value.data
        if self._reads:
            return self._read(value)
        return self._integers.get(value)

    def synchronize(self) -> None:
        with self.lock:
            resolve(self.backend.synchronize(), "await tensor.numpy_async(), which waits for what it reads")

    def describe(self) -> Mapping[str, Any]:
        with self.lock:
            return self.backend.describe()

    def prepare(self, program: ProgramData) -> Executable:
        with self.lock:
            return self.backend.prepare(program)


SLOW: Final = '%s runs in software here (%s): right, but slow, about 1 GFLOP/s; device="wasm" or "numpy" is faster'

_log: Final = logging.getLogger("singe")
_opening: Final = threading.Lock()
_told: Final[set[str]] = set()
"""The devices that were asked for by name."""
_devices: Final[dict[str, EagerDevice]] = {}


def _opened(name: str) -> MaybeAwaitable[Device]:
    """The only device of a backend; another one after it was lost. Callers that wait for it at the same time get the same
    device."""

    def kept(backend: Backend) -> Device:
        made = EagerDevice(backend)
        found = _devices.setdefault(name, made)
        if found is not made:  # two callers opened it at the same time
            backend.dispose()
        return found

    with _opening:
        if name in _devices and _devices[name].lost:
            del _devices[name]
        return _devices[name] if name in _devices else map_result(open_backend(name), kept)


def _opened_now(name: str) -> Device:
    return resolve(_opened(name), f'await singe.device_async("{name}")')


def device(name: str | Device = "auto") -> Device:
    """The device of the backend with this name, opened once and shared; "auto": the most preferred one available."""
    return finished(_chosen(name, _opened_now))


async def device_async(name: str | Device = "auto") -> Device:
    """`device` for a page, where opening a device may have to be awaited."""
    return await _chosen(name, _opened)


async def _chosen(name: str | Device, opened: Callable[[str], MaybeAwaitable[Device]]) -> Device:
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise InputError(f"device: got {name!r:.80}, expected a name, such as 'numpy' or 'auto', or a Device")
    if name != "auto":
        found = await resolve_async(opened(name))
        if name not in _told and (facts := found.describe()).get("software"):
            _log.warning(SLOW, name, facts["adapter"])
        _told.add(name)
        return found
    reasons: list[str] = []
    for candidate in (name for name, factory in factories().items() if factory.preference):
        try:
            found = await resolve_async(opened(candidate))
        except DeviceError as e:
            reasons.append(f"{candidate}: {e}")
            continue
        if not found.describe().get("software"):
            return found
        reasons.append(f"{candidate}: a software adapter")
    raise DeviceError("no device: " + "; ".join(reasons))


def separate(names: Sequence[str | Device]) -> list[Device]:
    """Devices that can work at the same time: a name that comes again is another device of its backend."""
    found: list[Device] = []
    for name in names:
        one = device(name)
        if one in found:
            if isinstance(name, Device):
                raise DeviceError(f"{name!r} comes twice; give its name, which opens another device of its backend")
            backend = resolve(open_backend(one.name), "with each device once")
            one = EagerDevice(backend)
        found.append(one)
    return found


def device_for(target: str) -> Device:
    """The most preferred available device that runs Programs of a target."""
    reasons: list[str] = []
    for name in backends_for(target):
        try:
            return _opened_now(name)
        except DeviceError as e:
            reasons.append(f"{name}: {e}")
    known = ", ".join(sorted({factory.target_name for factory in factories().values()}))
    raise DeviceError(
        f"no device runs programs for {target!r}: "
        + (
            "; ".join(reasons)
            or f"the installed backends run those for {known}; compile the model again for one of them"
        )
    )


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
    """The device "numpy": whole arrays on the CPU; always available."""
    return device(DEFAULT)


def Wasm() -> Device:
    """The device "wasm": WebAssembly SIMD kernels on the CPU."""
    return device("wasm")


def WebGpu() -> Device:
    """The device "webgpu": WGSL kernels on a GPU, natively through wgpu or a browser's own."""
    return device("webgpu")


def in_words(name: str, facts: Mapping[str, Any]) -> str:
    """A device and what it describes itself as: "wasm (wasmtime 50.0.1)"."""
    what = ", ".join(str(facts[k]) for k in ("adapter", "engine") if k in facts) or ", ".join(
        f"{k} {v}" for k, v in facts.items()
    )
    return f"{name} ({what})" if what else name
