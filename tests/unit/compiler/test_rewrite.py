"""Each rule of the rewriter by itself: how it changes a graph, a graph that it leaves, and that results stay the same.

Every rule of the tables in compiler/rewrite has a Case here: adding one without a Case fails. Values are compared with
direct.py, which does not rewrite. (test_subnormals.py and test_wasm_integers.py have the passes over whole graphs.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from direct import evaluate

from singe.compiler.rewrite import ELEMENTWISE, RULES, rewrite
from singe.compiler.rewrite._rewriter import ALWAYS_FOLDED_BYTES, MAX_FOLDED_GROWTH, Rewriter, Rule
from singe.dtypes import bool_, float32, int8, int32, int64, uint8
from singe.graph import Builder, Graph, Node, all_nodes
from singe.ops import ROWS
from singe.shapes import Size, size

N = size("N")
IF, LOOP = ROWS["if"], ROWS["loop"]
ALL = "any"
"""Stands in place of a row's name for the rules of all elementwise rows."""

Build = Callable[..., Node]
"""(builder, inputs…) ↦ the output."""


def keys() -> dict[str, tuple[str, Rule]]:
    """All rules, by the names of the row and of the rule: "reshape: _sink_reshape"."""
    listed = [(row, rule) for row, rules in RULES[True].items() for rule in rules] + [
        (ALL, rule) for rule in ELEMENTWISE
    ]
    return {f"{row}: {rule.__qualname__.split('.')[0]}": (row, rule) for row, rule in listed}


@dataclass(frozen=True)
class Case:
    """A graph over inputs of these shapes, its text before and after the rule,
    and a similar graph that the rule leaves unchanged."""

    build: Build
    before: str
    after: str
    other: Build
    shapes: tuple[tuple[Any, ...], ...] = ((N, 4),)


def text(n: Node, names: Mapping[Node, str]) -> str:
    """A node as nested calls, with the attributes that matter for the rules."""
    if n in names:
        return names[n]
    if n.value is not None:
        flat = n.value.reshape(-1).tolist()
        return (
            " ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in flat)
            if len(flat) < 4
            else f"const{list(n.shape)}"
        )
    parts = [text(x, names) for x in n.inputs]
    for name, value in n.attrs.items():
        if isinstance(value, Graph):
            inner = {x: f"{name}{k}" for k, x in enumerate(value.inputs)}
            parts.append(f"{name}: {', '.join(text(y, inner) for y in value.outputs)}")
        elif name in ("perm", "shape", "axes", "axis", "before", "starts", "sizes", "to", "count", "conditional"):
            shown = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"{name} {shown}")
    return f"{n.op}({', '.join(parts)})"


def shown(graph: Graph) -> str:
    names = {x: x.name for x in graph.inputs}
    return "; ".join(text(y, names) for y in graph.outputs)


def graph_of(build: Build, shapes: tuple[tuple[Any, ...], ...]) -> Graph:
    b = Builder()
    inputs = [b.input("xyz"[k], shape, float32) for k, shape in enumerate(shapes)]
    return Graph(tuple(inputs), (build(b, *inputs),), ("out",))


def only(graph: Graph, *given: tuple[str, Rule]) -> Graph:
    """The graph rewritten only by these rules; folding and lowering still happen."""
    rules = {row: (rule,) for row, rule in given if row != ALL}
    return Rewriter(graph, rules, tuple(rule for row, rule in given if row == ALL), lambda g: g).run()


def whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).integers(-3, 4, shape).astype(np.float32)


def weights(b: Builder, *shape: int) -> Node:
    return b.const(whole(*shape))


def conv(b: Builder, x: Node, *, before: int = 0) -> Node:
    window = {"strides": (1,), "dilations": (1,), "before": (before,), "after": (0,), "group": 1}
    return b.conv_last(x, weights(b, 2, 3, 5), **window)


def eight_bits(b: Builder, x: Node) -> Node:
    """x as 8-bit integers, less 3, in int32."""
    return b.sub(b.cast(b.cast(x, to=uint8), to=int32), b.const(3, int32))


