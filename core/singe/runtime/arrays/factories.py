"""The factories of the devices of array libraries, which need none of these. A library is imported by its own file when its device is opened."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from ...program.program import HOST
from ..backend import Backend
from ..registry import BackendFactory


def _factory(library: str, choices: str) -> BackendFactory:
    def make(choice: str = "") -> Backend:
        return import_module(f".{library}", __package__).open_device(choice)

    return BackendFactory(make, HOST, choices=choices, library=library)


TORCH: Final = _factory("torch", "a device of PyTorch: cpu, cuda:0, mps or xpu")
JAX: Final = _factory("jax", "the number of one of JAX's devices: 0")
CUPY: Final = _factory("cupy", "the number of a GPU: 0")
