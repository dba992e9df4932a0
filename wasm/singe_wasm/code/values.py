"""Typed expressions over the assembler: `source + 4 * i` in place of instructions on a stack.

A Value is the code that pushes one value of its type. Operators combine Values; integers that are known when the code
is written are folded. A Value that names a local (`Writer.i32` and the like declare them) reads it where the Value is
used, so an expression over locals uses their values at that point. No code is written before a statement of the Writer
uses the Value. Integer division and remainder are unsigned, comparisons signed: sizes and addresses are below 2³¹.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Self, TypeAlias, TypeVar

from . import encode
from .encode import OPS, Body, Spelling, Type

Int: TypeAlias = "I32 | int"
V = TypeVar("V", "I32", "I64")
F = TypeVar("F", bound="FloatLike")


class Value:
    """Code that pushes one value; `number` is the local's number if it only reads a local."""

    __slots__ = ("number", "parts")
    kind: ClassVar[Type]
    parts: tuple[Spelling, ...]
    number: int | None

    def __init__(self, *parts: Spelling, number: int | None = None) -> None:
        self.parts = parts
        self.number = number

    def push(self, body: Body) -> None:
        if self.number is not None:
            body.get(self.number)
        for part in self.parts:
            if isinstance(part, bytes):
                body.add(part)
            else:
                body.apply(part)


def _joined(op: str | bytes, *values: Value) -> tuple[Spelling, ...]:
    """The instruction on the values."""
    parts: list[Spelling] = []
    for v in values:
        if v.number is None:
            parts += v.parts
        else:
            parts.append(v.push)
    return (*parts, OPS[op] if isinstance(op, str) else op)


_FOLD: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div_u": operator.floordiv, "rem_u": operator.mod,
    "lt_s": operator.lt, "lt_u": operator.lt, "le_s": operator.le, "gt_s": operator.gt, "ge_s": operator.ge, "eq": operator.eq, "and": operator.and_,
}  # fmt: skip
_NEUTRAL: Final = {"add": 0, "sub": 0, "mul": 1, "div_u": 1, "shl": 0}
"""operation ↦ the second operand with which it returns the first one."""


def _integer(op: str) -> Callable[[V, V | int], V]:
    """An operator: the instruction of this name, of the type of self."""
    return lambda self, other: self._with(op, other)


class I32(Value):
    """A 32-bit integer: a size, a counter, an address or a condition; `known` is its value if it is a constant."""

    __slots__ = ("known",)
    kind = "i32"

    def __init__(self, *parts: Spelling, number: int | None = None, known: int | None = None) -> None:
        self.parts = parts
        self.number = number
        self.known: Final = known

    @staticmethod
    def of(value: Int) -> I32:
        return value if isinstance(value, I32) else I32(encode.i32(value), known=value)

    @property
    def simple(self) -> bool:
        """Whether using it again costs no more than reading a local."""
        return self.number is not None or self.known is not None

    def _with(self, op: str, other: Int) -> I32:
        other = I32.of(other)
        if self.known is not None and other.known is not None and op in _FOLD:
            negative = op.endswith("_u") and (self.known < 0 or other.known <= 0)
            if not negative:
                return I32.of(int(_FOLD[op](self.known, other.known)))
        if other.known is not None and _NEUTRAL.get(op) == other.known:
            return self
        return I32(*_joined(f"i32.{op}", self, other))

    def __add__(self, other: Int) -> I32:
        return self._with("add", other) if self.known != 0 else I32.of(other)

    __radd__ = __add__

    def __rsub__(self, other: Int) -> I32:
        return I32.of(other)._with("sub", self)

    def __mul__(self, other: Int) -> I32:
        if self.known == 0 or I32.of(other).known == 0:
            return I32.of(0)
        return self._with("mul", other) if self.known is None else I32.of(other)._with("mul", self.known)

    __rmul__ = __mul__

    def __mod__(self, other: Int) -> I32:
        return I32.of(0) if I32.of(other).known == 1 else self._with("rem_u", other)

    __sub__ = _integer("sub")
    __floordiv__ = _integer("div_u")
    __and__ = _integer("and")
    __or__ = _integer("or")
    __xor__ = _integer("xor")
    __lshift__ = _integer("shl")
    __rshift__ = _integer("shr_u")
    __lt__ = _integer("lt_s")
    __le__ = _integer("le_s")
    __gt__ = _integer("gt_s")
    __ge__ = _integer("ge_s")
    equals = _integer("eq")
    differs = _integer("ne")
    below = _integer("lt_u")
    """Whether 0 ≤ self < other: one unsigned comparison."""
    above = _integer("gt_u")
    """self > other, both taken as unsigned."""

    @property
    def zero(self) -> I32:
        """Whether it is 0."""
        return I32(*_joined("i32.eqz", self))

    # --- memory at this address

    def load(self, offset: int = 0) -> I32:
        return I32(*_joined(encode.memory("i32.load", offset), self))

    def i64(self, offset: int = 0) -> I64:
        return I64(*_joined(encode.memory("i64.load", offset), self))

    def f32(self, offset: int = 0) -> F32:
        return F32(*_joined(encode.memory("f32.load", offset), self))

    def f32x4(self, offset: int = 0, load: str = "v128.load") -> F32x4:
        return F32x4(*_joined(encode.memory(load, offset), self))

    def i32x4(self, offset: int = 0, load: str = "v128.load") -> I32x4:
        return I32x4(*_joined(encode.memory(load, offset), self))

    # --- other types

    def as_i64(self, signed: bool = True) -> I64:
        return I64(*_joined(f"i64.extend_i32_{'s' if signed else 'u'}", self))

    def as_f32(self) -> F32:
        """The same bits."""
        return F32(*_joined("f32.reinterpret_i32", self))

    def splat(self) -> I32x4:
        return I32x4(*_joined("i32x4.splat", self))


