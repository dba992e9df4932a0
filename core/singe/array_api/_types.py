"""Dtypes, and what the standard's functions say about them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, DType, promote
from ..dtypes import dtype as dtype_of
from ..errors import DTypeError, InputError
from ..late_dataclass import dataclass
from ..tensors.argument_errors import check_functions
from ..tensors.nodes.promotion import PLAIN, common_type
from ..tensors.tensor import Tensor

NAMES: Final = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""The standard's dtypes."""
KINDS: Final = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}
"""The standard's kinds ↦ the kinds of our dtypes."""


@dataclass(frozen=True)
class FloatInfo:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    bits: int
    max: int
    min: int
    dtype: DType


def _type(argument: Any) -> DType:
    return argument.dtype if isinstance(argument, Tensor) else dtype_of(argument)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype; those of its parts, if it is complex."""
    kind = _type(type)
    if kind.kind not in ("float", "complex") or kind.held:
        raise DTypeError(f"finfo: got {kind}, expected a floating-point dtype of NumPy's")
    found = np.finfo(kind.numpy)
    return FloatInfo(
        found.bits,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        dtype_of(found.dtype),
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype."""
    kind = _type(type)
    least, most = kind.limits
    return IntegerInfo(kind.bits, most, least, kind)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind, or one of several of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    own = dtype_of(dtype)
    if isinstance(kind, str) and (kind not in DTYPES or kind == "bool"):
        if kind not in KINDS:
            raise InputError(f"isdtype: got the kind {kind!r}, expected a dtype or one of {', '.join(KINDS)}")
        return own.kind in KINDS[kind]
    return own is dtype_of(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an operation on arrays, dtypes and Python's numbers."""
    if not arrays_and_dtypes:
        raise InputError("result_type: got nothing, expected at least one array or dtype")
    return common_type([x if type(x) in PLAIN else _type(x) for x in arrays_and_dtypes])


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype holds every value of another."""
    source, target = _type(from_), _type(to)
    try:
        return promote(source, target) is target
    except DTypeError:
        return False


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements in another dtype. `copy` has no meaning: an array does not change."""
    moved = x if device is None else x.to(device)
    return moved.cast(dtype)


check_functions(globals())
