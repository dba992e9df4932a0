"""Ops of com.microsoft on tensors whose channels are the last axis: convolutions, pools and norms of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....dtypes import float32
from ....graph import Node
from ....ops.elementwise.gated import swish
from .._call import ADAPTERS, Call, adapter, tensors_of
from ..elementwise.basic import cast

VERSION: Final = 17
"""The version of ONNX's ops as which the ops of com.microsoft behave: reductions have their axes in an attribute."""


def through(call: Call, op: str, *inputs: Node | None, version: int = VERSION) -> Node:
    """The one output of another op with the node's attributes."""
    made = ADAPTERS[op](replace(call, op=op, version=version, inputs=inputs, outputs=call.outputs[:1]))
    return tensors_of(made)[0]


def channels_last(call: Call, x: Node) -> Node:
    """With the channels as last axis, from the second."""
    return call.b.transpose(x, perm=(0, *range(2, len(x.shape)), 1))


def channels_first(call: Call, x: Node) -> Node:
    """With the channels as second axis, from the last."""
    return call.b.transpose(x, perm=(0, len(x.shape) - 1, *range(1, len(x.shape) - 1)))


@adapter("com.microsoft.NhwcMaxPool")
def _max_pool(call: Call) -> Node:
    return channels_last(call, through(call, "MaxPool", channels_first(call, call.x())))


@adapter("com.microsoft.NhwcConv")
def _conv(call: Call) -> Node:
    return channels_last(call, through(call, "Conv", channels_first(call, call.x()), call.x(1), call.maybe(2)))


@adapter("com.microsoft.NhwcFusedConv")
def _fused_conv(call: Call) -> Node:
    given, added = channels_first(call, call.x()), call.maybe(3)
    added = None if added is None else channels_first(call, added)
    return channels_last(call, through(call, "com.microsoft.FusedConv", given, call.x(1), call.maybe(2), added))


# --- norms of groups of channels -------------------------------------------------------------------------------------


def _group_norm(call: Call, x: Node) -> Node:
    """In float32, with an activation if the node says so."""
    wide, activation = cast(call, x, float32), call.attr("activation", 0)
    if activation not in (0, 1):
        raise call.fail(f"activation is {activation}; expected 0 (none) or 1 (SiLU)")
    is_last = call.flag("channels_last", True)
    facts = {"num_groups": call.attr("groups", 0), "epsilon": call.attr("epsilon", 1e-5)}
    scale, shift = (cast(call, call.x(i), float32) for i in (1, 2))
    given = replace(call, attributes=facts)
    y = through(given, "GroupNormalization", channels_first(call, wide) if is_last else wide, scale, shift, version=21)
    y = channels_last(call, y) if is_last else y
    return cast(call, swish(call.b, y, 1.0) if activation else y, x.dtype)


@adapter("com.microsoft.GroupNorm")
def _groups(call: Call) -> Node:
    return _group_norm(call, call.ranked(0, 4))


@adapter("com.microsoft.SkipGroupNorm")
def _skip_groups(call: Call) -> list[Node]:
    """The norm of x + skip + bias, and that sum; a skip of two axes has one number for each channel."""
    b, x, skip, bias = call.b, call.ranked(0, 4), call.ranked(3, 2, 4), call.maybe(4)
    around = (1, 1) if call.flag("channels_last", True) else ()
    behind = () if around else (1, 1)
    if len(skip.shape) == 2:
        skip = b.reshape(skip, shape=(skip.shape[0], *around, skip.shape[1], *behind))
    total = b.add(x, skip)
    if bias is not None:
        total = b.add(total, b.reshape(bias, shape=(*bias.shape, *behind)))
    return [_group_norm(call, total), total]
