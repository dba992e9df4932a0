"""Models with states: made of functions, run in sessions that share the weights, updated in place on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from remembering import COUNTED, COUNTER, DESCENT, REMEMBERING

import singe as sg

RUNNERS = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)


def outputs_of(model: sg.Model, found: Any) -> dict[str, np.ndarray]:
    names = [p.name for p in model.outputs]
    return found if len(names) > 1 else {names[0]: found}


@RUNNERS
@pytest.mark.parametrize("name", REMEMBERING)
def test_a_thousand_runs_agree_with_numpy_and_copy_no_state(name: str, device_name: str) -> None:
    """Memory does not grow, no state is copied, and another session and the model itself keep states of their own."""
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


def test_what_does_not_fit_a_state_is_refused() -> None:
    model = COUNTER.model("numpy")
    session = model.session()
    with pytest.raises(sg.InputError, match=r"no state 'counts'; the states are count: int32\(2,\)"):
        session.read("counts")
    with pytest.raises(sg.ShapeError, match=r"state 'count': got shape \(3,\), expected \(2,\)"):
        session.write("count", [1, 2, 3])
    with pytest.raises(sg.InputError, match="state 'count': got float32, expected int32"):
        session.write("count", np.zeros(2, np.float32))
    with pytest.raises(sg.InputError, match="has no states"):
        sg.Model.of(lambda x: x + 1, {"x": (2,)}, "numpy").session()


def test_a_function_that_returns_other_states_is_refused() -> None:
    faults: list[tuple[Any, type[Exception], str]] = [
        (lambda x, *, count: x, sg.InputError, "expected a tuple of its outputs and a dict"),
        (lambda x, *, count: (x, {}), sg.InputError, "returned the states none, expected count"),
        (lambda x, *, count: (x, {"count": count, "more": x}), sg.InputError, "count, more, expected count"),
        (lambda x, *, count: (x, {"count": 3}), sg.InputError, "becomes a int"),
        (lambda x, *, count: (x, {"count": x[:1]}), sg.ShapeError, r"has the shape \(2,\) and becomes \(1,\)"),
        (lambda x, *, count: (x, {"count": x > 0}), sg.DTypeError, "is float32 and becomes bool"),
    ]
    for function, kind, message in faults:
        with pytest.raises(kind, match=message):
            sg.Model.of(function, {"x": (2,)}, "numpy", states={"count": ((2,), "float32")})
    with pytest.raises(sg.ShapeError, match="a state keeps its shape"):
        sg.Model.of(lambda x, *, c: (x, {"c": c}), {"x": (2,)}, "numpy", states={"c": (("N", 2), "float32")})


@RUNNERS
def test_states_of_a_compiled_function(device_name: str, tmp_path: Any) -> None:
    """They are saved with the Program; a state may stay as it is, and several sessions go on at other batch sizes."""

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