def integers(b: Builder, *shape: int, times: int = 1) -> Node:
    return b.const(whole(*shape).astype(np.int32) * times)


def conv_of_integers(b: Builder, x: Node, times: int) -> Node:
    window = {"strides": (1,), "dilations": (1,), "before": (0,), "after": (0,), "group": 1}
    return b.conv_last(eight_bits(b, x), integers(b, 2, 3, 5, times=times), **window)


def pads(b: Builder, x: Node, before: tuple[int, ...], fill: float = 0.0, mode: str = "constant") -> Node:
    return b.pad(x, b.const(fill), before=before, after=(0,) * len(before), mode=mode)


def pool(b: Builder, row: str, x: Node) -> Node:
    ones, none = (1,) * 3, (0,) * 3
    return getattr(b, row)(x, window=(1, 2, 1), strides=(1, 2, 1), dilations=ones, before=none, after=none)


def windows(axis: int) -> dict[str, Any]:
    """The attributes of windows of two along an axis, side by side."""
    ones, none = (1,) * 3, (0,) * 3
    two = tuple(2 if i == axis else 1 for i in range(3))
    return {"window": two, "strides": two, "dilations": ones, "before": none, "after": none,
            "numbers": tuple(int(i == axis) for i in range(3))}  # fmt: skip


def places(b: Builder, x: Node) -> Node:
    return b.cast(x, to=int32)


def cut(b: Builder, x: Node, start: int, step: int, count: int) -> Node:
    return b.slice(x, starts=(0, start), steps=(1, step), sizes=(x.shape[0], count))


def turned(b: Builder, x: Node) -> Node:
    """x with its last two axes swapped."""
    rank = len(x.shape)
    return b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