def select(condition: I32, a: Int, b: Int) -> I32:
    """a where the condition is not 0, else b; both are evaluated."""
    a, b = I32.of(a), I32.of(b)
    if condition.known is not None:
        return a if condition.known else b
    return I32(*_joined("select", a, b, condition))


def minimum(a: Int, b: Int) -> I32:
    """The smaller one; each operand is evaluated twice, so pass locals and constants."""
    a, b = I32.of(a), I32.of(b)
    return select(a < b, a, b)


def maximum(a: Int, b: Int) -> I32:
    """The larger one; as `minimum`."""
    a, b = I32.of(a), I32.of(b)
    return select(a > b, a, b)


class I64(Value):
    """A 64-bit integer."""

    __slots__ = ()
    kind = "i64"

    @staticmethod
    def of(value: I64 | int) -> I64:
        return value if isinstance(value, I64) else I64(encode.i64(value))

    def _with(self, op: str, other: I64 | int) -> I64:
        return I64(*_joined(f"i64.{op}", self, I64.of(other)))

    __add__ = _integer("add")
    __sub__ = _integer("sub")
    __and__ = _integer("and")
    __or__ = _integer("or")
    __xor__ = _integer("xor")

    def __lt__(self, other: I64 | int) -> I32:
        return I32(*_joined("i64.lt_s", self, I64.of(other)))

    def where(self, condition: I32, other: I64 | int) -> I64:
        """This where the condition is not 0, else the other; both are evaluated."""
        return I64(*_joined("select", self, I64.of(other), condition))

    def __lshift__(self, by: int) -> I64:
        return self._with("shl", by)

    def __rshift__(self, by: int) -> I64:
        """Signed."""
        return self._with("shr_s", by)

    def as_i32(self) -> I32:
        """The low half."""
        return I32(*_joined("i32.wrap_i64", self))

    def as_f64(self) -> F64:
        """The same bits."""
        return F64(*_joined("f64.reinterpret_i64", self))

    def converted(self) -> F64:
        """The nearest number."""
        return F64(*_joined("f64.convert_i64_s", self))


def _float(op: str) -> Callable[[F, F | float], F]:
    """As `_integer`."""
    return lambda self, other: self._with(op, other)


