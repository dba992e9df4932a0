"""Sequences, optionals and maps: as inputs and results of models, and within them, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need

import singe as sg
from singe.errors import ImportFailure, InputError, ShapeError, SingeError
from singe.model.description import describe_model

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
def test_programs_for_lists_of_other_lengths_share_the_weights(device: str) -> None:
    need(device)
    w = np.arange(1 << 14, dtype=np.float32).reshape(1 << 7, 1 << 7)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=helper.make_tensor("w", TensorProto.FLOAT, w.shape, w.ravel())),
        node("ConcatFromSequence", "x", "whole", axis=0),
        node("MatMul", "whole w", "y"),
    ]
    rows = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, (None, w.shape[0])))
    model, own = loaded(nodes, {"x": rows}, {"y": FLOATS}, device), []
    for count in (1, 2, 3):
        bound, arrays = model.bound(([np.eye(1, w.shape[0], dtype=np.float32)] * count,), {})
        own.append(bound.program({k: a.shape for k, a in arrays.items()}, arrays))
        check([model([np.eye(1, w.shape[0], dtype=np.float32)] * count)], [w[[0] * count]], 0, 0)
    assert own[0].data.weights.nbytes >= w.nbytes
    assert all(program.data.weights.nbytes < w.nbytes for program in own[1:])


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
    """One Program if they are equally long, or their elements are alike; else one for each value of the condition."""
    need(device)
    for then, size, needed in (("a b", "n", set()), ("a a b", "n", set()), ("a a b", "m", {"flag"})):
        branches = {
            name: graph([node("SequenceConstruct", given, "s")], {}, {"s": LIST})
            for name, given in (("then_branch", then), ("else_branch", "b b"))
        }
        inputs = {"flag": FLAG, "a": vector("n"), "b": vector(size)}
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
def test_a_length_that_changes_from_turn_to_turn(device: str) -> None:
    """It is refused if the elements may have other shapes."""
    need(device)
    inputs = {"k": NUMBER, "flag": FLAG, "x": LIST, "a": vector("n")}
    model = loaded([node("NonZero", "a", "i"), node("Size", "i", "n"), *growing()], inputs, {"y": LIST}, device)
    assert len(model(np.int64(1), np.bool_(True), [], floats(3)[0])) == 2
    turns = graph(
        [node("Identity", "again", "on"), *growing(), node("SequenceLength", "y", "count")],
        {"n": NUMBER, "again": FLAG},
        {"on": FLAG, "count": NUMBER},
    )
    model = loaded([node("Loop", "k flag", "counts", body=turns)], inputs, {"counts": FLOATS}, device)
    check([model(np.int64(3), np.bool_(True), [], floats(3)[0])], [np.arange(3)], 0, 0)
    with pytest.raises(SingeError, match="changes from turn to turn"):
        model(np.int64(1), np.bool_(True), floats(2), floats(3)[0])


def appending(*more: Any, insert: str = "s row") -> list[Any]:
    """A Loop of `n` turns that adds a row of `a`, times the turn's number, to a list that begins empty."""
    body = graph(
        [
            node("Identity", "again", "on"),
            node("Cast", "turn", "number", to=TensorProto.FLOAT),
            node("Mul", "a number", "row"),
            *more,
            node("SequenceInsert", insert, "longer"),
        ],
        {"turn": NUMBER, "again": FLAG, "s": LIST},
        {"on": FLAG, "longer": LIST},
    )
    return [node("SequenceEmpty", "", "none"), node("Loop", "n flag none", "y", body=body)]


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_of_equal_elements_may_have_a_length_that_a_run_finds(device: str) -> None:
    """One Program for every number of turns."""
    need(device)
    inputs = {"n": NUMBER, "flag": FLAG, "a": vector("m")}
    nodes = [
        *appending(), node("SequenceLength", "y", "count"), node("ConcatFromSequence", "y", "whole", axis=0),
        node("ConcatFromSequence", "y", "table", axis=1, new_axis=1), node("Constant", "", "last", value_int=-1),
        node("SequenceAt", "y last", "end"), node("SequenceErase", "y", "shorter"), node("SequenceInsert", "shorter a", "other"),
    ]  # fmt: skip
    outputs = {"y": LIST, "count": NUMBER, "whole": FLOATS, "table": FLOATS, "end": FLOATS, "other": LIST}
    model, programs = loaded(nodes, inputs, outputs, device), set()
    assert not model.needed
    for turns, size in ((1, 3), (4, 3), (2, 5)):
        a = floats(size)[0]
        found = model(np.int64(turns), np.bool_(True), a)
        wanted = [a * np.float32(k) for k in range(turns)]
        check([found["y"], found["other"]], [wanted, [*wanted[:-1], a]], 0, 0)
        check(
            [found[k] for k in ("whole", "table", "end")],
            [np.concatenate(wanted), np.stack(wanted, 1), wanted[-1]],
            0,
            0,
        )
        assert found["count"] == turns
        programs.add(model.program({"n": (), "flag": (), "a": a.shape}))
    assert len(programs) == 1
    with pytest.raises(ShapeError, match="is empty"):
        model(np.int64(0), np.bool_(True), floats(3)[0])


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_grows_until_a_condition_fails(device: str) -> None:
    """What the turns compute decides how many there are; a list that the caller gives is carried too."""
    need(device)
    body = graph(
        [
            node("Add", "v v", "w"), node("ReduceSum", "w", "sum", keepdims=0), node("Less", "sum limit", "on"),
            node("SequenceInsert", "s w", "longer"), node("Identity", "s", "same"),
        ],
        {"turn": NUMBER, "again": FLAG, "v": vector("n"), "s": LIST}, {"on": FLAG, "w": vector("n"), "longer": LIST},
    )  # fmt: skip
    nodes = [
        node("SequenceConstruct", "a", "begun"),
        helper.make_node("Loop", ["", "flag", "a", "begun"], ["last", "y"], body=body),
    ]
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    model = loaded(nodes, {"flag": FLAG, "a": vector("n"), "limit": scalar}, {"last": FLOATS, "y": LIST}, device)
    assert not model.needed
    for limit, turns in ((10.0, 1), (100.0, 5), (7.0, 1)):
        (a,) = floats(4)
        found = model(np.bool_(True), a, np.float32(limit))
        wanted = [a * np.float32(2**k) for k in range(turns + 1)]
        check([found["y"], found["last"]], [wanted, wanted[-1]], 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_grows_in_some_turns_only(device: str) -> None:
    """As where a decoder keeps the words that are no blanks: the branches of an If give lists of different length."""
    need(device)
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    listed = helper.make_sequence_type_proto(scalar)
    body = graph(
        [
            node("Identity", "again", "on"), node("Gather", "a turn", "found"), node("Less", "zero found", "positive"),
            node(
                "If", "positive", "longer",
                then_branch=graph([node("SequenceInsert", "s found", "more")], {}, {"more": listed}),
                else_branch=graph([node("Identity", "s", "same")], {}, {"same": listed}),
            ),
        ],
        {"turn": NUMBER, "again": FLAG, "s": listed}, {"on": FLAG, "longer": listed},
    )  # fmt: skip
    nodes = [
        node("Constant", "", "zero", value_float=0.0), node("Size", "a", "n"), node("SequenceEmpty", "", "none"),
        node("Loop", "n flag none", "kept", body=body),
        node("ConcatFromSequence", "kept", "y", axis=0, new_axis=1),
    ]  # fmt: skip
    model = loaded(nodes, {"flag": FLAG, "a": vector("m")}, {"y": FLOATS}, device)
    for values in ([1, -1, 2], [3, 4], [-1, -2, -3, 5, 6]):
        a = np.array(values, np.float32)
        check([model(np.bool_(True), a)], [a[a > 0]], 0, 0)
    assert not model.needed


@pytest.mark.parametrize("device", DEVICES)
def test_a_list_grows_from_its_front(device: str) -> None:
    need(device)
    start = node("Constant", "", "at", value_int=0)
    model = loaded(
        appending(start, insert="s row at"), {"n": NUMBER, "flag": FLAG, "a": vector("m")}, {"y": LIST}, device
    )
    assert not model.needed
    (a,) = floats(2)
    for turns in (4, 0):
        check([model(np.int64(turns), np.bool_(True), a)], [[a * np.float32(k) for k in reversed(range(turns))]], 0, 0)
    assert model(np.int64(4), np.bool_(False), a) == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kept", [0, 1])
def test_an_open_axis_in_parts_of_one(device: str, kept: int) -> None:
    """One Program, also with what a SequenceMap makes of the parts."""
    need(device)
    body = graph(
        [node("Mul", "p b", "q"), node("ReduceSum", "p", "r", keepdims=0)],
        {"p": FLOATS, "b": FLOATS},
        {"q": FLOATS, "r": FLOATS},
    )
    nodes = [
        node("SplitToSequence", "x", "parts", axis=1, keepdims=kept), node("SequenceMap", "parts b", "q r", body=body),
        node("ConcatFromSequence", "q", "y", axis=1, new_axis=1 - kept),
    ]  # fmt: skip
    x, b = (
        helper.make_tensor_type_proto(TensorProto.FLOAT, (2, "W", 3)),
        helper.make_tensor_type_proto(TensorProto.FLOAT, (3,)),
    )
    model = loaded(nodes, {"x": x, "b": b}, {"parts": LIST, "q": LIST, "r": LIST, "y": FLOATS}, device)
    assert not model.needed
    for width in (1, 4, 2):
        given, by = np.arange(6 * width, dtype=np.float32).reshape(2, width, 3), floats(3)[0]
        found = model(given, by)
        parts = [given[:, k : k + 1] if kept else given[:, k] for k in range(width)]
        check([found[k] for k in ("parts", "q", "r")], [parts, [p * by for p in parts], [p.sum() for p in parts]], 0, 0)
        check([found["y"]], [given * by], 0, 0)


def test_a_body_that_gives_fewer_values_than_it_takes_is_refused() -> None:
    body = graph([node("Identity", "again", "on")], {"turn": NUMBER, "again": FLAG, "s": LIST}, {"on": FLAG})
    nodes = [node("SequenceEmpty", "", "none"), node("Loop", "n flag none", "y", body=body)]
    model = loaded(nodes, {"n": NUMBER, "flag": FLAG}, {"y": LIST}, "CPU")
    for turns in (1, 2):
        with pytest.raises(ImportFailure, match="Loop"):
            model(np.int64(turns), np.bool_(True))


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
