"""The devices of JAX: its arrays as arrays of rows. The only file that imports jax.

While Singe calls JAX, and only then, types of 64 bits are on, and products of float32 have the digits of float32, for which JAX takes
TF32 on NVIDIA's GPUs: the caller's own settings stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np

from ...dtypes import COMPLEX, NUMBERS, DType, bool_, dtype, int64, outward, own
from ...errors import DeviceError
from ...ir.arrays.adapter import Array, ArrayAdapter, Places
from .backend import ArrayBackend

AT: Final = {"": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
"""Words ↦ the methods of JAX's `at` that combine with them."""


@contextmanager
def _exact() -> Iterator[None]:
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


class JaxAdapter(ArrayAdapter):
    """Arrays of one device, which never change."""

    scope = staticmethod(_exact)
    unfit = (ValueError, IndexError, TypeError, NotImplementedError)

    def __init__(self, device: Any) -> None:
        self.device = device
        super().__init__(jnp)

    @property
    def library(self) -> str:
        return "jax"

    def _types(self) -> dict[Any, DType]:
        return {np.dtype(getattr(jnp, d.name)): d for d in (bool_, *NUMBERS, *COMPLEX)}

    def _of(self, kind: DType) -> Any:
        return getattr(jnp, "bool_" if kind is bool_ else kind.name)

    def asarray(self, values: Any, kind: DType | None = None) -> Array:
        if isinstance(values, np.ndarray):
            kind, values = kind or dtype(values.dtype), outward(values)
        return jnp.array(values, None if kind is None else self._of(kind), device=self.device)

    def from_dlpack(self, x: Any) -> Array:
        return jax.device_put(jnp.from_dlpack(x), self.device)

    def arange(self, count: int, kind: DType = int64) -> Array:
        return jnp.arange(count, dtype=self._of(kind), device=self.device)

    def copy(self, x: Array) -> Array:
        return x

    def host(self, x: Array) -> np.ndarray:
        return own(np.asarray(x))

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(function)

    def bytes_held(self) -> tuple[int | None, int | None, int | None]:
        told = self.device.memory_stats() or {}  # on the CPU JAX has none
        return told.get("bytes_in_use"), told.get("bytes_reserved"), told.get("peak_bytes_in_use")

    def wait(self, arrays: Sequence[Array]) -> None:
        jax.block_until_ready(list(arrays))

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        axis %= x.ndim
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        # Of an empty array JAX's own gives another shape.
        return jnp.take(x, indices, axis=axis) if x.size else jnp.zeros(shape, x.dtype)

    def at(self, x: Array, places: Places) -> Array:
        return x[tuple(places)]

    def put(self, x: Array, places: Places, part: Array, word: str = "", over: bool = False) -> Array:
        if word not in AT:
            return super().put(x, places, part, word)
        return getattr(x.at[tuple(places)], AT[word])(part) if 0 not in part.shape else x

    def _words(self) -> dict[str, Callable[..., Any]]:
        def bits(kind: str) -> Callable[[Array], Array]:
            return lambda a: jax.lax.bitcast_convert_type(a, getattr(jnp, f"{kind}{8 * a.dtype.itemsize}"))

        return {**super()._words(), "bits": bits("int"), "of_bits": bits("float")}


def open_device(choice: str = "") -> ArrayBackend:
    """JAX's device of this number, or its first."""
    there = jax.devices()
    if choice and not (choice.isdecimal() and int(choice) < len(there)):
        raise DeviceError(f"no device 'jax:{choice}': JAX has {len(there)}, numbered from 0")
    device = there[int(choice or 0)]
    facts = {"jax": jax.__version__, "adapter": f"{device.platform} {device.id}"}
    return ArrayBackend(f"jax:{choice}" if choice else "jax", JaxAdapter(device), facts, device.platform == "cpu")
