"""ai.onnx.preview.training's Gradient: the derivatives of a value of the enclosing graph by others.

The nodes between the tensors named by `xs` and `zs` and the one named by `y` are imported once more, over inputs of their own,
and differentiated; the node's inputs take the place of these. So they need not be the tensors that are named. Constants and
other values of the graph are read where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....dtypes import FLOATS
from ....graph import Node
from ....graph.gradients import gradient
from ....graph.transform import inline
from ...model import OnnxValue
from .._call import Call, adapter, tensors_of


@adapter("ai.onnx.preview.training.Gradient")
def _gradient(call: Call) -> Sequence[Node]:
    """Of the sum of y's elements, if it has several."""
    b, given, whole = call.b, call.all(), call.scope.graph
    by, others = call.items("xs", str) or (), call.items("zs", str) or ()
    names, y = (*by, *others), call.attr("y", "")
    if whole is None:
        raise call.fail("it stands in a function; expected it in a graph, whose names it has")
    if not by or len(set(names)) < len(names) or len(given) != len(names):
        raise call.fail(f"{len(given)} inputs for xs {by} and zs {others}; expected one for each of different names")
    for name, x in zip(by, given, strict=False):
        if x.dtype not in FLOATS:
            raise call.fail(f"{name!r} in xs is {x.dtype}; expected a float type, or the name in zs")
    nodes = tuple(n for n in whole.nodes if not set(n.outputs) & set(names))
    if not any(y in n.outputs for n in nodes):
        raise call.fail(f"y is {y!r}; expected a result of the nodes that follow {names}")
    part = replace(
        whole, nodes=nodes, initializers={}, sparse_initializers={},
        inputs=tuple(OnnxValue(name, None) for name in names), outputs=(OnnxValue(y, None),),
    )  # fmt: skip
    captures: dict[Node, Node] = {}
    inner = call.scope.within(captures)
    inputs = [b.input(name, x.shape, x.dtype) for name, x in zip(names, given, strict=True)]
    made = tensors_of(inner.outputs(part, inputs))
    if made[0].dtype not in FLOATS:
        raise call.fail(f"y is {y!r} of {made[0].dtype}; expected a float type")
    forward = b.graph((*inputs, *captures.values()), made, inner.checks)
    seed = b.expand(b.const(1, made[0].dtype), shape=made[0].shape)
    found = gradient(forward, b, [seed], inputs[: len(by)])
    return inline(b.graph(forward.inputs, found, inner.checks), b, [*given, *captures])
