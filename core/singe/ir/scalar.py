"""The closed scalar vocabulary: frozen expressions over about thirty words, in which rows and index arithmetic are written.

An Expr is interned: equal expressions are one object, so identity is equality, and common subexpressions are shared.
Values have one of the compute types in the table of dtypes.py: bool, int32, uint32, int64, uint64, float32, float64,
and on the host complex64 and complex128. The other element types are storage only: a load widens them (uint8 to int32,
float16 to float32), a store narrows (uint8 keeps the low 8 bits, float16 rounds to nearest even).
Constructors fold constants and drop operations that do nothing.

Meaning of the words, binding for every target:
  add sub mul neg    wrap in integers.
  div rem            toward zero in integers; division by zero gives an unspecified value and never traps.
  min max            give NaN where either side is NaN.
  shl shr            in integers; shr keeps the sign of a signed type; the amount is taken modulo the width.
  round              half to even.
  and or xor not     of bools, or bitwise of integers.
  bits of_bits       the bits of a float as a signed integer of its width, and back.
  cast               to bool: is not zero (NaN is true); float to integer: toward zero, saturating, NaN gives 0;
                     integer to integer: wraps.
  rounded            to the nearest number of a narrower float type, ties to even, as a store to that type rounds.
  select             (condition, if true, if false).
  isnan              of floats; must work even if the compiler assumes that there are no NaNs.

Subnormal floats may count as zeros: WebGPU leaves that to the GPU.
"""

from __future__ import annotations

import struct
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias, TypeVar, Union

import numpy as np

from ..dtypes import DTYPES, DType, bool_, float32, int32
from ..errors import DTypeError
from ..late_dataclass import dataclass
from ..shapes import Dim
from .arrays import NUMPY, convert

T = TypeVar("T")
Number: TypeAlias = bool | int | float
ExprLike: TypeAlias = Union["Expr", bool, int, float]


@dataclass(frozen=True)
class Word:
    """One word: how many arguments it takes, of which kinds, and the kind of its result ("same": the arguments' type;
    "int", "float": of the same width; "given": the word has a type besides its arguments)."""

    arity: int
    kinds: str  # the kind of the arguments that must agree: "num", "float", "logic" (bool or integer), "int", "signed"
    result: str = "same"
    commutes: bool = False


WORDS: Final[Mapping[str, Word]] = {
    "add": Word(2, "num", commutes=True), "sub": Word(2, "num"), "mul": Word(2, "num", commutes=True),
    "div": Word(2, "num"), "rem": Word(2, "num"), "min": Word(2, "num", commutes=True), "max": Word(2, "num", commutes=True),
    "neg": Word(1, "num"), "abs": Word(1, "num"),
    "sqrt": Word(1, "float"), "exp": Word(1, "float"), "log": Word(1, "float"), "sin": Word(1, "float"),
    "cos": Word(1, "float"), "tanh": Word(1, "float"),
    "floor": Word(1, "float"), "ceil": Word(1, "float"), "round": Word(1, "float"), "isnan": Word(1, "float", "bool"),
    "eq": Word(2, "any", "bool", commutes=True), "lt": Word(2, "num", "bool"), "le": Word(2, "num", "bool"),
    "and": Word(2, "logic", commutes=True), "or": Word(2, "logic", commutes=True), "xor": Word(2, "logic", commutes=True),
    "not": Word(1, "logic"), "shl": Word(2, "int"), "shr": Word(2, "int"),
    "bits": Word(1, "float", "int"), "of_bits": Word(1, "signed", "float"),
    "select": Word(3, "any"), "cast": Word(1, "any", "given"),
    "rounded": Word(1, "float", "given"),
}  # fmt: skip
WORD_COSTS: Final = {"exp": 8, "log": 8, "sin": 8, "cos": 8, "tanh": 8, "sqrt": 4, "div": 2, "rem": 4, "rounded": 8}
"""The words that cost more than an addition ↦ how many additions they cost."""
LEAVES: Final = ("const", "var", "size", "load")
"""const: `value` is a Python number. var: `value` is (name, bound): a loop variable runs over 0 … bound − 1; bound is
None for other variables (arguments of a row's body, accumulators). size: `value` is a Dim. load: `value` is the number
of a buffer, and the only argument is the flat int32 index. (The `value` of a rounded is the type to which it rounds.)"""

_KINDS: Final = {
    "num": lambda d: d is not bool_,
    "float": lambda d: d.is_float,
    "logic": lambda d: d is bool_ or d.is_int,
    "int": lambda d: d.is_int,
    "signed": lambda d: d.kind == "int",
    "any": lambda d: True,
}


