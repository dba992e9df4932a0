"""Resize and the older Upsample: sizes or scales of some or all axes become a size and a scale for every axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dtypes import float32
from ....graph import Node
from ....ops import find_row
from ....ops.movement.resize import CROP, POLICIES, by_tables, scaled
from ....shapes import Dim, axis_of, product, show, symbols
from .._call import MAX_FOLDED, Call, adapter
from ..elementwise.basic import cast


def _floats(call: Call, i: int) -> tuple[float, ...] | None:
    """The floats of an optional input; an empty tensor counts as a missing one."""
    if call.maybe(i) is None:
        return None
    value = call.value(i)
    if value.ndim != 1 or value.dtype.kind != "f":
        raise call.fail(f"input {i} is {value.dtype} of rank {value.ndim}; expected a vector of floats")
    return tuple(map(float, value)) or None


def _targets(
    call: Call, x: Node, axes: tuple[int, ...], scales: tuple[float, ...] | None, sizes: tuple[Dim, ...] | None
) -> tuple[list[Dim], list[float] | None]:
    """The size and the scale of every axis. Scales are None if they are simply the quotients of the sizes."""
    rank = len(x.shape)
    given = scales if sizes is None else sizes
    if given is None or len(given) != len(axes):
        raise call.fail(f"{0 if given is None else len(given)} scales or sizes for the axes {axes} of {show(x.shape)}")
    out, factors = list(x.shape), [1.0] * rank
    if sizes is None:
        for axis, scale in zip(axes, scales or (), strict=True):
            if not 0 < scale <= MAX_FOLDED:
                raise call.fail(f"axis {axis} is scaled by {scale}; expected more than 0 and at most {MAX_FOLDED}")
            out[axis], factors[axis] = scaled(x.shape[axis], scale), scale
        return out, factors
    call.lengths(sizes)
    name = call.attr("keep_aspect_ratio_policy", "stretch")
    if name not in POLICIES:
        raise call.fail(f"keep_aspect_ratio_policy is {name!r}; expected one of {', '.join(POLICIES)}")
    choose = POLICIES[name]
    if choose is None:
        for axis, size in zip(axes, sizes, strict=True):
            out[axis] = size
        return out, None
    lengths = [call.number(x.shape[axis], f"axis {axis} under {name}") for axis in axes]
    if 0 in lengths:
        raise call.fail(f"the empty input {show(x.shape)} resized to {show(sizes)}")
    scale = choose(call.number(size, "a size") / d for size, d in zip(sizes, lengths, strict=True))
    for axis, d in zip(axes, lengths, strict=True):
        out[axis], factors[axis] = math.floor(scale * d + 0.5), scale
    return out, factors


def _bounded(call: Call, x: Node, sizes: list[Dim]) -> tuple[Dim, ...]:
    """The sizes, after a check that none is so large that its table of places would need too much memory."""
    for axis, (d, size) in enumerate(zip(x.shape, sizes, strict=True)):
        if size != d and isinstance(size, int) and size > MAX_FOLDED:
            raise call.fail(f"axis {axis} of {show(x.shape)} is resized to {size}; at most {MAX_FOLDED} are supported")
    if isinstance(product(sizes), int) and product(sizes) != 0 and 0 in x.shape:
        raise call.fail(f"the empty input {show(x.shape)} resized to {show(sizes)}")
    return tuple(sizes)


@adapter("Upsample")
def _upsample(call: Call) -> Node:
    x = call.x()
    if call.is_found("scales", 1):
        return _old_by_tables(call, x)
    scales = call.items("scales", float) if "scales" in call.attributes else _floats(call, 1)
    sizes, factors = _targets(call, x, tuple(range(len(x.shape))), scales, None)
    return _old(call, x, sizes, factors or [])


def _old(call: Call, x: Node, sizes: list[Dim], factors: list[float]) -> Node:
    """Resampling as before version 11: places are x / scale; "nearest" rounds down if an axis grows, up if it
    shrinks."""
    mode = call.attr("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    targets = _bounded(call, x, sizes)
    for nearest, now in (("ceil", [f < 1 for f in factors]), ("floor", [f >= 1 for f in factors])):
        lengths = tuple(t if n else d for t, d, n in zip(targets, x.shape, now, strict=True))
        scales = tuple(f if n else 1.0 for f, n in zip(factors, now, strict=True))
        if any(f != 1 for f in scales):
            x = _resampled(call, x, sizes=lengths, scales=scales, mode=mode, coordinates="asymmetric", nearest=nearest)
    return x


def _old_by_tables(call: Call, x: Node) -> Node:
    """Like `_old`, for scales that a run computes."""
    b, scales = call.b, cast(call, call.x(1), float32)
    mode = "linear" if call.attr("mode", "nearest") in ("linear", "bilinear") else "nearest"
    one = b.const(1.0)
    shrinks = b.less(scales, one)
    for nearest, by in (("ceil", b.where(shrinks, scales, one)), ("floor", b.where(shrinks, one, scales))):
        x = _by_tables(call, x, tuple(range(len(x.shape))), by, mode=mode, coordinates="asymmetric", nearest=nearest)
    return x


def _resampled(call: Call, x: Node, **options: Any) -> Node:
    """The row `resize`. Weights are fractions, so integers are weighed as floats, and the result is truncated."""
    wide = cast(call, x, float32) if x.dtype.is_int and options["mode"] != "nearest" else x
    return cast(call, call.b.resize(wide, **options), x.dtype)


@adapter("Resize")
def _resize(call: Call) -> Node:
    x = call.x()
    rank = len(x.shape)
    if call.version < 11:
        if call.is_computed(1):
            return _old_by_tables(call, x)
        sizes, factors = _targets(call, x, tuple(range(rank)), _floats(call, 1), None)
        return _old(call, x, sizes, factors or [])
    named = call.items("axes", int)
    axes = tuple(range(rank)) if named is None else tuple(axis_of(a, rank, "resize") for a in named)
    if len(set(axes)) != len(axes):
        raise call.fail(f"the axes {axes} name one axis twice")
    coordinates = call.attr("coordinate_transformation_mode", "half_pixel")
    options = {
        "mode": call.attr("mode", "nearest"),
        "coordinates": coordinates,
        "nearest": call.attr("nearest_mode", "round_prefer_floor"),
        "cubic": call.attr("cubic_coeff_a", -0.75),
        "exclude_outside": call.flag("exclude_outside"),
        "extrapolation": call.attr("extrapolation_value", 0.0),
        "antialias": call.flag("antialias"),
    }
    by_sizes = call.maybe(3) is not None and call.x(3).shape != (0,)
    kept = call.attr("keep_aspect_ratio_policy", "stretch") != "stretch"
    exact = coordinates == CROP or options["antialias"] or kept
    computed = call.is_computed(2, *((1,) if coordinates == CROP else ())) or (exact and call.is_computed(3))
    if computed or (kept and by_sizes and symbols((*(x.shape[a] for a in axes), *call.dims(3)))):
        return _by_tables(call, x, axes, call.x(3 if by_sizes else 2), **options)
    wanted = call.dims(3) if by_sizes else None
    sizes, factors = _targets(call, x, axes, None if by_sizes else _floats(call, 2), wanted)
    roi = _roi(call, axes, rank) if coordinates == CROP else ()
    return _resampled(call, x, sizes=_bounded(call, x, sizes), scales=tuple(factors or ()), roi=roi, **options)


def _by_tables(
    call: Call, x: Node, axes: tuple[int, ...], wanted: Node, *, extrapolation: float = 0.0, **options: Any
) -> Node:
    """x resampled by scales, sizes or a region that a run computes: the run also finds the places and weights."""
    b = call.b
    crop = options["coordinates"] == CROP
    roi = cast(call, call.x(1), float32) if crop else b.const(np.zeros(0, np.float32))
    policy = call.attr("keep_aspect_ratio_policy", "stretch")
    defaults = {"cubic": -0.75, "exclude_outside": False, "antialias": False}
    n = b.node(
        find_row("resize_tables"), wanted, roi, shape=x.shape, axes=axes, policy=policy, **{**defaults, **options}
    )
    return by_tables(b, x, b.results_of(n), axes, extrapolation, weigh=options["mode"] != "nearest")


def _roi(call: Call, axes: tuple[int, ...], rank: int) -> tuple[float, ...]:
    """The starts of the region of interest along every axis, then its ends."""
    given = _floats(call, 1)
    if given is None or len(given) != 2 * len(axes):
        raise call.fail(f"roi has {0 if given is None else len(given)} numbers; expected {2 * len(axes)}")
    starts, ends = [0.0] * rank, [1.0] * rank
    for k, axis in enumerate(axes):
        starts[axis], ends[axis] = given[k], given[k + len(axes)]
    return (*starts, *ends)
