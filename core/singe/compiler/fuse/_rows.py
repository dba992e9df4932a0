"""Products with packed weights of a few rows that compute these rows themselves: the norm or the gate before them needs no
kernel of its own.

Each workgroup of such a product computes the whole row again, which costs less than another kernel where the row is short
beside the weights. So the kernel that makes the row goes if products of a target that has the template are all that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...dtypes import float32
from ...graph import Graph, Node, storage_of
from ...ir import scalar
from ...ir.kernel import Kernel, Port, Reduce, Routine, Store
from ...ir.scalar import Expr
from ...ops import Opaque, Region
from ._assemble import Group

KIND: Final = "matmul_blocks"
KIND_WITH_ROWS: Final = "matmul_blocks_with_rows"
MAX_READERS: Final = 3
"""The most products that compute the same row, such as those for queries, keys and values."""


def with_own_rows(graph: Graph, groups: Sequence[Group], max_ports: int, takes: Callable[[Group], bool]) -> list[Group]:
    """The groups, in order, where products compute their row as the target has templates for it."""
    made: dict[Group, Group] = {}
    gone: set[Group] = set()
    makers = {g.outputs[0]: g for g in groups if _makes_row(g)}
    held = {storage_of(n) for n in (*graph.roots, *graph.own_size_nodes.values())}
    held |= {storage_of(x) for n in graph.nodes if isinstance(n.row, (Opaque, Region)) for x in n.inputs}
    readers: dict[Node, list[Group]] = {}
    for g in groups if makers else ():
        for n in (*g.inputs, *(() if g.base is None else (g.base,))):
            readers.setdefault(n, []).append(g)
    for row, maker in makers.items():
        products = readers.get(row, [])
        if row in held or not 0 < len(products) <= MAX_READERS:
            continue
        joined = [_joined(maker, g, max_ports) for g in products]
        if all(g is not None and takes(g) for g in joined):
            made.update((g, j) for g, j in zip(products, joined, strict=True) if j is not None)
            gone.add(maker)
    return [made.get(g, g) for g in groups if g not in gone]


def _makes_row(g: Group) -> bool:
    """Whether a group stores one row of float32, element by element, after folds over that row."""
    kernel = g.kernel
    if not isinstance(kernel, Kernel) or len(g.outputs) != 1 or g.base is not None or g.outputs[0].dtype is not float32:
        return False
    *folds, last = kernel.stages
    extent = kernel.inner if folds else kernel.grid
    rest = kernel.grid if folds else kernel.inner
    if rest or len(extent) != 1 or not isinstance(extent[0], int) or extent[0] == 1 or not isinstance(last, Store):
        return False
    (along,) = kernel.inner_vars if folds else kernel.grid_vars
    return last.inner == bool(folds) and last.index is along and all(isinstance(s, Reduce) for s in folds)


def _joined(maker: Group, g: Group, max_ports: int) -> Group | None:
    """The product with the row computed in it; None if it has not one row, or too many buffers."""
    row = maker.outputs[0]
    if not isinstance(g.kernel, Routine) or g.kernel.kind != KIND:
        return None
    product = g.kernel.kernel
    assert isinstance(maker.kernel, Kernel)
    total, store = product.stages
    (depth,) = product.inner
    if product.grid[:-1] != (1,) or depth != (maker.kernel.inner or maker.kernel.grid)[0]:
        return None
    inputs = tuple(dict.fromkeys((*(n for n in g.inputs if n is not row), *maker.inputs)))
    if len(inputs) + len(g.outputs) > max_ports:
        return None
    values = (*inputs, *g.outputs, row)
    number = {n: k for k, n in enumerate(values)}
    ports = tuple(Port(n.dtype, k >= len(inputs)) for k, n in enumerate(values))
    product, folds = (
        k.renumbered({at: number[n] for at, n in enumerate((*x.inputs, *x.outputs))}, ports)
        for k, x in ((product, g), (maker.kernel, maker))
    )
    (k,) = product.inner_vars
    *reduces, last = folds.stages
    assert isinstance(last, Store)
    along = (folds.inner_vars if reduces else folds.grid_vars)[0]
    value = scalar.substitute(last.value, {along: k})
    total, store = product.stages
    assert isinstance(total, Reduce)
    assert isinstance(store, Store)
    swap: dict[Expr, Expr] = {scalar.load(number[row], k, float32): value}
    summand = scalar.substitute(total.value, swap)
    if any(e.word == "load" and e.value == number[row] for e in scalar.postorder([summand, store.index, store.value])):
        return None
    sum_ = Reduce(f"a{len(reduces)}", total.word, summand)
    renamed = {total.accumulator: sum_.accumulator}
    end = replace(store, index=scalar.substitute(store.index, renamed), value=scalar.substitute(store.value, renamed))
    before = [replace(r, value=scalar.substitute(r.value, {along: k})) for r in reduces if isinstance(r, Reduce)]
    kernel = Kernel(
        ports[:-1], product.grid, product.inner, (*before, sum_, end), f"{folds.name}+{product.name}"
    )  # fmt: skip
    members = tuple(dict.fromkeys((*maker.members, *g.members)))
    return Group(Routine(KIND_WITH_ROWS, kernel, g.kernel.facts), inputs, g.outputs, members)
