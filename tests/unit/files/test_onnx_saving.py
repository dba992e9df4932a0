"""Models leave as ONNX files: what is in the file, which files there are, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer import answers, session

import singe as sg
from singe import nn
from singe.dtypes import DTYPES, DType, bfloat16, float16, own
from singe.errors import CompileError, InputError
from singe.graph import Builder, Graph
from singe.onnx.saving import protobuf, records
from singe.onnx.saving.facts import IR_VERSIONS, LATEST, OLDEST, SCATTER_REDUCTIONS, TAKES, ir_version, kinds_of
from singe.onnx.saving.rows import RULES
from singe.onnx.tensors import ELEMENTS
from singe.ops import ROWS, Elementwise
from singe.shapes import size
from singe.tools import cli

onnx = pytest.importorskip("onnx")
defs = onnx.defs


def linear(name: str = "net") -> sg.Model:
    return sg.Model.of(nn.Linear(3, 400), {"x": ("rows", 3)}, "numpy", name=name)


def written(model: sg.Model, path: Path, opset: int = 17, **options: Any) -> Any:
    """The ModelProto of a model, after ONNX's checks."""
    sg.onnx.save(model, path, opset, **options)
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(str(path))


# --- the file --------------------------------------------------------------------------------------------------------


def test_a_file_has_the_names_of_inputs_outputs_and_open_dimensions(tmp_path: Path) -> None:
    proto = written(linear(), tmp_path / "net.onnx", 21, metadata={"author": "somebody"}, doc="a layer")
    (x,), (y,) = proto.graph.input, proto.graph.output
    assert [(d.dim_param, d.dim_value) for d in x.type.tensor_type.shape.dim] == [("rows", 0), ("", 3)]
    assert [(d.dim_param, d.dim_value) for d in y.type.tensor_type.shape.dim] == [("rows", 0), ("", 400)]
    assert (x.name, y.name, proto.graph.name, proto.doc_string) == ("x", "output", "net", "a layer")
    assert (proto.producer_name, proto.producer_version) == ("singe", sg.__version__)
    assert [(p.key, p.value) for p in proto.metadata_props] == [("author", "somebody")]
    assert (proto.opset_import[0].version, proto.ir_version) == (21, 10)


@pytest.mark.parametrize("opset", [OLDEST, 17, LATEST])
def test_the_same_model_gives_the_same_bytes_which_singe_reads(opset: int, tmp_path: Path) -> None:
    model = linear()
    for name in ("a.onnx", "b.onnx"):
        sg.onnx.save(model, tmp_path / name, opset)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(sg.load(tmp_path / "a.onnx", "numpy")(x), model(x))


def test_arrays_of_a_file_keep_their_names(tmp_path: Path) -> None:
    weights = {"layer.weight": np.arange(12, dtype=np.float32).reshape(3, 4), "layer.bias": np.ones(4, np.float32)}
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Gemm", ["x", *weights], ["y"])]
    ends = ([helper.make_tensor_value_info(name, kind, ["N", d])] for name, d in (("x", 3), ("y", 4)))
    arrays = [onnx.numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, "g", *ends, arrays)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    again = written(sg.load(proto, "numpy"), tmp_path / "again.onnx")
    assert {t.name: t.raw_data for t in again.graph.initializer} == {k: a.tobytes() for k, a in weights.items()}


