"""What openWakeWord's models hear: 80 ms of sound become 96 numbers, by two networks: one makes the logarithms of power in bands of samples,
Google's speech embedding a vector of 76 frames of these. Here they are rows of one Graph, with what they remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ...errors import InputError
from ...tensors.functions.creation import concat, tensor
from ...tensors.tensor import Tensor

RATE: Final = 16_000
STEP: Final = 1280
BEFORE: Final = 480
"""Samples of a vector, and how many of those before the bands of the first frames are computed from."""
BANDS: Final = 32
WIDTH: Final = 96
MAX_VECTORS: Final = 1024
"""That a model hears at once, 82 seconds; those of the package hear 16 to 28."""
_FRAMES: Final = 76
_NEW_FRAMES: Final = 8
_FULL_SCALE: Final = 32768.0
"""The networks take samples as integers of 16 bits."""
_NOISE: Final = 1000
"""The first vectors are those of noise of so much in 16 bits, as the makers begin."""

Network = Callable[[Tensor], Tensor]


def memory_of(vectors: int) -> int:
    """How many numbers are remembered: the bands of the last frames, and the last vectors."""
    return _FRAMES * BANDS + vectors * WIDTH


def embeddings(samples: Tensor, memory: Tensor, vectors: int, bands: Network, embed: Network) -> tuple[Tensor, Tensor]:
    """The last vectors (1, vectors, WIDTH) of samples (BEFORE + STEP,), and what is remembered; memory: that of the step before, zeros at the
    beginning. bands: the network (1, samples) ↦ (1, 1, frames, BANDS); embed: (1, _FRAMES, BANDS, 1) ↦ (1, 1, 1, WIDTH)."""
    first = np.concatenate([np.ones(_FRAMES * BANDS, np.float32), _noise(vectors, bands, embed)])
    held = memory + tensor(first)
    old_frames = held[: _FRAMES * BANDS].reshape(_FRAMES, BANDS)
    old_vectors = held[_FRAMES * BANDS :].reshape(vectors, WIDTH)
    frames = concat([old_frames[_NEW_FRAMES:], _scaled(bands, samples.unsqueeze(0))], 0)
    vector = embed(frames.reshape(1, _FRAMES, BANDS, 1)).reshape(1, WIDTH)
    known = concat([old_vectors[1:], vector], 0)
    return known.unsqueeze(0), concat([frames.reshape(-1), known.reshape(-1)]) - tensor(first)


def _scaled(bands: Network, samples: Tensor) -> Tensor:
    made = bands(samples * _FULL_SCALE)
    if made.ndim < 2 or made.shape[-2:] != (_NEW_FRAMES, BANDS):
        raise InputError(
            f"wake-word: of {BEFORE + STEP} samples the network of bands makes {made.shape}, expected ({_NEW_FRAMES}, {BANDS})"
        )
    return made.reshape(_NEW_FRAMES, BANDS) / 10.0 + 2.0


def _noise(vectors: int, bands: Network, embed: Network) -> np.ndarray:
    """The vectors of some noise, one after the other."""
    rng = np.random.default_rng(0)
    count = BEFORE + STEP
    parts = [
        rng.integers(-_NOISE, _NOISE, (1, count)).astype(np.float32) / _FULL_SCALE
        for _ in range(_FRAMES // _NEW_FRAMES + vectors)
    ]
    frames = np.concatenate([np.asarray(_scaled(bands, tensor(part, device="numpy"))) for part in parts])
    windows = [frames[k : k + _FRAMES] for k in range(0, vectors * _NEW_FRAMES, _NEW_FRAMES)]
    return np.concatenate(
        [np.asarray(embed(tensor(x.reshape(1, _FRAMES, BANDS, 1), device="numpy"))).reshape(-1) for x in windows]
    )
