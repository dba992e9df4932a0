"""Folds of many elements into few results are computed in two steps, so that a large device has enough to do.

A workgroup of a GPU computes a sum, or another fold: of all elements of a gradient, it alone would walk over them while the rest of the
device waits. And where the results lie beside each other, as those of the gradient of a bias, a workgroup reads one number of each line.
The first step folds parts of the elements, so many that they fill the devices of a target, each by an invocation where the results lie
beside each other; the second folds these. Only sizes that are known are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Final, NamedTuple

from ...dtypes import FLOATS, bfloat16, float16, float32, uint8
from ...graph import Builder, Graph, Node, rebuild

FOLDS: Final = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")


class _Limits(NamedTuple):
    """elements: the least of a result that is split. part: the least of a part. parts: the least of them. partial: the most results of
    the first step, for each tile that fills the largest devices."""

    elements: int
    part: int
    parts: int
    partial: int


BY_WORKGROUPS: Final = _Limits(1 << 15, 1 << 10, 2, 1)
"""Where a workgroup folds a part."""
BESIDE: Final = _Limits(1 << 10, 1 << 5, 8, 64)
"""Where results lie beside each other, and an invocation folds a part."""
MANY_RESULTS: Final = 256
"""With so many results for each element of one, results beside each other have an invocation each already."""


class _Axes(NamedTuple):
    """Axes beside each other that are all folded, or all kept."""

    folded: bool
    length: int


def folded_in_parts(graph: Graph, filled_by: int) -> Graph:
    """See the module's docstring. filled_by: as of `in_parts` (long_products.py)."""
    if filled_by == 1:
        return graph
    found = {n: _runs(n) for n in graph.nodes if n.op in FOLDS and n.dtype in (*FLOATS, uint8)}
    parts = {n: count for n, runs in found.items() if (count := _count(runs, filled_by))}
    if not parts:
        return graph

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        return _fold(b, n, new_inputs[0], found[n], parts[n]) if n in parts else None

    return rebuild(graph, Builder(), rule)


def _runs(n: Node) -> list[_Axes]:
    """The runs of axes of a fold's input, without those of one element; none if a size is open."""
    shape = n.inputs[0].shape
    axes = {a % len(shape) for a in n.attrs["axes"]} if shape else set[int]()
    known = [_Axes(a in axes, d) for a, d in enumerate(shape) if isinstance(d, int) and d != 1]
    if not all(isinstance(d, int) for d in shape):
        return []
    return [_Axes(folded, prod(r.length for r in some)) for folded, some in groupby(known, lambda r: r.folded)]


def _count(runs: Sequence[_Axes], filled_by: int) -> int:
    """In how many parts the last folded run is split, a power of two; the first step folds a part of it alone. 0: the fold stays whole."""
    lengths = [r.length for r in runs if r.folded]
    elements, results = prod(lengths), prod(r.length for r in runs if not r.folded)
    limits = BESIDE if runs and not runs[-1].folded else BY_WORKGROUPS
    if elements < limits.elements or results == 0 or results > MANY_RESULTS * elements:
        return 0
    most, last = limits.partial * filled_by, lengths[-1]
    others, parts = elements // last, 1
    while (
        elements >= 2 * others * parts * limits.part
        and 2 * others * parts * results <= most
        and last % (2 * parts) == 0
    ):
        parts *= 2
    return parts if others * parts >= limits.parts and elements >= others * parts * limits.part else 0


def _fold(b: Builder, n: Node, x: Node, runs: Sequence[_Axes], parts: int) -> Node:
    if n.dtype in (float16, bfloat16) and n.op in ("reduce_sum", "reduce_prod"):  # which would be rounded in between
        x = b.cast(x, to=float32)
    last = max(k for k, r in enumerate(runs) if r.folded)
    shape = [
        length for k, r in enumerate(runs) for length in ((parts, r.length // parts) if k == last else (r.length,))
    ]
    make = getattr(b, n.op)
    first = make(b.reshape(x, shape=tuple(shape)), axes=(last + 1,))
    second = make(first, axes=tuple(k for k, r in enumerate(runs) if r.folded))
    return b.reshape(b.cast(second, to=n.dtype), shape=n.shape)
