"""What ONNX's opsets know of the ops that are written here: since when each op takes which element types; since when other facts hold.

A test compares the table with the schemas of the package onnx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ...dtypes import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)

OLDEST: Final = 13
LATEST: Final = 28
"""The oldest and the latest opset that are written."""
IR_VERSIONS: Final = {13: 7, 15: 8, 19: 9, 21: 10, 23: 11, 24: 12, 25: 13, 28: 14}
"""An opset ↦ the version of the file format that came with it; it serves the later opsets up to the next one of the table."""
SINCE_TYPE: Final = {
    "float8_e4m3fn": 19, "float8_e4m3fnuz": 19, "float8_e5m2": 19, "float8_e5m2fnuz": 19, "uint4": 21, "int4": 21,
    "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 25, "float6_e2m3fn": 28, "float6_e3m2fn": 28,
}  # fmt: skip
"""An element type ↦ the first opset whose ops take it; those that are missing are older."""
ONLY_CAST: Final = ("float6_e2m3fn", "float6_e3m2fn")
"""Element types that Cast takes, and no other op."""

Kinds: TypeAlias = Sequence[DType]
_F: Final = (float16, float32, float64)
_LARGE: Final = (int32, int64, uint32, uint64)
_SIGNED: Final = (int8, int16, int32, int64)
_ANY: Final = (bool_, *INTS, *_F, *COMPLEX, string)
_ORDERED: Final = (*INTS, *_F)
_BYTES: Final = (int8, uint8)

_FLOATS_SINCE_22: Final = ((OLDEST, _F), (22, FLOATS))
_FLOATS: Final = ((OLDEST, FLOATS),)
_NUMBERS: Final = ((OLDEST, NUMBERS),)
_LARGE_NUMBERS: Final = ((OLDEST, (*_LARGE, *FLOATS)),)
_ARITHMETIC: Final = ((OLDEST, (*_LARGE, *FLOATS)), (14, NUMBERS))
_LOGIC: Final = ((OLDEST, (bool_,)),)
_BITWISE: Final = ((18, INTS),)
_EXTREMES: Final = ((OLDEST, (*_LARGE, *_BYTES, *FLOATS)), (20, (*_LARGE, *_BYTES, *FLOATS, bool_)))

TAKES: Final[Mapping[str, Sequence[tuple[int, Kinds]]]] = {
    **dict.fromkeys(("Abs", "Sign", "Min", "Max", "Mod", "Clip", "Less", "Greater", "ArgMax", "ArgMin"), _NUMBERS),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _ARITHMETIC),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), _LOGIC),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _BITWISE),
    **dict.fromkeys(("GreaterOrEqual", "LessOrEqual"), ((OLDEST, _ORDERED), (16, NUMBERS))),
    **dict.fromkeys(("MatMul", "Gemm", "ReduceMean", "ReduceProd", "ReduceSum"), _LARGE_NUMBERS),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _EXTREMES),
    **dict.fromkeys(
        (
            "Ceil",
            "Erf",
            "Exp",
            "Floor",
            "Hardmax",
            "Log",
            "LogSoftmax",
            "Reciprocal",
            "Sigmoid",
            "Softmax",
            "Sqrt",
            "Tanh",
        ),
        _FLOATS,
    ),
    **dict.fromkeys(
        (
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "AveragePool",
            "Conv",
            "ConvTranspose",
            "Cos",
            "Cosh",
            "Det",
            "Elu",
            "GRU",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "HardSigmoid",
            "LSTM",
            "NegativeLogLikelihoodLoss",
            "RNN",
            "Round",
            "Sin",
            "Sinh",
            "Softplus",
            "Tan",
            "ThresholdedRelu",
        ),
        _FLOATS_SINCE_22,
    ),
    **dict.fromkeys(
        ("Concat", "Expand", "Gather", "GatherElements", "GatherND", "Resize", "ScatterElements", "ScatterND", "Slice"),
        ((OLDEST, (*_ANY, bfloat16)),),
    ),
    **dict.fromkeys(("Compress", "Unique"), ((OLDEST, _ANY), (28, (*_ANY, bfloat16)))),
    "BatchNormalization": ((OLDEST, _F), (14, FLOATS)),
    "BitShift": ((OLDEST, (uint8, uint16, uint32, uint64)), (28, INTS)),
    "Celu": ((OLDEST, (float32,)), (28, FLOATS)),
    "CumProd": ((26, (int32, int64, uint32, uint64, *FLOATS)),),
    "CumSum": ((OLDEST, (*_LARGE, float32, float64)), (14, (*_LARGE, *FLOATS))),
    "Einsum": ((OLDEST, _ORDERED), (28, NUMBERS)),
    "Equal": ((OLDEST, (bool_, *NUMBERS)), (19, (bool_, *NUMBERS, string))),
    "Gelu": ((20, FLOATS),),
    "HardSwish": ((14, _F), (22, FLOATS)),
    "IsInf": ((OLDEST, (float32, float64)), (20, FLOATS)),
    "IsNaN": _FLOATS,
    "LayerNormalization": ((17, FLOATS),),
    "LeakyRelu": ((OLDEST, _F), (16, FLOATS)),
    "MaxPool": ((OLDEST, (*_F, *_BYTES)), (22, (*FLOATS, *_BYTES))),
    "Mish": ((18, _F), (22, FLOATS)),
    "Neg": ((OLDEST, (*_SIGNED, *FLOATS)),),
    "Pow": ((OLDEST, (int32, int64, *_F)), (15, (int32, int64, *FLOATS))),
    "RMSNormalization": ((23, FLOATS),),
    "Range": ((OLDEST, (int16, int32, int64, float32, float64)), (27, (int16, int32, int64, *FLOATS))),
    "Relu": ((OLDEST, FLOATS), (14, (*_SIGNED, *FLOATS))),
    "Shrink": ((OLDEST, _ORDERED),),
    "SwiGLU": ((28, FLOATS),),
    "TopK": ((OLDEST, _ORDERED), (24, NUMBERS)),
    "Trilu": ((14, (*_ANY, bfloat16)),),
    "Where": ((OLDEST, _ANY), (16, (*_ANY, bfloat16))),
}
"""An op ↦ each opset since which its (first) input has other types, and these. An op whose first opset is later is missing before it.
Ops that take every type of their opset are not in the table."""
MOVES: Final = {
    "compress": "Compress", "concat": "Concat", "diagonal": "Gather", "expand": "Expand", "gather": "Gather",
    "gather_elements": "GatherElements", "gather_nd": "GatherND", "scatter_elements": "ScatterElements", "scatter_nd": "ScatterND",
    "slice": "Slice", "unfold": "Gather", "unique": "Unique", "update_slice": "Concat",
}  # fmt: skip
"""A row that only moves elements ↦ the op of ONNX that does. Elements of a type that the op does not take are moved in their compute
type."""

AXES_ARE_INPUT: Final = {"ReduceSum": 13, "ReduceMax": 18, "ReduceMin": 18, "ReduceProd": 18, "ReduceMean": 18}
"""An op ↦ the opset since which its axes are an input and no attribute."""
SCATTER_REDUCTIONS: Final = {"add": 16, "mul": 16, "max": 18, "min": 18}
"""How scattered elements are combined ↦ the opset since which ScatterElements and ScatterND do so."""
SINCE: Final = {
    "BitCast": 26, "BlockedDequantize": 21, "DilatedAveragePool": 19, "EmptyReshape": 14, "GridSample": 16, "GridSampleLinear": 20, "ImageDecoder": 20,
    "MelWeightMatrix": 17, "RegexFullMatch": 20, "ResizeAntialias": 18, "ResizeSymmetric": 19, "ShortQuantize": 21, "StringConcat": 20,
    "StringSplit": 20, "WrapPad": 19,
}  # fmt: skip
"""What the name says ↦ the opset since which it can be written."""


def kinds_of(op: str, opset: int) -> Kinds | None:
    """The types of an op's first input in an opset; none if the op is newer; None if it takes every type."""
    if op not in TAKES:
        return None
    return next((kinds for since, kinds in reversed(TAKES[op]) if since <= opset), ())


def ir_version(opset: int) -> int:
    return next(ir for since, ir in reversed(IR_VERSIONS.items()) if since <= opset)


def too_new(kind: DType, opset: int) -> bool:
    """Whether an element type is newer than an opset."""
    return SINCE_TYPE.get(kind.name, OLDEST) > opset


def first_opset(op: str, kinds: Kinds) -> int | None:
    """The first opset in which an op takes one of some types; None if none does."""
    return next((since for since, taken in TAKES.get(op, ()) if any(k in taken for k in kinds)), None)
