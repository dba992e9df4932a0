"""`singe.array_api` whose default device the variable SINGE_DEVICE names: the module that array-api-tests tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any, Final

import singe
from singe import array_api

DEVICE: Final = os.environ.get("SINGE_DEVICE", "numpy")
CREATION: Final = ("arange", "asarray", "empty", "eye", "from_dlpack", "full", "linspace", "ones", "zeros")
"""The functions that make arrays of nothing, on the default device."""


def _on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def made(*args: Any, device: Any = None, **named: Any) -> Any:
        return function(*args, device=device or DEVICE, **named)

    return made


class Info(type(array_api.__array_namespace_info__())):
    def default_device(self) -> singe.Device:
        return singe.device(DEVICE)


globals().update({name: value for name, value in vars(array_api).items() if not name.startswith("__")})
globals().update({name: _on_device(getattr(array_api, name)) for name in CREATION})
fft = SimpleNamespace(**vars(array_api.fft))
fft.fftfreq, fft.rfftfreq = _on_device(array_api.fft.fftfreq), _on_device(array_api.fft.rfftfreq)
__array_api_version__ = array_api.__array_api_version__
__array_namespace_info__ = Info
