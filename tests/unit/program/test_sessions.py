"""Models with states: made from functions, run in sessions that share the weights, updated in place on every device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from networks.remembering import COUNTED, COUNTER, DESCENT, REMEMBERING
from onnx import TensorProto, helper

import singe as sg
from singe.compiler.compile import compile_graph
from singe.tools import cli


def outputs_of(model: sg.Model, found: Any) -> dict[str, np.ndarray]:
    names = [p.name for p in model.outputs]
    return found if len(names) > 1 else {names[0]: found}


@pytest.mark.slow
@RUNNERS
@pytest.mark.parametrize("name", REMEMBERING)
def test_a_thousand_runs_agree_with_numpy_and_copy_no_state(name: str, device_name: str) -> None:
    """Memory does not grow, no state is copied, and another session and the model itself keep separate states."""
    this = REMEMBERING[name]
    model = this.model(device_name)
    session, other = model.session(), model.session()
    program = model.program()
    assert program.data.copied({}) == 0
    assert set(session.names) == set(this.initial)
    for k, (outputs, states) in enumerate(this.after(1000)):
        got = session(this.inputs[k % len(this.inputs)])
        if k == 10:
            held = dict(program.memory)
        if k % 50 == 0 or k == 999:
            this.compare(outputs_of(model, got), outputs)
            this.compare({n: session.read(n) for n in session.names}, states)
    assert program.memory == held
    first, states = next(this.after(1))
    this.compare(outputs_of(model, other(this.inputs[0])), first)
    this.compare(outputs_of(model, model(this.inputs[0])), first)
    this.compare({n: other.read(n) for n in other.names}, states)


def test_a_training_step_learns() -> None:
    losses = [outputs["loss"].item() for outputs, _ in DESCENT.after(400)]
    assert losses[-1] < 0.2 * losses[0]


@RUNNERS
@pytest.mark.parametrize("what", ["model", "program"])
def test_a_session_is_copied_reset_read_and_written(what: str, device_name: str) -> None:
    model = COUNTER.model(device_name)
    session = (model if what == "model" else model.program()).session()
    x = COUNTER.inputs[0]["x"]
    np.testing.assert_array_equal(session.read("count"), COUNTED)
    fresh = session.copy()
    session(x)
    branch = session.copy()
    session(x=x)
    session({"x": x})
    assert [s.read("count").tolist() for s in (session, branch, fresh)] == [[8, 80], [6, 60], [5, 50]]
    branch.write("count", [100, 1000])
    np.testing.assert_array_equal(branch(x), [200, 2000])
    session.reset()
    assert [s.read("count").tolist() for s in (session, branch, fresh)] == [[5, 50], [101, 1010], [5, 50]]
    mine = branch.read("count")
    mine[:] = 0
    np.testing.assert_array_equal(branch.read("count"), [101, 1010])


@RUNNERS
@pytest.mark.parametrize("what", ["model", "program"])
def test_sessions_share_what_writes_and_copies_states(
    what: str, device_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compiled once for each set of states, whichever session is written or copied first."""
    made = COUNTER.model(device_name)
    owner = made if what == "model" else made.program()
    sessions = [owner.session(), owner.session(), owner.session()]
    sessions[0](COUNTER.inputs[0])
    compiled: list[Any] = []

    def counted(*args: Any) -> Any:
        compiled.append(compile_graph(*args))
        return compiled[-1]

    monkeypatch.setattr("singe.model.program.compiling.compile_graph", counted)
    for k, session in enumerate(sessions):
        session.write("count", [k, 10 * k])
    assert len(compiled) == 1
    copies = [session.copy() for session in sessions]
    assert len(compiled) == 1  # all states are that one
    assert [s.read("count").tolist() for s in copies] == [[k, 10 * k] for k in range(3)]


@RUNNERS
def test_a_disposed_session_gives_its_memory_back(device_name: str) -> None:
    model = COUNTER.model(device_name)
    session, program = model.session(), model.program()
    session(COUNTER.inputs[0])
    assert program.memory["states"] == 8
    branch = session.copy()
    assert program.memory["states"] == 16
    session.dispose()
    assert program.memory["states"] == 8
    for use in (lambda: session(COUNTER.inputs[0]), lambda: session.read("count"), session.reset, session.copy):
        with pytest.raises(sg.DeviceError, match="this session was disposed of"):
            use()
    np.testing.assert_array_equal(branch.read("count"), [6, 60])


@RUNNERS
def test_a_disposed_program_says_so(device_name: str) -> None:
    x = np.ones((2, 3), np.float32)
    for program, used in (
        (sg.compile(lambda x: (x * 2).sum(), x, device=device_name), x),
        (COUNTER.model(device_name).program(), COUNTER.inputs[0]),
    ):
        program(used)
        program.dispose()
        with pytest.raises(
            sg.DeviceError, match=f"{device_name}: this program was disposed of; compile or load it again"
        ):
            program(used)
        program.dispose()
    with pytest.raises(sg.DeviceError, match="this program was disposed of"):
        program.executable.new_states()


