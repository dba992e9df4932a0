"""Element types: one table with a row for each, and the promotions between them.

There is one DType of each name, so code compares them with `is`; `dtype("float32")` finds one by name, NumPy dtype or DType. Types that NumPy lacks
(bfloat16, float8, float4, int4, int2) are structured arrays of one field, named after the dtype: NumPy moves the bits, and
`widened` and `narrowed` convert from and to the compute type. Strings are in such a field too, as Python strings,
because plain object arrays hold Sizes. Callers give and get strings in object arrays, and what NumPy lacks in the types of the package
ml_dtypes where it is installed (`own`, `outward`, `plain`). It is imported when such an array, or the hash of such a DType, is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from .errors import DTypeError
from .late_dataclass import dataclass


@dataclass(frozen=True)
class Coding:
    """The bits of a narrow float, from the top: a sign (if signed), the exponent, the mantissa.

    most is the code of the largest number, infinity that of infinity (None: there is none), nan one of those of NaN. With
    subnormals the least exponent encodes subnormal numbers, as in IEEE 754; otherwise it is one more power of two. If all
    codes are `finite` numbers, nan is the code that NaN becomes, and too large numbers become the largest.
    """

    mantissa: int
    bias: int
    most: int
    nan: int
    infinity: int | None = None
    bits: int = 8
    finite: bool = False
    signed: bool = True
    signed_zero: bool = True
    subnormals: bool = True

    @property
    def least_power(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias if self.subnormals else -self.bias

    @property
    def overflow(self) -> int:
        """The code for values above the largest number."""
        if self.finite:
            return self.most
        return self.nan if self.infinity is None else self.infinity

    @property
    def sign(self) -> int:
        """The bit of the sign, if there is one."""
        return 1 << self.bits - 1


@dataclass(frozen=True, eq=False)
class DType:
    """An element type.

    kind is "bool", "int", "uint", "float", "complex" or "string"; bits is the width of a value. computed names the compute
    type, which a load gives and a store takes: a load widens, a store keeps the low bits of integers and rounds floats to
    nearest even. For a type that NumPy lacks, held names the NumPy type of its bits. For a float of at most 16 bits,
    coding says what its bits mean. An element takes `size` bytes in arrays, files and device memory. On a device without bytes it takes four,
    as `wide`, unless the dtype is `packed` there.
    """

    name: str
    kind: str
    bits: int
    computed: str
    held: str = ""
    coding: Coding | None = None
    packed: bool = False

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The type of the arrays that hold such elements."""
        return np.dtype([(self.name, self.held)]) if self.held else np.dtype(self.name)

    @cached_property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """What `np.dtype` makes of it: the type of the arrays that callers get."""
        if self.kind == "string":
            return np.dtype(object)
        found = getattr(_ml_dtypes(), self.name, None) if self.held else None
        return self.numpy if found is None else np.dtype(found)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The same for NumPy before 2.4, which asks for this name."""
        return self.__numpy_dtype__

    @cached_property
    def compute(self) -> DType:
        """The type of the value that a load gives and a store takes. So a float16 or bfloat16 value is not rounded between the
        ops of one kernel, only when it is stored, or where a model casts to its type."""
        return DTYPES[self.computed]

    @property
    def size(self) -> int:
        """Bytes of an element. Strings have none: they stay on the host, whatever the device."""
        return 0 if self.kind == "string" else self.numpy.itemsize

    @property
    def wide(self) -> np.dtype[Any]:
        """The NumPy type of an element on devices without elements of fewer than four bytes."""
        return self.numpy if self.size >= 4 or self.packed else np.dtype("int32" if self.kind == "int" else "uint32")

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats; complex numbers are not."""
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Whether the elements are integers, signed or not."""
        return self.kind in ("int", "uint")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest value of an integer type."""
        if not self.is_int:
            raise DTypeError(f"{self.name} is not an integer type, expected one: int8 to int64, uint8 to uint64")
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.kind == "int" else (0, (1 << self.bits) - 1)

    @property
    def most(self) -> float:
        """The largest number of a narrow float type."""
        return self._number("most")

    @property
    def beyond(self) -> float:
        """What numbers above the largest become in a narrow float type: infinity, NaN or the largest."""
        return self._number("overflow")

    @property
    def wrong(self) -> float:
        """What NaN becomes in a narrow float type: NaN, if the type has it."""
        return self._number("nan")

    def _number(self, code: str) -> float:
        assert self.coding is not None
        return float(_numbers(self)[getattr(self.coding, code)])

    def __eq__(self, other: object) -> bool:
        """Whether `other` is this dtype, or a name, a NumPy dtype or a type that stands for it.

        Of NumPy's dtypes it is those that are equal to np.dtype(self), which have the same hash, too: each finds the other's
        entries in a dictionary. A name or a class, such as np.float32, has another hash, as it has beside np.dtype("float32").
        """
        if other.__class__ is DType:
            return other is self
        if isinstance(other, np.dtype):
            return other in (self.__numpy_dtype__, self.numpy)
        named = isinstance(other, str) or (isinstance(other, type) and issubclass(other, _TYPES))
        return named and _found(other) is self

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.__numpy_dtype__)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self.name,)


