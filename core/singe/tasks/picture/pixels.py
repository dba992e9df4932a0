"""Pictures from files, addresses, bytes, arrays and Pillow, as pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...files.pictures import MAX_PIXELS, open_picture
from ...files.places import local_file


def pixels_of(source: Any) -> np.ndarray:
    """A picture's pixels (height, width, 4) in uint8, upright and on white; the last of the four is 255.

    source: a path, a URL, a file's bytes, a picture of Pillow, or an array (height, width), or with 1, 3 or 4 channels: uint8, or
    floats from 0 to 1.
    """
    if isinstance(source, (str, Path)):
        return _opaque(np.asarray(open_picture(local_file(source), source).convert("RGB")))
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _opaque(np.asarray(open_picture(io.BytesIO(source), "picture").convert("RGB")))
    if hasattr(source, "convert") and hasattr(source, "getexif"):
        held = io.BytesIO()
        source.save(held, "PNG", exif=source.getexif())
        return pixels_of(held.getvalue())
    return _opaque(_pixels(source))


def _pixels(source: Any) -> np.ndarray:
    array = np.asarray(source)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or not array.size or array.dtype.kind not in "uf":
        raise InputError(
            f"picture: got {_told(source)}, expected a path, a URL, bytes, a picture of Pillow, or an array (height, width, channels) of "
            "uint8, or of floats from 0 to 1"
        )
    if array.shape[0] * array.shape[1] > MAX_PIXELS:
        raise InputError(
            f"picture: {array.shape[1]} × {array.shape[0]} pixels, more than the {MAX_PIXELS} that are taken"
        )
    if array.dtype.kind == "f":
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise InputError("picture: floats beyond 0 to 1: divide them by 255, or give uint8")
        array = np.round(array * 255)
    elif array.dtype != np.uint8:
        raise InputError(f"picture: got {array.dtype}, expected uint8, or floats from 0 to 1")
    return array.astype(np.uint8)


def _told(source: Any) -> str:
    if isinstance(source, np.ndarray):
        return f"an array {source.dtype}{source.shape}"
    return f"a {type(source).__name__}"


def _opaque(pixels: np.ndarray) -> np.ndarray:
    """Pixels of 1, 3 or 4 channels as four, blended with white."""
    found = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    if pixels.shape[2] == 4:
        part = pixels[:, :, 3:].astype(np.float32) / 255
        found[:, :, :3] = np.round(pixels[:, :, :3] * part + 255 * (1 - part))
    else:
        found[:, :, :3] = pixels
    return found
