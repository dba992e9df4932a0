"""A function of Tensors becomes a Graph: it is called once, with tensors that stand for its arguments.

The tensors are those of a Tracer, a device on which nothing runs. What the function mixes in from other devices, such as
a module's parameters, becomes constants. Dimensions may be symbolic. What cannot be traced is Python that looks at
elements (`if x > 0`, `x.item()`): a DeviceError says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ..compiler.target import Target
from ..dtypes import DType, dtype
from ..errors import DeviceError, InputError
from ..graph import Builder, Graph, Node, inline
from ..program.program import ProgramData
from ..runtime.backend import Executable
from ..runtime.device import Build, Device, nodes_of
from ..shapes import Dim, deferring
from .meet import plain_array
from .tensor import Tensor, value_on

Spec: TypeAlias = tuple[str, Sequence[Dim], DType]
"""An argument: its name, its shape, which may hold Sizes, and its dtype."""


class Tracer(Device):
    """A device that remembers ops as nodes of one Graph and runs none. Its values are the nodes."""

    adopts = True

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._builder: Final = Builder()
        self._adopted: Final[dict[int, tuple[Any, Node]]] = {}  # by id: the value, which keeps its id, and its constant

    @property
    def name(self) -> str:
        return "tracing"

    def __reduce__(self) -> tuple[Any, ...]:
        raise DeviceError("a tensor of a function that is being traced cannot be copied or pickled")

    def input(self, spec: Spec) -> Tensor:
        return Tensor(self, self._builder.input(*spec))

    def upload(self, array: np.ndarray) -> Node:
        return self._builder.const(array)

    def adopt(self, value: Any, source: Device) -> Node:
        """A constant; a value that is met twice is one."""
        if source.adopts:
            raise DeviceError(
                "a tensor of a function that was traced earlier is used in another: return it there, and pass it here"
            )
        if id(value) not in self._adopted:
            self._adopted[id(value)] = value, self.upload(source.download(value))
        return self._adopted[id(value)][1]

    def apply(self, build: Build, values: Sequence[Node]) -> tuple[Node, ...]:
        return nodes_of(build(self._builder, *values))

    def run(self, graph: Graph, values: Sequence[Node]) -> tuple[Node, ...]:
        return inline(graph, self._builder, values)

    def fetch(self, value: Node) -> np.ndarray:
        known = self._builder.value_of(value)
        if known is None or known.dtype == object:
            raise DeviceError(
                "a tensor's elements are not known while a function is traced; choose with where(condition, x, y)"
            )
        return np.array(known)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def describe(self) -> Mapping[str, Any]:
        return {}

    @property
    def target(self) -> Target | None:
        raise DeviceError("nothing is compiled or run while a function is traced: do that before, and pass its results")

    def prepare(self, program: ProgramData) -> Executable:
        raise DeviceError("no Program is run while a function is traced: run it before, and pass its results")


def trace(function: Callable[..., Any], specs: Sequence[Spec]) -> Graph:
    """The Graph of a function of Tensors that returns a Tensor, several in a tuple or list, or a dict of them by name.

    Outputs without names are called "output", or "output0", "output1", … where there are several.
    """
    tracer = Tracer()
    arguments = [tracer.input(spec) for spec in specs]
    with deferring():  # noted anew when the Graph is compiled
        outputs = _named(function(*arguments))
    nodes = tuple(value_on(tracer, x) for x in outputs.values())
    return Graph(tuple(value_on(tracer, x) for x in arguments), nodes, tuple(outputs))


def trace_call(function: Callable[..., Any], examples: Sequence[Any]) -> Graph:
    """The Graph of a function called as function(*examples); its inputs are "x0", "x1", …"""
    arrays = [x if isinstance(x, Tensor) else plain_array(x) for x in examples]
    return trace(function, [(f"x{i}", a.shape, dtype(a.dtype)) for i, a in enumerate(arrays)])


def _named(result: Any) -> dict[str, Tensor]:
    """What a function returned, by name."""
    if isinstance(result, Tensor):
        return {"output": result}
    if isinstance(result, (tuple, list)):
        result = {f"output{i}": x for i, x in enumerate(result)}
    if not isinstance(result, Mapping) or not result:
        raise InputError(f"a traced function returned {result!r:.80}, expected a Tensor, a tuple or a dict of Tensors")
    for name, x in result.items():
        if not isinstance(x, Tensor):
            raise InputError(f"a traced function returned a {type(x).__name__} as {name!r}, expected a Tensor")
    return {str(name): x for name, x in result.items()}