class FloatLike(Value):
    """A float of either type, or a vector of them; `prefix` begins the names of their instructions."""

    __slots__ = ()
    prefix: ClassVar[str]

    @classmethod
    def of(cls, value: Self | float) -> Self:
        return value if isinstance(value, FloatLike) else cls(_CONSTANTS[cls.prefix](value))

    def _apply(self, op: str) -> Self:
        return type(self)(*_joined(f"{self.prefix}.{op}", self))

    def _with(self, op: str, other: Self | float) -> Self:
        return type(self)(*_joined(f"{self.prefix}.{op}", self, self.of(other)))

    __add__ = _float("add")
    __sub__ = _float("sub")
    __mul__ = _float("mul")
    __truediv__ = _float("div")

    def __rsub__(self, other: float) -> Self:
        return self.of(other)._with("sub", self)

    def __rtruediv__(self, other: float) -> Self:
        return self.of(other)._with("div", self)

    def __neg__(self) -> Self:
        return self._apply("neg")

    def __abs__(self) -> Self:
        return self._apply("abs")

    def whole(self) -> Self:
        """The nearest whole number, ties to even."""
        return self._apply("nearest")

    def horner(self, coefficients: Sequence[float]) -> Self:
        """The polynomial in this value, a local; its highest coefficient comes first."""
        value = self.of(coefficients[0])
        for c in coefficients[1:]:
            value = value.times_plus(self, c)
        return value

    def times_plus(self, by: Self | float, more: Self | float) -> Self:
        """self · by + more; four at once are rounded once where the linked level has relaxed SIMD."""
        if self.prefix != "f32x4":
            return self * by + more
        return type(self)(*_joined(b"", self, self.of(by), self.of(more)), Body.multiply_then_add)


def _comparison(op: str) -> Callable[[Float, Float | float], I32]:
    return lambda self, other: self._compared(op, other)


class Float(FloatLike):
    """One float."""

    __slots__ = ()

    def _compared(self, op: str, other: Self | float) -> I32:
        return I32(*_joined(f"{self.prefix}.{op}", self, self.of(other)))

    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")
    equals = _comparison("eq")
    differs = _comparison("ne")

    def within(self, low: float, high: float) -> Self:
        """Held between two numbers; NaN stays."""
        return self._with("max", low)._with("min", high)

    def where(self, condition: I32, other: Self | float) -> Self:
        """This where the condition is not 0, else the other; both are evaluated."""
        return type(self)(*_joined("select", self, self.of(other), condition))

    def signed_as(self, other: Self) -> Self:
        """This magnitude with the other's sign."""
        return self._with("copysign", other)

    def root(self) -> Self:
        return self._apply("sqrt")

    def truncated(self) -> Self:
        """The nearest whole number towards zero."""
        return self._apply("trunc")


class F32(Float):
    """A float."""

    __slots__ = ()
    kind = prefix = "f32"

    def rounded(self) -> I32:
        """The nearest integer."""
        return I32(*_joined("i32.trunc_sat_f32_s", self.whole()))

    def bits(self) -> I32:
        return I32(*_joined("i32.reinterpret_f32", self))

    def as_f64(self) -> F64:
        return F64(*_joined("f64.promote_f32", self))

    def splat(self) -> F32x4:
        return F32x4(*_joined("f32x4.splat", self))


class F64(Float):
    """A double."""

    __slots__ = ()
    kind = prefix = "f64"

    def integer(self) -> I64:
        """A whole number as an integer."""
        return I64(*_joined("i64.trunc_sat_f64_s", self))

    def bits(self) -> I64:
        return I64(*_joined("i64.reinterpret_f64", self))

    def as_f32(self) -> F32:
        return F32(*_joined("f32.demote_f64", self))


class V128(Value):
    """A vector of 16 bytes."""

    __slots__ = ()
    kind = "v128"

    def floats(self) -> F32x4:
        """The same bits, or the same local, as floats."""
        return F32x4(*self.parts, number=self.number)

    def integers(self) -> I32x4:
        """The same bits, or the same local, as integers."""
        return I32x4(*self.parts, number=self.number)

    def choose(self, a: F32x4, b: F32x4) -> F32x4:
        """Bit by bit: a where this has a one, else b."""
        return F32x4(*_joined("v128.bitselect", a, b, self))

    def doubles(self) -> F64x2:
        """The first two floats as float64."""
        return F64x2(*_joined("f64x2.promote_low_f32x4", self))

    def __or__(self, other: V128) -> I32x4:
        return I32x4(*_joined("v128.or", self, other))

    def __xor__(self, other: V128) -> I32x4:
        return I32x4(*_joined("v128.xor", self, other))

    def some(self) -> I32:
        """Whether any bit is one."""
        return I32(*_joined("v128.any_true", self))


