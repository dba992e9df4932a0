"""Random numbers. A node with a seed in the file draws the same numbers in every run; equal seeds, equal numbers. Without
one, its key is made of the run's and of the name of its output, with those of the calls of functions that it is in; in a
loop also of the number of the turn. Each run takes one key of a sequence that is a state of the model.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from ....dtypes import DType, bool_, float32, int32, int64
from ....graph import Graph, GraphState, Node
from ....runtime.random_keys import after, as_array
from ....shapes import Shape, same, show
from ...model import OnnxGraph, OnnxModel, OnnxNode
from ...scope import Scope, named, owned
from .._call import ADAPTERS, Call, adapter
from .basic import cast, dtype_of_code


def is_random(model: OnnxModel) -> bool:
    """Whether runs of the model draw different numbers."""

    def among(nodes: Iterable[OnnxNode], off: frozenset[str]) -> bool:
        """off: the names of constants that say that a Dropout drops nothing."""
        found = list(nodes)
        off |= {n.outputs[0] for n in found if n.op_type == "Constant" and _is_false(n.attributes.get("value"))}
        return any(
            ("seed" not in n.attributes and (n.op_type in RANDOM or _drops(n, off)))
            or any(among(g.nodes, off | _off(g)) for g in owned(n))
            for n in found
        )

    return among(model.graph.nodes, _off(model.graph)) or any(among(f.nodes, frozenset()) for f in model.functions)


def _drops(node: OnnxNode, off: frozenset[str]) -> bool:
    """Whether it is a Dropout that may be in training."""
    return node.op_type == "Dropout" and len(node.inputs) > 2 and node.inputs[2] not in off | {""}


def _off(graph: OnnxGraph) -> frozenset[str]:
    given = {v.name for v in graph.inputs}
    return frozenset(name for name, x in graph.initializers.items() if name not in given and _is_false(x))


def _is_false(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size == 1 and not value.any()


def with_key_state(graph: Graph, scope: Scope) -> Graph:
    """The graph with the state that its main scope's nodes may read: a sequence of keys."""
    leaf, b = scope.sequence, scope.builder
    state = GraphState(leaf, leaf.name, None, b.add(leaf, b.const(as_array(after((0, 0), 1)))), 1)
    return replace(graph, states=(*graph.states, state))


def key_of(call: Call) -> Node:
    """The key of a node's numbers."""
    if "seed" in call.attributes:
        (seed,) = struct.unpack("<I", struct.pack("<f", call.attr("seed", 0.0)))
        return call.b.const(np.array([seed, 0], np.uint32))
    return named(call.b, call.scope.key(), call.scope.path(call.outputs[0]))


def _uniform(call: Call, shape: Shape) -> Node:
    b, low, high = call.b, call.attr("low", 0.0), call.attr("high", 1.0)
    drawn = b.random_unit(key_of(call), shape=shape)
    return b.add(b.mul(drawn, b.const(high - low, float32)), b.const(low, float32))


def _normal(call: Call, shape: Shape) -> Node:
    b = call.b
    scaled = b.mul(b.random_normal(key_of(call), shape=shape), b.const(call.attr("scale", 1.0), float32))
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
    ones = b.less(b.random_unit(key_of(call), shape=x.shape), cast(call, x, float32))
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
    drawn = b.random_unit(key_of(call), shape=(x.shape[0], count, 1))
    above = b.less_equal(b.reshape(sums, shape=(x.shape[0], 1, x.shape[1])), drawn)
    found = b.reshape(b.reduce_sum(cast(call, above, int64), axes=(2,)), shape=(x.shape[0], count))
    return cast(call, b.minimum(found, b.sub(b.const(x.shape[1], int64), b.const(1, int64))), kind)


@adapter("Dropout")
def _dropout(call: Call) -> list[Node]:
    """Inference drops nothing, and its mask is all true. Training drops the same elements in every run if the file has a
    seed, and otherwise others in every run. An input may decide whether a run is training."""
    x, b = call.x(), call.b
    training = b.const(np.array(False)) if call.maybe(2) is None else b.reshape(call.x(2), shape=())
    known = b.value_of(training)
    if known is not None and not known:
        mask = b.const(np.array(True), bool_ if call.version >= 10 else x.dtype)
        return [x, b.expand(mask, shape=x.shape)]
    ratio = b.const(0.5) if call.maybe(1) is None else cast(call, b.reshape(call.x(1), shape=()), float32)
    value = b.value_of(ratio)
    if value is not None and not 0 <= value < 1:
        raise call.fail(f"the ratio is {value}; expected at least 0 and less than 1")
    one = b.const(1.0)
    seeded = "seed" in call.attributes
    drawn = (
        b.random_uniform(b.const(call.attr("seed", 0)), shape=x.shape)
        if seeded
        else b.random_unit(key_of(call), shape=x.shape)
    )
    kept = b.greater_equal(drawn, ratio)
    kept = b.logical_or(kept, b.logical_not(training))
    scale = b.where(training, b.div(one, b.sub(one, ratio)), one)
    return [b.where(kept, b.mul(x, cast(call, scale, x.dtype)), b.const(0, x.dtype)), kept]


RANDOM: Final = frozenset(
    ("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial")
)
"""The ops that draw wherever they are; Dropout, only in training."""
