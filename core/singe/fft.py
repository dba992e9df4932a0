"""Fourier transforms under the names of torch.fft, with PyTorch's parameters. NumPy computes them on the host; results keep
the precision of x, and whole numbers are transformed as float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .array_api import fft as _standard
from .array_api._elementwise import named as _named
from .array_api.fft import fftfreq as _fftfreq
from .array_api.fft import rfftfreq as _rfftfreq
from .dtypes import COMPLEX, float32
from .tensors.argument_errors import check_functions as _check_functions
from .tensors.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _floats(x: Tensor) -> Tensor:
    return x if x.dtype.is_float or x.dtype in COMPLEX else x.cast(float32)


def _along_axis(name: str) -> Callable[..., Tensor]:
    function = getattr(_standard, name)

    def transform(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return function(_floats(x), n=n, axis=dim, norm=norm)

    return _named(name, transform, "The transform {} along an axis.")


def _along_axes(name: str, dim: Sequence[int] | None = None) -> Callable[..., Tensor]:
    function = getattr(_standard, f"{name.removesuffix('2').removesuffix('n')}n")

    def transform(
        x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = dim, norm: str | None = None
    ) -> Tensor:
        return function(_floats(x), s=s, axes=dim, norm=norm)

    return _named(name, transform, "The transform {} along several axes.")


fft, ifft, rfft, irfft = (_along_axis(name) for name in ("fft", "ifft", "rfft", "irfft"))
hfft, ihfft = (_along_axis(name) for name in ("hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = (_along_axes(name) for name in ("fftn", "ifftn", "rfftn", "irfftn"))
fft2, ifft2, rfft2, irfft2 = (_along_axes(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2"))


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft's results, for n samples at distances d."""
    return _fftfreq(n, d=d, dtype=dtype, device=device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft's results, for n samples at distances d."""
    return _rfftfreq(n, d=d, dtype=dtype, device=device)


def fftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The elements with those of frequency 0 moved to the middle."""
    return _standard.fftshift(x, axes=dim)


def ifftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """What undoes fftshift."""
    return _standard.ifftshift(x, axes=dim)


def __dir__() -> list[str]:
    return list(__all__)


_check_functions(globals())
