"""Layers that change their inputs at random in training, and do nothing else; `_random.py` says where keys come from."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..errors import InputError
from ..ops import ROWS
from ..runtime.random_keys import Rng
from ..shapes import number
from ..tensors.calls import apply_row
from ..tensors.methods.neural import SELU_ALPHA, SELU_SCALE
from ..tensors.tensor import Tensor
from ._random import Random
from ._space.conv import check_axes


class _Dropout(Random):
    """Drops elements, or whole channels of an input with `spaces` axes behind them, with the probability p."""

    p: float
    _spaces: ClassVar[int | None] = None

    def __init_subclass__(cls, spaces: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._spaces = cls._spaces if spaces is None else spaces

    def __init__(self, p: float = 0.5, inplace: bool = False, *, rng: Rng = None) -> None:
        if not 0 <= number(p, type(self).__name__, "p") <= 1:
            raise InputError(f"{type(self).__name__}: p is {p}, expected a probability")
        self.p = p
        self._seed(rng)

    def forward(self, x: Tensor) -> Tensor:
        return self._dropped(x, self._kept(x)) if self.training and self.p > 0 else x

    def _kept(self, x: Tensor) -> Tensor:
        """True for what stays."""
        if self._spaces is None:
            return self._drawn(x, x.shape) >= self.p
        check_axes(x, self._spaces, self)
        return self._drawn(x, x.shape[: -self._spaces] + (1,) * self._spaces) >= self.p

    def _dropped(self, x: Tensor, kept: Tensor) -> Tensor:
        return x * kept.cast(x.dtype) * (1 / (1 - self.p) if self.p < 1 else 0.0)


class Dropout(_Dropout):
    """Zeroes elements with the probability p, and scales the others by 1 / (1 − p)."""


class Dropout1d(_Dropout, spaces=1):
    """Zeroes whole channels of (batch, channels, length)."""


class Dropout2d(_Dropout, spaces=2):
    """Zeroes whole channels of (batch, channels, height, width)."""


class Dropout3d(_Dropout, spaces=3):
    """Zeroes whole channels of (batch, channels, depth, height, width)."""


class AlphaDropout(_Dropout):
    """Sets elements to SELU's least value, and moves all so that mean and variance stay."""

    def _dropped(self, x: Tensor, kept: Tensor) -> Tensor:
        least = -SELU_ALPHA * SELU_SCALE
        scale = 1 / math.sqrt((1 - self.p) * (1 + self.p * least**2)) if self.p < 1 else 0.0
        shift = -scale * least * self.p
        stays = kept.cast(x.dtype)
        return x * stays * scale + (1 - stays) * (least * scale) + shift


class FeatureAlphaDropout(AlphaDropout, spaces=3):
    """AlphaDropout of whole channels of (batch, channels, depth, height, width)."""


class RReLU(Random):
    """x if x ≥ 0, otherwise x times a number from lower to upper: drawn in training, the middle otherwise."""

    lower: float
    upper: float

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False, *, rng: Rng = None) -> None:
        self.lower, self.upper = lower, upper
        self._seed(rng)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x.leaky_relu(alpha=(self.lower + self.upper) / 2)
        slope = self.lower + (self.upper - self.lower) * self._drawn(x, x.shape)
        return x.relu() - (-x).relu() * slope.cast(x.dtype)


class GaussianNoise(Random):
    """x plus normally distributed numbers of mean 0 and standard deviation `std`."""

    std: float

    def __init__(self, std: float = 0.1, *, rng: Rng = None) -> None:
        if std < 0:
            raise InputError(f"GaussianNoise: std is {std}, expected no negative number")
        self.std = std
        self._seed(rng)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.std == 0:
            return x
        return x + (apply_row(ROWS["random_normal"], (self._new_key(x),), shape=x.shape) * self.std).cast(x.dtype)
