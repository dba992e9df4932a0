"""Pictures: ImageDecoder."""

from __future__ import annotations

from ....graph import Node
from .._call import Call, adapter


@adapter("ImageDecoder")
def _image_decoder(call: Call) -> Node:
    """On the host, by the row of ops/opaque/pictures.py, which needs Pillow when it runs."""
    return call.b.decode_image(call.x(), order=call.attr("pixel_format", "RGB"))
