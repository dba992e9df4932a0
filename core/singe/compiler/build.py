"""A Graph becomes a Program: rewritten, fused, scheduled, printed by a Target; or, without one, a list of host steps.

`compile_graph(graph, target)` is the whole way. The Program for the numpy backend (target None) runs the rewritten
graph op by op over whole arrays, so its steps are Host steps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..errors import HostNeeded, InputError, SizeNeeded
from ..graph import Graph
from ..ir import scalar
from ..ir.kernel import Kernel, Routine, Store
from ..program.program import Code, Dispatch, Host, If, Loop, ProgramData, State, Step, walk
from ..shapes import Dim, deferring, product, symbols
from .blocks import Blocks, WeightUse, Work, late_sizes
from .host import hosted_ops
from .layout import Layout
from .rewrite import rewrite
from .rewrite.integers import in_integers
from .target import HOST, Target

ACTIVATIONS: Final = ("float32", "int8")


def compile_graph(
    graph: Graph, target: Target | None, activations: str = "float32", fail_on_host: bool = False
) -> ProgramData:
    """The Program of a graph for a target (None: the numpy backend).

    activations: what products and convolutions with constant weights compute in, of ACTIVATIONS; see rewrite/integers.py.
    fail_on_host: refuse a graph of which the target must leave an op to the host.
    """
    return compile_with_uses(graph, target, activations, fail_on_host)[0]


def compile_with_uses(
    graph: Graph, target: Target | None, activations: str = "float32", fail_on_host: bool = False
) -> tuple[ProgramData, Sequence[WeightUse]]:
    """The Program as of `compile_graph`, and how its kernels read the constants of the graph."""
    start = time.perf_counter()
    if activations not in ACTIVATIONS:
        raise InputError(f"activations: got {activations!r}, expected one of {', '.join(ACTIVATIONS)}")
    _check_symbols(graph)
    with deferring(graph.symbols) as checks:
        program, blocks = _compiled(graph, target, activations)
    facts = {**program.facts, "ops": graph.ops()}
    steps = {s.op for s in walk(program.steps) if isinstance(s, Host)}
    if target is not None and steps:
        facts["host"] = hosted_ops(graph, target, steps)
        if fail_on_host:
            listed = ", ".join(f"{op} ({'; '.join(counts)})" for op, counts in facts["host"].items())
            raise HostNeeded(
                f"these ops would run on the host: {listed}; without fail_on_host they may", tuple(facts["host"])
            )
    seconds = time.perf_counter() - start
    return replace(program, checks=tuple(checks.items()), facts=facts, seconds=seconds), blocks.uses


def _compiled(graph: Graph, target: Target | None, activations: str) -> tuple[ProgramData, Blocks]:
    rewritten = rewrite(graph)
    if activations == "int8":
        rewritten = in_integers(rewritten)
    return _program(rewritten, target)


def _check_symbols(graph: Graph) -> None:
    """Every symbolic size must be some input's dimension by itself, or no run could tell it."""
    told = {str(d) for x in graph.inputs for d in x.shape if not isinstance(d, int) and symbols(d) == {str(d)}}
    missing = graph.symbols - told
    if missing:
        raise SizeNeeded(f"the sizes {', '.join(sorted(missing))} are no input's dimension by themselves", missing)


def _program(graph: Graph, target: Target | None) -> tuple[ProgramData, Blocks]:
    """The Program, and what put its steps together."""
    layout = Layout(target)
    given = {x: layout.add(x.name, x.dtype, x.shape, ("input", i)) for i, x in enumerate(graph.inputs)}
    inputs = tuple(given.values())
    outputs = tuple(
        layout.add(name, x.dtype, x.shape, ("output", i))
        for i, (x, name) in enumerate(zip(graph.outputs, graph.output_names, strict=True))
    )
    states: list[State] = []
    for k, s in enumerate(graph.states):
        given[s.leaf] = layout.add(s.name, s.leaf.dtype, s.leaf.shape, ("state", k))
        initial = None if s.initial is None else layout.array(s.name, s.initial, s.leaf.dtype)
        states.append(State(s.name, given[s.leaf], initial))
    blocks = Blocks(target, layout, late_sizes(graph))
    steps = tuple(blocks.steps(graph, given, [*outputs, *(s.buffer for s in states)]))
    modules: Mapping[str, str | bytes] = {}
    kernels: dict[Code, int] = {}
    facts: dict[str, Any] = {}
    if target is not None:
        modules, variants = target.link([w.printed for w in blocks.work])
        numbers = [
            kernels.setdefault(_code(w, choices), len(kernels))
            for w, choices in zip(blocks.work, variants, strict=True)
        ]
        steps = _renumbered(steps, numbers)
        facts["fused"] = [list(w.group.ops) if w.group else [w.label] for w in blocks.work]
    data = ProgramData(
        target.name if target else HOST, inputs, outputs, tuple(layout.buffers), blocks.slots.count, tuple(kernels),
        steps, modules, layout.weights.block(), facts, tuple(states),
    )  # fmt: skip
    return data, blocks


def _renumbered(steps: Sequence[Step], numbers: Sequence[int]) -> tuple[Step, ...]:
    """Steps whose kernels have these numbers."""
    out: list[Step] = []
    for s in steps:
        if isinstance(s, Dispatch):
            s = replace(s, kernel=numbers[s.kernel])
        elif isinstance(s, If):
            s = replace(s, then=_renumbered(s.then, numbers), otherwise=_renumbered(s.otherwise, numbers))
        elif isinstance(s, Loop):
            s = replace(s, body=_renumbered(s.body, numbers))
        out.append(s)
    return tuple(out)


def _code(w: Work, choices: Sequence[Any]) -> Code:
    p, group = w.printed, w.group
    if group is None:
        return Code(w.label, "opaque", w.buffers, p.sizes, tuple(choices), 0, 0, p.scratch != 0)
    kernel = group.kernel.kernel if isinstance(group.kernel, Routine) else group.kernel
    moved: Dim = 0
    for n in (*group.inputs, *group.outputs):
        moved = moved + product(n.shape) * n.dtype.size
    kind = group.kernel.kind if isinstance(group.kernel, Routine) else "reduce" if kernel.inner else "elementwise"
    return Code(kernel.name, kind, w.buffers, p.sizes, tuple(choices), flops(kernel), moved, p.scratch != 0)


def flops(kernel: Kernel) -> Dim:
    """Scalar float operations of a kernel, one for each word."""
    total: Dim = 0
    for s in kernel.stages:
        work = sum(e.dtype.is_float and bool(e.args) and e.word != "load" for e in scalar.postorder([s.value])) + (
            not isinstance(s, Store)
        )
        inner = not isinstance(s, Store) or s.inner
        total = total + product(kernel.grid) * (product(kernel.inner) if inner else 1) * work
    return total
