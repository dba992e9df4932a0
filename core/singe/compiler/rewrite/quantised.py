"""Products of quantised numbers: in the kernels of targets as products of integers, over whole arrays as those of floats.

A model that computes with quantised numbers multiplies their values, (x − zero) · scale, in floats (DequantizeLinear,
MatMul, QuantizeLinear), or multiplies the integers x − zero and scales the sums (MatMulInteger). `kept_narrow` turns the
first form into the second before a graph is simplified, because then the weights are still integers; for the same reason
it moves conversions behind the gathering of rows from a table, which so stays as small as it is. The rules work on
the second: integers of 8 bits less a zero point, and weights of 8 bits, are summed by the rows of ops/products/integers.py;
other sums that are cast to floats are summed in floats, which is exact up to 2²⁴.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from ...dtypes import float32, int8, int32
from ...graph import Builder, Graph, Node, rebuild
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...ops import Elementwise, as_dtype
from ...ops.products.blocks import BITS, BITS_PER_WORD, packed, unpacked
from ...ops.products.integers import MOST
from ...shapes import product
from ._rewriter import CONTRACTIONS, Rewriter, Rule, is_row, number

LEAST: Final = {"dot": (8, 8), "conv_last": (24, 16)}
"""op ↦ the fewest elements of a sum, and the fewest outputs, for which integers save more time than their conversion takes.