CUBE = ((N, 4, 3),)
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")
EIGHT = "sub(cast(cast(x, to uint8), to int32), 3)"
CASES: dict[str, Case] = {
    "cast: _in_floats": Case(
        lambda b, x: b.cast(b.dot(eight_bits(b, x), integers(b, 4, 5)), to=float32),
        f"cast(dot({EIGHT}, const[4, 5]), to float32)", f"dot(cast({EIGHT}, to float32), const[4, 5])",
        lambda b, x: b.cast(b.dot(b.cast(x, to=int32), integers(b, 4, 5)), to=float32)),
    "dot: _exact": Case(
        lambda b, x: b.dot(eight_bits(b, x), integers(b, 4, 5)),
        f"dot({EIGHT}, const[4, 5])", f"dot_integers(cast({EIGHT}, to float32), const[4, 5])",
        lambda b, x: b.dot(eight_bits(b, x), integers(b, 4, 5, times=100))),
    "conv_last: _exact": Case(
        lambda b, x: conv_of_integers(b, x, 1), f"conv_last({EIGHT}, const[2, 3, 5], before 0)",
        f"conv_integers(cast({EIGHT}, to float32), const[2, 3, 5], before 0)",
        lambda b, x: conv_of_integers(b, x, 100), CUBE),
    "add: _neutral": Case(lambda b, x: b.add(b.const(0.0), x), "add(0, x)", "x", lambda b, x: b.add(x, weights(b, 3, 1, 1)), ((1, 4),)),
    "sub: _neutral": Case(lambda b, x: b.sub(x, b.const(0.0)), "sub(x, 0)", "x", lambda b, x: b.sub(b.const(0.0), x)),
    "mul: _neutral": Case(lambda b, x: b.mul(x, b.const(1.0)), "mul(x, 1)", "x", lambda b, x: b.mul(x, b.const(np.ones((2, 1, 1), np.float32))), ((1, 4),)),
    "div: _neutral": Case(lambda b, x: b.div(x, b.const(1.0)), "div(x, 1)", "x", lambda b, x: b.div(b.const(1.0), b.add(b.mul(x, x), b.const(2.0)))),
    "add: _join_shifts": Case(
        lambda b, x: b.add(b.add(x, b.const(2.0)), b.const(3.0)), "add(add(x, 2), 3)", "add(x, 5)",
        lambda b, x: b.mul(y := b.add(x, b.const(2.0)), b.add(y, b.const(3.0)))),
    "sub: _sub_constant": Case(
        lambda b, x: b.sub(b.dot(x, weights(b, 4, 5)), b.const(2.0)), "sub(dot(x, const[4, 5]), 2)",
        "add(dot(x, const[4, 5]), -2)", lambda b, x: b.sub(x, b.const(2.0))),
    "div: _div_constant": Case(
        lambda b, x: b.div(b.add(b.dot(x, weights(b, 4, 5)), b.const(np.ones(5, np.float32))), b.const(2.0)),
        "div(add(dot(x, const[4, 5]), const[5]), 2)", "mul(add(dot(x, const[4, 5]), const[5]), 0.5)",
        lambda b, x: b.div(b.mul(x, b.const(2.0)), b.const(2.0))),
    "mul: _scale_contraction": Case(
        lambda b, x: b.mul(b.add(b.dot(x, weights(b, 4, 2)), b.const(np.float32([1, 2]))), b.const(np.float32([2, 3]))),
        "mul(add(dot(x, const[4, 2]), 1 2), 2 3)", "add(dot(x, const[4, 2]), 2 6)",
        lambda b, x: b.mul(y := b.dot(x, weights(b, 4, 2)), b.add(b.mul(y, b.const(2.0)), y))),
    "reshape: _reshape": Case(
        lambda b, x: b.reshape(b.reshape(x, shape=(N, 2, 2)), shape=(2 * N, 2)), "reshape(reshape(x, shape N 2 2), shape 2*N 2)",
        "reshape(x, shape 2*N 2)", lambda b, x: b.reshape(x, shape=(2 * N, 2))),
    "transpose: _transpose": Case(
        lambda b, x: b.transpose(b.transpose(x, perm=(2, 0, 1)), perm=(0, 2, 1)),
        "transpose(transpose(x, perm 2 0 1), perm 0 2 1)", "transpose(x, perm 2 1 0)",
        lambda b, x: b.transpose(x, perm=(2, 0, 1)), CUBE),
    "transpose: _turned_product": Case(
        lambda b, x, y: b.transpose(b.dot(b.transpose(x, perm=(1, 0)), y), perm=(1, 0)),
        "transpose(dot(transpose(x, perm 1 0), y), perm 1 0)", "dot(transpose(y, perm 1 0), x)",
        lambda b, x, y: b.transpose(b.dot(x, y), perm=(1, 0)), ((4, 4), (4, 4))),
    "expand: _expand": Case(
        lambda b, x: b.expand(b.expand(x, shape=(N, 4)), shape=(2, N, 4)), "expand(expand(x, shape N 4), shape 2 N 4)",
        "expand(x, shape 2 N 4)", lambda b, x: b.expand(x, shape=(N, 4)), ((N, 1),)),
    "slice: _slice": Case(
        lambda b, x: cut(b, cut(b, x, 3, -1, 4), 1, 2, 2), "slice(slice(x, starts 0 3, sizes N 4), starts 0 1, sizes N 2)",
        "slice(x, starts 0 2, sizes N 2)", lambda b, x: cut(b, x, 3, -1, 4)),
    "pad: _pad": Case(
        lambda b, x: pads(b, pads(b, x, (0, 1)), (1, 2)), "pad(pad(x, 0, before 0 1), 0, before 1 2)", "pad(x, 0, before 1 3)",
        lambda b, x: pads(b, pads(b, x, (0, 1)), (1, 2), fill=1.0)),
    "concat: _concat": Case(
        lambda b, x: b.concat(x, b.const(np.zeros((0, 4), np.float32)), axis=-2), "concat(x, , axis -2)", "x",
        lambda b, x: b.concat(x, x, axis=0)),
    "stop_gradient: _passed_on": Case(
        lambda b, x: b.neg(b.stop_gradient(x)), "neg(stop_gradient(x))", "neg(x)", lambda b, x: b.neg(x)),
    "cast: _cast": Case(lambda b, x: b.cast(x, to=float32), "cast(x, to float32)", "x", lambda b, x: b.cast(x, to=int32)),
    "conv_last: _pad_into_conv": Case(
        lambda b, x: conv(b, pads(b, x, (0, 1, 0)), before=1), "conv_last(pad(x, 0, before 0 1 0), const[2, 3, 5], before 1)",
        "conv_last(x, const[2, 3, 5], before 2)", lambda b, x: conv(b, pads(b, x, (0, 1, 0), fill=1.0)), CUBE),
    "dot: _reorder_rows": Case(
        lambda b, x: b.dot(b.reshape(turned(b, x), shape=(N, 12)), weights(b, 12, 2)),
        "dot(reshape(transpose(x, perm 0 2 1), shape N 12), const[12, 2])", "dot(reshape(x, shape N 12), const[12, 2])",
        lambda b, x: b.dot(b.reshape(b.transpose(x, perm=(1, 0, 2)), shape=(4, 3 * N)), b.reshape(x, shape=(3 * N, 4))), CUBE),
    **{f"{row}: _reduce": Case(
        lambda b, x, row=row: getattr(b, row)(x, axes=(1, 2)), f"{row}(x, axes 1 2)", f"{row}(x, axes 2)",
        lambda b, x, row=row: getattr(b, row)(x, axes=(2,)), ((2, 1, 4),)) for row in REDUCTIONS},
    "any: _unbroadcast": Case(
        lambda b, x, y: b.mul(b.expand(x, shape=(N, 4)), y), "mul(expand(x, shape N 4), y)", "mul(x, y)",
        lambda b, x, y: b.exp(b.expand(x, shape=(N, 4))), ((1, 4), (N, 4))),
    "any: _sink_elementwise": Case(
        lambda b, x: b.add(turned(b, x), b.const(np.float32([[1], [2], [3]]))), "add(transpose(x, perm 1 0), 1 2 3)",
        "transpose(add(x, 1 2 3), perm 1 0)",
        lambda b, x: b.add(turned(b, x), b.reduce_sum(b.reshape(x, shape=(x.shape[1], x.shape[0])), axes=())), ((4, 3),)),
    "any: _sink_reshape_elementwise": Case(
        lambda b, x: b.mul(b.reshape(x, shape=(2 * N, 2)), b.const(2.0)), "mul(reshape(x, shape 2*N 2), 2)",
        "reshape(mul(x, 2), shape 2*N 2)", lambda b, x: b.mul(b.reshape(x, shape=(2 * N, 2)), b.const(np.float32([1, 2])))),
    "reshape: _sink_reshape": Case(
        lambda b, x: b.reshape(b.transpose(x, perm=(1, 2, 0)), shape=(12, N)), "reshape(transpose(x, perm 1 2 0), shape 12 N)",
        "transpose(reshape(x, shape N 12), perm 1 0)", lambda b, x: b.reshape(turned(b, x), shape=(N, 12)), CUBE),
    "expand: _sink_expand": Case(
        lambda b, x: b.expand(turned(b, x), shape=(N, 3, 4)), "expand(transpose(x, perm 0 2 1), shape N 3 4)",
        "transpose(expand(x, shape N 4 3), perm 0 2 1)", lambda b, x: b.expand(turned(b, x), shape=(2, N, 3, 1)), ((N, 1, 3),)),
    "concat: _sink_concat": Case(
        lambda b, x: b.concat(turned(b, x), turned(b, x), axis=1),
        "concat(transpose(x, perm 0 2 1), transpose(x, perm 0 2 1), axis 1)",
        "transpose(concat(x, x, axis 2), perm 0 2 1)",
        lambda b, x: b.concat(turned(b, x), b.transpose(x, perm=(1, 2, 0)), axis=0), ((4, 4, 4),)),
    "slice: _sink_first": Case(
        lambda b, x: cut(b, turned(b, x), 1, 1, 2), "slice(transpose(x, perm 1 0), starts 0 1, sizes 4 2)",
        "transpose(slice(x, starts 1 0, sizes 2 4), perm 1 0)", lambda b, x: cut(b, x, 1, 1, 2), ((3, 4),)),
    "pad: _sink_first": Case(
        lambda b, x: pads(b, turned(b, x), (0, 2)), "pad(transpose(x, perm 1 0), 0, before 0 2)",
        "transpose(pad(x, 0, before 2 0), perm 1 0)", lambda b, x: pads(b, x, (0, 2))),
    **{f"{row}: _sink_first": Case(
        lambda b, x, row=row: pool(b, row, b.transpose(x, perm=(0, 2, 1))), f"{row}(transpose(x, perm 0 2 1), before 0 0 0)",
        f"transpose({row}(x, before 0 0 0), perm 0 2 1)", lambda b, x, row=row: pool(b, row, x), CUBE)
       for row in ("max_pool", "pool_sum")},
    "pool_place: _sink_first": Case(
        lambda b, x: b.pool_place(b.transpose(x, perm=(0, 2, 1)), **windows(1)), "pool_place(transpose(x, perm 0 2 1), before 0 0 0)",
        "transpose(pool_place(x, before 0 0 0), perm 0 2 1)", lambda b, x: b.pool_place(x, **windows(1)), CUBE),
    "unpool_sum: _sink_first": Case(
        lambda b, x: b.unpool_sum(b.transpose(x, perm=(0, 2, 1)), sizes=(N, 6, 4), **windows(1)),
        "unpool_sum(transpose(x, perm 0 2 1), sizes N 6 4, before 0 0 0)",
        "transpose(unpool_sum(x, sizes N 4 6, before 0 0 0), perm 0 2 1)",
        lambda b, x: b.unpool_sum(x, sizes=(N, 8, 3), **windows(1)), CUBE),
    "pool_pick: _sink_place": Case(
        lambda b, x, y: b.pool_pick(x, b.transpose(places(b, y), perm=(0, 2, 1)), **windows(1)),
        "pool_pick(x, transpose(cast(y, to int32), perm 0 2 1), before 0 0 0)",
        "transpose(pool_pick(transpose(x, perm 0 2 1), cast(y, to int32), before 0 0 0), perm 0 2 1)",
        lambda b, x, y: b.pool_pick(b.transpose(x, perm=(0, 2, 1)), places(b, y), **windows(2)), ((N, 6, 4), (N, 4, 3))),
    "unpool_pick: _sink_place": Case(
        lambda b, x, y: b.unpool_pick(x, b.transpose(places(b, y), perm=(0, 2, 1)), sizes=(N, 6, 4), **windows(1)),
        "unpool_pick(x, transpose(cast(y, to int32), perm 0 2 1), sizes N 6 4, before 0 0 0)",
        "transpose(unpool_pick(transpose(x, perm 0 2 1), cast(y, to int32), sizes N 4 6, before 0 0 0), perm 0 2 1)",
        lambda b, x, y: b.unpool_pick(b.transpose(x, perm=(0, 2, 1)), places(b, y), sizes=(N, 4, 6), **windows(2)),
        ((N, 3, 4), (N, 4, 3))),
    **{f"{row}: _sink_first": Case(
        lambda b, x, row=row: getattr(b, row)(b.transpose(x, perm=(1, 2, 0)), axes=(0,)), f"{row}(transpose(x, perm 1 2 0), axes 0)",
        f"transpose({row}(x, axes 1), perm 1 2 0)", lambda b, x, row=row: getattr(b, row)(x, axes=(0,)), ((2, 4, 3),))
       for row in REDUCTIONS},
}  # fmt: skip


