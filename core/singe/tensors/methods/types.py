"""Methods that convert elements to other types, and make tensors of the type and on the device of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import DType, bfloat16, bool_, dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from ...dtypes import dtype as as_dtype
from ...ops import ROWS
from ...runtime.devices import device as find_device
from ...shapes import product
from ..calls import apply_row
from ..nodes.promotion import as_type
from ..nodes.shaping import given_sizes
from ..numpy_fallback import on_device
from ..tensor import Tensor, apply
from .attach import alias, method


@method
def cast(x: Tensor, to: Any) -> Tensor:
    """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    kind = dtype(to)
    return x if kind is x.dtype else apply_row(ROWS["cast"], (x,), to=kind)


alias("astype", cast)

SHORT: Final = {
    "bool": bool_, "byte": uint8, "char": int8, "short": int16, "int": int32, "long": int64, "half": float16, "bfloat16": bfloat16,
    "float": float32, "double": float64,
}  # fmt: skip
"""PyTorch's method ↦ the dtype that it casts to."""


def _conversion(kind: DType) -> Callable[[Tensor], Tensor]:
    def method(x: Tensor) -> Tensor:
        return x.cast(kind)

    method.__doc__ = f"The elements as {kind}."
    return method


for _name, _kind in SHORT.items():
    alias(_name, _conversion(_kind))


@method
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements in the dtype of another tensor."""
    return x.cast(other.dtype)


@method
def type(x: Tensor, dtype: Any) -> Tensor:
    """The elements as another dtype."""
    return x.cast(dtype)


@method
def is_floating_point(x: Tensor) -> bool:
    """Whether the dtype is a float."""
    return x.dtype.is_float


@method
def is_complex(x: Tensor) -> bool:
    """Whether the dtype is complex."""
    return x.dtype.kind == "complex"


@method
def is_signed(x: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return x.dtype.kind in ("int", "float", "complex")


@method
def numel(x: Tensor) -> int:
    """The number of elements."""
    return product(x.shape)  # pyright: ignore[reportReturnType]


alias("nelement", numel)


@method
def element_size(x: Tensor) -> int:
    """How many bytes an element takes."""
    return x.dtype.size


@method
@property
def itemsize(x: Tensor) -> int:
    """How many bytes an element takes."""
    return x.dtype.size


@method
@property
def nbytes(x: Tensor) -> int:
    """How many bytes the elements take."""
    return x.numel() * x.dtype.size


@method
def dim(x: Tensor) -> int:
    """The number of axes."""
    return x.ndim


alias("ndimension", dim)


@method
def clone(x: Tensor) -> Tensor:
    """The tensor itself, which does not change."""
    return x


alias("contiguous", clone)


@method
def new_full(x: Tensor, shape: Sequence[int], fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with a value, with x's dtype and device unless others are given."""
    kind = x.dtype if dtype is None else as_dtype(dtype)
    dims = given_sizes((shape,), "new_full")
    here = x if device is None else on_device(np.empty(0, bool), find_device(device))
    return apply(lambda b, _, v: b.expand(as_type(b, v, kind), shape=dims), here, fill_value)


@method
def new_zeros(x: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, with x's dtype and device unless others are given: new_zeros(2, 3) or new_zeros((2, 3))."""
    return x.new_full(given_sizes(shape, "new_zeros"), 0, dtype, device)


@method
def new_ones(x: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, with x's dtype and device unless others are given: new_ones(2, 3) or new_ones((2, 3))."""
    return x.new_full(given_sizes(shape, "new_ones"), 1, dtype, device)


alias("new_empty", new_zeros)


@method
def new_tensor(x: Tensor, data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of data, with x's dtype and device unless others are given."""
    made = on_device(np.asarray(data), x.device).cast(x.dtype if dtype is None else dtype)
    return made if device is None else made.to(device)
