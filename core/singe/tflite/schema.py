"""The tables of a TensorFlow Lite file, as data: each field's number, name and kind; the numbers of types and of ops.

The numbers are those of TensorFlow's schema.fbs, version 3; the fields that Singe does not need are left out.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from .flatbuffer import BYTES, TEXT, UNION, Fields, Inner, Scalar, Tables, Vector

VERSION: Final = 3

I8, U8, I32, U32, U64, F32 = (Scalar(code) for code in "bBiIQf")
FLAG: Final = Scalar("?", default=False)
ONE: Final = Scalar("i", 1)

DIMENSION: Final[Fields] = {
    0: ("format", I8), 1: ("dense_size", I32), 2: ("segments_type", U8), 3: ("segments", UNION), 4: ("indices_type", U8), 5: ("indices", UNION),
}  # fmt: skip
INDEX_VECTORS: Final[dict[int, Fields]] = {
    code: {0: ("values", Vector(kind))} for code, kind in enumerate(("i4", "u2", "u1"), 1)
}
"""The type of a sparse tensor's segments or indices ↦ the table that holds them."""
SPARSITY: Final[Fields] = {
    0: ("order", Vector("i4")),
    1: ("block_map", Vector("i4")),
    2: ("dimensions", Tables(DIMENSION)),
}
QUANTIZATION: Final[Fields] = {
    2: ("scale", Vector("f4")),
    3: ("zero_point", Vector("i8")),
    4: ("details_type", U8),
    6: ("axis", I32),
}
TENSOR: Final[Fields] = {
    0: ("shape", Vector("i4")), 1: ("type", I8), 2: ("buffer", U32), 3: ("name", TEXT), 4: ("quantization", Inner(QUANTIZATION)),
    5: ("is_variable", FLAG), 6: ("sparsity", Inner(SPARSITY)), 7: ("shape_signature", Vector("i4")),
}  # fmt: skip
OPERATOR: Final[Fields] = {
    0: ("opcode", U32), 1: ("inputs", Vector("i4")), 2: ("outputs", Vector("i4")), 3: ("options_type", U8), 4: ("options", UNION), 5: ("custom", BYTES),
}  # fmt: skip
GRAPH: Final[Fields] = {
    0: ("tensors", Tables(TENSOR)), 1: ("inputs", Vector("i4")), 2: ("outputs", Vector("i4")), 3: ("operators", Tables(OPERATOR)), 4: ("name", TEXT),
}  # fmt: skip
OPERATOR_CODE: Final[Fields] = {0: ("old_code", I8), 1: ("custom_code", TEXT), 2: ("version", ONE), 3: ("code", I32)}
NAMED_TENSOR: Final[Fields] = {0: ("name", TEXT), 1: ("tensor", U32)}
SIGNATURE: Final[Fields] = {
    0: ("inputs", Tables(NAMED_TENSOR)),
    1: ("outputs", Tables(NAMED_TENSOR)),
    2: ("key", TEXT),
    4: ("graph", U32),
}
BUFFER: Final[Fields] = {0: ("data", BYTES), 1: ("offset", U64), 2: ("size", U64)}
MODEL: Final[Fields] = {
    0: ("version", U32), 1: ("operator_codes", Tables(OPERATOR_CODE)), 2: ("graphs", Tables(GRAPH)), 3: ("description", TEXT),
    4: ("buffers", Tables(BUFFER)), 7: ("signatures", Tables(SIGNATURE)),
}  # fmt: skip

