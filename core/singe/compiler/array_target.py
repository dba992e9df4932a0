"""The Target of backends that call ops with arrays, one by one. `ARRAYS` is that of NumPy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..dtypes import DType
from ..ir.arrays.adapter import ArrayAdapter
from ..ir.arrays.numpy import NUMPY_ARRAYS
from ..ir.kernel import Kernel, Routine
from ..program.program import HOST, Variant
from ..shapes import Shape
from .target import Execution, Printed, Target


class ArrayTarget:
    """The Target of a backend that calls ops with arrays: it prints nothing, and all steps of its Programs are on the host. arrays: the
    adapter of its array library."""

    name: str = HOST
    max_ports: int = 0
    integers: bool = True
    counted: int = 0
    networks: bool = False
    repeated: int = 0
    confined = "its steps are ops of Singe's own rows"

    def __init__(self, arrays: ArrayAdapter = NUMPY_ARRAYS) -> None:
        self.arrays: ArrayAdapter = arrays
        self.kept_as: str | None = "" if arrays is NUMPY_ARRAYS else None
        self.dtypes: Collection[DType] = arrays.dtypes
        self.execution: Execution = Execution(
            fuses=False, views=False, allocates=True, narrow=False, falls_back=not arrays.complete
        )

    def element_size(self, dtype: DType) -> int:
        return dtype.size

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        return None

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        return None

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        return {}, ()


ARRAYS: Final = ArrayTarget()


def arrays_of(target: Target) -> ArrayAdapter:
    """The adapter of the arrays with which a target's Programs run on the host."""
    return getattr(target, "arrays", NUMPY_ARRAYS)
