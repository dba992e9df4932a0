"""Random numbers for layers, from keys that a caller gives or from generators of their own.

    with nn.drawing(key):  # a number, or a tensor of two uint32 numbers (singe.random)
        y = model(x)       # the model is in training mode

Each draw in the block has its own key, made of the given one and of how many were before it, so equal keys give equal
numbers. Without such a block a layer draws as `sg.randn` does: of the shared sequence, and in a function that is traced of
a state, so that each run draws other numbers (tensors/default_keys.py). A layer that got a generator (`rng`: a generator, or a
seed) draws from it instead; in a function that is traced, which cannot call it, that is refused.
"""

from __future__ import annotations

import numpy as np

from ..ops import ROWS
from ..runtime.random_keys import Rng, one_generator
from ..shapes import Shape
from ..tensors.calls import apply_row
from ..tensors.default_keys import apart, drawing
from ..tensors.default_keys import next_key as key_of
from ..tensors.tensor import Tensor
from ._module import Module

__all__ = ["Random", "drawing", "next_key"]


def next_key(x: Tensor) -> Tensor:
    """A key for one draw, for layers of one's own, on the device of x: `singe.random.normal(nn.next_key(x), x.shape)`."""
    return apart(key_of("next_key", x.device))


class Random(Module):
    """A layer that may draw; `training` is set by train() and eval()."""

    rng: np.random.Generator | None
    training: bool

    def _seed(self, rng: Rng) -> None:
        self.rng = one_generator(rng)
        self.training = False

    def _new_key(self, x: Tensor) -> Tensor:
        """The key of one draw, on the device of x."""
        return key_of(type(self).__name__, x.device, self.rng)

    def _drawn(self, x: Tensor, shape: Shape) -> Tensor:
        """Numbers from 0 to 1, on the device of x."""
        return apply_row(ROWS["random_unit"], (self._new_key(x),), shape=shape)
