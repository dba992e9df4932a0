"""Which ops are one step each, not parts of kernels: those of the host, and composites that stay whole.

An op runs on the host although the target is a device, for one of these reasons:

* By design: the row says why (`Opaque.host`), and it is so on every device.
* Element types: the target lacks an element type of the node. `on_host` makes such nodes opaque, so that each becomes a
  separate step; their values are on the device as bytes.
* No function: the target has no function for an opaque op.

A composite stays whole if the target has a function for it, a user wrote a shader for it, or the array library has a native function; elsewhere it
is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ..dtypes import DType, names
from ..graph import Builder, Graph, Node, all_nodes, postorder, rebuild
from ..ir.arrays.adapter import Array, ArrayAdapter
from ..ops import Composite, Opaque, Region, Result, Row, View
from ..program.program import Host, ProgramData
from .array_target import arrays_of
from .lower.sorting_networks import is_ordered
from .target import Target, execution_of

JS_HOST_OPS: Final = frozenset((
    "axes_sizes", "compress", "dimensions", "expanded_sizes", "moved_last", "non_max_suppression", "nonzero",
    "random_uniform", "range_size", "reshaped_sizes", "running_max", "running_prod", "running_sum", "scatter_elements",
    "scatter_elements_reduce", "scatter_nd", "scatter_nd_reduce", "signed_sizes", "sizes", "slice_places", "sort", "top_k",
    "unique", "update_slice",
))  # fmt: skip
"""The host ops that a page can run without Python (static/program/singe-host.js)."""


_COPY: Final = "reshape"
"""The op of a host step that copies strings; no other reshape is a step."""


def beyond_scripts(program: ProgramData) -> str:
    """Why a page cannot run a Program without Python, or "" if it can."""
    missing = {s.op for s in program.stops if isinstance(s, Host)} - JS_HOST_OPS
    if not missing:
        return ""
    reasons: Mapping[str, Collection[str]] = program.facts.get("host") or dict.fromkeys(sorted(missing), ())
    told = "; ".join(f"{op} ({', '.join(why)})" if why else op for op, why in reasons.items())
    ops = ", ".join(sorted("copy" if op == _COPY else op for op in missing))
    return f"these ops run on the host: {told}; for that, singe.js lacks {ops}"


def unsupported_dtypes(n: Node, target: Target) -> list[DType]:
    """The element types of a node's inputs and results that a target does not compute."""
    return [d for d in dict.fromkeys(kind for x in (n, *n.inputs) for _, kind in x.results) if d not in target.dtypes]


