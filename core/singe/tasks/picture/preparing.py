"""Rows that prepare a picture's pixels for a model, and that take places and maps back to the picture.

`prepared` takes uint8 pixels (height, width, 4) of any size. Places are in pixels, with edges at whole numbers. Each output
pixel is a weighted sum of the source's pixels near it: the filter is as wide as the step from one output pixel to the next, but at
least one pixel of the source, so a picture that shrinks is antialiased.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ...dtypes import DType
from ...late_dataclass import dataclass
from ...shapes import Dim, ceildiv, dim_max, dim_min
from ...tensors.functions.creation import arange, concatenate, full, stack, tensor, where
from ...tensors.tensor import Tensor
from .spec import CROP_PARTS, PictureInput

LUMA: Final = (0.299, 0.587, 0.114)
"""Red, green and blue in grey, by ITU-R BT.601."""
_REACH: Final = {"linear": 1, "cubic": 2}
_LEAST: Final = 1e-9
_NUDGE: Final = 1e-3
"""Added to places, so that one between two elements goes to the same on every device, however that rounds."""


@dataclass(frozen=True)
class Frame:
    """Where the model's input lies in the picture: input (y, x) is (y · step + start) there. size: the input's height and width; source:
    the picture's; steps and starts: float32 scalars; crop: see PictureInput."""

    size: tuple[int, int]
    source: tuple[Dim, Dim]
    steps: tuple[Tensor, Tensor]
    starts: tuple[Tensor, Tensor]
    crop: float

    def points(self, xy: Tensor) -> Tensor:
        """Places (…, 2) of x and y in the input, as places in the picture."""
        step, start = stack([self.steps[1], self.steps[0]]), stack([self.starts[1], self.starts[0]])
        return xy * step + start

    def boxes(self, corners: Tensor) -> Tensor:
        """Corners (…, 4) of x, y, x and y in the input, as corners within the picture."""
        ends = stack([scalar(self.source[1]), scalar(self.source[0])])
        least, most = (self.points(part).maximum(0.0).minimum(ends) for part in (corners[..., :2], corners[..., 2:]))
        return concatenate([least, most], axis=-1)

    def scale_of(self, height: int, width: int) -> Tensor:
        """Of a map of these sides that the model made of its input: (2, 2), for y and x a factor and what is added to it, by which the number
        of a pixel of the picture becomes a place between the map's elements."""
        rows: list[Tensor] = []
        for axis, length in enumerate((height, width)):
            factor = (length / self.size[axis]) / self.steps[axis]
            rows.append(stack([factor, (0.5 - self.starts[axis]) * factor - 0.5]))
        return stack(rows)

    def map(self, values: Tensor, filter: str = "linear") -> Tensor:
        """A map (height, width, channels) that the model made of its input, at the picture's size; 0 beyond the input."""
        for axis in (
            1,
            0,
        ):  # along rows first, where elements are gathered one by one: maps are mostly smaller than pictures
            length, out = values.shape[axis], self.source[axis]
            scale = length / self.size[axis]
            step = scale / self.steps[axis]
            start = -self.starts[axis] * step
            longest = dim_max(*(self._fewest(length, axis, other) for other in (0, 1)))
            values = resampled(values, axis, out, step, start, longest, filter)
        return values

    def _fewest(self, length: Dim, axis: int, other: int) -> Dim:
        """Elements of a map of this length in a pixel of the picture, rounded up, if the input's step is that along the other axis."""
        pixels = dim_max(self.source[other], 1) * self.size[axis] * math.floor(self.crop * CROP_PARTS)
        return (length * self.size[other] * CROP_PARTS + pixels - 1) // pixels

    def nearest(self, values: Tensor) -> Tensor:
        """A map (height, width) at the picture's size, each pixel with the element that is nearest, and none between two."""
        for axis in (0, 1):
            length = values.shape[axis]
            center = arange(self.source[axis]).to(dtype="float32") + 0.5
            place = (center - self.starts[axis]) / self.steps[axis] * (length / self.size[axis])
            place = (place + _NUDGE).floor()
            values = values.take(place.maximum(0.0).minimum(length - 1.0).to(dtype="int32"), axis=axis)
        return values


def scalar(size: Dim) -> Tensor:
    """A size as a float32."""
    return full((), size, dtype="float32")  # pyright: ignore[reportArgumentType]


