"""com.microsoft's GroupQueryAttention and DecoderMaskedMultiHeadAttention: the keys and values of a call go to the places
of a cache that the lengths of the sequences name.
"""

from __future__ import annotations

from ....dtypes import int32
from ....graph import Node
from ....ops.movement.move import numbered
from ....ops.products.attention import seen_keys
from ....shapes import Dim, dim_max
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part
from ..products.attention import appended, attended, both
from ..products.transformer import merged_heads, rotated, split_heads
from .attention import attention_bias, parts, refuse, with_bias


@adapter("com.microsoft.GroupQueryAttention")
def _group_query_attention(call: Call) -> list[Node]:
    """Each sequence has seqlens_k + 1 keys with those of this call, which are the last. The cache is as long as all keys,
    or longer."""
    b = call.b
    refuse(call, "quantised caches are", 12, 13)
    refuse(call, "a cache that slides is", flags=("sliding_window_cache",))
    q, k, v = _heads(call)
    batch, _, queries, _ = q.shape
    ends = b.add(b.reshape(cast(call, call.x(5), int32), shape=(batch, 1)), b.const(1, int32))
    first = b.maximum(b.sub(ends, b.cast(b.const(queries), to=int32)), b.const(0, int32))  # (batch, 1)
    if call.flag("do_rotary"):
        places = call.maybe(9)
        if places is None:
            places = b.add(numbered(b, queries), first)
        cos, sin = (b.gather(call.x(i), places, axis=0) for i in (7, 8))
        q, k = (rotated(call, x, cos, sin, cos.shape[-1] * 2, call.flag("rotary_interleaved")) for x in (q, k))
    keys = call.length(6)
    k, v = (_placed(call, _cache(call, i), x, first, keys) for i, x in ((3, k), (4, v)))
    first, ends = (b.reshape(x, shape=(batch, 1, 1, 1)) for x in (first, ends))
    window = call.attr("local_window_size", -1)
    if call.flag("causal", True):
        seen = seen_keys(b, queries, keys, first, window - 1 if window > 0 else None)
    else:
        seen = seen_keys(b, 1, keys, b.sub(ends, b.const(1, int32)))
    bias = call.maybe(10)
    mask = seen if bias is None else both(call, part(b, bias, 3, 0, keys), seen)
    sink = call.maybe(11)
    if sink is not None:
        sink = b.reshape(sink, shape=(sink.shape[0], 1, 1))
    elif call.attr("smooth_softmax", 0) == 1:
        sink = b.const(0, q.dtype)
    steps = attended(
        call, q, k, v, mask, scale=call.attr("scale", 0.0), softcap=call.attr("softcap", 0.0), sink=sink, keys=keys
    )  # fmt: skip
    scores = b.where(seen, steps.masked, b.const(0, steps.masked.dtype))
    shown = steps.weights if call.attr("qk_output", 0) == 2 else scores
    return [merged_heads(call, steps.y), k, v, cast(call, shown, q.dtype)]


def _heads(call: Call) -> tuple[Node, Node, Node]:
    """Queries, keys and values (batch, heads, length, size), which may come as one input."""
    b, heads, of_keys = call.b, call.attr("num_heads", 0), call.attr("kv_num_heads", 0)
    if heads < 1 or of_keys < 1:
        raise call.fail(f"got {heads} heads of queries and {of_keys} of keys; expected at least one of each")
    q, k, v = call.ranked(0, 3), call.maybe(1), call.maybe(2)
    if k is None or v is None:
        size = _share(call, q, heads + 2 * of_keys)
        q, k, v = parts(call, q, (heads * size, of_keys * size, of_keys * size))
    q, k, v = (split_heads(call, x, h) for x, h in ((q, heads), (k, of_keys), (v, of_keys)))
    if call.maybe(14) is not None:
        epsilon = call.attr("qk_norm_epsilon", 1e-6)
        q, k = (b.rms_norm(x, call.x(i), epsilon=epsilon) for x, i in ((q, 14), (k, 15)))
    return q, k, v


