"""Records: as documented, equal after a round trip, refused when damaged; a model of every row survives one."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import random
import re
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from remembering import REMEMBERING
from row_samples import SAMPLED, samples_of
from test_rows import KINDS, graph_of, sampled

import singe as sg
from singe import nn
from singe.dtypes import float32, int64
from singe.graph import Builder, Graph, GraphState
from singe.onnx.model import read_model
from singe.onnx.source import OnnxSource
from singe.ops import ROWS, Row
from singe.program.container import ALIGN, MAGIC, format_of
from singe.shapes import size
from singe.tools.cli import main
from singe.tools.export import make_bundle
from singe.weights.records import model_record, read_graph, read_weights, weights_record

DOCUMENT = Path(sg.__file__).parent / "weights" / "README.md"
SHARED = Path(__file__).parents[2].parent / "shared" / "models"
RUNNERS = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)


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
    return Graph((x, unused), (shifted, b.leaky_relu(low, alpha=np.inf), unused), ("shifted", "leaky", "unused"))


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's header and its block."""
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    at = len(MAGIC) + 4
    return json.loads(data[at : at + length]), data[-(-(at + length) // ALIGN) * ALIGN :]


def joined(head: Any, block: bytes) -> bytes:
    """A file with this header and block, and the right hash."""
    if isinstance(head, dict) and "sha256" in head:
        head["sha256"] = hashlib.sha256(block).hexdigest()
    text = json.dumps(head).encode()
    start = -(-(len(MAGIC) + 4 + len(text)) // ALIGN) * ALIGN
    return (MAGIC + struct.pack("<I", len(text)) + text).ljust(start, b"\0") + block


# --- round trips ------------------------------------------------------------------------------------------------------


def test_the_document_names_every_field_that_is_written_and_no_other() -> None:
    found: set[str] = set()

    def walk(data: Any, path: str) -> None:
        for item in data if isinstance(data, list) else ():
            walk(item, path)
        for key, value in data.items() if isinstance(data, dict) and not path.endswith("attrs") else ():
            found.add(f"{path}.{key}" if path else key)
            walk(value, f"{path}.{key}" if path else key)

    b = Builder()
    with_array = Graph((), (b.const(np.ones(2000, np.float32)),), ("y",))
    for data in (
        model_record(every_kind()),
        model_record(with_array),
        sound_flow(),
        weights_record({"w": np.ones(2, np.float32)}),
    ):
        walk(split(data)[0], "")
    documented = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", DOCUMENT.read_text(), re.M))
    assert documented == found


@pytest.mark.parametrize("row", SAMPLED, ids=lambda row: row.name)
def test_a_graph_of_every_row_survives(row: Row) -> None:
    """Reading builds every node anew, so that writing again gives the same bytes only if nothing changed."""
    for sample in samples_of(row):
        kind = next(k for k in reversed(KINDS) if k in row.dtypes)
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
    wanted = make_bundle(sg.Model.of(Net(), {"input": ("N", 2, 5, 5)}, "numpy", name="net"), ["wasm"])
    assert {n: (tmp_path / "bundle" / n).read_bytes() for n in wanted.files} == dict(wanted.files)


# --- which file is which ----------------------------------------------------------------------------------------------


def test_each_file_of_ours_says_what_reads_it(tmp_path: Path) -> None:
    net, model = Net(), sg.Model.of(Net(), {"input": (1, 2, 5, 5)}, "numpy")
    weights, record, program = (tmp_path / n for n in ("weights.singe", "model.singe", "program"))
    sg.save(net, weights)
    sg.save(model, record)
    model.program().save(program)
    assert [format_of(p) for p in (weights, record, program)] == ["singe-record/1", "singe-record/1", "singe/2"]
    for act, words in (
        (
            lambda: sg.load(weights),
            r"a record of 'weights', expected 'model': singe.load_weights\(module, path\) reads it",
        ),
        (lambda: sg.load_weights(net, record), r"a record of 'model', expected 'weights': singe.load\(path\) reads it"),
        (lambda: sg.load(program), r"a program, expected a record: singe.Program.load reads it"),
        (lambda: sg.load_weights(net, program), r"a program, expected a record: singe.Program.load reads it"),
        (lambda: sg.Program.load(record), r"a record, expected a program: singe.load reads it"),
    ):
        with pytest.raises(sg.FormatError, match=words):
            act()
    assert main(["inspect", str(program)]) == 2
    assert main(["run", str(weights)]) == 2


def test_only_models_and_modules_are_saved(tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match=r"got a dict, expected a Model or a Module"):
        sg.save({"a": 1}, tmp_path / "x")  # pyright: ignore[reportArgumentType]


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
    with pytest.raises(sg.FormatError, match=r"neither a record of Singe's nor a file that torch\.save wrote"):
        sg.load_weights(layer, b"\0" * 100)


# --- damage -----------------------------------------------------------------------------------------------------------


def sound_model() -> bytes:
    """A record of a model with every kind of node and several rows."""
    b = Builder()
    x = b.input("x", (size("N"), 2, 6, 6), float32)
    w = b.const(np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32))
    y = b.conv(x, w, strides=(1, 1), dilations=(1, 1), before=(1, 1), after=(1, 1), group=1)
    y = b.max_pool(
        b.leaky_relu(y, alpha=0.5),
        window=(1, 1, 2, 2), strides=(1, 1, 2, 2), dilations=(1,) * 4, before=(0,) * 4, after=(0,) * 4,
    )  # fmt: skip
    y = b.reshape(b.transpose(y, perm=(0, 2, 3, 1)), shape=(size("N"), 36))
    z = b.add(b.cast(b.reduce_sum(y, axes=(1,)), to=int64), b.gather(b.shape_of(y), b.const(1), axis=0))
    z = b.slice(b.softmax(b.cast(z, to=float32), axis=0), starts=(0, 0), steps=(1, 1), sizes=(size("N"), 1))
    return model_record(Graph((x,), (z, y), ("z", "y")))


def sound_flow() -> bytes:
    """A record with states, several results, an If, a loop with a growing value, and sizes found in mid-run."""
    b = Builder()
    x, count = b.input("x", (size("N"),), float32), b.input("count", (), int64)
    past = b.input("past", (4,), float32)
    p, more = b.input("p", (size("own"),), float32), b.input("more", (size("N"),), float32)
    body = Graph((p, more), (b.less(b.reduce_sum(p, axes=(0,)), b.const(9.0)), b.concat(p, more, axis=0)), ("c", "p"))
    (one,) = body.outputs[:1]
    body = Graph(body.inputs, (b.reshape(one, shape=()), body.outputs[1]), ("c", "p"))
    grown = b.apply(ROWS["loop"], b.const(True), x, x, body=body, carried=1, conditional=True, count=5)
    i = b.input("i", (size("N"),), float32)
    then, otherwise = Graph((i,), (b.concat(i, i, axis=0),), ("y",)), Graph((i,), (b.neg(i),), ("y",))
    chosen = b.apply(ROWS["if"], b.less(count, b.const(3)), x, then=then, otherwise=otherwise)
    most, places = b.top_k(past, axis=0, k=2, largest=True)
    told = b.size_of(b.minimum(count, b.const(7)))
    outputs = (grown, chosen, b.nonzero(x), places, b.expand(b.const(2.0), shape=(told,)))
    states = (
        GraphState(count, "count", np.array(2), b.add(count, b.const(1))),
        GraphState(past, "past", None, b.update_slice(past, most, count)),
    )
    return model_record(Graph((x,), outputs, tuple("abcde"), b.bound, states))


def accepts_or_refuses(data: bytes) -> bool:
    """Whether a file is read. The result must be a FormatError or a valid Graph; anything else fails the test."""
    start = time.process_time()
    try:
        graph = read_graph(data)
    except sg.FormatError:
        return False
    finally:
        assert time.process_time() - start < 20
    assert model_record(read_graph(model_record(graph))) == model_record(graph)
    return True


def test_truncation_at_every_offset() -> None:
    data = weights_record({"a": np.ones(3, np.float32)})
    for end in range(len(data)):
        with pytest.raises(sg.FormatError):
            read_weights(data[:end])


@pytest.mark.parametrize("sound", [sound_model, sound_flow])
def test_flipped_bytes(sound: Callable[[], bytes]) -> None:
    data = sound()
    assert accepts_or_refuses(data)
    rng = random.Random(1)
    for _ in range(1500):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        accepts_or_refuses(bytes(damaged))


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in JSON data."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


HOSTILE = (
    *(None, True, -1, 0, 3, 2**31, 2**47, 10**30, 0.5, "", "x", "conv", [], [[]], [0], {}),
    *({"size": [[1, ["div", 1, 0]]]}, {"dtype": "int64"}, [[1, ["mod", 1, 0]]], [[-1, "N"]], [[1, *["N"] * 40]]),
)


@pytest.mark.slow
@pytest.mark.parametrize("sound", [sound_model, sound_flow])
def test_every_value_replaced_by_hostile_ones(sound: Callable[[], bytes]) -> None:
    """With the hash made right again: what is left standing is the checks alone. What is read compiles, or says why not."""
    head, block = split(sound())
    compiled = 0
    for path in list(places(head))[1:]:
        for value in HOSTILE:
            changed = copy.deepcopy(head)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            data = joined(changed, block)
            if accepts_or_refuses(data):
                try:
                    model = sg.Model(read_graph(data), "numpy")
                    model.program({p.name: (1, 2, 6, 6)[: len(p.shape or ())] for p in model.inputs})
                    compiled += 1
                except sg.SingeError:
                    pass
    assert compiled


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an input that is not there": (lambda h: h.update(inputs=[99]), "an input is number 99 of"),
    "an input that is none": (lambda h: h.update(inputs=[0, 1]), "an input is not an input node"),
    "an input twice": (lambda h: h.update(inputs=[0, 0]), "or is listed twice"),
    "an input that is left out": (lambda h: h.update(inputs=[]), "need an input that is not among the inputs"),
    "an output that is not there": (lambda h: h["outputs"][0].update(node=99), "an output is number 99 of"),
    "no outputs": (lambda h: h.update(outputs=[]), "without outputs"),
    "two outputs of one name": (lambda h: h["outputs"][0].update(name="y"), "two outputs have one name"),
    "a node over one behind it": (lambda h: h["nodes"][2].update(inputs=[0, 2]), "node 2: its input is number 2 of 2"),
    "a constant that is not there": (lambda h: h["nodes"][1].update(array=7), "node 1: its array is number 7 of"),
    "an op that is not there": (lambda h: h["nodes"][2].update(op="warp"), "node 2: there is no op 'warp'"),
    "a derivative of derivatives": (lambda h: h["nodes"][2].update(op="exp" + "_d0" * 9), "there is no op 'exp_d0_d0"),
    "too many elements": (lambda h: h["nodes"][0].update(shape=[2**20, 2, 2**20, 6]), "elements: at most"),
    "a negative dimension": (lambda h: h["nodes"][0].update(shape=[-1, 2, 6, 6]), "input gives the shape (-1, 2, 6, 6)"),
    "an attribute of another kind": (lambda h: h["nodes"][3]["attrs"].update(alpha="big"), "'alpha' is 'big'"),
    "an attribute that is none": (lambda h: h["nodes"][3]["attrs"].update(beta=1), "beta"),
    "a field that is missing": (lambda h: h.pop("nodes"), "nodes"),
    "an array beyond the file": (lambda h: h["arrays"][0].update(shape=[2**30]), "the file holds"),
    "an array that is not aligned": (lambda h: h["arrays"][0].update(at=4), "a multiple of 256"),
    "an array that is no halved one": (lambda h: h["arrays"][0].update(stored="int32"), "float32 is stored as int32"),
    "an array of no dtype": (lambda h: h["arrays"][0].update(dtype="f4,(9)i4"), "unknown dtype 'f4,(9)i4', expected one of"),
    "an array of half a shape": (lambda h: h["arrays"][0].update(shape="4"), "a shape of an array is '4'"),
    "arrays that overlap": (
        lambda h: h["arrays"].append({"dtype": "uint8", "stored": "uint8", "shape": [9], "at": 0}),
        "begins within",
    ),
    "another content": (lambda h: h.update(holds="music"), "a record of 'music', expected 'model'"),
    "another version": (lambda h: h.update(format="singe-record/2"), "reads 'singe-record/1'"),
}  # fmt: skip


def op(head: dict[str, Any], name: str) -> dict[str, Any]:
    return next(n for n in head["nodes"] if n.get("op") == name)


def deep(head: dict[str, Any]) -> None:
    """An If in an If in an If …"""
    inner = copy.deepcopy(op(head, "if"))
    for _ in range(40):
        outer = copy.deepcopy(op(head, "if"))
        outer["attrs"]["then"]["graph"]["nodes"] = [
            {"input": "i", "dtype": "float32", "shape": [[[1, "N"]]]}, {"input": "c", "dtype": "bool", "shape": []},
            {**inner, "inputs": [1, 0]},
        ]  # fmt: skip
        inner = outer
    op(head, "if")["attrs"] = inner["attrs"]


FLOWS_REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a region that takes another shape": (
        lambda h: op(h, "if")["attrs"]["then"]["graph"]["nodes"][0].update(shape=[1000]),
        "if: value 0 is input(N,):float32, and a region takes it as input(1000,):float32",
    ),
    "a carried value by a size that is another's": (
        lambda h: op(h, "loop")["attrs"]["body"]["graph"]["nodes"][0].update(shape=[[[1, "N"], [1]]]),
        "and a region takes it as",
    ),
    "a region without a graph": (lambda h: op(h, "if")["attrs"].update(then=3), "malformed header"),
    "a region that reads what is outside": (
        lambda h: op(h, "if")["attrs"]["otherwise"]["graph"].update(inputs=[]), "the outputs need an input",
    ),
    "regions without end": (deep, "graphs are nested more than 16 deep"),
    "more carried values than there are": (lambda h: op(h, "loop")["attrs"].update(carried=9), "9 values are carried"),
    "a size that nothing tells": (
        lambda h: op(h, "expand")["attrs"].update(shape=[{"size": [[1, "Q"]]}]), "needs the size Q, which no node before it",
    ),
    "a size that is told later": (
        lambda h: next(n for n in h["nodes"] if "tells" in n).pop("tells"), "needs the size size.0, which no node before it",
    ),
    "a size that is told twice": (
        lambda h: op(h, "nonzero")["attrs"].update(found=["", "N"]), "gives the size N, which has a value already",
    ),
    "a size that is no integer": (lambda h: h["nodes"][0].update(tells=["Q"]), "gives a size, expected one integer"),
    "a state that is none": (lambda h: h["states"][0].update(node=3), "expected one fixed shape"),
    "a state of another shape": (lambda h: h["states"][0].update(updated=2), "expected one fixed shape"),
    "a state that is an input": (lambda h: h.update(inputs=[0, 1]), "an input is not an input node, or is listed twice"),
    "a state that begins otherwise": (lambda h: h["states"][1].update(initial=0), "begins as"),
    "two states of one name": (lambda h: h["states"][1].update(name="count"), "two states have one name"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOWS_REFUSED)
