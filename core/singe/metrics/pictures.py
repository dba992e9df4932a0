"""Metrics of pictures (batch, channels, height, width), and of the features of pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError
from ..late_dataclass import dataclass
from ._metric import Metric, State, array, paired, ratio


def _pictures(what: str, prediction: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = paired(what, prediction, target)
    if x.ndim != 4:
        raise ShapeError(f"{what}: the pictures are {x.shape}, expected (batch, channels, height, width)")
    return x, y


@dataclass(frozen=True, kw_only=True)
class _OfPictures(Metric):
    """The mean over pictures. data_range: the largest difference of two pixels, 1 for pixels from 0 to 1."""

    data_range: float = 1.0

    def count(self, prediction: Any, target: Any) -> State:
        each = self.each(*_pictures(type(self).__name__, prediction, target))
        return {"sum": np.asarray(each.sum()), "pictures": np.asarray(len(each))}

    def each(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The value of each picture."""
        raise NotImplementedError

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["pictures"])


@dataclass(frozen=True, kw_only=True)
class PSNR(_OfPictures):
    """The ratio of signal to noise in decibels: 10 · log₁₀(data_range² / mean squared error). Infinite if all are equal."""

    label: ClassVar = "PSNR"

    def each(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        error = ((x - y) ** 2).mean((1, 2, 3))
        with np.errstate(divide="ignore"):
            return 10 * np.log10(self.data_range**2 / error)


@dataclass(frozen=True, kw_only=True)
class SSIM(_OfPictures):
    """Structural similarity (Wang et al., 2004): means, variances and covariance in Gaussian windows, 1 if all are equal.

    sigma: the width of the windows, which reach 3.5 · sigma to each side and lie within the picture.
    """

    label: ClassVar = "SSIM"
    sigma: float = 1.5
    k1: float = 0.01
    k2: float = 0.03

    def each(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._parts(x, y)[0]

    @property
    def _reach(self) -> int:
        """How many elements the window has on each side of its middle."""
        return int(3.5 * self.sigma + 0.5)

    def _parts(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The similarity of each picture, and that without the means."""
        reach = self._reach
        if min(x.shape[2:]) <= 2 * reach:
            raise ShapeError(
                f"{type(self).__name__}: pictures of {x.shape[2]} × {x.shape[3]}, expected more than {2 * reach} rows and columns"
            )
        window = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * self.sigma**2))
        window /= window.sum()
        mx, my, xx, yy, xy = (_blurred(z, window) for z in (x, y, x * x, y * y, x * y))
        c1, c2 = (self.k1 * self.data_range) ** 2, (self.k2 * self.data_range) ** 2
        vx, vy, cov = np.maximum(xx - mx**2, 0), np.maximum(yy - my**2, 0), xy - mx * my
        contrast = (2 * cov + c2) / (vx + vy + c2)
        whole = (2 * mx * my + c1) / (mx**2 + my**2 + c1) * contrast
        return whole.mean((1, 2, 3)), contrast.mean((1, 2, 3))


def _blurred(x: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Weighted means over windows within the pictures, along rows and then columns."""
    for axis in (2, 3):
        x = np.lib.stride_tricks.sliding_window_view(x, len(window), axis) @ window
    return x


@dataclass(frozen=True, kw_only=True)
class MSSSIM(SSIM):
    """SSIM at several scales, each half of the one before (Wang et al., 2003): the product of the contrasts, and of the
    similarity at the last one, to the powers `betas`. Negative ones count as 0."""

    label: ClassVar = "MS-SSIM"
    betas: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)

    def each(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        least = (2 * self._reach + 1) << (len(self.betas) - 1)
        if min(x.shape[2:]) < least:
            raise ShapeError(
                f"MSSSIM: pictures of {x.shape[2]} × {x.shape[3]}, expected at least {least} rows and columns for {len(self.betas)} scales"
            )
        total = np.ones(len(x))
        for scale, power in enumerate(self.betas):
            if scale:
                x, y = _halved(x), _halved(y)
            whole, contrast = self._parts(x, y)
            total *= np.maximum(whole if scale == len(self.betas) - 1 else contrast, 0) ** power
        return total


def _halved(x: np.ndarray) -> np.ndarray:
    """The means of squares of 2 × 2 pixels."""
    height, width = x.shape[2] // 2, x.shape[3] // 2
    return x[:, :, : 2 * height, : 2 * width].reshape(*x.shape[:2], height, 2, width, 2).mean((3, 5))


@dataclass(frozen=True, kw_only=True)
class FrechetDistance(Metric):
    """The distance of two sets of features (batch, features), as if both were normally distributed: |m₁ − m₂|² +
    tr(C₁ + C₂ − 2 √(C₁ C₂)). With the features of Inception v3 of generated and of real pictures it is the FID (Heusel
    et al., 2017). The two sets may have different sizes."""

    label: ClassVar = "Fréchet distance"
    best: ClassVar = "least"

    def count(self, prediction: Any, target: Any) -> State:
        found: State = {}
        for name, given in (("generated", prediction), ("real", target)):
            x = np.asarray(array(given), np.float64)
            if x.ndim != 2:
                raise ShapeError(f"FrechetDistance: the features are {x.shape}, expected (batch, features)")
            found |= {f"{name}_count": np.asarray(len(x)), f"{name}_sum": x.sum(0), f"{name}_products": x.T @ x}
        if found["generated_sum"].shape != found["real_sum"].shape:
            raise ShapeError(
                f"FrechetDistance: {len(found['generated_sum'])} and {len(found['real_sum'])} features, expected as many of both"
            )
        return found

    def value(self, state: State) -> float:
        (m1, c1), (m2, c2) = (_moments(state, name) for name in ("generated", "real"))
        if np.isnan(c1).any() or np.isnan(c2).any():
            return float("nan")
        # √(C₁ C₂) has the trace of √(√C₁ C₂ √C₁), which is symmetric.
        values, vectors = np.linalg.eigh(c1)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        both = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ c2 @ root), 0)).sum()
        return float(((m1 - m2) ** 2).sum() + np.trace(c1) + np.trace(c2) - 2 * both)


def _moments(state: State, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the covariance; NaN of fewer than two examples."""
    count = int(state[f"{name}_count"])
    if count < 2:
        return state[f"{name}_sum"], np.full(state[f"{name}_products"].shape, math.nan)
    mean = state[f"{name}_sum"] / count
    return mean, (state[f"{name}_products"] - count * np.outer(mean, mean)) / (count - 1)
