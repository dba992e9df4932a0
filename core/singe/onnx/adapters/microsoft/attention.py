"""com.microsoft's Attention and MultiHeadAttention: a cache, if there is one, grows by the keys of each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....dtypes import bool_, int32
from ....graph import Node
from ....ops.movement.move import numbered
from ....shapes import Dim, show
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part
from ..products.attention import appended, attended
from ..products.transformer import merged_heads, split_heads
from .fused import total

FILTER: Final = -10000.0
"""By default, what is added to the score of a masked key."""


def picked(call: Call, x: Node, axis: int, place: int) -> Node:
    """One place of an axis, without the axis."""
    y = part(call.b, x, axis, place, 1)
    return call.b.reshape(y, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


def parts(call: Call, x: Node, sizes: Sequence[Dim]) -> list[Node]:
    """Neighbouring parts of the last axis."""
    out, start = [], 0
    for size in sizes:
        out.append(part(call.b, x, len(x.shape) - 1, start, size))
        start = start + size
    return out


def attention_bias(call: Call, mask: Node | None, bias: Node | None, queries: Dim, keys: Dim, kind: Any) -> Node | None:
    """What is added to the scores (batch, heads, queries, keys): a bias, and the mask's filter value where it has a 0.

    The mask is (batch, keys), (batch, queries, keys) or (batch, 1, positions, positions) of zeros and ones; or (batch):
    how many keys a sequence has; or (2 · batch): the ends of the keys, then their starts.
    """
    if mask is None:
        return bias
    b, rank = call.b, len(mask.shape)
    if rank == 1:
        seen = _within(call, mask, keys)
    elif rank == 2:
        seen = b.reshape(mask, shape=(mask.shape[0], 1, 1, mask.shape[1]))
    elif rank == 3:
        seen = b.reshape(mask, shape=(mask.shape[0], 1, *mask.shape[1:]))
    elif rank == 4:
        seen = part(b, part(b, mask, 2, keys - queries, queries), 3, 0, keys)
    else:
        raise call.fail(f"the mask is {show(mask.shape)}; expected one to four axes")
    seen = seen if seen.dtype is bool_ else b.logical_not(b.equal(seen, b.const(0, seen.dtype)))
    filtered = b.const(call.attr("mask_filter_value", FILTER), kind)
    return total(call, b.where(seen, b.const(0, kind), filtered), bias)


def _within(call: Call, mask: Node, keys: Dim) -> Node:
    b, batch, count = call.b, call.x().shape[0], mask.shape[0]
    key = numbered(b, keys)
    bounds = [b.reshape(x, shape=(batch, 1, 1, 1)) for x in _halves(call, cast(call, mask, int32), count, batch)]
    seen = b.less(key, bounds[0])
    return seen if len(bounds) == 1 else b.logical_and(seen, b.less_equal(bounds[1], key))


def _halves(call: Call, mask: Node, count: Dim, batch: Dim) -> list[Node]:
    if count == batch:
        return [mask]
    if count == 2 * batch:
        return [part(call.b, mask, 0, 0, batch), part(call.b, mask, 0, batch, batch)]
    raise call.fail(f"the mask has {count} elements for {batch} sequences; expected one or two for each")


def refuse(call: Call, reason: str, *inputs: int, flags: Sequence[str] = ()) -> None:
    """Refuse a node with one of these inputs or flags."""
    given = [f"input {i}" for i in inputs if call.maybe(i) is not None] + [f for f in flags if call.flag(f)]
    if given:
        raise call.fail(f"{', '.join(given)}: {reason} not supported; export the model without")


@adapter("com.microsoft.Attention")
def _attention(call: Call) -> list[Node]:
    b, x, w, past = call.b, call.ranked(0, 3), call.ranked(1, 2), call.maybe(4)
    refuse(
        call,
        "shared buffers and rotary positions within Attention are",
        6,
        flags=("past_present_share_buffer", "do_rotary"),
    )
    heads, width = call.attr("num_heads", 0), call.number(w.shape[1], "the weights' shape")
    sizes = call.items("qkv_hidden_sizes", int) or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width:
        raise call.fail(f"the hidden sizes {sizes} do not add up to {width}")
    q, k, v = (split_heads(call, y, heads) for y in parts(call, total(call, b.matmul(x, w), call.maybe(2)), sizes))
    before: Dim = 0
    if past is not None:
        before = call.ranked(4, 5).shape[3]
        caches = (picked(call, past, 0, i) for i in range(2))
        k, v = (b.concat(c, y, axis=2) for c, y in zip(caches, (k, v), strict=True))
    queries, keys = q.shape[2], k.shape[2]
    bias = attention_bias(call, call.maybe(3), call.maybe(5), queries, keys, q.dtype)
    y = attended(
        call, q, k, v, bias, scale=call.attr("scale", 0.0), causal=call.flag("unidirectional"), past=before
    ).y  # fmt: skip
    if not any(call.outputs[1:]):
        return [merged_heads(call, y)]
    present = b.concat(*(b.reshape(c, shape=(1, *c.shape)) for c in (k, v)), axis=0)
    return [merged_heads(call, y), present]


@adapter("com.microsoft.MultiHeadAttention")
def _multi_head_attention(call: Call) -> list[Node]:
    refuse(call, "shared buffers and beams are", 8, 9)
    heads, past = call.attr("num_heads", 0), call.maybe(6)
    q, k, v = (
        x if len(x.shape) == 4 else split_heads(call, x, heads) for x in with_bias(call, 3, *unpacked(call, heads))
    )
    before: Dim = 0
    if past is not None:
        before = call.ranked(6, 4).shape[2]
        k, v = appended(call, 6, k), appended(call, 7, v)
    queries, keys = q.shape[2], k.shape[2]
    bias = attention_bias(call, call.maybe(4), call.maybe(5), queries, keys, q.dtype)
    steps = attended(
        call, q, k, v, bias, scale=call.attr("scale", 0.0), causal=call.flag("unidirectional"), past=before
    )  # fmt: skip
    return [merged_heads(call, steps.y), k, v, cast(call, steps.masked, q.dtype)]


def unpacked(call: Call, heads: int) -> list[Node]:
    """Queries, keys and values, which may be packed in one input (batch, length, heads, 3 or 2, size)."""
    q, k, v, b = call.ranked(0, 3, 5), call.maybe(1), call.maybe(2), call.b
    packed = [x for x in (q, k) if x is not None and len(x.shape) == 5]
    if packed:
        x = packed[0]
        batch, length, _, count, size = x.shape
        number = call.number(count, "the number of packed tensors")
        own = [b.reshape(picked(call, x, 3, i), shape=(batch, length, heads * size)) for i in range(number)]
        whole = own if x is q else [q, *own]
    else:
        if (k is None) != (v is None):
            raise call.fail("keys or values are missing; expected both, or one packed input")
        whole = [q, k or q, v or q]
    if len(whole) != 3:
        raise call.fail(f"{len(whole)} of queries, keys and values are given; expected all three")
    return whole


def with_bias(call: Call, i: int, *xs: Node) -> list[Node]:
    """Each of the tensors (batch, length, width) with its part of the bias that is input i; caches have theirs already."""
    bias = call.maybe(i)
    q, k, v = xs
    if any(len(x.shape) not in (3, 4) for x in xs):
        raise call.fail(f"got {', '.join(map(repr, xs))}; expected three or four axes each")
    if bias is None:
        return [q, k, v]
    call.ranked(i, 1)
    width = q.shape[-1]
    own = parts(call, bias, (width, width, bias.shape[0] - 2 * width))
    return [x if len(x.shape) == 4 else call.b.add(x, c) for x, c in zip((q, k, v), own, strict=True)]