Measured on wasm (docs/measurements/quantised.md). The rows of a convolution overlap: their elements are converted several times.
"""
FEWER: Final = {"strides": (1, 1), "dilations": (1, 1)}
"""Convolutions with windows of 3 × 3 and these attributes take fewer multiplications in floats (Winograd's), which are
faster."""
MIN_PACKED_ELEMENTS: Final = 1 << 12
"""The fewest elements of a table whose integers are gathered before they are converted, or of weights that stay packed."""
BLOCKS: Final = (256, 128, 64, 32, 16)
"""The lengths of blocks with a scale for each that are looked for."""
_MOVED: Final = frozenset({"reshape", "transpose", "expand", "slice", "pad"})
"""Rows whose elements are those of their first input, or a constant."""
_INT8: Final = int8.limits


# --- products of floats that stand for integers ----------------------------------------------------------------------


class _Quantity(NamedTuple):
    """Floats as whole · scale; the scale has one element, or broadcasts with the integers."""

    integers: Node
    scale: Node


def kept_narrow(graph: Graph, builder: Builder) -> Graph:
    """See the module's docstring."""
    return rebuild(graph, builder, _rule, {x: x for x in graph.leaves})


def _rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
    if n.op == "gather":
        return (
            _gathered(b, new_inputs[0], new_inputs[1], n.attrs["axis"] % len(new_inputs[0].shape))
            if _table(new_inputs[0])
            else None
        )
    return _scaled_sums(b, n, new_inputs) or _kept_packed(b, n, new_inputs)


def _scaled_sums(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
    if n.op not in LEAST or n.dtype is not float32 or not _pays(n, new_inputs[1]):
        return None
    x, w = (_quantity(b, v) for v in new_inputs)
    if x is None or w is None or product(x.scale.shape) != 1:
        return None
    weights, scales = b.value_of(w.integers), b.value_of(b.expand(w.scale, shape=w.integers.shape))
    if weights is None or scales is None or not _INT8[0] <= weights.min() <= weights.max() <= _INT8[1]:
        return None
    rows = scales.reshape(-1, scales.shape[-1])
    if len(rows) * MOST * -_INT8[0] > int32.limits[1]:  # the sums may not fit
        return None
    if (rows != rows[:1]).any():  # the scales differ along what is summed
        return None
    assert n.row is not None
    sums = b.apply(n.row, x.integers, b.const(weights), **n.attrs)
    scale = b.mul(b.reshape(x.scale, shape=()), b.const(np.ascontiguousarray(rows[0])))
    return b.mul(b.cast(sums, to=float32), scale)


def _kept_packed(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
    """A product of floats with weights of 8 bits or fewer, which stay packed."""
    if n.op != "dot" or n.dtype is not float32:
        return None
    x, w = new_inputs
    if len(w.shape) != 2 or 0 in w.shape:
        return None
    found = _quantity(b, w)
    if found is None:
        return None
    whole, scale = b.value_of(found.integers), b.value_of(found.scale)
    if whole is None or scale is None or whole.size < MIN_PACKED_ELEMENTS:
        return None
    scales = np.broadcast_to(scale.reshape(() if scale.size == 1 else scale.shape), whole.shape)
    longest = BITS_PER_WORD * -(-len(whole) // BITS_PER_WORD)
    block = next((size for size in (longest, *BLOCKS) if _same_in_blocks(scales, size)), None)
    if block is None:
        return None
    first = np.arange(0, len(whole), block)
    least, most = np.minimum.reduceat(whole, first), np.maximum.reduceat(whole, first)
    bits = next((bits for bits in BITS if (most - least).max() < 1 << bits), None)
    if bits is None:
        return None
    starts = (-(1 << bits - 1), 0)  # of integers with a sign, and without
    one = next((s for s in starts if s <= least.min() and most.max() < s + (1 << bits)), None)
    zero = np.asarray(np.float32(-one)) if one is not None else -least.astype(np.float32)
    words = packed(whole - (one if one is not None else np.repeat(least, block, axis=0)[: len(whole)]), bits)
    stored = words, np.ascontiguousarray(scales[::block]), zero
    if x.shape[-1] != w.shape[0]:  # open sizes may spell the depth otherwise
        x = b.reshape(x, shape=(*x.shape[:-1], w.shape[0]))
    return b.dot_blocks(x, *(b.const(a) for a in stored), bits=bits, block=block)


def _same_in_blocks(scales: np.ndarray, size: int) -> bool:
    """Whether all rows of each block have the scales of its first row."""
    return bool((scales == np.repeat(scales[::size], size, axis=0)[: len(scales)]).all())


def _pays(n: Node, w: Node) -> bool:
    depth, columns = LEAST[n.op]
    known = [d for d in w.shape if isinstance(d, int)]
    if len(known) < len(w.shape) or n.attrs.get("group", 1) != 1 or (n.op == "dot" and len(known) != 2):
        return False
    if _takes_fewer(n, w):
        return False
    return math.prod(known[:-1]) >= depth and known[-1] >= columns


def _takes_fewer(n: Node, w: Node) -> bool:
    return n.op.startswith("conv") and w.shape[:-2] == (3, 3) and all(n.attrs[k] == v for k, v in FEWER.items())


def _quantity(b: Builder, n: Node) -> _Quantity | None:
    if is_row(n, "mul"):
        for value, scale in (n.inputs, n.inputs[::-1]):
            if is_row(value, "cast") and value.shape == n.shape and _within(value.inputs[0]):
                return _Quantity(as_dtype(b, value.inputs[0], int32), scale)
        return None
    if n.op not in _MOVED or any(number(x) != 0 for x in n.inputs[1:]):
        return None
    found = _quantity(b, n.inputs[0])
    if found is None:
        return None
    assert n.row is not None
    fill = [b.const(0, int32) for _ in n.inputs[1:]]
    whole = b.apply(n.row, found.integers, *fill, **n.attrs)
    if product(found.scale.shape) == 1:
        return _Quantity(whole, found.scale)
    if fill:
        return None
    return _Quantity(whole, b.apply(n.row, b.expand(found.scale, shape=found.integers.shape), **n.attrs))


# --- tables of integers ----------------------------------------------------------------------------------------------


def _table(n: Node) -> bool:
    """Whether a node is computed, element by element, from one large constant of 8-bit integers and from smaller values."""
    if not isinstance(n.row, Elementwise):
        return n.value is not None and n.dtype.is_int and n.dtype.bits <= 8 and n.value.size >= MIN_PACKED_ELEMENTS
    large = [x for x in n.inputs if x.shape == n.shape]
    return len(large) == 1 and _table(large[0])


def _gathered(b: Builder, n: Node, index: Node, axis: int) -> Node:
    """What `_table` accepts, computed from the gathered integers."""
    if not isinstance(n.row, Elementwise):
        return b.gather(n, index, axis=axis)
    rank = len(n.shape)
    given: list[Node] = []
    for x in n.inputs:
        if x.shape == n.shape:
            given.append(_gathered(b, x, index, axis))
            continue
        shape = (*(1,) * (rank - len(x.shape)), *x.shape)
        if shape[axis] == 1:  # one serves for all
            shape = (*shape[:axis], *(1,) * len(index.shape), *shape[axis + 1 :])
            given.append(b.reshape(x, shape=shape))
        else:
            given.append(b.gather(b.reshape(x, shape=shape), index, axis=axis))
    return b.apply(n.row, *given, **n.attrs)


# --- bounds ----------------------------------------------------------------------------------------------------------


def _within(n: Node) -> bool:
    """Whether a node's elements are surely integers from −MOST to MOST."""
    found = _bounds(n)
    return found is not None and -MOST <= found[0] <= found[1] <= MOST


def _bounds(n: Node) -> tuple[int, int] | None:
    """The least and the largest value that integers of a node may have; None if nothing is known."""
    if not n.dtype.is_int:
        return None
    if n.value is not None and n.value.dtype.kind in "iuO":
        v = n.value
        return (int(v.min()), int(v.max())) if v.size and v.dtype != object else None
    if n.dtype.bits <= 8:
        return n.dtype.limits
    if n.op in ("cast", *_MOVED):
        found = [_bounds(x) for x in n.inputs]
        known = [x for x in found if x is not None]
        if len(known) < len(found):
            return None
        return _unwrapped(n, min(x[0] for x in known), max(x[1] for x in known))
    if n.op in ("sub", "add"):
        a, c = (_bounds(x) for x in n.inputs)
        if a is None or c is None:
            return None
        return _unwrapped(n, *((a[0] - c[1], a[1] - c[0]) if n.op == "sub" else (a[0] + c[0], a[1] + c[1])))
    return None


def _unwrapped(n: Node, least: int, most: int) -> tuple[int, int] | None:
    """The bounds, if a node's dtype holds all numbers between them; otherwise results may wrap around."""
    low, high = n.dtype.limits
    return (least, most) if low <= least and most <= high else None


def _near(n: Node, rows: bool) -> bool:
    """Whether integers surely lie within MOST of each other and of 0: 8-bit integers less one zero point, or one for each
    row, the last axis, where `rows` lie so each by itself."""
    found = _bounds(n)
    if found is None:
        return False
    if max(found[1], 0) - min(found[0], 0) <= MOST:
        return True
    if n.op in ("cast", *_MOVED):
        rest = n.inputs[1:] if n.op in _MOVED else ()
        return all(number(x) == 0 for x in rest) and _near(n.inputs[0], rows and n.op == "cast")
    if n.op != "sub" or n.inputs[0].shape != n.shape:
        return False
    zero = n.inputs[1]
    least, most = _bounds(n.inputs[0]) or (0, MOST + 1)
    low, high = _bounds(zero) or (-MOST, MOST)
    one = product(zero.shape) == 1 or (rows and zero.shape[-1] == 1)
    return one and most - least <= MOST and least <= low <= high <= most


# --- products of integers --------------------------------------------------------------------------------------------


def _exact(r: Rewriter, n: Node) -> Node | None:
    """int32 products with constant weights by the rows that take 8 bits. Columns of weights that do
    not fit are shifted: x @ w = x @ (w − shift) + shift · (the sum of each row of x)."""
    x, w = n.inputs
    if n.dtype is not int32 or w.value is None or not w.value.size or not _within(x):
        return None
    if not _near(x, rows=n.op == "dot"):
        return None
    if n.attrs.get("group", 1) != 1 or (n.op == "dot" and len(w.shape) != 2):
        return None
    columns = w.value.reshape(-1, w.shape[-1])
    least, most = columns.min(0), columns.max(0)
    shift = np.where((least >= _INT8[0]) & (most <= _INT8[1]), 0, most - _INT8[1])
    if (least - shift < _INT8[0]).any() or (shift.any() and n.op != "dot"):
        return None
    facts = {k: v for k, v in n.attrs.items() if k != "group"}
    weights = r.builder.const((w.value - shift).astype(np.int8))
    row = f"{n.op.removesuffix('_last')}_integers"
    sums = r.make(row, r.make("cast", x, to=float32), weights, **facts)
    if not shift.any():
        return sums
    rows = r.make("reduce_sum", x, axes=(len(x.shape) - 1,))
    return r.make("add", sums, r.make("mul", rows, r.builder.const(shift.astype(np.int32))))


def _in_floats(r: Rewriter, n: Node) -> Node | None:
    """Sums of integers that are cast to floats, summed in floats, unless integers are faster."""
    (x,) = n.inputs
    if n.dtype is not float32:
        return None
    if is_row(x, "conv_integers") and _takes_fewer(x, x.inputs[1]):
        return r.make("conv_last", x.inputs[0], r.make("cast", x.inputs[1], to=float32), **x.attrs, group=1)
    if x.op not in CONTRACTIONS or x.dtype is not int32 or not all(map(_within, x.inputs)):
        return None
    assert x.row is not None
    return r.make(x.row, *(r.make("cast", v, to=float32) for v in x.inputs), **x.attrs)


def _unpacked(r: Rewriter, n: Node) -> Node | None:
    """A product with packed weights as one with floats."""
    x, w, scale, zero = n.inputs
    depth = x.shape[-1]
    if w.value is None or scale.value is None or zero.value is None or not isinstance(depth, int):
        return None
    return r.make(
        "dot", x, r.builder.const(unpacked(NUMPY_ARRAYS, w.value, scale.value, zero.value, **n.attrs)[:depth])
    )


FLOAT_SUMS: Final[Mapping[str, Sequence[Rule]]] = {"cast": (_in_floats,), "dot_blocks": (_unpacked,)}
INTEGER_SUMS: Final[Mapping[str, Sequence[Rule]]] = {"cast": (_in_floats,), **dict.fromkeys(CONTRACTIONS, (_exact,))}
"""row ↦ the rules for the kernels of targets."""
