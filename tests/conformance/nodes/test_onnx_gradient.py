"""Gradient of ai.onnx.preview.training, on every device: beside derivatives written by hand and differences of the model's own
values. ONNX has no evaluator of it, nor has onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pytest
from onnx_devices import DEVICES, need

import singe as sg
from singe.errors import ImportFailure

pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper

TRAINING: Final = "ai.onnx.preview.training"
RNG: Final = np.random.default_rng(5)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def gradient(inputs: Sequence[str], outputs: Sequence[str], y: str, xs: Sequence[str], zs: Sequence[str] = ()) -> Any:
    facts: dict[str, Any] = {"y": y, "xs": list(xs), **({"zs": list(zs)} if zs else {})}
    return helper.make_node("Gradient", inputs, outputs, domain=TRAINING, **facts)


def model(
    nodes: Sequence[Any], given: Mapping[str, np.ndarray], outputs: Sequence[str], **constants: np.ndarray
) -> bytes:
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "derivatives",
        [helper.make_tensor_value_info(k, kind(x.dtype), x.shape) for k, x in given.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(x, k) for k, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def results(file: bytes, given: Mapping[str, np.ndarray], device: str) -> list[np.ndarray]:
    found = sg.load(file, device=DEVICES[device])(dict(given))
    return [np.asarray(x) for x in (found.values() if isinstance(found, dict) else [found])]


def near(got: Any, wanted: Any, bound: float = 1e-5) -> None:
    np.testing.assert_allclose(got, wanted, rtol=bound, atol=bound)


PRODUCT: Final = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Mul", ["h", "h"], ["y"])]
"""y = (x · w)²"""


@pytest.mark.parametrize("device", DEVICES)
def test_inputs_and_constants_have_gradients(device: str) -> None:
    need(device)
    x, w = f(2, 3), f(3, 4)
    node = gradient(["w", "x"], ["dw", "dx"], "y", ["w", "x"])
    for given, constants in (({"x": x, "w": w}, {}), ({"x": x}, {"w": w})):
        dw, dx = results(model([*PRODUCT, node], given, ["dw", "dx"], **constants), given, device)
        near(dw, x.T @ (2 * x @ w))
        near(dx, 2 * x @ w @ w.T)


@pytest.mark.parametrize("device", DEVICES)
def test_values_within_have_gradients_at_other_values(device: str) -> None:
    """The derivative by h, at a value that is not the graph's; one output is left out."""
    need(device)
    given = {"x": f(2, 3), "w": f(3, 4), "other": f(2, 4), "scale": f(4)}
    nodes = [*PRODUCT, helper.make_node("Mul", ["y", "scale"], ["z"]),
             gradient(["other", "scale"], ["", "ds"], "z", ["h", "scale"]),
             gradient(["other", "scale"], ["dh"], "z", ["h"], ["scale"])]  # fmt: skip
    ds, dh, z = results(model(nodes, given, ["ds", "dh", "z"]), given, device)
    near(ds, np.square(given["other"]).sum(0))
    near(dh, 2 * given["other"] * given["scale"])
    near(z, np.square(given["x"] @ given["w"]) * given["scale"])


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_have_gradients(device: str) -> None:
    """y = Σ w³ · x: dy/dw = 3w²x, and of its sum 6wx by w and 3w² by x."""
    need(device)
    given = {"w": f(4), "x": f(4)}
    nodes = [
        helper.make_node("Mul", ["w", "w"], ["w2"]),
        helper.make_node("Mul", ["w2", "w"], ["w3"]),
        helper.make_node("Mul", ["w3", "x"], ["p"]),
        helper.make_node("ReduceSum", ["p"], ["y"], keepdims=0),
        gradient(["w", "x"], ["dw"], "y", ["w"], ["x"]),
        gradient(["w", "x"], ["dww", "dwx"], "dw", ["w", "x"]),
    ]
    first, second, mixed = results(model(nodes, given, ["dw", "dww", "dwx"]), given, device)
    near(first, 3 * given["w"] ** 2 * given["x"])
    near(second, 6 * given["w"] * given["x"])
    near(mixed, 3 * given["w"] ** 2)


@pytest.mark.parametrize("device", DEVICES)
def test_a_small_network_beside_differences(device: str) -> None:
    need(device)
    given = {"x": f(2, 2, 5, 5), "labels": np.array([1, 2])}
    constants = {"k": f(3, 2, 3, 3), "shape": np.array([2, 27]), "m": f(27, 4), "c": f(4)}
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Reshape", ["b", "shape"], ["r"]),
        helper.make_node("Gemm", ["r", "m", "c"], ["g"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["g", "labels"], ["loss"]),
    ]
    node = gradient(["k", "c", "x", "labels"], ["dk", "dc"], "loss", ["k", "c"], ["x", "labels"])
    dk, dc = results(model([*nodes, node], given, ["dk", "dc"], **constants), given, device)
    for name, slope in (("k", dk), ("c", dc)):
        step = f(*constants[name].shape) * 1e-2
        ends = [
            results(model(nodes, given, ["loss"], **{**constants, name: constants[name] + s * step}), given, "CPU")[0]
            for s in (1, -1)
        ]
        near((slope * step).sum(), (ends[0] - ends[1]) / 2, 1e-3)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (gradient(["w", "x"], ["d"], "u", ["w"], ["x"]), "y is 'u'; expected a result of the nodes"),
        (gradient(["w"], ["d"], "y", ["w"], ["x"]), "1 inputs for xs"),
        (gradient(["i"], ["d"], "y", ["i"]), "'i' in xs is int64; expected a float type"),
    ],
)
def test_what_is_refused(node: Any, message: str) -> None:
    given = {"x": f(2, 3), "w": f(3, 4), "i": np.arange(3)}
    with pytest.raises(ImportFailure, match=message):
        sg.load(model([*PRODUCT, node], given, ["d"])).graph()