_E2M1FN: Final = Coding(1, 1, most=0x7, nan=0x8, bits=4, finite=True)
_E2M3FN: Final = Coding(3, 1, most=0x1F, nan=0x20, bits=6, finite=True)
_E3M2FN: Final = Coding(2, 3, most=0x1F, nan=0x20, bits=6, finite=True)
_E4M3FN: Final = Coding(3, 7, most=0x7E, nan=0x7F)
_E4M3FNUZ: Final = Coding(3, 8, most=0x7F, nan=0x80, signed_zero=False)
_E5M2: Final = Coding(2, 15, most=0x7B, nan=0x7E, infinity=0x7C)
_E5M2FNUZ: Final = Coding(2, 16, most=0x7F, nan=0x80, signed_zero=False)
_E8M0: Final = Coding(0, 127, most=0xFE, nan=0xFF, signed=False, subnormals=False)
_FLOAT16: Final = Coding(10, 15, most=0x7BFF, nan=0x7E00, infinity=0x7C00, bits=16)
_BFLOAT16: Final = Coding(7, 127, most=0x7F7F, nan=0x7FC0, infinity=0x7F80, bits=16)

DTYPES: Final = {d.name: d for d in (
    DType("bool", "bool", 8, "bool"),
    DType("int2", "int", 2, "int32", held="int8"),
    DType("uint2", "uint", 2, "int32", held="uint8"),
    DType("int4", "int", 4, "int32", held="int8"),
    DType("uint4", "uint", 4, "int32", held="uint8"),
    DType("int8", "int", 8, "int32"),
    DType("uint8", "uint", 8, "int32"),
    DType("int16", "int", 16, "int32"),
    DType("uint16", "uint", 16, "int32"),
    DType("int32", "int", 32, "int32"),
    DType("uint32", "uint", 32, "uint32"),
    DType("int64", "int", 64, "int64"),
    DType("uint64", "uint", 64, "uint64"),
    DType("float4_e2m1fn", "float", 4, "float32", held="uint8", coding=_E2M1FN),
    DType("float6_e2m3fn", "float", 6, "float32", held="uint8", coding=_E2M3FN),
    DType("float6_e3m2fn", "float", 6, "float32", held="uint8", coding=_E3M2FN),
    DType("float8_e4m3fn", "float", 8, "float32", held="uint8", coding=_E4M3FN),
    DType("float8_e4m3fnuz", "float", 8, "float32", held="uint8", coding=_E4M3FNUZ),
    DType("float8_e5m2", "float", 8, "float32", held="uint8", coding=_E5M2),
    DType("float8_e5m2fnuz", "float", 8, "float32", held="uint8", coding=_E5M2FNUZ),
    DType("float8_e8m0fnu", "float", 8, "float32", held="uint8", coding=_E8M0),
    DType("float16", "float", 16, "float32", coding=_FLOAT16, packed=True),
    DType("bfloat16", "float", 16, "float32", held="uint16", coding=_BFLOAT16),
    DType("float32", "float", 32, "float32"),
    DType("float64", "float", 64, "float64"),
    DType("complex64", "complex", 64, "complex64"),
    DType("complex128", "complex", 128, "complex128"),
    DType("string", "string", 64, "string", held="object"),
)}  # fmt: skip
"""The table."""

