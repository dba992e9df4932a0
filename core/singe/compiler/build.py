"""A Graph becomes a Program: rewritten, fused, scheduled, printed by a Target; or, without one, a list of host steps.

`compile_graph(graph, target)` is the whole way. The Program for the numpy backend (target None) runs the rewritten
graph op by op over whole arrays, so its steps are Host steps.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..dtypes import DType, uint8
from ..errors import InputError, SizeNeeded
from ..graph.graph import Builder, Graph, Node, bare
from ..ir import scalar
from ..ir.kernel import Kernel, Reduce, Routine
from ..ops import find_row
from ..program.block import BlockWriter
from ..program.program import Buffer, Code, Copy, Dispatch, Host, ProgramData, Step, stored_type
from ..shapes import Dim, Shape, product, symbols
from .fuse import Group, fuse
from .rewrite import rewrite
from .rewrite.integers import in_integers
from .schedule import Schedule, Slots, schedule
from .target import HOST, Printed, Target

ACTIVATIONS: Final = ("float32", "int8")


def compile_graph(graph: Graph, target: Target | None, activations: str = "float32") -> ProgramData:
    """The Program of a graph for a target (None: the numpy backend).

    activations: what products and convolutions with constant weights compute in, of ACTIVATIONS; see rewrite/integers.py.
    """
    start = time.perf_counter()
    if activations not in ACTIVATIONS:
        raise InputError(f"activations: got {activations!r}, expected one of {', '.join(ACTIVATIONS)}")
    _check_symbols(graph)
    rewritten = rewrite(graph)
    if activations == "int8":
        rewritten = in_integers(rewritten)
    program = _host_program(rewritten) if target is None else _device_program(rewritten, target)
    return replace(program, facts={**program.facts, "ops": graph.ops()}, seconds=time.perf_counter() - start)


def _check_symbols(graph: Graph) -> None:
    """Every symbolic size must be some input's dimension by itself, or no run could tell it."""
    told = {str(d) for x in graph.inputs for d in x.shape if not isinstance(d, int) and symbols(d) == {str(d)}}
    missing = graph.symbols - told
    if missing:
        raise SizeNeeded(f"the sizes {', '.join(sorted(missing))} are no input's dimension by themselves", missing)


class _Layout:
    """The buffers of a Program while it is put together."""

    def __init__(self, graph: Graph, target: Target | None) -> None:
        self._target = target
        self.buffers: list[Buffer] = []
        self.weights = BlockWriter()
        self._consts: dict[Any, int] = {}
        self.inputs = tuple(self.add(x.name, x.dtype, x.shape, ("input", i)) for i, x in enumerate(graph.inputs))
        self.of: dict[Node, int] = dict(zip(graph.inputs, self.inputs, strict=True))

    def size(self, kind: DType) -> int:
        return self._target.element_size(kind) if self._target else kind.size

    def add(self, name: str, kind: DType, shape: Shape, place: tuple[str, int], size: int | None = None) -> int:
        self.buffers.append(Buffer(name, kind, shape, size or self.size(kind), place))
        return len(self.buffers) - 1

    def const(self, n: Node, packed: np.ndarray | None = None) -> int:
        """The buffer of a constant, as it is or packed for a kernel; equal bytes are kept once."""
        assert n.value is not None
        value = n.value if packed is None else packed
        kind = n.dtype
        if value.dtype == object:
            names = symbols(value.ravel().tolist())
            raise SizeNeeded(f"the sizes {', '.join(sorted(names))} are needed as elements of a constant", names)
        stored = value.astype(stored_type(kind, self.size(kind)), copy=False) if packed is None else packed
        raw = np.ascontiguousarray(stored).reshape(-1).view(np.uint8)
        key = kind, value.shape, hashlib.blake2b(raw.data, digest_size=16).digest()
        if key not in self._consts:
            place = ("weights", self.weights.add(raw))
            self._consts[key] = self.add(n.name or "constant", kind, value.shape, place, stored.dtype.itemsize)
        return self._consts[key]

    def outputs(self, graph: Graph, direct: Mapping[Node, int]) -> tuple[tuple[int, ...], list[Step]]:
        """The buffers of the outputs, and the copies for those that no kernel writes in their place."""
        found: list[int] = []
        copies: list[Step] = []
        for number, (n, name) in enumerate(zip(graph.outputs, graph.output_names, strict=True)):
            root = bare(n) if self._target else n
            if direct.get(root) == number:
                found.append(self.of[root])
                continue
            source = self.const(root) if root.is_const else self.of[root]
            found.append(self.add(name, n.dtype, n.shape, ("output", number)))
            copies.append(Copy(source, found[-1]))
        return tuple(found), copies


# --- on a device -----------------------------------------------------------------------------------------------------


