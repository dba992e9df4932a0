"""Ops that sample, move and transform, with attributes that ONNX's node cases lack, and their kin of com.microsoft: one
node each, on every device, beside onnxruntime."""

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
MICROSOFT = "com.microsoft"


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def regular(*shape: int) -> np.ndarray:
    """Matrices that are far from singular."""
    return floats(*shape) + 3 * np.eye(shape[-1], dtype=np.float32)


@dataclass(frozen=True)
class Case:
    """One node, all of whose inputs are inputs of the model."""

    op: str
    inputs: tuple[np.ndarray, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""

    def __str__(self) -> str:
        facts = [f"{k}={v}".replace(" ", "") for k, v in self.attributes.items()]
        return f"{self.op}{'-'.join(map(str, (a.shape for a in self.inputs)))}-{'-'.join(facts)}".replace(" ", "")

    def model(self) -> Any:
        names = [f"x{k}" for k in range(len(self.inputs))]
        given = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in zip(names, self.inputs, strict=True)
        ]
        node = onnx.helper.make_node(self.op, names, ["y"], domain=self.domain, **self.attributes)
        graph = onnx.helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")])
        opsets = [onnx.helper.make_opsetid("", 16), onnx.helper.make_opsetid(MICROSOFT, 1)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


REGIONS = np.array([[1, 1, 6, 7], [0, 2, 9.4, 3], [3.3, 3.6, 3.2, 3.1], [-3, -4, 20, 30]], np.float32)
PICTURES = np.array([0, 1, 1, 0], np.int64)
NUMBERED = np.concatenate([PICTURES[:, None].astype(np.float32), REGIONS], 1)
CORNERS = {"coordinate_transformation_mode": "output_half_pixel"}
GROUPS = {"strides": (2, 1), "group": 2, "output_padding": (1, 0)}
PADS = np.array([1, 0, 2, 1], np.int64)

CASES = [
    Case("MaxRoiPool", (floats(2, 3, 9, 8), NUMBERED), {"pooled_shape": (2, 3)}),
    Case("MaxRoiPool", (floats(2, 3, 9, 8), NUMBERED), {"pooled_shape": (3, 2), "spatial_scale": 0.5}),
    Case("RoiAlign", (floats(2, 3, 9, 8), REGIONS, PICTURES), {"output_height": 2, "output_width": 3}),
    Case("RoiAlign", (floats(2, 3, 9, 8), REGIONS, PICTURES), {**CORNERS, "sampling_ratio": 3, "spatial_scale": 0.7}),
    Case("RoiAlign", (floats(2, 3, 9, 8), REGIONS[:2], PICTURES[:2]), {"mode": "max", "output_height": 4, "sampling_ratio": 1}),
    Case("GridSample", (floats(1, 2, 4, 5), 1.5 * floats(1, 3, 3, 2)), {"mode": "bicubic", "padding_mode": "reflection"}),
    Case("GridSample", (floats(2, 2, 4, 5), 1.5 * floats(2, 3, 3, 2)), {"mode": "bilinear", "padding_mode": "border", "align_corners": 1}),
    Case("Einsum", (floats(2, 3, 4), floats(4, 3), floats(2, 5)), {"equation": "bij,ji,bk->kb"}),
    Case("GatherND", (floats(2, 3, 4), np.array([[[-1], [0]], [[2], [-3]]])), {"batch_dims": 1}),
    Case("CDist", (floats(4, 3), floats(5, 3)), {"metric": "euclidean"}, MICROSOFT),
    Case("CDist", (floats(4, 3), floats(5, 3)), {"metric": "sqeuclidean"}, MICROSOFT),
    Case("Inverse", (regular(2, 4, 4),), domain=MICROSOFT),
    Case("Inverse", (regular(2, 9, 9),), domain=MICROSOFT),
    Case("GridSample", (floats(1, 2, 4, 5), floats(1, 3, 3, 2)), {"mode": "bicubic"}, MICROSOFT),
    Case("ConvTransposeWithDynamicPads", (floats(1, 3, 5, 4), floats(3, 2, 3, 3), PADS), {"strides": (2, 2)}, MICROSOFT),
    Case("ConvTransposeWithDynamicPads", (floats(1, 4, 5, 4), floats(4, 2, 3, 3), PADS, floats(4)), GROUPS, MICROSOFT),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_op(case: Case, device: str) -> None:
    need(device)
    model = case.model()
    wanted = session(model).run(None, {f"x{k}": a for k, a in enumerate(case.inputs)})
    check(prepare(model, device).run(list(case.inputs)), wanted, RTOL, ATOL)