def _share(call: Call, x: Node, count: int) -> Dim:
    """The width of each of the equal parts that a packed input has."""
    width = x.shape[-1]
    if isinstance(width, int) and width % count:
        raise call.fail(f"the packed input has the width {width}; expected a multiple of {count}")
    return width // count


def _cache(call: Call, i: int) -> Node | None:
    """A cache (batch, heads, length, size), which may be omitted."""
    return None if call.maybe(i) is None else call.ranked(i, 4)


def _placed(call: Call, cache: Node | None, x: Node, first: Node, keys: Dim) -> Node:
    """The cache, with room for all keys, with x (batch, heads, length, size) at the places from `first` (batch, 1) on."""
    b = call.b
    batch, heads, length, size = x.shape
    if cache is None and length == keys:
        return x
    room = keys if cache is None else dim_max(keys, cache.shape[2])
    if cache is not None and room == cache.shape[2]:  # in place, if the cache is not needed afterwards
        whole = b.reshape(cache, shape=(batch, heads, room, size))
        places = b.reshape(b.add(numbered(b, length), first), shape=(batch, 1, length, 1))
        return b.scatter_elements(whole, x, b.expand(places, shape=x.shape), axis=2)
    place = b.sub(numbered(b, room), first)  # (batch, room)
    count = b.cast(b.const(length), to=int32)
    is_new = b.logical_and(b.less_equal(b.const(0, int32), place), b.less(place, count))
    rows = b.reshape(b.transpose(x, perm=(0, 2, 1, 3)), shape=(batch * length, heads, size))
    row = b.reshape(numbered(b, batch), shape=(batch, 1))
    inside = b.clip(place, b.const(0, int32), b.sub(count, b.const(1, int32)))
    new = b.transpose(b.gather(rows, b.add(b.mul(row, count), inside), axis=0), perm=(0, 2, 1, 3))
    zero = b.const(0, x.dtype)
    old = zero
    if cache is not None:
        old = b.reshape(cache, shape=(batch, heads, cache.shape[2], size))
        if cache.shape[2] != room:
            old = b.pad(old, zero, before=(0,) * 4, after=(0, 0, room - cache.shape[2], 0), mode="constant")
    return b.where(b.reshape(is_new, shape=(*is_new.shape[:1], 1, room, 1)), new, old)


@adapter("com.microsoft.DecoderMaskedMultiHeadAttention")
def _decoder_masked(call: Call) -> list[Node]:
    """One query for each sequence: over its own keys, in a cache that grows or has room, or over those of an encoder."""
    refuse(call, "beams are", 9)
    b, heads = call.b, call.attr("num_heads", 0)
    q, k, v = call.ranked(0, 3), call.maybe(1), call.maybe(2)
    if k is None or v is None:
        q, k, v = parts(call, q, (_share(call, q, 3),) * 3)
    q, k, v = (x if len(x.shape) == 4 else split_heads(call, x, heads) for x in with_bias(call, 10, q, k, v))
    past, mask, bias, seen = _cache(call, 5), call.maybe(3), call.maybe(4), None
    if past is not None and call.flag("past_present_share_buffer"):
        at = b.reshape(call.x(7), shape=())
        zero = b.const(0, at.dtype)
        k, v = (b.update_slice(c, x, zero, zero, at, zero) for c, x in ((past, k), (call.ranked(6, 4), v)))
        seen = at
    elif past is not None:
        k, v = appended(call, 5, k), appended(call, 6, v)
    named = (x.shape[-1] for x in (mask, bias) if x is not None and len(x.shape) > 1)
    keys = next(named, k.shape[2])  # a shared cache may have room for more
    bias = attention_bias(call, mask, bias, q.shape[2], keys, q.dtype)
    if seen is not None:
        seen = seen_keys(b, 1, keys, seen)
        bias = seen if bias is None else both(call, bias, seen)
    steps = attended(call, q, k, v, bias, scale=call.attr("scale", 0.0), keys=keys)
    return [merged_heads(call, steps.y), k, v, cast(call, steps.masked, q.dtype)]
