"""Numbers of elements, for masks and positions."""

from __future__ import annotations

from typing import Any

from ..frontend.creation import arange
from ..frontend.tensor import Tensor


def numbers(count: Any, like: Tensor) -> Tensor:
    """0, 1, … below count, which may be a Size, on the device of a tensor."""
    return arange(count, device=like.device) if isinstance(count, int) else arange(count)
