"""TensorFlow Lite files become Graphs: flatbuffer.py decodes the bytes, model.py the model, importer.py builds the Graph."""

from __future__ import annotations

from typing import Final

IDENTIFIER: Final = b"TFL3"
"""What bytes 4 to 8 of a file are."""


def is_tflite(data: memoryview | bytes) -> bool:
    """Whether bytes begin like a TensorFlow Lite file."""
    return bytes(data[4:8]) == IDENTIFIER
