"""Ops that move elements: shapes, parts, joins, padding, blocks of space. They move quantised integers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ...dtypes import int64
from ...graph import Builder, Node
from ...ops import as_dtype
from ...shapes import Dim, Shape, Size, dim_max, dim_min, floordiv, product, show
from ._call import Numbers, TfliteCall, op

MIRRORS: Final = ("reflect", "symmetric")
"""The modes of MIRROR_PAD by number: without and with the elements at the ends."""
MAX_PARTS: Final = 1 << 12
"""The most parts into which one op splits a tensor."""


# --- shapes --------------------------------------------------------------------------------------------------------


def _shaped(call: TfliteCall, x: Node, shape: Sequence[Dim]) -> Node:
    """x of another shape, of which one length may be −1: what is left."""
    open_axes = [k for k, d in enumerate(shape) if isinstance(d, int) and d < 0]
    if len(open_axes) > 1 or any(shape[k] != -1 for k in open_axes):
        raise call.fail(f"the shape {tuple(shape)} has more than one open length")
    rest = product(d for k, d in enumerate(shape) if k not in open_axes)
    whole = product(x.shape)
    if open_axes and rest == 0:
        raise call.fail(f"the open length of the shape {tuple(shape)} could be any")
    left = floordiv(whole, rest) if open_axes else 0
    return call.b.reshape(x, shape=tuple(left if k in open_axes else d for k, d in enumerate(shape)))


@op("RESHAPE", numbers=Numbers.STORED)
def _reshape(call: TfliteCall) -> Node:
    x = call.x()
    if call.is_given(1):
        return _shaped(call, x, call.dims(1))
    return _shaped(call, x, tuple(map(int, call.option("shape"))))


@op("SQUEEZE", numbers=Numbers.STORED)
def _squeeze(call: TfliteCall) -> Node:
    x = call.x()
    told = [call.axis(int(a), len(x.shape)) for a in call.option("axes")]
    axes = told or [k for k, d in enumerate(x.shape) if d == 1]
    if any(x.shape[k] != 1 for k in axes):
        raise call.fail(f"the axes {axes} of {show(x.shape)} are to be dropped; expected the length 1")
    return call.b.reshape(x, shape=tuple(d for k, d in enumerate(x.shape) if k not in axes))


@op("EXPAND_DIMS", numbers=Numbers.STORED)
def _expand_dims(call: TfliteCall) -> Node:
    x = call.x()
    axis = call.axis(call.int(1), len(x.shape) + 1)
    return call.b.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))


@op("SHAPE", numbers=Numbers.OWN)
def _shape(call: TfliteCall) -> Node:
    return as_dtype(call.b, call.b.shape_of(call.x()), call.dtype())


@op("RANK", numbers=Numbers.OWN)
def _rank(call: TfliteCall) -> Node:
    return as_dtype(call.b, call.b.const(np.asarray(len(call.x().shape), np.int64)), call.dtype())


@op("TRANSPOSE", numbers=Numbers.STORED)
def _transpose(call: TfliteCall) -> Node:
    rank = len(call.x().shape)
    perm = tuple(call.axis(a, rank) for a in call.ints(1))
    if sorted(perm) != list(range(rank)):
        raise call.fail(f"the order {perm} does not name each of {rank} axes once")
    return call.b.transpose(call.x(), perm=perm)


@op("BROADCAST_TO", numbers=Numbers.STORED)
def _broadcast_to(call: TfliteCall) -> Node:
    return call.b.expand(call.x(), shape=call.dims(1))


@op("TILE", numbers=Numbers.STORED)
def _tile(call: TfliteCall) -> Node:
    b, x, counts = call.b, call.x(), call.dims(1)
    if len(counts) != len(x.shape) or any(isinstance(n, int) and n < 0 for n in counts):
        raise call.fail(f"repeats {counts} for {len(x.shape)} axes; expected one number from 0 for each")
    apart = b.reshape(x, shape=tuple(d for pair in x.shape for d in (1, pair)))
    each = b.expand(apart, shape=tuple(d for n, length in zip(counts, x.shape, strict=True) for d in (n, length)))
    return b.reshape(each, shape=tuple(n * length for n, length in zip(counts, x.shape, strict=True)))


# --- joins and parts -----------------------------------------------------------------------------------------------


@op("CONCATENATION", numbers=Numbers.STORED)
def _concatenation(call: TfliteCall) -> Node:
    parts = call.all()
    return call.b.concat(*parts, axis=call.axis(call.option("axis"), len(parts[0].shape)))


@op("PACK", numbers=Numbers.STORED)
def _pack(call: TfliteCall) -> Node:
    b, parts = call.b, call.all()
    axis = call.axis(call.option("axis"), len(parts[0].shape) + 1)
    longer = [b.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:])) for x in parts]
    return b.concat(*longer, axis=axis)


def part(b: Builder, x: Node, axis: int, start: Dim, length: Dim) -> Node:
    """`length` elements of an axis from `start` on."""
    rank = len(x.shape)
    starts = tuple(start if k == axis else 0 for k in range(rank))
    sizes = tuple(length if k == axis else d for k, d in enumerate(x.shape))
    return b.slice(x, starts=starts, steps=(1,) * rank, sizes=sizes)


@op("UNPACK", numbers=Numbers.STORED)
def _unpack(call: TfliteCall) -> list[Node]:
    x = call.x()
    axis = call.axis(call.option("axis"), len(x.shape))
    count = call.number(x.shape[axis], "the number of parts")
    if count != len(call.wanted) or count > MAX_PARTS:
        raise call.fail(f"axis {axis} of {show(x.shape)} is split into {len(call.wanted)} outputs")
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [call.b.reshape(part(call.b, x, axis, k, 1), shape=shape) for k in range(count)]


def _parts(call: TfliteCall, x: Node, axis: int, lengths: Sequence[int]) -> list[Node]:
    whole = call.number(x.shape[axis], "the length that is split")
    if (
        len(lengths) != len(call.wanted)
        or sum(lengths) != whole
        or any(n < 0 for n in lengths)
        or len(lengths) > MAX_PARTS
    ):
        raise call.fail(f"the parts {lengths[:20]} of axis {axis} of {show(x.shape)} for {len(call.wanted)} outputs")
    starts = np.cumsum([0, *lengths]).tolist()
    return [part(call.b, x, axis, start, n) for start, n in zip(starts, lengths, strict=False)]


@op("SPLIT", numbers=Numbers.STORED)
def _split(call: TfliteCall) -> list[Node]:
    """Equal parts; input 0 is the axis."""
    x = call.x(1)
    axis, count = call.axis(call.int(0), len(x.shape)), len(call.wanted)
    whole = call.number(x.shape[axis], "the length that is split")
    return _parts(call, x, axis, [whole // max(count, 1)] * count)


@op("SPLIT_V", numbers=Numbers.STORED)
def _split_v(call: TfliteCall) -> list[Node]:
    """Parts of the lengths in input 1, of which one may be −1: what is left."""
    x, lengths = call.x(), list(call.ints(1))
    axis = call.axis(call.int(2), len(x.shape))
    if lengths.count(-1) == 1:
        lengths[lengths.index(-1)] = call.number(x.shape[axis], "the length that is split") - sum(lengths) - 1
    return _parts(call, x, axis, lengths)


@op("SLICE", numbers=Numbers.STORED)
def _slice(call: TfliteCall) -> Node:
    """The sizes in input 2 may be −1: all that is left."""
    x, starts, sizes = call.x(), call.dims(1), call.dims(2)
    if not len(starts) == len(sizes) == len(x.shape):
        raise call.fail(f"{len(starts)} starts and {len(sizes)} sizes for {len(x.shape)} axes")
    found = tuple(d - s if n == -1 else n for d, s, n in zip(x.shape, starts, sizes, strict=True))
    if any(isinstance(v, int) and v < 0 for v in (*starts, *found)):
        raise call.fail(f"starts {starts} and sizes {sizes} lie outside of {show(x.shape)}")
    return call.b.slice(x, starts=starts, steps=(1,) * len(starts), sizes=found)


@op("STRIDED_SLICE", numbers=Numbers.STORED)
def _strided_slice(call: TfliteCall) -> Node:
    """Starts, ends and steps as in a Python slice; masks, a bit for each of them, say which are left out, and which are no ranges: an ellipsis, a
    new axis, or one index, whose axis is dropped."""
    x = call.x()
    begins, ends, strides = call.dims(1), call.dims(2), call.ints(3)
    if not len(begins) == len(ends) == len(strides) or len(begins) > len(x.shape) + 32:
        raise call.fail(f"{len(begins)} starts, {len(ends)} ends and {len(strides)} steps; expected as many of each")
    if call.option("offset"):
        ends = tuple(a + n for a, n in zip(begins, ends, strict=True))
    masks = {k: call.option(k) for k in ("begin", "end", "ellipsis", "new", "shrink")}

    def has(mask: str, k: int) -> bool:
        return bool(masks[mask] >> k & 1)

    taken = sum(not has("new", k) and not has("ellipsis", k) for k in range(len(begins)))
    starts: list[Dim] = []
    sizes: list[Dim] = []
    by: list[int] = []
    shape: list[Dim] = []

    def whole(count: int) -> None:
        for d in x.shape[len(starts) : len(starts) + count]:
            starts.append(0)
            sizes.append(d)
            by.append(1)
            shape.append(d)

    for k in range(len(begins)):
        if has("ellipsis", k):
            whole(len(x.shape) - taken)
            continue
        if has("new", k):
            shape.append(1)
            continue
        if len(starts) == len(x.shape):
            raise call.fail(f"{taken} ranges for {len(x.shape)} axes")
        d = x.shape[len(starts)]
        if has("shrink", k):
            at = _placed(begins[k], d)
            if isinstance(d, int) and isinstance(at, int) and not 0 <= at < d:
                raise call.fail(f"index {begins[k]} of axis {len(starts)} of {show(x.shape)}")
            starts.append(at)
            sizes.append(1)
            by.append(1)
            continue
        start, count = _span(
            call, d, None if has("begin", k) else begins[k], None if has("end", k) else ends[k], strides[k]
        )
        starts.append(start)
        sizes.append(count)
        by.append(strides[k])
        shape.append(count)
    whole(len(x.shape) - len(starts))
    cut = call.b.slice(x, starts=tuple(starts), steps=tuple(by), sizes=tuple(sizes))
    return call.b.reshape(cut, shape=tuple(shape))


def _placed(place: Dim, d: Dim) -> Dim:
    """A place that counts from the end if it is negative. (One that is an open size does not.)"""
    return place + d if isinstance(place, int) and place < 0 else place


def _span(call: TfliteCall, d: Dim, begin: Dim | None, end: Dim | None, step: int) -> tuple[Dim, Dim]:
    """The start and the number of elements of a range in an axis of length d."""
    if step == 0:
        raise call.fail("a step is 0")
    if isinstance(d, int) and not isinstance(begin, Size) and not isinstance(end, Size):
        found = range(d)[begin:end:step]
        return (found.start if len(found) else 0), len(found)
    if step < 0:
        call.number(d, "the length of an axis that is read backwards")
    start = dim_min(dim_max(_placed(0 if begin is None else begin, d), 0), d)
    stop = dim_min(dim_max(_placed(d if end is None else end, d), 0), d)
    return start, dim_max(floordiv(stop - start + step - 1, step), 0)


@op("REVERSE_V2", numbers=Numbers.STORED)
def _reverse(call: TfliteCall) -> Node:
    x = call.x()
    axes = {call.axis(a, len(x.shape)) for a in call.ints(1)}
    starts = tuple(d - 1 if k in axes else 0 for k, d in enumerate(x.shape))
    return call.b.slice(
        x, starts=starts, steps=tuple(-1 if k in axes else 1 for k in range(len(x.shape))), sizes=x.shape
    )


# --- by indices ----------------------------------------------------------------------------------------------------


@op("GATHER", numbers=Numbers.STORED)
def _gather(call: TfliteCall) -> Node:
    if call.option("batch"):
        raise call.fail(f"{call.option('batch')} axes are batches; Singe reads GATHER without")
    x = call.x()
    return call.b.gather(x, call.x(1), axis=call.axis(call.option("axis"), len(x.shape)))


@op("GATHER_ND", numbers=Numbers.STORED)
def _gather_nd(call: TfliteCall) -> Node:
    return call.b.gather_nd(call.x(), call.x(1), batch=0)


@op("EMBEDDING_LOOKUP")
def _embedding_lookup(call: TfliteCall) -> Node:
    return call.b.gather(call.x(1), call.x(), axis=0)


@op("ONE_HOT", numbers=Numbers.OWN)
def _one_hot(call: TfliteCall) -> Node:
    """Input 1 is the depth; inputs 2 and 3 what is on and off."""
    b, x, depth = call.b, call.x(), call.int(1)
    axis = call.axis(call.option("axis"), len(x.shape) + 1)
    classes = b.const(np.arange(min(max(depth, 0), 1 << 24), dtype=np.int64).reshape(-1, *(1,) * (len(x.shape) - axis)))
    longer = b.reshape(as_dtype(b, x, int64), shape=(*x.shape[:axis], 1, *x.shape[axis:]))
    return b.where(b.equal(longer, classes), *(b.reshape(call.x(i), shape=()) for i in (2, 3)))


@op("DYNAMIC_UPDATE_SLICE", numbers=Numbers.STORED)
def _dynamic_update_slice(call: TfliteCall) -> Node:
    b, x, new, at = call.b, call.x(), call.x(1), call.x(2)
    rank = len(x.shape)
    if at.shape != (rank,) or len(new.shape) != rank:
        raise call.fail(f"a part {show(new.shape)} at {show(at.shape)} indices does not fit {show(x.shape)}")
    starts = [b.reshape(part(b, at, 0, k, 1), shape=()) for k in range(rank)]
    limits = [b.const(d - n, at.dtype) for d, n in zip(x.shape, new.shape, strict=True)]
    zero = b.const(0, at.dtype)
    return b.update_slice(
        x, new, *(b.minimum(b.maximum(s, zero), most) for s, most in zip(starts, limits, strict=True))
    )


# --- padding -------------------------------------------------------------------------------------------------------


def _pads(call: TfliteCall, i: int, axes: int) -> tuple[Shape, Shape]:
    """The lengths before and after each axis, in an input of so many rows of two."""
    numbers = call.dims(i)
    if len(numbers) != 2 * axes or any(isinstance(d, int) and not 0 <= d < 1 << 31 for d in numbers):
        raise call.fail(f"input {i} is {numbers[:20]}; expected two lengths for each of {axes} axes")
    return numbers[::2], numbers[1::2]


@op("PAD", "PADV2", numbers=Numbers.STORED)
def _pad(call: TfliteCall) -> Node:
    """Around quantised integers the padding is their zero point, or what input 2 holds."""
    x, b = call.x(), call.b
    before, after = _pads(call, 1, len(x.shape))
    scale = call.scale(0)
    zero = 0 if scale is None else int(scale.zero[0])
    fill = b.reshape(call.x(2), shape=()) if call.is_given(2) else b.const(zero, x.dtype)
    return b.pad(x, fill, before=before, after=after, mode="constant")


@op("MIRROR_PAD", numbers=Numbers.STORED)
def _mirror_pad(call: TfliteCall) -> Node:
    b, x, mode = call.b, call.x(), call.option("mode")
    if not 0 <= mode < len(MIRRORS):
        raise call.fail(f"the mode is {mode}; expected 0 or 1")
    before, after = _pads(call, 1, len(x.shape))
    if MIRRORS[mode] == "reflect":
        return b.pad(x, b.const(0, x.dtype), before=before, after=after, mode="reflect")
    for axis, (lo, hi) in enumerate(zip(before, after, strict=True)):
        d, lo, hi = (call.number(v, "a length to mirror") for v in (x.shape[axis], lo, hi))
        if max(lo, hi) > d:
            raise call.fail(f"padding of {lo} and {hi} around axis {axis} of {show(x.shape)}; expected at most {d}")
        if lo or hi:
            places = np.pad(np.arange(d, dtype=np.int64), (lo, hi), mode="symmetric")
            x = b.gather(x, b.const(places), axis=axis)
    return x


# --- blocks of space -----------------------------------------------------------------------------------------------


def _block(call: TfliteCall) -> int:
    block = call.option("block")
    if not 1 <= block <= 1 << 15:
        raise call.fail(f"blocks of {block}; expected 1 or more")
    return block


@op("DEPTH_TO_SPACE", numbers=Numbers.STORED)
def _depth_to_space(call: TfliteCall) -> Node:
    b, x, k = call.b, call.ranked(0, 4), _block(call)
    n, height, width, channels = x.shape
    each = floordiv(channels, k * k)
    apart = b.reshape(x, shape=(n, height, width, k, k, each))
    return b.reshape(b.transpose(apart, perm=(0, 1, 3, 2, 4, 5)), shape=(n, height * k, width * k, each))


@op("SPACE_TO_DEPTH", numbers=Numbers.STORED)
def _space_to_depth(call: TfliteCall) -> Node:
    b, x, k = call.b, call.ranked(0, 4), _block(call)
    n, height, width, channels = x.shape
    rows, columns = floordiv(height, k), floordiv(width, k)
    apart = b.reshape(x, shape=(n, rows, k, columns, k, channels))
    return b.reshape(b.transpose(apart, perm=(0, 1, 3, 2, 4, 5)), shape=(n, rows, columns, k * k * channels))


@op("SPACE_TO_BATCH_ND", numbers=Numbers.STORED)
def _space_to_batch(call: TfliteCall) -> Node:
    b, x, blocks = call.b, call.x(), _blocks(call)
    count = len(blocks)
    before, after = _pads(call, 2, count)
    rest = (0,) * (len(x.shape) - 1 - count)
    scale = call.scale(0)
    fill = b.const(0 if scale is None else int(scale.zero[0]), x.dtype)
    x = b.pad(x, fill, before=(0, *before, *rest), after=(0, *after, *rest), mode="constant")
    n, space, inner = x.shape[0], x.shape[1 : 1 + count], x.shape[1 + count :]
    places = [floordiv(d, k) for d, k in zip(space, blocks, strict=True)]
    apart = b.reshape(x, shape=(n, *(d for pair in zip(places, blocks, strict=True) for d in pair), *inner))
    perm = (*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, len(apart.shape)))
    return b.reshape(b.transpose(apart, perm=perm), shape=(n * product(blocks), *places, *inner))


@op("BATCH_TO_SPACE_ND", numbers=Numbers.STORED)
def _batch_to_space(call: TfliteCall) -> Node:
    b, x, blocks = call.b, call.x(), _blocks(call)
    count = len(blocks)
    before, after = _pads(call, 2, count)
    n, space, inner = floordiv(x.shape[0], product(blocks)), x.shape[1 : 1 + count], x.shape[1 + count :]
    apart = b.reshape(x, shape=(*blocks, n, *space, *inner))
    perm = (count, *(k for i in range(count) for k in (count + 1 + i, i)), *range(2 * count + 1, len(apart.shape)))
    whole = [d * k for d, k in zip(space, blocks, strict=True)]
    joined = b.reshape(b.transpose(apart, perm=perm), shape=(n, *whole, *inner))
    sizes = [d - lo - hi for d, lo, hi in zip(whole, before, after, strict=True)]
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise call.fail(f"crops of {before} and {after} of {whole}")
    starts = (0, *before, *(0,) * len(inner))
    return b.slice(joined, starts=starts, steps=(1,) * len(starts), sizes=(n, *sizes, *inner))


def _blocks(call: TfliteCall) -> tuple[int, ...]:
    blocks = call.ints(1)
    if not 1 <= len(blocks) < len(call.x().shape) or not all(1 <= k <= 1 << 15 for k in blocks):
        raise call.fail(
            f"blocks of {blocks[:9]} for the shape {show(call.x().shape)}; expected a number from 1 for each axis of space"
        )
    return blocks


# --- sampling ------------------------------------------------------------------------------------------------------


def _resized(call: TfliteCall, mode: str, rounding: str) -> Node:
    x, space = call.ranked(0, 4), call.dims(1)
    if len(space) != 2 or any(isinstance(d, int) and not 1 <= d <= 1 << 20 for d in space):
        raise call.fail(f"the size is {space[:9]}; expected two lengths of 1 or more")
    half, corners = call.option("half_pixel"), call.option("align_corners")
    coordinates = "half_pixel" if half else "align_corners" if corners else "asymmetric"
    return call.b.resize(
        x, sizes=(x.shape[0], *space, x.shape[3]), mode=mode, coordinates=coordinates, nearest=rounding
    )


@op("RESIZE_BILINEAR", ties_up=True)
def _resize_bilinear(call: TfliteCall) -> Node:
    return _resized(call, "linear", "floor")


@op("RESIZE_NEAREST_NEIGHBOR", numbers=Numbers.STORED)
def _resize_nearest(call: TfliteCall) -> Node:
    """The element in which the middle of the new one lies, or that at or before its first edge; of corners that are aligned, the nearest."""
    rounding = "round_prefer_ceil" if call.option("half_pixel") or call.option("align_corners") else "floor"
    return _resized(call, "nearest", rounding)