@RUNNERS
def test_a_disposed_program_keeps_nothing_for_its_sessions(device_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what copies into their states."""
    program = sg.compile(COUNTER.model(device_name))
    program.session().write("count", [1, 2])
    kind, disposed = type(program.executable), []
    dispose = kind.dispose
    monkeypatch.setattr(kind, "dispose", lambda executable: disposed.append(executable) or dispose(executable))
    copies = list(program._copies.values())
    assert copies
    program.dispose()
    assert disposed == [program.executable, *copies]


def test_the_examples_of_the_readme_work() -> None:
    """Those in Python of the section on models that remember, which use numpy here."""
    section = (
        (Path(__file__).parents[3] / "README.md").read_text().split("\n## Models that remember\n")[1].split("\n## ")[0]
    )
    counter, ring, donated = re.findall(r"```python\n(.*?)```", section, re.S)
    given: dict[str, Any] = {"sg": sg, "np": np}

    def run(code: str, **more: Any) -> Any:
        given.update(more)
        exec(re.sub(r"(sg\.Model\.of\((?!.*device).*)\)\n", r'\1, device="numpy")\n', code), given)
        return given["model"]

    model = run(counter)
    assert [model(np.ones(2, np.float32)).tolist() for _ in range(2)] == [[1, 1], [2, 2]]

    session, rows = run(ring).session(), np.random.default_rng(0).standard_normal((130, 64)).astype(np.float32)
    for row in rows:
        found = session(row)
    cache = np.concatenate([rows[128:], rows[2:128]])
    np.testing.assert_array_equal(session.read("cache"), cache)
    weights = np.exp(cache @ rows[-1] - (cache @ rows[-1]).max())
    np.testing.assert_allclose(found, weights @ cache / weights.sum(), rtol=1e-4, atol=1e-5)
    assert session.read("at") == 2

    mean = np.ones(64, np.float32)
    run(re.sub(r"^mean, x = .*\n", "", donated, flags=re.M), mean=mean, x=np.zeros(64, np.float32))
    assert given["mean"] is mean
    np.testing.assert_allclose(mean, 0.9)


def test_what_does_not_fit_a_state_is_refused() -> None:
    model = COUNTER.model("numpy")
    session = model.session()
    with pytest.raises(sg.InputError, match=r"no state 'counts'; the states are count: int32\(2,\)"):
        session.read("counts")
    with pytest.raises(sg.ShapeError, match=r"state 'count': got shape \(3,\), expected \(2,\)"):
        session.write("count", [1, 2, 3])
    with pytest.raises(sg.InputError, match="state 'count': got float32, expected int32"):
        session.write("count", np.zeros(2, np.float32))
    with pytest.raises(sg.InputError, match="state 'count': 1099511627776 does not fit int32"):
        session.write("count", [0, 2**40])
    with pytest.raises(sg.InputError, match="has no states"):
        sg.Model.of(lambda x: x + 1, {"x": (2,)}, "numpy").session()


def test_a_function_that_returns_other_states_is_refused() -> None:
    faults: list[tuple[Any, type[Exception], str]] = [
        (lambda x, *, count: x, sg.InputError, "expected a tuple of its outputs and a dict"),
        (lambda x, *, count: (x, {}), sg.InputError, "returned no states; expected a dict with: count"),
        (
            lambda x, *, count: (x, {"count": count, "more": x}),
            sg.InputError,
            "the states count, more; expected a dict with: count",
        ),
        (lambda x, *, counter: (x, {"count": x}), sg.InputError, "missing a required argument: 'counter'"),
        (lambda x, *, count: (x, {"count": 3}), sg.InputError, "becomes an int, expected"),
        (lambda x, *, count: (x, {"count": x[:1]}), sg.ShapeError, r"has the shape \(2,\) and becomes \(1,\)"),
        (lambda x, *, count: (x, {"count": x > 0}), sg.DTypeError, "is float32 and becomes bool"),
    ]
    for function, kind, message in faults:
        with pytest.raises(kind, match=message):
            sg.Model.of(function, {"x": (2,)}, "numpy", states={"count": ((2,), "float32")})
    for given in ((2, 3), (), ((2, 3),), (2, "float32")):
        with pytest.raises(sg.InputError, match=r"state 'c': got .*, expected an array, or a shape and a dtype"):
            sg.Model.of(lambda x, *, c: (x, {"c": c}), {"x": (2,)}, "numpy", states={"c": given})
    with pytest.raises(sg.InputError, match="expected a dict of initial values by name"):
        sg.Model.of(lambda x, *, c: (x, {"c": c}), {"x": (2,)}, "numpy", states=["c"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(sg.ShapeError, match="a state keeps its shape"):
        sg.Model.of(lambda x, *, c: (x, {"c": c}), {"x": (2,)}, "numpy", states={"c": (("N", 2), "float32")})


@RUNNERS
def test_states_of_a_compiled_function(device_name: str, tmp_path: Any) -> None:
    """They are saved with the Program; a state may stay unchanged, and sessions can continue at other batch sizes."""

    def step(x: sg.Tensor, *, scale: sg.Tensor, most: sg.Tensor) -> Any:
        return x * scale, {"scale": scale, "most": most.maximum(x.max())}

    x = np.array([1.0, 7.0, 3.0], np.float32)
    states = {"scale": np.float32(3), "most": ((), "float32")}
    program = sg.compile(step, x, device=device_name, states=states)
    program.save(tmp_path / "step.singe")
    for each in (program, sg.Program.load(tmp_path / "step.singe", device_name)):
        session = each.session()
        np.testing.assert_array_equal(session(x), 3 * x)
        session(x - 5)
        assert (session.read("most"), session.read("scale")) == (7, 3)
        each(x - 5)
        assert each.data.copied({}) == 0


@RUNNERS
def test_one_session_serves_all_sizes(device_name: str) -> None:
    def step(x: sg.Tensor, *, total: sg.Tensor) -> Any:
        total = total + x.sum(0)
        return total * 1, {"total": total}

    model = sg.Model.of(step, {"x": ("N", 2)}, device_name, states={"total": ((2,), "float32")})
    session = model.session()
    for n in (1, 4, 2):
        session(np.ones((n, 2), np.float32))
    np.testing.assert_array_equal(session.read("total"), [7, 7])


# --- states of files ---------------------------------------------------------------------------------------------------


def recurrent(path: Path, *, grows: bool = False) -> Path:
    """h' = tanh(x · w + h), y = 2 h': `h` is an input, `h2` an output. grows: instead, a row is appended to h."""
    value, kind = helper.make_tensor_value_info, TensorProto.FLOAT
    last = helper.make_node("Concat", ["h", "xw"], ["h2"], axis=0) if grows else helper.make_node("Tanh", ["s"], ["h2"])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Add", ["xw", "h"], ["s"]), last,
        helper.make_node("Add", ["h2", "h2"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g",
        [value("x", kind, ["N", 2]), value("h", kind, ["N", 3])],
        [value("y", kind, None), value("h2", kind, None)],
        [helper.make_tensor("w", kind, WEIGHT.shape, WEIGHT.ravel())],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path


WEIGHT = np.array([[1, 0, -1], [0, 2, 0]], np.float32)
SHAPES = {"x": (1, 2), "h": (1, 3)}


@RUNNERS
def test_an_output_of_a_file_becomes_the_next_input(device_name: str, tmp_path: Path) -> None:
    model = sg.load(recurrent(tmp_path / "r.onnx"), device_name, SHAPES, states={"h": "h2"})
    assert [p.name for p in model.inputs] == ["x"]
    assert [p.name for p in model.outputs] == ["y"]
    assert model.program().data.copied({}) == 0
    session, h = model.session(), np.zeros((1, 3), np.float32)
    for k in range(4):
        x = np.array([[k, 1 - k]], np.float32)
        h = np.tanh(x @ WEIGHT + h)
        np.testing.assert_allclose(session(x), 2 * h, atol=1e-5)
        np.testing.assert_allclose(session.read("h"), h, atol=1e-5)


def test_pairs_that_are_no_states_are_refused(tmp_path: Path) -> None:
    path, grows = recurrent(tmp_path / "r.onnx"), recurrent(tmp_path / "g.onnx", grows=True)
    faults: list[tuple[Path, Any, Any, type[Exception], str]] = [
        (
            path,
            SHAPES,
            {"g": "h2"},
            sg.InputError,
            r"no 'g'; expected pairs of an input \(x, h\) and an output \(y, h2\)",
        ),
        (path, SHAPES, {"h": "h3"}, sg.InputError, "no 'h3'"),
        (path, SHAPES, {"h": "h2", "x": "h2"}, sg.InputError, "names an output twice"),
        (path, None, {"h": "h2"}, sg.ShapeError, r'input_shapes=\{"h": \(…\)\}'),
        (path, {"h": (1, 3), "x": ("M", 2)}, {"h": "h2"}, sg.ShapeError, "a state keeps its shape"),
        (grows, SHAPES, {"h": "h2"}, sg.ShapeError, r"has the shape \(2, 3\); a state keeps its shape"),
    ]
    for file, shapes, states, kind, message in faults:
        with pytest.raises(kind, match=message):
            sg.load(file, "numpy", shapes, states=states).program()


@pytest.mark.slow
def test_the_command_line_makes_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(recurrent(tmp_path / "r.onnx")), "--state", "h=h2", "--input-shape", "x=1x2", "--input-shape", "h=1x3"]
    assert cli.main(["inspect", *given, "--device", "wasm"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"states +12 B a session, 0 B copied in a run", told)
    assert re.search(r"h +float32 +\(1, 3\) +zeros +12 B", told)
    assert cli.main(["bench", *given, "--device", "numpy", "--repeat", "2", "--profile"]) == 0
    assert re.search(r"states +0 B copied in a run", capsys.readouterr().out)
    assert cli.main(["export", *given, "-o", str(tmp_path / "out")]) == 0
    manifest = json.loads((tmp_path / "out" / "model.json").read_text())
    assert [x["name"] for x in manifest["inputs"]] == ["x"]
    for target in manifest["targets"].values():
        assert [s["name"] for s in target["program"]["states"]] == ["h"]
