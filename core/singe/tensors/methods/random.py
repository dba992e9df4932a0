"""Drawing by what a tensor says, with the next key (default_keys.py)."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError
from ...ops import ROWS
from ...shapes import number
from ..calls import apply_row
from ..default_keys import next_key
from ..tensor import Tensor
from .attach import method


@method
def bernoulli(x: Tensor, p: float | None = None) -> Tensor:
    """1 with the probability that each element is, otherwise 0, in the tensor's dtype, with the next key; with p, of the same
    shape, with that probability. Probabilities beyond 0 and 1 count as these."""
    if p is None and not x.dtype.is_float:
        raise DTypeError(
            f"bernoulli: the probabilities are {x.dtype}, expected floats; x.bernoulli(0.5) draws 1 with that one"
        )
    drawn = apply_row(ROWS["random_unit"], (next_key("bernoulli", x.device),), shape=x.shape)
    least: Any = x if p is None else number(p, "bernoulli", "p")
    return (drawn < least).cast(x.dtype)
