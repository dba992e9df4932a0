"""Compiles a Graph to a Program: it is rewritten, fused, scheduled and printed by a Target.

`compile_graph(graph, target)` runs all stages. The Program for an ArrayTarget runs the rewritten graph op by op over whole
arrays: its words are stops for Host ops. A Program may also have words for particular sizes: the graph with
these numbers is compiled in the same way, and shares kernels and weights with the open graph.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import numpy as np

from ..dtypes import string
from ..errors import DTypeError, HostNeeded, InputError, ShapeError
from ..garbage import collector_resting
from ..graph import Graph, checks_at, layers_of
from ..ir import scalar
from ..ir.kernel import Kernel, Routine, Store
from ..ir.scalar import Expr
from ..late_dataclass import dataclass
from ..program.block import BlockWriter
from ..program.program import Buffer, Code, Host, ProgramData, Specialised, State
from ..shapes import Checks, Dim, deferring, product, show, size, size_name, symbols
from .index_ranges import input_ranges
from .lower.runtime_sizes import late_sizes
from .options import ACTIVATIONS, PLAIN, Options
from .partition import hosted_ops, own_kernels
from .rewrite import rewrite
from .rewrite.integers import in_int8, packed_in_integers
from .rewrite.long_folds import folded_in_parts
from .rewrite.long_products import in_parts
from .schedule.beside import RegionWork
from .schedule.buffers import BufferTable
from .schedule.memory import StepScheduler, WeightUse
from .schedule.steps import Step, words_of
from .target import Target, execution_of

UNCOUNTED: Final = ("load", "select")
"""Words that compute nothing."""


def compile_graph(graph: Graph, target: Target, options: Options = PLAIN) -> ProgramData:
    """The Program of a graph for a target."""
    return compile_with_uses(graph, target, options)[0]


def compile_with_uses(
    graph: Graph, target: Target, options: Options = PLAIN
) -> tuple[ProgramData, Sequence[WeightUse]]:
    """The Program that `compile_graph` makes, and how its kernels read the constants of the graph."""
    with collector_resting():
        return _compiled(graph, target, options)


def _compiled(graph: Graph, target: Target, options: Options) -> tuple[ProgramData, Sequence[WeightUse]]:
    start = time.perf_counter()
    _check_symbols(graph)
    weights = BlockWriter(shared=options.shared)
    bounds = {name: most for name, most in sorted(options.bounds.items()) if name in graph.symbols}
    chosen = sorted(options.specialised, key=lambda pair: len(pair[0]), reverse=True)
    parts: list[_Part] = []
    for sizes, closed in (({}, graph), *chosen):
        _check_sizes(graph, sizes, bounds)
        part = _part(closed, target, options, weights, parts[0] if parts else None)
        limits = [
            (most - size(name), f"{name} must be at most {most}, its bound")
            for name, most in bounds.items()
            if name not in sizes
        ]
        parts.append(replace(part, checks=(*limits, *part.checks)))
    program = _linked(parts, [sizes for sizes, _ in chosen], target, weights)
    program = replace(program, bounds=bounds, ranges=input_ranges(graph), shared=weights.others)
    facts = {**program.facts, "ops": graph.ops()}
    if options.donate:
        names = {j: program.buffers[program.outputs[k]].name for k, j in program.donated.items()}
        facts["donated"] = {x.name: names.get(j) for j, x in enumerate(graph.inputs) if x.name in options.donate}
    if options.layers:
        facts["layers"] = parts[0].layers
    hosted = Counter(s.op for s in program.stops if isinstance(s, Host))
    if hosted and execution_of(target).falls_back:
        facts["host"] = hosted_ops(graph, target, hosted)
        if options.fail_on_host and facts["host"]:
            listed = ", ".join(f"{op} ({'; '.join(counts)})" for op, counts in facts["host"].items())
            raise HostNeeded(
                f"these ops would run on the host: {listed}; to allow that, leave out fail_on_host",
                tuple(facts["host"]),
            )
    program = replace(program, facts=facts, seconds=time.perf_counter() - start)
    return program, [use for part in parts for use in part.uses]


@dataclass(frozen=True)
class _Part:
    """The part of a Program that comes from one graph. Its steps number kernels by their index in `work`."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[State, ...]
    buffers: tuple[Buffer, ...]
    slots: int
    steps: tuple[Step, ...]
    work: Sequence[RegionWork]
    uses: Sequence[WeightUse]
    layers: Mapping[int, str]
    """Which layers compute a buffer."""
    checks: tuple[tuple[Dim, str], ...]


