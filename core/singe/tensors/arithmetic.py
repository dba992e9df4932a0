"""Elementwise functions as a table: the row that computes each, and NumPy's function for dtypes that the row lacks.

`compute` converts the operands to their common dtype, and runs the row on the device; without one, NumPy runs on the
host. Results follow NumPy and the Python array API standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..dtypes import COMPLEX, SINGLES, DType, bool_, float32, int32
from ..errors import DTypeError
from ..ops import ROWS, Elementwise
from .calls import elementwise, operand
from .nodes.promotion import PLAIN, common_type
from .numpy_fallback import numpy_fallback
from .tensor import Tensor, home_of, value_on

REAL: Final = ("float",)
FLOATING: Final = ("float", "complex")
REALS: Final = ("int", "uint", "float")
NUMERIC: Final = ("int", "uint", "float", "complex")
WHOLE: Final = ("bool", "int", "uint")
ANY: Final = ("bool", "int", "uint", "float", "complex")


@dataclass(frozen=True)
class ElementwiseFunction:
    """numpy: the function over arrays. row: the name of the row, where there is one. kinds: those of the operands that
    it takes; with `widens`, integers become float32 first. same: kinds of which each element is its own result.
    bools: the row for bools, if that is another one. truths: numbers count as bools, true unless they are 0. whole: the
    comparison of an integer with itself that gives what the function says of every integer. composed: the function of
    float32, of others that are rows. doc: what it gives, where no row says so."""

    numpy: Callable[..., Any]
    row: str = ""
    kinds: tuple[str, ...] = NUMERIC
    widens: bool = False
    same: tuple[str, ...] = ()
    bools: str = ""
    truths: bool = False
    whole: str = ""
    composed: Callable[..., Any] | None = None
    doc: str = ""


def _floating(
    numpy: Callable[..., Any], row: str = "", kinds: tuple[str, ...] = FLOATING, composed: Any = None, doc: str = ""
) -> ElementwiseFunction:
    return ElementwiseFunction(numpy, row, kinds, widens=True, composed=composed, doc=doc)


def _rounding(
    numpy: Callable[..., Any], row: str = "", kinds: tuple[str, ...] = REALS, composed: Any = None, doc: str = ""
) -> ElementwiseFunction:
    return ElementwiseFunction(numpy, row, kinds, same=("int", "uint"), composed=composed, doc=doc)


def _expm1(x: Any) -> Any:
    """eˣ − 1 without the cancellation near 0: of t = tanh(x / 2), 2 · t / (1 − t)."""
    t = (x.clip(-1, 1) * 0.5).tanh()  # beyond, where the other branch is taken, the gradient must be finite, too
    return (2 * t / (1 - t)).where(abs(x) < 1, x.exp() - 1)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _sign(x: Any) -> Any:
    return np.where(x == 0, 0, x / np.abs(x)).astype(x.dtype) if x.dtype.kind == "c" else np.sign(x)


FUNCTIONS: Final = {
    "abs": ElementwiseFunction(np.abs, "abs"),
    "acos": _floating(np.arccos, "acos"),
    "acosh": _floating(np.arccosh, "acosh"),
    "add": ElementwiseFunction(np.add, "add"),
    "asin": _floating(np.arcsin, "asin"),
    "asinh": _floating(np.arcsinh, "asinh"),
    "atan": _floating(np.arctan, "atan"),
    "atan2": _floating(np.arctan2, "atan2", REAL),
    "atanh": _floating(np.arctanh, "atanh"),
    "bitwise_and": ElementwiseFunction(np.bitwise_and, "bitwise_and", WHOLE, bools="logical_and"),
    "bitwise_left_shift": ElementwiseFunction(np.left_shift, "bitwise_left_shift", ("int", "uint")),
    "bitwise_not": ElementwiseFunction(np.invert, "bitwise_not", WHOLE, bools="logical_not"),
    "bitwise_or": ElementwiseFunction(np.bitwise_or, "bitwise_or", WHOLE, bools="logical_or"),
    "bitwise_right_shift": ElementwiseFunction(np.right_shift, "bitwise_right_shift", ("int", "uint")),
    "bitwise_xor": ElementwiseFunction(np.bitwise_xor, "bitwise_xor", WHOLE, bools="logical_xor"),
    "ceil": _rounding(np.ceil, "ceil"),
    "conj": ElementwiseFunction(np.conj, same=("bool", "int", "uint", "float"), doc="the complex conjugate"),
    "copysign": _floating(np.copysign, "copysign", REAL),
    "cos": _floating(np.cos, "cos"),
    "cosh": _floating(np.cosh, "cosh"),
    "div": _floating(np.divide, "div"),
    "equal": ElementwiseFunction(np.equal, "equal", (*ANY, "string")),
    "erf": _floating(np.vectorize(math.erf, otypes=[float]), "erf", REAL),
    "exp": _floating(np.exp, "exp"),
    "expm1": _floating(np.expm1, composed=_expm1, doc="e^x − 1, exact for small x"),
    "floor": _rounding(np.floor, "floor"),
    "floor_divide": ElementwiseFunction(np.floor_divide, "floor_divide", REALS),
    "fmod": ElementwiseFunction(np.fmod, "fmod", REALS),
    "gcd": ElementwiseFunction(np.gcd, "gcd", ("int", "uint")),
    "greater": ElementwiseFunction(np.greater, "greater", REALS),
    "greater_equal": ElementwiseFunction(np.greater_equal, "greater_equal", REALS),
    "hypot": _floating(np.hypot, "hypot", REAL),
    "imag": ElementwiseFunction(np.imag, "", ("complex",), doc="the imaginary part"),
    "isfinite": ElementwiseFunction(
        np.isfinite,
        "",
        ANY,
        whole="equal",
        composed=lambda x: abs(x) < math.inf,
        doc="whether it is a number and not infinite",
    ),
    "isinf": ElementwiseFunction(np.isinf, "is_inf", ANY, whole="less"),
    "isnan": ElementwiseFunction(np.isnan, "is_nan", ANY, whole="less"),
    "lcm": ElementwiseFunction(np.lcm, "lcm", ("int", "uint")),
    "less": ElementwiseFunction(np.less, "less", REALS),
    "less_equal": ElementwiseFunction(np.less_equal, "less_equal", REALS),
    "log": _floating(np.log, "log"),
    "log10": _floating(np.log10, composed=lambda x: x.log() / math.log(10), doc="the logarithm to base 10"),
    "log1p": _floating(np.log1p, "log1p"),
    "log2": _floating(np.log2, composed=lambda x: x.log() / math.log(2), doc="the logarithm to base 2"),
    "logaddexp": _floating(np.logaddexp, "logaddexp", REAL),
    "logical_and": ElementwiseFunction(np.logical_and, "logical_and", ANY, truths=True),
    "logical_not": ElementwiseFunction(np.logical_not, "logical_not", ANY, truths=True),
    "logical_or": ElementwiseFunction(np.logical_or, "logical_or", ANY, truths=True),
    "logical_xor": ElementwiseFunction(np.logical_xor, "logical_xor", ANY, truths=True),
    "maximum": ElementwiseFunction(np.maximum, "maximum", REALS),
    "minimum": ElementwiseFunction(np.minimum, "minimum", REALS),
    "mul": ElementwiseFunction(np.multiply, "mul"),
    "neg": ElementwiseFunction(np.negative, "neg"),
    "nextafter": _floating(np.nextafter, "nextafter", REAL),
    "pow": ElementwiseFunction(np.power, "pow"),
    "real": ElementwiseFunction(np.real, same=("bool", "int", "uint", "float"), doc="the real part"),
    "reciprocal": _floating(np.reciprocal, "reciprocal"),
    "remainder": ElementwiseFunction(np.remainder, "remainder", REALS),
    "round": _rounding(np.round, "round", NUMERIC),
    "sigmoid": _floating(_sigmoid, "sigmoid", REAL),
    "sign": ElementwiseFunction(_sign, "sign", same=("bool",)),
    "signbit": ElementwiseFunction(np.signbit, "signbit", REALS),
    "sin": _floating(np.sin, "sin"),
    "sinh": _floating(np.sinh, "sinh"),
    "sqrt": _floating(np.sqrt, "sqrt"),
    "sub": ElementwiseFunction(np.subtract, "sub"),
    "tan": _floating(np.tan, "tan"),
    "tanh": _floating(np.tanh, "tanh"),
    "trunc": _rounding(
        np.trunc, composed=lambda x: x.ceil().where(x < 0, x.floor()), doc="the whole number without the fraction"
    ),
}
"""The table, by the names of Tensor's methods."""


