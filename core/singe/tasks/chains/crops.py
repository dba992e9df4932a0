"""Rotated rectangles of a picture as inputs of a model: straight, and all of one size.

A place is six numbers: x and y of the crop's corner, and by how much x and y grow from one of its columns to the next, and from one
row to the next. Corners are in pixels of the picture, with edges at whole numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ...shapes import Dim
from ...tensors.functions.creation import arange
from ...tensors.tensor import Tensor
from ..picture.preparing import scalar

MAX_SAMPLES: Final = 4


def sides_of(corners: np.ndarray) -> tuple[float, float]:
    """Height and width of a rectangle of four corners, from the top left on clockwise."""
    return float(np.linalg.norm(corners[3] - corners[0])), float(np.linalg.norm(corners[1] - corners[0]))


def place_of(corners: np.ndarray, height: int, width: int) -> np.ndarray:
    """The place of a rectangle that becomes so many rows and columns."""
    return np.concatenate([corners[0], (corners[1] - corners[0]) / width, (corners[3] - corners[0]) / height])


def samples_of(step: float) -> np.ndarray:
    """Where `cropped` samples a pixel along its axes, if neighbours are so many of the picture's pixels apart."""
    count = min(MAX_SAMPLES, max(1, int(np.ceil(step - 0.5))))
    return ((np.arange(count) + 0.5) / count - 0.5).astype(np.float32)


def cropped(picture: Tensor, places: Tensor, height: int, width: Dim, samples: Tensor) -> Tensor:
    """The crops (count, height, width, 3) of a picture, float32 from 0 to 255.

    samples: where a pixel is sampled along each of its axes, from −0.5 to 0.5: several, evenly spread, where crops are smaller than what they show.
    Beyond its edges the picture goes on as it ends.
    """
    rows, columns = picture.shape[:2]
    pixels = picture.reshape(rows * columns, 4)
    down, right = (_centers(n, samples) for n in (height, width))
    ends = (columns, rows)
    near: list[Tensor] = []
    parts: list[Tensor] = []
    for axis in (0, 1):
        start, along, across = (places[:, k].reshape(-1, 1, 1, 1, 1) for k in (axis, 2 + axis, 4 + axis))
        at = start + along * right.reshape(1, 1, width, 1, -1) + across * down.reshape(1, height, 1, -1, 1) - 0.5
        at = at.maximum(0.0).minimum(scalar(ends[axis]) - 1.0)
        near.append(at.floor())
        parts.append(at - near[-1])
    x, y = near
    after = [(n + 1.0).minimum(scalar(end) - 1.0) for n, end in zip(near, ends, strict=True)]
    found = _lines(pixels, columns, y, x, after[0], parts[0]) * (1.0 - parts[1]).unsqueeze(-1)
    found = found + _lines(pixels, columns, after[1], x, after[0], parts[0]) * parts[1].unsqueeze(-1)
    return found.mean((3, 4))[..., :3]  # four at a time are as quick as one


def _centers(count: Dim, samples: Tensor) -> Tensor:
    """Where elements are sampled, (count, samples), in elements."""
    return (arange(count).to(dtype="float32") + 0.5).unsqueeze(1) + samples


def _lines(pixels: Tensor, columns: Dim, y: Tensor, x: Tensor, after: Tensor, part: Tensor) -> Tensor:
    """Between two neighbours of a row of pixels."""
    row = y.to(dtype="int32") * scalar(columns).to(dtype="int32")
    one, other = (pixels.take(row + k.to(dtype="int32"), axis=0).to(dtype="float32") for k in (x, after))
    return one + (other - one) * part.unsqueeze(-1)
