"""Ops that read shapes and ops that change them: ONNX's defaults, negative axes and open ends become explicit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from random import Random
from typing import Final, TypeGuard

import numpy as np

from ....dtypes import float32, int64
from ....graph import Builder, Node
from ....ops import find_row
from ....ops.movement.move import numbered
from ....ops.sizes import FAR
from ....shapes import (
    Dim,
    Shape,
    Size,
    at_least,
    axes_of,
    axis_of,
    broadcast,
    ceildiv,
    dim_max,
    dim_min,
    floordiv,
    holds,
    known,
    product,
    require,
    same,
    show,
)
from .._call import ADAPTERS, MAX_FOLDED, Call, adapter
from ..elementwise.basic import cast, tensor_node

# --- shapes as values ------------------------------------------------------------------------------------------------


@adapter("Shape")
def _shape(call: Call) -> Node:
    dims = call.x().shape
    start, end = call.attr("start", 0), call.attr("end", len(dims))
    for d in dims:  # so that comparisons of what is given here know it, too
        require(d, f"the dimension {d} must be at least 0")
    return _vector(call, dims[slice(*slice(start, end).indices(len(dims)))])


def _vector(call: Call, dims: Sequence[Dim]) -> Node:
    array = np.empty(len(dims), object)
    array[:] = dims
    return call.b.const(array)


@adapter("Size")
def _size(call: Call) -> Node:
    return call.b.const(product(call.x().shape))


@adapter("ConstantOfShape")
def _constant_of_shape(call: Call) -> Node:
    value = call.attributes.get("value")
    fill = call.b.const(0, float32) if value is None else tensor_node(call, value)
    if product(fill.shape) != 1:
        raise call.fail(f"the value has the shape {show(fill.shape)}; expected one element")
    return call.b.expand(call.b.reshape(fill, shape=()), shape=call.lengths(call.dims(0)))


# --- the same elements, other axes -----------------------------------------------------------------------------------


@adapter("Reshape")
def _reshape(call: Call) -> Node:
    x = call.x()
    if call.is_found("shape", 1):
        wanted = call.vector(1)
        found = call.found("reshaped_sizes", wanted, shape=x.shape, allow_zero=call.flag("allowzero"))
        known = call.elements(wanted)
        # Dimensions that are known already stay numbers, or sizes of the inputs.
        return call.b.reshape(x, shape=tuple(d if is_length(d) else s for d, s in zip(known, found, strict=True)))
    asked = call.listed("shape", 1)
    if asked is None:
        raise call.fail("the shape is missing")
    shape = list(asked)
    if not call.flag("allowzero"):
        for i, d in enumerate(shape):
            if d == 0:
                if i >= len(x.shape):
                    raise call.fail(f"the shape {show(shape)} copies axis {i} of {show(x.shape)}, which does not exist")
                shape[i] = x.shape[i]
    if shape.count(-1) > 1:
        raise call.fail(f"the shape {show(shape)} leaves more than one length open")
    shape = [_as_in(call, d, x.shape) for d in shape]
    if -1 in shape:
        rest = product(d for d in shape if d != -1)
        shape[shape.index(-1)] = 0 if rest == 0 else floordiv(product(x.shape), rest)
    return call.b.reshape(x, shape=call.lengths(shape))


def _as_in(call: Call, asked: Dim, dims: Shape) -> Dim:
    """A dimension that a file computes in its own way, as one of `dims` if it seems to be that: a run checks it. (PyTorch
    computes the length that convolutions leave by a chain of quotients.)"""
    if asked in dims or not isinstance(asked, Size):
        return asked
    for d in dims:
        if isinstance(d, Size) and _seem_equal(d, asked):
            text = f"{call.op}: an axis of length {d} becomes one of length {asked}"
            for gap in (d - asked, asked - d):
                call.scope.checks.setdefault(gap, text)
            return d
    return asked


TRIED: Final = 32
"""How many sizes are tried to see whether two dimensions are equal."""


def _seem_equal(d: Size, asked: Size) -> bool:
    """Whether a length and what a file computes are equal at all sizes that are tried at which there is such a length, and
    these are many. (The file's quotients are rounded toward zero, and so give other numbers where there is none.)"""
    names, draws, equal = sorted(d.names), Random(0), 0
    for _ in range(TRIED if d.names == asked.names else 0):
        sizes = {name: int(2 ** draws.uniform(1, 17)) for name in names}
        length = known(d, sizes)
        if length < 1:
            continue
        try:
            if known(asked, sizes) != length:
                return False
        except ZeroDivisionError:
            return False
        equal += 1
    return equal >= TRIED // 4


@adapter("Flatten")
def _flatten(call: Call) -> Node:
    x = call.x()
    rank = len(x.shape)
    at = call.attr("axis", 1)
    at = at if at == rank else axis_of(at, max(rank, 1), "axis")
    return call.b.reshape(x, shape=(product(x.shape[:at]), product(x.shape[at:])))


def _dropped(call: Call, x: Node, asked: Sequence[int] | None) -> Shape:
    if asked is None:
        call.known_shape(x, "an axis that may have the length 1")
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = axes_of(asked, len(x.shape), "squeeze")
    if not all(same(x.shape[a], 1, "squeeze") for a in axes):
        raise call.fail(f"squeeze: the axes {axes} of {show(x.shape)} are not all of length 1")
    return tuple(d for i, d in enumerate(x.shape) if i not in axes)


def _added(call: Call, x: Node, asked: Sequence[int] | None) -> Shape:
    if asked is None:
        raise call.fail("the axes are missing")
    shape = list(x.shape)
    for a in axes_of(asked, len(x.shape) + len(asked), "unsqueeze"):
        shape.insert(a, 1)
    return tuple(shape)


def _with_axes(change: str, shape: Callable[[Call, Node, Sequence[int] | None], Shape], call: Call) -> Node:
    """x with axes of length 1 dropped or added. shape: what it is if the axes are known."""
    x = call.x()
    if call.is_found("axes", 1):
        made = call.found("axes_sizes", call.vector(1), shape=x.shape, change=change)
    else:
        made = shape(call, x, call.numbers("axes", 1))
    return call.b.reshape(x, shape=made)


ADAPTERS["Squeeze"] = partial(_with_axes, "dropped", _dropped)
ADAPTERS["Unsqueeze"] = partial(_with_axes, "added", _added)


@adapter("Transpose")
def _transpose(call: Call) -> Node:
    x = call.x()
    perm = call.items("perm", int)
    return call.b.transpose(x, perm=tuple(reversed(range(len(x.shape)))) if perm is None else perm)


@adapter("Expand")
def _expand(call: Call) -> Node:
    x = call.x()
    if not call.is_computed(1):
        return call.b.expand(x, shape=broadcast([x.shape, call.lengths(call.dims(1))], "expand"))
    b, wanted = call.b, call.vector(1)
    found = call.found("expanded_sizes", wanted, shape=x.shape)
    known: list[Dim | None] = [*(1 for _ in found[len(call.elements(wanted)) :]), *call.elements(wanted)]
    shape = list(found)
    for axis, (d, e) in enumerate(zip(x.shape[::-1], known[::-1], strict=False), 1):
        if d == 1:
            shape[-axis] = e if is_length(e) else found[-axis]
        elif isinstance(d, int) or e in (1, d):
            shape[-axis] = d
        else:  # an axis of open length: if it is 1 in a run, it is repeated like any other axis of length 1
            places = numbered(b, found[-axis], int64)
            x = b.gather(x, b.minimum(places, b.const(d - 1, int64)), axis=len(x.shape) - axis)
    return b.expand(x, shape=tuple(shape))


@adapter("Tile")
def _tile(call: Call) -> Node:
    x, b = call.x(), call.b
    repeats = call.lengths(call.dims(1))
    if len(repeats) != len(x.shape):
        raise call.fail(f"{len(repeats)} repeats for the {len(x.shape)} axes of {show(x.shape)}")
    apart = b.reshape(x, shape=tuple(v for d in x.shape for v in (1, d)))
    wide = b.expand(apart, shape=tuple(v for r, d in zip(repeats, x.shape, strict=True) for v in (r, d)))
    return b.reshape(wide, shape=tuple(r * d for r, d in zip(repeats, x.shape, strict=True)))


def is_length(d: Dim | None) -> TypeGuard[Dim]:
    """Whether an element of a computed shape is known, and is a length (not 0 or −1, which have other meanings)."""
    return d is not None and (not isinstance(d, int) or d > 0)


def last(call: Call, x: Node, i: int) -> tuple[Node, Node]:
    """For an input i that a run computes: x with the axes that it names moved behind the others, and for each element
    of x its place in the result."""
    b = call.b
    n = b.node(find_row("moved_last"), call.vector(i), what=call.op, shape=x.shape)
    there, back = b.results_of(n)
    return b.gather(b.reshape(x, shape=(product(x.shape),)), there, axis=0), back


# --- parts -----------------------------------------------------------------------------------------------------------


@adapter("Concat")
def _concat(call: Call) -> Node:
    xs = call.all()
    axis = call.axis(1, len(xs[0].shape))
    return xs[0] if len(xs) == 1 else call.b.concat(*xs, axis=axis)


@adapter("Gather")
def _gather(call: Call) -> Node:
    x, index = call.x(), call.x(1)
    axis = call.axis(0, len(x.shape))
    d = x.shape[axis]
    if (
        isinstance(d, int)
        and index.dtype.is_int
        and index.value is not None
        and index.value.dtype != object
        and index.value.size
    ):
        low, high = int(index.value.min()), int(index.value.max())
        if low < -d or high >= d:
            raise call.fail(f"indices from {low} to {high} into axis {axis} of {show(x.shape)}")
    return call.b.gather(x, index, axis=axis)


def _cut(start: Dim, end: Dim, step: int, d: Dim) -> tuple[Dim, int, Dim]:
    """A slice of an axis as its first element, its step and its number of elements, by NumPy's rules with one
    exception: a slice with a negative step that starts before the axis begins at the axis's first element."""
    low, high = (0, d) if step > 0 else (-1, d - 1)
    if d == 0:
        return 0, 1, 0
    first, last = (_end(v, d) for v in (start, end))
    first = dim_min(_from_0(first), high)
    last = dim_min(_from_0(last - low) + low, high)
    count = _from_0(ceildiv(last - first if step > 0 else first - last, abs(step)))
    return (0, 1, 0) if count == 0 else (first, 1 if count == 1 else step, count)


def _from_0(d: Dim) -> Dim:
    return d if holds(d) else dim_max(d, 0)


def _end(v: Dim, d: Dim) -> Dim:
    """A start or end of a slice; a negative one counts from the end of the axis."""
    if isinstance(v, int):
        return d if v >= FAR else v + d if -FAR < v < 0 else v
    if holds(v):
        return v
    if at_least(-v, 1):
        return v + d
    return v + dim_min(dim_max(-v, 0), 1) * d


def part(b: Builder, x: Node, axis: int, start: Dim, count: Dim) -> Node:
    """`count` elements of an axis, from `start` on."""
    return slice_axes(b, x, {axis: (start, 1, count)})


def slice_axes(b: Builder, x: Node, cuts: Mapping[int, tuple[Dim, int, Dim]]) -> Node:
    """x with some axes sliced to (first, step, number of elements)."""
    whole = [cuts.get(i, (0, 1, d)) for i, d in enumerate(x.shape)]
    starts, steps, sizes = zip(*whole, strict=True) if whole else ((), (), ())
    return x if sizes == x.shape and set(steps) <= {1} else b.slice(x, starts=starts, steps=steps, sizes=sizes)


@adapter("Slice")
def _slice(call: Call) -> Node:
    x = call.x()
    if call.version >= 10 and call.is_computed(1, 2, 3, 4):
        return _computed_slice(call, x)
    starts, ends = call.listed("starts", 1), call.listed("ends", 2)
    if starts is None or ends is None:
        raise call.fail("the starts or the ends are missing")
    axes = call.numbers("axes", 3)
    places = tuple(range(len(starts))) if axes is None else tuple(axis_of(a, len(x.shape), "slice") for a in axes)
    steps = call.numbers("steps", 4) or (1,) * len(starts)
    if not len(starts) == len(ends) == len(places) == len(steps) <= len(x.shape) or len(set(places)) != len(places):
        raise call.fail(
            f"{len(starts)} starts, {len(ends)} ends, {len(steps)} steps for the axes {places} of {show(x.shape)}"
        )
    if 0 in steps:
        raise call.fail("a step is 0")
    return slice_axes(
        call.b, x, {a: _cut(s, e, by, x.shape[a]) for a, s, e, by in zip(places, starts, ends, steps, strict=True)}
    )


def _computed_slice(call: Call, x: Node) -> Node:
    """A slice with computed bounds: each sliced axis is gathered at places that the run finds."""
    b = call.b
    starts, ends = call.vector(1), call.vector(2)
    count = len(call.elements(starts))
    axes = b.const(np.arange(count)) if call.maybe(3) is None else call.vector(3)
    steps = b.const(np.ones(count, np.int64)) if call.maybe(4) is None else call.vector(4)
    named = [a if isinstance(a, int) else None for a in call.elements(axes)]
    rank = len(x.shape)
    cuts = tuple(range(rank)) if None in named else tuple(axis_of(a, rank, "slice") for a in named if a is not None)
    n = b.node(find_row("slice_places"), starts, ends, axes, steps, what=call.op, shape=x.shape, cuts=cuts)
    for axis, places in zip(cuts, b.results_of(n), strict=True):
        x = b.gather(x, places, axis=axis)
    return x


@adapter("Split")
def _split(call: Call) -> list[Node]:
    x = call.x()
    axis = call.axis(0, len(x.shape))
    d = x.shape[axis]
    if call.is_found("split", 1):
        lengths = call.dims(1, total=d)
        ends = [0, *accumulate(lengths)]
        return [part(call.b, x, axis, at, n) for at, n in zip(ends, lengths, strict=False)]
    lengths = call.listed("split", 1)
    if lengths is None:
        parts = call.attr("num_outputs", len(call.outputs))
        if not len(call.outputs) <= parts <= MAX_FOLDED:
            raise call.fail(f"a split into {parts} parts, of which {len(call.outputs)} have names")
        each = ceildiv(d, parts)
        (last,) = call.lengths((d - each * (parts - 1),))
        named = ((each * k, each if k < parts - 1 else last) for k in range(len(call.outputs)))
        return [part(call.b, x, axis, at, n) for at, n in named]
    lengths = call.lengths(lengths)
    ends: list[Dim] = [0, *accumulate(lengths)]
    text = f"the parts {show(lengths)} add up to {ends[-1]}, but axis {axis} of {show(x.shape)} has {d}"
    if not same(ends[-1], d, "split"):
        raise call.fail(text)
    for gap in (ends[-1] - d, d - ends[-1]):  # slices alone do not say that nothing is left
        if not isinstance(gap, int):
            call.scope.checks.setdefault(gap, f"{call.op}: {text}")
    named = zip(ends, lengths[: len(call.outputs)], strict=False)
    return [part(call.b, x, axis, at, n) for at, n in named]


@adapter("Pad")
def _pad(call: Call) -> Node:
    x, b = call.x(), call.b
    rank = len(x.shape)
    if call.version >= 11 and call.is_computed(1, 3):
        x, pads = _cropped(call, x)
    else:
        pads = call.listed("pads" if call.version >= 2 else "paddings", 1)
    axes = None if call.maybe(3) is None or call.is_computed(3) else call.ints(3)
    places = tuple(range(rank)) if axes is None else tuple(axis_of(a, rank, "pad") for a in axes)
    if pads is None or len(pads) != 2 * len(places) or len(set(places)) != len(places):
        raise call.fail(
            f"{0 if pads is None else len(pads)} pads for the axes {places} of {show(x.shape)}; expected two for each"
        )
    before: list[Dim] = [0] * rank
    after: list[Dim] = [0] * rank
    for k, axis in enumerate(places):
        before[axis], after[axis] = pads[k], pads[k + len(places)]
    cuts = {}
    for axis in range(rank):  # a negative pad crops
        lo, hi = (-v if isinstance(v, int) and v < 0 else 0 for v in (before[axis], after[axis]))
        if lo or hi:
            count = x.shape[axis] - lo - hi
            cuts[axis] = (lo, 1, call.lengths([count])[0])
            before[axis], after[axis] = (0 if lo else before[axis]), (0 if hi else after[axis])
    x = slice_axes(b, x, cuts)
    if not any((*before, *after)):
        return x
    given = call.maybe(2)
    fill = b.const(call.attr("value", 0.0), x.dtype) if given is None else b.reshape(given, shape=())
    return b.pad(x, fill, before=tuple(before), after=tuple(after), mode=call.attr("mode", "constant"))


def _cropped(call: Call, x: Node) -> tuple[Node, tuple[Dim, ...]]:
    """x cropped by the negative pads, and the positive pads (0 in place of negative ones), if a run computes the
    pads."""
    b, rank, pads = call.b, len(x.shape), cast(call, call.vector(1), int64)
    if call.is_computed(3):  # the axes are computed too: pads for all axes, 0 for those not named
        axis = cast(call, call.vector(3), int64)
        axis = b.where(b.less(axis, b.const(0, int64)), b.add(axis, b.const(rank, int64)), axis)
        both = b.concat(axis, b.add(axis, b.const(rank, int64)), axis=0)
        pads = b.scatter_elements(b.const(np.zeros(2 * rank, np.int64)), pads, both, axis=0)
    found = call.found("signed_sizes", pads)
    more, less = found[::2], found[1::2]
    is_whole = call.maybe(3) is None or call.is_computed(3)
    axes = range(rank) if is_whole else [axis_of(a, rank, "pad") for a in call.ints(3)]
    cuts: dict[int, tuple[Dim, int, Dim]] = {}
    for axis, low, high in zip(axes, less, less[len(less) // 2 :], strict=False):
        cuts[axis] = (low, 1, x.shape[axis] - low - high)
    return slice_axes(b, x, cuts), more


def _blocks(call: Call) -> tuple[Node, int, Dim, Dim, Dim, Dim]:
    x, size = call.x(), call.attr("blocksize", 0)
    if len(x.shape) != 4 or size < 1:
        raise call.fail(f"{call.op} takes four axes and a block of at least 1, got {show(x.shape)} and {size}")
    return x, size, *x.shape  # pyright: ignore[reportReturnType]


@adapter("DepthToSpace")
def _depth_to_space(call: Call) -> Node:
    x, s, n, c, h, w = _blocks(call)
    deep = floordiv(c, s * s)
    if call.attr("mode", "DCR") == "DCR":
        apart = call.b.transpose(call.b.reshape(x, shape=(n, s, s, deep, h, w)), perm=(0, 3, 4, 1, 5, 2))
    else:
        apart = call.b.transpose(call.b.reshape(x, shape=(n, deep, s, s, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return call.b.reshape(apart, shape=(n, deep, h * s, w * s))


@adapter("SpaceToDepth")
def _space_to_depth(call: Call) -> Node:
    x, s, n, c, h, w = _blocks(call)
    high, wide = floordiv(h, s), floordiv(w, s)
    apart = call.b.reshape(x, shape=(n, c, high, s, wide, s))
    perm = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return call.b.reshape(call.b.transpose(apart, perm=perm), shape=(n, c * s * s, high, wide))