class Expr:
    """A frozen, interned expression. Build one with the functions of this module or with Python's operators."""

    __slots__ = ("__weakref__", "args", "dtype", "value", "word")
    word: str
    args: tuple[Expr, ...]
    dtype: DType
    value: Any

    def __add__(self, other: ExprLike) -> Expr:
        return add(self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return add(other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return sub(self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return sub(other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return mul(self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return mul(other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return div(self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return div(other, self)

    def __neg__(self) -> Expr:
        return neg(self)

    def __lt__(self, other: ExprLike) -> Expr:
        return lt(self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return le(self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return lt(other, self)

    def __ge__(self, other: ExprLike) -> Expr:
        return le(other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return and_(self, other)

    def __or__(self, other: ExprLike) -> Expr:
        return or_(self, other)

    def __invert__(self) -> Expr:
        return not_(self)

    def __bool__(self) -> bool:
        raise TypeError("a scalar expression has no truth value while a row is built; use select(condition, a, b)")

    def __repr__(self) -> str:
        return text(self)


_interned: Final[weakref.WeakValueDictionary[Any, Expr]] = weakref.WeakValueDictionary()
_interning: Final = threading.Lock()


def exact(value: Any) -> Any:
    """A key that is equal for values of one type and with the same bits: it tells 0.0 from -0.0, and 1 from True."""
    kind = value.__class__
    if kind is int or kind is str or value is None:
        return kind, value
    if isinstance(value, tuple):
        return tuple([exact(v) for v in value])
    return kind, struct.pack("d", value) if isinstance(value, float) else value


def _make(word: str, args: tuple[Expr, ...], dtype: DType, value: Any = None) -> Expr:
    key = (word, args, dtype, None if value is None else exact(value))
    found = _interned.get(key)
    if found is None:
        found = Expr()
        found.word, found.args, found.dtype, found.value = word, args, dtype, value
        with _interning:  # two threads must not make one expression twice
            found = _interned.setdefault(key, found)
    return found


# --- leaves ---------------------------------------------------------------------------------------------------------


def const(value: Number, dtype: DType) -> Expr:
    """A constant of a compute type; integers wrap to its width, floats are rounded to it."""
    if dtype is bool_:
        return _make("const", (), bool_, bool(value))
    if not dtype.is_int:
        with np.errstate(over="ignore"):
            return _make("const", (), dtype, dtype.numpy.type(value).item())
    least = dtype.limits[0]
    return _make("const", (), dtype, (int(value) - least) % (1 << dtype.bits) + least)


def var(name: str, dtype: DType = int32, bound: Dim | None = None) -> Expr:
    """A named value; with a bound, a loop variable that runs over 0 … bound − 1 (the constant 0 if bound is 1)."""
    return const(0, dtype) if bound == 1 else _make("var", (), dtype, (name, bound))


def size(dim: Dim) -> Expr:
    """A dimension as an int32 value."""
    return const(dim, int32) if isinstance(dim, int) else _make("size", (), int32, dim)


def load(buffer: int, index: Expr, stored: DType) -> Expr:
    """The element of a buffer at a flat index, widened to its compute type."""
    return _make("load", (index,), stored.compute, buffer)


# --- words ----------------------------------------------------------------------------------------------------------


def _meet(word: str, arguments: tuple[ExprLike, ...]) -> tuple[Expr, ...]:
    """Arguments as expressions of one type: Python numbers take the type of the other arguments."""
    typed = None
    for a in arguments:
        if isinstance(a, Expr):
            typed = a.dtype
            break
    else:
        typed = (
            bool_
            if isinstance(arguments[0], bool)
            else int32
            if all(isinstance(a, int) for a in arguments)
            else float32
        )
    args = tuple([a if isinstance(a, Expr) else const(a, typed) for a in arguments])
    kind = WORDS[word].kinds
    if [a for a in args if a.dtype is not typed] or not _KINDS[kind](typed):
        raise DTypeError(
            f"{word} takes {WORDS[word].arity} {kind} value(s) of one type, got {', '.join(map(repr, (a.dtype for a in args)))}"
        )
    return args


def _apply(word: str, *argument: ExprLike) -> Expr:
    args = _meet(word, argument)
    row = WORDS[word]
    if not [a for a in args if a.word != "const"]:
        return _folded(word, args, result_of(word, args[0].dtype))
    if row.commutes and args[0].word == "const":
        args = (args[1], args[0])
    for rule in _RULES.get(word, ()):
        found = rule(*args)
        if found is not None:
            return found
    return _make(word, args, result_of(word, args[0].dtype))


def result_of(word: str, argument_dtype: DType) -> DType:
    """The type of a word's result from that of its (first) argument, unless the word is given a type."""
    kind = WORDS[word].result
    return bool_ if kind == "bool" else argument_dtype if kind == "same" else DTYPES[f"{kind}{argument_dtype.bits}"]


def _folded(word: str, args: tuple[Expr, ...], dtype: DType) -> Expr:
    with np.errstate(all="ignore"):
        return const(NUMPY[word](*(np.asarray(a.value, a.dtype.numpy) for a in args)).item(), dtype)


def _is(e: Expr, value: Number) -> bool:
    return e.word == "const" and e.value == value


def _integral(e: Expr) -> bool:
    return e.dtype.is_int


def _chain(word: str, a: Expr, b: Expr) -> bool:
    """Whether this is (x ∘ constant) ∘ constant in integers, which can be one step."""
    return _integral(a) and a.word == word and a.args[1].word == "const" and b.word == "const"


# x + 0.0 is x except for x = −0.0; x · 0 is 0 in integers only.
_RULES: Final[Mapping[str, tuple[Callable[..., Expr | None], ...]]] = {
    "add": (lambda a, b: a if _is(b, 0) else None,
            lambda a, b: add(a.args[0], const(a.args[1].value + b.value, a.dtype)) if _chain("add", a, b) else None),
    "sub": (lambda a, b: a if _is(b, 0) else None,
            lambda a, b: add(a, const(-b.value, a.dtype)) if _integral(a) and b.word == "const" else None),
    "mul": (lambda a, b: a if _is(b, 1) else None,
            lambda a, b: b if _integral(a) and _is(b, 0) else None,
            lambda a, b: mul(a.args[0], const(a.args[1].value * b.value, a.dtype)) if _chain("mul", a, b) else None),
    "div": (lambda a, b: a if _is(b, 1) else None,),
    "rem": (lambda a, b: const(0, a.dtype) if _integral(a) and _is(b, 1) else None,),
    "min": (lambda a, b: a if a is b else None,),
    "max": (lambda a, b: a if a is b else None,),
    "neg": (lambda a: a.args[0] if a.word == "neg" else None,),
    "and": (lambda a, b: a if a is b or (_is(b, True) and b.dtype is bool_) else None, lambda a, b: b if _is(b, False) else None),
    "or": (lambda a, b: a if a is b or _is(b, False) else None, lambda a, b: b if _is(b, True) and b.dtype is bool_ else None),
    "not": (lambda a: a.args[0] if a.word == "not" else None,),
    "eq": (lambda a, b: const(True, bool_) if a is b and (a.dtype is bool_ or a.dtype.is_int) else None,),
}  # fmt: skip


def _unary(word: str) -> Callable[[ExprLike], Expr]:
    return lambda a: _apply(word, a)


def _binary(word: str) -> Callable[[ExprLike, ExprLike], Expr]:
    return lambda a, b: _apply(word, a, b)


add = _binary("add")
sub = _binary("sub")
mul = _binary("mul")
div = _binary("div")
rem = _binary("rem")
minimum = _binary("min")
maximum = _binary("max")
neg = _unary("neg")
absolute = _unary("abs")
sqrt = _unary("sqrt")
exp = _unary("exp")
log = _unary("log")
sin = _unary("sin")
cos = _unary("cos")
tanh = _unary("tanh")
floor = _unary("floor")
ceil = _unary("ceil")
round_ = _unary("round")
isnan = _unary("isnan")
bits = _unary("bits")
of_bits = _unary("of_bits")
eq = _binary("eq")
lt = _binary("lt")
le = _binary("le")
and_ = _binary("and")
or_ = _binary("or")
xor = _binary("xor")
not_ = _unary("not")
shl = _binary("shl")
shr = _binary("shr")


def ne(a: ExprLike, b: ExprLike) -> Expr:
    return not_(eq(a, b))


def select(condition: Expr, a: ExprLike, b: ExprLike) -> Expr:
    """a where the condition holds, b elsewhere; both are evaluated."""
    if condition.dtype is not bool_:
        raise DTypeError(f"select takes a bool condition, got {condition.dtype}")
    a, b = _meet("select", (a, b))
    if condition.word == "const":
        return a if condition.value else b
    return a if a is b else _make("select", (condition, a, b), a.dtype)


def cast(a: Expr, to: DType) -> Expr:
    """The value converted to another compute type."""
    if a.dtype is to:
        return a
    if a.word == "const":
        return const(convert(np.asarray(a.value, a.dtype.numpy), to.numpy).item(), to)
    if a.word == "cast" and all(x.is_int for x in (a.args[0].dtype, a.dtype, to)):
        first, between = a.args[0], a.dtype
        if between.size >= max(first.dtype.size, to.size):  # a type that is wide enough keeps all bits
            return cast(first, to)
    return _make("cast", (a,), to)


def rounded(a: Expr, to: DType) -> Expr:
    """A value of the compute type of `to`, rounded to `to` if that is a narrower float type."""
    if not to.is_float or to.compute is to or (a.word == "rounded" and a.value is to):
        return a
    if a.dtype is not to.compute:
        raise DTypeError(f"rounded takes a value of {to.compute} for {to}, got {a.dtype}")
    e = _make("rounded", (a,), a.dtype, to)
    return const(function(e)(np.asarray(a.value, a.dtype.numpy)).item(), a.dtype) if a.word == "const" else e


def unrounded(e: Expr, stored: DType) -> Expr:
    """The value without roundings that a store to `stored` does too."""
    return e.args[0] if e.word == "rounded" and e.value is stored else e


def wrap(e: Expr, stored: DType) -> Expr:
    """A value of the compute type of `stored`, wrapped to the width of `stored` if that is an integer type."""
    spare = 8 * stored.compute.size - stored.bits
    if not stored.is_int or not spare:
        return e
    return and_(e, stored.limits[1]) if stored.kind == "uint" else shr(shl(e, spare), spare)


def clip(a: ExprLike, low: ExprLike, high: ExprLike) -> Expr:
    return minimum(maximum(a, low), high)


def make(word: str, args: tuple[Expr, ...], dtype: DType, value: Any = None) -> Expr:
    """An expression from its parts, through the constructors that simplify (for rebuilding and decoding)."""
    if word in LEAVES:
        return const(value, dtype) if word == "const" else _make(word, args, dtype, value)
    if word == "cast":
        return cast(args[0], dtype)
    if word == "rounded":
        return rounded(args[0], value)
    return select(*args) if word == "select" else _apply(word, *args)


# --- folding: one expression, many meanings --------------------------------------------------------------------------


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """Every expression below the roots once, arguments before users."""
    order: dict[Expr, None] = {}
    stack = [*roots]
    stack.reverse()
    while stack:
        e = stack[-1]
        waiting = [a for a in e.args if a not in order] if e not in order else ()
        if waiting:
            waiting.reverse()
            stack += waiting
        else:
            order[e] = None
            stack.pop()
    return [*order]


def fold(roots: Iterable[Expr], step: Callable[[Expr, tuple[T, ...]], T]) -> list[T]:
    """Evaluate expressions bottom-up: `step(expression, results of its arguments)`, once for each shared part."""
    roots = list(roots)
    done: dict[Expr, T] = {}
    for e in postorder(roots):
        done[e] = step(e, tuple([done[a] for a in e.args]))
    return [done[r] for r in roots]


def substitute(e: Expr, replace: Mapping[Expr, Expr]) -> Expr:
    """The expression with parts replaced, simplified again on the way up."""
    return fold(
        [e],
        lambda x, args: replace[x] if x in replace else x if args == x.args else make(x.word, args, x.dtype, x.value),
    )[0]


def complete(target: str, spellings: Mapping[str, T]) -> Mapping[str, T]:
    """The spellings, after a check that every word has one: an incomplete target fails at import, not at dispatch."""
    missing = WORDS.keys() - spellings.keys()
    unknown = spellings.keys() - WORDS.keys() - set(LEAVES)
    if missing or unknown:
        raise NotImplementedError(
            f"target {target}: no spelling for {sorted(missing)}, unknown words {sorted(unknown)}"
        )
    return spellings


complete("numpy", {**NUMPY, "cast": convert, "rounded": convert})


def function(e: Expr) -> Callable[..., Any]:
    """A word in NumPy, as a function of its arguments."""
    if e.word == "cast":
        return lambda a: convert(np.asarray(a), e.dtype.numpy)
    if e.word == "rounded":
        return lambda a: convert(convert(np.asarray(a), e.value.numpy), e.dtype.numpy)
    return NUMPY[e.word]


# --- text and data ---------------------------------------------------------------------------------------------------


LONG: Final = 1000
"""The most characters of an expression's part in a text; written out, shared parts may be very many."""


def text(e: Expr) -> str:
    """The expression as text for people: max(add(x, 1.0), 0.0). Of longer parts than LONG it has a digest."""

    def step(x: Expr, args: tuple[str, ...]) -> str:
        found = spelled(x, args)
        return found if len(found) <= LONG else f"#{sha256(found.encode()).hexdigest()[:16]}"

    def spelled(x: Expr, args: tuple[str, ...]) -> str:
        if x.word == "const":
            return repr(x.value)
        if x.word == "var":
            return x.value[0]
        if x.word == "size":
            return f"{{{x.value}}}"
        if x.word == "load":
            return f"b{x.value}[{args[0]}]"
        name = {"cast": x.dtype, "rounded": x.value}.get(x.word, x.word)
        return f"{name}({', '.join(args)})"

    return fold([e], step)[0]
