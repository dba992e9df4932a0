"""Attention: softmax(scale · q · kᵀ + mask) · v for each head; and rotary positions, with which its inputs are turned.

q is (…, heads, queries, size), k (…, heads of keys, keys, size), v (…, heads of keys, keys, size of values). If there are
fewer heads of keys, each serves a group of as many neighbouring heads of q. mask broadcasts to (…, heads, queries, keys):
bools say which keys a query sees, floats are added to its scores. A query that sees no key gets zeros. Keys and values may also be
rows in eight bits (eight_bit_rows.py).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from ...dtypes import FLOATS, DType, bool_, int32
from ...errors import ShapeError, SizeNeeded
from ...shapes import Dim, require, show, symbols
from ..kinds import Composite, as_dtype, matrix_transpose, register
from ..movement.move import amount, numbered, numbered_along
from .eight_bit_rows import floats_of_rows

HELD: Final = (*FLOATS, int32)
"""The types in which keys and values are stored."""


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
    scale: float = 0.0, causal: bool = False, past: Dim = 0, softcap: float = 0.0, sink: Any = None,
    precision: DType | None = None, keys: Dim | None = None,
) -> Attended:  # fmt: skip
    """Attention with its steps. sink: scores (…, heads, 1, 1) of one more key, which has no value. The softmax is computed
    in `precision`, a compute type; by default in that of q. keys: how many of the first keys are in use; None for all. Keys and
    values of another type are computed in that of q."""
    for what, x, kinds in (("queries", q, FLOATS), ("keys", k, HELD), ("values", v, HELD)):
        if len(x.shape) < 2 or x.dtype not in kinds:
            raise ShapeError(
                f"attention: got {what} {x.dtype}{show(x.shape)}; expected floats (…, heads, length, size)"
            )
    if keys is not None:
        k, v = (_first(b, x, keys) for x in (k, v))
    k, v = (floats_of_rows(b, x, q.dtype) if x.dtype is int32 else as_dtype(b, x, q.dtype) for x in (k, v))
    wide = precision or q.dtype.compute
    scores = as_dtype(b, grouped_dot(b, scaled(b, q, scale, q.shape[-1]), matrix_transpose(b, k)), wide)
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
    plain = mask is None and not causal and sink is None
    weights = b.softmax(masked) if plain else _softmax(b, masked, None if sink is None else as_dtype(b, sink, wide))
    return Attended(scores, capped, masked, weights, grouped_dot(b, as_dtype(b, weights, v.dtype), v))


def seen_keys(b: Any, queries: Dim, keys: Dim, past: Any, before: int | None = None, after: int | None = 0) -> Any:
    """Whether a query sees a key: at most `before` keys before its place and `after` keys after it (None: all).

    past: how many keys precede the first query, a dimension, or integers that broadcast to (…, queries, keys).
    """
    at = numbered_along(b, (queries, keys), 0)
    past = past if hasattr(past, "dtype") else amount(b, past, int32)
    at, key = b.add(at, as_dtype(b, past, int32)), numbered(b, keys)
    seen = b.less_equal(key, b.add(at, b.const(after, int32))) if after is not None else None
    if before is None:
        return seen
    near = b.less_equal(b.sub(at, b.const(before, int32)), key)
    return near if seen is None else b.logical_and(near, seen)


def scaled(b: Any, x: Any, scale: float, size: Dim) -> Any:
    """x · scale, or x / √size if the scale is 0."""
    if scale or isinstance(size, int):
        return b.mul(x, b.const(scale or 1 / math.sqrt(max(size, 1)), x.dtype))
    return b.div(x, b.sqrt(amount(b, size, x.dtype)))


def _softmax(b: Any, x: Any, sink: Any) -> Any:
    """The softmax along the last axis and over the sink, if there is one; zeros where all elements are −∞."""
    least = b.const(np.finfo(x.dtype.numpy).min, x.dtype) if sink is None else sink
    most = b.stop_gradient(b.maximum(b.reduce_max(x, axes=(-1,)), least))  # the result does not change with it
    e = b.falling_exp(b.sub(x, most))
    total = b.reduce_sum(e, axes=(-1,))
    if sink is not None:
        return b.div(e, b.add(total, b.exp(b.sub(sink, most))))
    return b.div(e, b.where(b.equal(total, b.const(0, x.dtype)), b.const(1, x.dtype), total))


def grouped_dot(b: Any, x: Any, y: Any) -> Any:
    """x (…, heads, m, k) · y (…, heads of keys, k, n), with one product for all heads that a head of keys serves."""
    if len(x.shape) < 3 or len(y.shape) < 3 or x.shape[-3] == y.shape[-3]:
        return b.dot(x, y)
    *outer, heads, length, size = x.shape
    of_keys = y.shape[-3]
    text = f"attention: {heads} heads of queries and {of_keys} of keys"
    if not isinstance(heads, int) or not isinstance(of_keys, int):
        raise SizeNeeded(f"{text}: their number must be known", symbols([heads, of_keys]))
    if of_keys == 0 or heads % of_keys:
        raise ShapeError(f"{text}; expected a multiple")
    rows = heads // of_keys * length
    product = b.dot(b.reshape(x, shape=(*outer, of_keys, rows, size)), y)
    return b.reshape(product, shape=(*product.shape[:-3], heads, length, product.shape[-1]))


def _first(b: Any, x: Any, count: Dim) -> Any:
    """The first places of the last axis but one."""
    *outer, length, size = x.shape
    if length == count:
        return x
    require(length - count, f"attention: {count} keys of {show(x.shape)}")
    return b.slice(x, starts=(0,) * len(x.shape), steps=(1,) * len(x.shape), sizes=(*outer, count, size))


def _attention(
    b: Any, q: Any, k: Any, v: Any, mask: Any = None, *,
    scale: float = 0.0, causal: bool = False, past: Dim = 0, softcap: float = 0.0, keys: Dim | None = None,
) -> Any:  # fmt: skip
    return attend(b, q, k, v, mask, scale=scale, causal=causal, past=past, softcap=softcap, keys=keys).y


def _rotary_embedding(b: Any, x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """The first 2 · n elements of the last axis, as n pairs, each turned by the angle whose cosine and sine are given; n
    is the last length of cos."""
    kind, wide = x.dtype, x.dtype.compute
    *outer, size = x.shape
    pairs = cos.shape[-1]
    require(size - 2 * pairs, f"rotary_embedding: {show(cos.shape)} turns {pairs} pairs, the input has {size} elements")
    x, cos, sin = (as_dtype(b, y, wide) for y in (x, cos, sin))

    def part(first: Dim, step: int) -> Any:
        starts, steps = (*(0,) * len(outer), first), (*(1,) * len(outer), step)
        return b.slice(x, starts=starts, steps=steps, sizes=(*outer, pairs))

    def pair(left: Any, right: Any, rest: float) -> Any:
        """Elements of the last axis, from those of all pairs: two for each, and `rest` for what is not turned."""
        if interleaved:
            left, right = (b.reshape(y, shape=(*y.shape, 1)) for y in (left, right))
        y = b.concat(left, right, axis=-1)
        y = b.reshape(y, shape=(*y.shape[:-2], 2 * pairs)) if interleaved else y
        zeros = (0,) * (len(y.shape) - 1)
        if size - 2 * pairs == 0:
            return y
        return b.pad(y, b.const(rest, wide), before=(*zeros, 0), after=(*zeros, size - 2 * pairs), mode="constant")

    left, right = (part(i, 2) for i in (0, 1)) if interleaved else (part(i * pairs, 1) for i in (0, 1))
    turned = b.add(b.mul(x, pair(cos, cos, 1)), b.mul(pair(b.neg(right), left, 0), pair(sin, sin, 0)))
    return as_dtype(b, turned, kind)


register(
    Composite(name="attention", doc="softmax(scale · q · kᵀ + mask) · v for each head (…, heads, length, size); scale 0: 1 / √size. "
              "causal: a query sees no later keys; past: how many keys precede the first query. softcap: scores are kept within ±softcap; "
              "keys: how many of the first keys are in use. Keys and values that are stored in another type, or in eight bits, are computed in that of q",
              lower=_attention, function=True, dtypes=FLOATS, tolerance=64, floor=1e-5),
    Composite(name="rotary_embedding", doc="pairs of elements of the last axis turned by angles with these cosines and sines: an element of "
              "the first half and one of the second, or interleaved: neighbours", lower=_rotary_embedding,
              dtypes=FLOATS, tolerance=16),
)  # fmt: skip
