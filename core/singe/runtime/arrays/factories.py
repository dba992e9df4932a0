"""The factories of the devices of array libraries, which need none of these. A library is imported by its own file when its device is opened."""

from __future__ import annotations

from typing import Final

from ...program.program import HOST
from ..backend import Backend
from ..registry import BackendFactory


def _torch(choice: str = "") -> Backend:
    from .torch import open_device  # noqa: PLC0415 (imports the library)

    return open_device(choice)


def _jax(choice: str = "") -> Backend:
    from .jax import open_device  # noqa: PLC0415 (imports the library)

    return open_device(choice)


def _cupy(choice: str = "") -> Backend:
    from .cupy import open_device  # noqa: PLC0415 (imports the library)

    return open_device(choice)


TORCH: Final = BackendFactory(_torch, HOST, choices="a device of PyTorch: cpu, cuda:0, mps or xpu")
JAX: Final = BackendFactory(_jax, HOST, choices="the number of one of JAX's devices: 0")
CUPY: Final = BackendFactory(_cupy, HOST, choices="the number of a GPU: 0")
