"""Convolution, pooling and resampling with PyTorch's arguments, built from rows, which have ONNX's attributes.

Every function takes a builder and nodes in the layout (batch, channels, …space). An argument for the spatial axes is one
number for all of them or one number for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import FLOATS
from ...errors import DTypeError, InputError, ShapeError
from ...ops.folds.window import ceiling
from ...ops.movement.move import amount
from ...ops.movement.resize import scaled
from ...shapes import dim_max, product, show, whole

Ints: TypeAlias = int | Sequence[int]
Sizes: TypeAlias = int | Sequence[int | None] | None
Padding: TypeAlias = int | Sequence[int] | str

RESAMPLING: Final = {
    "nearest": {"mode": "nearest", "coordinates": "asymmetric", "nearest": "floor"},
    "nearest-exact": {"mode": "nearest", "coordinates": "half_pixel", "nearest": "round_prefer_ceil"},
    "linear": {"mode": "linear", "coordinates": "half_pixel"},
    "bicubic": {"mode": "cubic", "coordinates": "half_pixel", "cubic": -0.75},
}
"""PyTorch's mode ↦ attributes of the row `resize`. Bilinear is linear along two axes."""
RESAMPLING["bilinear"] = RESAMPLING["trilinear"] = RESAMPLING["linear"]


def per_axis(argument: Ints, count: int, what: str) -> tuple[int, ...]:
    """One number for each of `count` spatial axes."""
    many: Sequence[int] = argument if hasattr(argument, "__len__") else (argument,) * count  # pyright: ignore[reportAssignmentType]
    if isinstance(argument, str) or len(many) != count:
        raise ShapeError(f"{what}: got {argument!r:.80}, expected one number or {count}")
    return tuple(whole(n, what, "an element") for n in many)


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