def _part(graph: Graph, target: Target, options: Options, weights: BlockWriter, first: _Part | None) -> _Part:
    with deferring() as checks:
        checks.update(checks_at(graph.checks, {}))
        execution = execution_of(target)
        # Before, because a target of whole arrays unpacks weights; after, because others find more that stay packed. Over
        # whole arrays floats are faster, so there only "int8" computes as other targets do.
        kinds = ACTIVATIONS[1:] if execution.narrow else ("int8",)
        given = options.activations
        packed = partial(packed_in_integers, activations=given) if given in kinds and target.integers else lambda g: g
        rewritten = packed(rewrite(packed(graph), execution.narrow, own_kernels(target)))
        if options.activations == "int8":
            rewritten = in_int8(rewritten)
        rewritten = folded_in_parts(in_parts(rewritten, execution.filled_by), execution.filled_by)
        part = _planned(rewritten, target, weights, checks, options.donate, first)
    return replace(part, checks=tuple((dim, text) for dim, text in checks.items() if symbols(dim) <= graph.symbols))


def _check_sizes(graph: Graph, sizes: Mapping[str, int], bounds: Mapping[str, int]) -> None:
    for name, n in sizes.items():
        if name not in graph.symbols:
            raise InputError(
                f"specialised for {name} = {n}: the open sizes are {', '.join(sorted(graph.symbols)) or 'none'}"
            )
        if not 0 <= n <= bounds.get(name, n):
            raise InputError(f"specialised for {name} = {n}, expected 0 to {bounds.get(name, 'any number')}")


def _check_symbols(graph: Graph) -> None:
    """Every size must be a dimension of some input by itself: a run could not compute it otherwise."""
    missing = graph.symbols - {size_name(d) for x in graph.inputs for d in x.shape}
    if missing:
        raise ShapeError(
            f"cannot compute the sizes {', '.join(sorted(missing))}: each must be a dimension of an input by itself"
        )


def _planned(
    graph: Graph,
    target: Target,
    weights: BlockWriter,
    checks: Checks,
    donate: Sequence[str],
    first: _Part | None,
) -> _Part:
    """The steps of one graph. checks: conditions that its runs must check. first: the part of the open graph, which
    decides the places of the outputs in all parts."""
    layout = BufferTable(target, weights)
    given = {x: layout.add(x.name, x.dtype, x.shape, ("input", i)) for i, x in enumerate(graph.inputs)}
    inputs = tuple(given.values())
    outputs = tuple(
        layout.add(name, x.dtype, x.shape, ("output", i) if first is None else first.buffers[first.outputs[i]].place)
        for i, (x, name) in enumerate(zip(graph.outputs, graph.output_names, strict=True))
    )
    states: list[State] = []
    for k, s in enumerate(graph.states):
        if s.leaf.dtype is string:
            raise DTypeError(f"state {s.name!r} is {s.leaf.dtype}{show(s.leaf.shape)}, expected numbers")
        given[s.leaf] = layout.add(s.name, s.leaf.dtype, s.leaf.shape, ("state", k))
        # A sequence of keys that begins with zeros begins there; without an initial value, nobody can foresee where.
        initial = s.initial
        if initial is not None and s.draws is None and not np.frombuffer(initial.tobytes(), np.uint8).any():
            initial = None
        initial = None if initial is None else layout.array(s.name, initial, s.leaf.dtype)
        states.append(State(s.name, given[s.leaf], initial, s.draws))
    blocks = StepScheduler(target, layout, late_sizes(graph), first is not None)
    donated = [x for x in graph.inputs if x.name in donate] if first is None else []
    ends = [*outputs, *(s.buffer for s in states)]
    steps = tuple(blocks.steps(graph, given, ends, checks, graph.symbols, donated=donated))
    return _Part(
        inputs, outputs, tuple(states), tuple(layout.buffers), blocks.slots.count, steps, blocks.work,
        blocks.uses, {i: named for i, nodes in blocks.computed.items() if (named := layers_of(nodes))}, (),
    )  # fmt: skip


