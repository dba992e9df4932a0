"""If, Loop, Scan and the recurrent ops agree with onnxruntime on every device, at several sizes from one load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, MODELS, check, check_relative, need
from peer import session

from singe import load

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
RNG = np.random.default_rng(5)


def value(name: str, shape: Sequence[Any] | None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, array: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(array)))


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    """A node; names are separated by spaces, "_" is an omitted one."""
    names = [["" if n == "_" else n for n in given.split()] for given in (inputs, outputs)]
    return helper.make_node(op, *names, **attrs)


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Any:
    return helper.make_graph(nodes, "g", inputs, outputs)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: int = 17) -> Any:
    return helper.make_model(
        graph(nodes, inputs, outputs), opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def agree(device: str, made: Any, *cases: dict[str, np.ndarray]) -> None:
    need(device)
    theirs = session(made)
    ours = load(made.SerializeToString(), device=DEVICES[device])
    names = [o.name for o in made.graph.output]
    for given in cases:
        got = ours(given)
        found = [got[n] for n in names] if isinstance(got, dict) else [got]
        check(found, theirs.run(names, given), 1e-5, 1e-5)


on_devices = pytest.mark.parametrize("device", DEVICES)


# --- If --------------------------------------------------------------------------------------------------------------


@on_devices
def test_branches_capture_values_and_nest(device: str) -> None:
    """The inner If reads a value of the main graph, one of the branch around it, and a weight."""
    inner = [
        graph([node("Mul", "x twice", "a")], [], [value("a", None)]),
        graph([node("Sub", "x weight", "b")], [], [value("b", None)]),
    ]
    then = graph(
        [node("Add", "x x", "twice"), node("If", "q", "t", then_branch=inner[0], else_branch=inner[1])],
        [],
        [value("t", None)],
    )
    otherwise = graph([node("Neg", "x", "e")], [], [value("e", None)])
    made = model(
        [constant("weight", floats(3)), node("If", "p", "y", then_branch=then, else_branch=otherwise)],
        [value("x", ["N", 3]), value("p", [], BOOL), value("q", [], BOOL)],
        [value("y", None)],
    )
    cases = [{"x": floats(n, 3), "p": np.array(p), "q": np.array(q)} for n, p, q in ((2, 1, 1), (1, 1, 0), (4, 0, 1))]
    agree(device, made, *({k: v.astype(bool) if k != "x" else v for k, v in c.items()} for c in cases))


@on_devices
def test_a_branch_of_another_rank_is_not_looked_at(device: str) -> None:
    """The condition depends on a shape; only the branch that is taken fits it."""
    squeezed = graph([constant("axes", np.array([1])), node("Squeeze", "x axes", "s")], [], [value("s", None)])
    whole = graph([node("Identity", "x", "w")], [], [value("w", None)])
    made = model(
        [
            node("Shape", "x", "dims"), constant("second", np.array(1)), node("Gather", "dims second", "width"),
            constant("one", np.array(1)), node("Equal", "width one", "narrow"),
            node("If", "narrow", "z", then_branch=squeezed, else_branch=whole), node("Exp", "z", "y"),
        ],
        [value("x", ["N", "W"])],
        [value("y", None)],
    )  # fmt: skip
    agree(device, made, {"x": floats(3, 1)}, {"x": floats(3, 2)}, {"x": floats(2, 1)})


# --- Loop ------------------------------------------------------------------------------------------------------------


def doubling() -> Any:
    """The body of a loop: v is doubled until it exceeds the limit; v + the number of the turn is collected."""
    nodes = [
        node("Add", "v v", "w"), node("ReduceMax", "w", "top", keepdims=0), node("Less", "top limit", "again"),
        node("Cast", "i", "number", to=FLOAT), node("Add", "w number", "shown"),
    ]  # fmt: skip
    outputs = [value("again", [], BOOL), value("w", None), value("shown", [2])]
    return graph(nodes, [value("i", [], INT64), value("c", [], BOOL), value("v", None)], outputs)


@on_devices
@pytest.mark.parametrize("bounded", [True, False])
def test_loops_end_early_or_never_begin(device: str, bounded: bool) -> None:
    """One Program: the limit, the bound and the first condition are inputs."""
    body = doubling()
    made = model(
        [node("Loop", "m c x" if bounded else "_ c x", "last shown", body=body), node("Neg", "shown", "y")],
        [value("x", [2]), value("limit", []), value("m", [], INT64), value("c", [], BOOL)],
        [value("last", [2]), value("y", ["T", 2])],
    )
    x = np.array([0.5, 0.25], np.float32)
    cases = [(x, 30.0, 100, True), (x, 30.0, 3, True), (x, 30.0, 0, True), (x, 30.0, 5, False)]
    if bounded:
        cases.append((-x, 0.0, 9, True))  # it would go on for ever
    agree(device, made, *(
        {"x": v, "limit": np.array(limit, np.float32), "m": np.array(m), "c": np.array(c)} for v, limit, m, c in cases
    ))  # fmt: skip


@on_devices
def test_a_known_number_of_turns_needs_no_condition(device: str) -> None:
    body = graph(
        [node("Identity", "c", "again"), node("Mul", "v scale", "w"), node("Identity", "w", "shown")],
        [value("i", [], INT64), value("c", [], BOOL), value("v", None)],
        [value("again", [], BOOL), value("w", None), value("shown", None)],
    )
    made = model(
        [
            constant("m", np.array(4)),
            constant("yes", np.array(True)),
            node("Loop", "m yes x", "last shown_all", body=body),
        ],
        [value("x", ["N", 2]), value("scale", [2])],
        [value("last", None), value("shown_all", None)],
    )
    agree(device, made, {"x": floats(3, 2), "scale": floats(2)}, {"x": floats(1, 2), "scale": floats(2)})


@on_devices
def test_a_carried_value_may_grow(device: str) -> None:
    body = graph(
        [node("Identity", "c", "again"), node("Concat", "v x", "w", axis=0)],
        [value("i", [], INT64), value("c", [], BOOL), value("v", ["K", 2])],
        [value("again", [], BOOL), value("w", ["L", 2])],
    )
    made = model(
        [node("Loop", "m _ x", "last", body=body), node("Exp", "last", "y")],
        [value("x", ["N", 2]), value("m", [], INT64)],
        [value("y", None)],
    )
    agree(device, made, *({"x": floats(n, 2), "m": np.array(m)} for n, m in ((2, 3), (1, 0), (3, 1))))


@on_devices
def test_loops_nest(device: str) -> None:
    """Each turn of the outer loop runs three of an inner one, whose If reads what both carry."""
    less = graph([node("Add", "u v", "o")], [], [value("o", None)])
    rest = graph([node("Add", "u x", "e")], [], [value("e", None)])
    inner = graph(
        [
            node("Identity", "d", "more"),
            node("Less", "j i", "before"),
            node("If", "before", "t", then_branch=less, else_branch=rest),
        ],
        [value("j", [], INT64), value("d", [], BOOL), value("u", None)],
        [value("more", [], BOOL), value("t", None)],
    )
    outer = graph(
        [
            constant("three", np.array(3)),
            node("Identity", "c", "again"),
            node("Loop", "three _ v", "w", body=inner),
            node("Relu", "w", "shown"),
        ],
        [value("i", [], INT64), value("c", [], BOOL), value("v", None)],
        [value("again", [], BOOL), value("w", None), value("shown", None)],
    )
    made = model(
        [node("Loop", "m _ x", "last all", body=outer)],
        [value("x", ["N"]), value("m", [], INT64)],
        [value("last", None), value("all", None)],
    )
    agree(device, made, {"x": floats(2), "m": np.array(4)}, {"x": floats(1), "m": np.array(1)})


@on_devices
def test_what_a_body_needs_is_needed_in_turns_only(device: str) -> None:
    """With no turn, nothing is chosen from an empty axis."""
    body = graph(
        [node("Gather", "xs i", "row", axis=0), node("Add", "s row", "next"), node("Identity", "keep", "again")],
        [value("i", [], INT64), value("keep", [], BOOL), value("s", [3])],
        [value("again", [], BOOL), value("next", [3])],
    )
    made = model(
        [
            node("Shape", "xs", "shape"), constant("zero", np.array(0)), node("Gather", "shape zero", "count"),
            node("Loop", "count _ s0", "y", body=body),
        ],
        [value("xs", ["T", 3]), value("s0", [3])],
        [value("y", [3])],
    )  # fmt: skip
    agree(device, made, *({"xs": floats(t, 3), "s0": floats(3)} for t in (2, 0, 1)))


# --- Scan ------------------------------------------------------------------------------------------------------------


@on_devices
def test_scans_along_other_axes_and_from_the_end(device: str) -> None:
    body = graph(
        [
            node("Mul", "s a", "t"),
            node("Add", "t b", "s1"),
            node("Sub", "s1 weight", "out"),
            node("Identity", "a", "same"),
        ],
        [value("s", [3]), value("a", [3]), value("b", [3])],
        [value("s1", [3]), value("out", [3]), value("same", [3])],
    )
    made = model(
        [
            constant("weight", floats(3)),
            node("Scan", "s0 p q", "last ys zs", body=body, num_scan_inputs=2, scan_input_axes=[1, 0],
                 scan_input_directions=[0, 1], scan_output_axes=[1, 0], scan_output_directions=[1, 0]),
        ],
        [value("s0", [3]), value("p", [3, "T"]), value("q", ["T", 3])],
        [value("last", [3]), value("ys", [3, "T"]), value("zs", ["T", 3])],
    )  # fmt: skip
    agree(device, made, *({"s0": floats(3), "p": floats(3, t), "q": floats(t, 3)} for t in (4, 1, 7)))
    none = {"s0": floats(3), "p": floats(3, 0), "q": floats(0, 3)}  # onnxruntime divides by zero here
    got = load(made.SerializeToString(), device=DEVICES[device])(none)
    np.testing.assert_array_equal(got["last"], none["s0"])
    assert (got["ys"].shape, got["zs"].shape) == ((3, 0), (0, 3))


# --- recurrent -------------------------------------------------------------------------------------------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("LSTM", {}),
    ("LSTM", {"direction": "bidirectional", "clip": 0.4, "input_forget": 1}),
    ("LSTM", {"direction": "reverse", "activations": ["HardSigmoid", "Softsign", "ScaledTanh"],
              "activation_alpha": [0.3, 1.5], "activation_beta": [0.4, 0.7]}),
    ("GRU", {"direction": "bidirectional"}),
    ("GRU", {"linear_before_reset": 1, "direction": "reverse"}),
    ("GRU", {"linear_before_reset": 1, "clip": 0.5, "activations": ["Sigmoid", "LeakyRelu"], "activation_alpha": [0.2]}),
    ("RNN", {"direction": "bidirectional", "activations": ["Relu", "Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
    ("RNN", {"direction": "reverse"}),
]  # fmt: skip


@on_devices
@pytest.mark.parametrize(("op", "attrs"), VARIANTS, ids=lambda v: v if isinstance(v, str) else ",".join(v) or "plain")
@pytest.mark.parametrize("lengths", [False, True])
def test_recurrent_layers(device: str, op: str, attrs: dict[str, Any], lengths: bool) -> None:
    """All inputs and outputs, batch and length open."""
    directions, hidden, features = 2 if attrs.get("direction") == "bidirectional" else 1, 5, 3
    rows = GATES[op] * hidden
    lstm = op == "LSTM"
    # onnxruntime couples the gates only without peepholes
    peepholes = lstm and "input_forget" not in attrs
    weights = {
        "w": floats(directions, rows, features), "r": floats(directions, rows, hidden), "b": floats(directions, 2 * rows),
        **({"p": floats(directions, 3 * hidden)} if peepholes else {}),
    }  # fmt: skip
    inputs = f"x w r b {'lengths' if lengths else '_'} h {'c' if lstm else ''} {'p' if peepholes else ''}"
    outputs = ["y", "y_h", *(["y_c"] if lstm else [])]
    state = [directions, "B", hidden]
    made = model(
        [*(constant(k, v) for k, v in weights.items()), node(op, inputs, " ".join(outputs), hidden_size=hidden, **attrs)],
        [
            value("x", ["T", "B", features]), value("h", state), *([value("c", state)] if lstm else []),
            *([value("lengths", ["B"], onnx.TensorProto.INT32)] if lengths else []),
        ],
        [value(name, None) for name in outputs],
    )  # fmt: skip

    def case(t: int, b: int) -> dict[str, np.ndarray]:
        given = {"x": floats(t, b, features), "h": floats(directions, b, hidden)}
        given |= {"c": floats(directions, b, hidden)} if lstm else {}
        return given | ({"lengths": np.arange(1, b + 1).clip(0, t).astype(np.int32)} if lengths else {})

    agree(device, made, case(4, 3), case(1, 1), case(6, 2))


@on_devices
def test_a_voice_detector(device: str) -> None:
    """A real model of nested Ifs, whose branches are of other ranks, and LSTMs."""
    need(device)
    path = MODELS / "silero_vad.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {MODELS}")
    with np.load(path.with_suffix(".npz")) as data:
        given, wanted = ({k[len(p) :]: data[k] for k in data.files if k.startswith(p)} for p in ("in:", "out:"))
    found = load(path, device=DEVICES[device])
    check_relative(found(given), wanted, 1e-4)
