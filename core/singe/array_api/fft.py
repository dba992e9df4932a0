"""The standard's extension for Fourier transforms, which NumPy computes on the host; results keep the precision of x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import dtype as dtype_of
from ..dtypes import float32
from ..errors import DTypeError, InputError
from ..frontend.host import elements, on_device
from ..frontend.tensor import Tensor
from ..runtime.devices import DEFAULT
from ..runtime.devices import device as find_device
from ._types import complex_of


def _transformed(what: str, function: Callable[..., Any], x: Tensor, real: bool, **options: Any) -> Tensor:
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"{what}: got {x.dtype}, expected a floating-point dtype; cast it first")
    if what in ("rfft", "rfftn", "ihfft") and x.dtype.kind == "complex":
        raise DTypeError(f"{what}: got {x.dtype}, expected a real dtype")
    wide = complex_of(x.dtype)
    kind = dtype_of("float64" if wide.name == "complex128" else "float32") if real else wide
    return on_device(function(elements(x, what), **options), x.device, kind)


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("fft", np.fft.fft, x, False, n=n, axis=axis, norm=norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("ifft", np.fft.ifft, x, False, n=n, axis=axis, norm=norm)


def fftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Tensor:
    return _transformed("fftn", np.fft.fftn, x, False, s=s, axes=_axes(x, s, axes), norm=norm)


def ifftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Tensor:
    return _transformed("ifftn", np.fft.ifftn, x, False, s=s, axes=_axes(x, s, axes), norm=norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("rfft", np.fft.rfft, x, False, n=n, axis=axis, norm=norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("irfft", np.fft.irfft, x, True, n=n, axis=axis, norm=norm)


def rfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Tensor:
    return _transformed("rfftn", np.fft.rfftn, x, False, s=s, axes=_axes(x, s, axes), norm=norm)


def irfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Tensor:
    return _transformed("irfftn", np.fft.irfftn, x, True, s=s, axes=_axes(x, s, axes), norm=norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("hfft", np.fft.hfft, x, True, n=n, axis=axis, norm=norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
    return _transformed("ihfft", np.fft.ihfft, x, False, n=n, axis=axis, norm=norm)


def _axes(x: Tensor, s: Any, axes: Any) -> Any:
    """The axes that are transformed: the last ones, if only lengths are given."""
    return tuple(range(x.ndim - len(s), x.ndim)) if axes is None and s is not None else axes


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[..., Any], n: int, d: float, dtype: Any, device: Any) -> Tensor:
    kind = float32 if dtype is None else dtype_of(dtype)
    if not kind.is_float:
        raise InputError(f"fftfreq: got {kind}, expected a real floating-point dtype")
    return on_device(function(n, d), find_device(device or DEFAULT), kind)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The elements with those of frequency 0 moved to the middle."""
    named = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    return x.roll([x.shape[a] // 2 for a in named], list(named)) if x.ndim else x


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """What undoes fftshift."""
    named = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    return x.roll([-(x.shape[a] // 2) for a in named], list(named)) if x.ndim else x
