"""What makes vectors of sound: Moonshine's convolutions, which take samples as they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...nn import Module
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from ..files import Tensors
from ..layers import floats, vector
from .description import PairDescription
from .layers import part

RATE: Final = 16_000
MAX_SECONDS: Final = 30
"""Of a sound that is heard at once."""
FRAME: Final = 384
"""Samples from one vector to the next."""
LEAST_SAMPLES: Final = 895
"""Of which a vector is made."""
_CONVOLUTIONS: Final = ((127, 64), (7, 3), (3, 2))
"""The samples that each sees, and from one to the next."""
_EPSILON: Final = 1e-5


FURTHER: Final = 3
"""Frames of a sound beyond its vectors."""


def positions_of(samples: Any) -> Any:
    """How many vectors are made of so many samples, a number or a size."""
    return (samples - LEAST_SAMPLES) // FRAME + 1


MAX_FRAMES: Final = positions_of(MAX_SECONDS * RATE) + FURTHER


def frames_of(samples: np.ndarray) -> np.ndarray:
    """Samples as rows (F, FRAME), with silence behind them."""
    count = positions_of(len(samples)) + FURTHER
    return np.concatenate([samples, np.zeros(count * FRAME - len(samples), np.float32)]).reshape(count, FRAME)


def sound_room(d: PairDescription) -> int:
    return positions_of(MAX_SECONDS * RATE)


class SoundStem(Module):
    """Frames (F, FRAME) ↦ vectors (F − 3, width). samples: how many are of the sound."""

    def __init__(self, d: PairDescription, tensors: Tensors) -> None:
        channels = (1, d.width, 2 * d.width, d.width)
        self.weights = [
            tensor(floats(tensors.take(f"encoder.conv{k}.weight", (channels[k], channels[k - 1], size))))
            for k, (size, _) in enumerate(_CONVOLUTIONS, 1)
        ]
        self.biases = [vector(tensors, f"encoder.conv{k}.bias", channels[k]) for k in (2, 3)]
        self.scale, self.shift = (vector(tensors, f"encoder.sound_norm.{x}", d.width) for x in ("weight", "bias"))

    def forward(self, frames: Tensor, samples: Any) -> Tensor:
        (size, step), *others = _CONVOLUTIONS
        x = frames.reshape(1, 1, -1).conv(self.weights[0], None, stride=step).tanh()
        used = part(
            x, 2, 0, (samples - size) // step + 1
        )  # what is made of silence behind the sound counts for nothing
        mean = used.mean((1, 2), keepdims=True)
        spread = (used - mean).square().mean((1, 2), keepdims=True)
        (size, stride), (last_size, last_stride) = others
        seen = ((frames.shape[0] - FURTHER - 1) * last_stride + last_size - 1) * stride + size
        x = (part(x, 2, 0, seen) - mean) / (spread + _EPSILON).sqrt()
        x = x * self.scale.reshape(1, -1, 1) + self.shift.reshape(1, -1, 1)
        for weight, bias, (_, step) in zip(self.weights[1:], self.biases, others, strict=True):
            x = x.conv(weight, bias, stride=step).gelu()
        return x[0].mT
