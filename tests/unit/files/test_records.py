"""Records: as documented, equal after a round trip; a model of every row survives one."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from containers import split
from devices import RUNNERS
from networks.control_graphs import sound_flow
from networks.remembering import REMEMBERING
from rows.row_samples import KINDS, SAMPLED, graph_of, sampled, samples_of

import singe as sg
from singe import nn
from singe.dtypes import float32, int64
from singe.graph import Builder, Graph
from singe.onnx.model import read_model
from singe.onnx.source import OnnxSource
from singe.ops import Row
from singe.program.container import format_of
from singe.shapes import size
from singe.tools.cli import main
from singe.tools.export.bundle import draft
from singe.weights.pytorch import LEGACY
from singe.weights.records import model_record, read_graph, read_weights, weights_record

DOCUMENT = Path(sg.__file__).parent / "weights" / "README.md"
SHARED = Path(__file__).parents[3].parent / "shared" / "models"


class Net(nn.Module):
    """A small network with a buffer, a list of layers and two names for one tensor."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.first = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False, rng=rng), nn.BatchNorm2d(4), nn.ReLU())
        self.heads = [nn.Linear(4, 3, rng=rng)]
        self.tied = self.heads[0].weight

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return self.heads[0](self.first(x).mean((2, 3))) + self.tied.sum()


def every_kind() -> Graph:
    """A graph with each kind of node and of attribute."""
    b = Builder()
    x = b.input("x", (size("N"), 2, 3), float32)
    unused = b.input("unused", (), int64)
    flat = b.reshape(x, shape=(size("N") * 2, 3))
    shifted = b.add(b.cast(flat, to=int64), b.shape_of(b.reshape(x, shape=(size("N"), 6, 1))))
    low = b.clip(flat, b.const(-np.inf), b.const(2.0))
    outputs = shifted, b.leaky_relu(low, alpha=np.inf), unused
    checks = {size("N") - 1: "N must be at least 1"}
    return Graph((x, unused), outputs, ("shifted", "leaky", "unused"), checks=checks)


# --- round trips ------------------------------------------------------------------------------------------------------


def test_the_document_names_every_field_that_is_written_and_no_other() -> None:
    found: set[str] = set()

    def walk(data: Any, path: str) -> None:
        for item in data if isinstance(data, list) else ():
            walk(item, path)
        for key, value in data.items() if isinstance(data, dict) and not path.endswith(("attrs", "files")) else ():
            found.add(f"{path}.{key}" if path else key)
            walk(value, f"{path}.{key}" if path else key)

    b = Builder()
    with_array = Graph((), (b.const(np.ones(2000, np.float32)),), ("y",))
    for data in (
        model_record(every_kind()),
        model_record(with_array, task={}, files={"a": b"1"}),
        sound_flow(),
        weights_record({"w": np.ones(2, np.float32)}),
    ):
        walk(split(data)[0], "")
    documented = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", DOCUMENT.read_text(), re.M))
    assert documented == found


@pytest.mark.slow
@pytest.mark.parametrize("row", SAMPLED, ids=lambda row: row.name)
def test_a_graph_of_every_row_survives(row: Row) -> None:
    """Reading builds every node again, so writing gives the same bytes only if nothing changed."""
    for sample in samples_of(row):
        kind = next(k for k in (*reversed(KINDS), *row.dtypes) if k in row.dtypes)
        if sample.floats_only and not kind.is_float:
            continue
        graph = graph_of(row, sample, sampled(row, sample, np.random.default_rng(0), kind))
        data = model_record(graph)
        again = read_graph(data)
        assert model_record(again) == data
        assert [(n.op, n.results) for n in again.nodes] == [(n.op, n.results) for n in graph.nodes]


def test_every_kind_of_node_survives() -> None:
    data = model_record(every_kind())
    again = read_graph(data)
    assert model_record(again) == data
    assert [x.name for x in again.inputs] == ["x", "unused"]
    assert again.output_names == ("shifted", "leaky", "unused")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist_cnn", "magika", "ppocr_cls"])
