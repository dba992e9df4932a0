"""Element types: one closed table, each with its NumPy twin, and the promotions between them.

A DType is compared by identity; `dtype("float32")` finds one by name, NumPy dtype or DType.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .errors import DTypeError


@dataclass(frozen=True, eq=False)
class DType:
    """An element type. `kind` is "bool", "int", "uint" or "float"; `rank` orders promotion."""

    name: str
    kind: str
    size: int
    rank: int

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.name)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self.name,)


bool_: Final = DType("bool", "bool", 1, 0)
uint8: Final = DType("uint8", "uint", 1, 1)
int32: Final = DType("int32", "int", 4, 4)
int64: Final = DType("int64", "int", 8, 5)
float16: Final = DType("float16", "float", 2, 6)
float32: Final = DType("float32", "float", 4, 7)

DTYPES: Final = {d.name: d for d in (bool_, uint8, int32, int64, float16, float32)}
FLOATS: Final = (float16, float32)
LEAST_NORMAL: Final = 2.0**-126
"""The smallest float32 above zero that is no subnormal."""
INTS: Final = (uint8, int32, int64)
NUMBERS: Final = INTS + FLOATS
ALL: Final = (bool_, *NUMBERS)


def dtype(given: Any) -> DType:
    """The DType that a name, a NumPy dtype or a DType stands for."""
    if isinstance(given, DType):
        return given
    try:
        return DTYPES[np.dtype(given).name]
    except (KeyError, TypeError):
        raise DTypeError(f"dtype {given!r} is not supported; use one of {', '.join(DTYPES)}") from None


def promote(*dtypes: DType) -> DType:
    """The type in which values of several types meet: the highest rank; ints and float16 meet in float32."""
    top = max(dtypes, key=lambda d: d.rank)
    if top is float16 and any(d in (int32, int64) for d in dtypes):
        return float32
    return top
