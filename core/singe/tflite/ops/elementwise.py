"""Ops that compute each element by itself, and conversions of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ...dtypes import bool_, float32
from ...errors import ImportFailure
from ...graph import Builder, Node
from ...ops import as_dtype
from ._call import BOUNDS, Numbers, TfliteCall, bounded, dtype_of, is_quantised, op
from .numbers import dequantised, quantised, requantised

ROWS: Final[dict[str, str]] = {
    "ABS": "abs", "ADD": "add", "ATAN2": "atan2", "BITWISE_XOR": "bitwise_xor", "CEIL": "ceil", "COS": "cos", "DIV": "div", "ELU": "elu", "EQUAL": "equal",
    "EXP": "exp", "FLOOR": "floor", "FLOOR_DIV": "floor_divide", "FLOOR_MOD": "remainder", "GREATER": "greater", "GREATER_EQUAL": "greater_equal",
    "HARD_SWISH": "hard_swish", "LESS": "less", "LESS_EQUAL": "less_equal", "LOG": "log", "LOGICAL_AND": "logical_and", "LOGICAL_NOT": "logical_not",
    "LOGICAL_OR": "logical_or", "LOGISTIC": "sigmoid", "MAXIMUM": "maximum", "MINIMUM": "minimum", "MUL": "mul", "NEG": "neg", "POW": "pow",
    "RELU": "relu", "RIGHT_SHIFT": "bitwise_right_shift", "ROUND": "round", "SIGN": "sign", "SIN": "sin", "SQRT": "sqrt", "SUB": "sub", "TANH": "tanh",
}  # fmt: skip
"""Op ↦ the row that computes the same of the same operands."""


def _row(row: str) -> Callable[[TfliteCall], Node]:
    return lambda call: getattr(call.b, row)(*call.all())


def _within(low: float, high: float) -> Callable[[TfliteCall], Node]:
    return lambda call: bounded(call.b, call.x(), low, high)


TIES_UP: Final = frozenset({"ADD", "SUB"})
"""Ops that round quantised numbers up where two integers are equally near."""

for _name, _of in ROWS.items():
    op(_name, ties_up=_name in TIES_UP)(_row(_of))
for _name in BOUNDS.keys() - ROWS.keys():
    op(_name)(_within(*BOUNDS[_name]))


@op("ADD_N", ties_up=True)
def _add_n(call: TfliteCall) -> Node:
    first, *others = call.all()
    for x in others:
        first = call.b.add(first, x)
    return first


@op("NOT_EQUAL")
def _not_equal(call: TfliteCall) -> Node:
    return call.b.logical_not(call.b.equal(call.x(), call.x(1)))


@op("SQUARE")
def _square(call: TfliteCall) -> Node:
    return call.b.mul(call.x(), call.x())


@op("SQUARED_DIFFERENCE")
def _squared_difference(call: TfliteCall) -> Node:
    gap = call.b.sub(call.x(), call.x(1))
    return call.b.mul(gap, gap)


@op("RSQRT")
def _rsqrt(call: TfliteCall) -> Node:
    return call.b.reciprocal(call.b.sqrt(call.x()))


@op("LEAKY_RELU", ties_up=True)
def _leaky_relu(call: TfliteCall) -> Node:
    return call.b.leaky_relu(call.x(), alpha=float(call.option("alpha")))


@op("GELU")
def _gelu(call: TfliteCall) -> Node:
    return call.b.gelu_tanh(call.x()) if call.option("approximate") else call.b.gelu(call.x())


@op("PRELU", ties_up=True)
def _prelu(call: TfliteCall) -> Node:
    b, x = call.b, call.x()
    return b.where(b.less(x, b.const(0, x.dtype)), b.mul(x, call.x(1)), x)


@op("SELECT", "SELECT_V2", numbers=Numbers.STORED)
def _select(call: TfliteCall) -> Node:
    """The first SELECT takes a vector that chooses along the first axis."""
    b, which, x = call.b, call.x(), call.x(1)
    if call.op.op == "SELECT" and len(which.shape) == 1 < len(x.shape):
        which = b.reshape(which, shape=(*which.shape, *(1,) * (len(x.shape) - 1)))
    return b.where(which, x, call.x(2))


@op("ZEROS_LIKE", numbers=Numbers.STORED)
def _zeros_like(call: TfliteCall) -> Node:
    return call.b.expand(call.b.const(0, call.x().dtype), shape=call.x().shape)


# --- types ---------------------------------------------------------------------------------------------------------


@op("CAST", numbers=Numbers.OWN)
def _cast(call: TfliteCall) -> Node:
    """The numbers themselves, whatever they stand for; as in C, floats are cut."""
    x, to = call.x(), call.dtype()
    if to is bool_:
        return call.b.logical_not(call.b.equal(x, call.b.const(0, x.dtype)))
    return as_dtype(call.b, x, to)


@op("DEQUANTIZE", numbers=Numbers.OWN)
def _dequantize(call: TfliteCall) -> Node:
    x, scale = call.x(), call.scale(0)
    if scale is not None:
        return dequantised(call.b, x, scale)
    if not x.dtype.is_float:
        raise call.fail(f"input 0 is {x.dtype} and has no scale; expected one")
    return as_dtype(call.b, x, float32)


@op("QUANTIZE", numbers=Numbers.OWN)
def _quantize(call: TfliteCall) -> Node:
    x, scale, tensor = call.x(), call.scale(0), call.wanted[0]
    if not is_quantised(tensor) or tensor.quantization is None:
        raise ImportFailure(f"the output is {tensor.dtype} without a scale; expected one")
    if scale is not None:
        return requantised(call.b, x, scale, tensor.quantization, dtype_of(tensor))
    return quantised(call.b, x, tensor.quantization, dtype_of(tensor))


@op("DENSIFY", numbers=Numbers.OWN)
def _densify(call: TfliteCall) -> Node:
    """Sparse constants have their zeros where they are read."""
    return call.x()


def scalar(b: Builder, x: Node) -> Node:
    """The only element of a node, without axes."""
    return b.reshape(x, shape=())


@op("FILL", numbers=Numbers.STORED)
def _fill(call: TfliteCall) -> Node:
    return call.b.expand(scalar(call.b, call.x(1)), shape=call.dims(0))


@op("RANGE")
def _range(call: TfliteCall) -> Node:
    b = call.b
    values = [b.value_of(x) for x in call.all()]
    if len(values) != 3 or any(v is None or v.dtype == object or v.size != 1 for v in values):
        raise call.fail(
            "the start, the end and the step must be known before a run; convert the model with constants there"
        )
    start, end, step = (v.reshape(()) for v in values if v is not None)
    count = int(max(0, np.ceil((end - start) / step))) if step else -1
    if not 0 <= count <= 1 << 24:
        raise call.fail(f"{count} numbers from {start} to {end} by {step}; expected at most {1 << 24}")
    kind = call.x().dtype
    return b.arange(b.const(start, kind), b.const(step, kind), count=count)
