"""What classifiers and regressors share: features as floats, the transforms of scores, labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from ....dtypes import DType, float32, float64, int64, strings
from ....graph import Node
from ....ops.movement.move import numbered
from ....shapes import product
from .._call import Call
from ..elementwise.basic import cast

Post: TypeAlias = "Callable[[Any, Node], Node]"


def rows(call: Call, x: Node) -> Node:
    """Features as a matrix: a vector is one example, and the first of several axes is for examples."""
    if not x.shape:
        raise call.fail(f"the features are {x!r}; expected at least one axis")
    if len(x.shape) == 2:
        return x
    return call.b.reshape(x, shape=(1, *x.shape) if len(x.shape) == 1 else (x.shape[0], product(x.shape[1:])))


def matrix(call: Call, x: Node) -> Node:
    """Features as a matrix of floats. float64 stays, all other types are float32."""
    kind: DType = float64 if x.dtype is float64 else float32
    return cast(call, rows(call, x), kind)


def table(call: Call, argument: Any, kind: DType) -> Node:
    """Numbers of a model as a constant."""
    return call.b.const(np.asarray(argument, kind.numpy), kind)


# --- transforms of scores --------------------------------------------------------------------------------------------


def _softmax_zero(b: Any, x: Node) -> Node:
    """Softmax over the scores that are not 0; the others stay 0, or nearly so."""
    axis = len(x.shape) - 1
    most = b.reduce_max(x, axes=(axis,))
    far = b.greater(b.abs(x), b.const(1e-7, x.dtype))
    powers = b.where(far, b.exp(b.sub(x, most)), b.mul(x, b.exp(b.neg(most))))
    return b.div(powers, b.reduce_sum(powers, axes=(axis,)))


def _probit(b: Any, x: Node) -> Node:
    """The inverse of the normal distribution, by Winitzki's formula, as onnxruntime has it."""

    def number(value: float) -> Node:
        return b.const(value, x.dtype)

    x = b.sub(b.mul(x, number(2.0)), number(1.0))
    log = b.log(b.mul(b.sub(number(1.0), x), b.add(number(1.0), x)))
    v = b.add(number(2 / (math.pi * 0.147)), b.mul(number(0.5), log))
    root = b.sqrt(b.sub(b.sqrt(b.sub(b.mul(v, v), b.mul(number(1 / 0.147), log))), v))
    return b.mul(number(math.sqrt(2)), b.where(b.less(x, number(0.0)), b.neg(root), root))


POSTS: Final[dict[str, Post]] = {
    "NONE": lambda b, x: x,
    "SOFTMAX": lambda b, x: b.softmax(x, axis=len(x.shape) - 1),
    "LOGISTIC": lambda b, x: b.sigmoid(x),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""The transforms of scores, each over the last axis."""


def transformed(call: Call, x: Node, name: str | None = None) -> Node:
    """Scores after the transform that the node names."""
    name = call.attr("post_transform", "NONE") if name is None else name
    if name not in POSTS:
        raise call.fail(f"post_transform is {name!r}; expected one of {', '.join(POSTS)}")
    return POSTS[name](call.b, x)


# --- labels ----------------------------------------------------------------------------------------------------------


def labels(call: Call, texts: str = "classlabels_strings", numbers: str = "classlabels_int64s") -> Node | None:
    """The classes' labels, as strings or integers; None if there are none."""
    found = call.items(texts, str)
    if found:
        return call.b.const(strings(np.array(found, object)))
    given = call.items(numbers, int)
    return call.b.const(np.array(given, np.int64)) if given else None


def largest(call: Call, x: Node) -> Node:
    """The place of the largest score of each row; of equal ones the first."""
    b, count = call.b, x.shape[1]
    places = b.reshape(numbered(b, count, int64), shape=(1, count))
    best = b.equal(x, b.reduce_max(x, axes=(1,)))
    # A row with NaN has no largest score: its label is the first.
    found = b.reduce_min(b.where(best, places, b.const(count, int64)), axes=(1,))
    found = b.reshape(found, shape=(x.shape[0],))
    return b.where(b.less(found, b.const(count, int64)), found, b.const(0, int64))


def chosen(call: Call, names: Node, place: Node) -> Node:
    """The labels at these places."""
    return call.b.gather(names, place, axis=0)


def shifted(call: Call, x: Node, name: str) -> Node:
    """x with the numbers of an attribute added, if it has them."""
    given = call.items(name, float)
    return call.b.add(x, table(call, given, x.dtype)) if given else x