def test_every_rule_has_a_case() -> None:
    assert CASES.keys() == keys().keys()


def arrays_for(graph: Graph, n: int) -> list[np.ndarray]:
    return [whole(*(n if isinstance(d, Size) else d for d in x.shape)) for x in graph.inputs]


def same_values(graph: Graph, made: Graph) -> None:
    for n in (3, 1):
        given = arrays_for(graph, n)
        wanted, found = evaluate(graph, given)[0], evaluate(made, given)[0]
        for a, e in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_makes_what_it_says_of_a_graph(name: str) -> None:
    case, rule = CASES[name], keys()[name]
    graph = graph_of(case.build, case.shapes)
    made = only(graph, rule)
    assert shown(only(graph)) == case.before
    assert shown(made) == case.after
    same_values(graph, made)
    same_values(graph, rewrite(graph))


@pytest.mark.parametrize("name", CASES)
def test_a_rule_says_nothing_where_its_condition_does_not_hold(name: str) -> None:
    case, rule = CASES[name], keys()[name]
    graph = graph_of(case.other, case.shapes)
    assert shown(only(graph, rule)) == shown(only(graph))
    same_values(graph, rewrite(graph))


# --- regions ---------------------------------------------------------------------------------------------------------


def chosen(b: Builder, condition: Node, x: Node, extra: Node | None = None) -> Node:
    """An `if`: x + extra, or −x, so that captured values are not always read."""
    extra = b.const(2.0) if extra is None else extra
    p, q, r, s = (b.input(name, n.shape, n.dtype) for name, n in zip("pqrs", (x, extra, x, extra), strict=True))
    then, otherwise = Graph((p, q), (b.add(p, q),), ("y",)), Graph((r, s), (b.neg(r),), ("y",))
    return b.apply(IF, condition, x, extra, then=then, otherwise=otherwise)


