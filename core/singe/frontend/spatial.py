"""Convolution, pooling and resampling with PyTorch's arguments, built from rows, which have ONNX's attributes.

Every function takes a builder and nodes in the layout (batch, channels, …space). An argument for the spatial axes is one
number for all of them or one number for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ..dtypes import FLOATS
from ..errors import DTypeError, InputError, ShapeError
from ..ops.folds.window import ceiling
from ..ops.movement.resize import scaled
from ..shapes import dim_max, product, show

Ints: TypeAlias = int | Sequence[int]
Padding: TypeAlias = int | Sequence[int] | str

RESAMPLING: Final = {
    "nearest": {"mode": "nearest", "coordinates": "asymmetric", "nearest": "floor"},
    "nearest-exact": {"mode": "nearest", "coordinates": "half_pixel", "nearest": "round_prefer_ceil"},
    "linear": {"mode": "linear", "coordinates": "half_pixel"},
    "bicubic": {"mode": "cubic", "coordinates": "half_pixel", "cubic": -0.75},
}
"""PyTorch's mode ↦ attributes of the row `resize`. Bilinear is linear along two axes."""
RESAMPLING["bilinear"] = RESAMPLING["trilinear"] = RESAMPLING["linear"]


def per_axis(given: Ints, count: int, what: str) -> tuple[int, ...]:
    """One number for each of `count` spatial axes."""
    if isinstance(given, int):
        return (given,) * count
    if len(given) != count:
        raise ShapeError(f"{what}: got {tuple(given)}, expected one number or {count}")
    return tuple(int(n) for n in given)


def _spaces(x: Any, what: str) -> int:
    if len(x.shape) < 3:
        raise ShapeError(
            f"{what}: got {show(x.shape)}, expected (batch, channels, …space); add an axis with unsqueeze(0)?"
        )
    return len(x.shape) - 2