def hosted_ops(graph: Graph, target: Target, steps: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The ops of a graph, including composites, that run on the host at least in part ↦ reason ↦ number of nodes.

    steps: how many host steps of each op are in its Program. Where strings become an output, or a value that a region
    carries, as they are, the step is a reshape; it is called a copy here.
    """
    found: dict[str, dict[str, int]] = {}
    varying: dict[Node, bool] = {}  # whether a value depends on inputs; other values are folded to constants
    for n in all_nodes(graph):
        varying[n] = n.is_input or any(varying[x] for x in n.inputs)
        if not varying[n] or n.row is None or isinstance(n.row, (Region, Result)):
            continue
        own = postorder(n.lowered, lambda m, n=n: () if m in n.inputs else m.inputs) if n.lowered else [n]
        for why in {why for m in own if m.row is not None and m not in n.inputs for why in _reasons(m, target, steps)}:
            counts = found.setdefault(n.op, {})
            counts[why] = counts.get(why, 0) + 1
    if steps.get(_COPY):
        found["copy"] = {"strings lie on the host": steps[_COPY]}
    return {op: dict(sorted(counts.items())) for op, counts in sorted(found.items())}


def beyond_arrays(row: Row, kinds: Sequence[DType], arrays: ArrayAdapter) -> list[str]:
    """The reasons why NumPy computes a row with elements of these types in place of a library; empty if it does not."""
    if arrays.complete:
        return []
    if not row.portable:
        return [getattr(row, "host", "") or "it is a function of NumPy's arrays"]
    if isinstance(row, Composite) and row.name not in arrays.native:
        return [f"{arrays.library} has no function for it"]
    needed = kinds if isinstance(row, View) else [k for kind in kinds for k in (kind, kind.compute)]
    lacking = [kind for kind in dict.fromkeys(needed) if kind not in arrays.dtypes]
    return [f"{arrays.library} does not compute {names(lacking)}"] if lacking else []


def _reasons(n: Node, target: Target, steps: Collection[str]) -> list[str]:
    """The reasons why a node runs on the host; empty if it does not."""
    if not execution_of(target).fuses:
        kinds = [kind for x in (*n.inputs, n) for _, kind in x.results]
        own = isinstance(n.row, (Region, Result)) or (isinstance(n.row, Composite) and bool(n.lowered))
        return [] if own or n.row is None else beyond_arrays(n.row, kinds, arrays_of(target))
    if isinstance(n.row, Opaque) and n.row.host:
        return [n.row.host]
    types = unsupported_dtypes(n, target)
    if types:
        return [] if _is_free(n) else [f"{target.name} does not compute {names(types)}"]
    hosted = isinstance(n.row, Opaque) and n.op in steps and not is_ordered(n, target)
    return [f"{target.name} has no function for it"] if hosted else []


def on_host(graph: Graph, target: Target) -> Graph:
    """The graph with every node that has an element type that the target lacks made opaque. Regions are unchanged.
    Reshapes stay: they move nothing, and need no step."""

    def is_hosted(n: Node) -> bool:
        return (
            n.row is not None
            and not isinstance(n.row, Opaque)
            and not _is_free(n)
            and bool(unsupported_dtypes(n, target))
        )

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        return b.node(_opaque(n.row), *new_inputs, **n.attrs) if n.row is not None and is_hosted(n) else None

    if not any(map(is_hosted, graph.nodes)):
        return graph
    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})


def _is_free(n: Node) -> bool:
    """Whether a node needs no kernel, whatever its type."""
    return n.op == "reshape" or isinstance(n.row, (Region, Result))


@lru_cache(maxsize=256)
def _opaque(row: Row) -> Opaque:
    """An opaque row with the name and meaning of a row of any kind."""

    def results(*inputs: Node, **attrs: Any) -> Sequence[Any]:
        return row.infer_results(inputs, attrs)

    def evaluate(xp: ArrayAdapter, *arrays: Array, **attrs: Any) -> Any:
        return row.run(xp, arrays, attrs)

    return Opaque(name=row.name, doc=row.doc, results=results, evaluate=evaluate)


# --- composites that stay whole ---------------------------------------------------------------------------------------


def own_kernels(target: Target) -> Callable[[Node], Row | None]:
    """The function that gives the row with which a composite stays whole, if the target has a function for it."""

    fuses = execution_of(target).fuses

    def whole(n: Node) -> Row | None:
        row = n.row
        if not isinstance(row, Composite):
            return None
        if not fuses:
            return _whole(row) if row.name in arrays_of(target).native else None
        if unsupported_dtypes(n, target):
            return None
        if row.wgsl is None and not row.function:
            return None
        given = tuple((x.shape, x.dtype) for x in n.inputs)
        return None if target.print_opaque(n.op, n.attrs, given, n.results) is None else _whole(row)

    return whole


@lru_cache(maxsize=256)
def _whole(row: Composite) -> Opaque:
    """The opaque form of a composite. Arrays compute the rows to which it is lowered, unless the library has a function for it."""

    def results(*inputs: Node, **attrs: Any) -> Sequence[Any]:
        b = Builder()
        return b.node(row, *(b.input("", x.shape, x.dtype) for x in inputs), **attrs).results

    def evaluate(xp: ArrayAdapter, *arrays: Array, **attrs: Any) -> Any:
        b = Builder()
        inputs = [b.const(xp.host(x)) for x in arrays]
        made = b.node(row, *inputs, **attrs)
        values: dict[Node, Any] = dict(zip(inputs, arrays, strict=True))
        for n in postorder(made.lowered, lambda n: n.lowered or n.inputs):
            if n in values:
                continue
            if n.lowered:
                values[n] = values[n.lowered[0]] if len(n.results) == 1 else tuple(values[x] for x in n.lowered)
            else:
                given = [values[x] for x in n.inputs]
                values[n] = xp.asarray(n.value) if n.row is None else n.row.run(xp, given, n.attrs)
        found = tuple(values[x] for x in made.lowered)
        return found[0] if len(found) == 1 else found

    return Opaque(name=row.name, doc=row.doc, results=results, evaluate=evaluate, wgsl=row.wgsl)