def compute(name: str, *operands: Any) -> Tensor:
    """The function of this name over tensors, arrays and numbers, of which one is a tensor or an array."""
    kinds: list[Any] = [name]
    for x in operands:
        kinds.append(x.dtype.name if isinstance(x, Tensor) else type(x))
    key = tuple(kinds)
    known = _rows.get(key)
    if known is not None:
        row, kind = known
        return elementwise(
            row, [x.cast(kind) if isinstance(x, Tensor) and x.dtype is not kind else x for x in operands]
        )
    function = FUNCTIONS[name]
    given = placed(*operands)
    kind = common_type(given)
    if function.widens and kind.kind in WHOLE:
        kind = float32
    if kind.kind not in function.kinds and kind.kind not in function.same:
        raise DTypeError(
            f"{name}: got {kind}, expected elements of the kinds {', '.join(function.kinds)}; cast them first"
        )
    if kind.kind in function.same:
        return given[0]
    if function.truths and kind not in COMPLEX:
        kind = bool_
    if function.whole and kind.kind in WHOLE:
        x = given[0].cast(int32) if kind is bool_ else given[0]
        return compute(function.whole, x, x)
    if function.composed and kind in SINGLES:
        made = function.composed(*(_cast(x, float32) for x in given))
        return made if made.dtype is bool_ else made.cast(kind)
    row = ROWS.get(function.bools if kind is bool_ and function.bools else function.row)
    if isinstance(row, Elementwise) and kind in row.dtypes:
        if all(isinstance(x, (Tensor, int, float)) for x in operands):
            _rows[key] = row, kind
        return elementwise(row, [_cast(x, kind) for x in given])
    return numpy_fallback(name, function.numpy, *(_cast(x, kind, always=True) for x in given))


_rows: Final[dict[tuple[Any, ...], tuple[Elementwise, DType]]] = {}
"""A function and the types of its operands ↦ the row that computes it, and the dtype that the operands are converted to."""


def placed(*operands: Any) -> list[Any]:
    """The operands, with arrays as tensors on the device of the others, and NumPy's scalars as numbers."""
    home = home_of(operands)
    return [Tensor(home, value_on(home, x)) if isinstance(x, np.ndarray) else operand(x) for x in operands]


def _cast(x: Any, kind: DType, always: bool = False) -> Any:
    """A tensor in a dtype; a number as an array of it if it must be one."""
    if isinstance(x, PLAIN):
        return np.asarray(x, kind.numpy) if always else x
    return x.cast(kind)
