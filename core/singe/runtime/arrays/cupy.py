"""The devices of CuPy: its arrays as arrays of rows. The only file that imports cupy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import cupy  # pyright: ignore[reportMissingImports]
import numpy as np

from ...dtypes import COMPLEX, INTS, DType, bool_, float16, float32, float64
from ...errors import DeviceError
from ...ir.arrays.adapter import Array, ArrayAdapter, Places
from .backend import ArrayBackend

TYPES: Final = (bool_, *INTS, float16, float32, float64, *COMPLEX)


class CupyAdapter(ArrayAdapter):
    """Arrays of one GPU."""

    concat, permute_dims = staticmethod(cupy.concatenate), staticmethod(cupy.transpose)
    bitwise_invert, bitwise_left_shift = staticmethod(cupy.invert), staticmethod(cupy.left_shift)
    bitwise_right_shift = staticmethod(cupy.right_shift)

    def __init__(self, number: int, overwrites: bool = False) -> None:
        self.number, self.overwrites = number, overwrites
        super().__init__(cupy)
        self.exhausted = (MemoryError, cupy.cuda.memory.OutOfMemoryError)
        self.in_place = self if overwrites else CupyAdapter(number, overwrites=True)

    def scope(self) -> Any:
        return cupy.cuda.Device(self.number)

    def _types(self) -> dict[Any, DType]:
        return {d.numpy: d for d in TYPES}

    def _of(self, kind: DType) -> Any:
        return kind.numpy

    def astype(self, x: Array, to: Any) -> Array:
        return x.astype(to)

    def copy(self, x: Array) -> Array:
        return x.copy()

    # Numbers come by NumPy, and not by cupy.full: CuPy fills with 0.0 for -0.0.

    def asarray(self, values: Any, kind: DType | None = None) -> Array:
        to = None if kind is None else kind.numpy
        return cupy.asarray(values if isinstance(values, cupy.ndarray) else np.asarray(values, to), to)

    def full(self, shape: Sequence[int], value: Any, kind: DType) -> Array:
        out = cupy.empty(tuple(shape), kind.numpy)
        out[...] = self.asarray(value, kind)
        return out

    def host(self, x: Array) -> np.ndarray:
        return cupy.asnumpy(x)

    def argsort(self, x: Array, axis: int = -1, stable: bool = True) -> Array:
        return cupy.argsort(x, axis=axis, kind="stable")

    def cumulative_sum(self, x: Array, axis: int, dtype: Any = None) -> Array:
        return cupy.cumsum(x, axis=axis, dtype=dtype)

    def cumulative_prod(self, x: Array, axis: int, dtype: Any = None) -> Array:
        return cupy.cumprod(x, axis=axis, dtype=dtype)

    def bytes_held(self) -> tuple[int | None, int | None, int | None]:
        with self.scope():
            pool = cupy.get_default_memory_pool()
            return pool.used_bytes(), pool.total_bytes(), None

    def clean(self) -> None:
        with self.scope():
            cupy.get_default_memory_pool().free_all_blocks()

    def _words(self) -> dict[str, Callable[..., Any]]:
        words = super()._words()
        whole = words["rem"]
        # Of floats CuPy's remainder is computed by a quotient, which is NaN for an infinite divisor.
        return {**words, "rem": lambda a, b: cupy.fmod(a, b) if a.dtype.kind == "f" else whole(a, b)}

    def wait(self, arrays: Sequence[Array]) -> None:
        cupy.cuda.Device(self.number).synchronize()

    def at(self, x: Array, places: Places) -> Array:
        return x[tuple(places)].copy()

    def put(self, x: Array, places: Places, part: Array, word: str = "", over: bool = False) -> Array:
        if word or 0 in part.shape:
            return super().put(x, places, part, word)
        out = x if over or self.overwrites else x.copy()
        out[tuple(places)] = part
        return out


def open_device(choice: str = "") -> ArrayBackend:
    """The GPU of this number, or the first."""
    count = cupy.cuda.runtime.getDeviceCount()
    if not (choice or "0").isdecimal() or int(choice or 0) >= count:
        raise DeviceError(f"no device 'cupy:{choice}': CUDA has {count} GPUs here, numbered from 0")
    number = int(choice or 0)
    facts = {"cupy": cupy.__version__, "adapter": cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()}
    return ArrayBackend(f"cupy:{number}", CupyAdapter(number), facts, on_host=False)
