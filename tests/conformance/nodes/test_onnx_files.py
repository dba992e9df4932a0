"""What a file may consist of, beside nodes and plain tensors: functions, sparse tensors, external data, many domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need

import singe as sg
from singe.errors import ImportFailure, UnsupportedOp

onnx = pytest.importorskip("onnx")
from onnx import AttributeProto, TensorProto, helper, numpy_helper  # noqa: E402

X = np.arange(6, dtype=np.float32).reshape(2, 3)
IN = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
OUT = helper.make_empty_tensor_value_info("y")


def opsets(**versions: int) -> list[Any]:
    return [helper.make_opsetid(domain.replace("__", "."), version) for domain, version in versions.items()]


def model(nodes: list[Any], imports: list[Any], functions: list[Any] | None = None, **parts: Any) -> Any:
    graph = helper.make_graph(nodes, "g", [IN], [OUT], **parts)
    return helper.make_model(graph, opset_imports=imports, functions=functions or [])


def run(given: Any, device: str) -> np.ndarray:
    need(device)
    return sg.load(given if isinstance(given, Path) else given.SerializeToString(), DEVICES[device])(X)


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_has_opsets_of_its_own(device: str) -> None:
    """The axes of ReduceSum are an attribute in opset 11, an input in opset 13; the call gives one of two attributes."""
    total = helper.make_node("ReduceSum", ["a"], ["b"], axes=[1])
    total.attribute.append(AttributeProto(name="keepdims", type=AttributeProto.INT, ref_attr_name="keep"))
    inner = helper.make_function("my.own", "Total", ["a"], ["b"], [total], opsets(**{"": 11}), attributes=["keep"])
    scaled = [
        helper.make_node("Total", ["a"], ["t"], domain="my.own", keep=1),
        helper.make_node("Constant", [], ["k"]),
        helper.make_node("Mul", ["t", "k"], ["b"]),
    ]
    scaled[1].attribute.append(AttributeProto(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="by"))
    outer = helper.make_function(
        "my.own", "Scaled", ["a"], ["b"], scaled, opsets(**{"": 13, "my__own": 1}),
        attribute_protos=[helper.make_attribute("by", 2.0)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Scaled", ["x"], ["p"], domain="my.own"),
        helper.make_node("Scaled", ["x"], ["q"], domain="my.own", by=10.0),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    found = run(model(nodes, opsets(**{"": 18, "my__own": 1}), [inner, outer]), device)
    check([found], [X.sum(1, keepdims=True) * np.float32(12)], 1e-6, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_nodes_out_of_order(device: str) -> None:
    """As onnxruntime's quantiser leaves them: a branch reads a value that a later node makes, another node a later one."""
    branches = (
        helper.make_graph([helper.make_node(op, ["a"], [op])], op, [], [helper.make_empty_tensor_value_info(op)])
        for op in ("Neg", "Exp")
    )
    nodes = [
        helper.make_node("Add", ["b", "a"], ["y"]),
        helper.make_node("If", ["holds"], ["b"], **dict(zip(("then_branch", "else_branch"), branches, strict=True))),
        helper.make_node("Cast", ["total"], ["holds"], to=TensorProto.BOOL),
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
    ]
    check([run(model(nodes, opsets(**{"": 18})), device)], [np.zeros_like(X)], 1e-6, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_over_lists(device: str) -> None:
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["b"], axis=0)]
    joined = helper.make_function("f", "Joined", ["s"], ["b"], nodes, opsets(**{"": 18}))
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Joined", ["s"], ["y"], domain="f"),
    ]
    check([run(model(nodes, opsets(**{"": 18, "f": 1}), [joined]), device)], [np.concatenate([X, X])], 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_real_signal_may_lack_the_axis_of_its_parts(device: str) -> None:
    """As PyTorch's exporter writes it, and onnxruntime takes it."""
    constants = [
        numpy_helper.from_array(np.array(value, np.int64), name) for name, value in (("step", 1), ("length", 2))
    ]
    nodes = [helper.make_node("STFT", ["x", "step", "", "length"], ["y"])]
    parts = np.fft.rfft(np.stack([X[:, :2], X[:, 1:]], 1))
    wanted = np.stack([parts.real, parts.imag], -1).astype(np.float32)
    check([run(model(nodes, opsets(**{"": 18}), initializer=constants), device)], [wanted], 1e-6, 1e-6)


def test_each_domain_has_its_version() -> None:
    """ "ai.onnx" is the same as ""; what Singe lacks is named with its domain."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], domain="ai.onnx"),
        helper.make_node("Scaler", ["a"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0]),
    ]
    found = run(model(nodes, opsets(ai__onnx=18, ai__onnx__ml=3, com__microsoft=1)), "CPU")
    check([found], [(X - 1) * 2], 0, 0)
    nodes = [helper.make_node("Relu", ["x"], ["y"], domain="some.where")]
    with pytest.raises(UnsupportedOp, match=r"some\.where\.Relu"):
        run(model(nodes, opsets(**{"": 18, "some__where": 1})), "CPU")


def sparse(dims: list[int], places: np.ndarray, values: np.ndarray) -> Any:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(places.astype(np.int64), "i"), dims
    )


@pytest.mark.parametrize("device", DEVICES)
def test_sparse_initialisers_are_dense_to_the_nodes(device: str) -> None:
    for places in (np.array([1, 5]), np.array([[0, 1], [2, 1]])):
        weights = sparse([3, 2], places, np.array([2, 3], np.float32))
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], opsets(**{"": 18}), sparse_initializer=[weights])
        check([run(made, device)], [X @ np.array([[0, 2], [0, 0], [0, 3]], np.float32)], 1e-6, 0)


def test_a_large_sparse_tensor_needs_values_to_match() -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("ReduceMax", ["t"], ["y"])]
    rows, count = 1 << 20, 1 << 15
    places = np.sort(np.random.default_rng(0).choice(3 * rows, count, replace=False))
    values = np.arange(count, dtype=np.float32)
    made = model(nodes, opsets(**{"": 18}), sparse_initializer=[sparse([rows, 1, 3], places, values)])
    assert run(made, "CPU").max() >= count - 1
    made = model(nodes, opsets(**{"": 18}), sparse_initializer=[sparse([rows, 1, 3], places[:9], values[:9])])
    with pytest.raises(ImportFailure, match="9 values for 3145728 elements"):
        run(made, "CPU")


def external(name: str, offset: int, shape: tuple[int, ...]) -> Any:
    tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    length = 4 * int(np.prod(shape))
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.mark.parametrize("device", DEVICES)
def test_weights_beyond_2_gb_of_a_file(device: str, tmp_path: Path) -> None:
    """The file has a hole of 5 GiB, which takes no room on the disk."""
    far = 5 << 30
    first, last = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    with open(tmp_path / "weights.bin", "wb") as f:
        f.write(first.tobytes())
        f.seek(far)
        f.write(last.tobytes())
    nodes = [helper.make_node("Mul", ["x", "a"], ["t"]), helper.make_node("Add", ["t", "b"], ["y"])]
    made = model(nodes, opsets(**{"": 18}), initializer=[external("a", 0, (3,)), external("b", far, (3,))])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    check([run(path, device)], [X * first + last], 1e-6, 0)
