"""Rows that read between elements: grid_sample, deformable convolution, and regions of pictures.

x has the layout (batch, channels, …space). A place along an axis is a float; 0 is the middle of the first element. The
elements around a place are weighted by their distances from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product as combinations
from typing import Any, Final

from ...dtypes import FLOATS, NUMBERS, bool_, float32, int32
from ...errors import DTypeError, ShapeError
from ...late_dataclass import dataclass
from ...shapes import Dim, Shape, product, same, show, strides
from ..kinds import Composite, as_dtype, constants_like, register
from .move import amount, nearest_index, numbered

CUBIC: Final = -0.75
"""The coefficient of cubic weights, as PyTorch and ONNX have it."""
PADDINGS: Final = ("zeros", "border", "reflection")
MAX_SAMPLES: Final = 1 << 12
"""The most places along each axis of a part of a region whose values are pooled."""


@dataclass(frozen=True)
class _Tap:
    """One of the elements around the places of an axis: its index (may lie outside), and its weight (None: 1)."""

    index: Any
    weight: Any


def _nearest(b: Any, place: Any) -> list[_Tap]:
    return [_Tap(b.cast(b.round(place), to=int32), None)]


def _linear(b: Any, place: Any) -> list[_Tap]:
    low = b.floor(place)
    (one,) = constants_like(b, place, 1.0)
    far = b.sub(place, low)
    index = b.cast(low, to=int32)
    return [_Tap(index, b.sub(one, far)), _Tap(b.add(index, b.const(1, int32)), far)]


def _cubic(b: Any, place: Any) -> list[_Tap]:
    low = b.floor(place)
    index, far = b.cast(low, to=int32), b.sub(place, low)

    def polynomial(x: Any, *factors: float) -> Any:
        first, *rest = constants_like(b, place, *factors)
        return reduce(lambda total, f: b.add(b.mul(total, x), f), rest, first)

    near = (CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)
    distant = (CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)
    one, two = constants_like(b, place, 1.0, 2.0)
    ends = (
        (-1, b.add(far, one), distant), (0, far, near), (1, b.sub(one, far), near), (2, b.sub(two, far), distant)
    )  # fmt: skip
    return [_Tap(b.add(index, b.const(k, int32)), polynomial(x, *factors)) for k, x, factors in ends]


MODES: Final[Mapping[str, Callable[[Any, Any], list[_Tap]]]] = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}
"""mode ↦ the elements around a place along one axis."""


def _reflected(b: Any, place: Any, low: Any, high: Any) -> Any:
    """The place reflected at both ends as often as needed to lie between them. For ends of distance 0 it is `low`."""
    zero, one, two = constants_like(b, place, 0.0, 1.0, 2.0)
    length = b.sub(high, low)
    turn = b.maximum(b.mul(two, length), one)
    far = b.abs(b.sub(place, low))
    rest = b.sub(far, b.mul(b.floor(b.div(far, turn)), turn))
    return b.add(low, b.maximum(b.minimum(rest, b.sub(b.mul(two, length), rest)), zero))


def _inside(b: Any, index: Any, d: Dim) -> Any:
    return b.logical_and(b.greater_equal(index, b.const(0, int32)), b.less(index, b.const(d, int32)))


def _around(
    b: Any, place: Any, d: Dim, mode: str, padding: str, edges: tuple[Any, Any], by_element: bool = False
) -> list[tuple[_Tap, Any]]:
    """The elements around the places of an axis of length d, by valid indices; and where they count (None: everywhere).
    edges: the ends of the axis, at which places are reflected; by_element: places stay beyond a border, and the elements
    there are the last ones."""
    if mode == "nearest":
        place = b.round(place)
    if padding == "reflection" or (padding == "border" and not by_element):
        low, high = edges
        outside = b.logical_or(b.less(place, low), b.greater(place, high))
        first, last = b.const(0, place.dtype), amount(b, d - 1, place.dtype)
        moved = b.clip(place, first, last) if padding == "border" else _reflected(b, place, low, high)
        place = b.where(outside, moved, place)
    found = []
    for tap in MODES[mode](b, place):
        index, counts = tap.index, None
        if padding == "zeros":
            counts = _inside(b, index, d)
        elif padding == "reflection":
            index = b.cast(_reflected(b, b.cast(index, to=place.dtype), *edges), to=int32)
        found.append((_Tap(nearest_index(b, index, d), tap.weight), counts))
    return found


def _weighted(
    b: Any, x: Any, space: Shape, around: Sequence[Sequence[tuple[_Tap, Any]]], first: Any = None
) -> list[Any]:
    """For each combination of taps along the axes, the elements times their weights: (batch, channels, places).

    x: (batch, channels, …), a row of elements of the given space. The places of each axis are (batch, 1, places).
    first: the index of the element at the origin, if it is not 0."""
    found = []
    for combination in combinations(*around):
        index, weight, counts = first, None, None
        for (tap, inside), stride in zip(combination, strides(space), strict=True):
            index = _joined(b.add, index, tap.index if stride == 1 else b.mul(tap.index, b.const(stride, int32)))
            weight = _joined(b.mul, weight, tap.weight)
            counts = _joined(b.logical_and, counts, inside)
        if counts is not None:  # −1 marks an element that is zero, so that one number tells place and mark
            index = b.where(counts, index, b.const(-1, int32))
        value = b.gather_elements(x, b.expand(index, shape=(*x.shape[:2], index.shape[2])), axis=2)
        if counts is not None:
            value = b.where(b.less(index, b.const(0, int32)), b.const(0, x.dtype), value)
        if weight is not None:
            value = b.mul(value, as_dtype(b, weight, x.dtype))
        found.append(value)
    return found


def _joined(join: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Both joined; None has no effect."""
    return y if x is None else x if y is None else join(x, y)


