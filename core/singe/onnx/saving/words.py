"""The scalar words as ops of ONNX: the table by which any elementwise row leaves.

An expression is written as a node for each of its words, over whole tensors in compute types. Where a word has no op with exactly
its meaning, the table gives a few that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import DTYPES, DType, bool_
from ...errors import CompileError
from ...ir import scalar
from ...ir.scalar import WORDS, Expr
from .block import Block
from .facts import SINCE
from .records import TypeCode

Spelling: TypeAlias = Callable[[Block, Expr, Sequence[str]], str]
"""(block, the expression, the names of its arguments) ↦ the name of its value."""


def _op(name: str) -> Spelling:
    """An op of ONNX with the meaning of the word."""

    def spelled(w: Block, e: Expr, args: Sequence[str]) -> str:
        kind = e.args[0].dtype
        return w.typed(name, kind, *args) if e.dtype is kind else w.compared(name, kind, *args)

    return spelled


def _logic(of_bools: str, of_bits: str) -> Spelling:
    def spelled(w: Block, e: Expr, args: Sequence[str]) -> str:
        return w.typed(of_bools if e.dtype is bool_ else of_bits, e.dtype, *args)

    return spelled


def _div(w: Block, e: Expr, args: Sequence[str]) -> str:
    return w.divide(args[0], args[1], e.dtype) if e.dtype.is_int else w.node("Div", *args)


def _rem(w: Block, e: Expr, args: Sequence[str]) -> str:
    """Of integers by a division: engines compute Mod by floats."""
    if e.dtype.is_float:
        return w.typed("Mod", e.dtype, *args, fmod=1)
    return w.node("Sub", args[0], w.node("Mul", w.divide(args[0], args[1], e.dtype), args[1]))


def _neg(w: Block, e: Expr, args: Sequence[str]) -> str:
    return w.node("Sub", w.const(0, e.dtype), *args) if e.dtype.kind == "uint" else w.typed("Neg", e.dtype, *args)


def _unsigned(kind: DType) -> DType:
    return DTYPES[f"uint{kind.bits}"]


def _shift(direction: str) -> Spelling:
    """ONNX shifts numbers without a sign. A negative x is shifted to the right as −1 − x, which is not negative."""

    def spelled(w: Block, e: Expr, args: Sequence[str]) -> str:
        kind, (x, amount) = e.dtype, args
        wide = _unsigned(kind)
        amount = w.cast(amount, kind, wide)
        if e.args[1].word != "const" or not 0 <= e.args[1].value < kind.bits:
            amount = w.node("Mod", amount, w.const(kind.bits, wide))

        def shifted(value: str) -> str:
            return w.cast(w.node("BitShift", w.cast(value, kind, wide), amount, direction=direction), wide, kind)

        if kind.kind == "uint" or direction == "LEFT":
            return shifted(x)
        below, minus = w.node("Less", x, w.const(0, kind)), w.const(-1, kind)
        size = w.node("Where", below, w.node("Sub", minus, x), x)
        found = shifted(size)
        return w.node("Where", below, w.node("Sub", minus, found), found)

    return spelled


def _bits(w: Block, e: Expr, args: Sequence[str]) -> str:
    if w.opset < SINCE["BitCast"]:  # from bits to a float
        raise _no_bits()
    return w.node("BitCast", *args, to=TypeCode(e.dtype))


def _cast(w: Block, e: Expr, args: Sequence[str]) -> str:
    return w.cast(args[0], e.args[0].dtype, e.dtype)


def _rounded(w: Block, e: Expr, args: Sequence[str]) -> str:
    return w.cast(w.cast(args[0], e.dtype, e.value), e.value, e.dtype)


def _select(w: Block, e: Expr, args: Sequence[str]) -> str:
    return w.node("Where", *args)


SPELLINGS: Final[Mapping[str, Spelling]] = {
    "add": _op("Add"), "sub": _op("Sub"), "mul": _op("Mul"), "div": _div, "rem": _rem, "min": _op("Min"), "max": _op("Max"),
    "neg": _neg, "abs": _op("Abs"), "sqrt": _op("Sqrt"), "exp": _op("Exp"), "log": _op("Log"), "sin": _op("Sin"), "cos": _op("Cos"),
    "tanh": _op("Tanh"), "floor": _op("Floor"), "ceil": _op("Ceil"), "round": _op("Round"), "isnan": _op("IsNaN"), "eq": _op("Equal"),
    "lt": _op("Less"), "le": _op("LessOrEqual"), "and": _logic("And", "BitwiseAnd"), "or": _logic("Or", "BitwiseOr"),
    "xor": _logic("Xor", "BitwiseXor"), "not": _logic("Not", "BitwiseNot"), "shl": _shift("LEFT"), "shr": _shift("RIGHT"),
    "bits": _bits, "of_bits": _bits, "select": _select, "cast": _cast, "rounded": _rounded,
}  # fmt: skip
assert SPELLINGS.keys() == WORDS.keys()


def written(w: Block, e: Expr, variables: Mapping[Expr, str]) -> str:
    """The value of an expression over the values of its variables, which broadcast together."""
    names = dict(variables)

    def step(x: Expr, args: tuple[str, ...]) -> str:
        if x not in names and not (x.word == "bits" and w.opset < SINCE["BitCast"]):
            names[x] = spelled(x, args)
        return names.get(x, "")

    def spelled(x: Expr, args: tuple[str, ...]) -> str:
        if x.word == "const":
            return w.const(np.asarray(x.value, x.dtype.numpy), x.dtype)
        if x.word == "size":
            return w.scalar(x.value, x.dtype)
        if "" in args:  # bits of a float, of which older opsets can tell the sign
            bits, *rest = x.args
            if x.word != "lt" or bits.word != "bits" or rest[0].word != "const" or rest[0].value != 0:
                raise _no_bits()
            return _is_negative(w, names[bits.args[0]], bits.args[0].dtype)
        return SPELLINGS[x.word](w, x, args)

    found = scalar.fold([e], step)[0]
    if not found:
        raise _no_bits()
    return found


def _no_bits() -> CompileError:
    return CompileError(f"the bits of floats; give opset={SINCE['BitCast']} or later")


def _is_negative(w: Block, x: str, kind: DType) -> str:
    """Whether a float has the sign minus, also that of zero."""
    zero = w.const(0, kind)
    return w.node("Or", w.node("Less", x, zero), w.node("Less", w.node("Div", w.const(1, kind), x), zero))


def elementwise(
    w: Block, body: Callable[..., Expr], values: Sequence[tuple[str, DType]], to: DType, **attributes: Any
) -> str:
    """A body of an elementwise row over values of some types: its result as `to`."""
    variables = [scalar.var(f"x{k}", kind.compute) for k, (_, kind) in enumerate(values)]
    names = {v: w.cast(x, kind, kind.compute) for v, (x, kind) in zip(variables, values, strict=True)}
    found = body(*variables, **attributes)
    return w.cast(written(w, found, names), found.dtype, to)
