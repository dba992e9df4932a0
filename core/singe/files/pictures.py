"""Pictures in files, as pixels. Only this module needs Pillow (`pip install 'singe[images]'`)."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import InputError

MAX_PIXELS: Final = 1 << 26
"""The most pixels in a file; a larger picture is refused before it is decoded."""
FORMATS: Final = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""The formats that are read. Pillow has more, some of which start other programs."""
SUFFIXES: Final = frozenset(
    (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
MODES: Final = {1: "L", 3: "RGB"}
"""Channels ↦ Pillow's mode."""


def read_pixels(path: str | Path, channels: int, size: tuple[int, int] | None = None, crop: float = 1.0) -> np.ndarray:
    """The pixels (height, width, channels) of the picture in a file, uint8; of `size`, if given, as `_box` says."""
    picture = open_picture(path, path).convert(MODES[channels])
    if size is not None:
        box = _box(picture.size, size, crop)
        picture = picture.resize(size[::-1], _pillow().Image.Resampling.BICUBIC, box=box)
    return np.asarray(picture).reshape(picture.height, picture.width, channels)


def _box(original_size: tuple[int, int], size: tuple[int, int], crop: float) -> tuple[float, float, float, float]:
    """The part of a picture that is used, as left, top, right, bottom in its pixels: the largest centred one with the
    proportions of `size`, shrunk by `crop`."""
    height, width = size
    scale = min(original_size[0] / width, original_size[1] / height) * crop
    x, y = (original_size[0] - width * scale) / 2, (original_size[1] - height * scale) / 2
    return (
        max(0.0, x),
        max(0.0, y),
        min(float(original_size[0]), x + width * scale),
        min(float(original_size[1]), y + height * scale),
    )


def _pillow() -> Any:
    try:
        import PIL.Image  # noqa: PLC0415 (an extra, wanted only where there are pictures)
        import PIL.ImageDraw  # noqa: PLC0415
        import PIL.ImageOps  # noqa: PLC0415
    except ImportError:
        raise InputError("pictures need Pillow: pip install 'singe[images]'") from None
    return PIL


def open_picture(file: str | Path | io.BytesIO, path: str | Path) -> Any:
    """The picture upright, in 8 bits a channel, without transparency. path: how errors name the file."""
    pil = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large pictures: the limit here is lower
            with pil.Image.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    raise InputError(
                        f"{path}: {picture.width} × {picture.height} pixels, more than the {MAX_PIXELS} that are read; make it smaller"
                    )
                return _plain(pil, pil.ImageOps.exif_transpose(picture), path)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file, expected the path of a picture; look for a slip in its name") from None
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


def canvas_of(pixels: np.ndarray) -> Any:
    """A picture of Pillow with these pixels: (height, width), or with 3 or 4 channels, uint8."""
    return _pillow().Image.fromarray(np.ascontiguousarray(pixels))


def pen_on(picture: Any) -> Any:
    """What draws on a picture of Pillow."""
    return _pillow().ImageDraw.Draw(picture)
