"""Simplifying rules: ops that do nothing are removed, consecutive ones are joined, and constants move into contractions
(batch norm into the weights of the convolution before it, zero padding into the padding of the convolution after it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ...dtypes import widened
from ...graph import Node
from ...ops.movement.move import inverse
from ...shapes import Shape, axes_of
from ._rewriter import CONTRACTIONS, Rewriter, Rule, is_row, number


def _neutral(value: float, both: bool) -> Rule:
    """x ∘ value is x, unless it broadcasts x; with `both`, value ∘ x is x too."""

    def rule(r: Rewriter, n: Node) -> Node | None:
        a, b = n.inputs
        if number(b) == value and a.shape == n.shape:
            return a
        return b if both and number(a) == value and b.shape == n.shape else None

    return rule


def _reshape(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if x.shape == n.shape:
        return x
    return r.make("reshape", x.inputs[0], shape=n.shape) if is_row(x, "reshape") else None


def _transpose(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    perm = n.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return x
    if is_row(x, "transpose"):
        return r.make("transpose", x.inputs[0], perm=tuple(x.attrs["perm"][p] for p in perm))
    long = [p for p in perm if x.shape[p] != 1]
    if long == sorted(long):  # only axes of length 1 move
        return r.make("reshape", x, shape=n.shape)
    if is_row(x, "reshape"):
        return _through_reshape_up(r, n, x)
    return None


def _through_reshape_up(r: Rewriter, n: Node, x: Node) -> Node | None:
    """transpose(reshape(transpose(y))) becomes one transpose, if the reshape only adds or drops axes of length 1."""
    y = x.inputs[0]
    long = tuple(d for d in x.shape if d != 1)
    if (
        not is_row(y, "transpose")
        or long != tuple(d for d in y.shape if d != 1)
        or len(set(map(str, long))) != len(long)
    ):
        return None
    source = y.inputs[0]
    order = [d for d in n.shape if d != 1]
    perm = tuple(next(i for i, e in enumerate(source.shape) if e == d) for d in order)
    rest = tuple(i for i, e in enumerate(source.shape) if e == 1)
    return r.make("reshape", r.make("transpose", source, perm=(*perm, *rest)), shape=n.shape)


def _turned_product(r: Rewriter, n: Node) -> Node | None:
    """transpose(dot(transpose(x), y)) is dot(transpose(y), x): the gradient of a weight that is transposed before a product."""
    (x,) = n.inputs
    if not is_row(x, "dot") or not r.used_once(x) or any(len(y.shape) != 2 for y in x.inputs):
        return None
    if not any(is_row(y, "transpose") for y in x.inputs):
        return None
    turned = (y.inputs[0] if is_row(y, "transpose") else r.make("transpose", y, perm=(1, 0)) for y in x.inputs)
    return r.make("dot", *reversed(list(turned)))


def _expand(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if x.shape == n.shape:
        return x
    return r.make("expand", x.inputs[0], shape=n.shape) if is_row(x, "expand") else None


def _slice(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if n.shape == x.shape and all(s == 1 for s in n.attrs["steps"]):
        return x
    if is_row(x, "slice"):  # a slice of a slice
        inner = x.attrs
        starts = tuple(a + b * s for a, b, s in zip(inner["starts"], n.attrs["starts"], inner["steps"], strict=True))
        steps = tuple(a * b for a, b in zip(inner["steps"], n.attrs["steps"], strict=True))
        return r.make("slice", x.inputs[0], starts=starts, steps=steps, sizes=n.attrs["sizes"])
    return None


def _pad(r: Rewriter, n: Node) -> Node | None:
    x, fill = n.inputs
    if not any((*n.attrs["before"], *n.attrs["after"])):
        return x
    if is_row(x, "pad") and x.attrs["mode"] == n.attrs["mode"] == "constant" and x.inputs[1] is fill:
        before, after = (tuple(a + b for a, b in zip(x.attrs[k], n.attrs[k], strict=True)) for k in ("before", "after"))
        return r.make("pad", x.inputs[0], fill, before=before, after=after, mode="constant")
    return None


def _concat(r: Rewriter, n: Node) -> Node | None:
    axis = n.attrs["axis"] % len(n.shape)
    kept = [x for x in n.inputs if x.shape[axis] != 0]
    if len(kept) == 1:
        return kept[0]
    return r.make("concat", *kept, axis=axis) if 0 < len(kept) < len(n.inputs) or axis != n.attrs["axis"] else None


def _reduce(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    axes = axes_of(n.attrs["axes"], len(x.shape), n.op)
    kept = tuple(a for a in axes if x.shape[a] != 1)
    if not kept:
        return x
    return r.make(n.row, x, axes=kept) if kept != n.attrs["axes"] else None


def _cast(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    return x if x.dtype is n.dtype else None


def _passed_on(r: Rewriter, n: Node) -> Node:
    """What only gradients look at: here they are made."""
    return n.inputs[0]


def _unbroadcast(r: Rewriter, n: Node) -> Node | None:
    """An elementwise op broadcasts by itself: an expand before it is dropped if the shape stays the same without it."""
    for i, x in enumerate(n.inputs):
        if is_row(x, "expand"):
            others = [y for k, y in enumerate(n.inputs) if k != i]
            bare = [*n.inputs[:i], x.inputs[0], *n.inputs[i + 1 :]]
            if others and _meets([y.shape for y in bare], n.shape):
                return r.make(n.row, *bare, **n.attrs)
    return None


def _meets(shapes: Sequence[Shape], shape: Shape) -> bool:
    rank = max(map(len, shapes))
    return rank == len(shape) and all(
        any(len(s) >= rank - a and s[a - rank] == d for s in shapes) for a, d in enumerate(shape) if d != 1
    )


# --- constants into contractions -------------------------------------------------------------------------------------


def _channel_factor(c: Node, n: Node) -> np.ndarray | None:
    """A constant that varies only along the last axis, as a vector (of one element if it is the same everywhere)."""
    if not n.shape or c.value is None or c.value.dtype == object or any(d != 1 for d in c.shape[:-1]):
        return None
    last = n.shape[-1]
    return c.value.reshape(-1) if c.value.size in (1, last) else None


def _contraction(x: Node) -> bool:
    return x.op in CONTRACTIONS and x.inputs[1].is_const


def _scale_contraction(r: Rewriter, n: Node) -> Node | None:
    """A multiplication by a constant per channel moves into the constant weights (batch norm after a convolution)."""
    for x, c in (n.inputs, n.inputs[::-1]):
        factor = _channel_factor(c, n)
        if factor is None or x.shape != n.shape or not r.used_once(x) or not n.dtype.is_float:
            continue
        if _contraction(x):
            weights = x.inputs[1]
            assert weights.value is not None
            scaled = r.const(widened(weights.value) * widened(factor), weights)
            return r.make(x.row, x.inputs[0], scaled, **x.attrs)
        if is_row(x, "add"):
            for y, shift in (x.inputs, x.inputs[::-1]):
                if _channel_factor(shift, n) is not None and _contraction(y) and r.used_once(y):
                    return r.make("add", r.make("mul", y, c), r.make("mul", shift, c))
    return None


def _join_shifts(r: Rewriter, n: Node) -> Node | None:
    """(x + constant) + constant is x + constant."""
    for x, c in (n.inputs, n.inputs[::-1]):
        if not (
            c.is_const
            and is_row(x, "add")
            and r.used_once(x)
            and n.dtype.is_float
            and c.value is not None
            and c.value.dtype != object
        ):
            continue
        for y, shift in (x.inputs, x.inputs[::-1]):
            if shift.is_const and y.shape == n.shape and shift.value is not None and shift.value.dtype != object:
                return r.make("add", y, r.make("add", shift, c))
    return None


def _sub_constant(r: Rewriter, n: Node) -> Node | None:
    x, c = n.inputs
    return r.make("add", x, r.make("neg", c)) if c.is_const and n.dtype.is_float and _contraction_below(x) else None


def _div_constant(r: Rewriter, n: Node) -> Node | None:
    x, c = n.inputs
    return (
        r.make("mul", x, r.make("reciprocal", c)) if c.is_const and n.dtype.is_float and _contraction_below(x) else None
    )


def _contraction_below(x: Node) -> bool:
    return _sums(x) or (is_row(x, "add") and any(map(_sums, x.inputs)))


def _sums(x: Node) -> bool:
    """Whether elements are sums that are rounded more than by one division."""
    return (
        _contraction(x)
        or is_row(x, "dot_blocks")
        or (is_row(x, "mul") and any(y.is_const for y in x.inputs) and any(map(_sums, x.inputs)))
    )


def _pad_into_conv(r: Rewriter, n: Node) -> Node | None:
    """A pad with zeros before a convolution becomes its own padding."""
    x = n.inputs[0]
    if not (is_row(x, "pad") and x.attrs["mode"] == "constant" and number(x.inputs[1]) == 0):
        return None
    before, after = x.attrs["before"], x.attrs["after"]
    if before[0] or before[-1] or after[0] or after[-1] or not all(isinstance(p, int) for p in (*before, *after)):
        return None
    attrs = dict(n.attrs)
    attrs["before"] = tuple(a + b for a, b in zip(attrs["before"], before[1:-1], strict=True))
    attrs["after"] = tuple(a + b for a, b in zip(attrs["after"], after[1:-1], strict=True))
    return r.make("conv_last", x.inputs[0], n.inputs[1], **attrs)


def _reorder_rows(r: Rewriter, n: Node) -> Node | None:
    """dot(reshape(transpose(x)), constant), where the reshape joins all axes but the first,
    needs no transpose if the constant's rows are reordered."""
    a, w = n.inputs
    if not (is_row(a, "reshape") and is_row(a.inputs[0], "transpose") and w.value is not None and w.value.ndim == 2):
        return None
    t = a.inputs[0]
    perm = t.attrs["perm"]
    joined = [d for d in t.shape[1:] if isinstance(d, int)]
    if perm[0] != 0 or len(a.shape) != 2 or a.shape[0] != t.shape[0] or len(joined) != len(t.shape) - 1:
        return None
    order = inverse([p - 1 for p in perm[1:]])
    rows = w.value.reshape(*joined, -1).transpose(*order, len(order))
    x = r.make("reshape", t.inputs[0], shape=a.shape)
    return r.make("dot", x, r.const(np.ascontiguousarray(rows.reshape(w.value.shape)), w))


SIMPLIFY: Final[Mapping[str, Sequence[Rule]]] = {
    "add": (_neutral(0, True), _join_shifts),
    "sub": (_neutral(0, False), _sub_constant),
    "mul": (_neutral(1, True), _scale_contraction),
    "div": (_neutral(1, False), _div_constant),
    "reshape": (_reshape,),
    "transpose": (_transpose, _turned_product),
    "expand": (_expand,),
    "slice": (_slice,),
    "pad": (_pad,),
    "concat": (_concat,),
    "cast": (_cast,),
    "stop_gradient": (_passed_on,),
    "conv_last": (_pad_into_conv,),
    "dot": (_reorder_rows,),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), (_reduce,)),
}
"""row ↦ the rules that simplify it, tried in order."""

SIMPLIFY_ELEMENTWISE: Final[Sequence[Rule]] = (_unbroadcast,)
