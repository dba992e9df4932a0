"""The row that resamples. Along each axis every output element is a weighted sum of a few input elements. If both
lengths are numbers, the indices and weights of these elements are a table, computed here once. If a length is open,
the run computes them.

Places are exact: a scale is a fraction p / q, the place of output i is (α·i + β) / γ in integers, and ties are rounded
by exact fractions. So numbers and open sizes give the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ...dtypes import NUMBERS, bool_, float32, int32, int64
from ...errors import ShapeError
from ...shapes import Dim, Shape, dim_max, dim_min, floordiv, known, product, same, show
from ..kinds import GIVES_SHAPES, ROWS, SIZE_RESULTS, Composite, Opaque, Results, Shaped, as_dtype, register
from .move import nearest_index

Transformation = Callable[[Dim, Dim, Dim, Dim], tuple[Dim, Dim, Dim]]


def _half_pixel(d: Dim, out: Dim, p: Dim, q: Dim) -> tuple[Dim, Dim, Dim]:
    return 2 * q, q - p, 2 * p


def _symmetric(d: Dim, out: Dim, p: Dim, q: Dim) -> tuple[Dim, Dim, Dim]:
    return 2 * q, d * p - out * q + q - p, 2 * p


def _pytorch_half_pixel(d: Dim, out: Dim, p: Dim, q: Dim) -> tuple[Dim, Dim, Dim]:
    long = dim_min(dim_max(out - 1, 0), 1)  # 0 if the output has only one element, which gets place 0; otherwise 1
    return 2 * q * long, (q - p) * long, 2 * p


def _corners(d: Dim, out: Dim, p: Dim, q: Dim) -> tuple[Dim, Dim, Dim]:
    return (d - 1) * q, 0, dim_max(d * p - q, 1)


TRANSFORMATIONS: Final[Mapping[str, Transformation]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _corners,
    "asymmetric": lambda d, out, p, q: (q, 0, p),
    "tf_half_pixel_for_nn": lambda d, out, p, q: (2 * q, q, 2 * p),
}
"""coordinate transformation ↦ α, β, γ, as a function of the axis's length, the output's length, p and q."""
CROP: Final = "tf_crop_and_resize"
"""The transformation whose places are fractions of a region. Where a length is open, the host makes a table of them."""

ROUNDINGS: Final[Mapping[str, Callable[[Any, Any], tuple[Any, Any]]]] = {
    "round_prefer_floor": lambda place, by: (place * 2 + by - 1, by * 2),
    "round_prefer_ceil": lambda place, by: (place * 2 + by, by * 2),
    "floor": lambda place, by: (place, by),
    "ceil": lambda place, by: (place + by - 1, by),
}
"""How place / by becomes an integer: a numerator and a denominator, whose quotient is rounded down."""


def fraction(scale: float) -> Fraction:
    """A fraction with a small denominator that rounds to this float32."""
    wanted = np.float32(scale)
    if not 0 < wanted < np.inf:
        raise ShapeError(f"resize: a scale of {scale}, expected a number above 0")
    for digits in range(1, 8):
        found = Fraction(float(wanted)).limit_denominator(10**digits)
        if np.float32(float(found)) == wanted:
            return found
    return Fraction(float(wanted))


def scaled(d: Dim, scale: float) -> Dim:
    """floor(d · scale), multiplied in float32; for an open d, multiplied as a fraction."""
    if isinstance(d, int):
        return int(np.floor(np.float32(d) * np.float32(scale)))
    by = fraction(scale)
    return floordiv(d * by.numerator, by.denominator)


def _triangle(x: np.ndarray, a: float) -> np.ndarray:
    return np.clip(1 - np.abs(x), 0, 1)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


FILTERS: Final[Mapping[str, tuple[Callable[[np.ndarray, float], np.ndarray], int]]] = {
    "linear": (_triangle, 1),
    "cubic": (_cubic, 2),
}
"""mode ↦ a function that gives the weight at a distance, and the distance from which the weight is 0."""


MAX_TABLE: Final = 1 << 24
"""The most elements that the table of an axis may have: its outputs times the inputs that each output takes."""


def _table(
    d: int, out: int, scale: Fraction, span: tuple[float, float], options: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Three arrays: the input indices [taps, out]; the weights [taps, out], or None for one tap of weight 1; and which
    outputs lie outside the input, or None."""
    weigh, reach = FILTERS.get(options["mode"], (_triangle, 0))
    stretch = min(float(scale), 1.0) if options["antialias"] else 1.0
    if not stretch > 0 or out * max(1.0, 2 * reach / stretch) > MAX_TABLE:
        raise ShapeError(
            f"resize: from {d} to {out} elements by {float(scale)}: more than {MAX_TABLE} weights along an axis"
        )
    i = np.arange(out, dtype=np.int64)
    outside = None
    if options["coordinates"] == CROP:
        width = (span[1] - span[0]) * (d - 1)
        place: Any = (i * 0 + width / 2 if out == 1 else i * (width / (out - 1))) + span[0] * (d - 1)
        by: Any = 1.0
        outside = (place < 0) | (place > d - 1)
    else:
        first, start, by = TRANSFORMATIONS[options["coordinates"]](d, out, scale.numerator, scale.denominator)
        place = i * first + start
    if options["mode"] == "nearest":
        above, below = ROUNDINGS[options["nearest"]](place, by)
        if options["coordinates"] == CROP:  # places are not integers here, so rounding adds or subtracts 0.5
            above, below = place + {"round_prefer_floor": -0.5, "round_prefer_ceil": 0.5}.get(options["nearest"], 0), 1
            index = np.ceil(above) if options["nearest"] in ("round_prefer_floor", "ceil") else np.floor(above)
        else:
            index = above // below
        return np.clip(index, 0, d - 1).astype(np.int64)[None], None, outside
    base = -(-place // by) - 1
    first = int(np.floor(-reach / stretch)) + 1
    offsets = np.arange(first, 2 - first)[:, None]
    weights = weigh((offsets - (place - base * by) / by) * stretch, options["cubic"])
    indices = base + offsets
    if options["exclude_outside"]:
        weights = np.where((indices < 0) | (indices >= d), 0.0, weights)
    if options["antialias"] or options["exclude_outside"]:
        total = weights.sum(0)
        weights = weights / np.where(total == 0, 1, total)  # 0 for an output that lies outside
    used = np.any(weights != 0, axis=1)
    return np.clip(indices, 0, d - 1)[used].astype(np.int64), weights[used], outside


# --- along an axis of open length ------------------------------------------------------------------------------------


def _open(b: Any, x: Any, axis: int, out: Dim, p: Dim, q: Dim, options: Mapping[str, Any]) -> Any:
    """x resampled along the axis with indices and weights that the run computes."""
    d = x.shape[axis]

    def whole(value: Dim) -> Any:
        return b.const(value, int32)

    first, start, by = TRANSFORMATIONS[options["coordinates"]](d, out, p, q)
    place = b.add(b.mul(b.arange(whole(0), whole(1), count=out), whole(first)), whole(start))
    if options["mode"] == "nearest":
        above, below = ROUNDINGS[options["nearest"]](_Whole(b, place), by)
        return b.gather(x, nearest_index(b, _down(b, above.node, below), d), axis=axis)
    base = _down(b, b.sub(place, whole(1)), by)  # ceil(place / by) − 1
    far = b.div(b.cast(b.sub(place, b.mul(base, whole(by))), to=float32), b.cast(whole(by), to=float32))
    _, reach = FILTERS[options["mode"]]
    taps: list[tuple[Any, Any]] = []
    for offset in range(1 - reach, reach + 1):
        index = b.add(base, whole(offset))
        weight = _weight(b, b.abs(b.sub(b.const(float(offset)), far)), options)
        if options["exclude_outside"]:
            inside = b.logical_and(b.greater_equal(index, whole(0)), b.less(index, whole(d)))
            weight = b.where(inside, weight, b.const(0.0))
        taps.append((nearest_index(b, index, d), weight))
    if options["exclude_outside"]:
        total = taps[0][1]
        for _, weight in taps[1:]:
            total = b.add(total, weight)
        taps = [(index, b.div(weight, total)) for index, weight in taps]
    shape = tuple(out if i == axis else 1 for i in range(len(x.shape)))
    result: Any = None
    for index, weight in taps:
        part = b.mul(b.gather(x, index, axis=axis), b.reshape(weight, shape=shape))
        result = part if result is None else b.add(result, part)
    return result


class _Whole:
    """An int32 node with the operators that the functions of ROUNDINGS use."""

    def __init__(self, b: Any, node: Any) -> None:
        self.b, self.node = b, node

    def __add__(self, other: Dim) -> _Whole:
        return _Whole(self.b, self.b.add(self.node, self.b.const(other, int32)))

    def __sub__(self, other: Dim) -> _Whole:
        return self + -other

    def __mul__(self, other: Dim) -> _Whole:
        return _Whole(self.b, self.b.mul(self.node, self.b.const(other, int32)))


def _down(b: Any, place: Any, by: Dim) -> Any:
    """place // by rounded down, for a place that is at least −2·by. (The division of nodes rounds toward zero.)"""
    up = b.div(b.add(place, b.const(2 * by, int32)), b.const(by, int32))
    return b.sub(up, b.const(2, int32))


def _weight(b: Any, far: Any, options: Mapping[str, Any]) -> Any:
    """FILTERS in nodes: the weight at a distance, which must not be beyond the filter's end."""
    one = b.const(1.0)
    if options["mode"] == "linear":
        return b.sub(one, far)
    a = options["cubic"]

    def polynomial(*factors: float) -> Any:
        total = b.const(factors[0])
        for f in factors[1:]:
            total = b.add(b.mul(total, far), b.const(f))
        return total

    near = polynomial(a + 2, -(a + 3), 0.0, 1.0)
    return b.where(b.less_equal(far, one), near, polynomial(a, -5 * a, 8 * a, -4 * a))


def _check_names(mode: str, coordinates: str, nearest: str) -> None:
    for what, given, allowed in (
        ("mode", mode, ("nearest", *FILTERS)),
        ("coordinates", coordinates, (*TRANSFORMATIONS, CROP)),
        ("nearest", nearest, tuple(ROUNDINGS)),
    ):
        if given not in allowed:
            raise ShapeError(f"resize: {what} {given!r}, expected one of {', '.join(allowed)}")


def _resize(
    b: Any, x: Any, *, sizes: Shape, scales: tuple[float, ...] = (), mode: str = "nearest", coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor", cubic: float = -0.75, exclude_outside: bool = False, extrapolation: float = 0.0,
    roi: tuple[float, ...] = (), antialias: bool = False,
) -> Any:  # fmt: skip
    _check_names(mode, coordinates, nearest)
    rank = len(x.shape)
    if len(sizes) != rank or len(scales) not in (0, rank):
        raise ShapeError(f"resize: sizes and scales must name all {rank} axes of {show(x.shape)}")
    options = {
        "mode": mode,
        "coordinates": coordinates,
        "nearest": nearest,
        "cubic": cubic,
        "exclude_outside": exclude_outside,
        "antialias": antialias,
    }
    ends = roi or (0.0,) * rank + (1.0,) * rank
    kind = x.dtype
    if mode != "nearest":
        x = as_dtype(b, x, kind.compute if kind.is_float else float32)
    lost: Any = None
    empty = product(sizes) == 0
    for axis in range(rank):
        d, out = x.shape[axis], sizes[axis]
        span = (ends[axis], ends[rank + axis])
        by = fraction(scales[axis]) if scales else None
        p, q = (out, d) if by is None else (by.numerator, by.denominator)
        if p == q and d == out and (coordinates != CROP or span == (0.0, 1.0)):
            continue
        if empty:  # the result has no elements, so nothing is read from the input
            x = b.expand(b.const(0, x.dtype), shape=tuple(out if i == axis else n for i, n in enumerate(x.shape)))
            continue
        factor = _repeats(d, out, p, q, options)
        if factor is not None:
            x = _repeated(b, x, axis, factor)
            continue
        if not (isinstance(d, int) and isinstance(out, int)):
            if coordinates == CROP or (antialias and mode != "nearest"):
                wanted = np.array([out], object) if by is None else np.array([scales[axis]], np.float32)
                x = _by_host(b, x, axis, out, wanted, span, options, extrapolation)
            else:
                x = _open(b, x, axis, out, p, q, options)
            continue
        if d == 0:
            raise ShapeError(f"resize: axis {axis} of {show(x.shape)} is empty, and cannot become {out} elements")
        indices, weights, outside = _table(d, out, by or Fraction(out, d), span, options)
        x = _sampled(b, x, axis, indices, weights)
        if outside is not None and outside.any():
            mask = b.const(outside.reshape([-1 if i == axis else 1 for i in range(rank)]))
            lost = mask if lost is None else b.logical_or(lost, mask)
    if lost is not None:
        x = b.where(lost, b.const(extrapolation, x.dtype), x)
    if x.dtype is kind:
        return x
    if kind.is_int and kind.bits < 32:  # cubic weights overshoot, and a cast would wrap
        x = b.clip(x, *(b.const(float(limit)) for limit in kind.limits))
    return b.cast(x, to=kind)


def _repeats(d: Dim, out: Dim, p: Dim, q: Dim, options: Mapping[str, Any]) -> int | None:
    """How often each element of the axis is repeated, if that is all the resampling does; then it needs no table."""
    if options["mode"] != "nearest" or options["coordinates"] == CROP or d == 0:
        return None
    factor = floordiv(p, q)
    if not isinstance(factor, int) or factor < 1 or p != factor * q or out != d * factor:
        return None
    if not isinstance(d, int) and options["coordinates"] in ("align_corners", "half_pixel_symmetric"):
        return None
    length = d if isinstance(d, int) else 7  # the rule is the same for every length, so a few elements show it
    indices, _, _ = _table(length, length * factor, Fraction(factor), (0.0, 1.0), options)
    return factor if (indices[0] == np.arange(length * factor) // factor).all() else None


def _repeated(b: Any, x: Any, axis: int, factor: int) -> Any:
    before, d, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    x = b.reshape(x, shape=(*before, d, 1, *after))
    x = b.expand(x, shape=(*before, d, factor, *after))
    return b.reshape(x, shape=(*before, d * factor, *after))


def _sampled(b: Any, x: Shaped, axis: int, indices: np.ndarray, weights: np.ndarray | None) -> Any:
    total: Any = None
    for tap, index in enumerate(indices):
        part = b.gather(x, b.const(index.astype(np.int32), int32), axis=axis)
        if weights is not None:
            shape = tuple(-1 if i == axis else 1 for i in range(len(x.shape)))
            part = b.mul(part, b.const(weights[tap].reshape(shape), x.dtype))
        total = part if total is None else b.add(total, part)
    return total


# --- by scales and sizes that a run computes -------------------------------------------------------------------------

POLICIES: Final[Mapping[str, Callable[..., float] | None]] = {"stretch": None, "not_larger": min, "not_smaller": max}
"""How one scale for all axes is chosen from theirs; None: each axis keeps its own."""


def _tables_shapes(
    wanted: Shaped, roi: Shaped, shape: Shape, axes: tuple[int, ...], policy: str, *, mode: str, coordinates: str, nearest: str,
    **options: Any,
) -> Results:  # fmt: skip
    _check_names(mode, coordinates, nearest)
    if len(wanted.shape) != 1 or not same(wanted.shape[0], len(axes), "resize") or policy not in POLICIES:
        raise ShapeError(
            f"resize: got {show(wanted.shape)} numbers for the axes {axes} and policy {policy!r}, expected one for each axis"
        )
    if coordinates == CROP and (len(roi.shape) != 1 or not same(roi.shape[0], 2 * len(axes), "resize")):
        raise ShapeError(
            f"resize: a region of {show(roi.shape)} numbers, expected a start and an end for the axes {axes}"
        )
    return tuple(r for _ in axes for r in (((None, None), int64), ((None, None), float32), ((None,), bool_)))


def _tables(
    wanted: np.ndarray, roi: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...], policy: str, **options: Any
) -> tuple[np.ndarray, ...]:
    """The three arrays of `_table` for each axis: indices and weights [taps, out], and which outputs lie outside."""
    lengths = [shape[axis] for axis in axes]
    sizes = [int(v) for v in wanted] if wanted.dtype.kind in "iu" else None
    choose = POLICIES[policy]
    if sizes is None:
        scales = [fraction(v) for v in wanted]
        sizes = [known(scaled(d, float(v)), {}) for d, v in zip(lengths, wanted, strict=True)]
    elif 0 in lengths or min(sizes, default=0) < 0:
        raise ShapeError(f"resize: cannot resample {show(lengths)} to {show(sizes)}")
    elif choose is None:
        scales = [Fraction(v, d) for v, d in zip(sizes, lengths, strict=True)]
    else:
        one = fraction(choose(v / d for v, d in zip(sizes, lengths, strict=True)))
        scales, sizes = [one] * len(sizes), [int(np.floor(float(one) * d + 0.5)) for d in lengths]
    found: list[np.ndarray] = []
    for k, (d, out, scale) in enumerate(zip(lengths, sizes, scales, strict=True)):
        span = (float(roi[k]), float(roi[k + len(axes)])) if roi.size else (0.0, 1.0)
        if d == out and scale == 1 and span == (0.0, 1.0):
            indices, weights, outside = np.arange(d)[None], None, None
        elif out > MAX_TABLE or (d == 0 and out):
            raise ShapeError(f"resize: from {d} to {out} elements, expected at most {MAX_TABLE} along an axis")
        else:
            indices, weights, outside = _table(d, out, scale, span, options)
        found += [
            indices.astype(np.int64),
            np.ones(indices.shape, np.float32) if weights is None else weights.astype(np.float32),
            np.zeros(out, np.bool_) if outside is None else outside,
        ]
    return tuple(found)


def _by_host(
    b: Any, x: Any, axis: int, out: Dim, wanted: np.ndarray, span: tuple[float, float], options: Mapping[str, Any], extrapolation: float
) -> Any:  # fmt: skip
    """The axis resampled by a table that is computed on the host in each run."""
    given = b.const(wanted), b.const(np.array(span, np.float32))
    n = b.node(ROWS["resize_tables"], *given, shape=x.shape, axes=(axis,), policy="stretch", **options)
    x = by_tables(b, x, b.results_of(n), (axis,), extrapolation, weigh=options["mode"] != "nearest")
    return b.reshape(x, shape=tuple(out if i == axis else d for i, d in enumerate(x.shape)))


def by_tables(b: Any, x: Any, tables: Any, axes: tuple[int, ...], extrapolation: float, *, weigh: bool) -> Any:
    """x resampled along axes by the results of the row resize_tables. Without `weigh` all weights are 1."""
    kind, rank, lost = x.dtype, len(x.shape), None
    if weigh:
        x = as_dtype(b, x, kind.compute if kind.is_float else float32)
    for k, axis in enumerate(axes):
        indices, weights, outside = tables[3 * k : 3 * k + 3]
        taps, out = indices.shape
        part = b.gather(x, indices, axis=axis)
        if weigh:
            along = (*(1 for _ in x.shape[:axis]), taps, out, *(1 for _ in x.shape[axis + 1 :]))
            part = b.mul(part, as_dtype(b, b.reshape(weights, shape=along), x.dtype))
        x = b.reshape(b.reduce_sum(part, axes=(axis,)), shape=(*x.shape[:axis], out, *x.shape[axis + 1 :]))
        mask = b.reshape(outside, shape=tuple(out if i == axis else 1 for i in range(rank)))
        lost = mask if lost is None else b.logical_or(lost, mask)
    x = b.where(lost, b.const(extrapolation, x.dtype), x)
    if weigh and kind.is_int and kind.bits < 32:  # cubic weights overshoot, and a cast would wrap
        x = b.clip(x, *(b.const(float(limit)) for limit in kind.limits))
    return as_dtype(b, x, kind)


register(
    Composite(name="resize", doc="resampled along every axis whose size changes; attributes as ONNX's Resize", dtypes=NUMBERS, lower=_resize,
              tolerance=64, floor=1e-5),
    Opaque(name="resize_tables", no_gradient=SIZE_RESULTS, public=False,
           doc="for each output index along each axis: the input indices that it reads, and their weights", host=GIVES_SHAPES,
           results=_tables_shapes, on_host=_tables),
)  # fmt: skip
