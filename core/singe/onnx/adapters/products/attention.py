"""Attention, with its masks, caches and further outputs, and FlexAttention: the row `attention`."""

from __future__ import annotations

import math
from typing import Any

from ....dtypes import DType, bool_, int32
from ....graph import Node
from ....ops.products.attention import Attended, attend, grouped_dot, seen_keys
from ....shapes import Dim, require, show
from .._call import Call, adapter, tensors_of
from ..elementwise.basic import cast, dtype_of_code
from .transformer import merged_heads, split_heads


@adapter("Attention")
def _attention(call: Call) -> list[Node]:
    b, rank = call.b, len(call.ranked(0, 3, 4).shape)
    q, k, v = (call.ranked(i, rank) for i in range(3))
    packed = rank == 3
    if packed:
        heads, of_keys = call.attr("q_num_heads", 0), call.attr("kv_num_heads", 0)
        q, k, v = (split_heads(call, x, h) for x, h in ((q, heads), (k, of_keys), (v, of_keys)))
    past: Dim = 0
    if call.maybe(4) is not None:
        past = call.ranked(4, 4).shape[2]
        k, v = (appended(call, i, x) for i, x in ((4, k), (5, v)))
    causal, mask, counts = call.flag("is_causal"), call.maybe(3), call.maybe(6)
    queries, keys = q.shape[2], k.shape[2]
    if mask is not None:
        mask = _padded(call, mask, keys)
    first: Dim | Node = past
    if counts is not None:  # only so many keys of each batch are in use, and the last of these are those of the queries
        counts = b.reshape(cast(call, counts, int32), shape=(q.shape[0], 1, 1, 1))
        end = b.sub(counts, b.const(1, int32))
        mask = both(call, mask, seen_keys(b, 1, keys, end))
        first = b.sub(counts, b.cast(b.const(queries), to=int32))
    before, after = (_window(call, name) for name in ("left_window_size", "right_window_size"))
    after = 0 if causal and counts is not None else after
    if before is not None or after is not None:
        mask = both(call, mask, seen_keys(b, queries, keys, first, before, after))
    steps = attended(
        call, q, k, cast(call, v, q.dtype), mask, scale=call.attr("scale", 0.0), causal=causal and counts is None,
        past=past, softcap=call.attr("softcap", 0.0), precision=_precision(call, q),
    )  # fmt: skip
    mode = call.attr("qk_matmul_output_mode", 0)
    if not 0 <= mode <= 3:
        raise call.fail(f"qk_matmul_output_mode is {mode}; expected 0 to 3")
    y = merged_heads(call, steps.y) if packed else steps.y
    return [y, k, v, cast(call, steps[mode], q.dtype)]


def attended(
    call: Call, q: Node, k: Node, v: Node, mask: Node | None, *,
    sink: Node | None = None, precision: DType | None = None, **options: Any,
) -> Attended:  # fmt: skip
    """The steps of an attention; its result is a node of the row `attention` if that has all options."""
    steps = attend(call.b, q, k, v, mask, sink=sink, precision=precision, **options)
    if sink is not None or precision not in (None, q.dtype.compute):
        return steps
    return steps._replace(y=call.b.attention(q, k, v, mask, **options))


def appended(call: Call, i: int, x: Node) -> Node:
    """The keys or values of the cache that is input i, (batch, heads, length, size), and then those of x."""
    cache = call.ranked(i, 4)
    batch, heads, _, size = x.shape
    return call.b.concat(call.b.reshape(cache, shape=(batch, heads, cache.shape[2], size)), x, axis=2)


def _window(call: Call, name: str) -> int | None:
    size = call.attr(name, -1)
    if size < -1:
        raise call.fail(f"{name} is {size}; expected at least -1")
    return None if size == -1 else size


def _precision(call: Call, q: Node) -> DType:
    """The type of the softmax: at least the compute type."""
    kind = q.dtype.compute
    if "softmax_precision" not in call.attributes:
        return kind
    asked = dtype_of_code(call, call.attr("softmax_precision", 1))
    if not asked.is_float:
        raise call.fail(f"softmax_precision is {asked}; expected a type of floats")
    return max(kind, asked.compute, key=lambda k: k.bits)


def _padded(call: Call, mask: Node, keys: Dim) -> Node:
    """A mask for all keys: none sees those that it does not name."""
    if not mask.shape:
        raise call.fail("the mask is a scalar; expected at least one axis, that of the keys")
    missing = keys - mask.shape[-1]
    if missing == 0:
        return mask
    require(missing, f"{call.op}: the mask {show(mask.shape)} is for more than {keys} keys")
    none = (0,) * (len(mask.shape) - 1)
    fill = call.b.const(False if mask.dtype is bool_ else -math.inf, mask.dtype)
    return call.b.pad(mask, fill, before=(*none, 0), after=(*none, missing), mode="constant")


def both(call: Call, mask: Node | None, seen: Node) -> Node:
    """A mask, of bools or floats, without the keys that are not seen."""
    b = call.b
    if mask is None:
        return seen
    return b.logical_and(mask, seen) if mask.dtype is bool_ else b.where(seen, mask, b.const(-math.inf, mask.dtype))


@adapter("ai.onnx.preview.FlexAttention")
def _flex_attention(call: Call) -> Node:
    """Attention whose scores and weights graphs of the model change."""
    b, (q, k, v) = call.b, (call.ranked(i, 4) for i in range(3))
    wide = _precision(call, q)
    steps = attend(b, q, k, v, scale=call.attr("scale", 0.0), precision=wide)
    scores = _changed(call, "score_mod", steps.scores)
    weights = steps.weights if scores is steps.scores else b.softmax(scores)
    weights = _changed(call, "prob_mod", weights)
    return cast(call, grouped_dot(b, weights, cast(call, v, wide)), v.dtype)


def _changed(call: Call, name: str, x: Node) -> Node:
    if name not in call.attributes:
        return x
    made = tensors_of(call.scope.within(None).outputs(call.subgraph(name), [x]))
    if [(y.shape, y.dtype) for y in made] != [(x.shape, x.dtype)]:
        raise call.fail(f"{name} gives {made}; expected {x!r}")
    return made[0]
