"""Layers that move and resample elements: Upsample, PixelShuffle, Unfold and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError, ShapeError
from ...shapes import Dim, axis_of, divides, same_form, show
from ...tensors.nodes.spatial import Ints, per_axis
from ...tensors.tensor import Tensor
from .._module import Module


class Unflatten(Module):
    """Divides an axis into several; one of the sizes may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        at = axis_of(self.dim, x.ndim, "Unflatten")
        return x.reshape(*x.shape[:at], *self._sizes(x.shape[at]), *x.shape[at + 1 :])

    def _sizes(self, length: Dim) -> tuple[Dim, ...]:
        known = int(np.prod([n for n in self.unflattened_size if n != -1]))
        return tuple(length // known if n == -1 else n for n in self.unflattened_size)


class Upsample(Module):
    """Resamples the axes of space to a size or by a factor; mode: nearest, nearest-exact, linear, bilinear, bicubic or
    trilinear."""

    def __init__(
        self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:  # fmt: skip
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, x: Tensor) -> Tensor:
        return x.interpolate(self.size, self.scale_factor, self.mode, bool(self.align_corners))


class UpsamplingNearest2d(Upsample):
    """Upsample by nearest neighbours."""

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample bilinearly, so that corners stay corners."""

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """(…, c · r², h, w) to (…, c, h · r, w · r): channels become the pixels between."""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return x.pixel_shuffle(self.upscale_factor)


class PixelUnshuffle(Module):
    """(…, c, h · r, w · r) to (…, c · r², h, w): the inverse of PixelShuffle."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return x.pixel_unshuffle(self.downscale_factor)


class ChannelShuffle(Module):
    """Takes channels (axis 1) from each of the groups in turn."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        return x.channel_shuffle(self.groups)


class Unfold(Module):
    """The windows of (batch, channels, height, width) as columns: (batch, channels · window, number of windows)."""

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 3:
            return self.forward(x.unsqueeze(0)).squeeze(0)
        if x.ndim != 4:
            raise ShapeError(f"Unfold: got {show(x.shape)}, expected (batch, channels, height, width)")
        window, strides, dilations, pads = _facts(self)
        n, c, *space = x.shape
        y = x.pad([(0, 0), (0, 0), *((p, p) for p in pads)]) if any(pads) else x
        counts = _counts(space, window, strides, dilations, pads, "Unfold")
        for axis, k in ((2, 0), (4, 1)):  # each axis of space becomes (window, place of the window)
            places = np.arange(window[k])[:, None] * dilations[k] + np.arange(counts[k]) * strides[k]
            taken = y.take(places.reshape(-1), axis)
            y = taken.reshape(*taken.shape[:axis], window[k], counts[k], *taken.shape[axis + 1 :])
        return y.transpose(0, 1, 2, 4, 3, 5).reshape(n, c * window[0] * window[1], counts[0] * counts[1])


class Fold(Module):
    """Adds columns, as Unfold makes them, up to (batch, channels, *output_size)."""

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            return self.forward(x.unsqueeze(0)).squeeze(0)
        window, strides, dilations, pads = _facts(self)
        size = per_axis(self.output_size, 2, "output_size")
        counts = _counts(size, window, strides, dilations, pads, "Fold")
        parts = window[0] * window[1]
        if x.ndim != 3 or not divides(x.shape[1], parts) or not same_form(x.shape[2], counts[0] * counts[1]):
            raise ShapeError(
                f"Fold: got {show(x.shape)}, expected (batch, channels · {parts}, {counts[0] * counts[1]}) for {size}"
            )
        n, c = x.shape[0], x.shape[1] // parts
        # Column k of a window is moved to its place by a kernel that is 1 there.
        kernel = np.eye(parts, dtype=np.float32).reshape(parts, 1, *window).astype(x.dtype.numpy)
        extra = tuple(
            s + 2 * p - (d * (w - 1) + 1) - (m - 1) * t
            for s, p, d, w, m, t in zip(size, pads, dilations, window, counts, strides, strict=True)
        )
        return x.reshape(n * c, parts, *counts).conv_transpose(
            kernel, None, stride=strides, padding=pads, output_padding=extra, dilation=dilations
        ).reshape(n, c, *size)  # fmt: skip


def _facts(layer: Fold | Unfold) -> tuple[tuple[int, ...], ...]:
    named = ("kernel_size", "stride", "dilation", "padding")
    return tuple(per_axis(getattr(layer, name), 2, name) for name in named)


def _counts(space: Sequence[Any], window: Any, strides: Any, dilations: Any, pads: Any, what: str) -> list[int]:
    """How many windows there are along each axis."""
    if not all(isinstance(d, int) for d in space):
        raise InputError(f"{what}: the axes of space are {show(tuple(space))}, expected numbers")
    found = [
        (d + 2 * p - (r * (w - 1) + 1)) // s + 1
        for d, w, s, r, p in zip(space, window, strides, dilations, pads, strict=True)
    ]
    if min(found) < 1:
        raise ShapeError(
            f"{what}: {show(tuple(space))} is smaller than a window; expected as large or larger: pad it, or take a smaller window"
        )
    return found
