"""Ops that fold axes: sums, means, extremes, softmax, norms, and the ops of order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...dtypes import bool_, int32
from ...graph import Node
from ...ops import as_dtype
from ...shapes import axes_of
from ._call import Numbers, TfliteCall, op

ROWS: Final[dict[str, tuple[str, Numbers]]] = {
    "MEAN": ("reduce_mean", Numbers.REAL),
    "REDUCE_MAX": ("reduce_max", Numbers.STORED),
    "REDUCE_MIN": ("reduce_min", Numbers.STORED),
    "REDUCE_PROD": ("reduce_prod", Numbers.REAL),
    "SUM": ("reduce_sum", Numbers.REAL),
}
"""Op ↦ the row that folds the same, and what it does with quantised integers."""
LOGICAL: Final = {"REDUCE_ALL": "reduce_min", "REDUCE_ANY": "reduce_max"}
TINY: Final = 1e-6
"""The least sum of squares by which L2_NORMALIZATION divides."""


def _folded(call: TfliteCall, row: str, x: Node) -> Node:
    """x folded along the axes in input 1; axes that are folded stay, with the length 1, if the options say so."""
    axes = axes_of({call.axis(a, len(x.shape)) for a in call.ints(1)}, len(x.shape), call.op.op)
    y = getattr(call.b, row)(x, axes=axes) if axes else x
    kept = call.option("keep")
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if kept or k not in axes)
    return call.b.reshape(y, shape=shape)


def _fold(row: str) -> Callable[[TfliteCall], Node]:
    return lambda call: as_dtype(call.b, _folded(call, row, call.x()), call.x().dtype)


def _logical(row: str) -> Callable[[TfliteCall], Node]:
    return lambda call: call.b.cast(_folded(call, row, call.b.cast(call.x(), to=int32)), to=bool_)


for _name, (_of, _numbers) in ROWS.items():
    op(_name, numbers=_numbers)(_fold(_of))
for _name, _of in LOGICAL.items():
    op(_name)(_logical(_of))


@op("ARG_MAX", "ARG_MIN", numbers=Numbers.OWN)
def _arg(call: TfliteCall) -> Node:
    b, x = call.b, call.x()
    axis = call.axis(call.int(1), len(x.shape))
    place = (b.argmax if call.op.op == "ARG_MAX" else b.argmin)(x, axis=axis)
    shape = tuple(d for k, d in enumerate(x.shape) if k != axis)
    return as_dtype(b, b.reshape(place, shape=shape), call.dtype())


@op("TOPK_V2", numbers=Numbers.OWN)
def _top_k(call: TfliteCall) -> list[Node]:
    x = call.x()
    values, places = call.b.top_k(x, axis=len(x.shape) - 1, k=call.int(1), largest=True)
    return [values, as_dtype(call.b, places, call.dtype(1))]


@op("CUMSUM")
def _cumsum(call: TfliteCall) -> Node:
    """exclusive: each sum excludes its own element."""
    b, x = call.b, call.x()
    sums = b.running_sum(x, axis=call.axis(call.int(1), len(x.shape)), reverse=call.option("reverse"))
    return as_dtype(b, b.sub(sums, x) if call.option("exclusive") else sums, x.dtype)


@op("SOFTMAX")
def _softmax(call: TfliteCall) -> Node:
    b, x, beta = call.b, call.x(), float(call.option("beta"))
    return b.softmax(x if beta == 1 else b.mul(x, b.const(beta, x.dtype)), axis=len(x.shape) - 1)


@op("LOG_SOFTMAX")
def _log_softmax(call: TfliteCall) -> Node:
    return call.b.log_softmax(call.x(), axis=len(call.x().shape) - 1)


@op("L2_NORMALIZATION")
def _l2_normalization(call: TfliteCall) -> Node:
    b, x = call.b, call.x()
    last = len(x.shape) - 1
    squares = b.reshape(b.reduce_sum(b.mul(x, x), axes=(last,)), shape=(*x.shape[:last], 1))
    return b.div(x, b.sqrt(b.maximum(squares, b.const(TINY, x.dtype))))
