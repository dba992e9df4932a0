"""The quantised ops of com.microsoft, and of ONNX in forms that its own cases lack, beside exact arithmetic on every device.

A quantised result may differ by one step where the unrounded value lies between two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from exact import answers
from onnx_devices import DEVICES, need

from singe import load
from singe.errors import ImportFailure

onnx = pytest.importorskip("onnx")
RNG: Final = np.random.default_rng(7)


class Case(NamedTuple):
    """One node: its op, its inputs in order (None: omitted), attributes, the number of outputs, and which inputs are
    constants of the model. bound: how far a float result may be from the exact one, relative to its largest value."""

    op: str
    inputs: tuple[np.ndarray | None, ...]
    attributes: Mapping[str, Any] = {}
    outputs: int = 1
    constant: tuple[int, ...] = ()
    bound: float = 1e-5


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


def s8(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape, np.int8)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def scale(value: Any) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: Any, kind: Any = np.uint8) -> np.ndarray:
    return np.array(value, kind)


X: Final = (scale(0.02), zero(120))
Y: Final = (scale(0.05), zero(33))
SX: Final = (scale(0.02), zero(-7, np.int8))
SY: Final = (scale(0.05), zero(9, np.int8))
CHANNELS: Final = RNG.uniform(0.01, 0.02, 5).astype(np.float32)
GROUPED: Final = (
    *X, s8(6, 2, 3, 3), RNG.uniform(0.01, 0.02, 6).astype(np.float32), zero([0] * 6, np.int8), *Y, RNG.integers(-999, 999, 6, np.int32),
)  # fmt: skip
"""What QLinearConv takes after its x of four channels in two groups."""


def n_bits(bits: int, columns: int, depth: int, block: int, zeros: str = "", **more: Any) -> Case:
    blocks = -(-depth // block)
    middle = {
        "": None,
        "packed": u8(columns * -(-blocks * bits // 8)),
        "plain": (RNG.uniform(0, 1 << bits, (columns, blocks))).astype(np.float32),
    }[zeros]
    given = (f32(2, 3, depth), u8(columns, blocks, block * bits // 8), f32(columns, blocks), middle)
    facts = {"N": columns, "K": depth, "bits": bits, "block_size": block}
    return Case("com.microsoft.MatMulNBits", given, facts, constant=(1, 2, 3), **more)


def of_groups(bits: int, columns: int, depth: int, block: int, groups: np.ndarray, zeros: str = "") -> Case:
    """MatMulNBits with the block of each row of the weights."""
    case = n_bits(bits, columns, depth, block, zeros)
    return case._replace(inputs=(*case.inputs, groups.astype(np.int32)), constant=(1, 2, 3, 4))


def bnb4(kind: int, columns: int, depth: int, block: int) -> Case:
    count = columns * depth
    given = (f32(2, 3, depth), u8(-(-count // 2)), RNG.uniform(0.5, 2, -(-count // block)).astype(np.float32))
    facts = {"N": columns, "K": depth, "block_size": block, "quant_type": kind}
    return Case("com.microsoft.MatMulBnb4", given, facts, constant=(1, 2))


LSTM: Final = Case(
    "com.microsoft.DynamicQuantizeLSTM",
    (f32(6, 2, 8), s8(1, 8, 40), s8(1, 10, 40), f32(1, 80), None, None, None, None,
     scale([0.004]), zero([0], np.int8), scale([0.004]), zero([0], np.int8)),
    {"hidden_size": 10}, 3, (1, 2, 3, 8, 9, 10, 11),
)  # fmt: skip

CASES: Final[Mapping[str, Case]] = {
    "add": Case("com.microsoft.QLinearAdd", (u8(2, 3, 4), *X, u8(3, 1), *X, *Y)),
    "add int8": Case("com.microsoft.QLinearAdd", (s8(2, 3, 4), *SX, s8(2, 3, 4), *SX, *SY)),
    "mul": Case("com.microsoft.QLinearMul", (u8(2, 3, 4), *X, u8(4), *X, *Y)),
    "sigmoid": Case("com.microsoft.QLinearSigmoid", (u8(2, 30), *X, scale(1 / 256), zero(0))),
    "leaky relu": Case("com.microsoft.QLinearLeakyRelu", (s8(2, 30), *SX, *SY), {"alpha": 0.2}),
    "softmax": Case(
        "com.microsoft.QLinearSoftmax",
        (u8(3, 20), *X, scale(1 / 256), zero(0)),
        {"opset": 13, "axis": -1},
        constant=(1, 2, 3, 4),
    ),
    "softmax before 13": Case(
        "com.microsoft.QLinearSoftmax",
        (u8(3, 4, 5), *X, scale(1 / 256), zero(0)),
        {"opset": 11, "axis": 1},
        constant=(1, 2, 3, 4),
    ),
    "average pool": Case(
        "com.microsoft.QLinearAveragePool",
        (u8(1, 3, 8, 9), *X, *Y),
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
        constant=(1, 2, 3, 4),
    ),
    "average pool last": Case(
        "com.microsoft.QLinearAveragePool",
        (u8(2, 8, 9, 3), *X, *Y),
        {"kernel_shape": [3, 2], "channels_last": 1},
        constant=(1, 2, 3, 4),
    ),
    "global average pool": Case(
        "com.microsoft.QLinearGlobalAveragePool", (u8(2, 5, 6, 7), *X, *Y), constant=(1, 2, 3, 4)
    ),
    "global average pool last": Case(
        "com.microsoft.QLinearGlobalAveragePool",
        (s8(2, 6, 7, 5), *SX, *SY),
        {"channels_last": 1},
        constant=(1, 2, 3, 4),
    ),
    "concat": Case(
        "com.microsoft.QLinearConcat",
        (*Y, u8(2, 3), *X, u8(2, 5), *Y, u8(2, 1), scale(0.1), zero(3)),
        {"axis": 1},
        constant=(0, 1, 3, 4, 6, 7, 9, 10),
    ),
    "where": Case(
        "com.microsoft.QLinearWhere",
        (RNG.random((3, 4)) < 0.5, u8(3, 4), *X, u8(3, 1), *Y, scale(0.04), zero(60)),
        constant=(2, 3, 5, 6, 7, 8),
    ),
    "max pool": Case("com.microsoft.NhwcMaxPool", (u8(1, 8, 9, 3),), {"kernel_shape": [2, 3], "strides": [2, 2]}),
    "max pool int8": Case(
        "com.microsoft.NhwcMaxPool", (s8(1, 8, 9, 3),), {"kernel_shape": [2, 3], "pads": [1, 1, 1, 1]}
    ),
    "quantise": Case("com.microsoft.QuantizeLinear", (f32(4, 5), *Y)),
    "quantise channels": Case(
        "com.microsoft.QuantizeLinear", (f32(4, 5), CHANNELS, zero([3, 4, 5, 6, 7])), {"axis": 1}
    ),
    "quantise to 16 bits": Case("com.microsoft.QuantizeLinear", (f32(4, 5), scale(1e-4), zero(-5, np.int16))),
    "dequantise": Case("com.microsoft.DequantizeLinear", (s8(4, 5), *SX)),
    "dequantise channels": Case(
        "com.microsoft.DequantizeLinear", (u8(4, 5), CHANNELS, zero([3, 4, 5, 6, 7])), {"axis": 1}
    ),
    "dequantise 32 bits": Case(
        "com.microsoft.DequantizeLinear", (RNG.integers(-9999, 9999, (4, 5), np.int32), scale(0.01), zero(0, np.int32))
    ),
    "integers to float": Case(
        "com.microsoft.MatMulIntegerToFloat",
        (u8(2, 3, 40), s8(40, 5), scale(0.01), CHANNELS, zero(7), zero([1, 2, 3, 4, 5], np.int8), f32(5)),
    ),
    "integers to float, constant": Case(
        "com.microsoft.MatMulIntegerToFloat",
        (u8(3, 40), u8(40, 32), scale(0.01), scale(0.02), zero(7), zero(128)),
        constant=(1, 3, 5),
    ),
    "dynamic": Case(
        "com.microsoft.DynamicQuantizeMatMul",
        (f32(4, 64), s8(64, 48), scale(0.01), zero(0, np.int8), f32(48)),
        constant=(1, 2, 3, 4),
    ),
    "dynamic channels": Case(
        "com.microsoft.DynamicQuantizeMatMul",
        (f32(2, 3, 40), u8(40, 5), CHANNELS, zero([100, 110, 120, 130, 140])),
        constant=(1, 2, 3),
    ),
    "gemm": Case(
        "com.microsoft.QGemm",
        (u8(3, 40), *X, s8(5, 40), CHANNELS, zero([0] * 5, np.int8), RNG.integers(-999, 999, 5, np.int32), *Y),
        {"transB": 1},
        constant=(1, 2, 3, 4, 5, 6, 7, 8),
    ),
    "gemm to float": Case(
        "com.microsoft.QGemm", (u8(3, 40), *X, u8(40, 7), *Y), {"alpha": 0.5}, constant=(1, 2, 3, 4, 5)
    ),
    "attention": Case(
        "com.microsoft.QAttention",
        (u8(2, 5, 16), s8(16, 48), f32(48), scale(0.01), scale(0.01), None, zero(128), zero(0, np.int8)),
        {"num_heads": 2},
        constant=(1, 2, 4, 7),
        bound=1e-4,
    ),
    "attention, columns, past": Case(
        "com.microsoft.QAttention",
        (
            u8(2, 5, 16),
            s8(16, 48),
            f32(48),
            scale(0.01),
            RNG.uniform(0.01, 0.02, 48).astype(np.float32),
            RNG.integers(0, 2, (2, 8), np.int32),
            zero(120),
            np.zeros(48, np.int8),
            f32(2, 2, 2, 3, 8),
        ),
        {"num_heads": 2, "unidirectional": 1},
        2,
        (1, 2, 3, 4, 6, 7),
        1e-4,
    ),
    "lstm": LSTM,
    "lstm both ways": LSTM._replace(
        inputs=(
            f32(6, 2, 8),
            s8(2, 8, 40),
            s8(2, 10, 40),
            f32(2, 80),
            None,
            f32(2, 2, 10),
            f32(2, 2, 10),
            None,
            RNG.uniform(0.003, 0.005, (2, 40)).astype(np.float32),
            np.zeros((2, 40), np.int8),
            RNG.uniform(0.003, 0.005, (2, 40)).astype(np.float32),
            np.zeros((2, 40), np.int8),
        ),
        attributes={"hidden_size": 10, "direction": "bidirectional"},
    ),
    "4 bits": n_bits(4, 24, 64, 32),
    "4 bits, zero points": n_bits(4, 7, 70, 32, "packed"),
    "4 bits, float zero points": n_bits(4, 7, 64, 16, "plain"),
    "8 bits": n_bits(8, 5, 64, 32, "packed"),
    "2 bits": n_bits(2, 9, 96, 32),
    "4 bits, groups in order": of_groups(4, 7, 64, 32, np.arange(64) // 32),
    "4 bits, groups": of_groups(4, 24, 64, 16, RNG.permutation(np.arange(64) // 16)),
    "4 bits, groups, float zero points": of_groups(4, 7, 64, 16, RNG.permutation(np.arange(64) // 16), "plain"),
    "FP4": bnb4(0, 16, 64, 64),
    "NF4": bnb4(1, 16, 64, 32),
    "NF4, blocks across rows": bnb4(1, 5, 48, 32),
    "FP4, an odd count": bnb4(0, 5, 33, 16),
    "gather of 4 bits": Case(
        "com.microsoft.GatherBlockQuantized",
        (u8(12, 32), RNG.integers(0, 12, (2, 3)), f32(12, 2)),
        {"block_size": 32, "bits": 4},
        constant=(0, 2),
    ),
    "gather of 4 bits, zero points": Case(
        "com.microsoft.GatherBlockQuantized",
        (u8(12, 48), RNG.integers(0, 12, (5,)), f32(12, 3), u8(12, 2)),
        {"block_size": 32},
        constant=(0, 2, 3),
    ),
    "gather of 8 bits": Case(
        "com.microsoft.GatherBlockQuantized",
        (u8(12, 64), RNG.integers(0, 12, (2, 3)), f32(12, 4), u8(12, 4)),
        {"block_size": 16, "bits": 8},
        constant=(0, 2, 3),
    ),
    "dynamic, of zeros": Case("DynamicQuantizeLinear", (np.zeros((2, 3), np.float32),), outputs=3),
    "matmul, rows and columns": Case(
        "MatMulInteger", (u8(3, 40), s8(40, 5), zero(7), zero([1, 2, 3, 4, 5], np.int8)), constant=(1, 3)
    ),
    "matmul of constants": Case("MatMulInteger", (u8(2, 3, 40), u8(40, 32), zero(7), zero(129)), constant=(1, 3)),
    "conv": Case(
        "ConvInteger",
        (u8(1, 3, 8, 9), u8(32, 3, 3, 3), zero(7), zero(100)),
        {"pads": [1, 1, 1, 1], "strides": [2, 1]},
        constant=(1, 3),
    ),
    "quantised conv": Case(
        "QLinearConv",
        (u8(2, 4, 8, 9), *GROUPED),
        {"group": 2, "pads": [1, 1, 1, 1]},
        constant=(3, 4, 5, 6, 7, 8),
    ),
    "quantised conv of com.microsoft": Case(
        "com.microsoft.QLinearConv",
        (u8(2, 4, 8, 9), *GROUPED),
        {"group": 2, "pads": [1, 1, 1, 1]},
        constant=(3, 4, 5, 6, 7, 8),
    ),
    "quantised conv, channels last": Case(
        "com.microsoft.QLinearConv",
        (u8(2, 8, 9, 4), *GROUPED),
        {"group": 2, "channels_last": 1, "pads": [1, 1, 1, 1]},
        constant=(3, 4, 5, 6, 7, 8),
    ),
    "quantised depthwise conv": Case(
        "QLinearConv",
        (u8(1, 6, 8, 9), *X, s8(6, 1, 3, 3), scale(0.01), zero(0, np.int8), *Y),
        {"group": 6},
        constant=(3, 4, 5),
    ),
    "quantised matmul": Case(
        "QLinearMatMul", (s8(3, 40), *SX, s8(40, 5), CHANNELS, zero([0] * 5, np.int8), *SY), constant=(3, 4, 5)
    ),
}


def model_of(case: Case) -> Any:
    domain, _, op = case.op.rpartition(".")
    kind = onnx.helper.np_dtype_to_tensor_dtype
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    given = [(n, x) for n, x in zip(names, case.inputs, strict=True) if x is not None]
    fixed = {f"x{i}" for i in case.constant}
    outputs = [f"y{i}" for i in range(case.outputs)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, names, outputs, domain=domain, **case.attributes)],
        "one",
        [onnx.helper.make_tensor_value_info(n, kind(x.dtype), x.shape) for n, x in given if n not in fixed],
        [onnx.helper.make_empty_tensor_value_info(n) for n in outputs],
        [onnx.numpy_helper.from_array(x, n) for n, x in given if n in fixed],
    )
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_op(name: str, device: str) -> None:
    need(device)
    case = CASES[name]
    model = load(model_of(case).SerializeToString(), DEVICES[device])
    found = model({v.name: np.asarray(case.inputs[int(v.name[1:])]) for v in model.inputs})
    found = list(found.values()) if isinstance(found, dict) else [found]
    wanted = answers(case.op, case.attributes, case.inputs)
    for mine, exact in zip(found, wanted[: case.outputs], strict=True):
        near(np.asarray(mine), exact, case.bound)


def near(mine: np.ndarray, exact: np.ndarray, bound: float) -> None:
    assert mine.dtype == exact.dtype
    assert mine.shape == exact.shape
    if exact.dtype.kind == "f":
        assert np.abs(mine - exact).max() <= bound * max(np.abs(exact).max(), 1e-6)
    elif exact.dtype == np.int32:
        np.testing.assert_array_equal(mine, exact)
    else:
        away = np.abs(mine.astype(np.int64) - exact)
        assert away.max() <= 1
        assert (away > 0).mean() <= 0.05


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"transB": 0}, "transB = 1"),
        ({"quant_type": 2}, "quant_type is 2; expected 0"),
        ({"block_size": 0}, "expected at least 1"),
        ({"K": 50}, "for N · K = 800"),
    ],
)
def test_bnb4_refused(facts: Mapping[str, Any], message: str) -> None:
    case = bnb4(1, 16, 64, 32)
    with pytest.raises(ImportFailure, match=message):
        load(model_of(case._replace(attributes={**case.attributes, **facts})).SerializeToString()).program()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_packed_zero_points_of_groups_are_those_numbers(bits: int, device: str) -> None:
    """onnxruntime leaves them out for 4 bits."""
    need(device)
    packed = of_groups(bits, 7, 96, 32, RNG.integers(0, 3, 96), "packed")
    x, weights, scales, zeros, groups = packed.inputs
    assert zeros is not None
    numbers = np.stack([zeros.reshape(7, -1) >> k & (1 << bits) - 1 for k in range(0, 8, bits)], -1)
    plain = packed._replace(inputs=(x, weights, scales, numbers.reshape(7, -1)[:, :3].astype(np.float32), groups))
    mine, theirs = (
        np.asarray(load(model_of(case).SerializeToString(), DEVICES[device])({"x0": x})) for case in (packed, plain)
    )
    near(mine, theirs, 1e-5)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.full(64, 2), "from 2 to 2; expected those of 2 blocks"),
        (np.zeros(63), r"shape \(63,\); expected .* \(64,\)"),
    ],
)
def test_groups_refused(groups: np.ndarray, message: str) -> None:
    with pytest.raises(ImportFailure, match=message):
        load(model_of(of_groups(4, 7, 64, 32, groups)).SerializeToString()).program()
