"""Constants, conversions, and elementwise ops that differ a little from rows:
optional inputs, any number of inputs, old attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import numpy as np

from ....dtypes import DTYPES, STORED, DType, dtype, float8_e8m0fnu, float32, strings, widened
from ....graph import Node, Value
from ....ir.arrays import convert
from ....ops import as_dtype
from ....shapes import broadcast, ceildiv, dim_max, product
from ...tensors import ELEMENTS, UNTYPED, OnnxSparse, dense, is_typed
from .._call import MAX_FOLDED, Call, adapter


def tensor_node(call: Call, tensor: Any) -> Node:
    """A tensor in the file as a constant."""
    if isinstance(tensor, OnnxSparse):
        return call.b.const(dense(tensor))
    if is_typed(tensor):
        return call.b.const(tensor)
    kind = UNTYPED if isinstance(tensor, np.ndarray) else f"a {type(tensor).__name__}"
    raise call.fail(f"the constant is {kind}")


CONSTANTS: Final[Mapping[str, Callable[[Call], Any]]] = {
    "value": lambda call: call.attributes["value"],
    "sparse_value": lambda call: call.attributes["sparse_value"],
    "value_float": lambda call: np.array(call.attr("value_float", 0.0), np.float32),
    "value_floats": lambda call: np.array(call.items("value_floats", float), np.float32),
    "value_int": lambda call: np.array(call.attr("value_int", 0), np.int64),
    "value_ints": lambda call: np.array(call.items("value_ints", int), np.int64),
    "value_string": lambda call: strings(call.attr("value_string", "")),
    "value_strings": lambda call: strings(call.items("value_strings", str)),
}
"""The attributes that may hold the value of a Constant ↦ the tensor that one gives."""


@adapter("Constant")
def _constant(call: Call) -> Node:
    given = [name for name in call.attributes if name in CONSTANTS]
    if len(given) != 1:
        raise call.fail(
            f"a Constant must have one of {', '.join(CONSTANTS)}; got {', '.join(call.attributes) or 'none'}"
        )
    return tensor_node(call, CONSTANTS[given[0]](call))


@adapter("Identity", objects=True)
def _identity(call: Call) -> list[Value]:
    if not call.values:
        raise call.fail("the input is missing")
    return [call.values[0]]


def dtype_of_code(call: Call, code: int) -> DType:
    element = ELEMENTS.get(code)
    if element is None:
        raise call.fail(f"a cast to type {code}; Singe has {', '.join(DTYPES)}")
    return dtype(element.name)


def cast(call: Call, x: Node, to: DType) -> Node:
    return as_dtype(call.b, x, to)


def saturating(call: Call, x: Node, to: DType) -> Node:
    """A cast with the attribute "saturate": unless it is 0, numbers beyond a float8's range become the largest float8."""
    if x.dtype is to or not (to.is_float and to in STORED) or call.flag("saturate", True):
        return cast(call, x, to)
    return call.b.cast(x, to=to, saturate=False)


def _converted(call: Call, to: DType) -> Node:
    """The input as another type, with the attributes of Cast and CastLike: "saturate" for float8, and "round_mode" for
    float8_e8m0fnu, whose values are powers of two."""
    x, b = call.x(), call.b
    mode = call.attr("round_mode", "up")
    if mode not in ("up", "down", "nearest"):
        raise call.fail(f"round_mode is {mode!r}; expected up, down or nearest")
    if to is float8_e8m0fnu and x.dtype is not to and mode != "nearest":
        x = cast(call, x, float32)
        nearest = b.cast(b.cast(x, to=to), to=float32)
        other = b.mul(nearest, b.const(2.0 if mode == "up" else 0.5, float32))
        x = b.where(b.less(nearest, x) if mode == "up" else b.less(x, nearest), other, nearest)
    return saturating(call, x, to)


@adapter("Cast")
def _cast(call: Call) -> Node:
    return _converted(call, dtype_of_code(call, call.attr("to", 0)))


@adapter("CastLike")
def _cast_like(call: Call) -> Node:
    return _converted(call, call.x(1).dtype)


def _bound(call: Call, name: str, i: int) -> Node | None:
    """Clip's bound: an attribute before version 11, a scalar input since."""
    if name in call.attributes:
        return call.b.const(call.attr(name, 0.0), call.x().dtype)
    bound = call.maybe(i)
    return bound if bound is None or bound.shape == () else call.b.reshape(bound, shape=())


@adapter("Clip")
def _clip(call: Call) -> Node:
    x, low, high, b = call.x(), _bound(call, "min", 1), _bound(call, "max", 2), call.b
    if low is not None and high is not None:
        return b.clip(x, low, high)
    if low is not None:
        return b.maximum(x, low)
    return x if high is None else b.minimum(x, high)