# --- grid_sample -----------------------------------------------------------------------------------------------------


def _last(b: Any, x: Any, k: int) -> Any:
    """The elements at index k of the last axis, which is dropped."""
    rank = len(x.shape)
    starts, sizes = (*(0,) * (rank - 1), k), (*x.shape[:-1], 1)
    return b.reshape(b.slice(x, starts=starts, steps=(1,) * rank, sizes=sizes), shape=x.shape[:-1])


def _grid_sample(
    b: Any,
    x: Any,
    grid: Any,
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    by_element: bool = False,
) -> Any:
    """by_element: what the padding "border" means: each element beyond an end is the last one, as in PyTorch; otherwise, as
    in ONNX, the place moves to the end. For cubic weights these differ."""
    space = x.shape[2:]
    fits = len(grid.shape) == len(x.shape) >= 3 and same(grid.shape[0], x.shape[0], "grid_sample")
    if not fits or not same(grid.shape[-1], len(space), "grid_sample"):
        raise ShapeError(
            f"grid_sample: x {show(x.shape)} with the grid {show(grid.shape)}; "
            f"expected (batch, channels, …space) with (batch, …space, {len(space)})"
        )
    if mode not in MODES or padding not in PADDINGS:
        raise ShapeError(
            f"grid_sample: got the mode {mode!r} and the padding {padding!r}, "
            f"expected {', '.join(MODES)} and {', '.join(PADDINGS)}"
        )
    if grid.dtype not in FLOATS:
        raise DTypeError(f"grid_sample: the grid is {grid.dtype}, expected a float type; cast it first")
    batch, channels = x.shape[:2]
    out = (batch, channels, *grid.shape[1:-1])
    kind = x.dtype
    if product(out) == 0:
        return b.expand(b.const(0, kind), shape=out)
    if mode != "nearest":
        x = as_dtype(b, x, kind.compute if kind.is_float else float32)
    grid = as_dtype(b, grid, grid.dtype.compute)
    half, one, two = constants_like(b, grid, 0.5, 1.0, 2.0)
    around = []
    for axis, d in enumerate(space):
        length, last = amount(b, d, grid.dtype), amount(b, d - 1, grid.dtype)
        place = b.reshape(_last(b, grid, len(space) - 1 - axis), shape=(batch, 1, product(grid.shape[1:-1])))
        if align_corners:
            place, edges = b.mul(b.div(b.add(place, one), two), last), (b.const(0, grid.dtype), last)
        else:
            place = b.div(b.sub(b.mul(b.add(place, one), length), one), two)
            edges = b.neg(half), b.sub(length, half)
        around.append(_around(b, place, d, mode, padding, edges, by_element))
    flat = b.reshape(x, shape=(batch, channels, product(space)))
    found = b.reshape(reduce(b.add, _weighted(b, flat, space, around)), shape=out)
    return as_dtype(b, found, kind)


