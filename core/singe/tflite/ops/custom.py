"""Ops of MediaPipe, which are none of TensorFlow Lite's own. Their options are C structs, or maps in FlexBuffers."""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final

import numpy as np

from ...dtypes import float32, int32
from ...graph import Node
from ...ops.products.transposed import transposed_last
from ...shapes import product, show
from ..flexbuffer import read_options
from ._call import TfliteCall, activated, op
from .windows import PoolFacts, pool_facts

PADDINGS: Final = {1: 0, 2: 1}
"""The padding in the structs ↦ that in the files of TensorFlow Lite: SAME and VALID."""
INDEX_SHIFT: Final = 0.1
"""What MaxPoolingWithArgmax2D adds to each place, so that a cast to an integer is sure to find it."""


def _struct(call: TfliteCall, names: str) -> TfliteCall:
    """The call with the options that a struct of 32-bit integers holds."""
    fields = names.split()
    try:
        values = Struct(f"<{len(fields)}i").unpack_from(call.op.custom)
    except error:
        raise call.fail(f"options of {len(call.op.custom)} bytes; expected {4 * len(fields)}") from None
    options = dict(zip(fields, values, strict=True))
    if options["padding"] not in PADDINGS:
        raise call.fail(f"padding is {options['padding']}; expected 1 or 2")
    options["padding"] = PADDINGS[options["padding"]]
    return call.with_options(options)


def _map(call: TfliteCall, **kinds: type) -> dict[str, Any]:
    """The options with these names, of these kinds, in a map."""
    options = read_options(call.op.custom)
    for name, kind in kinds.items():
        found = options.get(name)
        if not isinstance(found, kind) and not (kind is float and isinstance(found, int)):
            raise call.fail(f"option {name!r} is {found!r:.60}; expected {kind.__name__}")
    return {name: options[name] for name in kinds}


# --- convolutions and pools ----------------------------------------------------------------------------------------


