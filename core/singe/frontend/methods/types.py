"""Methods that convert elements to other types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...dtypes import DType, dtype, float16, float32, int32
from ...ops import ROWS
from ..tensor import Tensor
from .attach import alias, method
from .rows import call_row


@method
def cast(x: Tensor, to: Any) -> Tensor:
    """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    kind = dtype(to)
    return x if kind is x.dtype else call_row(ROWS["cast"], (x,), to=kind)


alias("astype", cast)

SHORT: Final = {"float": float32, "half": float16, "int": int32}
"""PyTorch's method ↦ the dtype that it casts to."""


def _conversion(kind: DType) -> Callable[[Tensor], Tensor]:
    def method(x: Tensor) -> Tensor:
        return x.cast(kind)

    method.__doc__ = f"The elements as {kind}."
    return method


for _name, _kind in SHORT.items():
    alias(_name, _conversion(_kind))
