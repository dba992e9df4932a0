"""Attention: softmax(scale · q · kᵀ + mask) · v for each head; and rotary positions, with which its inputs are turned.

q is (…, heads, queries, size), k (…, heads of keys, keys, size), v (…, heads of keys, keys, size of values). If there are
fewer heads of keys, each serves a group of as many neighbouring heads of q. mask broadcasts to (…, heads, queries, keys):
bools say which keys a query sees, floats are added to its scores. A query that sees no key gets zeros.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import FLOATS, DType, bool_, int32
from ...errors import ShapeError
from ...shapes import Dim, at_least, show
from .._reference import products as reference
from .._row import Composite, as_dtype, register
from ..movement.move import amount


class Attended(NamedTuple):
    """The steps of an attention: scaled products of queries and keys, these capped, these with the mask, their softmax,
    and the sums of values."""

    scores: Any
    capped: Any
    masked: Any
    weights: Any
    y: Any


def attend(
    b: Any, q: Any, k: Any, v: Any, mask: Any = None, *,
    scale: float = 0.0, causal: bool = False, past: Dim = 0, softcap: float = 0.0, precision: DType | None = None,
) -> Attended:  # fmt: skip
    """Attention with its steps. The softmax is computed in `precision`, a compute type; by default in that of q."""
    for what, x in (("queries", q), ("keys", k), ("values", v)):
        if len(x.shape) < 2:
            raise ShapeError(f"attention: got {what} {show(x.shape)}; expected (…, heads, length, size)")
    wide = precision or q.dtype.compute
    group = _group(q, k)
    scores = b.dot(_grouped(b, _scaled(b, q, scale), group), _turned(b, k))
    scores = as_dtype(b, _ungrouped(b, scores, group), wide)
    capped = scores
    if softcap:
        cap = b.const(softcap, wide)
        capped = b.mul(b.tanh(b.div(scores, cap)), cap)
    masked, allowed = capped, mask
    if mask is not None and mask.dtype is not bool_:
        masked, allowed = b.add(capped, as_dtype(b, mask, wide)), None
    if causal:
        seen = seen_keys(b, q.shape[-2], k.shape[-2], past)
        allowed = seen if allowed is None else b.logical_and(allowed, seen)
    if allowed is not None:
        masked = b.where(allowed, masked, b.const(-math.inf, wide))
    weights = b.softmax(masked) if mask is None and not causal else _softmax(b, masked)
    y = b.dot(_grouped(b, as_dtype(b, weights, v.dtype), group), v)
    return Attended(scores, capped, masked, weights, _ungrouped(b, y, group))


def seen_keys(b: Any, queries: Dim, keys: Dim, past: Any) -> Any:
    """Whether a query sees a key: not those after it. past: how many keys precede the first query, a number, or integers
    that broadcast to (…, queries, keys)."""
    return b.less_equal(_numbered(b, keys), positions(b, queries, past))


def positions(b: Any, queries: Dim, past: Any) -> Any:
    """The place of each query among the keys, as a column."""
    at = b.reshape(_numbered(b, queries), shape=(queries, 1))
    if isinstance(past, int) and past == 0:
        return at
    return b.add(at, as_dtype(b, past, int32) if hasattr(past, "dtype") else amount(b, past, int32))


def _numbered(b: Any, count: Dim) -> Any:
    return b.arange(b.const(0, int32), b.const(1, int32), count=count)


def _scaled(b: Any, q: Any, scale: float) -> Any:
    size = q.shape[-1]
    if scale or isinstance(size, int):
        return b.mul(q, b.const(scale or 1 / math.sqrt(max(size, 1)), q.dtype))
    return b.div(q, b.sqrt(amount(b, size, q.dtype)))


def _softmax(b: Any, x: Any) -> Any:
    """The softmax along the last axis; zeros where all elements are −∞."""
    lowest = b.const(np.finfo(x.dtype.numpy).min, x.dtype)
    e = b.exp(b.sub(x, b.maximum(b.reduce_max(x, axes=(-1,)), lowest)))
    total = b.reduce_sum(e, axes=(-1,))  # at least 1 if any element is finite
    return b.div(e, b.maximum(total, b.const(1, x.dtype)))


def _group(q: Any, k: Any) -> int:
    """How many heads of q a head of keys serves."""
    if len(q.shape) < 3 or len(k.shape) < 3 or q.shape[-3] == k.shape[-3]:
        return 1
    heads, of_keys = q.shape[-3], k.shape[-3]
    if not isinstance(heads, int) or not isinstance(of_keys, int) or of_keys == 0 or heads % of_keys:
        raise ShapeError(
            f"attention: {heads} heads of queries for {of_keys} heads of keys; expected a multiple, of known numbers"
        )
    return heads // of_keys


def _grouped(b: Any, x: Any, group: int) -> Any:
    """(…, heads, length, size) as (…, heads of keys, group · length, size): one product for all heads of a group."""
    if group == 1:
        return x
    *outer, heads, length, size = x.shape
    return b.reshape(x, shape=(*outer, heads // group, group * length, size))


def _ungrouped(b: Any, x: Any, group: int) -> Any:
    if group == 1:
        return x
    *outer, heads, length, size = x.shape
    return b.reshape(x, shape=(*outer, heads * group, length // group, size))


def _turned(b: Any, x: Any) -> Any:
    rank = len(x.shape)
    return b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _attention(
    b: Any, q: Any, k: Any, v: Any, mask: Any = None, *,
    scale: float = 0.0, causal: bool = False, past: Dim = 0, softcap: float = 0.0,
) -> Any:  # fmt: skip
    return attend(b, q, k, v, mask, scale=scale, causal=causal, past=past, softcap=softcap).y


def _rotary_embedding(b: Any, x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """The first 2 · n elements of the last axis, as n pairs, each turned by the angle whose cosine and sine are given; n
    is the last length of cos."""
    kind, wide = x.dtype, x.dtype.compute
    *outer, size = x.shape
    pairs = cos.shape[-1]
    if not at_least(size - 2 * pairs, 0):
        raise ShapeError(f"rotary_embedding: {show(cos.shape)} turns {pairs} pairs, the input has {size} elements")
    x, cos, sin = (as_dtype(b, y, wide) for y in (x, cos, sin))

    def part(first: Dim, step: int, count: Dim) -> Any:
        starts, steps = (*(0,) * len(outer), first), (*(1,) * len(outer), step)
        return b.slice(x, starts=starts, steps=steps, sizes=(*outer, count))

    left, right = (part(i, 2, pairs) for i in (0, 1)) if interleaved else (part(i * pairs, 1, pairs) for i in (0, 1))
    turned = [b.sub(b.mul(left, cos), b.mul(right, sin)), b.add(b.mul(left, sin), b.mul(right, cos))]
    if interleaved:
        columns = [b.reshape(y, shape=(*y.shape, 1)) for y in turned]
        turned = [b.reshape(b.concat(*columns, axis=-1), shape=(*outer, 2 * pairs))]
    rest = size - 2 * pairs
    out = [*turned, part(2 * pairs, 1, rest)] if rest != 0 else turned
    return as_dtype(b, b.concat(*out, axis=-1) if len(out) > 1 else out[0], kind)


register(
    Composite(name="attention", doc="softmax(scale · q · kᵀ + mask) · v for each head (…, heads, length, size); scale 0: 1 / √size. "
              "causal: a query sees no later keys; past: how many keys precede the first query. softcap: scores are kept within ±softcap",
              lower=_attention, reference=reference.attention, dtypes=FLOATS, tolerance=64, floor=1e-5),
    Composite(name="rotary_embedding", doc="pairs of elements of the last axis turned by angles with these cosines and sines: an element of "
              "the first half and one of the second, or interleaved: neighbours", lower=_rotary_embedding,
              reference=reference.rotary_embedding, dtypes=FLOATS, tolerance=16),
)  # fmt: skip