class F32x4(V128, FloatLike):
    """Four floats."""

    __slots__ = ()
    prefix = "f32x4"

    def __lt__(self, other: Self | float) -> I32x4:
        return self._with("lt", other).integers()

    def equals(self, other: Self | float) -> I32x4:
        return self._with("eq", other).integers()

    def differs(self, other: Self | float) -> I32x4:
        return self._with("ne", other).integers()

    def within(self, low: float, high: float) -> Self:
        """Held between two numbers; NaN stays."""
        return self._with("pmax", low)._with("pmin", high)

    def raised(self) -> Self:
        """The nearest whole numbers above."""
        return self._apply("ceil")

    def lane(self, number: int) -> F32:
        return F32(*_joined(encode.lane("f32x4.extract_lane", number), self))

    def broadcast(self, number: int) -> Self:
        """A lane in all four."""
        return type(self)(*_joined(encode.shuffle(*(number,) * 4), self, self))


class F64x2(V128, FloatLike):
    """Two float64."""

    __slots__ = ()
    prefix = "f64x2"

    def as_integers(self) -> I32x4:
        """The numbers as integers, in the first two lanes."""
        return I32x4(*_joined("i32x4.trunc_sat_f64x2_s_zero", self))

    def as_floats(self) -> F32x4:
        """The numbers as floats, in the first two lanes."""
        return F32x4(*_joined("f32x4.demote_f64x2_zero", self))


class I32x4(V128):
    """Four integers; masks have lanes of 0 or −1."""

    __slots__ = ()

    @staticmethod
    def of(value: I32x4 | int) -> I32x4:
        return value if isinstance(value, I32x4) else I32x4(encode.i32x4(value))

    def with_(self, op: str, other: I32x4 | int) -> I32x4:
        """An instruction, by name, on this and another vector of integers of any width."""
        return I32x4(*_joined(op, self, I32x4.of(other)))

    def __add__(self, other: I32x4 | int) -> I32x4:
        return self.with_("i32x4.add", other)

    def __sub__(self, other: I32x4 | int) -> I32x4:
        return self.with_("i32x4.sub", other)

    def __mul__(self, other: I32x4 | int) -> I32x4:
        return self.with_("i32x4.mul", other)

    def __and__(self, other: I32x4 | int) -> I32x4:
        return self.with_("v128.and", other)

    def __lshift__(self, by: int) -> I32x4:
        return I32x4(*_joined("i32x4.shl", self, I32.of(by)))

    def __rshift__(self, by: int) -> I32x4:
        """Signed."""
        return I32x4(*_joined("i32x4.shr_s", self, I32.of(by)))

    def halves_right(self, by: int) -> I32x4:
        """Each half of a lane shifted by itself, without a sign."""
        return I32x4(*_joined("i16x8.shr_u", self, I32.of(by)))

    def picked(self, other: I32x4, *places: int) -> I32x4:
        """Bytes of this and another vector at these places, up to 16."""
        return I32x4(*_joined(OPS["i8x16.shuffle"] + bytes(places).ljust(16, b"\0"), self, other))

    def shuffled(self, other: I32x4, *lanes: int) -> I32x4:
        """Four of the eight lanes of this and another vector."""
        return I32x4(*_joined(encode.shuffle(*lanes), self, other))

    def lane(self, number: int) -> I32:
        return I32(*_joined(encode.lane("i32x4.extract_lane", number), self))

    def above(self, other: int) -> I32x4:
        """Signed."""
        return self.with_("i32x4.gt_s", other)

    def dot_pairs(self, sevens: I32x4) -> I32x4:
        """The products of its bytes by others of 7 bits, two to a half of a lane: relaxed SIMD."""
        return self.with_("i16x8.relaxed_dot_i8x16_i7x16_s", sevens)

    def dot_add(self, sevens: I32x4, total: I32x4) -> I32x4:
        """total + the products of its bytes by others of 7 bits, four to a lane: relaxed SIMD."""
        return I32x4(*_joined("i32x4.relaxed_dot_i8x16_i7x16_add_s", self, sevens, total))

    def as_floats(self) -> F32x4:
        """The numbers, converted."""
        return F32x4(*_joined("f32x4.convert_i32x4_s", self))


_CONSTANTS: Final[Mapping[str, Callable[[float], bytes]]] = {
    "f32": encode.f32, "f64": encode.f64, "f32x4": encode.f32x4, "f64x2": lambda x: encode.f64(x) + OPS["f64x2.splat"],
}  # fmt: skip
"""By the prefix of a FloatLike, the constant in each of its lanes."""