bool_: Final = DTYPES["bool"]
int2: Final = DTYPES["int2"]
uint2: Final = DTYPES["uint2"]
int4: Final = DTYPES["int4"]
uint4: Final = DTYPES["uint4"]
int8: Final = DTYPES["int8"]
uint8: Final = DTYPES["uint8"]
int16: Final = DTYPES["int16"]
uint16: Final = DTYPES["uint16"]
int32: Final = DTYPES["int32"]
uint32: Final = DTYPES["uint32"]
int64: Final = DTYPES["int64"]
uint64: Final = DTYPES["uint64"]
float4_e2m1fn: Final = DTYPES["float4_e2m1fn"]
float6_e2m3fn: Final = DTYPES["float6_e2m3fn"]
float6_e3m2fn: Final = DTYPES["float6_e3m2fn"]
float8_e4m3fn: Final = DTYPES["float8_e4m3fn"]
float8_e4m3fnuz: Final = DTYPES["float8_e4m3fnuz"]
float8_e5m2: Final = DTYPES["float8_e5m2"]
float8_e5m2fnuz: Final = DTYPES["float8_e5m2fnuz"]
float8_e8m0fnu: Final = DTYPES["float8_e8m0fnu"]
float16: Final = DTYPES["float16"]
bfloat16: Final = DTYPES["bfloat16"]
float32: Final = DTYPES["float32"]
float64: Final = DTYPES["float64"]
complex64: Final = DTYPES["complex64"]
complex128: Final = DTYPES["complex128"]
string: Final = DTYPES["string"]

LEAST_NORMAL: Final = 2.0**-126
"""The smallest float32 above zero that is not subnormal."""

# What rows take.
INTS: Final = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
FLOATS: Final = (float16, bfloat16, float32, float64)
SINGLES: Final = (float16, bfloat16, float32)
"""Floats that are computed in float32."""
COMPLEX: Final = (complex64, complex128)
NUMBERS: Final = INTS + FLOATS
STORED: Final = tuple(d for d in DTYPES.values() if d.bits < 8 or (d.coding and d.bits == 8))
"""Types that are stored, moved and converted, but not computed with."""
HELD_IN: Final = ("float16", "float32", "int8")
"""The types in which a language model may hold keys and values."""
ALL: Final = tuple(DTYPES.values())
TEXT: Final = "OUT"
"""The kinds of NumPy's arrays of strings: objects, those of fixed width, and NumPy 2's own."""


REGISTERED: Final = 2
"""What `isbuiltin` says of a NumPy dtype that another package registered. Its kind may be that of NumPy's own types."""
_TYPES: Final = (np.generic, bool, int, float, complex, str)
"""Classes that stand for dtypes in comparisons."""


def dtype(argument: Any) -> DType:
    """The DType that a name, a NumPy dtype or a DType stands for."""
    found = _found(argument)
    if found is None:
        raise DTypeError(f"dtype {argument!r} is not supported; use one of {', '.join(DTYPES)}")
    return found


def _found(argument: Any) -> DType | None:
    if isinstance(argument, DType):
        return argument
    if isinstance(argument, str) and argument in DTYPES:
        return DTYPES[argument]
    try:
        return _of_numpy(np.dtype(argument))
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=256)
def _of_numpy(numpy_dtype: np.dtype[Any]) -> DType | None:
    """Cached, as a run asks it for every array."""
    if numpy_dtype.kind in TEXT:
        return string
    return DTYPES.get(numpy_dtype.names[0] if numpy_dtype.names and len(numpy_dtype.names) == 1 else numpy_dtype.name)