def _pads(
    padding: Padding, window: Sequence[Any], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(before, after) each spatial axis."""
    if not isinstance(padding, str):
        pads = per_axis(padding, len(window), "padding")
        return pads, pads
    if padding == "valid":
        return (0,) * len(window), (0,) * len(window)
    if padding != "same":
        raise InputError(f"padding: got {padding!r}, expected numbers, 'same' or 'valid'")
    if any(s != 1 for s in strides):
        raise InputError(f"padding 'same' with stride {tuple(strides)}: only stride 1 can keep the size; give numbers")
    total = [d * (w - 1) for w, d in zip(window, dilations, strict=True)]
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def conv(b: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Padding, dilation: Ints, groups: int) -> Any:
    spaces = _spaces(x, "conv")
    strides, dilations = per_axis(stride, spaces, "stride"), per_axis(dilation, spaces, "dilation")
    before, after = _pads(padding, weight.shape[2:], strides, dilations)
    return b.conv(x, weight, bias, strides=strides, dilations=dilations, before=before, after=after, group=groups)


def conv_transpose(
    b: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    spaces = _spaces(x, "conv_transpose")
    strides, dilations = per_axis(stride, spaces, "stride"), per_axis(dilation, spaces, "dilation")
    before, extra = per_axis(padding, spaces, "padding"), per_axis(output_padding, spaces, "output_padding")
    sizes = tuple(
        (d - 1) * s - 2 * p + t * (w - 1) + e + 1
        for d, w, s, t, p, e in zip(x.shape[2:], weight.shape[2:], strides, dilations, before, extra, strict=True)
    )
    return b.conv_transpose(
        x, weight, bias, strides=strides, dilations=dilations, before=before, sizes=sizes, group=groups
    )


def _window(
    x: Any, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool, what: str
) -> dict[str, tuple[Any, ...]]:
    """The attributes of a pooling row, for every axis."""
    spaces = _spaces(x, what)
    window = per_axis(kernel, spaces, "kernel_size")
    strides = window if stride is None else per_axis(stride, spaces, "stride")
    dilations, pads = per_axis(dilation, spaces, "dilation"), per_axis(padding, spaces, "padding")
    after = pads
    if ceil_mode:
        after = tuple(
            dim_max(ceiling(d, r * (w - 1) + 1, s, p, p), p)
            for d, w, s, r, p in zip(x.shape[2:], window, strides, dilations, pads, strict=True)
        )
    return {
        "window": (1, 1, *window), "strides": (1, 1, *strides), "dilations": (1, 1, *dilations),
        "before": (0, 0, *pads), "after": (0, 0, *after),
    }  # fmt: skip


def max_pool(b: Any, x: Any, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool) -> Any:
    return b.max_pool(x, **_window(x, kernel, stride, padding, dilation, ceil_mode, "max_pool"))


def avg_pool(
    b: Any, x: Any, kernel: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool, count_include_pad: bool
) -> Any:
    """Sums over windows, divided by the number of their elements. With count_include_pad, padding counts as elements,
    but elements that ceil_mode adds beyond the padding do not."""
    facts = _window(x, kernel, stride, padding, 1, ceil_mode, "avg_pool")
    total = b.pool_sum(x, **facts)
    pads = facts["before"] if count_include_pad else (0,) * len(x.shape)
    outside = tuple(lo - p for lo, p in zip(facts["before"], pads, strict=True))
    beyond = tuple(hi - p for hi, p in zip(facts["after"], pads, strict=True))
    if not any((*outside, *beyond)):
        return b.div(total, b.const(product(facts["window"]), x.dtype))
    counted = b.expand(
        b.const(1, x.dtype), shape=(1, 1, *(d + 2 * p for d, p in zip(x.shape[2:], pads[2:], strict=True)))
    )
    return b.div(total, b.pool_sum(counted, **{**facts, "before": outside, "after": beyond}))


def adaptive_avg_pool(b: Any, x: Any, output_size: Ints) -> Any:
    """Means over equal windows: the input's size must be a multiple of the output's."""
    sizes = per_axis(output_size, _spaces(x, "adaptive_avg_pool"), "output_size")
    if all(n == 1 for n in sizes):
        return b.global_average_pool(x)
    if any(not isinstance(d, int) or d % n for d, n in zip(x.shape[2:], sizes, strict=True)):
        raise ShapeError(
            f"adaptive_avg_pool: {show(x.shape[2:])} to {show(sizes)}: the output's size must divide the input's; use interpolate?"
        )
    window = tuple(d // n for d, n in zip(x.shape[2:], sizes, strict=True))
    return avg_pool(b, x, window, None, 0, False, True)


def interpolate(
    b: Any, x: Any, size: Ints | None, scale: float | Sequence[float] | None, mode: str, align_corners: bool
) -> Any:
    spaces = _spaces(x, "interpolate")
    if (size is None) == (scale is None):
        raise InputError("interpolate: give either size or scale")
    if mode not in RESAMPLING:
        raise InputError(f"interpolate: mode {mode!r}, expected one of {', '.join(RESAMPLING)}")
    attrs = dict(RESAMPLING[mode])
    if align_corners:
        if mode.startswith("nearest"):
            raise InputError(f"interpolate: mode {mode!r} takes no align_corners")
        attrs["coordinates"] = "align_corners"
    if x.dtype not in FLOATS:
        raise DTypeError(f"interpolate: got {x.dtype}, expected a float type; cast it first")
    space = x.shape[2:]
    if size is not None:
        return b.resize(x, sizes=(*x.shape[:2], *per_axis(size, spaces, "size")), **attrs)
    assert scale is not None
    scales = (float(scale),) * spaces if isinstance(scale, (int, float)) else tuple(map(float, scale))
    if len(scales) != spaces:
        raise ShapeError(f"interpolate: {len(scales)} scales, expected one number or {spaces}")
    sizes = tuple(scaled(d, s) for d, s in zip(space, scales, strict=True))
    return b.resize(x, sizes=(*x.shape[:2], *sizes), scales=(1.0, 1.0, *scales), **attrs)
