"""ai.onnx.preview.training: one step of an optimiser over any number of tensors.

The inputs are the rate of learning, the number of steps so far, and then all tensors, all of their gradients, and all of
each state; the outputs are the next tensors, then the next of each state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from ....graph import Node
from .._call import ADAPTERS, Call
from ..elementwise.basic import cast

Step: TypeAlias = "Callable[[Call, Node, Node, Node, Node, Sequence[Node]], Sequence[Node]]"
"""(the node, rate, count, tensor, gradient, states) ↦ the next tensor and states."""


def _number(call: Call, name: str, default: float, x: Node) -> Node:
    return call.b.const(call.attr(name, default), x.dtype)


def _decayed(call: Call, x: Node, gradient: Node) -> Node:
    """The gradient of the loss with the penalty for the tensor's square added."""
    return call.b.add(call.b.mul(_number(call, "norm_coefficient", 0.0, x), x), gradient)


def _momentum(call: Call, rate: Node, count: Node, x: Node, g: Node, states: Sequence[Node]) -> Sequence[Node]:
    b, (v,) = call.b, states
    mode = call.attr("mode", "")
    if mode not in ("standard", "nesterov"):
        raise call.fail(f"mode is {mode!r}; expected 'standard' or 'nesterov'")
    g, alpha, beta = _decayed(call, x, g), _number(call, "alpha", 0.0, x), _number(call, "beta", 0.0, x)
    first = b.equal(count, b.const(0, count.dtype))
    v = b.add(b.mul(alpha, v), b.mul(b.where(first, b.const(1.0, x.dtype), beta), g))
    step = v if mode == "standard" else b.add(g, b.mul(alpha, v))
    return b.sub(x, b.mul(rate, step)), v


def _adagrad(call: Call, rate: Node, count: Node, x: Node, g: Node, states: Sequence[Node]) -> Sequence[Node]:
    b, (h,) = call.b, states
    g, one = _decayed(call, x, g), b.const(1.0, x.dtype)
    rate = b.div(rate, b.add(one, b.mul(cast(call, count, x.dtype), _number(call, "decay_factor", 0.0, x))))
    h = b.add(h, b.mul(g, g))
    return b.sub(x, b.div(b.mul(rate, g), b.add(b.sqrt(h), _number(call, "epsilon", 0.0, x)))), h


def _adam(call: Call, rate: Node, count: Node, x: Node, g: Node, states: Sequence[Node]) -> Sequence[Node]:
    b, (v, h) = call.b, states
    one, g = b.const(1.0, x.dtype), _decayed(call, x, g)
    alpha, beta = _number(call, "alpha", 0.9, x), _number(call, "beta", 0.999, x)
    v = b.add(b.mul(alpha, v), b.mul(b.sub(one, alpha), g))
    h = b.add(b.mul(beta, h), b.mul(b.sub(one, beta), b.mul(g, g)))
    turn = cast(call, count, x.dtype)
    scale = b.div(b.sqrt(b.sub(one, b.pow(beta, turn))), b.sub(one, b.pow(alpha, turn)))
    rate = b.where(b.greater(count, b.const(0, count.dtype)), b.mul(rate, scale), rate)
    x = b.sub(x, b.div(b.mul(rate, v), b.add(b.sqrt(h), _number(call, "epsilon", 0.0, x))))
    return b.mul(b.sub(one, _number(call, "norm_coefficient_post", 0.0, x)), x), v, h


def _optimise(states: int, step: Step, call: Call) -> list[Node]:
    inputs = call.all()
    each, left = divmod(len(inputs) - 2, states + 2)
    if left or each < 1:
        raise call.fail(f"got {len(inputs)} tensors; expected 2, and a multiple of {states + 2}")
    rate, count, *given = inputs
    made: list[Any] = []
    for k in range(each):
        x, g, *own = given[k::each]
        own_rate = cast(call, call.b.reshape(rate, shape=()), x.dtype)
        made.append(step(call, own_rate, call.b.reshape(count, shape=()), x, g, own))
    return [part[k] for k in range(states + 1) for part in made]


for name, states, step in (("Momentum", 1, _momentum), ("Adagrad", 1, _adagrad), ("Adam", 2, _adam)):
    ADAPTERS[f"ai.onnx.preview.training.{name}"] = partial(_optimise, states, step)