def _device_program(graph: Graph, target: Target) -> ProgramData:
    graph, groups = fuse(_with_computed_outputs(graph), target.max_ports, target.pools)
    plan = schedule(graph, groups)
    layout = _Layout(graph, target)
    for group in plan.groups:
        n = group.output
        number = plan.direct.get(n)
        if number is None:
            layout.of[n] = layout.add(group.kernel.name, n.dtype, n.shape, ("slot", plan.slots[n]))
        else:
            layout.of[n] = layout.add(
                graph.output_names[number], n.dtype, graph.outputs[number].shape, ("output", number)
            )
    printed: list[Printed] = []
    named: list[list[int]] = []
    for group in plan.groups:
        p = target.print(group.kernel, {k: n.value for k, n in enumerate(group.inputs) if n.value is not None})
        named.append(
            [layout.const(n, p.packed.get(k)) if n.is_const else layout.of[n] for k, n in enumerate(group.inputs)]
        )
        printed.append(replace(p, packed={}))  # they are in the block: none is held twice
    modules, variants = target.link(printed)
    kernels: dict[Code, int] = {}
    steps: list[Step] = []
    for group, p, choices, buffers in zip(plan.groups, printed, variants, named, strict=True):
        buffers.append(layout.of[group.output])
        if p.scratch != 0:
            buffers.append(_scratch(layout, plan, p))
        code = _code(group, p, choices, len(buffers))
        steps.append(Dispatch(kernels.setdefault(code, len(kernels)), tuple(buffers)))
    outputs, copies = layout.outputs(graph, plan.direct)
    slots = plan.count + any(b.name == "scratch" for b in layout.buffers)
    return ProgramData(
        target.name, layout.inputs, outputs, tuple(layout.buffers), slots, tuple(kernels), (*steps, *copies), modules, layout.weights.block(),
        {"fused": [list(g.ops) for g in plan.groups]},
    )  # fmt: skip


def _with_computed_outputs(graph: Graph) -> Graph:
    """Outputs that are symbolic constants (a shape) need a kernel to write them."""
    b = Builder()
    cast = find_row("cast")
    outputs = tuple(
        b.apply(cast, n, to=n.dtype) if n.value is not None and n.value.dtype == object else n for n in graph.outputs
    )
    return Graph(graph.inputs, outputs, graph.output_names)


def _scratch(layout: _Layout, plan: Schedule, p: Printed) -> int:
    """A workspace: all kernels use one slot for theirs, one after the other."""
    for k, b in enumerate(layout.buffers):
        if b.name == "scratch" and b.shape == (p.scratch,):
            return k
    return layout.add("scratch", uint8, (p.scratch,), ("slot", plan.count), 1)


def _code(group: Group, p: Printed, choices: Sequence[Any], ports: int) -> Code:
    kernel = group.kernel.kernel if isinstance(group.kernel, Routine) else group.kernel
    moved: Dim = 0
    for n in (*group.inputs, group.output):
        moved = moved + product(n.shape) * n.dtype.size
    kind = group.kernel.kind if isinstance(group.kernel, Routine) else "reduce" if kernel.inner else "elementwise"
    return Code(kernel.name, kind, ports, p.sizes, tuple(choices), flops(kernel), moved, p.scratch != 0)


def flops(kernel: Kernel) -> Dim:
    """Scalar float operations of a kernel, one for each word."""
    total: Dim = 0
    for s in kernel.stages:
        work = sum(
            e.dtype.is_float and bool(e.args) and e.word != "load" for e in scalar.postorder([s.value])
        ) + isinstance(s, Reduce)
        inner = isinstance(s, Reduce) or s.inner
        total = total + product(kernel.grid) * (product(kernel.inner) if inner else 1) * work
    return total


# --- on the host -----------------------------------------------------------------------------------------------------


def _host_program(graph: Graph) -> ProgramData:
    layout = _Layout(graph, None)
    nodes = [n for n in graph.nodes if n.row is not None]
    last = {x: n for n in nodes for x in n.inputs}
    direct: dict[Node, int] = {}
    for number, n in enumerate(graph.outputs):
        if n.row is not None:
            direct.setdefault(n, number)
    slots = Slots()
    steps: list[Step] = []
    for n in nodes:
        assert n.row is not None
        if n in direct:
            place = ("output", direct[n])
        else:
            slots.take(n)
            place = ("slot", slots.of[n])
        name = graph.output_names[direct[n]] if n in direct else n.op
        layout.of[n] = layout.add(name, n.dtype, n.shape, place)
        steps.append(
            Host(
                n.row.name,
                n.attrs,
                tuple(layout.const(x) if x.is_const else layout.of[x] for x in n.inputs),
                (layout.of[n],),
            )
        )
        for x in dict.fromkeys(n.inputs):
            if last[x] is n and x in slots.of:
                slots.give(x)
    outputs, copies = layout.outputs(graph, direct)
    return ProgramData(
        HOST,
        layout.inputs,
        outputs,
        tuple(layout.buffers),
        slots.count,
        (),
        (*steps, *copies),
        {},
        layout.weights.block(),
    )
