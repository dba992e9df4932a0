"""Graphs with branches and loops that several tests share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from singe.dtypes import float32, int64
from singe.graph import Builder, Graph, GraphState, Node
from singe.ops import ROWS
from singe.shapes import size
from singe.weights.records import model_record

IF, LOOP = ROWS["if"], ROWS["loop"]


def counted(b: Builder, body: Graph, count: Any, *initial: Node, captures: Sequence[Node] = ()) -> tuple[Node, ...]:
    made = b.apply(LOOP, *initial, *captures, body=body, carried=len(initial), conditional=False, count=count)
    return made if isinstance(made, tuple) else (made,)


def nested(b: Builder, x: Node, count: Any) -> tuple[Node, ...]:
    """x and the number of turns after a loop in which, in every third turn, an inner loop adds its number three times."""
    v, t = b.input("v", (), int64), b.input("t", (), int64)
    w, k = b.input("w", (), int64), b.input("k", (), int64)
    cv, ct = b.input("cv", (), int64), b.input("ct", (), int64)
    inner = Graph((w, k), (b.const(True), b.add(w, k)), ("c", "w"))
    (added,) = counted(b, inner, 3, cv, captures=[ct])
    then, otherwise = Graph((cv, ct), (added,), ("y",)), Graph((cv, ct), (cv,), ("y",))
    third = b.equal(b.sub(t, b.mul(b.div(t, b.const(3)), b.const(3))), b.const(0))
    chosen = b.apply(IF, third, v, t, then=then, otherwise=otherwise)
    body = Graph((v, t), (b.const(True), chosen, b.add(t, b.const(1))), ("c", "v", "t"))
    return counted(b, body, count, x, b.const(0))


def endless() -> Graph:
    """A loop whose condition stays true, if x is above 0."""
    b = Builder()
    x, v = b.input("x", (2,), float32), b.input("v", (2,), float32)
    kept = b.mul(v, b.const(1.0))
    total = b.reshape(b.reduce_sum(kept, axes=(0,)), shape=())
    body = Graph((v,), (b.less(b.const(0.0), total), kept), ("c", "v"))
    y = b.apply(LOOP, b.const(True), x, body=body, carried=1, conditional=True, count=None)
    return Graph((x,), (y,), ("y",))


def sound_flow() -> bytes:
    """A record with states, several results, an If, a loop with a growing value, and sizes found in mid-run."""
    b = Builder()
    x, count = b.input("x", (size("N"),), float32), b.input("count", (), int64)
    past = b.input("past", (4,), float32)
    p, more = b.input("p", (size("own"),), float32), b.input("more", (size("N"),), float32)
    body = Graph((p, more), (b.less(b.reduce_sum(p, axes=(0,)), b.const(9.0)), b.concat(p, more, axis=0)), ("c", "p"))
    (one,) = body.outputs[:1]
    body = Graph(body.inputs, (b.reshape(one, shape=()), body.outputs[1]), ("c", "p"))
    grown = b.apply(ROWS["loop"], b.const(True), x, x, body=body, carried=1, conditional=True, count=5)
    i = b.input("i", (size("N"),), float32)
    then, otherwise = Graph((i,), (b.concat(i, i, axis=0),), ("y",)), Graph((i,), (b.neg(i),), ("y",))
    chosen = b.apply(ROWS["if"], b.less(count, b.const(3)), x, then=then, otherwise=otherwise)
    most, places = b.top_k(past, axis=0, k=2, largest=True)
    told = b.size_of(b.minimum(count, b.const(7)))
    outputs = (grown, chosen, b.nonzero(x), places, b.expand(b.const(2.0), shape=(told,)))
    states = (
        GraphState(count, "count", np.array(2), b.add(count, b.const(1))),
        GraphState(past, "past", None, b.update_slice(past, most, count)),
    )
    return model_record(Graph((x,), outputs, tuple("abcde"), b.size_nodes, states))
