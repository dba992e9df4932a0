"""Pictures become tensors: decoded, turned upright, cropped, resized, normalised and laid out as a PictureSpec says.

The part that is used is the largest centred rectangle with the proportions of `size`, shrunk by `crop`. It is resized in
one step (bicubic, antialiased), so no intermediate picture is larger than `size`. For a square this equals "resize the
shorter side to size / crop, then crop the centre". Transparent pixels are blended with white. Only this module needs
Pillow (`pip install 'singe[images]'`).
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..dtypes import uint8
from ..errors import InputError
from ..ops import Opaque, register
from ..shapes import Dim, Shape, show

MAX_PIXELS: Final = 1 << 26
"""The most pixels in a file; a larger picture is refused before it is decoded."""
FORMATS: Final = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""The formats that are read. Pillow has more, some of which start other programs."""
SUFFIXES: Final = frozenset((".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"))
MODES: Final = {1: "L", 3: "RGB"}
"""Channels of a tensor ↦ Pillow's mode."""
LAYOUTS: Final = {"nchw": (2, 0, 1), "nhwc": (0, 1, 2)}
"""A tensor's layout ↦ the axes of (height, width, channels) in its order, after the batch."""


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


def layout_of(shape: Shape) -> str:
    """The layout that an input's shape suggests: where the axis of 1 or 3 channels is."""
    return "nhwc" if len(shape) == 4 and shape[3] in MODES and shape[1] not in MODES else "nchw"


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
    picture = _open(path, path).convert(MODES[spec.channels])
    pixels = np.asarray(
        picture.resize(spec.size[::-1], _pillow().Image.Resampling.BICUBIC, box=_box(picture.size, spec)),
        np.float32,
    )
    values = (pixels.reshape(*spec.size, spec.channels) - np.array(spec.mean, np.float32)) / np.array(
        spec.std, np.float32
    )
    return np.ascontiguousarray(values.transpose(LAYOUTS[spec.layout]))[None]


ORDERS: Final = {"RGB": ("RGB", slice(None)), "BGR": ("RGB", slice(None, None, -1)), "Grayscale": ("L", slice(None))}
"""ONNX's pixel_format ↦ Pillow's mode, and the order of its channels."""


def decoded(data: np.ndarray, order: str = "RGB") -> np.ndarray:
    """The pixels (height, width, channels) of a picture whose file's bytes are given."""
    mode, channels = ORDERS[order]
    pixels = np.asarray(_open(io.BytesIO(data.tobytes()), "decode_image").convert(mode))
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1)[:, :, channels])


def _decoded_shapes(data: Any, order: str = "RGB") -> Any:
    if order not in ORDERS or len(data.shape) != 1:
        raise InputError(
            f"decode_image: {order!r} of {show(data.shape)}; expected {', '.join(ORDERS)}, and a vector of bytes"
        )
    return (((None, None, 1 if order == "Grayscale" else 3), uint8),)


register(
    Opaque(name="decode_image", doc="the pixels of a picture, from the bytes of its file", host="pictures are decoded by a library", dtypes=(uint8,),
           shapes=_decoded_shapes, whole=decoded),
)  # fmt: skip


def _box(size: tuple[int, int], spec: PictureSpec) -> tuple[float, float, float, float]:
    """The part of a picture that is used, as left, top, right, bottom in its pixels."""
    height, width = spec.size
    scale = min(size[0] / width, size[1] / height) * spec.crop
    x, y = (size[0] - width * scale) / 2, (size[1] - height * scale) / 2
    return max(0.0, x), max(0.0, y), min(float(size[0]), x + width * scale), min(float(size[1]), y + height * scale)


def _pillow() -> Any:
    try:
        import PIL.Image  # noqa: PLC0415 (an extra, wanted only where there are pictures)
        import PIL.ImageOps  # noqa: PLC0415
    except ImportError:
        raise InputError("pictures need Pillow: pip install 'singe[images]'") from None
    return PIL


def _open(file: str | Path | io.BytesIO, path: str | Path) -> Any:
    """The picture upright, in 8 bits a channel, without transparency. path: how errors name the file."""
    pil = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large pictures: the limit here is lower
            with pil.Image.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    raise InputError(
                        f"{path}: {picture.width} × {picture.height} pixels, more than the {MAX_PIXELS} that are read"
                    )
                return _plain(pil, pil.ImageOps.exif_transpose(picture), path)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except Exception as e:  # Pillow raises many kinds of errors for damaged files
        raise InputError(f"{path}: cannot be read as a picture: {e}") from e


def _plain(pil: Any, picture: Any, path: str | Path) -> Any:
    if picture.mode == "F":
        raise InputError(f"{path}: a picture of floats; its range is unknown, so give it as an .npy file")
    if picture.mode.startswith("I"):  # 16 bits per channel, which Pillow would clip at 255
        deep = np.asarray(picture).astype(np.int64)
        if deep.min() < 0 or deep.max() > 0xFFFF:
            raise InputError(f"{path}: pixels from {deep.min()} to {deep.max()}, expected 8 or 16 bits")
        return pil.Image.fromarray((deep // 257).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        return pil.Image.alpha_composite(pil.Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    return picture.convert("RGB")
