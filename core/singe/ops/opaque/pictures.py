"""The row that decodes a picture: it runs on the host, by the library that reads files of pictures."""

from __future__ import annotations

import io
from typing import Final

import numpy as np

from ...dtypes import uint8
from ...errors import InputError
from ...files.pictures import open_picture
from ...shapes import show
from ..kinds import Opaque, Results, Shaped, register

ORDERS: Final = {"RGB": ("RGB", slice(None)), "BGR": ("RGB", slice(None, None, -1)), "Grayscale": ("L", slice(None))}
"""ONNX's pixel_format ↦ Pillow's mode, and the order of its channels."""


def decoded(data: np.ndarray, order: str = "RGB") -> np.ndarray:
    """The pixels (height, width, channels) of a picture whose file's bytes are given."""
    mode, channels = ORDERS[order]
    pixels = np.asarray(open_picture(io.BytesIO(data.tobytes()), "decode_image").convert(mode))
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1)[:, :, channels])


def _decoded_shapes(data: Shaped, order: str = "RGB") -> Results:
    if order not in ORDERS or len(data.shape) != 1:
        raise InputError(
            f"decode_image: {order!r} of {show(data.shape)}; expected {', '.join(ORDERS)}, and a vector of bytes"
        )
    return (((None, None, 1 if order == "Grayscale" else 3), uint8),)


register(
    Opaque(name="decode_image", public=False, doc="the pixels of a picture, from the bytes of its file",
        host="pictures are decoded by a library", dtypes=(uint8,),
           results=_decoded_shapes, on_host=decoded),
)  # fmt: skip