def promote(*dtypes: DType) -> DType:
    """The common type of several types: one that holds all of their values, or all of the floats among them.

    float16 or bfloat16 with each other, or with integers of 16 bits or more, give float32.
    """
    kinds = set(dtypes)
    if len(kinds) == 1:
        return dtypes[0]
    floats = {d for d in kinds if d.is_float or d.kind == "complex"}
    ints = {d for d in kinds if d.is_int}
    if string in kinds or any(d in STORED and d.is_float for d in floats):
        raise DTypeError(
            f"the types {', '.join(sorted(d.name for d in kinds))} have no common type; cast to one of them"
        )
    if floats & {*COMPLEX}:
        return complex128 if floats & {complex128, float64} else complex64
    if floats:
        top = max(floats, key=lambda d: d.bits)
        half = top.bits == 16 and (len(floats) > 1 or any(d.bits >= 16 for d in ints))
        return float32 if half else top
    if not ints:
        return bool_
    signed = max((d.bits for d in ints if d.kind == "int"), default=0)
    unsigned = max((d.bits for d in ints if d.kind == "uint"), default=0)
    if not signed or not unsigned:
        return max(ints, key=lambda d: d.bits)
    bits = max(signed, 2 * unsigned)
    if bits > 64:
        raise DTypeError("no integer type holds both uint64 and a signed type; cast one of them")
    return DTYPES[f"int{bits}"]


# --- elements that NumPy lacks ---------------------------------------------------------------------------------------


def own(array: np.ndarray) -> np.ndarray:
    """The array in the NumPy type of its DType: other packages have different types for what NumPy lacks."""
    if array.dtype.kind in TEXT:
        return strings(array) if holds_strings(array) else array
    if array.dtype.isbuiltin != REGISTERED:
        return array
    kind = DTYPES.get(array.dtype.name)
    if kind is None or not kind.held:
        return array
    codes = array.view(kind.held)
    return codes.view(kind.numpy) if kind.coding else narrowed(codes, kind)


def check_fits(values: Any, kind: DType) -> None:
    """Refuse numbers beyond the range of an integer type, before they are converted to it."""
    if not kind.is_int:
        return
    least, most = kind.limits
    if isinstance(values, int):  # which may be beyond NumPy's integers, too
        if not least <= values <= most:
            given = values if values.bit_length() <= 128 else f"an integer of {values.bit_length()} bits"
            raise DTypeError(f"{given} does not fit {kind}: {least} to {most} are expected; cast to a larger type")
        return
    array = plain(np.asarray(values))
    if array.dtype.kind not in "iuf" or array.size == 0:
        return
    given = dtype(array.dtype)
    if given.is_int and least <= given.limits[0] and given.limits[1] <= most:
        return
    for x in (array.min().item(), array.max().item()):
        if not least <= x <= most:  # nor is NaN
            raise DTypeError(f"{x} does not fit {kind}: {least} to {most} are expected; cast to a larger type")


def holds_strings(array: np.ndarray) -> bool:
    """Whether these are strings in one of NumPy's types for strings."""
    if array.dtype.kind != "O":
        return array.dtype.kind in TEXT
    return array.size > 0 and all(isinstance(v, str) for v in array.flat)


def strings(values: Any) -> np.ndarray:
    """Strings, in an array or in lists, as elements of the dtype `string`."""
    given = np.asarray(values, object)
    wrong = [v for v in given.flat if not isinstance(v, str)]
    if wrong:
        raise DTypeError(f"got {wrong[0]!r:.40}, expected strings")
    out = np.empty(given.shape, string.numpy)
    out[string.name] = given
    return out


def outward(array: np.ndarray) -> np.ndarray:
    """An array as callers get it: strings in an object array, and what NumPy lacks in the type of ml_dtypes, if that is there."""
    if not array.dtype.names:
        return array
    kind = dtype(array.dtype)
    return array[kind.name] if kind is string else array.view(kind.__numpy_dtype__)


def plain(array: np.ndarray) -> np.ndarray:
    """An array of any package's types as one of NumPy's: what it lacks is widened."""
    return widened(array) if array.dtype.kind == "V" or array.dtype.isbuiltin == REGISTERED else array