@op("CUSTOM:Convolution2DTransposeBias")
def _convolution_transpose_bias(call: TfliteCall) -> Node:
    """A transposed convolution. SAME padding takes as much as a convolution of the input's length would have."""
    call = _struct(call, "padding stride_w stride_h")
    b, x, w = call.b, call.ranked(0, 4), call.ranked(1, 4)
    strides = call.option("stride_h"), call.option("stride_w")
    if not all(1 <= s <= 1 << 16 for s in strides) or x.shape[3] != w.shape[3]:
        raise call.fail(f"strides {strides}, an input {show(x.shape)} and weights {show(w.shape)} do not fit")
    window = [call.number(d, "the weights' shape") for d in w.shape[1:3]]
    space = [call.number(d, "the input's shape") for d in x.shape[1:3]]
    pads = [
        max(k - (d - 1) % s - 1, 0) if call.is_same_padded else 0
        for k, d, s in zip(window, space, strides, strict=True)
    ]
    sizes = tuple(s * (d - 1) + k - p for s, d, k, p in zip(strides, space, window, pads, strict=True))
    before = [p // 2 for p in pads]
    weights = b.transpose(w, perm=(1, 2, 3, 0))
    return b.add(transposed_last(b, x, weights, strides, (1, 1), before, sizes, 1), call.x(2))


_POOL: Final = "padding stride_w stride_h window_w window_h activation"


@op("CUSTOM:MaxPoolingWithArgmax2D")
def _max_pool_argmax(call: TfliteCall) -> list[Node]:
    """The largest element of each window, and its place within the window, counted row by row, as a float."""
    call = _struct(call, _POOL)
    b, x = call.b, call.ranked(0, 4)
    facts = pool_facts(call, x)
    height, width, channels = (call.number(d, "the input's shape") for d in x.shape[1:])
    flat = b.cast(b.max_pool_index(x, **facts), to=int32)
    # A flat index counts batches, rows, columns and channels: those within the window come of the window's own place.
    row = b.remainder(b.floor_divide(flat, b.const(width * channels, int32)), b.const(max(height, 1), int32))
    column = b.remainder(b.floor_divide(flat, b.const(channels, int32)), b.const(max(width, 1), int32))
    rows, columns = (_first(call, facts, axis, flat) for axis in (1, 2))
    place = b.add(b.mul(b.sub(row, rows), b.const(facts["window"][2], int32)), b.sub(column, columns))
    shifted = b.add(b.cast(place, to=float32), b.const(INDEX_SHIFT, float32))
    return [activated(call, b.max_pool(x, **facts), None), shifted]


def _first(call: TfliteCall, facts: PoolFacts, axis: int, at: Node) -> Node:
    """Where each window begins along an axis, in a shape that broadcasts with the windows."""
    count = call.number(at.shape[axis], "the output's shape")
    stride, before = (call.number(facts[k][axis], k) for k in ("strides", "before"))
    starts = np.arange(count, dtype=np.int32) * stride - before
    return call.b.const(starts.reshape([-1 if k == axis else 1 for k in range(4)]))


@op("CUSTOM:MaxUnpooling2D")
def _max_unpooling(call: TfliteCall) -> Node:
    """Each element at its place within its window, of which none touch, and zeros elsewhere."""
    call = _struct(call, _POOL)
    b, x = call.b, call.ranked(0, 4)
    window = call.option("window_h"), call.option("window_w")
    strides = call.option("stride_h"), call.option("stride_w")
    if window != strides or not all(1 <= k <= 1 << 10 for k in window):
        raise call.fail(f"windows of {window} with strides of {strides}; Singe reads equal ones")
    n, height, width, channels = x.shape
    places = np.arange(window[0] * window[1], dtype=np.int32).reshape(1, 1, window[0], 1, window[1], 1)
    apart = (n, height, 1, width, 1, channels)
    met = b.equal(b.reshape(b.cast(call.x(1), to=int32), shape=apart), b.const(places))
    spread = b.where(met, b.reshape(x, shape=apart), b.const(0, x.dtype))
    return b.reshape(spread, shape=(n, height * window[0], width * window[1], channels))


# --- landmarks -----------------------------------------------------------------------------------------------------


def _version_two(call: TfliteCall) -> TfliteCall:
    if call.op.version != 2:
        raise call.fail(f"version {call.op.version} of {call.op.op}; Singe reads version 2")
    return call


@op("CUSTOM:Landmarks2TransformMatrix")
def _landmarks_to_matrix(call: TfliteCall) -> Node:
    """The matrix (1, 4, 4) that maps places in a picture of a part of the face, as large as the options say, to places in the whole one: the box
    around some landmarks (1, landmarks, 3), turned so that two of them lie level."""
    b, x = _version_two(call).b, call.ranked(0, 3)
    o = _map(
        call, subset_idxs=list, left_rotation_idx=int, right_rotation_idx=int, target_rotation_radians=float, output_height=int, output_width=int,
        scale_x=float, scale_y=float,
    )  # fmt: skip
    count = call.number(x.shape[1], "the number of landmarks")
    subset = np.array(o["subset_idxs"] or [0], np.int64)
    ends = np.array([o["left_rotation_idx"], o["right_rotation_idx"]], np.int64)
    if (
        x.shape[0] != 1
        or x.shape[2] != 3
        or min(subset.min(), ends.min()) < 0
        or max(subset.max(), ends.max()) >= count
    ):
        raise call.fail(f"landmarks {show(x.shape)}; expected (1, landmarks, 3) with those that the options name")
    if not 0 < o["output_width"] <= 1 << 16 or not 0 < o["output_height"] <= 1 << 16:
        raise call.fail(f"a picture of {o['output_width']} × {o['output_height']}; expected lengths of 1 or more")

    def column(axis: int, indices: np.ndarray) -> Node:
        flat = b.reshape(x, shape=(3 * count,))
        return b.gather(flat, b.const(indices * 3 + axis), axis=0)

    def at(v: Node, k: int) -> Node:
        return b.reshape(b.slice(v, starts=(k,), steps=(1,), sizes=(1,)), shape=())

    def number(v: float) -> Node:
        return b.const(float(v), float32)

    across, down = column(0, ends), column(1, ends)
    level = b.atan2(b.sub(at(down, 1), at(down, 0)), b.sub(at(across, 1), at(across, 0)))
    angle = b.sub(number(o["target_rotation_radians"]), level)
    cos, sin = b.cos(angle), b.sin(angle)
    xs, ys = column(0, subset), column(1, subset)
    turned = b.sub(b.mul(cos, xs), b.mul(sin, ys)), b.add(b.mul(sin, xs), b.mul(cos, ys))
    most, least = ([b.reshape(fold(v, axes=(0,)), shape=()) for v in turned] for fold in (b.reduce_max, b.reduce_min))
    wide, high = (b.sub(m, n) for m, n in zip(most, least, strict=True))
    middle = [b.mul(b.add(m, n), number(0.5)) for m, n in zip(most, least, strict=True)]
    # Turned back by the angle: its cosine is the same, and its sine the opposite.
    centre = b.add(b.mul(cos, middle[0]), b.mul(sin, middle[1])), b.sub(b.mul(cos, middle[1]), b.mul(sin, middle[0]))
    by_x = b.mul(wide, number(o["scale_x"] / o["output_width"]))
    by_y = b.mul(high, number(o["scale_y"] / o["output_height"]))
    rows = ((b.mul(cos, by_x), b.mul(sin, by_y)), (b.neg(b.mul(sin, by_x)), b.mul(cos, by_y)))
    half = number(o["output_width"] / 2), number(o["output_height"] / 2)
    entries: list[Node] = []
    for (first, second), place in zip(rows, centre, strict=True):
        shift = b.sub(place, b.add(b.mul(first, half[0]), b.mul(second, half[1])))
        entries += [first, second, number(0), shift]
    rest = b.const(np.array([0, 0, 1, 0, 0, 0, 0, 1], np.float32))
    whole = b.concat(*(b.reshape(e, shape=(1,)) for e in entries), rest, axis=0)
    return b.reshape(whole, shape=(1, 4, 4))


def _rows(call: TfliteCall, i: int) -> tuple[Node, Node]:
    """The first two rows of a matrix (1, 4, 4), each as a vector."""
    b, m = call.b, call.x(i)
    if product(m.shape) != 16:
        raise call.fail(f"input {i} has the shape {show(m.shape)}; expected 16 elements")
    flat = b.reshape(m, shape=(4, 4))
    first, second = (b.reshape(b.slice(flat, starts=(k, 0), steps=(1, 1), sizes=(1, 4)), shape=(4,)) for k in range(2))
    return first, second


@op("CUSTOM:TransformLandmarks")
def _transform_landmarks(call: TfliteCall) -> Node:
    """Landmarks (1, landmarks, 2 or 3) by a matrix; a third coordinate stays."""
    b, x = _version_two(call).b, call.ranked(0, 3)
    coordinates = x.shape[2]
    if coordinates not in (2, 3):
        raise call.fail(f"landmarks {show(x.shape)}; expected 2 or 3 coordinates")

    def coordinate(k: int) -> Node:
        return b.slice(x, starts=(0, 0, k), steps=(1, 1, 1), sizes=(*x.shape[:2], 1))

    def entry(row: Node, k: int) -> Node:
        return b.reshape(b.slice(row, starts=(k,), steps=(1,), sizes=(1,)), shape=())

    moved = [
        b.add(b.add(b.mul(coordinate(0), entry(row, 0)), b.mul(coordinate(1), entry(row, 1))), entry(row, 3))
        for row in _rows(call, 1)
    ]
    return b.concat(*moved, *(coordinate(k) for k in range(2, int(coordinates))), axis=2)


@op("CUSTOM:TransformTensorBilinear")
def _transform_tensor(call: TfliteCall) -> Node:
    """A picture of the size that the options say, each of whose elements is sampled where a matrix maps it; zeros outside of the input."""
    b, x = _version_two(call).b, call.ranked(0, 4)
    o = _map(call, output_height=int, output_width=int)
    height, width = o["output_height"], o["output_width"]
    rows, columns = (call.number(d, "the input's shape") for d in x.shape[1:3])
    if x.shape[0] != 1 or not 1 <= height * width <= 1 << 24 or min(rows, columns, height, width) < 1:
        raise call.fail(
            f"an input {show(x.shape)} and an output of {height} × {width}; expected one picture, and lengths of 1 or more"
        )
    down, across = np.mgrid[0:height, 0:width].astype(np.float32) + np.float32(0.5)
    places: list[Node] = []
    for row in _rows(call, 1):
        a, c, _, shift = (b.reshape(b.slice(row, starts=(k,), steps=(1,), sizes=(1,)), shape=()) for k in range(4))
        mapped = b.add(b.add(b.mul(b.const(across), a), b.mul(b.const(down), c)), b.sub(shift, b.const(0.5, float32)))
        places.append(b.reshape(mapped, shape=(height * width,)))
    flat = b.reshape(x, shape=(rows * columns, x.shape[3]))
    total, outside = None, None
    before: list[tuple[Node, Node]] = []
    for place, length in zip(places, (columns, rows), strict=True):
        last = b.const(float(length - 1), float32)
        beyond = b.logical_or(b.less(place, b.const(0.0, float32)), b.greater(place, last))
        outside = beyond if outside is None else b.logical_or(outside, beyond)
        floor = b.floor(b.clip(place, b.const(0.0, float32), last))
        before.append((b.cast(floor, to=int32), b.reshape(b.sub(place, floor), shape=(height * width, 1))))
    (left, right_part), (upper, lower_part) = before
    one = b.const(1.0, float32)
    for below in (0, 1):
        for right in (0, 1):
            column = b.minimum(b.add(left, b.const(right, int32)), b.const(columns - 1, int32))
            line = b.minimum(b.add(upper, b.const(below, int32)), b.const(rows - 1, int32))
            read = b.gather(flat, b.add(b.mul(line, b.const(columns, int32)), column), axis=0)
            weight = b.mul(
                right_part if right else b.sub(one, right_part), lower_part if below else b.sub(one, lower_part)
            )
            share = b.mul(read, weight)
            total = share if total is None else b.add(total, share)
    assert total is not None
    assert outside is not None
    inside = b.where(b.reshape(outside, shape=(height * width, 1)), b.const(0, x.dtype), total)
    return b.reshape(inside, shape=(1, height, width, x.shape[3]))
