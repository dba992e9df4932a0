"""The eager device: a backend that runs an op when it is called, as a Graph of one op.

Graphs of equal structure share one Program. A call is found again before it becomes a Graph (`call_key`), so that an op which ran
before costs little more than what the backend does for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType, NoneType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from ..awaitables import MaybeAwaitable, map_result, resolve
from ..dtypes import TEXT, DType, outward, own, strings
from ..errors import OutOfRange
from ..lazy_names import LateModule
from ..program.program import ProgramData
from .backend import Backend, Executable, HostArray
from .debugging import check_run, looking, note_origins
from .device import Build, Device, nodes_of
from .device_lock import DeviceLock
from .memory.settings import Memory
from .memory.usage import MemoryUse
from .recent_values import Recent
from .registry import target_of

if TYPE_CHECKING:
    from .. import graph as graphs
    from .. import ops
    from ..compiler import compile as compiling
    from ..compiler import index_ranges
    from ..compiler.target import Target
    from ..graph import Graph
    from ..graph import structure as structures
else:
    graphs, ops, structures = map(LateModule, ("graph", "ops", "graph.structure"))
    compiling, index_ranges = map(LateModule, ("compiler.compile", "compiler.index_ranges"))

MAX_CACHED_PROGRAMS: Final = 1024
"""How many calls and Graphs a device keeps the Programs of; the least recently used is dropped first."""
MAX_HOST_COPY_BYTES: Final = 1 << 20
"""The most bytes of an array of integers, of 32 bits or more, of which a device whose elements must be waited for keeps a copy on
the host, by which indices are checked: smaller types are those of pictures and quantised weights."""
VALUES: Final = frozenset((int, str, bool, bytes, NoneType, type))
"""Types of values that do not change, of which equal ones are the same: unlike 0.0 and -0.0."""


class Unkeyed(Exception):
    """A function captures something that may change, or may give something else at each call."""


def call_key(value: Any) -> Hashable:
    """What a function of this package and all that it captures are, as a key: functions of equal keys build the same nodes.
    Unkeyed if it captures anything but functions of this package, rows, and values that do not change."""
    kind = type(value)
    if kind in VALUES:
        return kind, value  # True is no 1
    if kind is DType:
        return kind, value.name
    if kind is float:
        return kind, struct.pack("d", value)
    if kind is complex:
        return kind, struct.pack("2d", value.real, value.imag)
    if kind is tuple or kind is list:
        return kind, *[(type(v), v) if type(v) in VALUES else call_key(v) for v in value]
    if kind is FunctionType and str(value.__module__).startswith("singe."):
        captured = [c.cell_contents for c in value.__closure__ or ()] + [value.__defaults__, value.__kwdefaults__]
        keys = [(type(v), v) if type(v) in VALUES else call_key(v) for v in captured]
        return value.__code__, value.__module__, *keys
    if kind is dict:
        return (kind, *map(call_key, value.items()))
    if kind is slice:
        return kind, call_key((value.start, value.stop, value.step))
    if isinstance(value, ops.Row) and not value.outside:
        return value
    raise Unkeyed


class EagerDevice(Device):
    """A backend that runs ops when they are called. Its values are the backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self.backend: Final = backend
        self.lock = DeviceLock(backend.name, getattr(backend, "renews", False), getattr(backend, "survives_fork", True))
        self._programs: Recent[Executable] = Recent(MAX_CACHED_PROGRAMS)
        self.reads_now = getattr(backend, "reads_now", False)
        self.shares = hasattr(backend, "export")
        self.counts_memory = getattr(backend, "counts_memory", hasattr(backend, "memory"))
        self._integers: Final[WeakKeyDictionary[Any, np.ndarray]] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def target(self) -> Target:
        return target_of(self.backend)

    @property
    def lost(self) -> bool:
        """Whether the device went away, with all that it held."""
        return getattr(self.backend, "lost", False)

    def __reduce__(self) -> tuple[Any, ...]:
        from .devices import device  # noqa: PLC0415 (the functions that open devices make this one)

        return device, (self.name,)

    def upload(self, array: np.ndarray) -> Any:
        with self.lock:
            array = strings(array) if array.dtype.kind in TEXT else own(array)
            value = self.backend.upload(np.ascontiguousarray(array).reshape(array.shape))
            if (
                not self.reads_now
                and array.dtype.kind in "iu"
                and array.itemsize >= 4
                and array.nbytes <= MAX_HOST_COPY_BYTES
            ):
                self._integers[value] = array.copy()
            return value

    def fetch(self, value: Any) -> MaybeAwaitable[np.ndarray]:
        with self.lock:
            return map_result(self.backend.download(value), outward)

    def exported(self, value: Any) -> Any:
        export = getattr(self.backend, "export", None)
        with self.lock:
            return self.download(value) if export is None else export(value)

    def imported(self, array: Any) -> Any:
        adopt = getattr(self.backend, "adopt", None)
        with self.lock:
            return super().imported(array) if adopt is None else adopt(array)

    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        try:
            key = None if looking() else (call_key(build), *[(v.shape, v.dtype.name) for v in values])
        except Unkeyed:
            key = None
        if key is not None:
            with self.lock:
                found = self._programs.get(key)
                if found is not None and not (found.program.ranges and self._out_of_range(found.program, values)):
                    return tuple(found.run(values))
        nodes = tuple(graphs.leaf(v.shape, v.dtype, f"x{i}") for i, v in enumerate(values))
        builder = graphs.Builder()
        made = nodes_of(build(builder, *nodes))
        graph = graphs.Graph(nodes, made, tuple(f"y{k}" for k in range(len(made))), builder.size_nodes)
        with self.lock:
            found = self._program(graph)
            out = self._run(found, graph, values)
            if key is not None and not any(n.row is not None and n.row.outside for n in graph.nodes):
                self._programs.at(key, lambda: found)
            return out

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run the graph's Program, which is compiled the first time that a graph has this structure."""
        with self.lock:
            return self._run(self._program(graph), graph, values)

    def _run(self, found: Executable, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        if found.program.ranges and self._out_of_range(found.program, values):
            self._refuse_indices(graph, values)
            found.program.check_indices(self._indices(found.program, values), named=False)
        out = tuple(found.run(values))
        if looking():
            self._look(graph, values, out)
        return out

    def _program(self, graph: Graph) -> Executable:
        return self._programs.at(
            structures.structure(graph), lambda: self.prepare(compiling.compile_graph(graph, self.target))
        )

    def _indices(self, program: ProgramData, values: Sequence[Any]) -> list[np.ndarray | None]:
        """The elements of the inputs by which the Program indexes; None for others, and where they are not on the host."""
        used = {r.input for r in program.ranges}
        return [self.integers(v) if k in used else None for k, v in enumerate(values)]

    def _out_of_range(self, program: ProgramData, values: Sequence[Any]) -> bool:
        try:
            program.check_indices(self._indices(program, values), named=False)
        except OutOfRange:
            return True
        return False

    def _refuse_indices(self, graph: Graph, values: Sequence[Any]) -> None:
        """Refuse indices out of range as those of this call: a Program serves the calls of several layers."""
        nodes = {id(v): n for v, n in zip(values, graph.inputs, strict=True)}
        note_origins(graph.nodes, lambda value: nodes.get(id(value)))
        for r in index_ranges.input_ranges(graph):
            array = self.integers(values[r.input])
            if array is not None and not r.sizes:
                r.check(array, {})

    def _look(self, graph: Graph, values: Sequence[Any], out: Sequence[Any]) -> None:
        """Refuse results that are not finite."""

        def again(of: Graph) -> list[np.ndarray]:
            return [self._read(v) for v in self.prepare(compiling.compile_graph(of, self.target)).run(values)]

        found = dict(zip(graph.output_names, map(self._read, out), strict=True))
        check_run(graph, [self._read(v) for v in values], found, again)

    def _read(self, value: Any) -> np.ndarray:
        return resolve(self.backend.download(value), "await tensor.numpy_async()")

    def integers(self, value: Any) -> np.ndarray | None:
        if isinstance(value, HostArray):
            return value.data
        if self.reads_now:
            return self._read(value)
        return self._integers.get(value)

    def synchronize(self) -> None:
        with self.lock:
            resolve(self.backend.synchronize(), "await tensor.numpy_async(), which waits for what it reads")

    def describe(self) -> Mapping[str, Any]:
        with self.lock:
            return self.backend.describe()

    def memory(self) -> MemoryUse:
        return self._of_backend("memory", super().memory)

    def clean(self) -> None:
        self._of_backend("clean", super().clean)

    def reset_peak(self) -> None:
        self._of_backend("reset_peak", super().reset_peak)

    def configure(self, memory: Memory) -> None:
        self._of_backend("configure", super().configure, memory)

    def use_threads(self, count: int) -> None:
        self._of_backend("use_threads", super().use_threads, count)

    def _of_backend(self, name: str, default: Callable[..., Any], *args: Any) -> Any:
        """What an optional method of the backend gives, or the default of devices where it has none; either under the lock."""
        with self.lock:
            return getattr(self.backend, name, default)(*args)

    def prepare(self, program: ProgramData) -> Executable:
        with self.lock:
            return self.backend.prepare(program)