def test_a_model_from_onnx_survives(name: str, tmp_path: Path) -> None:
    path = SHARED / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {SHARED}")
    model = sg.load(path, "numpy")
    sg.save(model, tmp_path / "m.singe")
    again = sg.load(tmp_path / "m.singe", "numpy")
    assert (again.inputs, again.outputs) == (model.inputs, model.outputs)
    with np.load(path.with_suffix(".npz")) as data:
        x = data[f"in:{model.inputs[0].name}"]
    one, two = model(x), again(x)
    np.testing.assert_array_equal(one, two)


@RUNNERS
def test_a_module_becomes_a_model_and_a_record_that_runs_alike(device_name: str, tmp_path: Path) -> None:
    net = Net()
    model = sg.Model.of(net, {"input": ("N", 2, 5, 5)}, device_name)
    assert (str(model.inputs[0]), str(model.outputs[0])) == ("input: float32(N, 2, 5, 5)", "output: float32(N, 3)")
    sg.save(model, tmp_path / "net.singe")
    again = sg.load(tmp_path / "net.singe", device_name)
    assert again.name == "net"
    assert asyncio.run(sg.load_async(tmp_path / "net.singe", "numpy")).inputs == again.inputs
    for batch in (1, 4):
        x = np.random.default_rng(batch).standard_normal((batch, 2, 5, 5), np.float32)
        np.testing.assert_array_equal(again(x), model(x))
        np.testing.assert_allclose(again(input=x), net(sg.tensor(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_a_model_of_a_function_takes_dtypes_and_gives_names() -> None:
    def pick(table: sg.Tensor, ids: sg.Tensor) -> dict[str, sg.Tensor]:
        return {"first": table[ids], "second": table * 2}

    model = sg.Model.of(pick, {"table": (5, 2), "ids": ("N",)}, "numpy", dtypes={"ids": "int64"})
    assert [str(p) for p in model.inputs] == ["table: float32(5, 2)", "ids: int64(N,)"]
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(model(table, np.array([4, 0]))["first"], table[[4, 0]])
    with pytest.raises(sg.InputError, match="dtypes are given for idx; the inputs are table, ids"):
        sg.Model.of(pick, {"table": (5, 2), "ids": ("N",)}, "numpy", dtypes={"idx": "int64"})


def test_weights_survive_with_their_names_dtypes_and_order(tmp_path: Path) -> None:
    net = Net()
    sg.save(net, tmp_path / "w.singe")
    found = read_weights((tmp_path / "w.singe").read_bytes())
    own = net.state_dict()
    assert list(found) == list(own)
    for name, array in found.items():
        assert array.dtype == own[name].dtype.numpy
        np.testing.assert_array_equal(array, own[name].numpy())
    other = Net().map(lambda t: t * 0)
    loaded = sg.load_weights(other, tmp_path / "w.singe")
    np.testing.assert_array_equal(loaded.state_dict()["first.0.weight"].numpy(), own["first.0.weight"].numpy())
    assert not other.state_dict()["first.0.weight"].numpy().any()


@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64", "float16", "float32"])
def test_every_dtype_survives(kind: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.integers(0, 2, (3, 5)).astype(kind),
        "turned": rng.integers(0, 100, (3, 5)).astype(kind).T,
        "number": np.array(1, kind),
        "empty": np.zeros((0, 4), kind),
        "same": np.zeros((0, 4), kind),
    }
    found = read_weights(weights_record(arrays))
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_equal_arrays_are_kept_once() -> None:
    one = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    assert len(weights_record({"a": one, "b": one.copy(), "c": one.reshape(10, 100)})) < 5000


def test_float16_halves_what_it_can_hold() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.standard_normal((100, 100)).astype(np.float32),
        "large": np.array([1e5, 1], np.float32),
        "endless": np.array([np.inf, -np.inf, np.nan], np.float32),
        "count": np.array([2**40]),
    }
    data = weights_record(arrays, "float16")
    assert {a["name"]: a["stored"] for a in split(data)[0]["arrays"]} == {
        "w": "float16", "large": "float32", "endless": "float16", "count": "int64",
    }  # fmt: skip
    found = read_weights(data)
    np.testing.assert_array_equal(found["w"], arrays["w"].astype(np.float16).astype(np.float32))
    for name in ("large", "endless", "count"):
        np.testing.assert_array_equal(found[name], arrays[name])
    with pytest.raises(sg.InputError, match="dtype 'int8', expected 'float16'"):
        weights_record(arrays, "int8")


def test_shapes_close_what_a_record_leaves_open(tmp_path: Path) -> None:
    path = tmp_path / "n.singe"
    sg.save(sg.Model.of(Net(), {"input": ("N", 2, "S", "S")}, "numpy"), path)
    assert str(sg.load(path, "numpy", {"input": ("N", 2, 7, 7)}).inputs[0]) == "input: float32(N, 2, 7, 7)"
    for shape in ((1, 3, 5, 5), (1, 2, 5, 6), (1, 2, 5), (1, 2, 5, 5, 1)):
        with pytest.raises(sg.InputError, match=r"the input 'input' has the shape \(N, 2, S, S\), got"):
            sg.load(path, "numpy", {"input": shape})
    with pytest.raises(sg.InputError, match="a shape is given for 'x'; the inputs are input"):
        sg.load(path, "numpy", {"x": (1,)})


def test_a_record_is_what_commands_and_export_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.singe"
    sg.save(sg.Model.of(Net(), {"input": ("N", 2, 5, 5)}, "numpy"), path)
    np.save(tmp_path / "x.npy", np.ones((2, 2, 5, 5), np.float32))
    assert main(["run", str(path), "--input", str(tmp_path / "x.npy"), "--device", "numpy"]) == 0
    assert "(2, 3)" in capsys.readouterr().out
    assert main(["inspect", str(path), "--device", "numpy"]) == 0
    assert "batch_norm" in capsys.readouterr().out
    assert main(["export", str(path), "-o", str(tmp_path / "bundle"), "--targets", "wasm"]) == 0
    manifest = json.loads((tmp_path / "bundle" / "model.json").read_text())
    assert [p["name"] for p in (*manifest["inputs"], *manifest["outputs"])] == ["input", "output"]
    assert manifest["name"] == "net"
    wanted = draft(sg.Model.of(Net(), {"input": ("N", 2, 5, 5)}, "numpy", name="net"), ["wasm"]).alone()
    assert {n: (tmp_path / "bundle" / n).read_bytes() for n in wanted.files} == dict(wanted.files)


# --- which file is which ----------------------------------------------------------------------------------------------


def test_each_file_of_ours_says_what_reads_it(tmp_path: Path) -> None:
    net, model = Net(), sg.Model.of(Net(), {"input": (1, 2, 5, 5)}, "numpy")
    weights, record, program = (tmp_path / n for n in ("weights.singe", "model.singe", "program"))
    sg.save(net, weights)
    sg.save(model, record)
    model.program().save(program)
    assert [format_of(p) for p in (weights, record, program)] == ["singe-record/1", "singe-record/1", "singe/3"]
    for act, words in (
        (
            lambda: sg.load(weights),
            r"a record of 'weights', expected 'model': singe.load_weights\(module, path\) reads it",
        ),
        (lambda: sg.load_weights(net, record), r"a record of 'model', expected 'weights': singe.load\(path\) reads it"),
        (
            lambda: sg.load_weights(net, program),
            r"a program, expected a record: singe.load, singe.Program.load and `singe run` read it",
        ),
        (lambda: sg.Program.load(record), r"a record, expected a program: singe.load and the commands read it"),
    ):
        with pytest.raises(sg.FormatError, match=words):
            act()
    assert main(["inspect", str(program)]) == 2
    assert main(["run", str(weights)]) == 2


def test_only_models_and_modules_are_saved(tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match=r"got a dict, expected a Model or a Module"):
        sg.save({"a": 1}, tmp_path / "x")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".gguf", ".pt"])
