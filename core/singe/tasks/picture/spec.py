"""Pictures become tensors: decoded, turned upright, cropped, resized, normalised and laid out as a PictureSpec says.

The part that is used is the largest centred rectangle with the proportions of `size`, shrunk by `crop`. It is resized in
one step (bicubic, antialiased), so no intermediate picture is larger than `size`. For a square this equals "resize the
shorter side to size / crop, then crop the centre". Transparent pixels are blended with white.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from ...errors import InputError
from ...files.pictures import MODES, read_pixels
from ...late_dataclass import dataclass
from ...shapes import Dim, Shape, show
from ..medium import TaskInput

LAYOUTS: Final = {"nchw": (2, 0, 1), "nhwc": (0, 1, 2)}
"""A tensor's layout ↦ the axes of (height, width, channels) in its order, after the batch."""
FITS: Final = ("cover", "contain", "corner", "stretch")
"""How a picture meets the model's size: its centre alone; all of it, centred or at the top left, with a border; or out of proportion."""
ORDERS: Final = ("rgb", "bgr")
FILTERS: Final = ("linear", "cubic")
CROP_PARTS: Final = 1024
"""Of one: a crop is counted in these where a Graph's sizes are whole numbers."""


@dataclass(frozen=True)
class PictureSpec:
    """How a picture becomes an input of a model: pixels are (value − mean) / std, with values from 0 to 255.

    size: height and width. channels: 3 or 1. crop: the part of the shorter side that is used. mean, std: one number for
    all channels, or one for each. layout: "nchw" or "nhwc". input: the name of the input; "" means the only one.
    """

    size: tuple[int, int]
    channels: int = 3
    crop: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)
    layout: str = "nchw"
    input: str = ""

    def __post_init__(self) -> None:
        for ok, problem in (
            (
                len(self.size) == 2 and all(0 < n <= 1 << 14 for n in self.size),
                f"size {self.size}: expected two numbers from 1 to {1 << 14}",
            ),
            (self.channels in MODES, f"channels {self.channels}: pictures have {' or '.join(map(str, MODES))}"),
            (0 < self.crop <= 1, f"crop {self.crop}: expected a part of the picture, above 0 and at most 1"),
            (len(self.mean) in (1, self.channels), f"mean {self.mean}: expected 1 or {self.channels} numbers"),
            (len(self.std) in (1, self.channels), f"std {self.std}: expected 1 or {self.channels} numbers"),
            (all(np.isfinite(self.mean)), f"mean {self.mean}: expected finite numbers"),
            (all(np.isfinite(self.std)) and all(self.std), f"std {self.std}: expected finite numbers other than 0"),
            (self.layout in LAYOUTS, f"layout {self.layout!r}: expected {' or '.join(LAYOUTS)}"),
        ):
            if not ok:
                raise InputError(f"pictures: {problem}")


@dataclass(frozen=True)
class PictureInput(TaskInput, PictureSpec):
    """How pixels of any size become a model's input, in the Graph: a PictureSpec, and how the picture meets that size.

    fit: one of FITS. fill: the value of a border, from 0 to 255. order: "rgb" or "bgr". filter: how pixels are weighed where
    sizes differ; both are antialiased.
    """

    medium: ClassVar[str] = "picture"
    fit: str = "cover"
    fill: float = 114.0
    order: str = "rgb"
    filter: str = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        for value, known, what in (
            (self.fit, FITS, "fit"),
            (self.order, ORDERS, "order"),
            (self.filter, FILTERS, "filter"),
        ):
            if value not in known:
                raise InputError(f"pictures: {what} {value!r}: expected {' or '.join(known)}")
        if not 0 <= self.fill <= 255:
            raise InputError(f"pictures: fill {self.fill}: expected a value of pixels, from 0 to 255")
        if self.crop * CROP_PARTS < 1:
            raise InputError(f"pictures: crop {self.crop}: expected at least 1/{CROP_PARTS} of a picture")

    def __str__(self) -> str:
        mean, std = (" ".join(f"{x:g}" for x in numbers) for numbers in (self.mean, self.std))
        return f"{self.fit} {show(self.size)}, {self.order}, less {mean}, by {std}"


def layout_of(shape: Shape) -> str:
    """The layout that an input's shape suggests: where the axis of 1 or 3 channels is."""
    return "nhwc" if len(shape) == 4 and shape[3] in MODES and shape[1] not in MODES else "nchw"


def is_coloured(shape: Shape) -> bool:
    """Whether this is the shape of coloured pictures of one size: no other inputs have 3 channels and a height and width."""
    axes = LAYOUTS[layout_of(shape)] if len(shape) == 4 else ()
    sizes = [shape[1 + axes.index(axis)] for axis in range(3)] if axes else []
    return sizes[2:] == [3] and all(isinstance(size, int) and size > 3 for size in sizes[:2])


def picture_for(
    shape: Shape, *, size: tuple[int, int] | None = None, crop: float = 1.0,
    mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (255.0,), layout: str | None = None,
) -> PictureSpec:  # fmt: skip
    """The PictureSpec for an input of this shape, which gives size, channels and layout if the arguments do not."""
    layout = layout or layout_of(shape)
    if layout not in LAYOUTS:
        raise InputError(f"pictures: layout {layout!r}: expected {' or '.join(LAYOUTS)}")
    if len(shape) != 4:
        raise InputError(f"pictures: the input's shape {show(shape)} is not {layout}: give it as an .npy file")
    height, width, channels = (shape[1 + LAYOUTS[layout].index(axis)] for axis in range(3))
    if size is None:
        size = _number(height, shape), _number(width, shape)
    return PictureSpec(size, channels if isinstance(channels, int) else 3, crop, mean, std, layout)


def _number(d: Dim, shape: Shape) -> int:
    if isinstance(d, int):
        return d
    raise InputError(f"pictures: the input's shape {show(shape)} leaves {d} open: give --size")


def read_picture(path: str | Path, spec: PictureSpec) -> np.ndarray:
    """The picture in a file as a float32 tensor with a batch of one."""
    pixels = read_pixels(path, spec.channels, spec.size, spec.crop).astype(np.float32)
    values = (pixels - np.array(spec.mean, np.float32)) / np.array(spec.std, np.float32)
    return np.ascontiguousarray(values.transpose(LAYOUTS[spec.layout]))[None]
