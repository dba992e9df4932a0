"""Models of one op each, with the inputs of a run: what `make_tflite_answers.py` asks TensorFlow Lite's interpreter, and the tests Singe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from tflite_bytes import Op, Value, model_bytes

from singe.tflite.importer import import_model
from singe.tflite.model import read_model

RNG: Final = np.random.default_rng(42)


@dataclass(frozen=True, eq=False)
class Case:
    """A model of one op. slack: how many units quantised outputs may differ by."""

    name: str
    data: bytes
    inputs: Sequence[np.ndarray]
    slack: int


CASES: Final[dict[str, Case]] = {}


def real(*shape: int, low: float = -2, high: float = 2) -> Value:
    return Value(RNG.uniform(low, high, shape).astype(np.float32))


def fixed(values: Any, dtype: Any = np.float32, **more: Any) -> Value:
    return Value(np.asarray(values, dtype), is_constant=True, **more)


def ints(*values: Any) -> Value:
    return fixed(values, np.int32)


def weights(*shape: int) -> Value:
    return fixed(RNG.normal(size=shape) * 0.5)


def whole(
    *shape: int, low: int = -128, high: int = 128, dtype: Any = np.int8, scale: Any = 0.05, zero: int = 3
) -> Value:
    """Quantised integers of a run."""
    return Value(RNG.integers(low, high, shape).astype(dtype), scale=scale, zero=zero)


def whole_weights(*shape: int, axis: int, dtype: Any = np.int8, each: bool = True) -> Value:
    count = shape[axis] if each else 1
    low, high = (0, 256) if dtype is np.uint8 else (-127, 128)
    zero = 121 if dtype is np.uint8 else 0
    return fixed(
        RNG.integers(low, high, shape),
        dtype,
        scale=RNG.uniform(0.004, 0.02, count),
        axis=axis if each else 0,
        zero=zero,
    )


def case(
    name: str,
    op: str,
    *operands: Value | None,
    to: Sequence[Value] | str = "float32",
    slack: int = 1,
    custom: bytes = b"",
    version: int = 1,
    **options: Any,
) -> None:
    """Enter a case. to: the outputs' types and scales; their shapes are found."""
    given = [v for v in operands if v is not None]
    places = [-1 if v is None else given.index(v) for v in operands]
    run = [k for k, v in enumerate(given) if not v.is_constant]
    wanted = [Value(np.zeros((), to))] if isinstance(to, str) else list(to)

    def made(outputs: Sequence[Value]) -> bytes:
        ends = [len(given) + k for k in range(len(outputs))]
        return model_bytes([*given, *outputs], [Op(op, places, ends, options, custom, version)], run, ends)

    graph = import_model(read_model(made(wanted)))
    shaped = [
        Value(np.zeros([int(str(d)) for d in y.shape], v.array.dtype), scale=v.scale, zero=v.zero)
        for v, y in zip(wanted, graph.outputs, strict=True)
    ]
    assert name not in CASES, name
    CASES[name] = Case(name, made(shaped), [given[k].array for k in run], slack)


def out(dtype: Any, scale: float | None = None, zero: int = 0) -> Value:
    return Value(np.zeros((), dtype), scale=scale, zero=zero)


INT8: Final = [out(np.int8, 0.1, -5)]
UINT8: Final = [out(np.uint8, 0.1, 130)]

# --- elementwise ---------------------------------------------------------------------------------------------------

for _op in (
    "ABS",
    "CEIL",
    "COS",
    "ELU",
    "EXP",
    "FLOOR",
    "HARD_SWISH",
    "LOGISTIC",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "ROUND",
    "SIGN",
    "SIN",
    "SQUARE",
    "TANH",
):
    case(_op, _op, real(2, 3, 5, low=-8, high=8))
for _op in ("LOG", "RSQRT", "SQRT"):
    case(_op, _op, real(2, 7, low=0.1, high=9))
