"""Layers with a state in place of a cache of keys: LinearAttention, and CausalConvWithState, which stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....graph import Node
from ....ops.control import repeated
from ....ops.products.attention import grouped_dot, scaled
from ....shapes import Dim, same, show
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part

RULES = ("linear", "gated", "delta", "gated_delta")


@adapter("LinearAttention")
def _linear_attention(call: Call) -> list[Node]:
    """A state S for each head: its decay, the correction of the value by what S knows of the key, the sum with key ⊗ value,
    and the query's answer q · S, one step of the sequence after the other."""
    b, rule = call.b, call.attr("update_rule", "gated_delta")
    if rule not in RULES:
        raise call.fail(f"update_rule is {rule!r}; expected one of {', '.join(RULES)}")
    query, past = call.x(), call.maybe(3)
    kind, wide = query.dtype, query.dtype.compute
    heads, of_keys = call.attr("q_num_heads", 0), call.attr("kv_num_heads", 0)
    if of_keys < 1 or heads < 1 or heads % of_keys:
        raise call.fail(f"q_num_heads is {heads}, kv_num_heads {of_keys}; expected a multiple of at least one")
    batch, length, width = call.ranked(0, 3).shape
    size, of_values = width // heads, call.ranked(2, 3).shape[2] // of_keys
    steps = {
        "query": _steps(call, query, query, heads, size),
        "key": _steps(call, call.x(1), query, of_keys, size),
        "value": _steps(call, call.x(2), query, of_keys, of_values),
    }
    for name, i, has in (("decay", 4, "gated" in rule), ("beta", 5, "delta" in rule)):
        if (call.maybe(i) is not None) != has:
            raise call.fail(f"the rule {rule!r} {'needs' if has else 'has no'} {name}")
        if has:
            x = call.ranked(i, 3)
            own = 1 if x.shape[-1] == 1 else of_keys  # or all heads share it
            of_head = name == "beta" or x.shape[-1] == own
            steps[name] = _steps(call, x, query, own, 1 if of_head else size)
    shape = (batch, of_keys, size, of_values)
    state = b.expand(b.const(0, wide), shape=shape) if past is None else b.reshape(cast(call, past, wide), shape=shape)

    def turn(before: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        number, out, s = before
        at = {name: b.gather(x, number, axis=0) for name, x in zip(steps, captured, strict=True)}
        key, value = at["key"], at["value"]
        if "decay" in at:
            s = b.mul(s, _column(b, b.exp(at["decay"])))
        if "beta" in at:
            value = b.mul(at["beta"], b.sub(value, b.dot(key, s)))
        s = b.add(s, b.mul(_column(b, key), value))
        answer = b.reshape(grouped_dot(b, at["query"], s), shape=(1, *out.shape[1:]))
        zero = b.const(0)
        return [b.add(number, b.const(1)), b.update_slice(out, answer, number, *[zero] * 4), s]

    room = b.expand(b.const(0, wide), shape=(length, batch, heads, 1, of_values))
    first = [b.const(0), room, state]
    captures = list(steps.values())
    _, out, last = turn(first, captures) if length == 1 else repeated(b, length, first, captures, turn)
    out = scaled(b, b.reshape(out, shape=(length, batch, heads * of_values)), call.attr("scale", 0.0), size)
    return [cast(call, b.transpose(out, perm=(1, 0, 2)), kind), cast(call, last, kind if past is None else past.dtype)]


def _steps(call: Call, x: Node, query: Node, heads: int, size: Dim) -> Node:
    """(batch, length, heads · size) as (length, batch, heads, 1, size), in the compute type."""
    wanted = (*query.shape[:2], heads * size)
    if len(x.shape) != 3 or not all(same(d, e, call.op) for d, e in zip(x.shape, wanted, strict=True)):
        raise call.fail(f"got {show(x.shape)}; expected {show(wanted)}")
    batch, length, _ = wanted
    y = call.b.reshape(cast(call, x, x.dtype.compute), shape=(batch, length, heads, 1, size))
    return call.b.transpose(y, perm=(1, 0, 2, 3, 4))


def _column(b: Any, x: Any) -> Any:
    """(…, 1, size) as (…, size, 1)."""
    return b.reshape(x, shape=(*x.shape[:-2], x.shape[-1], 1))


@adapter("CausalConvWithState")
def _causal_conv(call: Call) -> list[Node]:
    """A depthwise convolution over (batch, channels, length) that begins with the last elements of the previous call."""
    b, x, w, past = call.b, call.x(), call.x(1), call.maybe(3)
    activation = call.attr("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise call.fail(f"activation is {activation!r}; expected none, silu or swish")
    if len(x.shape) != 3 or len(w.shape) != 3:
        raise call.fail(f"got {show(x.shape)} and weights {show(w.shape)}; expected three axes each")
    channels, _, window = call.known_shape(w, "the weights' shape")
    kept = (*x.shape[:2], window - 1)
    whole = b.concat(b.expand(b.const(0, x.dtype), shape=kept) if past is None else past, x, axis=2)
    y = b.conv(
        whole, w, call.maybe(2), strides=(1,), dilations=(1,), before=(0,), after=(0,), group=channels
    )  # fmt: skip
    state = part(b, whole, 2, x.shape[2], window - 1)
    return [y if activation == "none" else b.silu(y), state]
