"""Windows for spectra: vectors that fall to both ends, as PyTorch makes them.

A periodic window is one of one element more without the last one: it is what a Fourier transform continues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...dtypes import float32
from ...errors import InputError
from ...runtime.device import Device
from ...shapes import whole
from ..argument_errors import check_functions
from ..tensor import Tensor
from .creation import tensor

On: TypeAlias = "str | Device | None"


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = float32, device: On = None) -> Tensor:
    """A triangle."""
    return _window(lambda t: 1 - np.abs(2 * t - 1), window_length, periodic, dtype, device)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = float32, device: On = None) -> Tensor:
    """0.42 − 0.5 · cos 2πt + 0.08 · cos 4πt."""
    return _window(_cosines(0.42, 0.5, 0.08), window_length, periodic, dtype, device)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = float32, device: On = None
) -> Tensor:  # fmt: skip
    """alpha − beta · cos 2πt."""
    return _window(_cosines(alpha, beta), window_length, periodic, dtype, device)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = float32, device: On = None) -> Tensor:
    """(1 − cos 2πt) / 2."""
    return _window(_cosines(0.5, 0.5), window_length, periodic, dtype, device)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = float32, device: On = None
) -> Tensor:  # fmt: skip
    """I₀(beta · √(1 − (2t − 1)²)) / I₀(beta)."""
    return _window(
        lambda t: np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta), window_length, periodic, dtype, device
    )


def _cosines(constant: float, *factors: float) -> Callable[[np.ndarray], np.ndarray]:
    """constant − factors[0] · cos 2πt + factors[1] · cos 4πt − …"""

    def window(t: np.ndarray) -> np.ndarray:
        waves = ((-1) ** k * f * np.cos(2 * math.pi * k * t) for k, f in enumerate(factors, 1))
        return constant + sum(waves, np.zeros_like(t))

    return window


def _window(
    function: Callable[[np.ndarray], np.ndarray], length: Any, periodic: bool, dtype: Any, device: On
) -> Tensor:
    """The function of places from 0 to 1."""
    count = whole(length, "window", "window_length")
    if count < 0:
        raise InputError(f"window: got the length {count}, expected 0 or more")
    last = count if periodic else count - 1
    elements = function(np.arange(count) / last) if count > 1 else np.ones(count)
    return tensor(elements, dtype, device)


check_functions(globals())
