"""If: its branches become regions of the row `if`.

An If with a known condition becomes its branch; the other branch is ignored. The same holds if sizes decide, the branches
have results of different rank, and the rest of the graph fits only one of them (`Undecided`). If a run decides, and one of
the branches cannot run, runs that take it are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ....errors import ImportFailure, ShapeError, SizeNeeded, ValueNeeded
from ....graph import Builder, Node, Stack, Value
from ....graph.objects import described, leaves, mapped
from ....ops import ROWS
from ....shapes import symbols
from ...choice import Ambiguous, NeitherFits, Undecided, at_least_zero, known_flag, requirement
from ...model import OnnxGraph
from .._call import Call, adapter, inputs_below
from ._values import blank, kind_of, scalar, stack, symbols_below


@adapter("If")
def _if(call: Call) -> list[Value]:
    then, otherwise = call.subgraph("then_branch"), call.subgraph("else_branch")
    condition = scalar(call, call.x(), "the condition")
    holds = known_flag(call.b, condition)
    if holds is not None:
        return call.scope.within(None, call.name).outputs(then if holds else otherwise, ())
    branches = then, otherwise
    try:
        try:
            return _either(call, condition, branches, 0)
        except Ambiguous:
            return _either(call, condition, branches, 1)
    except (SizeNeeded, ValueNeeded):
        raise
    except (ImportFailure, ShapeError) as e:
        # A branch that is never taken may not fit these shapes, or have another rank.
        inputs = inputs_below(call.b, [condition])
        text = f"the condition must be known before a run, since a branch does not fit: {e}"
        if inputs:
            unfit = [_unfit(call, graph) for graph in branches]
            if sum(map(bool, unfit)) == 1:
                return _either(call, condition, branches, 0 if unfit[1] else 1, unfit[0] or unfit[1])
            raise ValueNeeded(text, inputs) from e
        dim = at_least_zero(call.b, condition)
        if dim is None:
            raise SizeNeeded(text, symbols_below([condition])) from e
        needed = SizeNeeded(text, symbols(dim))
        raise Undecided(branches, dim, partial(requirement, call.b, condition), needed) from e


def _unfit(call: Call, branch: OnnxGraph) -> str:
    """Why a branch cannot run, whatever the condition and the sizes of a run are; "" if it can."""
    apart = replace(call.scope, checks={})
    try:
        apart.within(None, call.name).outputs(branch, ())
    except (SizeNeeded, ValueNeeded, NeitherFits):
        return ""
    except (ImportFailure, ShapeError) as e:
        return str(e)
    return ""


def _either(
    call: Call, condition: Node, branches: Sequence[OnnxGraph], first: int, unfit: str | None = None
) -> list[Value]:
    """The If as a node; the results of branch `first` say of what type and rank those of the other must be. unfit: why the
    other branch cannot run; a run that takes it is refused."""
    captures: dict[Node, Node] = {}
    scopes = [call.scope.within(captures, call.name) for _ in branches]
    outputs: list[list[Node]] = [[], []]
    results = tuple(scopes[first].outputs(branches[first], ()))

    pairs: list[tuple[Value, Value]] = []

    def fits(values: Sequence[Value]) -> None:
        pairs[:] = [_agreed(call.b, k, x, y) for k, (x, y) in enumerate(zip(results, values, strict=False))]

    if unfit is None:
        scopes[1 - first].outputs(branches[1 - first], (), fits)
        outputs[1 - first] = list(leaves(tuple(y for _, y in pairs)))
        results = tuple(x for x, _ in pairs)
    outputs[first] = list(leaves(results))
    if unfit is not None:
        outputs[1 - first] = [
            # A length that only the branch itself would find is 0.
            blank(call.b, x.dtype, tuple(0 if symbols(d) & call.b.size_nodes.keys() else d for d in x.shape))
            for x in outputs[first]
        ]
        taken = str(first == 1).lower()
        text = f"If {call.outputs[0]!r}: its condition is {taken}, and that branch does not fit: {unfit}"
        scopes[1 - first].checks[-1] = text
    then, otherwise = (
        call.b.graph(tuple(captures.values()), o, s.checks) for s, o in zip(scopes, outputs, strict=True)
    )
    made = (
        ()
        if not then.outputs
        else call.b.results_of(call.b.node(ROWS["if"], condition, *captures, then=then, otherwise=otherwise))
    )
    chosen = iter(made)
    return list(mapped(lambda _: next(chosen), results))


def _agreed(b: Builder, k: int, x: Value, y: Value) -> tuple[Value, Value]:
    """Result k of both branches, as trees of the same form."""
    if isinstance(x, (tuple, Stack)) and isinstance(y, (tuple, Stack)) and mapped(bool, x) != mapped(bool, y):
        own = [_as_stack(b, value) for value in (x, y)]
        like = own[0] or own[1]
        # What one branch finds in a run is not known in the other.
        if like is not None and not symbols(like.rows.shape[1:]) & b.size_nodes.keys():
            empty = Stack(blank(b, like.rows.dtype, (0, *like.rows.shape[1:])))
            x, y = (made or (empty if value == () else value) for made, value in zip(own, (x, y), strict=True))
    if mapped(bool, x) != mapped(bool, y):
        raise ShapeError(f"result {k} is {described(x)} in one branch, {described(y)} in the other")
    for a, c in zip(leaves(x), leaves(y), strict=True):
        if a.dtype is not c.dtype or len(a.shape) != len(c.shape):
            raise ShapeError(f"result {k} is {kind_of(a)} in one branch, {kind_of(c)} in the other")
    return x, y


def _as_stack(b: Builder, x: Value) -> Stack | None:
    return stack(b, x) if isinstance(x, tuple) else x if isinstance(x, Stack) else None