TYPES: Final = (
    "float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64", "complex128", "uint64",
    "resource", "variant", "uint32", "uint16", "int4", "bfloat16", "int2", "uint4", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""The names of element types by number; "resource" is a handle of a variable."""
ACTIVATIONS: Final = ("", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""The ops that options fuse behind another one, by number."""
PADDINGS: Final = ("SAME", "VALID")

OPS: Final = (
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE", "EMBEDDING_LOOKUP", "FLOOR",
    "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM",
    "MAX_POOL_2D", "MUL", "RELU", "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH",
    "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD", "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER",
    "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB", "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE",
    "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM",
    "ARG_MAX", "MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN", "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT", "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT",
    "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT", "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY",
    "SQUARE", "ZEROS_LIKE", "FILL", "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS",
    "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU", "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE",
    "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY",
    "SEGMENT_SUM", "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D", "IMAG", "REAL",
    "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE",
    "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU",
    "DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN",
    "SIGN", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT",
)  # fmt: skip
"""The names of ops by number, without StableHLO's."""
CUSTOM: Final = OPS.index("CUSTOM")
OLD_CODES: Final = OPS.index("PLACEHOLDER_FOR_GREATER_OP_CODES")
"""The number in `old_code` that stands for one in `code`."""


class OpOptions(NamedTuple):
    """The options of an op: the number of their table's type, and its fields."""

    type: int
    fields: Fields


def _options(type_number: int, **fields: Any) -> OpOptions:
    """Options whose fields have the numbers 0, 1, …, in order."""
    return OpOptions(type_number, dict(enumerate(fields.items())))


_POOL: Final = _options(5, padding=I8, stride_w=I32, stride_h=I32, window_w=I32, window_h=I32, activation=I8)
_REDUCER: Final = _options(27, keep=FLAG)
_RESIZED: Final = {"align_corners": FLAG, "half_pixel": FLAG}

OPTIONS: Final[dict[str, OpOptions]] = {
    "ADD": _options(11, activation=I8),
    "ARG_MAX": _options(40, to_type=I8),
    "ARG_MIN": _options(57, to_type=I8),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": _options(101, swap_x=FLAG, swap_y=FLAG),
    "CALL_ONCE": _options(103, graph=I32),
    "CAST": _options(37, given=I8, to_type=I8),
    "CONCATENATION": _options(10, axis=I32, activation=I8),
    "CONV_2D": _options(1, padding=I8, stride_w=I32, stride_h=I32, activation=I8, dilation_w=ONE, dilation_h=ONE),
    "CUMSUM": _options(102, exclusive=FLAG, reverse=FLAG),
    "DEPTHWISE_CONV_2D": _options(
        2, padding=I8, stride_w=I32, stride_h=I32, multiplier=I32, activation=I8, dilation_w=ONE, dilation_h=ONE
    ),
    "DEPTH_TO_SPACE": _options(94, block=I32),
    "DIV": _options(29, activation=I8),
    "FULLY_CONNECTED": _options(8, activation=I8, weights_format=I8, keep_axes=FLAG),
    "GATHER": _options(23, axis=I32, batch=I32),
    "GELU": _options(116, approximate=FLAG),
    "L2_NORMALIZATION": _options(12, activation=I8),
    "LEAKY_RELU": _options(75, alpha=F32),
    "LOCAL_RESPONSE_NORMALIZATION": _options(13, radius=I32, bias=F32, alpha=F32, beta=F32),
    "L2_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "MIRROR_PAD": _options(77, mode=I8),
    "MUL": _options(21, activation=I8),
    "ONE_HOT": _options(61, axis=I32),
    "PACK": _options(59, count=I32, axis=I32),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), _REDUCER),
    "RESHAPE": _options(17, shape=Vector("i4")),
    "RESIZE_BILINEAR": OpOptions(15, {2: ("align_corners", FLAG), 3: ("half_pixel", FLAG)}),
    "RESIZE_NEAREST_NEIGHBOR": _options(74, **_RESIZED),
    "SHAPE": _options(55, to_type=I8),
    "SOFTMAX": _options(9, beta=F32),
    "SPACE_TO_DEPTH": _options(19, block=I32),
    "SPLIT": _options(35, count=I32),
    "SPLIT_V": _options(79, count=I32),
    "SQUEEZE": _options(30, axes=Vector("i4")),
    "STRIDED_SLICE": _options(32, begin=I32, end=I32, ellipsis=I32, new=I32, shrink=I32, offset=FLAG),
    "SUB": _options(28, activation=I8),
    "TRANSPOSE_CONV": _options(49, padding=I8, stride_w=I32, stride_h=I32, activation=I8),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _options(71, activation=I8, cell_clip=F32, projection_clip=F32, time_first=FLAG),
    "UNPACK": _options(64, count=I32, axis=I32),
    "VAR_HANDLE": _options(111, container=TEXT, name=TEXT),
}
"""Op ↦ its options. Ops with options of other types have none that say anything."""