def turned_over(b: Builder, x: Node, count: int, condition: Node | None = None, ends: bool = False) -> Node:
    """A loop that negates x and adds a captured constant in each turn."""
    v, c = b.input("v", x.shape, x.dtype), b.input("c", (), float32)
    body = Graph((v, c), (b.const(not ends), b.add(b.neg(v), c)), ("go", "v"))
    lead = () if condition is None else (condition,)
    return b.apply(LOOP, *lead, x, b.const(2.0), body=body, carried=1, conditional=condition is not None, count=count)


def flag(b: Builder, x: Node) -> Node:
    return b.less(b.reshape(b.reduce_sum(x, axes=(0, 1)), shape=()), b.const(0.0))


FLAG = "less(reshape(reduce_sum(x, axes 0 1), shape ), 0)"
REGIONS: dict[str, tuple[Build, str]] = {
    "a known condition leaves its branch": (lambda b, x: chosen(b, b.const(True), x), "add(x, 2)"),
    "a constant moves in, and what no branch reads is not captured": (
        lambda b, x: chosen(b, flag(b, x), x), f"if({FLAG}, x, then: add(then0, 2), otherwise: neg(otherwise0))"),
    "a value that is computed stays captured": (
        lambda b, x: chosen(b, flag(b, x), x, b.exp(x)),
        f"if({FLAG}, x, exp(x), then: add(then0, then1), otherwise: neg(otherwise0))"),
    "a branch is rewritten as a graph of its own": (
        lambda b, x: chosen(b, flag(b, x), x, b.const(0.0)), f"if({FLAG}, x, then: then0, otherwise: neg(otherwise0))"),
    "a loop of no turns leaves its initial values": (lambda b, x: turned_over(b, x, 0), "x"),
    "a loop whose condition never held too": (lambda b, x: turned_over(b, x, 3, b.const(False)), "x"),
    "a loop whose condition always holds loses it": (
        lambda b, x: turned_over(b, x, 3, b.const(True)), "loop(x, body: True, add(neg(body0), 2), conditional False, count 3)"),
    "a condition that a turn ends stays": (
        lambda b, x: turned_over(b, x, 3, b.const(True), ends=True),
        "loop(True, x, body: False, add(neg(body0), 2), conditional True, count 3)"),
    "a condition that is computed stays": (
        lambda b, x: turned_over(b, x, 3, flag(b, x)),
        f"loop({FLAG}, x, body: True, add(neg(body0), 2), conditional True, count 3)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REGIONS)
def test_regions_are_rewritten(name: str) -> None:
    build, after = REGIONS[name]
    graph = graph_of(build, ((N, 4),))
    made = rewrite(graph)
    assert shown(made) == after
    same_values(graph, made)


def test_constants_fold_but_where_they_grow_or_are_not_known() -> None:
    """Folded nodes become constants; a large expand stays, and so do nodes that depend on a size."""
    b = Builder()
    x, c = b.input("x", (N,), int64), b.input("c", (), bool_)
    three = b.add(b.const(1), b.const(2))
    large = b.expand(b.const(np.ones(1, np.float32)), shape=(100, 1000))
    size_too = b.expand(b.const(1), shape=(N,))
    graph = Graph(
        (x, c), (b.mul(x, three), large, b.add(size_too, x), b.logical_and(c, b.less(three, three))), tuple("abcd")
    )
    assert shown(rewrite(graph)) == "mul(x, 3); expand(1, shape 100 1000); add(1, x); logical_and(c, False)"


def test_constants_that_double_fold_until_they_are_large() -> None:
    """Each node at most doubles its input, and all of them make what is large out of one number."""
    b = Builder()
    x = b.const(np.ones(1, np.float32))
    for _ in range(26):
        x = b.concat(x, x, axis=0)
    rewritten = rewrite(Graph((), (b.neg(x),), ("y",)))
    assert (
        max(n.value.nbytes for n in all_nodes(rewritten) if n.value is not None)
        <= MAX_FOLDED_GROWTH * ALWAYS_FOLDED_BYTES
    )


def test_tables_of_integers_are_gathered_before_they_are_converted() -> None:
    def table(b: Builder, x: Node) -> Node:
        numbers = b.const(np.arange(5000, dtype=np.int8).reshape(1000, 5))
        each = b.const(np.arange(1000, dtype=np.float32).reshape(1000, 1))
        values = b.mul(b.cast(b.sub(b.cast(numbers, to=int32), b.const(3, int32)), to=float32), each)
        values = b.add(values, b.const(np.arange(5, dtype=np.float32)))
        return b.gather(values, b.cast(x, to=int64), axis=0)

    graph = graph_of(table, ((N, 4),))
    made = rewrite(graph, narrow=True)
    same_values(graph, made)
    index = "cast(x, to int64), axis 0)"
    row = f"cast(sub(cast(gather(const[1000, 5], {index}, to int32), 3), to float32)"
    assert shown(made) == f"add(mul({row}, gather(const[1000, 1], {index}), const[1, 1, 5])"


def test_products_take_8_bits_where_each_row_has_one_zero_point() -> None:
    """Otherwise numbers of a row may lie further from each other than a byte holds."""

    def products(zeros: tuple[int, ...], turn: bool = False, dtype: Any = uint8) -> int:
        b = Builder()
        x, zero = b.input("x", (4, 4), uint8), b.input("zero", zeros, dtype)
        y = b.sub(b.cast(x, to=int32), b.cast(zero, to=int32))
        y = b.transpose(y, perm=(1, 0)) if turn else y
        made = only(Graph((x, zero), (b.dot(y, integers(b, 4, 5)),), ("y",)), keys()["dot: _exact"])
        return sum(n.op == "dot_integers" for n in all_nodes(made))

    assert [products(zeros) for zeros in ((), (1,), (4, 1))] == [1, 1, 1]
    assert [products(zeros) for zeros in ((4,), (1, 4), (4, 4))] == [0, 0, 0]
    assert [products((1,), turn=True), products((4, 1), turn=True)] == [1, 0]
    assert products((), dtype=int8) == 0  # a zero point outside the range: 0 may be far from the numbers