def test_large_arrays_go_into_a_second_file(tmp_path: Path) -> None:
    model, path = linear(), tmp_path / "net.onnx"
    made = sg.onnx.save(model, path, external=True)
    assert set(made.files) == {"net.onnx", "net.onnx.data"} == {p.name for p in tmp_path.iterdir()}
    assert all(size == (tmp_path / name).stat().st_size for name, size in made.files.items())
    proto = onnx.load(str(path), load_external_data=False)
    apart = [t for t in proto.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    assert {e.value for t in apart for e in t.external_data if e.key == "location"} == {"net.onnx.data"}
    assert apart
    x = np.ones((2, 3), np.float32)
    onnx.checker.check_model(str(path), full_check=True)
    np.testing.assert_array_equal(sg.load(path, "numpy")(x), model(x))
    found = records.layout({"a": 5, "b": 1 << 20, "c": 3})
    assert found == ({"a": (0, 5), "b": (4096, 1 << 20), "c": (4096 + (1 << 20), 3)}, 4099 + (1 << 20))


def test_weights_beyond_one_files_bytes_go_apart_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from singe.onnx.saving import save as module  # noqa: PLC0415

    monkeypatch.setattr(module, "MOST_BYTES", 4000)
    monkeypatch.setattr(module, "ROOM", 1000)
    assert set(sg.onnx.save(linear(), tmp_path / "net.onnx").files) == {"net.onnx", "net.onnx.data"}
    with pytest.raises(InputError, match="give external=True"):
        sg.onnx.save(linear(), tmp_path / "one.onnx", external=False)


@pytest.mark.parametrize("kind", [d for d in DTYPES.values() if d.kind != "string"], ids=str)
def test_arrays_of_every_type_are_written_as_onnx_has_them(kind: DType) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2 if kind.kind == "bool" else 1 << min(kind.bits, 8), (3, 5 * kind.size)).astype(np.uint8)
    if kind.bits < 8:
        array = np.zeros((3, 5), kind.numpy)
        shift = 8 - kind.bits
        array[kind.name] = (
            (codes.astype(np.int8) << shift >> shift) if kind.kind == "int" else codes & (1 << kind.bits) - 1
        )
    else:
        array = codes.view(kind.numpy) if kind.held or kind.kind != "bool" else codes.astype(bool)
    message = records.tensor("x", array)
    proto = onnx.TensorProto.FromString(b"".join(message.pieces))
    assert proto.data_type == next(code for code, e in ELEMENTS.items() if e.name == kind.name)
    theirs = own(onnx.numpy_helper.to_array(proto))
    assert (theirs.dtype, theirs.shape) == (array.dtype, array.shape)
    assert theirs.tobytes() == array.tobytes()
    assert records.size_of(array) == len(proto.raw_data)


def test_numbers_and_lengths_are_varints() -> None:
    values = [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)]
    message = protobuf.WireMessage()
    message.numbers(1, values)
    message.text(2, "é")
    message.real(3, -1.5)
    assert message.size == sum(map(len, message.pieces))
    proto = onnx.TensorProto()
    proto.dims.extend(values)
    assert b"".join(message.pieces).startswith(proto.SerializeToString())


# --- half floats, states, outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [float16, bfloat16], ids=str)
def test_models_of_half_floats_leave_in_their_type(kind: DType, tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (size("N"), 4), kind)
    w = b.const(own(np.linspace(-1, 1, 12).astype(kind)).reshape(4, 3))
    model = sg.Model(Graph((x,), (b.softmax(b.relu(b.matmul(x, w))), b.sin(x)), ("y", "z")), "numpy")
    given = np.linspace(-2, 2, 8).reshape(2, 4).astype(kind)
    for opset in (OLDEST, 22):
        proto = written(model, tmp_path / "half.onnx", opset)
        code = proto.graph.input[0].type.tensor_type.elem_type
        assert {t.data_type for t in proto.graph.initializer if len(t.dims) == 2} == {code}
        wanted, found = model(given), sg.load(tmp_path / "half.onnx", "numpy")(given)
        for name, theirs in found.items():
            assert theirs.dtype == wanted[name].dtype
            np.testing.assert_allclose(theirs.astype(np.float32), wanted[name].astype(np.float32), atol=1e-2)


