"""The standard's extension for Fourier transforms, which NumPy computes on the host; results keep the precision of x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..dtypes import complex64, complex128, float32, float64
from ..dtypes import dtype as dtype_of
from ..errors import DTypeError, InputError
from ..runtime.devices import device_or_default
from ..shapes import number, show, whole
from ..tensors.argument_errors import check_functions
from ..tensors.nodes.shaping import chosen_axes
from ..tensors.numpy_fallback import elements, on_device, refuse_gradients
from ..tensors.tensor import Tensor
from ._elementwise import named

ALONG_AXIS: Final = {
    "fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft, "irfft": np.fft.irfft, "hfft": np.fft.hfft, "ihfft": np.fft.ihfft,
}  # fmt: skip
"""The transforms along one axis: f(x, n=None, axis=-1, norm="backward")."""
ALONG_AXES: Final = {
    "fftn": np.fft.fftn, "ifftn": np.fft.ifftn, "rfftn": np.fft.rfftn, "irfftn": np.fft.irfftn,
}  # fmt: skip
"""Those along several axes: f(x, s=None, axes=None, norm="backward")."""
OF_REALS: Final = ("rfft", "rfftn", "ihfft")
GIVE_REALS: Final = ("irfft", "irfftn", "hfft")


def _transformed(what: str, function: Callable[..., Any], x: Tensor, **options: Any) -> Tensor:
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"{what}: got {x.dtype}, expected a floating-point dtype; cast it first")
    if what in OF_REALS and x.dtype.kind == "complex":
        raise DTypeError(f"{what}: got {x.dtype}, expected a real dtype")
    refuse_gradients(what, [x])
    wide = x.dtype in (float64, complex128)
    kind = (float32, float64) if what in GIVE_REALS else (complex64, complex128)
    try:
        found = function(elements(x, what), **options)
    except (ValueError, IndexError, TypeError) as e:
        given = "".join(f", {k}={v!r}" for k, v in options.items() if v is not None)
        raise InputError(
            f"{what} of {x.dtype}{show(x.shape)}{given}: {str(e).rstrip('.')}; expected axes of the tensor, with at least one element or a "
            "length of 1 or more for each, and the norm 'backward', 'ortho' or 'forward'"
        ) from None
    return on_device(found, x.device, kind[wide])


def _along_axis(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Tensor:
        return _transformed(name, function, x, n=n, axis=axis, norm=norm)

    return named(name, transform, "The transform {} along an axis, as the standard defines it.")


def _along_axes(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def transform(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Tensor:
        if axes is None and s is not None:  # the last ones
            axes = tuple(range(x.ndim - len(s), x.ndim))
        return _transformed(name, function, x, s=s, axes=axes, norm=norm)

    return named(name, transform, "The transform {} along several axes, as the standard defines it.")


globals().update({name: _along_axis(name, function) for name, function in ALONG_AXIS.items()})
globals().update({name: _along_axes(name, function) for name, function in ALONG_AXES.items()})


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of what fft gives for n samples at a distance of d."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of what rfft gives for n samples at a distance of d."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[..., Any], n: int, d: float, dtype: Any, device: Any) -> Tensor:
    kind = float32 if dtype is None else dtype_of(dtype)
    if not kind.is_float:
        raise InputError(f"fftfreq: got {kind}, expected a real floating-point dtype")
    if whole(n, "fftfreq", "n") < 1 or number(d, "fftfreq", "d") == 0:
        raise InputError(f"fftfreq: got {n} samples at distances {d}, expected at least 1, and a distance other than 0")
    return on_device(function(n, d), device_or_default(device), kind)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The elements with those of frequency 0 moved to the middle."""
    return _shifted("fftshift", x, axes, lambda length: length // 2)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """What undoes fftshift."""
    return _shifted("ifftshift", x, axes, lambda length: -(length // 2))


def _shifted(what: str, x: Tensor, axes: Any, by: Callable[[Any], Any]) -> Tensor:
    which = chosen_axes(axes, x.ndim, what)
    return x.roll([by(x.shape[a]) for a in which], which) if which else x


check_functions(globals())