def widened(array: np.ndarray) -> np.ndarray:
    """Elements of any type converted to their compute type; strings as an object array."""
    array = own(array)
    kind = dtype(array.dtype)
    if not kind.held:
        return array.astype(kind.compute.numpy, copy=False)
    codes = array[kind.name]
    if kind is string:
        return codes
    if kind.coding is None:
        return codes.astype(kind.compute.numpy)
    if kind is bfloat16:  # the upper half of a float32
        return np.asarray(codes.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(_numbers(kind)[codes])


def narrowed(array: np.ndarray, kind: DType) -> np.ndarray:
    """Values of the compute type of `kind` as elements of `kind`, a type that NumPy lacks."""
    if kind is string:
        return strings(array)
    if kind.coding is None:
        spare = 8 * kind.size - kind.bits
        codes = np.asarray(array).astype(kind.held)
        codes = codes << spare >> spare
    else:
        codes = _halves(array) if kind is bfloat16 else _codes(array, kind.coding)
    return np.ascontiguousarray(codes, kind.held).view(kind.numpy).reshape(np.shape(array))


@lru_cache(maxsize=16)
def _numbers(kind: DType) -> np.ndarray:
    """The number that each code stands for; bits above the code's do not count."""
    c = kind.coding
    assert c is not None
    codes = np.arange(1 << 8 * kind.size) & (1 << kind.bits) - 1
    size = codes & (1 << kind.bits - c.signed) - 1
    exponent, mantissa = size >> c.mantissa, size & (1 << c.mantissa) - 1
    normal = (exponent > 0) | (not c.subnormals)
    power = np.where(normal, exponent - c.bias, c.least_power) - c.mantissa
    numbers = np.ldexp((mantissa + (normal << c.mantissa)).astype(np.float64), power)
    numbers = np.where(size > c.most, np.inf if c.infinity is not None else np.nan, numbers)
    numbers = np.where(size > c.overflow, np.nan, numbers)
    numbers = np.where(size != codes, -numbers, numbers)
    if not c.finite:
        numbers[codes == c.nan] = np.nan
    return numbers.astype(np.float32)


def _codes(array: np.ndarray, c: Coding) -> np.ndarray:
    """The codes of the nearest numbers, ties to even."""
    x = np.asarray(array, np.float64)
    size = np.where(np.isfinite(x), np.abs(x), 0)
    power = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, c.least_power), c.least_power)
    steps = np.rint(np.ldexp(size, c.mantissa - power)).astype(np.int64)
    hidden = 0 if c.subnormals else 1 << c.mantissa
    codes = np.maximum(((power - c.least_power).astype(np.int64) << c.mantissa) + steps - hidden, 0)
    codes = np.where((codes > c.most) | np.isinf(x), c.overflow, codes)
    if c.signed:
        codes = np.where(np.signbit(x) & (c.signed_zero | (codes != 0)), codes | c.sign, codes)
    wrong = np.isnan(x) if c.signed else np.isnan(x) | (x < 0)
    return np.where(wrong, c.nan, codes).astype(np.uint8)


def _halves(array: np.ndarray) -> np.ndarray:
    """The upper halves of float32s, rounded to nearest even."""
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(array, np.float32)
    bits = x.view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (bits + (0x7FFF + (bits >> 16 & 1)).astype(np.uint32)) >> 16
    return np.where(np.isnan(x), 0x7FC0 | bits >> 16 & 0x8000, rounded).astype(np.uint16)


def names(dtypes: Sequence[DType]) -> str:
    """Dtypes for an error."""
    return ", ".join(d.name for d in dtypes)


@cache
def _ml_dtypes() -> Any:
    """The package ml_dtypes, whose types other packages use for what NumPy lacks; None where it is not installed."""
    try:
        return import_module("ml_dtypes")
    except ImportError:
        return None


def contents(value: np.ndarray) -> Any:
    """A hashable value, the same for equal arrays of one shape and type."""
    return tuple(outward(value).ravel()) if value.dtype.hasobject else value.tobytes()
