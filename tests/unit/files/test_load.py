"""`load` gives a Model of whatever Singe writes or reads: ONNX, records, Programs, bundles."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, slow
from onnx import ModelProto, TensorProto, helper, numpy_helper

import singe as sg

X = np.random.default_rng(3).normal(size=(3, 8)).astype(np.float32)


class Net(sg.nn.Module):
    def __init__(self) -> None:
        self.first = sg.nn.Linear(8, 300, rng=0)
        self.last = sg.nn.Linear(300, 4, rng=1)

    def __call__(self, x: sg.Tensor) -> sg.Tensor:
        return self.last(self.first(x).relu())


def net(device: str = "numpy") -> sg.Model:
    return sg.Model.of(Net(), {"x": ("N", 8)}, device)


def onnx_bytes(*ops: str, kind: int = TensorProto.FLOAT) -> bytes:
    names = ["x", *(f"y{i}" for i in range(len(ops)))]
    nodes = [helper.make_node(op, [a], [b]) for op, a, b in zip(ops, names, names[1:], strict=False)]
    first = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])
    graph = helper.make_graph(nodes, "g", [first], [helper.make_tensor_value_info(names[-1], kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@RUNNERS
def test_programs_and_records_load_as_models(device_name: str, tmp_path: Path) -> None:
    model, program, record = net(device_name), tmp_path / "net.program", tmp_path / "net.singe"
    expected = model(X)
    model.program().save(program)
    sg.save(model, record)
    for given in (program, program.read_bytes(), record, record.read_bytes()):
        again = sg.load(given, device_name)
        assert isinstance(again, sg.Model)
        assert list(map(str, again.inputs)) == ["x: float32(N, 8)"]
        assert [p.name for p in again.outputs] == ["output"]
        for got in (again(X), again(x=X), again({"x": X})):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert again(X[:1]).shape == (1, 4)
        with pytest.raises(sg.ShapeError, match="expected"):
            again(X[:, :7])
        with pytest.raises(sg.InputError, match="missing: 'x'"):
            again()


@pytest.mark.parametrize("dtype", ["float32", *slow("float16", "int8")])
@pytest.mark.parametrize("device", ["wasm", "auto"])
def test_bundles_load_as_models(device: str, dtype: str, tmp_path: Path) -> None:
    sg.export(net(), tmp_path / "net", targets=["wasm"], dtype=dtype)
    for path in (tmp_path / "net", tmp_path / "net" / "model.json"):
        again = sg.load(path, device)
        np.testing.assert_allclose(again(X), net()(X), rtol=1e-5, atol=1e-5 if dtype == "float32" else 2e-2)


def test_what_was_compiled_says_what_it_cannot_do(tmp_path: Path) -> None:
    net().program().save(tmp_path / "net.program")
    sg.export(net(), tmp_path / "net", targets=["wasm"])
    compiled = sg.load(tmp_path / "net.program")
    for act in (compiled.graph, lambda: sg.save(compiled, tmp_path / "x.singe"), lambda: compiled.specialise(N=3)):
        with pytest.raises(sg.InputError, match="is compiled: it runs, and has no Graph"):
            act()
    with pytest.raises(sg.InputError, match="takes no input_shapes; load the model's own file"):
        sg.load(tmp_path / "net.program", input_shapes={"x": (1, 8)})
    with pytest.raises(sg.DeviceError, match="compile it again for this device"):
        sg.load(tmp_path / "net.program", "wasm")
    with pytest.raises(sg.DeviceError, match="the bundle is for wasm, not for"):
        sg.load(tmp_path / "net", "numpy")


def test_a_changed_bundle_is_refused(tmp_path: Path) -> None:
    sg.export(net(), tmp_path / "net", targets=["wasm"])
    manifest = tmp_path / "net" / "model.json"
    whole = manifest.read_text()
    (piece,) = json.loads(whole)["targets"]["wasm"]["weights"]
    for change, said in (
        ({"file": "../../net/" + piece["file"]}, "expected a name in the bundle's folder"),
        ({"bytes": 3}, "expected 3"),
        ({"sha256": "0"}, "the file is damaged"),
        ({"parts": [{"encoding": "int8", "at": 0, "shape": [1]}], "decoded": 1 << 40}, "cannot become"),
    ):
        data = json.loads(whole)
        data["targets"]["wasm"]["weights"][0].update(change)
        manifest.write_text(json.dumps(data))
        with pytest.raises(sg.FormatError, match=said):
            sg.load(tmp_path / "net", "wasm")
    manifest.write_text('{"format": "singe/9"}')
    with pytest.raises(sg.FormatError, match="export the model again"):
        sg.load(tmp_path / "net", "wasm")


def test_unsupported_models_are_refused_when_they_are_loaded() -> None:
    with pytest.raises(sg.UnsupportedOp, match=r"Bar \(1\), Foo \(1\); register them with sg\.op"):
        sg.load(onnx_bytes("Foo", "Relu", "Bar"))


@pytest.mark.parametrize(
    ("domain", "advice"),
    [("com.microsoft.nchwc", "ORT_ENABLE_EXTENDED"), ("ai.onnx.contrib", "leave them out when you")],
)
def test_ops_of_other_tools_say_where_they_come_from(domain: str, advice: str) -> None:
    made = ModelProto.FromString(onnx_bytes("Foo"))
    made.graph.node[0].domain = domain
    made.opset_import.add(domain=domain, version=1)
    with pytest.raises(sg.UnsupportedOp, match=rf"{re.escape(domain)}\.Foo \(1\); .*{advice}"):
        sg.load(made.SerializeToString())


def joined(shape: Sequence[str] | None) -> bytes:
    """x (n) and z of this shape, one behind the other."""
    x, z = (helper.make_tensor_value_info(k, TensorProto.FLOAT, d) for k, d in (("x", ["n"]), ("z", shape)))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Concat", ["x", "z"], ["y"], axis=0)], "g", [x, z], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def test_shapes_that_a_file_gives_wrongly_are_asked_for() -> None:
    """One name for two sizes, and an input without a rank; input_shapes mends both."""
    x, z = np.ones(2, np.float32), np.ones(3, np.float32)
    with pytest.raises(sg.ShapeError, match=r"with another name for one: input_shapes=\{'z': \('n_z',\)\}"):
        sg.load(joined(["n"]), "numpy")(x, z)
    with pytest.raises(sg.ImportFailure, match=r"'z' has no known rank; give its shape, .* input_shapes=\{'z': "):
        sg.load(joined(None), "numpy")
    for shape in (["n"], None):
        found: Any = sg.load(joined(shape), "numpy", input_shapes={"z": ("n_z",)})(x, z)
        assert found.shape == (5,)


def test_ops_of_the_host_are_refused_when_the_model_is_loaded() -> None:
    given = onnx_bytes("NonZero", kind=TensorProto.INT64)
    assert sg.load(given, "wasm")(X).shape == (2, X.size)
    with pytest.raises(sg.SingeError, match="host"):
        sg.load(given, "wasm", fail_on_host=True)


def one(op: str, shape: Sequence[int | str] = (2, 3), opset: int = 17, inputs: str = "x", **attributes: Any) -> bytes:
    """A model of one node over x and an initialiser w of four ones."""
    node = helper.make_node(op, inputs.split(), ["y"], **attributes)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in (("x", shape), ("y", None))]
    w = numpy_helper.from_array(np.ones(4, np.float32), "w")
    graph = helper.make_graph([node], "g", values[:1], values[1:], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


BROKEN: dict[str, tuple[bytes, str]] = {
    "a type of attribute": (one("Softmax", axis="last"), "attribute 'axis' is 'last'"),
    "an axis": (one("Softmax", axis=7), "axis 7 is out of range"),
    "a type to cast to": (one("Cast", to=99), "a cast to type 99"),
    "an order of axes": (one("Transpose", perm=[0, 0]), "does not name each"),
    "shapes": (one("Add", inputs="x w"), "do not broadcast"),
    "shapes of open sizes": (one("MatMul", ("N", 3), inputs="x w"), "inner sizes 3 and 4 differ"),
    "a missing attribute": (one("MaxPool", (1, 3, 4, 4)), "kernel_shape is missing"),
    "a mode": (one("Pad", inputs="x w", mode="foo"), "node 0 \\(Pad\\)"),
    "a graph": (one("Loop", inputs="x"), "node 0 \\(Loop\\)"),
    "a count of inputs": (one("Relu", inputs="x x"), "2 inputs; expected 1"),
    "a value that no node makes": (one("Relu", inputs="z"), "used before any node makes it"),
    "a type of elements": (one("StringConcat", opset=20, inputs="x x"), "got float32, expected one of string"),
    "an equation": (one("Einsum", equation="ijk->i"), "for 2 axes"),
    "an opset of the future": (one("Relu", opset=29), "of opset 29, expected at most 28"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_models_whose_nodes_do_not_fit_are_refused_when_they_are_loaded(name: str) -> None:
    data, text = BROKEN[name]
    with pytest.raises(sg.ImportFailure, match=text):
        sg.load(data, "numpy")


NO_MODELS: dict[str, tuple[bytes, str]] = {
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n", "fetch the file itself: git lfs pull"),
    "a page": (b"\n<!DOCTYPE html>\n<html></html>", "a page of HTML; download the file itself"),
    "text": (b"hello there\n", r"it is text, which begins with 'hello there\\n', expected an ONNX or TensorFlow Lite model"),
    "a picture": (b"\xff\xd8\xff\xe0\0\x10JFIF", "a picture; expected a model"),
    "a sound": (b"RIFF\x24\0\0\0WAVEfmt ", "a sound; expected a model"),
    "a language model": (b"GGUF\3\0\0\0", r"weights without a model \(GGUF; a language model is for singe\.language\.load"),
    "JSON": (b"{}", "it is text, which begins with '{}'"),
    "other bytes": (b"\x08\x07\x66", "is this an ONNX model?"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_MODELS)
def test_files_that_are_no_models_are_named(name: str, tmp_path: Path) -> None:
    data, text = NO_MODELS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for call in (lambda: sg.load(path, "numpy"), lambda: sg.load(data, "numpy"), lambda: sg.load_module(path)):
        with pytest.raises(sg.FormatError, match=text):
            call()
    with pytest.raises(sg.DeviceError, match="no backend 'foo'"):  # which is said first
        sg.load(path, device="foo")


def test_a_slip_in_a_path_is_named_before_a_device_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeeze.onnx").touch()
    monkeypatch.setattr("singe.model.files.find_device", lambda _: pytest.fail("it opened a device"))
    for name, said in (("sqeeze.onnx", r"; did you mean squeeze\.onnx\?"), ("other/none.onnx", "")):
        with pytest.raises(sg.InputError, match=rf"{name}: cannot be read: no such file or folder{said}$"):
            sg.load(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"states": ["x"]}, r"states: got \['x'\], expected a dict of an input's name to the name of the output"),
        ({"states": "x"}, "states: got 'x', expected a dict"),
        ({"donate": 5}, "donate: got 5, expected a list of inputs, some of x"),
        ({"input_shapes": [3, 8]}, r"input_shapes: got \[3, 8\], expected a dict"),
        ({"device": None}, "device: got None, expected a name"),
    ],
)
def test_arguments_of_the_wrong_kinds_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(sg.InputError, match=said):
        sg.load(onnx_bytes("Relu"), **arguments)


def test_a_folder_that_is_no_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        sg.InputError, match=r"a folder, which is no bundle without a model.json; give the path of a file$"
    ):
        sg.load(tmp_path)
    (tmp_path / "net.onnx").write_bytes(one("Relu"))
    with pytest.raises(sg.InputError, match=r"give the path of a file, such as .*net.onnx"):
        sg.load_module(tmp_path)


def test_compile_says_what_it_takes() -> None:
    with pytest.raises(sg.InputError, match="got 3, expected a Model, a Graph or a function"):
        sg.compile(3)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(sg.InputError, match="missing a required argument: 'x'; give an example"):
        sg.compile(sg.nn.Linear(2, 2))


def test_the_first_program_is_compiled_of_the_graph_that_loading_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sg.load(one("Relu", ("N", 3)), "numpy")
    monkeypatch.setattr(model.source, "graph", None)
    np.testing.assert_array_equal(model(np.full((2, 3), -1, np.float32)), np.zeros((2, 3)))


def test_a_model_proto_is_read() -> None:
    proto = ModelProto.FromString(onnx_bytes("Relu"))
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_array_equal(sg.load(proto, "numpy")(x), sg.load(onnx_bytes("Relu"), "numpy")(x))
