"""TensorFlow Lite files are read as ONNX files are: names, open sizes, variables, sparse and small weights, errors, commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from tflite_bytes import Op, Sub, Value, graph_fields, model_bytes

import singe as sg
from singe.tflite import schema as s
from singe.tflite.flexbuffer import read_options
from singe.tflite.model import read_model
from singe.tools.cli import main

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
FLOATS = Value(np.zeros((2, 3), np.float32))


def relu(**more: Any) -> bytes:
    return model_bytes([Value(X), FLOATS], [Op("RELU", [0], [1])], [0], [1], **more)


def open_relu() -> bytes:
    return model_bytes([Value(X, signature=(-1, 3)), Value(X, signature=(-1, 3))], [Op("RELU", [0], [1])], [0], [1])


def test_a_path_and_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(relu())
    for given in (path, str(path), path.read_bytes()):
        model = sg.load(given, "numpy")
        assert list(map(str, model.inputs)) == ["t0: float32(2, 3)"]
        np.testing.assert_array_equal(model(X), np.maximum(X, 0))
    with pytest.raises(sg.ShapeError, match="expected"):
        sg.load(path, "numpy")(X[:1])


def test_open_dimensions_are_sizes() -> None:
    model = sg.load(open_relu(), "numpy")
    assert list(map(str, model.inputs)) == ["t0: float32(N, 3)"]
    for n in (1, 5):
        np.testing.assert_array_equal(model(np.full((n, 3), -1, np.float32)), np.zeros((n, 3)))
    closed = sg.load(open_relu(), "numpy", input_shapes={"t0": ("batch", 3)})
    assert list(map(str, closed.inputs)) == ["t0: float32(batch, 3)"]
    with pytest.raises(sg.InputError, match=r"the input 't0' has the shape \(None, 3\), got \(1, 4\)"):
        sg.load(open_relu(), "numpy", input_shapes={"t0": (1, 4)})
    with pytest.raises(sg.InputError, match="shapes are given for other; the inputs are t0"):
        sg.load(open_relu(), "numpy", input_shapes={"other": (1, 4)})


def test_names_are_those_of_the_signature() -> None:
    ends = {
        "inputs": [{"name": "photo", "tensor": 0}],
        "outputs": [{"name": "score", "tensor": 1}],
        "key": "serve",
        "graph": 0,
    }
    model = sg.load(relu(signatures=[ends]), "numpy")
    assert ([x.name for x in model.inputs], [y.name for y in model.outputs]) == (["photo"], ["score"])
    twice = sg.load(relu(signatures=[ends, ends]), "numpy")
    assert [x.name for x in twice.inputs] == ["t0"], "several signatures name nothing"


@RUNNERS
def test_variables_live_from_run_to_run(device_name: str) -> None:
    """A running sum that begins with what a second graph assigns."""
    handle, start = (
        Value(np.zeros((), np.int32), dtype="resource"),
        Value(np.full((2, 3), 10, np.float32), is_constant=True),
    )
    values = [Value(X), handle, FLOATS, FLOATS, start]
    ops = [
        Op("VAR_HANDLE", [], [1], {"name": "sum"}), Op("CALL_ONCE", [], [], {"graph": 1}), Op("READ_VARIABLE", [1], [2]),
        Op("ADD", [0, 2], [3]), Op("ASSIGN_VARIABLE", [1, 3], []),
    ]  # fmt: skip
    begin = [Op("VAR_HANDLE", [], [1], {"name": "sum"}), Op("ASSIGN_VARIABLE", [1, 4], [])]
    everything = [*ops, *begin]
    main_graph = graph_fields(values, everything, [0], [3])
    other = graph_fields(values, everything, [], [])
    graphs = [
        main_graph | {"operators": main_graph["operators"][: len(ops)]},
        other | {"operators": other["operators"][len(ops) :]},
    ]
    model = sg.load(model_bytes(values, everything, [0], [3], graphs=graphs), device_name)
    session = model.session()
    for k in range(1, 4):
        np.testing.assert_array_equal(session(X), 10 + k * X)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sparse_weights_have_their_zeros(dtype: str) -> None:
    """In rows of stored columns, and in blocks of 1 by 2."""
    dense = np.array([[0, 5, 0, 0], [0, 0, 0, 0], [1, 2, 0, 7]], dtype)

    def indices(*numbers: int) -> Sub:
        return Sub(s.INDEX_VECTORS[3], {"values": numbers})

    def compressed(segments: Sub, places: Sub) -> dict[str, Any]:
        return {"format": 1, "segments_type": 3, "segments": segments, "indices_type": 3, "indices": places}

    rows = {"format": 0, "dense_size": 3}
    plain = {"order": [0, 1], "dimensions": [rows, compressed(indices(0, 1, 1, 4), indices(1, 0, 1, 3))]}
    blocks = {
        "order": [0, 1, 2],
        "block_map": [1],
        "dimensions": [rows, compressed(indices(0, 1, 1, 3), indices(0, 0, 1)), {"format": 0, "dense_size": 2}],
    }
    for sparsity, held in ((plain, [5, 1, 2, 7]), (blocks, [0, 5, 1, 2, 0, 7])):
        weights = Value(dense, is_constant=True, raw=np.array(held, dtype).tobytes(), sparsity=sparsity)
        values = [
            Value(np.zeros((3, 4), np.float32)),
            weights,
            Value(dense),
            Value(dense.astype(np.float32)),
            Value(dense.astype(np.float32)),
        ]
        ops = [Op("DENSIFY", [1], [2]), Op("DEQUANTIZE", [2], [3]), Op("ADD", [0, 3], [4])]
        if dtype == "float32":
            ops = [Op("DENSIFY", [1], [2]), Op("ADD", [0, 2], [4])]
        model = sg.load(model_bytes(values, ops, [0], [4]), "numpy")
        np.testing.assert_array_equal(model(np.zeros((3, 4), np.float32)), dense)


def test_weights_of_four_bits_are_unpacked() -> None:
    whole = np.array([[-8, 7, 1], [0, -1, 3]], np.int8)
    flat = whole.ravel().astype(np.uint8) & 15
    packed = (flat[::2] | flat[1::2] << 4).tobytes()
    weights = Value(whole, is_constant=True, dtype="int4", raw=packed, scale=[0.5, 0.25], axis=0)
    values = [Value(np.zeros((4, 3), np.float32)), weights, Value(np.zeros((4, 2), np.float32))]
    model = sg.load(model_bytes(values, [Op("FULLY_CONNECTED", [0, 1], [2])], [0], [2]), "numpy")
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_allclose(model(rows), rows @ (whole * np.array([[0.5], [0.25]], np.float32)).T, rtol=1e-6)


def test_bits_of_integers_are_as_in_python() -> None:
    a, b = np.array([5, -8, 64], np.int32), np.array([1, 2, 3], np.int32)
    for name, wanted in (("BITWISE_XOR", a ^ b), ("RIGHT_SHIFT", a >> b)):
        model = sg.load(model_bytes([Value(a), Value(b), Value(a)], [Op(name, [0, 1], [2])], [0, 1], [2]), "numpy")
        np.testing.assert_array_equal(model(a, b), wanted)


def test_data_behind_the_tables_is_read() -> None:
    """Files beyond 2 GB have their data after the tables, by its place in the file."""
    values = [Value(X), Value(X + 1, is_constant=True), FLOATS]
    data = model_bytes(
        values, [Op("ADD", [0, 1], [2])], [0], [2], buffers=[{"data": b""}, {"offset": 1 << 12, "size": X.nbytes}]
    )
    whole = data + bytes((1 << 12) - len(data)) + (X + 1).tobytes()
    np.testing.assert_array_equal(sg.load(whole, "numpy")(X), 2 * X + 1)
    with pytest.raises(
        sg.FormatError, match="its data is 24 bytes at byte 4096; the file has 4100, so that it is cut short"
    ):
        sg.load(whole[: (1 << 12) + 4], "numpy")


REFUSED: dict[str, tuple[bytes, str]] = {
    "version": (relu(version=2), "version 2 of the format; expected 3"),
    "no graph": (relu(graphs=[]), "there is no graph"),
    "early use": (model_bytes([FLOATS] * 3, [Op("RELU", [2], [1])], [0], [1]), "the tensor 't2' is used before any op gives it"),
    "unknown tensor": (model_bytes([FLOATS] * 2, [Op("RELU", [9], [1])], [0], [1]), "tensors 9 to 9; the graph has 2"),
    "shape": (model_bytes([FLOATS, FLOATS], [Op("RESHAPE", [0], [1], {"shape": [4]})], [0], [1]), "RESHAPE 't1': .*reshape"),
    "type": (model_bytes([FLOATS, Value(X.astype(np.int32))], [Op("RELU", [0], [1])], [0], [1]), "the op gives float32, but the file has int32"),
    "text": (model_bytes([Value(X, dtype="string"), FLOATS], [Op("RELU", [0], [1])], [0], [1]), "is string, which Singe lacks here"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_errors_name_the_file_and_the_place(what: str) -> None:
    data, text = REFUSED[what]
    with pytest.raises(sg.FormatError, match=text) as e:
        sg.load(data, "numpy", name="net.tflite")
    assert str(e.value).startswith("net.tflite: ")


def test_a_command_runs_and_exports_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rows = tmp_path / "net.tflite", tmp_path / "x.npy"
    path.write_bytes(relu())
    np.save(rows, X)
    assert main(["run", str(path), "--device", "numpy", "--input", f"t0={rows}"]) == 0
    assert "t1" in capsys.readouterr().out
    assert main(["export", str(path), "-o", str(tmp_path / "page")]) == 0
    manifest = json.loads((tmp_path / "page" / "model.json").read_text("utf-8"))
    assert manifest["name"] == "net"


MAP = b"output_height\x00output_width\x00\x02\x1c\x0f\x02\x01\x02\x10\x10\x04\x04\x04$\x01"
"""{"output_height": 16, "output_width": 16} in FlexBuffers."""


def test_options_of_custom_ops_are_read() -> None:
    assert read_options(MAP) == {"output_height": 16, "output_width": 16}
    assert read_options(b"") == {}
    for end in range(1, len(MAP)):
        with pytest.raises(sg.FormatError):
            read_options(MAP[:end])


def test_descriptions_are_kept() -> None:
    assert read_model(relu()).description == "by hand"