def test_a_state_is_an_input_and_an_output(tmp_path: Path) -> None:
    def step(x: Any, *, count: Any) -> Any:
        return x * count, {"count": count + 1}

    model = sg.Model.of(step, {"x": (2,)}, "numpy", states={"count": np.float32(1)})
    made = sg.onnx.save(model, tmp_path / "step.onnx")
    assert (made.inputs, made.outputs, made.states) == (
        ("x", "count"),
        ("output", "count_next"),
        {"count": "count_next"},
    )
    proto = written(model, tmp_path / "step.onnx")
    assert json.loads(proto.metadata_props[0].value) == {"count": "count_next"}
    opened, count = session(tmp_path / "step.onnx"), made.first["count"]
    for _ in range(3):
        found = answers(opened, {"x": np.full(2, 2, np.float32), "count": np.asarray(count)})
        count = found["count_next"]
        np.testing.assert_array_equal(found["output"], model(np.full(2, 2, np.float32)))
    again = sg.load(tmp_path / "step.onnx", "numpy", states=made.states)
    assert [p.name for p in again.states] == ["count"]


def test_outputs_may_be_inputs_constants_and_each_other(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (2,), DTYPES["float32"])
    y = b.exp(x)
    graph = Graph((x,), (x, y, y, b.const(np.float32(3))), ("same", "exp", "again", "three"))
    written(sg.Model(graph, "numpy"), tmp_path / "out.onnx")
    found = answers(session(tmp_path / "out.onnx"), {"x": np.array([0, 1], np.float32)})
    assert list(found) == ["same", "exp", "again", "three"]
    np.testing.assert_allclose(found["again"], np.exp([0, 1]), rtol=1e-6)
    assert found["three"] == 3


def test_a_name_that_a_value_would_have_stays_the_users(tmp_path: Path) -> None:
    model = sg.Model.of(lambda x: {"exp_1": x.exp().exp().sin()}, {"exp": (2,)}, "numpy")
    written(model, tmp_path / "names.onnx")
    found = answers(session(tmp_path / "names.onnx"), {"exp": np.zeros(2, np.float32)})
    np.testing.assert_allclose(found["exp_1"], np.sin(np.exp(np.ones(2))), rtol=1e-5)


# --- what is refused ---------------------------------------------------------------------------------------------------


def test_all_that_onnx_cannot_say_is_refused_at_once(tmp_path: Path) -> None:
    def function(x: Any, n: Any, k: Any) -> Any:
        return {"a": sg.random.uniform(k, (3,)), "b": n & 1, "c": n | 1, "d": x.cast("complex64")}

    model = sg.Model.of(
        function, {"x": (3,), "n": (3,), "k": (2,)}, "numpy", dtypes={"n": "int32", "k": "uint32"}, name="odd"
    )
    with pytest.raises(CompileError, match=r"odd cannot be written as ONNX of opset 17") as caught:
        sg.onnx.save(model, tmp_path / "odd.onnx")
    text = str(caught.value)
    assert "random_bits" in text
    assert "take what is random as an input" in text
    assert "BitwiseAnd takes no int32 in opset 17; give opset=18 or later" in text
    assert "bitwise_or" in text
    assert "complex" in text
    assert not list(tmp_path.iterdir())


def test_bits_of_floats_need_the_opset_that_has_them(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (2,), DTYPES["float32"])
    model = sg.Model(Graph((x,), (b.bit_cast(x, to=DTYPES["int32"]), b.signbit(x)), ("bits", "sign")), "numpy")
    with pytest.raises(CompileError, match=r"bit_cast: the bits of floats; give opset=26 or later$"):
        sg.onnx.save(model, tmp_path / "bits.onnx", 25)
    written(model, tmp_path / "bits.onnx", 26)
    given = np.array([-0.0, 1], np.float32)
    found = sg.load(tmp_path / "bits.onnx", "numpy")(given)
    np.testing.assert_array_equal(found["bits"], given.view(np.int32))
    np.testing.assert_array_equal(found["sign"], [True, False])