@adapter("Max")
def _max(call: Call) -> Node:
    return reduce(call.b.maximum, call.all())


@adapter("Min")
def _min(call: Call) -> Node:
    return reduce(call.b.minimum, call.all())


@adapter("Sum")
def _sum(call: Call) -> Node:
    return reduce(call.b.add, call.all())


@adapter("Mean")
def _mean(call: Call) -> Node:
    xs = call.all()
    total = reduce(call.b.add, xs)
    return call.b.div(total, call.b.const(len(xs), total.dtype))


@adapter("PRelu")
def _prelu(call: Call) -> Node:
    x, slope, b = call.x(), call.x(1), call.b
    if call.version < 7 and len(slope.shape) == 1 and len(x.shape) > 1:  # one slope for each channel
        slope = b.reshape(slope, shape=(*slope.shape, *(1,) * (len(x.shape) - 2)))
    return b.where(b.less(x, b.const(0, x.dtype)), b.mul(x, slope), x)


@adapter("Gemm")
def _gemm(call: Call) -> Node:
    if len(call.x().shape) != 2 or len(call.x(1).shape) != 2:
        raise call.fail(f"Gemm takes two matrices, got ranks {len(call.x().shape)} and {len(call.x(1).shape)}")
    return call.b.gemm(
        call.x(), call.x(1), call.maybe(2),
        alpha=call.attr("alpha", 1.0), beta=call.attr("beta", 1.0), trans_a=call.flag("transA"), trans_b=call.flag("transB"),
    )  # fmt: skip


@adapter("Range")
def _range(call: Call) -> Node:
    b, kind = call.b, call.x().dtype
    given = [call.x(i) for i in range(3)]
    if any(product(x.shape) != 1 for x in given):
        raise call.fail("Range takes three scalars")
    if call.is_computed(0, 1, 2) or call.value(2).dtype == object:
        (count,) = call.found("range_size", *given)
        return b.arange(b.reshape(given[0], shape=()), b.reshape(given[2], shape=()), count=count)
    if any(call.value(i).dtype == object for i in range(2)):
        first, end = (call.dims(i)[0] for i in range(2))
        (by,) = call.ints(2)
        if by == 0:
            raise call.fail(f"a range from {first} to {end} by 0")
        count = dim_max(ceildiv(end - first, by) if by > 0 else ceildiv(first - end, -by), 0)
        return b.arange(b.const(first, kind), b.const(by, kind), count=count)
    start, limit, delta = (widened(call.value(i)).reshape(())[()] for i in range(3))
    steps = (float(limit) - float(start)) / float(delta) if delta else math.nan
    if not steps <= MAX_FOLDED:
        raise call.fail(f"a range from {start} to {limit} by {delta}; it must end, within {MAX_FOLDED} steps")
    wide = np.float64 if kind.is_float else np.int64
    places = np.arange(max(0, math.ceil(steps)), dtype=wide)
    return b.const(convert(wide(start) + places * wide(delta), kind.numpy))


@adapter("Selu")
def _selu(call: Call) -> Node:
    x, b = call.x(), call.b
    scaled = b.elu(x, alpha=call.attr("alpha", 1.6732631921768188))
    return b.mul(scaled, b.const(call.attr("gamma", 1.0507010221481323), x.dtype))


@adapter("Pow")
def _pow(call: Call) -> Node:
    x, y, b = call.x(), call.x(1), call.b
    if y.value is not None and y.value.dtype != object and y.value.size == 1 and y.value.item() in (1, 2, 3):
        shape = broadcast([x.shape, y.shape], "Pow")
        return b.expand(reduce(b.mul, [x] * int(y.value.item())), shape=shape)
    if x.dtype.is_float or y.dtype.is_float:
        kind = x.dtype if x.dtype.is_float else float32
        return cast(call, b.pow(cast(call, x, kind), cast(call, y, kind)), x.dtype)
    return b.pow(x, cast(call, y, x.dtype))


@adapter("Softsign")
def _softsign(call: Call) -> Node:
    x, b = call.x(), call.b
    return b.div(x, b.add(b.abs(x), b.const(1, x.dtype)))


def power(call: Call, x: Node, exponent: float) -> Node:
    """x to a constant power; x must be at least 0."""
    b = call.b
    if exponent == 1:
        return x
    if exponent == 2:
        return b.mul(x, x)
    if exponent == 0.5:
        return b.sqrt(x)
    wide = cast(call, x, float32)
    return cast(call, b.exp(b.mul(b.log(wide), b.const(exponent, float32))), x.dtype)
