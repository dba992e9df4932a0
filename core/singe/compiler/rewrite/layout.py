"""Layout rules: transposes move towards the outputs.

A convolution works on channels-last data between two transposes. The rules move a transpose past every op that can work
in any order of axes, until it meets its inverse or only moves axes of length 1 and becomes a reshape. So a whole
network stays channels-last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...graph import Node
from ...ops.movement.move import inverse
from ...shapes import Dim, Shape, product
from ._rewriter import Rewriter, Rule, is_row


def _sink_elementwise(r: Rewriter, n: Node) -> Node | None:
    """f(transpose(x), …) is transpose(f(x, …)), if this removes more transposes than the other inputs need."""
    perm = next((x.attrs["perm"] for x in n.inputs if is_row(x, "transpose") and x.shape == n.shape), None)
    if perm is None:
        return None
    back = inverse(perm)
    given: list[Node] = []
    gain = 0
    for x in n.inputs:
        if is_row(x, "transpose") and x.attrs["perm"] == perm:
            given.append(x.inputs[0])
            gain += 1
            continue
        if len(x.shape) < len(perm):
            x = r.make("reshape", x, shape=(*(1,) * (len(perm) - len(x.shape)), *x.shape)) if x.shape else x
        moved = r.make("transpose", x, perm=back) if x.shape else x
        gain -= is_row(moved, "transpose")  # the new transpose did not fold, cancel or become a reshape
        given.append(moved)
    return r.make("transpose", r.make(n.row, *given, **n.attrs), perm=perm) if gain > 0 else None


def _sink_reshape_elementwise(r: Rewriter, n: Node) -> Node | None:
    """f(reshape(x), scalars) is reshape(f(x, scalars))."""
    large = [x for x in n.inputs if x.shape and not (x.is_const and all(d == 1 for d in x.shape))]
    if len(large) != 1 or not is_row(large[0], "reshape") or large[0].shape != n.shape or not large[0].inputs[0].shape:
        return None
    given = [x.inputs[0] if x is large[0] else r.make("reshape", x, shape=()) for x in n.inputs]
    return r.make("reshape", r.make(n.row, *given, **n.attrs), shape=n.shape)


def _sink_first(move: Callable[[Mapping[str, Any], Sequence[int]], dict[str, Any]]) -> Rule:
    """op(transpose(x), …) is transpose(op'(x, …)); `move` gives the attributes of op'."""

    def rule(r: Rewriter, n: Node) -> Node | None:
        x = n.inputs[0]
        if not is_row(x, "transpose"):
            return None
        perm = x.attrs["perm"]
        return r.make("transpose", r.make(n.row, x.inputs[0], *n.inputs[1:], **move(n.attrs, perm)), perm=perm)

    return rule


def _sink_place(r: Rewriter, n: Node) -> Node | None:
    """op(x, transpose(place)) is transpose(op'(transpose(x), place)): what gave the places is laid out so."""
    x, place = n.inputs
    if not is_row(place, "transpose"):
        return None
    perm = place.attrs["perm"]
    moved = r.make("transpose", x, perm=inverse(perm))
    return r.make("transpose", r.make(n.row, moved, place.inputs[0], **_all_moved(n.attrs, perm)), perm=perm)


def _axes_moved(attrs: Mapping[str, Any], perm: Sequence[int]) -> dict[str, Any]:
    return {"axes": tuple(sorted(perm[a] for a in attrs["axes"]))}


def _all_moved(attrs: Mapping[str, Any], perm: Sequence[int]) -> dict[str, Any]:
    """Attributes that name every axis, reordered to the axes of the transpose's input."""
    back = inverse(perm)
    return {k: tuple(v[p] for p in back) if isinstance(v, tuple) else v for k, v in attrs.items()}


def _sink_concat(r: Rewriter, n: Node) -> Node | None:
    perms = [x.attrs["perm"] for x in n.inputs if is_row(x, "transpose")]
    if len({*perms}) != 1:
        return None
    perm = perms[0]
    back = inverse(perm)
    given = [x.inputs[0] if is_row(x, "transpose") else r.make("transpose", x, perm=back) for x in n.inputs]
    lost = sum(is_row(g, "transpose") for x, g in zip(n.inputs, given, strict=True) if not is_row(x, "transpose"))
    if lost >= len(perms):
        return None
    return r.make("transpose", r.make("concat", *given, axis=perm[n.attrs["axis"] % len(perm)]), perm=perm)


def _sink_expand(r: Rewriter, n: Node) -> Node | None:
    x = n.inputs[0]
    if not is_row(x, "transpose") or len(x.shape) != len(n.shape):
        return None
    perm = x.attrs["perm"]
    back = inverse(perm)
    return r.make("transpose", r.make("expand", x.inputs[0], shape=tuple(n.shape[p] for p in back)), perm=perm)


def _sink_reshape(r: Rewriter, n: Node) -> Node | None:
    """reshape(transpose(x)) is transpose(reshape(x)) if axes that the reshape joins are neighbours in x too."""
    t = n.inputs[0]
    if not is_row(t, "transpose"):
        return None
    groups = _groups(t.shape, n.shape)
    if groups is None:
        return None
    perm = t.attrs["perm"]
    for before, _ in groups:
        sources = [perm[i] for i in before]
        if sources != list(range(sources[0], sources[0] + len(sources))):
            return None
    order = sorted(range(len(groups)), key=lambda g: perm[groups[g][0][0]])
    shape = tuple(n.shape[i] for g in order for i in groups[g][1])
    at: dict[int, int] = {}
    for g in order:
        for i in groups[g][1]:
            at[i] = len(at)
    return r.make(
        "transpose", r.make("reshape", t.inputs[0], shape=shape), perm=tuple(at[i] for i in range(len(n.shape)))
    )


def _groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The axes of two shapes of equal size in the smallest groups of equal product; None if they do not align."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before):
        left, right = [i], []
        a: Dim = before[i]
        b: Dim = 1
        i += 1
        while a != b:
            small = (isinstance(a, int) and isinstance(b, int) and a < b) or not isinstance(b, int)
            if small and i < len(before):
                a = a * before[i]
                left.append(i)
                i += 1
            elif j < len(after):
                b = b * after[j]
                right.append(j)
                j += 1
            else:
                return None
        while j < len(after) and after[j] == 1 and (i == len(before) or before[i] != 1):
            right.append(j)
            j += 1
        groups.append((left, right))
    return groups if j == len(after) and product(before) == product(after) else None


LAYOUT: Final[Mapping[str, Sequence[Rule]]] = {
    "reshape": (_sink_reshape,),
    "expand": (_sink_expand,),
    "concat": (_sink_concat,),
    **dict.fromkeys(("slice", "pad", "max_pool", "pool_sum", "pool_place", "unpool_sum"), (_sink_first(_all_moved),)),
    **dict.fromkeys(("pool_pick", "unpool_pick"), (_sink_place,)),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), (_sink_first(_axes_moved),)),
}
"""row ↦ the rules that move a transpose from before it to after it."""

LAYOUT_ELEMENTWISE: Final[Sequence[Rule]] = (_sink_elementwise, _sink_reshape_elementwise)