def _linked(
    parts: Sequence[_Part], specialised: Sequence[Mapping[str, int]], target: Target, weights: BlockWriter
) -> ProgramData:
    """The Program of the parts: the first is the open one, the others are specialised for these sizes."""
    modules: Mapping[str, str | bytes] = {}
    kernels: dict[Code, int] = {}
    facts: dict[str, Any] = {}
    numbers: list[Sequence[int]] = [() for _ in parts]
    if execution_of(target).fuses:
        work = [w for part in parts for w in part.work]
        modules, variants = target.link([w.printed for w in work])
        every = [kernels.setdefault(_code(w, choices), len(kernels)) for w, choices in zip(work, variants, strict=True)]
        for k, part in enumerate(parts):
            numbers[k], every = every[: len(part.work)], every[len(part.work) :]
        facts["fused"] = list({id(w.group or w): w.group.ops if w.group else [w.label] for w in work}.values())
    (first, words), *others = (
        (part, words_of(part.steps, [*kernels], own)) for part, own in zip(parts, numbers, strict=True)
    )
    return ProgramData(
        target.name, first.inputs, first.outputs, first.buffers, first.slots, tuple(kernels),
        *words, modules, weights.block(), facts, first.states, first.checks,
        tuple(
            Specialised(dict(sizes), part.slots, part.buffers, *own, part.checks)
            for sizes, (part, own) in zip(specialised, others, strict=True)
        ),
    )  # fmt: skip


def _code(w: RegionWork, choices: Sequence[Any]) -> Code:
    p, group = w.printed, w.group
    moved: Dim = 0
    if group is None:
        # Runners share a step among threads by its work: a function that does not count its operations stays on one.
        moved = 0 if p.flops == 0 else w.moved * p.when
        if len(w.parts) > 1:
            work = sum((flops(kernel) for kernel, _ in w.parts), start=cast("Dim", 0))
            return Code(w.label, "elementwise", w.buffers, p.sizes, tuple(choices), work, w.moved)
        return Code(w.label, "opaque", w.buffers, p.sizes, tuple(choices), p.flops * p.when, moved, p.scratch != 0)
    kernel = group.kernel.kernel if isinstance(group.kernel, Routine) else group.kernel
    for n in (*group.inputs, *group.outputs):
        moved = moved + product(n.shape) * n.dtype.size
    kind = group.kernel.kind if isinstance(group.kernel, Routine) else "reduce" if kernel.inner else "elementwise"
    return Code(
        kernel.name,
        kind,
        w.buffers,
        p.sizes,
        tuple(choices),
        flops(group.kernel) * p.when,
        moved * p.when,
        p.scratch != 0,
    )


def flops(kernel: Kernel | Routine) -> Dim:
    """Scalar float operations, one for each word that computes, whether or not a select takes its result. Of a Routine, which
    computes what its operands are made of once, a word counts for the loops on which it depends; its products count if they are
    of integers, too."""
    if isinstance(kernel, Routine):
        return _flops_of_routine(kernel.kernel)
    total: Dim = 0
    for s in kernel.stages:
        work = sum(map(_computes, scalar.postorder([s.value]))) + (not isinstance(s, Store))
        inner = not isinstance(s, Store) or s.inner
        total = total + product(kernel.grid) * (product(kernel.inner) if inner else 1) * work
    return total


def _computes(e: Expr) -> bool:
    return e.dtype.is_float and bool(e.args) and e.word not in UNCOUNTED


def _flops_of_routine(kernel: Kernel) -> Dim:
    loops = zip((*kernel.grid_vars, *kernel.inner_vars), (*kernel.grid, *kernel.inner), strict=True)
    extents = {v: extent for v, extent in loops if v.word == "var"}
    inner = frozenset(kernel.inner_vars) & extents.keys()
    uses: dict[Expr, frozenset[Expr]] = {v: frozenset([v]) for v in extents}

    def turns(over: frozenset[Expr]) -> Dim:
        return product([extent for v, extent in extents.items() if v in over])

    total: Dim = 0
    for s in kernel.stages:
        words = scalar.postorder([s.value])
        for e in words:
            uses.setdefault(e, frozenset().union(*(uses[a] for a in e.args)))
        total = total + sum((turns(uses[e]) for e in words if _computes(e)), start=cast("Dim", 0))
        if not isinstance(s, Store):
            total = total + turns(uses[s.value] | inner) * (1 if s.value.dtype.is_float else 2)
            uses[s.accumulator] = uses[s.value] - inner
    return total