def test_what_draws_random_numbers_is_refused(tmp_path: Path) -> None:
    model = sg.Model.of(lambda x: x + sg.randn(3), {"x": (3,)}, "numpy")
    with pytest.raises(CompileError, match="draws random numbers"):
        sg.onnx.save(model, tmp_path / "net.onnx")


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    model, path = linear(), tmp_path / "net.onnx"
    faults: list[tuple[tuple[Any, ...], str]] = [
        ((model, path, 12), "opset 12, expected a number from 13 to 28"),
        ((model, path, "17"), "opset '17'"),
        ((model, tmp_path / "net.pb"), "ends with .onnx"),
        ((nn.Linear(2, 2), path), "got a Linear, expected a Model"),
    ]
    for given, match in faults:
        with pytest.raises(InputError, match=match):
            sg.onnx.save(*given)
    with pytest.raises(InputError, match="texts by name"):
        sg.onnx.save(model, path, metadata={"n": 1})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"sg\.onnx\.save\(model, path\) writes ONNX files"):
        sg.save(model, path)
    (tmp_path / "net.onnx").mkdir()
    with pytest.raises(InputError, match=r"net\.onnx is a folder"):
        sg.export(model, path)


# --- export ----------------------------------------------------------------------------------------------------------


def test_export_to_a_name_of_an_onnx_file_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = linear(), tmp_path / "net.onnx"
    bundle = sg.export(model, path)
    assert list(bundle.files) == ["net.onnx"]
    assert bytes(bundle.files["net.onnx"]) == path.read_bytes()
    assert (bundle.manifest["format"], bundle.manifest["opset"]) == ("onnx", 17)
    assert "ONNX file of opset 17: x → output" in repr(bundle)
    with pytest.raises(InputError, match="dtype, labels: for a page's folder"):
        sg.export(model, path, dtype="int8", labels=["a"])
    out = tmp_path / "again.onnx"
    assert cli.main(["export", str(path), "-o", str(out), "--opset", "21", "--external-data"]) == 0
    told = capsys.readouterr().out
    assert "again.onnx.data" in told
    assert "opset" in told
    assert onnx.load(str(out)).opset_import[0].version == 21
    x = np.ones((3, 3), np.float32)
    np.testing.assert_allclose(answers(session(out), {"x": x})["output"], model(x), rtol=1e-5)
    assert cli.main(["export", str(path), "-o", str(out), "--snippet"]) != 0
    assert "--snippet is for the folder of a page" in capsys.readouterr().err
    assert cli.main(["export", str(path), "-o", str(tmp_path / "bundle"), "--opset", "21"]) != 0
    assert "--opset is for an ONNX file" in capsys.readouterr().err


# --- facts -------------------------------------------------------------------------------------------------------------


def _schemas() -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.setdefault(schema.name, {})[schema.since_version] = schema
    return found


def test_the_facts_are_those_of_onnx() -> None:
    """For each op and opset the types that the table says are those that ONNX's schema takes."""
    short = {"float32": "float", "float64": "double"}
    schemas, last = _schemas(), defs.onnx_opset_version()
    for op in TAKES:
        for opset in range(OLDEST, min(LATEST, last) + 1):
            known = [since for since in schemas[op] if since <= opset]
            mine = {f"tensor({short.get(k.name, k.name)})" for k in kinds_of(op, opset) or ()}
            if not known:
                assert not mine, (op, opset)
                continue
            schema = schemas[op][max(known)]
            first = schema.inputs[1 if op == "Where" else 0].type_str
            theirs = next(
                (set(c.allowed_type_strs) for c in schema.type_constraints if c.type_param_str == first), {first}
            )
            theirs = {
                t
                for t in theirs
                if "float8" not in t and "float4" not in t and "float6" not in t and "int4" not in t and "int2" not in t
            }
            if op == "Pow":  # whose exponent has types of its own
                theirs &= {*next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == "T1")}
            assert mine == theirs, (op, opset, mine ^ theirs)


def test_file_versions_are_those_of_onnx() -> None:
    released = {row[2]: row[1] for row in reversed(onnx.helper.VERSION_TABLE)}
    for opset in range(OLDEST, LATEST + 1):
        if opset in released:
            assert ir_version(opset) >= released[opset] or opset in IR_VERSIONS
    assert set(SCATTER_REDUCTIONS) == {"add", "mul", "max", "min"}


def test_rules_are_of_rows() -> None:
    assert set(RULES) <= ROWS.keys()
    named = {name for name, row in ROWS.items() if isinstance(row, Elementwise) and row.onnx and "." not in row.onnx}
    assert named <= set(RULES)
