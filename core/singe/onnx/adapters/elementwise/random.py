"""Random numbers. A node with a seed in the file draws the same numbers in every run; equal seeds, equal numbers. Without
one, its numbers depend on the name of its output, with those of the calls of functions that it is in, and on how many
runs there were before, which is a state of the model: a new session draws the same numbers again. In a loop, every turn
draws the same numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final
from zlib import crc32

import numpy as np

from ....dtypes import DType, float32, int32, int64
from ....graph import Builder, Graph, GraphState, Node
from ....shapes import Shape, same, show
from ...model import OnnxModel, OnnxNode
from ...scope import Scope, owned
from .._call import ADAPTERS, Call, adapter
from .basic import cast, dtype_of_code


def is_random(model: OnnxModel) -> bool:
    """Whether runs of the model draw different numbers."""

    def among(nodes: Iterable[OnnxNode]) -> bool:
        return any(
            (n.op_type in RANDOM and "seed" not in n.attributes) or any(among(g.nodes) for g in owned(n)) for n in nodes
        )

    return among(model.graph.nodes) or any(among(f.nodes) for f in model.functions)


def counting_runs(graph: Graph, scope: Scope) -> Graph:
    """The graph with the state that its main scope's nodes may read: the number of runs before."""
    runs = scope.runs()
    state = GraphState(runs, runs.name, None, Builder().add(runs, Builder().const(1, runs.dtype)))
    return replace(graph, states=(*graph.states, state))


def _key(call: Call) -> Node:
    """The key of a node's numbers."""
    if "seed" in call.attributes:
        (seed,) = struct.unpack("<I", struct.pack("<f", call.attr("seed", 0.0)))
        return call.b.const(np.array([seed, 0], np.uint32))
    named = call.b.const(np.array([crc32(call.scope.path(call.outputs[0]).encode()), 0], np.uint32))
    return call.b.add(named, call.b.mul(call.scope.runs(), call.b.const(np.array([0, 1], np.uint32))))


def _uniform(call: Call, shape: Shape) -> Node:
    b, low, high = call.b, call.attr("low", 0.0), call.attr("high", 1.0)
    drawn = b.random_unit(_key(call), shape=shape)
    return b.add(b.mul(drawn, b.const(high - low, float32)), b.const(low, float32))


def _normal(call: Call, shape: Shape) -> Node:
    b = call.b
    scaled = b.mul(b.random_normal(_key(call), shape=shape), b.const(call.attr("scale", 1.0), float32))
    return b.add(scaled, b.const(call.attr("mean", 0.0), float32))


def _kind(call: Call, default: DType) -> DType:
    code = call.attr("dtype", 0)
    return dtype_of_code(call, code) if code else default


def _drawn(draw: Callable[[Call, Shape], Node], call: Call) -> Node:
    return cast(call, draw(call, call.lengths(call.items("shape", int) or ())), _kind(call, float32))


def _drawn_like(draw: Callable[[Call, Shape], Node], call: Call) -> Node:
    return cast(call, draw(call, call.x().shape), _kind(call, call.x().dtype))


ADAPTERS["RandomUniform"] = partial(_drawn, _uniform)
ADAPTERS["RandomUniformLike"] = partial(_drawn_like, _uniform)
ADAPTERS["RandomNormal"] = partial(_drawn, _normal)
ADAPTERS["RandomNormalLike"] = partial(_drawn_like, _normal)


@adapter("Bernoulli")
def _bernoulli(call: Call) -> Node:
    """1 with the probability in x, else 0."""
    x, b = call.x(), call.b
    ones = b.less(b.random_unit(_key(call), shape=x.shape), cast(call, x, float32))
    return cast(call, ones, _kind(call, x.dtype))


@adapter("Multinomial")
def _multinomial(call: Call) -> Node:
    """Numbers of classes, drawn with the softmax of each row of x as probabilities: how many classes have a sum of
    probabilities, up to and including their own, that is not above a random number."""
    x, b = call.x(), call.b
    count, kind = call.attr("sample_size", 1), _kind(call, int32)
    if len(x.shape) != 2 or count < 0 or same(x.shape[1], 0, call.op):
        raise call.fail(f"{count} samples of {show(x.shape)}; expected (batch, classes)")
    if kind not in (int32, int64):
        raise call.fail(f"the numbers of classes are {kind}; expected int32 or int64")
    sums = b.running_sum(b.softmax(cast(call, x, float32), axis=1), axis=1)
    drawn = b.random_unit(_key(call), shape=(x.shape[0], count, 1))
    above = b.less_equal(b.reshape(sums, shape=(x.shape[0], 1, x.shape[1])), drawn)
    found = b.reshape(b.reduce_sum(cast(call, above, int64), axes=(2,)), shape=(x.shape[0], count))
    return cast(call, b.minimum(found, b.sub(b.const(x.shape[1], int64), b.const(1, int64))), kind)


RANDOM: Final = frozenset(
    ("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial")
)
"""The ops of this file."""
