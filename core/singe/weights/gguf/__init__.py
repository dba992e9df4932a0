"""GGUF files: `reader.py` is where to start. Blocks become float32 by blocks.py and coded.py, or stay packed by packed.py."""

from .reader import is_gguf as is_gguf
from .reader import read_gguf as read_gguf

__all__ = ["is_gguf", "read_gguf"]