def _affine_grid(b: Any, theta: Any, *, space: Shape, align_corners: bool = False) -> Any:
    """theta · (x, y, …, 1) for the places of the elements, from −1 to 1 along each axis."""
    axes = len(space)
    if len(theta.shape) != 3 or tuple(theta.shape[1:]) != (axes, axes + 1):
        raise ShapeError(f"affine_grid: theta {show(theta.shape)}, expected (batch, {axes}, {axes + 1})")
    kind, batch = theta.dtype, theta.shape[0]
    theta = as_dtype(b, theta, kind.compute)
    one, two = constants_like(b, theta, 1.0, 2.0)

    def factor(k: int) -> Any:
        return b.reshape(_last(b, theta, k), shape=(batch, *(1,) * axes, axes))

    total = factor(axes)
    for axis, d in enumerate(space):
        numbers = numbered(b, d, theta.dtype)
        if align_corners:  # the only element of an axis of length 1 is at −1
            last = b.maximum(amount(b, d - 1, theta.dtype), one)
            place = b.sub(b.div(b.mul(two, numbers), last), one)
        else:
            place = b.sub(b.div(b.add(b.mul(two, numbers), one), amount(b, d, theta.dtype)), one)
        place = b.reshape(place, shape=tuple(d if i == axis + 1 else 1 for i in range(axes + 2)))
        total = b.add(total, b.mul(factor(axes - 1 - axis), place))
    return as_dtype(b, total, kind)


# --- deformable convolution ------------------------------------------------------------------------------------------


