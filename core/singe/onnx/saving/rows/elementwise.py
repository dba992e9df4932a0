"""Elementwise rows that ONNX has, or that are a few of its ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ....dtypes import DType, bool_
from ....graph import Node
from ....ops import ROWS, Elementwise
from ..block import Block
from ..facts import SINCE
from ..records import TypeCode
from ..rules import Rule, are_exact, kind_taken

SAME: Final = {"minimum": "Min", "maximum": "Max", "falling_exp": "Exp", "pow": "Pow"}
"""Rows with the meaning of an op whose name they do not have. (falling_exp is exp of numbers that are not positive.)"""


def _data(n: Node) -> Node:
    """The input whose type is the node's common type."""
    return n.inputs[1] if n.op == "where" else n.inputs[0]


def _named(op: str, row: Elementwise) -> Rule:
    def write(w: Block, n: Node, *xs: str) -> str:
        attributes = {k: _plain(v) for k, v in {**row.defaults, **n.attrs}.items()}
        kind, result = _data(n).dtype, n.dtype
        carrier = w.carrier(op, kind)
        assert carrier is not None
        given = [
            w.cast(x, v.dtype, carrier) if v.dtype is kind and v.dtype is not bool_ else x
            for x, v in zip(xs, n.inputs, strict=True)
        ]
        made = w.node(op, *given, **attributes)
        return made if result is bool_ else w.cast(made, carrier, result)

    def takes(w: Block, n: Node) -> bool:
        return w.carrier(op, _data(n).dtype) is not None and are_exact(n, n.dtype)

    return Rule(write, takes)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _made(ops: Callable[..., str]) -> Rule:
    """A row of floats as a few ops, computed in the compute type: ops(block, type, names)."""

    def write(w: Block, n: Node, *xs: str) -> str:
        kind = n.dtype.compute
        wide = (w.cast(x, v.dtype, kind) for x, v in zip(xs, n.inputs, strict=True))
        return w.cast(ops(w, kind, *wide), kind, n.dtype)

    return Rule(write, lambda w, n: n.dtype.is_float)


def _gelu(w: Block, kind: DType, x: str) -> str:
    if w.takes("Gelu", kind):
        return w.node("Gelu", x)
    e = w.node("Erf", w.node("Mul", x, w.const(math.sqrt(0.5), kind)))
    half = w.node("Mul", x, w.const(0.5, kind))
    return w.node("Mul", half, w.node("Add", e, w.const(1.0, kind)))


def _gelu_tanh(w: Block, n: Node, x: str) -> str:
    return w.typed("Gelu", n.dtype, x, approximate="tanh")


def _clip(w: Block, n: Node, x: str, low: str, high: str) -> str:
    return w.typed("Clip", n.dtype, x, low, high)


def _clip_takes(w: Block, n: Node) -> bool:
    return n.inputs[1].shape == n.inputs[2].shape == () and w.carrier("Clip", n.dtype) is not None


def _cast(w: Block, n: Node, x: str) -> str:
    given, to = n.inputs[0].dtype, n.attrs["to"]
    if given is to:
        return x
    plain = n.attrs.get("saturate", True) or not (to.is_float and to.bits <= 8)
    return w.node("Cast", x, to=TypeCode(to)) if plain else w.node("Cast", x, to=TypeCode(to), saturate=0)


def _quotient(w: Block, n: Node, *xs: str) -> str:
    kind = n.dtype.compute
    x, by = (w.cast(x, n.dtype, kind) for x in xs)
    return w.cast(w.divide(x, by, kind), kind, n.dtype)


def _bit_cast(w: Block, n: Node, x: str) -> str:
    return w.node("BitCast", x, to=TypeCode(n.dtype))


_OWN: Final = {
    name: (_named(row.onnx, row),)
    for name, row in ROWS.items()
    if isinstance(row, Elementwise) and row.onnx and "." not in row.onnx
}
"""Rows that are ONNX's ops."""
RULES: Final[Mapping[str, Sequence[Rule]]] = {
    **_OWN,
    **{name: (_named(op, row),) for name, op in SAME.items() if isinstance(row := ROWS[name], Elementwise)},
    "bit_cast": (Rule(_bit_cast, lambda w, n: w.opset >= SINCE["BitCast"]),),
    "cast": (Rule(_cast),),
    "clip": (Rule(_clip, _clip_takes),),
    "div": (Rule(_quotient, lambda w, n: n.dtype.is_int), *_OWN["div"]),
    "gelu": (_made(_gelu),),
    "gelu_tanh": (Rule(_gelu_tanh, kind_taken("Gelu")),),
    "stop_gradient": (Rule(lambda w, n, x: x),),
    "silu": (_made(lambda w, kind, x: w.node("Mul", x, w.node("Sigmoid", x))),),
}