def test_weights_are_no_model_and_say_so(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"w{suffix}"
    if suffix == ".safetensors":
        sg.save(Net(), path)
    elif suffix == ".npz":
        np.savez(path, a=np.ones(3))
    else:
        path.write_bytes(b"GGUF" + bytes(40) if suffix == ".gguf" else LEGACY + b".")
    for given in (path, path.read_bytes()):
        with pytest.raises(
            sg.FormatError, match=r"these are weights .*: singe\.load_weights\(module, path\) reads them"
        ):
            sg.load(given, "numpy")
    path.write_bytes(b"\xff junk")
    with pytest.raises(sg.FormatError, match="is this an ONNX model"):
        sg.load(path, "numpy")


def test_a_file_has_no_suffix_of_another_format(tmp_path: Path) -> None:
    net, model = Net(), sg.Model.of(Net(), {"input": (1, 2, 5, 5)}, "numpy")
    for name in ("w.npz", "w.pt", "w.PTH", "w.gguf", "w.onnx"):
        with pytest.raises(sg.InputError, match=r"w\.safetensors, or as a record, w\.singe, not as"):
            sg.save(net, tmp_path / name)
    for name in ("w.onnx", "w.safetensors", "w.npz"):
        with pytest.raises(sg.InputError, match=r"a Model is written as a record, w\.singe, not as"):
            sg.save(model, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_only_models_are_exported(tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match=r"got a Net, expected a Model; .*sg\.Model\.of\("):
        sg.export(Net(), tmp_path / "page")  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())


# --- weights that do not fit ------------------------------------------------------------------------------------------


def test_all_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "w.singe"
    path.write_bytes(weights_record({"weight": np.ones((3, 2), np.float32), "bais": np.ones(2, np.float32)}))
    layer = nn.Linear(3, 2)
    with pytest.raises(sg.InputError) as caught:
        sg.load_weights(layer, path)
    assert str(caught.value).startswith(
        f"{path}: state dict: missing: bias; unknown: bais; of another shape: weight is (3, 2), expected (2, 3)"
    )
    path.write_bytes(weights_record({"bias": np.full(2, 7, np.float32), "other": np.ones(1, np.float32)}))
    np.testing.assert_array_equal(sg.load_weights(layer, path, strict=False).bias.numpy(), [7, 7])  # pyright: ignore[reportOptionalMemberAccess]
    with pytest.raises(sg.InputError, match="cannot read the weights"):
        sg.load_weights(layer, tmp_path / "none")
    with pytest.raises(sg.FormatError, match="not a file of weights that Singe reads"):
        sg.load_weights(layer, b"\0" * 100)


@RUNNERS
def test_a_model_with_states_is_saved_and_loaded(device_name: str, tmp_path: Path) -> None:
    for name, this in REMEMBERING.items():
        sg.save(this.model(device_name), tmp_path / name)
        model = sg.load(tmp_path / name, device_name)
        session = model.session()
        for given, (outputs, states) in zip(this.inputs, this.after(len(this.inputs)), strict=True):
            (output,) = outputs
            this.compare({output: session(given)}, outputs)
            this.compare({k: session.read(k) for k in session.names}, states)


# --- what is known of outputs before a run ----------------------------------------------------------------------------


def test_outputs_of_a_shape_that_an_input_holds() -> None:
    """A reshape to a shape that is an input's value: their dimensions are sizes that a run finds."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", types.INT64, ["N"]),
            helper.make_tensor_value_info("shape", types.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", types.INT64, None)],
    )
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    model = sg.Model(OnnxSource(read_model(data)), "numpy")
    assert [(p.name, p.dtype, len(p.shape or ())) for p in model.outputs] == [("y", sg.int64, 2)]
    y = model(np.arange(6), np.array([2, 3]))
    assert (y.dtype, y.shape) == (np.int64, (2, 3))