def _deform_conv(
    b: Any, x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None, *,
    strides: Sequence[int], dilations: Sequence[int], before: Sequence[int], after: Sequence[int], group: int, offset_group: int,
) -> Any:  # fmt: skip
    """The weights times the elements at the places of an ordinary convolution, moved by the offsets."""
    batch, channels, *space = x.shape
    outputs, per_group, *window = w.shape
    taps, axes = product(window), len(space)
    if axes < 1 or len(window) != axes or not all(isinstance(d, int) for d in (outputs, per_group, channels, taps)):
        raise ShapeError(f"deform_conv: x {show(x.shape)} and weights {show(w.shape)}, expected as many axes in both")
    places = tuple(
        (d + lo + hi - r * (k - 1) - 1) // s + 1
        for d, k, s, r, lo, hi in zip(space, window, strides, dilations, before, after, strict=True)
    )
    wanted = (batch, offset_group * taps * axes, *places)
    divided = channels == per_group * group and outputs % group == 0 and channels % offset_group == 0
    for what, given, shape in (("offset", offset, wanted), ("mask", mask, (batch, offset_group * taps, *places))):
        if given is None:
            continue
        if not divided or len(given.shape) != len(shape) or not all(map(_same_here, given.shape, shape)):
            raise ShapeError(
                f"deform_conv: x {show(x.shape)}, weights {show(w.shape)} and {what} {show(given.shape)} in {group} "
                f"groups and {offset_group} groups of offsets; expected the {what} {show(shape)}"
            )
    kind = x.dtype
    x, w, offset = (as_dtype(b, v, v.dtype.compute) for v in (x, w, offset))
    rows, count = batch * offset_group, taps * product(places)
    moved = b.reshape(offset, shape=(rows, taps, axes, product(places)))
    around = []
    for axis, d in enumerate(space):
        start = b.const(-before[axis], int32)
        at = b.arange(start, b.const(strides[axis], int32), count=places[axis])
        inner = b.arange(b.const(0, int32), b.const(dilations[axis], int32), count=window[axis])
        full = b.add(_placed(b, inner, axis, 2 * axes), _placed(b, at, axes + axis, 2 * axes))
        full = b.reshape(b.expand(full, shape=(*window, *places)), shape=(1, taps, product(places)))
        part = b.slice(
            moved, starts=(0, 0, axis, 0), steps=(1,) * 4, sizes=(rows, taps, 1, product(places))
        )  # fmt: skip
        part = b.reshape(part, shape=(rows, taps, product(places)))
        place = b.reshape(b.add(b.cast(full, to=offset.dtype), part), shape=(rows, 1, count))
        edges = (b.const(0, place.dtype), amount(b, d - 1, place.dtype))
        around.append(_around(b, place, d, "linear", "zeros", edges))
    flat = b.reshape(x, shape=(rows, channels // offset_group, product(space)))
    columns = reduce(b.add, _weighted(b, flat, tuple(space), around))
    if mask is not None:
        columns = b.mul(columns, b.reshape(as_dtype(b, mask, x.dtype), shape=(rows, 1, count)))
    columns = b.reshape(columns, shape=(batch, group, per_group * taps, product(places)))
    weights = b.reshape(w, shape=(group, outputs // group, per_group * taps))
    y = b.reshape(b.dot(weights, columns), shape=(batch, outputs, *places))
    if bias is not None:
        y = b.add(y, b.reshape(as_dtype(b, bias, y.dtype), shape=(outputs, *(1,) * axes)))
    return as_dtype(b, y, kind)


def _same_here(a: Dim, b: Dim) -> bool:
    return same(a, b, "deform_conv")


def _placed(b: Any, x: Any, axis: int, rank: int) -> Any:
    """A vector along one of `rank` axes."""
    return b.reshape(x, shape=tuple(x.shape[0] if i == axis else 1 for i in range(rank)))


# --- regions ---------------------------------------------------------------------------------------------------------


def _check_regions(x: Any, rois: Any, batches: Any, columns: int, size: Sequence[int], what: str) -> None:
    fits = len(x.shape) == 4 and len(rois.shape) == 2 and len(batches.shape) == 1
    if not fits or not same(rois.shape[1], columns, what) or not same(rois.shape[0], batches.shape[0], what):
        raise ShapeError(
            f"{what}: x {show(x.shape)} with the regions {show(rois.shape)} of the pictures {show(batches.shape)}; "
            f"expected (batch, channels, height, width), (regions, {columns}) and (regions,)"
        )
    if len(size) != 2 or min(size) < 1:
        raise ShapeError(f"{what}: regions of {tuple(size)} parts, expected two numbers of at least 1")


def _spans(b: Any, rois: Any, scale: float, half_pixel: bool) -> list[tuple[Any, Any]]:
    """The start and the length of each region along the axes."""
    half, one = constants_like(b, rois, 0.5, 1.0)
    ends = b.mul(rois, b.const(scale, rois.dtype))
    ends = b.sub(ends, half) if half_pixel else ends
    found = []
    for axis in range(2):
        start, end = _last(b, ends, 1 - axis), _last(b, ends, 3 - axis)
        found.append((start, b.sub(end, start) if half_pixel else b.maximum(b.sub(end, start), one)))
    return found


def _count(b: Any, length: Any, parts: int) -> Any:
    """How many elements each part of a region has, begun ones included."""
    least, most = constants_like(b, length, 0, MAX_SAMPLES)
    return b.clip(b.ceil(b.div(length, b.const(parts, length.dtype))), least, most)


def samples_of(b: Any, rois: Any, *, size: tuple[int, int], scale: float, half_pixel: bool) -> Any:
    """For both axes the number of elements in a part of the longest region, at least 1: a vector of int32."""
    rois = as_dtype(b, rois, rois.dtype.compute)
    (one,) = constants_like(b, rois, 1.0)
    most = []
    for (_, length), parts in zip(_spans(b, rois, scale, half_pixel), size, strict=True):
        every = b.concat(_count(b, length, parts), b.reshape(one, shape=(1,)), axis=0)
        most.append(b.reduce_max(every, axes=(0,)))
    return b.cast(b.concat(*most, axis=0), to=int32)


def _roi_align(
    b: Any, x: Any, rois: Any, batches: Any, *, size: tuple[int, int], samples: tuple[Dim, Dim], adaptive: bool = False,
    mode: str = "avg", scale: float = 1.0, half_pixel: bool = True,
) -> Any:  # fmt: skip
    """Each region (x, y, x, y) is divided into `size` parts; the values at evenly spaced places of a part are pooled.
    samples: the number of places along each axis of a part; if adaptive, as many as it has elements, at most these.
    (The mode "max" pools the products of elements and weights, as ONNX defines it.)"""
    _check_regions(x, rois, batches, 4, size, "roi_align")
    if mode not in ("avg", "max") or any(isinstance(n, int) and n < 1 for n in samples):
        raise ShapeError(f"roi_align: mode {mode!r} of {samples} samples; expected avg or max, and at least 1")
    kind = x.dtype
    x, rois = (as_dtype(b, v, v.dtype.compute) for v in (x, rois))
    regions, (batch, channels, *space) = rois.shape[0], x.shape
    half, one = constants_like(b, rois, 0.5, 1.0)
    spread: list[tuple[Any, ...]] = []
    spans = _spans(b, rois, scale, half_pixel)
    for (start, length), d, parts, most in zip(spans, space, size, samples, strict=True):
        limit = amount(b, most, rois.dtype)
        each = b.minimum(_count(b, length, parts), limit) if adaptive else b.expand(limit, shape=(regions,))
        start, length, each = (b.reshape(v, shape=(regions, 1, 1)) for v in (start, length, each))
        part = b.div(length, b.const(parts, rois.dtype))
        number = b.reshape(numbered(b, most, rois.dtype), shape=(1, 1, most))
        turn = b.reshape(numbered(b, parts, rois.dtype), shape=(1, parts, 1))
        within = b.div(b.mul(b.add(number, half), part), b.maximum(each, one))
        place = b.add(start, b.add(b.mul(turn, part), within))
        inside = b.logical_and(b.greater_equal(place, b.neg(one)), b.less_equal(place, amount(b, d, rois.dtype)))
        used = b.expand(b.less(number, each), shape=place.shape)
        spread.append((place, inside, used, each))
    full = (regions, size[0], spread[0][0].shape[2], size[1], spread[1][0].shape[2])

    def row_of(v: Any, axis: int) -> Any:
        """The values at the places along an axis for all places, in a row."""
        shape = (regions, *v.shape[1:], 1, 1) if axis == 0 else (regions, 1, 1, *v.shape[1:])
        return b.reshape(b.expand(b.reshape(v, shape=shape), shape=full), shape=(1, 1, product(full)))

    around = []
    for axis, (place, *_) in enumerate(spread):
        edges = b.const(0, rois.dtype), amount(b, space[axis] - 1, rois.dtype)
        taps = _around(b, row_of(place, axis), space[axis], "linear", "border", edges)
        inside = b.logical_and(*(row_of(marks[1], k) for k, marks in enumerate(spread)))
        around.append([(tap, inside) for tap, _ in taps])
    used = b.logical_and(*(row_of(marks[2], k) for k, marks in enumerate(spread)))
    picture = nearest_index(b, as_dtype(b, batches, int32), batch)
    origin = b.reshape(b.mul(picture, b.const(product(space), int32)), shape=(regions, 1, 1, 1, 1))
    origin = b.reshape(b.expand(origin, shape=full), shape=(1, 1, product(full)))
    row = b.reshape(b.transpose(x, perm=(1, 0, 2, 3)), shape=(1, channels, batch * product(space)))
    value = reduce(b.add if mode == "avg" else b.maximum, _weighted(b, row, tuple(space), around, origin))
    value = b.where(used, value, b.const(0 if mode == "avg" else -float("inf"), x.dtype))
    value = b.reshape(value, shape=(channels, *full))
    places = as_dtype(b, b.reshape(b.mul(*(marks[3] for marks in spread)), shape=(1, regions, 1, 1, 1, 1)), x.dtype)
    if mode == "avg":
        pooled = b.div(b.reduce_sum(value, axes=(3, 5)), b.maximum(places, b.const(1, x.dtype)))
    else:  # the largest of nothing is 0
        nothing = b.equal(places, b.const(0, x.dtype))
        pooled = b.where(nothing, b.const(0, x.dtype), b.reduce_max(value, axes=(3, 5)))
    pooled = b.reshape(pooled, shape=(channels, regions, *size))
    return as_dtype(b, b.transpose(pooled, perm=(1, 0, 2, 3)), kind)


def _max_roi_pool(b: Any, x: Any, rois: Any, batches: Any, *, size: tuple[int, int], scale: float = 1.0) -> Any:
    """Each region (x, y, x, y), rounded to whole elements (halves away from 0), is divided into `size` parts, which overlap if they do not fit;
    the largest element of each part, 0 for one that is empty."""
    _check_regions(x, rois, batches, 4, size, "max_roi_pool")
    kind = rois.dtype.compute
    rois = as_dtype(b, rois, kind)
    half, one = constants_like(b, rois, 0.5, 1.0)
    ends = b.mul(rois, b.const(scale, kind))
    ends = b.where(b.less(ends, b.const(0, kind)), b.ceil(b.sub(ends, half)), b.floor(b.add(ends, half)))
    (batch, channels, height, width), regions = x.shape, rois.shape[0]
    masks = []
    for axis, (d, parts) in enumerate(zip((height, width), size, strict=True)):
        start, end = _last(b, ends, 1 - axis), _last(b, ends, 3 - axis)
        part = b.div(b.maximum(b.add(b.sub(end, start), one), one), b.const(parts, kind))
        start, part = (b.reshape(v, shape=(regions, 1, 1)) for v in (start, part))
        turn = b.reshape(numbered(b, parts, kind), shape=(1, parts, 1))
        place = b.reshape(numbered(b, d, kind), shape=(1, 1, d))
        begins = b.greater_equal(place, b.add(start, b.floor(b.mul(turn, part))))
        ends_later = b.less(place, b.add(start, b.ceil(b.mul(b.add(turn, one), part))))
        masks.append(b.logical_and(begins, ends_later))
    high, wide = masks
    lowest = b.const(-float("inf"), x.dtype)
    picture = b.gather(x, nearest_index(b, as_dtype(b, batches, int32), batch), axis=0)
    picture = b.reshape(picture, shape=(regions, channels, height, 1, width))
    wide = b.reshape(wide, shape=(regions, 1, 1, size[1], width))
    rows = b.reduce_max(b.where(wide, picture, lowest), axes=(4,))
    rows = b.reshape(rows, shape=(regions, channels, 1, height, size[1]))
    high = b.reshape(high, shape=(regions, 1, size[0], height, 1))
    found = b.reduce_max(b.where(high, rows, lowest), axes=(3,))
    found = b.where(b.equal(found, lowest), b.const(0, x.dtype), found)
    return b.reshape(found, shape=(regions, channels, *size))


register(
    Composite(name="grid_sample", doc="x (batch, channels, …space) at the places (x, y, …) of a grid, from −1 to 1 along each axis",
              dtypes=(*NUMBERS, bool_), lower=_grid_sample, tolerance=64, floor=1e-4, domain=(-1.3, 1.3)),
    Composite(name="affine_grid", doc="the grid with which grid_sample computes an affine map; theta (batch, axes, axes + 1)", dtypes=FLOATS,
              lower=_affine_grid, tolerance=64, floor=1e-5),
    Composite(name="deform_conv", doc="convolution of which every element read is moved by an offset, and weighted by a mask",
              dtypes=FLOATS, lower=_deform_conv, tolerance=64, floor=1e-4),
    Composite(name="roi_align", doc="regions of pictures, each resampled to the same size; batches: the picture of each region",
              dtypes=FLOATS, lower=_roi_align, tolerance=64, floor=1e-4),
    Composite(name="max_roi_pool", doc="the largest elements of the parts into which regions of pictures are divided", dtypes=FLOATS,
              lower=_max_roi_pool),
)  # fmt: skip
