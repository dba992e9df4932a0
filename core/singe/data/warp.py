"""Images sampled at other places: affine and elastic changes, for a whole batch at once.

Where output pixel p reads is linear in a few functions of p: its coordinates for an affine map, smooth bumps for an
elastic one. So the places of all pixels of many images are products of matrices, and a chain of affine maps that ends in
an elastic one reads the images once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from ..errors import InputError
from ..late_dataclass import dataclass
from .draws import Draws
from .steps import Step, span

_PIXELS: Final = 48 * 1024
"""Pixels that are computed at a time: their intermediate values fit into a core's cache."""
_KEPT: Final = 0.999
"""The part of the variance of a smooth field that its few numbers carry."""


class Warp(Step):
    """A step that samples images at other places, linearly between pixels. `fill` is read outside."""

    fill: float

    def apply(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        return warped(images, draws, [self])

    @abstractmethod
    def coefficients(self, draws: Draws, size: tuple[int, int]) -> np.ndarray:
        """For each image how x and y of the places depend on functions of the pixels (images, 2, functions). The first
        three functions are x and y, from the centre of the image, and 1."""

    def places(self, coefficients: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """Where the pixels read, from the centre of the image (images, 2, pixels)."""
        return (coefficients[:, :, :3].reshape(-1, 3) @ _plane(size)).reshape(len(coefficients), 2, -1)


@dataclass(frozen=True)
class RandomAffine(Warp):
    """Rotate, scale, shear and shift about the centre, as torchvision's class of this name.

    degrees: the range of angles, clockwise, or one number for (−n, n). translate: the most that x and y shift, as parts of
    the width and the height. scale: the range of factors. shear: the range of angles in x, or four numbers for x and y.
    """

    degrees: float | Sequence[float] = 0.0
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: float | Sequence[float] | None = None
    fill: float = 0.0

    def __post_init__(self) -> None:
        span("degrees", self.degrees)
        if self.translate is not None and (len(self.translate) != 2 or not all(0 <= t <= 1 for t in self.translate)):
            raise InputError(f"RandomAffine: got translate={self.translate}, expected two parts from 0 to 1")
        if self.scale is not None and (len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1]):
            raise InputError(f"RandomAffine: got scale={self.scale}, expected a range above 0")
        self._shears()

    def _shears(self) -> tuple[tuple[float, float], tuple[float, float]]:
        if isinstance(self.shear, Sequence) and len(self.shear) == 4:
            return span("shear", self.shear[:2]), span("shear", self.shear[2:])
        return span("shear", 0.0 if self.shear is None else self.shear), (0.0, 0.0)

    def coefficients(self, draws: Draws, size: tuple[int, int]) -> np.ndarray:
        height, width = size
        right, down = self.translate or (0.0, 0.0)
        ranges = (
            span("degrees", self.degrees), (-right * width, right * width), (-down * height, down * height),
            tuple(self.scale or (1.0, 1.0)), *self._shears(),
        )  # fmt: skip
        low, high = (np.array(ends, np.float32) for ends in zip(*ranges, strict=True))
        return inverse_affine(*(low + draws.uniform(shape=(len(ranges),)) * (high - low)).T)


@dataclass(frozen=True)
class ElasticTransform(Warp):
    """Displace pixels by a smooth random field, as torchvision's class of this name: by noise from −1 to 1, blurred with
    the deviation `sigma`, times alpha / 2. The field has the same distribution, but is drawn by few numbers."""

    alpha: float = 50.0
    sigma: float = 5.0
    fill: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.alpha) and 0 < self.sigma < 1e4):
            raise InputError(f"ElasticTransform: got alpha={self.alpha} and sigma={self.sigma}, expected sigma above 0")

    def coefficients(self, draws: Draws, size: tuple[int, int]) -> np.ndarray:
        down, right = (_bumps(length, self.sigma) for length in size)
        field = draws.normal((2, len(down) * len(right))) * np.float32(self.alpha / 2)
        still = np.broadcast_to(np.eye(2, 3, dtype=np.float32), (len(draws), 2, 3))
        return np.concatenate([still, field], axis=2)

    def places(self, coefficients: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        down, right = (_bumps(length, self.sigma) for length in size)
        along = coefficients[:, :, 3:].reshape(-1, len(right)) @ right
        field = down.T @ along.reshape(-1, len(down), size[1])
        return super().places(coefficients, size) + field.reshape(len(coefficients), 2, -1)


def inverse_affine(
    angle: np.ndarray, right: np.ndarray, down: np.ndarray, scale: np.ndarray, shear_x: np.ndarray, shear_y: np.ndarray
) -> np.ndarray:
    """For affine maps of images the places that pixels read (images, 2, 3). Angles are in degrees, shifts in pixels."""
    turn, sx, sy = (np.deg2rad(v) for v in (angle, shear_x, shear_y))
    a, b = np.cos(turn - sy) / np.cos(sy), -np.cos(turn - sy) * np.tan(sx) / np.cos(sy) - np.sin(turn)
    c, d = np.sin(turn - sy) / np.cos(sy), -np.sin(turn - sy) * np.tan(sx) / np.cos(sy) + np.cos(turn)
    linear = np.stack([d, -b, -c, a], axis=-1).reshape(-1, 2, 2) / scale[:, None, None]
    shift = -linear @ np.stack([right, down], axis=-1)[:, :, None]
    return np.concatenate([linear, shift], axis=2).astype(np.float32)


def warped(images: np.ndarray, draws: Draws, chain: Sequence[Warp]) -> np.ndarray:
    """Images after a chain of warps, all but the last of which are affine."""
    size = images.shape[-2:]
    *maps, places = [step.coefficients(draws, size) for step in chain]
    for outer in reversed(maps):
        places = outer[:, :, :2] @ places
        places[:, :, 2] += outer[:, :, 2]
    return sampled(images, places, chain[-1])


def sampled(images: np.ndarray, coefficients: np.ndarray, warp: Warp) -> np.ndarray:
    """Images (n, …, height, width) at the places of a warp's coefficients, linearly between four pixels."""
    height, width = images.shape[-2:]
    pixels, wide = height * width, width + 3
    count, planes = len(images), int(np.prod(images.shape[1:-2], dtype=np.int64))
    given = images.reshape(count, planes, height, width)
    made = np.empty((count, planes, pixels), images.dtype)
    coefficients = coefficients.copy()
    coefficients[:, :, 2] += np.array([(width - 1) / 2 + 1, (height - 1) / 2 + 1], np.float32)
    step = max(1, _PIXELS // max(pixels, 1))
    # A pixel of `fill` above and left, and two below and right: a place at the far edge reads one more.
    frame = np.full((min(step, count), height + 3, wide), warp.fill, np.float32)
    begins = (np.arange(len(frame)) * frame[0].size)[:, None]
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        n = part.stop - part.start
        places = warp.places(coefficients[part], (height, width))
        x, y = places[:, 0], places[:, 1]
        np.clip(x, 0, width + 1, out=x)
        np.clip(y, 0, height + 1, out=y)
        whole = places.astype(np.int32)
        places -= whole
        top = whole[:, 1].astype(np.intp)
        top *= wide
        top += whole[:, 0]
        top += begins[:n]
        for plane in range(planes):
            frame[:n, 1:-2, 1:-2] = given[part, plane]
            source = frame.reshape(-1)
            upper = _between(source, top, x)
            upper += (_between(source, top + wide, x) - upper) * y
            made[part, plane] = upper if made.dtype.kind == "f" else np.rint(upper, out=upper)
    return made.reshape(images.shape)


def _between(source: np.ndarray, at: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Between the values at these indices and the next ones."""
    left = source.take(at, mode="clip")
    right = source.take(at + 1, mode="clip")
    right -= left
    right *= part
    left += right
    return left


@lru_cache(8)
def _plane(size: tuple[int, int]) -> np.ndarray:
    height, width = size
    y, x = np.mgrid[:height, :width].astype(np.float32)
    return np.stack([x - (width - 1) / 2, y - (height - 1) / 2, np.ones_like(x)]).reshape(3, -1)


@lru_cache(16)
def _bumps(length: int, sigma: float) -> np.ndarray:
    """Functions along an axis (bumps, length). The sum of products of those of both axes, each product times a normal
    number, is uniform noise from −1 to 1 that was blurred: they are its directions, by their variances, largest first."""
    reach = int(np.ceil(4 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    blur = np.zeros((length, length + 2 * reach))
    for i in range(length):
        blur[i, i : i + len(kernel)] = kernel
    variance, direction = np.linalg.eigh(blur @ blur.T)
    variance, direction = np.maximum(variance[::-1], 0), direction[:, ::-1]
    first = np.argmax(np.abs(direction) > 0.1 * np.abs(direction).max(0), axis=0)
    direction = direction * np.sign(direction[first, range(length)])  # which LAPACK leaves open
    kept = 1 + int(np.searchsorted(np.cumsum(variance), _KEPT * variance.sum()))
    third = 3**-0.25  # of the variance of the noise, half for each axis
    return (direction[:, :kept] * np.sqrt(variance[:kept]) * third).T.astype(np.float32)
