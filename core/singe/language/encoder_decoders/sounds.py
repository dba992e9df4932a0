"""What makes vectors of sound: Moonshine's convolutions, which take samples as they are."""

from __future__ import annotations

from typing import Final

from ...nn import Module
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from ..files import Tensors
from ..layers import floats, vector
from .description import PairDescription

RATE: Final = 16_000
MAX_SECONDS: Final = 30
"""Of a sound that is heard at once."""
CONVOLUTIONS: Final = ((127, 64), (7, 3), (3, 2))
"""The samples that each sees, and from one to the next."""
_EPSILON: Final = 1e-5


def positions_of(samples: int) -> int:
    """How many vectors are made of so many samples."""
    for size, step in CONVOLUTIONS:
        samples = max(0, (samples - size) // step + 1)
    return samples


LEAST_SAMPLES: Final = next(n for n in range(1, 1 << 16) if positions_of(n))
"""Of which a vector is made."""


def sound_room(d: PairDescription) -> int:
    return positions_of(MAX_SECONDS * RATE)


class SoundStem(Module):
    """Samples (N,) ↦ vectors (S, width)."""

    def __init__(self, d: PairDescription, tensors: Tensors) -> None:
        channels = (1, d.width, 2 * d.width, d.width)
        self.weights = [
            tensor(floats(tensors.take(f"encoder.conv{k}.weight", (channels[k], channels[k - 1], size))))
            for k, (size, _) in enumerate(CONVOLUTIONS, 1)
        ]
        self.biases = [vector(tensors, f"encoder.conv{k}.bias", channels[k]) for k in (2, 3)]
        self.scale, self.shift = (vector(tensors, f"encoder.sound_norm.{x}", d.width) for x in ("weight", "bias"))

    def forward(self, samples: Tensor) -> Tensor:
        steps = [step for _, step in CONVOLUTIONS]
        x = samples.reshape(1, 1, -1).conv(self.weights[0], None, stride=steps[0]).tanh()
        mean = x.mean((1, 2), keepdims=True)
        apart = x - mean
        x = apart / (apart.square().mean((1, 2), keepdims=True) + _EPSILON).sqrt()
        x = x * self.scale.reshape(1, -1, 1) + self.shift.reshape(1, -1, 1)
        for weight, bias, step in zip(self.weights[1:], self.biases, steps[1:], strict=True):
            x = x.conv(weight, bias, stride=step).gelu()
        return x[0].mT
