"""Strings on every device: ONNX models that move, compare, cast and cut them, and Programs that hold them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import MORE, RUNNERS
from onnx import TensorProto, helper

import singe as sg
from singe.dtypes import own, string, strings
from singe.errors import DTypeError, FormatError, HostNeeded, ImportFailure, InputError
from singe.graph import Builder, Graph, GraphState, leaf
from singe.model.model import Model
from singe.onnx import backend
from singe.program.format import from_bytes, to_bytes
from singe.program.program import Host
from singe.shapes import size
from singe.tools.export.bundle import draft

WORDS = np.array([["one", "two", "três"], ["", "fünf", "one"]], object)
ONNX_NAMES = {"numpy": "CPU", "wasm": "WASM", "webgpu": "WEBGPU", **{name: name.upper() for name in MORE}}


def onnx_model(nodes: list[Any], inputs: dict[str, Any], outputs: list[str], opset: int = 21) -> Any:
    """inputs: name ↦ an array, whose type and rank are declared, its dimensions open."""
    declared = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype),
            [f"{name}{k}" for k in range(a.ndim)],
        )
        for name, a in inputs.items()
    ]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", declared, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def run(device_name: str, nodes: list[Any], inputs: dict[str, Any], outputs: list[str]) -> list[np.ndarray]:
    prepared = backend.prepare(onnx_model(nodes, inputs, outputs), ONNX_NAMES[device_name])
    return list(prepared.run(list(inputs.values())))


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def constant(name: str, values: list[Any], shape: list[int] | None = None) -> Any:
    kind = TensorProto.STRING if values and isinstance(values[0], str) else TensorProto.INT64
    dims = [len(values)] if shape is None else shape
    return node("Constant", "", name, value=helper.make_tensor(name, kind, dims, values))


@RUNNERS
def test_movement_of_open_shapes(device_name: str) -> None:
    nodes = [
        node("Identity", "x", "same"),
        constant("at", [1, 0]),
        node("Gather", "x at", "gathered", axis=1),
        constant("flat", [-1]),
        node("Reshape", "x flat", "reshaped"),
        node("Concat", "x x", "joined", axis=0),
        constant("first", [0]),
        node("Unsqueeze", "x first", "unsqueezed"),
        node("Squeeze", "unsqueezed first", "squeezed"),
        node("Transpose", "x", "turned"),
        constant("one", [1]),
        constant("end", [100]),
        node("Slice", "x one end one", "cut"),
        constant("other", ["else"], []),
        node("Equal", "x other", "none"),
        constant("word", ["one"]),
        node("Equal", "x word", "ones"),
        node("Where", "ones x other", "chosen"),
        constant("twice", [2, 1]),
        node("Tile", "x twice", "tiled"),
        node("Unique", "x", "different places back counts"),
    ]
    outputs = ["same", "gathered", "reshaped", "joined", "unsqueezed", "squeezed", "turned", "cut", "none", "ones"]
    outputs += ["chosen", "tiled", "different", "counts"]
    for x in (WORDS, WORDS[:1], WORDS[:, :2]):
        want = [x, x[:, [1, 0]], x.ravel(), np.concatenate([x, x]), x[None], x, x.T, x[:, 1:], x == "else", x == "one"]
        different, counts = np.unique(x, return_counts=True)
        want += [np.where(x == "one", x, "else"), np.tile(x, (2, 1)), different, counts]
        for name, got, wanted in zip(outputs, run(device_name, nodes, {"x": x}, outputs), want, strict=True):
            assert got.dtype == wanted.dtype, name
            np.testing.assert_array_equal(got, wanted, name)


@RUNNERS
def test_casts(device_name: str) -> None:
    numbers = np.array([0.1, -2.5, 1e-7, np.inf, -np.inf, np.nan], np.float32)
    text = np.array([" 3.5", "-1e3", "INF", "NaN"], object)
    whole = np.array(["12", "-7"], object)
    nodes = [
        node("Cast", "numbers", "shown", to=TensorProto.STRING),
        node("Cast", "shown", "back", to=TensorProto.FLOAT),
        node("Cast", "text", "read", to=TensorProto.FLOAT16),
        node("Cast", "whole", "ints", to=TensorProto.INT64),
        node("Cast", "ints", "again", to=TensorProto.STRING),
        node("CastLike", "numbers text", "alike"),
    ]
    given = {"numbers": numbers, "text": text, "whole": whole}
    shown, back, read, ints, again, alike = run(
        device_name, nodes, given, ["shown", "back", "read", "ints", "again", "alike"]
    )
    assert shown.tolist() == ["0.1", "-2.5", "1e-07", "inf", "-inf", "nan"] == alike.tolist()
    np.testing.assert_array_equal(back, numbers)
    np.testing.assert_array_equal(read, np.array([3.5, -1000, np.inf, np.nan], np.float16))
    assert (ints.dtype, ints.tolist(), again.tolist()) == (np.int64, [12, -7], ["12", "-7"])
    with pytest.raises(InputError, match="the string 'twelve' is not a number of the type int64"):
        run(device_name, nodes, {**given, "whole": np.array(["twelve"], object)}, ["ints"])


@RUNNERS
def test_parts_of_strings_meet_numbers(device_name: str) -> None:
    """The number of parts is found in the run; numbers parsed from the parts go through a kernel."""
    nodes = [
        node("StringSplit", "x", "parts counts", delimiter=","),
        node("Cast", "parts", "numbers", to=TensorProto.FLOAT),
        node("ReduceSum", "numbers", "sum", keepdims=0),
        node("Add", "counts counts", "doubled"),
        constant("unit", ["kg"]),
        node("StringConcat", "parts unit", "weights"),
        node("RegexFullMatch", "parts", "small", pattern=r"\d"),
    ]
    for x in (np.array(["1,22", "3,40"], object), np.array(["1,2,3"], object)):
        got = run(device_name, nodes, {"x": x}, ["sum", "doubled", "weights", "small"])
        parts = np.array([text.split(",") for text in x])
        assert got[0] == parts.astype(np.float32).sum()
        np.testing.assert_array_equal(got[1], np.full(len(x), 2 * parts.shape[1]))
        np.testing.assert_array_equal(got[2], np.char.add(parts, "kg"))
        np.testing.assert_array_equal(got[3], np.char.str_len(parts) == 1)


@RUNNERS
def test_strings_that_double_are_refused_before_they_are_made(device_name: str) -> None:
    """45 joins of one text with itself would take 32 TB."""
    nodes = [node("StringConcat", f"x{k} x{k}", f"x{k + 1}") for k in range(45)]
    nodes[0] = node("StringConcat", "x x", "x1")
    with pytest.raises(sg.SingeError, match="characters; at most 16777216 each"):
        run(device_name, nodes, {"x": np.array(["a"], object)}, ["x45"])


@RUNNERS
def test_regions_carry_strings(device_name: str) -> None:
    """An If chooses between two strings; a Loop appends to a string and collects its values."""

    def value(name: str, kind: int = TensorProto.STRING) -> Any:
        return helper.make_tensor_value_info(name, kind, [1])

    then = helper.make_graph([node("StringConcat", "x x", "t")], "then", [], [value("t")])
    otherwise = helper.make_graph([constant("e", ["constant"])], "else", [], [value("e")])
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        value("old"),
    ]
    steps = [node("Identity", "go", "on"), node("StringConcat", "old x", "new"), node("Identity", "new", "kept")]
    body = helper.make_graph(
        steps, "body", inputs, [helper.make_tensor_value_info("on", TensorProto.BOOL, []), value("new"), value("kept")]
    )
    nodes = [
        node("If", "c", "chosen", then_branch=then, else_branch=otherwise),
        node("Loop", "n  x", "last all", body=body),
    ]
    nodes[1].input[:] = ["n", "", "x"]  # no condition
    graph = helper.make_graph(
        nodes, "g",
        [value("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("n", TensorProto.INT64, [])],
        [helper.make_empty_tensor_value_info(name) for name in ("chosen", "last", "all")],
    )  # fmt: skip
    prepared = backend.prepare(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), ONNX_NAMES[device_name]
    )
    x = np.array(["ab"], object)
    for flag, turns in ((True, 3), (False, 1), (True, 0)):
        chosen, last, every = prepared.run([x, np.array(flag), np.array(turns)])
        assert chosen.tolist() == (["abab"] if flag else ["constant"])
        assert last.tolist() == ["ab" * (turns + 1)]
        assert every.tolist() == [["ab" * (k + 2)] for k in range(turns)]


def greeting() -> Graph:
    """A constant string before every input, and whether it is one of two."""
    b = Builder()
    x = b.input("x", (size("N"),), string)
    hello = b.string_concat(b.const(np.array(["Hallo, "])), x)
    known = b.equal(b.reshape(x, shape=(x.shape[0], 1)), b.const(["Ada", "Bo"]))
    return Graph((x,), (hello, known, b.const("end")), ("hello", "known", "end"))


def check_greeting(found: dict[str, np.ndarray]) -> None:
    assert found["hello"].dtype == object
    assert found["hello"].tolist() == ["Hallo, Ada", "Hallo, Cy"]
    assert found["known"].tolist() == [[True, False], [False, False]]
    assert found["end"].tolist() == "end"


@RUNNERS
def test_programs_and_records_with_constants_of_strings(device_name: str, tmp_path: Path) -> None:
    names = ["Ada", "Cy"]
    model = Model(greeting(), device_name)
    check_greeting(model(np.array(names)))
    program = model.program()
    program.save(tmp_path / "p.program")
    check_greeting(sg.Program.load(tmp_path / "p.program", device_name)(names))
    sg.save(model, tmp_path / "m.singe")
    check_greeting(sg.load(tmp_path / "m.singe", device_name)(x=np.array(names, object)))
    assert program.data.weights.size == 0
    if device_name != "numpy":
        assert {"string_concat", "equal"} <= program.data.facts["host"].keys()
        assert {s.op for s in program.data.stops if isinstance(s, Host)} >= {"strings", "string_concat", "equal"}


@RUNNERS
def test_strings_that_go_through_are_reported_and_can_be_refused(device_name: str) -> None:
    b = Builder()
    words = b.input("words", (size("N"),), string)
    for shape in ((size("N"),), (1, size("N"))):
        graph = Graph((words,), (b.reshape(words, shape=shape),), ("same",))
        assert Model(graph, device_name)(["a"]).ravel().tolist() == ["a"]
        if device_name == "numpy":
            continue
        assert Model(graph, device_name).program().data.facts["host"] == {"copy": {"strings lie on the host": 1}}
        with pytest.raises(HostNeeded, match=r"would run on the host: copy \(strings lie on the host\)"):
            Model(graph, device_name, fail_on_host=True).program()


@RUNNERS
def test_runs_leave_nothing_of_the_last_one(device_name: str) -> None:
    """Also of shapes, and where strings go through unchanged."""
    b = Builder()
    x = b.input("x", (size("N"),), string)
    model = Model(Graph((x,), (x, b.string_concat(x, x)), ("same", "twice")), device_name)
    for given in (["a", "b"], ["c"], [], ["d", "e"]):
        found = model(np.array(given, object))
        assert found["same"].tolist() == given
        assert found["twice"].tolist() == [text * 2 for text in given]


@RUNNERS
def test_tensors_of_strings(device_name: str) -> None:
    x = sg.tensor([["a", "b"], ["c", "a"]], device=device_name)
    assert (x.dtype, x.shape) == (string, (2, 2))
    assert sg.concat([x, x.transpose(1, 0)]).numpy().tolist() == [["a", "b"], ["c", "a"], ["a", "c"], ["b", "a"]]
    assert (x == np.array("a")).tolist() == [[True, False], [False, True]]
    assert x[1:, :].to("numpy").tolist() == [["c", "a"]]
    with pytest.raises(DTypeError, match="exp: got string"):
        x.exp()
    with pytest.raises(DTypeError, match="string"):
        sg.concat([x, sg.tensor([[1.0, 2.0]], device=device_name)])


def test_what_is_no_string_is_refused() -> None:
    model = Model(greeting(), "numpy")
    for wrong, text in (
        (np.zeros(2, np.float32), "input 'x': got 0.0, expected strings"),
        (["a", 1], "got 1, expected"),
    ):
        with pytest.raises(InputError, match=text):
            model(wrong if isinstance(wrong, np.ndarray) else np.array(wrong, object))
    with pytest.raises(DTypeError, match=r"got None, expected strings"):
        strings(np.array(["a", None], object))
    bad = helper.make_tensor("t", TensorProto.STRING, [2], [b"ok", b"\xff"])
    graph = helper.make_graph(
        [node("Constant", "", "y", value=bad)], "g", [], [helper.make_empty_tensor_value_info("y")]
    )
    with pytest.raises(ImportFailure, match="bytes that are not UTF-8"):
        sg.load(helper.make_model(graph).SerializeToString()).graph()
    graph = onnx_model([node("RegexFullMatch", "x", "y", pattern="(")], {"x": WORDS}, ["y"])
    with pytest.raises(ImportFailure, match=r"the pattern '\(' is not a regular expression"):
        sg.load(graph.SerializeToString()).graph()


@RUNNERS
def test_strings_are_no_states_nor_weights(device_name: str) -> None:
    x, held = leaf((2,), string, "x"), leaf((2,), string, "held")
    graph = Graph((x,), (held,), ("y",), states=(GraphState(held, "held", None, x),))
    with pytest.raises(DTypeError, match="state 'held' is string"):
        Model(graph, device_name).program()
    data = Model(greeting(), device_name).program().data
    buffers = tuple(replace(b, place=("weights", 0)) if b.place[0] == "slot" else b for b in data.buffers)
    with pytest.raises(FormatError, match="holds strings, which cannot be weights"):
        from_bytes(to_bytes(replace(data, buffers=buffers)))


def test_pages_are_told_that_they_have_no_strings() -> None:
    with pytest.raises(InputError, match=r"target wasm: .*does not compute string.*singe.js lacks"):
        draft(Model(greeting(), "numpy")).alone()


def test_arrays_of_other_string_types_are_taken() -> None:
    for given in (np.array(["a", "bc"]), np.array(["a", "bc"], object)):
        assert own(given)[string.name].tolist() == ["a", "bc"]
    if hasattr(np.dtypes, "StringDType"):
        assert own(np.array(["a", "bc"], np.dtypes.StringDType()))[string.name].tolist() == ["a", "bc"]  # pyright: ignore
