"""Versions and special cases of ops that ONNX's node cases lack: one node each, on every device, beside onnxruntime.

Left out because onnxruntime deviates from the specification: auto_pad SAME with dilations or with strides larger than
the window, align_corners with scales that do not divide, a backward slice that ends at INT_MAX.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need
from peer import session

from singe.onnx.backend import prepare

onnx = pytest.importorskip("onnx")
RTOL, ATOL = 1e-4, 1e-5
IMAGE = (2, 4, 7, 6)


@dataclass(frozen=True)
class Case:
    """One node over a random x. Other inputs are constants:
    a shape stands for random floats, None for an omitted input."""

    op: str
    opset: int
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: tuple[Any, ...] = ()
    shape: tuple[int, ...] = IMAGE
    outputs: int = 1

    def __str__(self) -> str:
        facts = [f"{k}={v}".replace(" ", "") for k, v in self.attributes.items()]
        return f"{self.op}-{self.opset}-{'-'.join(facts)}"

    def model(self, x: np.ndarray) -> Any:
        random = np.random.default_rng(1)
        arrays = [random.standard_normal(c).astype(np.float32) if isinstance(c, tuple) else c for c in self.constants]
        names = ["" if a is None else f"c{i}" for i, a in enumerate(arrays)]
        tensors = [onnx.numpy_helper.from_array(a, name) for a, name in zip(arrays, names, strict=True) if name]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = onnx.helper.make_node(self.op, ["x", *names], outputs, **self.attributes)
        given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
        graph = onnx.helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name=o) for o in outputs], tensors)
        return onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 19 else 10
        )


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


NONE = np.array([], np.float32)
POOL = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 0, 2, 1)}
FAR = 2**63 - 1

CASES = [
    Case("Conv", 7, {"auto_pad": "SAME_LOWER", "strides": (2, 2)}, ((3, 4, 3, 3),)),
    Case("Conv", 11, {"auto_pad": "VALID", "dilations": (2, 1)}, ((3, 4, 2, 3), (3,))),
    Case("Conv", 11, {"group": 2, "pads": (1, 0, 2, 3), "strides": (3, 1), "dilations": (1, 2)}, ((6, 2, 3, 2), (6,))),
    Case("Conv", 22, {"group": 4, "kernel_shape": (3,), "pads": (2, 0)}, ((8, 1, 3), (8,)), (2, 4, 9)),
    Case("Conv", 11, {"strides": (2, 1, 2), "pads": (1, 1, 0, 0, 1, 1)}, ((2, 3, 2, 3, 1),), (1, 3, 5, 4, 6)),
    Case("ConvTranspose", 7, {"strides": (3, 2), "pads": (1, 0, 1, 1)}, ((4, 2, 3, 3), (2,))),
    Case("ConvTranspose", 11, {"strides": (2, 3), "output_padding": (1, 2), "dilations": (2, 1), "group": 2}, ((4, 3, 2, 4), (6,))),
    Case("ConvTranspose", 11, {"auto_pad": "SAME_UPPER", "strides": (2, 2)}, ((4, 1, 3, 4),)),
    Case("ConvTranspose", 11, {"auto_pad": "SAME_LOWER", "strides": (2, 2)}, ((4, 1, 3, 4),)),
    Case("ConvTranspose", 11, {"output_shape": (15, 14), "strides": (2, 2)}, ((4, 1, 3, 4),)),
    Case("MaxPool", 8, {**POOL, "storage_order": 1}, outputs=2),
    Case("MaxPool", 10, {**POOL, "ceil_mode": 1, "dilations": (1, 2)}, outputs=2),
    Case("MaxPool", 12, {"kernel_shape": (2, 2), "auto_pad": "SAME_LOWER"}),
    Case("MaxPool", 22, {"kernel_shape": (3,), "strides": (2,), "ceil_mode": 1, "pads": (1, 1)}, shape=(1, 2, 8)),
    Case("AveragePool", 7, {**POOL, "count_include_pad": 1}),
    Case("AveragePool", 10, {**POOL, "ceil_mode": 1}),
    Case("AveragePool", 22, {**POOL, "ceil_mode": 1, "count_include_pad": 1}),
    Case("AveragePool", 11, {"kernel_shape": (3, 3), "auto_pad": "SAME_UPPER", "strides": (2, 2)}),
    Case("AveragePool", 19, {"kernel_shape": (2, 2), "dilations": (2, 3), "pads": (1, 1, 1, 1)}),
    Case("LpPool", 11, {"kernel_shape": (2, 3), "p": 3, "pads": (1, 1, 0, 0)}),
    Case("GlobalLpPool", 2, {"p": 1}),
    Case("BatchNormalization", 7, {"epsilon": 1e-2}, ((4,), (4,), (4,), floats(1, 2, 3, 4))),
    Case("BatchNormalization", 15, {}, ((4,), (4,), (4,), floats(1, 2, 3, 4)), (3, 4)),
    Case("InstanceNormalization", 6, {}, ((4,), (4,))),
    Case("LRN", 13, {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 2.0}),
    *(Case(op, v, {"axis": axis}) for op in ("Softmax", "LogSoftmax") for v, axis in ((7, 0), (7, 2), (11, -1), (11, -3), (13, 1))),
    Case("Softmax", 11),
    Case("Softmax", 13),
    *(Case(op, 11, {"axes": (-1, 1), "keepdims": k}) for op in ("ReduceSum", "ReduceMean", "ReduceL2", "ReduceLogSumExp") for k in (0, 1)),
    *(Case(op, 18, {"keepdims": 0}, (ints(2, 0),)) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1")),
    *(Case(op, 18, {"noop_with_empty_axes": n}, (ints(),)) for op in ("ReduceSum", "ReduceSumSquare", "ReduceMax") for n in (0, 1)),
    Case("ReduceMean", 13),
    Case("Clip", 6, {"min": -0.5}),
    Case("Clip", 7, {"min": -0.5, "max": 0.25}),
    Case("Clip", 11, {}, (None, np.float32(0.5))),
    Case("Clip", 12, {}, (np.float32(0.5), np.float32(-0.5))),
    Case("Clip", 13),
    Case("Pad", 2, {"pads": (0, 1, 2, 0, 1, 0, 0, 3), "value": 1.5}),
    Case("Pad", 2, {"pads": (0, 0, 2, 1, 0, 0, 3, 0), "mode": "reflect"}),
    Case("Pad", 11, {"mode": "edge"}, (ints(1, 0, 2, 1, 0, 2, 3, 0),)),
    Case("Pad", 13, {}, (ints(0, -1, -2, 3, 1, -1, 2, -3), np.float32(7))),
    Case("Pad", 18, {}, (ints(1, -1, 0, 2), np.float32(7), ints(-1, 2))),
    Case("Pad", 19, {"mode": "wrap"}, (ints(0, 0, 2, 3, 0, 0, 3, 1),)),
    Case("Slice", 1, {"starts": (1, -3), "ends": (4, 2**31 - 1), "axes": (1, 2)}),
    Case("Slice", 9, {"starts": (0, 1), "ends": (1, -1)}),
    Case("Slice", 10, {}, (ints(5, 0), ints(-100, FAR), ints(-1, 1), ints(-2, 3))),
    Case("Slice", 13, {}, (ints(-FAR, 3), ints(FAR, 3), ints(0, 3))),
    Case("Slice", 13, {}, (np.array([-1], np.int32), np.array([-9], np.int32), np.array([2], np.int32), np.array([-1], np.int32))),
    Case("Split", 2, {"axis": 1, "split": (1, 3)}, outputs=2),
    Case("Split", 11, {"axis": -1}, outputs=3),
    Case("Split", 13, {"axis": 2}, (ints(0, 5, 2),), outputs=3),
    Case("Split", 18, {"axis": 2, "num_outputs": 3}, outputs=3),
    Case("Squeeze", 11, {"axes": (-4, 2)}, shape=(1, 3, 1, 2)),
    Case("Squeeze", 13, shape=(1, 3, 1, 2)),
    Case("Unsqueeze", 11, {"axes": (-1, 0)}),
    Case("Unsqueeze", 13, {}, (ints(5, -4),)),
    Case("Reshape", 13, {}, (ints(0, -1, 3),)),
    Case("Reshape", 14, {"allowzero": 1}, (ints(0, 7),), (0, 3)),
    Case("Expand", 13, {}, (ints(3, 1, 4, 1, 6),)),
    Case("Tile", 13, {}, (ints(2, 1, 3, 0),)),
    Case("Flatten", 9, {"axis": 0}),
    Case("Flatten", 13, {"axis": -1}),
    Case("Transpose", 13),
    Case("Gather", 11, {"axis": -2}, (np.array([[-1, 0], [3, -7]], np.int32),)),
    Case("MatMul", 9, {}, ((6,),)),
    Case("MatMul", 13, {}, ((4, 6, 2),)),
    Case("MatMul", 13, {}, ((5, 6, 2),), (6,)),
    Case("Gemm", 7, {"alpha": 0.5, "transB": 1}, ((3, 6), (3,)), (7, 6)),
    Case("Gemm", 11, {"transA": 1}, ((7, 3),), (7, 6)),
    Case("Gemm", 13, {"beta": 2.0}, ((6, 3), (7, 1)), (7, 6)),
    Case("Upsample", 9, {"mode": "nearest"}, (floats(1, 1, 2, 1.5),)),
    Case("Resize", 10, {"mode": "nearest"}, (floats(1, 1, 0.6, 1.7),)),
    Case("Resize", 10, {"mode": "linear"}, (floats(1, 1, 0.6, 1.7),)),
    Case("Resize", 11, {"mode": "nearest", "nearest_mode": "ceil"}, (NONE, NONE, ints(2, 4, 3, 11))),
    Case("Resize", 13, {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}, (None, floats(1, 1, 1.5, 0.7))),
    Case("Resize", 13, {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0},
         (floats(0, 0, -0.2, 0.1, 1, 1, 0.7, 1.3), None, ints(2, 4, 5, 5))),
    Case("Resize", 18, {"mode": "linear", "antialias": 1}, (None, floats(1, 1, 0.4, 0.6))),
    Case("Resize", 18, {"mode": "linear", "axes": (3, 2), "keep_aspect_ratio_policy": "not_larger"}, (None, None, ints(5, 9))),
    Case("Resize", 18, {"mode": "cubic", "axes": (2, 3), "keep_aspect_ratio_policy": "not_smaller"}, (None, None, ints(5, 9))),
    Case("Resize", 19, {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}, (None, floats(1, 1, 0.6, 1.7))),
    Case("DepthToSpace", 11, {"blocksize": 2, "mode": "CRD"}),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_version(case: Case, device: str) -> None:
    need(device)
    ours, theirs = results(case, device)
    check(ours, theirs, RTOL, ATOL)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opset", [7, 9, 13])
def test_batch_normalization_with_five_outputs_is_in_training_mode(opset: int, device: str) -> None:
    need(device)
    parameters = ((4,), (4,), (4,), floats(1, 2, 3, 4))
    ours, theirs = results(Case("BatchNormalization", opset, {"momentum": 0.8}, parameters, outputs=5), device)
    theirs[4] = 1 / theirs[4] ** 2 - 1e-5  # ONNX says that this is the variance
    check(ours, theirs, RTOL, ATOL)


def results(case: Case, device: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(ours, onnxruntime's)"""
    x = np.random.default_rng(0).standard_normal(case.shape).astype(np.float32)
    model = case.model(x)
    return list(prepare(model, device).run([x])), list(session(model).run(None, {"x": x}))
