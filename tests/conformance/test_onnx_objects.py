"""Sequences, optionals and maps: as inputs and results of models, and within them, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need

import singe as sg
from singe.errors import ImportFailure, InputError, SingeError
from singe.tools.inspection import describe_model

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
LIST = helper.make_sequence_type_proto(FLOATS)
MAYBE = helper.make_optional_type_proto(LIST)
NUMBER = helper.make_tensor_type_proto(TensorProto.INT64, ())
FLAG = helper.make_tensor_type_proto(TensorProto.BOOL, ())


def vector(length: str) -> Any:
    return helper.make_tensor_type_proto(TensorProto.FLOAT, (length,))


def graph(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    def values(given: dict[str, Any]) -> list[Any]:
        return [helper.make_value_info(name, kind) for name, kind in given.items()]

    return helper.make_graph(nodes, "g", values(inputs), values(outputs))


def loaded(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], device: str, **options: Any) -> sg.Model:
    model = helper.make_model(graph(nodes, inputs, outputs), opset_imports=[helper.make_opsetid("", 18)])
    return sg.load(model.SerializeToString(), DEVICES[device], **options)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def floats(*lengths: int) -> list[np.ndarray]:
    return [np.arange(n, dtype=np.float32) + k for k, n in enumerate(lengths)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_of_any_length_is_a_list_again(device: str) -> None:
    need(device)
    body = graph([node("Mul", "a a", "b")], {"a": FLOATS}, {"b": FLOATS})
    squares = loaded([node("SequenceMap", "x", "y", body=body)], {"x": LIST}, {"y": LIST}, device)
    for lengths in ((2, 3), (2, 3), (4,), ()):
        given = floats(*lengths)
        check([squares(given)], [[a * a for a in given]], 0, 0)
    check([squares([[1.0, 2.0], [3.0]])], [[np.array([1, 4], np.float32), np.array([9], np.float32)]], 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_elements_of_other_lengths_need_no_other_program(device: str) -> None:
    need(device)
    joined = loaded([node("ConcatFromSequence", "x", "y", axis=0)], {"x": LIST}, {"y": FLOATS}, device)
    found = []
    for lengths in ((2, 3), (5, 1)):
        given = floats(*lengths)
        model, arrays = joined.bound((given,), {})
        found.append(model.program({k: a.shape for k, a in arrays.items()}, arrays))
        check([joined(given)], [np.concatenate(given)], 0, 0)
    assert found[0] is found[1]
    assert [p.name for p in found[0].inputs] == ["x.0", "x.1"]


@pytest.mark.parametrize("device", DEVICES)
def test_none_is_an_optional_that_holds_nothing(device: str) -> None:
    need(device)
    nodes = [node("OptionalHasElement", "x", "has"), node("Identity", "x", "y")]
    model = loaded(nodes, {"x": MAYBE}, {"has": FLAG, "y": MAYBE}, device)
    for given in (None, [], floats(2, 1)):
        found = model(x=given)
        assert found["has"] == (given is not None)
        check([found["y"]], [given], 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_position_is_found_in_a_run_where_shapes_are_equal(device: str) -> None:
    need(device)
    nodes = [node("SequenceConstruct", "a b c", "x"), node("SequenceAt", "x k", "y")]
    inputs = {"a": vector("n"), "b": vector("n"), "c": vector("n"), "k": NUMBER}
    model = loaded(nodes, inputs, {"y": FLOATS}, device)
    given = floats(2, 2, 2)
    for k in (0, 2, -1):
        check([model(*given, np.int64(k))], [given[k]], 0, 0)
    assert not model.needed
    inputs["c"] = vector("m")
    model = loaded(nodes, inputs, {"y": FLOATS}, device)
    given = floats(2, 2, 3)
    for k in (0, 2, -1):
        check([model(*given, np.int64(k))], [given[k]], 0, 0)
    assert set(model.needed.inputs) == {"k"}


@pytest.mark.parametrize("device", DEVICES)
def test_branches_that_give_lists(device: str) -> None:
    """One Program if they are equally long; else one for each value of the condition."""
    need(device)
    for then, needed in (("a b", set()), ("a a b", {"flag"})):
        branches = {
            name: graph([node("SequenceConstruct", given, "s")], {}, {"s": LIST})
            for name, given in (("then_branch", then), ("else_branch", "b b"))
        }
        inputs = {"flag": FLAG, "a": vector("n"), "b": vector("n")}
        model = loaded([node("If", "flag", "y", **branches)], inputs, {"y": LIST}, device)
        a, b = floats(3, 3)
        values = {"a": a, "b": b}
        check([model(np.bool_(True), a, b)], [[values[k] for k in then.split()]], 0, 0)
        check([model(np.bool_(False), a, b)], [[b, b]], 0, 0)
        assert set(model.needed.inputs) == needed


def growing() -> list[Any]:
    """A Loop of `n` turns that appends to the list `x`."""
    body = graph(
        [
            node("Identity", "again", "on"),
            node("Cast", "turn", "number", to=TensorProto.FLOAT),
            node("Add", "a number", "more"),
            node("SequenceInsert", "s more", "longer"),
        ],
        {"turn": NUMBER, "again": FLAG, "s": LIST},
        {"on": FLAG, "longer": LIST, "more": FLOATS},
    )
    return [node("Loop", "n flag x", "y all", body=body)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_loop_that_appends_to_a_list(device: str) -> None:
    """There is a Program for each number of turns."""
    need(device)
    inputs = {"n": NUMBER, "flag": FLAG, "x": LIST, "a": vector("n")}
    model = loaded(growing(), inputs, {"y": LIST, "all": FLOATS}, device)
    (a,) = floats(3)
    for turns in (1, 3):
        found = model(np.int64(turns), np.bool_(True), floats(2), a)
        wanted = [a + np.float32(k) for k in range(turns)]
        check([found["y"], found["all"]], [[*floats(2), *wanted], np.stack(wanted)], 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_whose_length_only_a_run_finds_is_refused(device: str) -> None:
    need(device)
    inputs = {"k": NUMBER, "flag": FLAG, "x": LIST, "a": vector("n")}
    model = loaded([node("NonZero", "a", "i"), node("Size", "i", "n"), *growing()], inputs, {"y": LIST}, device)
    assert len(model(np.int64(1), np.bool_(True), [], floats(3)[0])) == 2  # a value of an input decides it
    turns = graph(
        [node("Identity", "again", "on"), *growing(), node("SequenceLength", "y", "count")],
        {"n": NUMBER, "again": FLAG},
        {"on": FLAG, "count": NUMBER},
    )
    model = loaded([node("Loop", "k flag", "counts", body=turns)], inputs, {"counts": FLOATS}, device)
    with pytest.raises(SingeError, match="changes from turn to turn"):
        model(np.int64(1), np.bool_(True), [], floats(3)[0])


def test_what_a_list_holds_must_be_known_before_a_run() -> None:
    model = loaded([node("Identity", "x", "y")], {"x": LIST}, {"y": LIST}, "CPU")
    assert set(model.needed.inputs) == {"x"}
    assert "x: sequence(tensor(float32))" in repr(model)
    for wrong in (np.float32(1), {"a": 1}, [["text"]], [[1.0], [[1.0], [2.0, 3.0]]]):
        with pytest.raises(InputError, match="x"):
            model(x=wrong)
    with pytest.raises(InputError, match="missing: 'x'"):
        model()


def test_ops_that_take_no_lists_say_so() -> None:
    for nodes, text in (
        ([node("Relu", "x", "y")], "a sequence of 1"),
        ([node("SequenceAt", "a n", "y")], "a tensor"),
        ([node("SequenceAt", "x three", "y")], "position 3 in a sequence of 1"),
        ([node("OptionalGetElement", "", "y")], "holds nothing"),
    ):
        three = node("Constant", "", "three", value_int=3)
        model = loaded([three, *nodes], {"x": LIST, "a": vector("n"), "n": NUMBER}, {"y": FLOATS}, "CPU")
        with pytest.raises(ImportFailure, match=text):
            model(floats(1), floats(1)[0], np.int64(0))


def test_inspect_shows_inputs_that_are_lists() -> None:
    model = loaded([node("Identity", "x", "y")], {"x": LIST}, {"y": LIST}, "CPU")
    assert "x      sequence(tensor(float32))  ?" in describe_model(model)
