"""Steps of an Augment: flips, crops, holes, and normalised pixels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import DTypeError, InputError, ShapeError
from ..late_dataclass import dataclass
from .draws import Draws

_ATTEMPTS: Final = 10
"""How many rectangles RandomErasing tries before it leaves an image as it is."""


class Step(ABC):
    """A change of a batch of images. `apply` is what differs; it leaves its argument as it is."""

    @abstractmethod
    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        """The images of a batch, changed by random numbers of `draws`."""
        ...

    def __call__(self, images: np.ndarray, seed: int | None = None) -> np.ndarray:
        """The images of a batch, changed by the random numbers of a seed, by default one of the sequence that `sg.manual_seed`
        begins."""
        return self.apply(checked(images), Draws(seed, np.arange(len(images))))


@dataclass(frozen=True)
class RandomHorizontalFlip(Step):
    """Mirror left and right with the probability p."""

    p: float = 0.5

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        return _flipped(images, draws.uniform() < self.p, -1)


@dataclass(frozen=True)
class RandomVerticalFlip(Step):
    """Mirror top and bottom with the probability p."""

    p: float = 0.5

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        return _flipped(images, draws.uniform() < self.p, -2)


@dataclass(frozen=True)
class RandomCrop(Step):
    """A part of size (height, width), or one number for both, at a random place, after padding by `fill` on each side:
    one number, or (left and right, top and bottom), or (left, top, right, bottom)."""

    size: int | Sequence[int]
    padding: int | Sequence[int] = 0
    fill: float = 0.0

    def __post_init__(self) -> None:
        if min(_pair(self.size)) < 1 or min(_sides(self.padding)) < 0:
            raise InputError(f"RandomCrop: got size={self.size} and padding={self.padding}, expected a size from 1")

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        height, width = _pair(self.size)
        left, top, right, bottom = _sides(self.padding)
        sides = [(0, 0)] * (images.ndim - 2) + [(top, bottom), (left, right)]
        padded = np.pad(images, sides, constant_values=self.fill) if self.padding else images
        down, along = padded.shape[-2] - height, padded.shape[-1] - width
        if down < 0 or along < 0:
            raise ShapeError(
                f"RandomCrop: {height} × {width} of images that are {padded.shape[-2]} × {padded.shape[-1]} with padding"
                "; expected no more: give a smaller size, or more padding"
            )
        parts = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(-2, -1))  # pyright: ignore[reportCallIssue, reportArgumentType]
        parts = np.moveaxis(parts, (-4, -3), (1, 2))
        return np.ascontiguousarray(
            parts[np.arange(len(images)), draws.integers(0, down + 1), draws.integers(0, along + 1)]
        )


@dataclass(frozen=True)
class RandomErasing(Step):
    """Fill a random rectangle with the probability p: scale, the range of its part of the image; ratio, the range of its
    proportions (log-uniform). Cutout is RandomErasing(1, (0.25, 0.25), (1, 1))."""

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float = 0.0

    def __post_init__(self) -> None:
        span("scale", self.scale)
        if span("ratio", self.ratio)[0] <= 0 or self.scale[0] < 0 or self.scale[1] > 1:
            raise InputError(f"RandomErasing: got scale={self.scale} and ratio={self.ratio}, expected 0 to 1, above 0")

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        height, width = images.shape[-2:]
        erased = draws.uniform() < self.p
        tries = (_ATTEMPTS,)
        area = draws.uniform(*self.scale, shape=tries) * np.float32(height * width)
        ratio = np.exp(draws.uniform(np.log(self.ratio[0]), np.log(self.ratio[1]), shape=tries))
        tall, wide = np.rint(np.sqrt(area * ratio)), np.rint(np.sqrt(area / ratio))
        fits = (tall < height) & (wide < width)
        chosen = np.arange(len(images)), np.argmax(fits, axis=1)
        tall, wide = tall[chosen], wide[chosen]
        top = np.floor(draws.uniform() * (height - tall + 1))
        left = np.floor(draws.uniform() * (width - wide + 1))
        rows = _within(height, top, tall) & (erased & fits.any(axis=1))[:, None]
        hole = rows[:, :, None] & _within(width, left, wide)[:, None, :]
        hole = hole.reshape(len(images), *(1,) * (images.ndim - 3), height, width)
        return np.where(hole, np.array(self.value, images.dtype), images)


@dataclass(frozen=True)
class Normalize(Step):
    """(x − mean) / std in float32; mean and std are in the units of the pixels, one number, or one for each channel."""

    mean: float | Sequence[float]
    std: float | Sequence[float]

    def __post_init__(self) -> None:
        if not np.all(self.std):
            raise InputError(f"Normalize: got std={self.std}, expected no 0")

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        mean, std = (np.asarray(v, np.float32) for v in (self.mean, self.std))
        if max(mean.size, std.size) > 1 and (images.ndim < 4 or {mean.size, std.size} - {1, images.shape[-3]}):
            raise ShapeError(
                f"Normalize: {max(mean.size, std.size)} numbers for images of shape {images.shape}; expected one number, or one for each channel"
            )
        if mean.ndim or std.ndim:
            mean, std = (np.broadcast_to(v, (max(mean.size, std.size),))[:, None, None] for v in (mean, std))
        return (images.astype(np.float32) - mean) / std


def span(name: str, argument: float | Sequence[float]) -> tuple[float, float]:
    """A range from two numbers, or from one number n as (−n, n)."""
    ends = (-argument, argument) if isinstance(argument, (int, float)) else argument
    low, high = ends if isinstance(ends, Sequence) and len(ends) == 2 else (1, 0)
    if not -np.inf < low <= high < np.inf:
        raise InputError(f"got {name}={argument}, expected a number, or a range (least, most)")
    return float(low), float(high)


def checked(images: Any) -> np.ndarray:
    if not isinstance(images, np.ndarray) or images.ndim < 3:
        shape = getattr(images, "shape", type(images).__name__)
        raise ShapeError(f"got {shape}, expected a batch of images: an array (images, channels, height, width)")
    if images.dtype.kind not in "uif":
        raise DTypeError(f"got images of {images.dtype}, expected integers or floats")
    return images


def _flipped(images: np.ndarray, chosen: np.ndarray, axis: int) -> np.ndarray:
    return np.where(chosen.reshape(-1, *(1,) * (images.ndim - 1)), np.flip(images, axis), images)


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _sides(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    sides = [padding] * 4 if isinstance(padding, int) else [*padding, *padding][:4] if len(padding) in (2, 4) else []
    if not sides:
        raise InputError(f"RandomCrop: got padding={padding}, expected 1, 2 or 4 numbers")
    left, top, right, bottom = sides
    return left, top, right, bottom


def _within(length: int, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """For each image which places are in its stretch (images, length)."""
    at = np.arange(length)
    return (at >= start[:, None]) & (at < (start + count)[:, None])