def window_of(
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
    return b.max_pool(x, **window_of(x, kernel, stride, padding, dilation, ceil_mode, "max_pool"))


def max_pool_places(
    b: Any, x: Any, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:
    """The place of each window's maximum among the elements of its channel."""
    facts = window_of(x, kernel, stride, padding, dilation, ceil_mode, "max_pool")
    flat = b.max_pool_index(x, column_major=False, **facts)
    return b.remainder(flat, b.expand(amount(b, product(x.shape[2:]), flat.dtype), shape=flat.shape))


def avg_pool(
    b: Any, x: Any, kernel: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool, count_include_pad: bool
) -> Any:
    """Sums over windows, divided by the number of their elements. With count_include_pad, padding counts as elements,
    but elements that ceil_mode adds beyond the padding do not."""
    facts = window_of(x, kernel, stride, padding, 1, ceil_mode, "avg_pool")
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


def _adaptive_sizes(x: Any, output_size: Sizes, what: str) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The requested size, and the size of each window if all are equal, which needs no known input size but 1."""
    spaces = _spaces(x, what)
    given = (output_size,) * spaces if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(given) != spaces:
        raise InputError(f"{what}: output_size {output_size}, expected one number or {spaces}")
    sizes = tuple(d if n is None else n for n, d in zip(given, x.shape[2:], strict=True))
    if not all(isinstance(n, int) for n in sizes):
        raise ShapeError(f"{what}: {show(x.shape)} to {output_size}: None keeps a size that must be known")
    for d, n in zip(x.shape[2:], sizes, strict=True):
        if n < 1 or (not isinstance(d, int) and n != 1):
            raise ShapeError(
                f"{what}: {show(x.shape[2:])} to {show(sizes)}: from an open size only 1 can be made; give the model an input of a known size"
            )
    equal = all(n == 1 or d % n == 0 for d, n in zip(x.shape[2:], sizes, strict=True))
    return sizes, tuple(d // n if n > 1 else d for d, n in zip(x.shape[2:], sizes, strict=True)) if equal else None


def _adaptive_windows(length: int, count: int) -> list[range]:
    """The elements of each of `count` windows, which cover an axis and may overlap."""
    return [range(k * length // count, -(-(k + 1) * length // count)) for k in range(count)]


def _adaptive_places(length: int, count: int) -> np.ndarray:
    """(windows, elements); the last element of a shorter window is taken repeatedly."""
    windows = _adaptive_windows(length, count)
    longest = max(map(len, windows))
    return np.array([[part[min(k, len(part) - 1)] for k in range(longest)] for part in windows])


def adaptive_avg_pool(b: Any, x: Any, output_size: Sizes) -> Any:
    """Means over windows of about equal sizes."""
    sizes, window = _adaptive_sizes(x, output_size, "adaptive_avg_pool")
    if all(n == 1 for n in sizes):
        return b.global_average_pool(x)
    if window is not None and all(isinstance(w, int) for w in window):
        return avg_pool(b, x, window, None, 0, False, True)
    for axis, (d, n) in enumerate(zip(x.shape[2:], sizes, strict=True), 2):
        if n == 1:
            x = b.reduce_mean(x, axes=(axis,))
        elif d != n:
            shares = np.zeros((d, n), np.float64)
            for k, part in enumerate(_adaptive_windows(d, n)):
                shares[list(part), k] = 1 / len(part)
            perm = (*(a for a in range(len(x.shape)) if a != axis), axis)
            moved = b.matmul(b.transpose(x, perm=perm), b.cast(b.const(shares.astype(np.float32)), to=x.dtype))
            x = b.transpose(moved, perm=tuple(int(a) for a in np.argsort(perm)))
    return x


def adaptive_max_pool(b: Any, x: Any, output_size: Sizes) -> Any:
    """Maxima over windows of about equal sizes."""
    sizes, window = _adaptive_sizes(x, output_size, "adaptive_max_pool")
    if all(n == 1 for n in sizes):
        return b.global_max_pool(x)
    if window is not None and all(isinstance(w, int) for w in window):
        return max_pool(b, x, window, None, 0, 1, False)
    for axis, (d, n) in enumerate(zip(x.shape[2:], sizes, strict=True), 2):
        if n == 1:
            x = b.reduce_max(x, axes=(axis,))
        elif d != n:
            taken = b.gather(x, b.const(_adaptive_places(d, n)), axis=axis)
            largest = b.reduce_max(taken, axes=(axis + 1,))
            x = b.reshape(largest, shape=(*x.shape[:axis], n, *x.shape[axis + 1 :]))
    return x


def adaptive_max_places(b: Any, x: Any, output_size: Sizes) -> Any:
    """The place of each window's maximum among the elements of its channel."""
    sizes, window = _adaptive_sizes(x, output_size, "adaptive_max_pool")
    if window is not None and all(isinstance(w, int) for w in window):
        return max_pool_places(b, x, window, None, 0, 1, False)
    space = x.shape[2:]
    flat = b.reshape(x, shape=(*x.shape[:2], product(space)))
    if all(n == 1 for n in sizes):
        found = b.argmax(flat, axis=2)
    elif not all(isinstance(d, int) for d in space):
        raise ShapeError(
            f"adaptive_max_pool: indices of {show(x.shape)} to {show(sizes)} need known sizes of space; give numbers for them"
        )
    else:
        places = np.zeros((1, 1), np.int64)
        for d, n in zip(space, sizes, strict=True):
            along = _adaptive_places(d, n)
            places = (places[:, None, :, None] * d + along[:, None, :]).reshape(len(places) * n, -1)
        best = b.argmax(b.gather(flat, b.const(places), axis=2), axis=3)
        starts = b.const(np.arange(len(places))[:, None] * places.shape[1])
        found = b.gather(b.const(places.ravel()), b.add(best, starts), axis=0)
    return b.reshape(found, shape=(*x.shape[:2], *sizes))


def interpolate(
    b: Any, x: Any, size: Ints | None, scale: float | Sequence[float] | None, mode: str, align_corners: bool
) -> Any:
    spaces = _spaces(x, "interpolate")
    if (size is None) == (scale is None):
        raise InputError("interpolate: give either size or scale")
    if mode not in (*RESAMPLING, "area"):
        raise InputError(f"interpolate: mode {mode!r}, expected one of {', '.join((*RESAMPLING, 'area'))}")
    if align_corners and (mode == "area" or mode.startswith("nearest")):
        raise InputError(
            f"interpolate: mode {mode!r} takes no align_corners; leave it out, or take mode='linear', 'bilinear' or 'bicubic'"
        )
    if x.dtype not in FLOATS:
        raise DTypeError(f"interpolate: got {x.dtype}, expected a float type; cast it first")
    space = x.shape[2:]
    attrs = {**RESAMPLING.get(mode, {}), **({"coordinates": "align_corners"} if align_corners else {})}
    if size is not None:
        sizes = per_axis(size, spaces, "size")
        return adaptive_avg_pool(b, x, sizes) if mode == "area" else b.resize(x, sizes=(*x.shape[:2], *sizes), **attrs)
    assert scale is not None
    scales = (float(scale),) * spaces if isinstance(scale, (int, float, np.generic)) else tuple(map(float, scale))
    if len(scales) != spaces:
        raise ShapeError(f"interpolate: {len(scales)} scales, expected one number or {spaces}")
    sizes: Any = tuple(scaled(d, s) for d, s in zip(space, scales, strict=True))
    if mode == "area":
        return adaptive_avg_pool(b, x, sizes)
    if not align_corners:  # otherwise the corners say what the scales are
        attrs["scales"] = (1.0, 1.0, *scales)
    return b.resize(x, sizes=(*x.shape[:2], *sizes), **attrs)