def test_control_flow_and_states_that_do_not_fit_are_refused(name: str) -> None:
    damage, message = FLOWS_REFUSED[name]
    head, block = split(sound_flow())
    damage(head)
    with pytest.raises(sg.FormatError, match=re.escape(message)):
        read_graph(joined(head, block))


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


@pytest.mark.parametrize("name", REFUSED)
def test_what_points_nowhere_is_refused(name: str) -> None:
    damage, message = REFUSED[name]
    head, block = split(sound_model())
    damage(head)
    with pytest.raises(sg.FormatError, match=re.escape(message)):
        read_graph(joined(head, block))


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"sizes": (1, 1, 1, 1 << 30), "scales": (1.0, 1.0, 1.0, 1.0)}, "more than 16777216 weights"),
        ({"scales": (1.0, 1.0, 1.0, 1e-12), "antialias": True}, "more than 16777216 weights"),
        ({"scales": (1.0, 1.0, 1.0, 0.0)}, "expected a number above 0"),
        ({"scales": (1.0, 1.0, 1.0, "x")}, "the attribute 'scales' is"),
        ({"mode": "sharp"}, "mode 'sharp'"),
    ],
)
def test_tables_are_not_made_for_whoever_asks(attrs: dict[str, Any], words: str) -> None:
    b = Builder()
    x = b.input("x", (1, 1, 1, 8), float32)
    y = b.resize(x, sizes=(1, 1, 1, 12), scales=(1.0, 1.0, 1.0, 1.5), mode="linear")
    head, block = split(model_record(Graph((x,), (y,), ("y",))))
    head["nodes"][-1]["attrs"] |= attrs
    with pytest.raises(sg.FormatError, match=words):
        read_graph(joined(head, block))


def test_many_names_for_one_array_take_its_memory_once() -> None:
    head, block = split(weights_record({"a": np.ones(1 << 16, np.float32)}, "float16"))
    head["arrays"] = [{**head["arrays"][0], "name": f"a{k}"} for k in range(2000)]
    found = read_weights(joined(head, block))
    assert len(found) == 2000
    assert len({a.ctypes.data for a in found.values()}) == 1
    head["arrays"][1]["name"] = "a0"
    with pytest.raises(sg.FormatError, match="two arrays have one name"):
        read_weights(joined(head, block))


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
