"""Programs assembled by hand for tests of runners: steps of every kind, over kernels that a target prints.

    p = Assembler("wasm")
    x, y = p.input("x", (4,)), p.output("y", (4,))
    p.run(p.add, x, x, y)  # appends a step; `with p.loop(count=3):` and the like nest them
    data = p.program()

For the target "numpy" the same calls append Host steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from singe.compiler.fuse import fuse
from singe.compiler.rewrite import rewrite
from singe.compiler.schedule.steps import Copy, Dispatch, If, Loop, Step, words_of
from singe.compiler.target import find_target
from singe.dtypes import DType, float32, uint8
from singe.dtypes import dtype as dtype_of
from singe.graph import Builder, Graph
from singe.ir.kernel import Kernel, Routine
from singe.ops import find_row
from singe.program.container import align
from singe.program.elements import aligned, stored_type
from singe.program.program import (
    Bind,
    Buffer,
    Code,
    Host,
    ProgramData,
    State,
)
from singe.shapes import Dim, Shape


class Assembler:
    """See the module's docstring. Methods return the number of a buffer."""

    def __init__(self, target: str) -> None:
        self.target = None if target == "numpy" else find_target(target)
        self.buffers: list[Buffer] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.states: list[State] = []
        self.slots = 0
        self.block = b""
        self.printed: list[tuple[Any, Any]] = []
        self.levels: list[list[Step]] = [[]]

    def _add(self, name: str, kind: DType, shape: Shape, place: tuple[str, int]) -> int:
        size = self.target.element_size(kind) if self.target else kind.size
        self.buffers.append(Buffer(name, kind, shape, size, place))
        return len(self.buffers) - 1

    def input(self, name: str, shape: Shape, kind: DType = float32) -> int:
        self.inputs.append(self._add(name, kind, shape, ("input", len(self.inputs))))
        return self.inputs[-1]

    def output(self, name: str, shape: Shape, kind: DType = float32) -> int:
        self.outputs.append(self._add(name, kind, shape, ("output", len(self.outputs))))
        return self.outputs[-1]

    def slot(self, shape: Shape, kind: DType = float32) -> int:
        self.slots += 1
        return self._add("scratch", kind, shape, ("slot", self.slots - 1))

    def const(self, value: Any) -> int:
        array = np.asarray(value)
        kind = dtype_of(array.dtype)
        place = ("weights", len(self.block))
        number = self._add("constant", kind, array.shape, place)
        raw = array.astype(stored_type(kind, self.buffers[number].size)).tobytes()
        self.block += raw + bytes(align(len(raw)) - len(raw))
        return number

    def state(self, name: str, shape: Shape, kind: DType = float32, initial: int | None = None) -> int:
        number = self._add(name, kind, shape, ("state", len(self.states)))
        self.states.append(State(name, number, initial))
        return number

    # --- steps ---

    def step(self, step: Step) -> None:
        self.levels[-1].append(step)

    def op(self, row: str, inputs: Sequence[int], output: int, **attrs: Any) -> None:
        """Append one op as a separate kernel, in which sizes stay symbolic."""
        if self.target is None:
            self.host(row, inputs, [output], **attrs)
            return
        b = Builder()
        nodes = [b.input(f"x{k}", self.buffers[i].shape, self.buffers[i].dtype) for k, i in enumerate(inputs)]
        made = b.apply(find_row(row), *nodes, **attrs)
        _, groups = fuse(rewrite(Graph(tuple(nodes), (made,), ("y",))), self.target.max_ports)
        (group,) = groups
        self.kernel(group.kernel, [*(inputs[nodes.index(n)] for n in group.inputs), output])

    def kernel(self, kernel: Kernel | Routine, buffers: Sequence[int]) -> None:
        """Append one kernel over these buffers, and a workspace if it needs one."""
        assert self.target is not None
        printed = self.target.print(kernel, ())
        if printed is None and isinstance(kernel, Routine):
            printed = self.target.print(kernel.kernel, ())
        assert printed is not None
        for code in (printed, *printed.others):
            workspace = [self.slot((code.scratch,), uint8)] if code.scratch != 0 else []
            self.printed.append((kernel, code))
            self.step(Dispatch(len(self.printed) - 1, (*buffers, *workspace)))

    def host(self, row: str, inputs: Sequence[int], outputs: Sequence[int], **attrs: Any) -> None:
        self.step(Host(row, attrs, tuple(inputs), tuple(outputs)))

    def copy(self, source: int, target: int) -> None:
        self.step(Copy(source, target))

    def bind(self, size: str, buffer: int | None = None, dim: Dim | None = None) -> None:
        self.step(Bind(size, buffer, dim))

    @contextmanager
    def loop(self, count: Dim | None = None, condition: int | None = None) -> Iterator[None]:
        self.levels.append([])
        yield
        body = tuple(self.levels.pop())
        self.step(Loop(count, condition, body))

    @contextmanager
    def when(self, condition: int) -> Iterator[None]:
        self.levels.append([])
        yield
        self.step(If(condition, tuple(self.levels.pop()), ()))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The other branch of the `when` before it."""
        self.levels.append([])
        yield
        branch = tuple(self.levels.pop())
        last = self.levels[-1].pop()
        assert isinstance(last, If)
        self.step(If(last.condition, last.then, branch))

    def program(self) -> ProgramData:
        (steps,) = self.levels
        kernels: list[Code] = []
        modules: Any = {}
        name = "numpy"
        if self.target is not None:
            name = self.target.name
            modules, variants = self.target.link([p for _, p in self.printed])
            for (kernel, p), choices in zip(self.printed, variants, strict=True):
                plain = kernel.kernel if isinstance(kernel, Routine) else kernel
                ports, workspace = len(plain.ports), p.scratch != 0
                kind = "elementwise" if plain is kernel else "routine"
                kernels.append(Code(plain.name, kind, ports + workspace, p.sizes, tuple(choices), workspace=workspace))
        weights = aligned(len(self.block))
        weights[:] = np.frombuffer(self.block, np.uint8)
        return ProgramData(
            name, tuple(self.inputs), tuple(self.outputs), tuple(self.buffers), self.slots, tuple(kernels),
            *words_of(steps, kernels, range(len(kernels))), modules, weights, states=tuple(self.states),
        )  # fmt: skip
