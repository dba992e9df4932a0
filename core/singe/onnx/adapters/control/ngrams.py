"""TfIdfVectorizer: how often each n-gram of a list occurs in each row of a matrix of tokens."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ....dtypes import float32, int64, string, strings
from ....graph import Node
from ....shapes import Dim, dim_max
from .._call import Call, adapter

MAX_SPANS = 256
"""The most combinations of a length and a number of skipped tokens."""


def _tokens(call: Call, x: Node) -> tuple[Node, np.ndarray]:
    """The input and the pool of n-grams as integers; strings are looked up on the host."""
    b = call.b
    texts, numbers = call.items("pool_strings", str), call.items("pool_int64s", int)
    if (texts is None) == (numbers is None) or (texts is None) == (x.dtype is string):
        raise call.fail(f"the input is {x.dtype}; expected one pool, of its type")
    if texts is None:
        return b.cast(x, to=int64), np.array(numbers, np.int64)
    keys, pool = np.unique(np.array(texts, object), return_inverse=True)
    return b.string_places(x, keys=tuple(strings(keys)[string.name].tolist())), pool


def _counts(call: Call, x: Node, grams: np.ndarray, step: int) -> Node:
    """How often each row has each n-gram, whose tokens are `step` apart."""
    b, (rows, length) = call.b, x.shape
    size = grams.shape[1]
    places: Dim = dim_max(length - (size - 1) * step, 0)
    same = []
    for k in range(size):
        part = b.slice(x, starts=(0, k * step if places != 0 else 0), steps=(1, 1), sizes=(rows, places))
        same.append(b.equal(b.reshape(part, shape=(rows, places, 1)), b.const(grams[:, k])))
    found = b.cast(reduce(b.logical_and, same), to=float32)
    return b.reshape(b.reduce_sum(found, axes=(1,)), shape=(rows, len(grams)))


@adapter("TfIdfVectorizer")
def _tf_idf(call: Call) -> Node:
    b, given = call.b, call.x()
    if len(given.shape) not in (1, 2):
        raise call.fail(f"the input has {len(given.shape)} axes; expected 1 or 2")
    x, pool = _tokens(call, given if len(given.shape) == 2 else b.reshape(given, shape=(1, *given.shape)))
    starts, columns = call.items("ngram_counts", int) or (), np.array(call.items("ngram_indexes", int) or (), np.int64)
    least, most, skips = (call.attr(name, 0) for name in ("min_gram_length", "max_gram_length", "max_skip_count"))
    ends = [*starts[1:], len(pool)]
    if not 1 <= least <= most or skips < 0 or (most - least + 1) * (skips + 1) > MAX_SPANS or not len(columns):
        raise call.fail(f"n-grams of {least} to {most} tokens with up to {skips} skipped, for {len(columns)} columns")
    if not starts or any(
        not 0 <= at <= end <= len(pool) or (end - at) % (k + 1)
        for k, (at, end) in enumerate(zip(starts, ends, strict=True))
    ):
        raise call.fail(f"ngram_counts is {starts} for a pool of {len(pool)} tokens")
    width = int(columns.max()) + 1
    if columns.min() < 0 or width > len(columns) * 64 + 1024:
        raise call.fail(f"ngram_indexes go from {columns.min()} to {width - 1}, for {len(columns)} n-grams")
    weights: tuple[float, ...] = call.items("weights", float) or ()
    found, owners, number = [], [], 0
    for size, (at, end) in enumerate(zip(starts, ends, strict=True), 1):
        grams = pool[at:end].reshape(-1, size)
        own, scales = columns[number : number + len(grams)], weights[number : number + len(grams)]
        number += len(grams)
        if not least <= size <= most or not len(grams):
            continue
        if len(own) < len(grams) or (weights and len(scales) < len(grams)):
            raise call.fail(f"{len(columns)} ngram_indexes and {len(weights)} weights; expected one for each n-gram")
        spans = range(1, 2 if size == 1 else skips + 2)
        counts = reduce(b.add, (_counts(call, x, grams, step) for step in spans))
        found.append(_weighted(call, counts, scales))
        owners.append(own)
    y = _by_column(call, x, found, owners, width)
    return y if len(given.shape) == 2 else b.reshape(y, shape=(width,))


def _weighted(call: Call, counts: Node, weights: tuple[float, ...]) -> Node:
    """The counts of n-grams with these weights, by the mode."""
    b, mode = call.b, call.attr("mode", "TF")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise call.fail(f"mode is {mode!r}; expected TF, IDF or TFIDF")
    if mode == "IDF":
        counts = b.cast(b.greater(counts, b.const(0.0, float32)), to=float32)
    return b.mul(counts, b.const(np.array(weights, np.float32))) if mode != "TF" and weights else counts


def _by_column(call: Call, x: Node, found: list[Node], owners: list[np.ndarray], width: int) -> Node:
    """The counts in the columns that own them; a column without n-grams is 0."""
    b = call.b
    none = b.expand(b.const(0.0, float32), shape=(x.shape[0], 1))
    counts, columns = b.concat(none, *found, axis=1), np.concatenate([[-1], *owners]).astype(np.int64)
    if len(np.unique(columns)) == len(columns):
        order = np.zeros(width, np.int64)
        order[columns[1:]] = np.arange(1, len(columns))
        return b.gather(counts, b.const(order), axis=1)
    return b.matmul(counts, b.const((columns[:, None] == np.arange(width)).astype(np.float32)))
