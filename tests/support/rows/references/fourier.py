"""Fourier transforms by NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np


def dft(x: np.ndarray, axis: int = -2, length: Any = None, inverse: bool = False, onesided: bool = False) -> np.ndarray:
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0] + 0j
    axis %= x.ndim
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None]
    y = np.fft.ifft(z, length, axis) if inverse else np.fft.fft(z, length, axis)
    y = np.take(y, np.arange(y.shape[axis] // 2 + 1), axis) if onesided else y
    return np.stack([np.real(y), np.imag(y)], -1)


def stft(x: np.ndarray, window: Any = None, *, length: int, step: int, onesided: bool = True) -> np.ndarray:
    weights = np.zeros(length)
    given = np.ones(length) if window is None else window[:length]
    weights[: len(given)] = given
    parts = [x[:, at : at + length] * weights[:, None] for at in range(0, x.shape[1] - length + 1, step)]
    return np.stack([dft(part, 1, onesided=onesided) for part in parts], 1)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "dft": dft,
    "stft": stft,
}
"""By the names of rows."""