def framed(height: Dim, width: Dim, spec: PictureInput) -> Frame:
    """Where the input of this spec lies in a picture of this size."""
    source = (scalar(height), scalar(width))
    y, x = (s / n for s, n in zip(source, spec.size, strict=True))
    if spec.fit == "stretch":
        steps = (y * spec.crop, x * spec.crop)
    else:
        both = (y.minimum(x) if spec.fit == "cover" else y.maximum(x)) * spec.crop
        steps = (both, both)
    borders = [(scalar(n) - s / step) / 2 for s, step, n in zip(source, steps, spec.size, strict=True)]
    if spec.fit == "contain":
        borders = [border.maximum(0.0).floor() for border in borders]  # so that a border has whole pixels
    if spec.fit == "corner":
        borders = [scalar(0), scalar(0)]
    y, x = (-border * step for border, step in zip(borders, steps, strict=True))
    return Frame(spec.size, (height, width), steps, (y, x), spec.crop)


def prepared(pixels: Tensor, spec: PictureInput, kind: DType) -> tuple[Tensor, Frame]:
    """The model's input, with a batch of one, of a type; and where it lies in the picture."""
    height, width = pixels.shape[:2]
    frame = framed(height, width, spec)
    crop = Fraction(math.ceil(spec.crop * CROP_PARTS), CROP_PARTS)
    longest = [
        ceildiv(side * crop.numerator, own * crop.denominator)
        for side, own in zip((height, width), spec.size, strict=True)
    ]
    if spec.fit != "stretch":
        both = (dim_min if spec.fit == "cover" else dim_max)(longest[0], longest[1])
        longest = [both, both]
    x: Any = pixels
    for axis in (0, 1):
        x = resampled(x, axis, spec.size[axis], frame.steps[axis], frame.starts[axis], longest[axis], spec.filter)
    x = x[..., :3]
    if spec.filter == "cubic":
        x = x.maximum(0.0).minimum(255.0)
    if spec.fit in ("contain", "corner"):
        x = where(inside(frame), x, spec.fill)
    if spec.channels == 1:
        x = (x * tensor(LUMA)).sum(-1, keepdims=True)
    elif spec.order == "bgr":
        x = x.flip(-1)
    if any(spec.mean):
        x = x - tensor(spec.mean)
    if any(value != 1 for value in spec.std):
        x = x / tensor(spec.std)
    if spec.layout == "nchw":
        x = x.permute(2, 0, 1)
    x = x.unsqueeze(0)
    if not kind.is_float:
        ends = np.iinfo(kind.numpy)  # pyright: ignore[reportArgumentType]
        x = x.round().maximum(float(ends.min)).minimum(float(min(ends.max, 255)))
    return x.to(dtype=kind), frame


def inside(frame: Frame) -> Tensor:
    """Which of the input's pixels (height, width, 1) have their centre in the picture."""
    sides: list[Tensor] = []
    for axis in (0, 1):
        centers = (arange(frame.size[axis]).to(dtype="float32") + 0.5) * frame.steps[axis] + frame.starts[axis]
        sides.append((centers > 0.0) & (centers < scalar(frame.source[axis])))
    return (sides[0].unsqueeze(1) & sides[1].unsqueeze(0)).unsqueeze(2)


def resampled(x: Tensor, axis: int, out: Dim, step: Tensor, start: Tensor, longest: Dim, filter: str) -> Tensor:
    """x resampled along an axis to `out` elements, float32: element i has its centre at (i + 0.5) · step + start. longest: a whole
    number, at least 1 and at least the step."""
    taps = 2 * _REACH[filter] * longest
    end = scalar(x.shape[axis])
    wide = step.maximum(1.0)
    center = (arange(out).to(dtype="float32") + 0.5) * step + start
    first = (center - wide * _REACH[filter] + 0.5).floor()
    place = first.unsqueeze(1) + arange(taps).to(dtype="float32")
    weight = _weight((place + 0.5 - center.unsqueeze(1)).abs() / wide, filter)
    weight = where((place < 0.0) | (place >= end), 0.0, weight)
    total = weight.sum(1, keepdims=True)
    weight = weight / where(total > _LEAST, total, 1.0)
    index = place.maximum(0.0).minimum(end - 1.0).to(dtype="int32")
    shape = (1,) * axis + (out, taps) + (1,) * (len(x.shape) - axis - 1)
    return (x.take(index, axis=axis).to(dtype="float32") * weight.reshape(*shape)).sum(axis + 1)


def _weight(far: Tensor, filter: str) -> Tensor:
    """What an element counts at a distance, in widths of the filter."""
    if filter == "linear":
        return (1.0 - far).maximum(0.0)
    near = (1.5 * far - 2.5) * far * far + 1.0
    middle = ((-0.5 * far + 2.5) * far - 4.0) * far + 2.0
    return where(far < 1.0, near, where(far < 2.0, middle, 0.0))
