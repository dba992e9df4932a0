"""Dtypes, and what the standard's functions say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..dtypes import COMPLEX, DTYPES, DType, bool_, complex64, complex128, float32, float64, int64, promote
from ..dtypes import dtype as dtype_of
from ..errors import DTypeError, InputError
from ..frontend.tensor import Tensor

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
_RANK: Final = {bool: 0, int: 1, float: 2, complex: 3}
_LOWEST: Final = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
DEFAULTS: Final = {bool: bool_, int: int64, float: float32, complex: complex64}
"""The dtype of a Python number if no array gives one."""


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


def _type(given: Any) -> DType:
    return given.dtype if isinstance(given, Tensor) else dtype_of(given)


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
    if (isinstance(kind, str) and kind not in DTYPES) or kind == "bool":
        if kind not in KINDS:
            raise InputError(f"isdtype: got the kind {kind!r}, expected a dtype or one of {', '.join(KINDS)}")
        return own.kind in KINDS[kind]
    return own is dtype_of(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an operation on arrays, dtypes and Python's numbers."""
    kinds = [_type(x) for x in arrays_and_dtypes if type(x) not in _RANK]
    numbers = [type(x) for x in arrays_and_dtypes if type(x) in _RANK]
    if not kinds:
        if not numbers:
            raise InputError("result_type: got nothing, expected at least one array or dtype")
        return DEFAULTS[max(numbers, key=_RANK.__getitem__)]
    found = promote(*kinds)
    for number in numbers:
        if _RANK[number] > _LOWEST[found.kind]:
            found = promote(found, complex64) if number is complex and found.is_float else DEFAULTS[number]
    return found


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


def is_real(kind: DType) -> bool:
    return kind not in COMPLEX


def complex_of(kind: DType) -> DType:
    """The complex dtype whose parts have this float dtype."""
    return complex128 if kind in (float64, complex128) else complex64


def check_kinds(what: str, x: Tensor, kinds: Sequence[str]) -> None:
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{what}: got {x.dtype}, expected a dtype of the kinds {', '.join(kinds)}")
