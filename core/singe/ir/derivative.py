"""Derivatives of scalar expressions, by the chain rule from the last word back to the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .scalar import Expr, add, const, cos, div, le, lt, mul, neg, postorder, select, sin, sub

_ZERO: Final = (
    "floor",
    "ceil",
    "round",
    "isnan",
    "eq",
    "lt",
    "le",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "shr",
    "rem",
    "bits",
    "of_bits",
)
# For each word a function (arguments, result) ↦ the partial derivative by each argument; None if it is zero.
_PARTIALS: Mapping[str, Callable[..., tuple[Expr | None, ...]]] = {
    "add": lambda a, b, y: (const(1, y.dtype), const(1, y.dtype)),
    "sub": lambda a, b, y: (const(1, y.dtype), const(-1, y.dtype)),
    "mul": lambda a, b, y: (b, a),
    "div": lambda a, b, y: (div(1.0, b), neg(div(y, b))),
    "min": lambda a, b, y: (select(le(a, b), 1.0, const(0, y.dtype)), select(le(a, b), 0.0, const(1, y.dtype))),
    "max": lambda a, b, y: (select(le(b, a), 1.0, const(0, y.dtype)), select(le(b, a), 0.0, const(1, y.dtype))),
    "neg": lambda a, y: (const(-1, y.dtype),),
    "abs": lambda a, y: (select(lt(a, 0), -1.0, select(lt(const(0, a.dtype), a), 1.0, const(0, y.dtype))),),
    "sqrt": lambda a, y: (div(0.5, y),),
    "exp": lambda a, y: (y,),
    "log": lambda a, y: (div(1.0, a),),
    "sin": lambda a, y: (cos(a),),
    "cos": lambda a, y: (neg(sin(a)),),
    "tanh": lambda a, y: (sub(1.0, mul(y, y)),),
    "rounded": lambda a, y: (const(1, y.dtype),),
}


def derivative(e: Expr, by: Iterable[Expr], seed: Expr | None = None) -> list[Expr]:
    """The derivatives of a float expression by some of its leaves, times a seed."""
    order = postorder([e])
    adjoint: dict[Expr, Expr] = {e: seed if seed is not None else const(1, e.dtype)}
    for x in reversed(order):
        g = adjoint.get(x)
        if g is None or not x.dtype.is_float or not x.args or x.word in _ZERO:
            continue
        if x.word == "select":
            condition, a, b = x.args
            parts = [(a, select(condition, g, 0.0)), (b, select(condition, 0.0, g))]
        elif x.word == "cast" or x.word == "load":
            continue
        else:
            parts = [
                (a, mul(g, p)) for a, p in zip(x.args, _PARTIALS[x.word](*x.args, x), strict=True) if p is not None
            ]
        for a, part in parts:
            adjoint[a] = add(adjoint[a], part) if a in adjoint else part
    return [adjoint.get(x, const(0, e.dtype)) for x in by]