for _op in ("ADD", "DIV", "MUL", "SUB"):
    for _act, _number in (("", 0), (" RELU", 1), (" RELU_N1_TO_1", 2), (" RELU6", 3)):
        case(f"{_op}{_act}", _op, real(2, 3, 4), real(3, 1, low=0.5, high=3), activation=_number)
for _op in ("ATAN2", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
    case(_op, _op, real(2, 3, 4), real(2, 3, 4, low=0.5))
case("POW", "POW", real(2, 3, low=0.2), real(3))
for _op in ("FLOOR_DIV", "FLOOR_MOD", "ADD", "MUL", "MAXIMUM"):
    case(
        f"{_op} int32",
        _op,
        Value(np.array([[7, -7, 8], [-8, 9, 0]], np.int32)),
        Value(np.array([3, 2, -5], np.int32)),
        to="int32",
    )
for _op in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"):
    case(_op, _op, Value(np.array([1, 2, 3, np.nan], np.float32)), Value(np.array([1, 3, 2, 1], np.float32)), to="bool")
for _op in ("LOGICAL_AND", "LOGICAL_OR"):
    case(_op, _op, Value(np.array([True, True, False, False])), Value(np.array([True, False, True, False])), to="bool")
case("LOGICAL_NOT", "LOGICAL_NOT", Value(np.array([True, False])), to="bool")
case("ADD_N", "ADD_N", *(real(2, 3) for _ in range(3)))
case("LEAKY_RELU", "LEAKY_RELU", real(3, 4), alpha=0.3)
case("PRELU", "PRELU", real(1, 3, 4, 5), weights(1, 1, 5))
case("GELU", "GELU", real(3, 4), approximate=False)
case("GELU tanh", "GELU", real(3, 4), approximate=True)
case("SELECT", "SELECT", Value(np.array([True, False])), real(2, 3), real(2, 3))
case("SELECT_V2", "SELECT_V2", Value(np.array([[True], [False]])), real(2, 3), real(3))
case("ZEROS_LIKE", "ZEROS_LIKE", real(2, 3))
case("CAST to int", "CAST", real(3, 4, low=-9, high=9), to="int32")
case("CAST to bool", "CAST", Value(np.array([0, 2, -1], np.int32)), to="bool")
case("CAST to float", "CAST", Value(np.array([0, 2, -1], np.int32)))
case("FILL", "FILL", ints(2, 3), fixed(1.5))
case("RANGE", "RANGE", fixed(2, np.int32), fixed(17, np.int32), fixed(4, np.int32), to="int32")
case("ADD int8", "ADD", whole(2, 3, 4), whole(2, 3, 4, scale=0.03, zero=-9), to=INT8)
case(
    "ADD uint8",
    "ADD",
    whole(2, 9, low=0, high=256, dtype=np.uint8, zero=120),
    whole(9, low=0, high=256, dtype=np.uint8, zero=99),
    to=UINT8,
)
case("ADD int8 RELU6", "ADD", whole(2, 3, 4), whole(4), to=[out(np.int8, 0.03, -128)], activation=3)
case("MUL int8", "MUL", whole(2, 3, 4), whole(4), to=INT8)
case("SUB int8", "SUB", whole(2, 3, 4), whole(4), to=INT8)
case("MAXIMUM int8", "MAXIMUM", whole(2, 3), whole(3), to=[out(np.int8, 0.05, 3)])
case("LOGISTIC int8", "LOGISTIC", whole(40), to=[out(np.int8, 1 / 256, -128)])
case("TANH int8", "TANH", whole(40), to=[out(np.int8, 1 / 128, 0)])
case("LEAKY_RELU int8", "LEAKY_RELU", whole(40), to=INT8, alpha=0.2)
case("HARD_SWISH int8", "HARD_SWISH", whole(40), to=INT8)
case("RELU int8", "RELU", whole(40), to=[out(np.int8, 0.05, 3)])
case(
    "PRELU int8",
    "PRELU",
    whole(1, 2, 3, 4),
    fixed(RNG.integers(-99, 99, (1, 1, 4)), np.int8, scale=0.02, zero=4),
    to=INT8,
)
case("QUANTIZE", "QUANTIZE", real(50, low=-20, high=20), to=INT8)
case("QUANTIZE ties", "QUANTIZE", Value(np.arange(-20, 20, dtype=np.float32) / 4), to=[out(np.int8, 0.5, 1)])
case("QUANTIZE uint8", "QUANTIZE", real(50, low=-20, high=20), to=UINT8)
case("QUANTIZE again", "QUANTIZE", whole(50), to=INT8)
case("QUANTIZE int8 to uint8", "QUANTIZE", whole(50), to=[out(np.uint8, 0.05, 131)])
case("DEQUANTIZE int8", "DEQUANTIZE", whole(20))
case("DEQUANTIZE uint8", "DEQUANTIZE", whole(20, low=0, high=256, dtype=np.uint8))
case("DEQUANTIZE int16", "DEQUANTIZE", whole(20, low=-30000, high=30000, dtype=np.int16, zero=0))

# --- folds ---------------------------------------------------------------------------------------------------------

for _op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    case(_op, _op, real(2, 3, 4), ints(0, -1), keep=False)
    case(f"{_op} kept", _op, real(1, 3, 4, 5), ints(1, 2), keep=True)
case("REDUCE_ANY", "REDUCE_ANY", Value(np.array([[True, False], [False, False]])), ints(1), to="bool", keep=False)
case("REDUCE_ALL", "REDUCE_ALL", Value(np.array([[True, True], [False, True]])), ints(1), to="bool", keep=False)
case("MEAN int8", "MEAN", whole(1, 4, 5, 6), ints(1, 2), to=[out(np.int8, 0.02, 3)], keep=True)
case("SUM int32", "SUM", Value(np.arange(6, dtype=np.int32).reshape(2, 3)), ints(1), to="int32", keep=False)
case("REDUCE_MAX int8", "REDUCE_MAX", whole(3, 9), ints(1), to=[out(np.int8, 0.05, 3)], keep=False)
case("ARG_MAX", "ARG_MAX", real(3, 9), ints(-1), to="int32", to_type=2)
case("ARG_MIN", "ARG_MIN", real(3, 9), ints(0), to="int64", to_type=4)
case("SOFTMAX", "SOFTMAX", real(3, 9), beta=1.0)
case("SOFTMAX beta", "SOFTMAX", real(1, 3, 9), beta=0.5)
case("SOFTMAX int8", "SOFTMAX", whole(3, 9), to=[out(np.int8, 1 / 256, -128)], beta=1.0)
case("SOFTMAX uint8", "SOFTMAX", whole(3, 9, low=0, high=256, dtype=np.uint8), to=[out(np.uint8, 1 / 256, 0)], beta=1.0)
case("LOG_SOFTMAX", "LOG_SOFTMAX", real(3, 9))
case("L2_NORMALIZATION", "L2_NORMALIZATION", real(3, 9))
case("TOPK_V2", "TOPK_V2", real(3, 9), fixed(4, np.int32), to=[out(np.float32), out(np.int32)])
case("CUMSUM", "CUMSUM", real(3, 5), fixed(1, np.int32), exclusive=False, reverse=False)
case("CUMSUM exclusive", "CUMSUM", real(3, 5), fixed(0, np.int32), exclusive=True, reverse=True)

# --- windows and products ------------------------------------------------------------------------------------------

for _padding, _word in enumerate(("same", "valid")):
    for _op in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        case(f"{_op} {_word}", _op, real(2, 7, 6, 3), padding=_padding, stride_w=2, stride_h=3, window_w=3, window_h=3)
        case(
            f"{_op} int8 {_word}",
            _op,
            whole(2, 7, 6, 3),
            to=[out(np.int8, 0.05, 3)],
            padding=_padding,
            stride_w=2,
            stride_h=1,
            window_w=3,
            window_h=2,
            activation=3,
        )
    _conv: dict[str, Any] = {"padding": _padding, "stride_w": 2, "stride_h": 1, "dilation_w": 1, "dilation_h": 2}
    case(f"CONV_2D {_word}", "CONV_2D", real(2, 8, 7, 3), weights(5, 3, 2, 3), weights(5), **_conv)
    case(
        f"CONV_2D int8 {_word}",
        "CONV_2D",
        whole(2, 8, 7, 3),
        whole_weights(5, 3, 2, 3, axis=0),
        fixed(RNG.integers(-900, 900, 5), np.int32),
        to=[out(np.int8, 0.3, -5)],
        slack=1,
        **_conv,
    )
    case(
        f"CONV_2D uint8 {_word}",
        "CONV_2D",
        whole(2, 8, 7, 3, low=0, high=256, dtype=np.uint8, zero=131),
        whole_weights(5, 3, 2, 3, axis=0, dtype=np.uint8, each=False),
        fixed(RNG.integers(-900, 900, 5), np.int32),
        to=[out(np.uint8, 0.3, 125)],
        **_conv,
    )
    _depth: dict[str, Any] = {"padding": _padding, "stride_w": 1, "stride_h": 1, "dilation_w": 1, "dilation_h": 1}
    case(
        f"DEPTHWISE_CONV_2D {_word}",
        "DEPTHWISE_CONV_2D",
        real(1, 6, 5, 3),
        weights(1, 3, 3, 6),
        weights(6),
        multiplier=2,
        activation=1,
        **_depth,
    )
    case(
        f"DEPTHWISE_CONV_2D int8 {_word}",
        "DEPTHWISE_CONV_2D",
        whole(1, 6, 5, 4),
        whole_weights(1, 3, 3, 4, axis=3),
        fixed(RNG.integers(-900, 900, 4), np.int32),
        to=[out(np.int8, 0.2, 7)],
        multiplier=1,
        activation=3,
        **_depth,
    )
    _size = (8, 10) if _padding == 0 else (9, 11)
    case(
        f"TRANSPOSE_CONV {_word}",
        "TRANSPOSE_CONV",
        ints(1, *_size, 3),
        weights(3, 3, 3, 2),
        real(1, 4, 5, 2),
        weights(3),
        padding=_padding,
        stride_w=2,
        stride_h=2,
        version=3,
    )
case(
    "CONV_2D 1 by 1",
    "CONV_2D",
    real(1, 4, 5, 6),
    weights(3, 1, 1, 6),
    weights(3),
    padding=1,
    stride_w=1,
    stride_h=1,
    activation=3,
)
case("CONV_2D grouped", "CONV_2D", real(1, 5, 5, 4), weights(6, 3, 3, 2), weights(6), padding=0, stride_w=1, stride_h=1)
case("L2_POOL_2D", "L2_POOL_2D", real(1, 6, 6, 2), padding=0, stride_w=2, stride_h=2, window_w=3, window_h=3)
case("FULLY_CONNECTED", "FULLY_CONNECTED", real(2, 3, 4), weights(5, 12), weights(5), activation=1)
case("FULLY_CONNECTED kept", "FULLY_CONNECTED", real(2, 3, 4), weights(5, 4), None, keep_axes=True)
case(
    "FULLY_CONNECTED int8",
    "FULLY_CONNECTED",
    whole(3, 16),
    whole_weights(5, 16, axis=0, each=False),
    fixed(RNG.integers(-900, 900, 5), np.int32),
    to=[out(np.int8, 0.3, -5)],
)
case(
    "FULLY_CONNECTED int8 each",
    "FULLY_CONNECTED",
    whole(3, 16),
    whole_weights(5, 16, axis=0),
    fixed(RNG.integers(-900, 900, 5), np.int32),
    to=[out(np.int8, 0.3, -5)],
)
case(
    "FULLY_CONNECTED uint8",
    "FULLY_CONNECTED",
    whole(3, 16, low=0, high=256, dtype=np.uint8, zero=131),
    whole_weights(5, 16, axis=0, dtype=np.uint8, each=False),
    fixed(RNG.integers(-900, 900, 5), np.int32),
    to=[out(np.uint8, 0.3, 125)],
)
case("BATCH_MATMUL", "BATCH_MATMUL", real(2, 3, 4), real(2, 4, 5))
case("BATCH_MATMUL swapped", "BATCH_MATMUL", real(2, 4, 3), real(5, 4), swap_x=True, swap_y=True)

# --- movement ------------------------------------------------------------------------------------------------------

case("RESHAPE", "RESHAPE", real(2, 3, 4), ints(4, -1))
case("SQUEEZE", "SQUEEZE", real(1, 3, 1, 4), axes=[0, -2])
case("SQUEEZE all", "SQUEEZE", real(1, 3, 1, 4))
case("EXPAND_DIMS", "EXPAND_DIMS", real(2, 3), ints(-2))
case("SHAPE", "SHAPE", real(2, 3, 4), to="int32", to_type=2)
case("RANK", "RANK", real(2, 3, 4), to="int32")
case("TRANSPOSE", "TRANSPOSE", real(2, 3, 4), ints(2, 0, 1))
case("BROADCAST_TO", "BROADCAST_TO", real(3, 1), ints(2, 3, 4), version=2)
case("TILE", "TILE", real(2, 3), ints(2, 3))
case("CONCATENATION", "CONCATENATION", real(2, 3), real(2, 1), axis=-1)
case("CONCATENATION int8", "CONCATENATION", whole(2, 3), whole(2, 4), to=[out(np.int8, 0.05, 3)], axis=1)
case(
    "CONCATENATION uint8 scales",
    "CONCATENATION",
    whole(2, 3, low=0, high=256, dtype=np.uint8),
    whole(2, 4, low=0, high=256, dtype=np.uint8, scale=0.02),
    to=UINT8,
    axis=1,
)
case("PACK", "PACK", real(2, 3), real(2, 3), count=2, axis=1)
case("UNPACK", "UNPACK", real(2, 3, 4), to=[out(np.float32)] * 3, count=3, axis=1)
case("SPLIT", "SPLIT", ints(1), real(2, 6), to=[out(np.float32)] * 3, count=3)
case("SPLIT_V", "SPLIT_V", real(2, 6), ints(1, -1, 2), ints(1), to=[out(np.float32)] * 3, count=3)
case("SLICE", "SLICE", real(4, 5, 6), ints(1, 0, 2), ints(2, -1, 3))
case("STRIDED_SLICE", "STRIDED_SLICE", real(6, 7, 5), ints(1, -1, 0), ints(5, 0, 4), ints(2, -2, 1), begin=0, end=4)
case(
    "STRIDED_SLICE masks",
    "STRIDED_SLICE",
    real(4, 5, 6),
    ints(1, 0, 2),
    ints(2, 0, 5),
    ints(1, 1, 2),
    shrink=1,
    begin=2,
    end=2,
)
case(
    "STRIDED_SLICE ellipsis",
    "STRIDED_SLICE",
    real(4, 5, 6),
    ints(0, 0, 1),
    ints(0, 0, 4),
    ints(1, 1, 1),
    ellipsis=1,
    new=2,
)
case("REVERSE_V2", "REVERSE_V2", real(3, 4), ints(1))
case("GATHER", "GATHER", real(4, 5), Value(np.array([3, 0, 3], np.int32)), axis=1)
case("GATHER_ND", "GATHER_ND", real(4, 5, 2), Value(np.array([[3, 0], [1, 4]], np.int32)))
case("EMBEDDING_LOOKUP", "EMBEDDING_LOOKUP", Value(np.array([2, 0], np.int32)), weights(4, 3))
case(
    "ONE_HOT", "ONE_HOT", Value(np.array([[2, 0], [1, 7]], np.int32)), fixed(3, np.int32), fixed(2.5), fixed(-1), axis=1
)
case("DYNAMIC_UPDATE_SLICE", "DYNAMIC_UPDATE_SLICE", real(4, 5), real(2, 2), Value(np.array([3, 1], np.int32)))
case("PAD", "PAD", real(1, 3, 4, 2), ints([0, 0], [1, 2], [0, 1], [0, 0]))
case("PAD int8", "PAD", whole(1, 3, 4, 2), ints([0, 0], [1, 2], [0, 1], [0, 0]), to=[out(np.int8, 0.05, 3)])
case("PADV2", "PADV2", real(2, 3), ints([0, 1], [2, 0]), fixed(7.5))
case("MIRROR_PAD reflect", "MIRROR_PAD", real(4, 5), ints([1, 2], [3, 0]), mode=0)
case("MIRROR_PAD symmetric", "MIRROR_PAD", real(4, 5), ints([1, 2], [3, 5]), mode=1)
case("DEPTH_TO_SPACE", "DEPTH_TO_SPACE", real(1, 2, 3, 8), block=2)
case("SPACE_TO_DEPTH", "SPACE_TO_DEPTH", real(1, 4, 6, 2), block=2)
case("SPACE_TO_BATCH_ND", "SPACE_TO_BATCH_ND", real(2, 4, 5, 3), ints(2, 3), ints([0, 0], [1, 0]))
case("BATCH_TO_SPACE_ND", "BATCH_TO_SPACE_ND", real(6, 2, 2, 3), ints(2, 3), ints([0, 1], [1, 0]))
for _op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
    for _half, _corners, _word in ((False, False, ""), (True, False, " half pixels"), (False, True, " corners")):
        case(f"{_op}{_word} up", _op, real(1, 4, 5, 2), ints(7, 13), half_pixel=_half, align_corners=_corners)
        case(f"{_op}{_word} down", _op, real(2, 9, 8, 1), ints(4, 3), half_pixel=_half, align_corners=_corners)
case(
    "RESIZE_BILINEAR int8",
    "RESIZE_BILINEAR",
    whole(1, 4, 5, 2),
    ints(8, 10),
    to=[out(np.int8, 0.05, 3)],
    half_pixel=True,
)

# --- complex numbers -----------------------------------------------------------------------------------------------


def spectrum(name: str, op: str, shape: Sequence[int], lengths: tuple[int, int], **options: Any) -> None:
    """Enter a case of two ops: the spectrum of real numbers, and what makes real numbers of it."""
    x, last = real(*shape), lengths[1] // 2 + 1
    between = Value(np.zeros((*shape[:-2], lengths[0], last), np.complex64))
    values = [x, ints(*lengths), between, Value(np.zeros(between.array.shape, np.float32))]
    ops = [Op("RFFT2D", [0, 1], [2], {}, b"", 1), Op(op, [2], [3], options, b"", 1)]
    CASES[name] = Case(name, model_bytes(values, ops, [0], [3]), [x.array], 1)


spectrum("RFFT2D and REAL", "REAL", (2, 1, 16), (1, 16))
spectrum("RFFT2D and IMAG, cut", "IMAG", (3, 16), (2, 8))
spectrum("RFFT2D and COMPLEX_ABS, filled up", "COMPLEX_ABS", (2, 3, 5), (4, 16))
spectrum("RFFT2D and CAST", "CAST", (1, 8), (1, 8), given=8, to_type=0)
case("RESHAPE to a scalar", "RESHAPE", real(1), Value(np.zeros(0, np.int32), is_constant=True))
