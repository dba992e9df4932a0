"""The backend "numpy": ArrayExecutable over NumPy's arrays, with BLAS where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.array_target import ARRAYS
from ..compiler.target import Target
from ..dtypes import DType, dtype, outward
from ..ir.arrays.numpy import NUMPY_ARRAYS
from ..program.program import HOST, ProgramData
from .arrays.executable import ArrayExecutable
from .backend import HostArray


class NumpyBackend:
    """See the module's docstring."""

    name = "numpy"
    target_name = HOST
    preference = 10
    cpu = True
    target: Target = ARRAYS
    renews = True
    reads_now = True

    def upload(self, array: np.ndarray) -> HostArray:
        return HostArray(array, dtype(array.dtype))

    def download(self, array: HostArray) -> np.ndarray:
        return np.array(array.data)

    def export(self, array: HostArray) -> np.ndarray:
        return array.data if array.data.flags.writeable else array.data.copy()  # NumPy exports no other

    def adopt(self, array: Any) -> HostArray:
        return self.upload(np.from_dlpack(array))

    def prepare(self, program: ProgramData) -> NumpyExecutable:
        return NumpyExecutable(program, self.name, NUMPY_ARRAYS, _as_it_is)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def describe(self) -> Mapping[str, Any]:
        return {"numpy": np.__version__}

    def dispose(self) -> None:
        """There is nothing to free."""


class NumpyExecutable(ArrayExecutable):
    """A Program that takes NumPy's arrays directly. Its weights are views of its block."""

    made = HostArray

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[HostArray] = ()) -> list[np.ndarray]:
        return [outward(x) for x in self._run(inputs, states)[0]]


def _as_it_is(array: np.ndarray, kind: DType) -> np.ndarray:
    return array
