"""static/README.md is enough to write a runner: the one in tests/support/plain_runner.py, which knows nothing of Singe, runs
branches, loops, sizes found in mid-run, states, particular sizes, bounds and whole models."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import plain_runner
import pytest
from networks.steps import Assembler
from plain_runner import Runner

import singe as sg
from singe.dtypes import bool_, int32
from singe.program.format import to_bytes
from singe.program.program import ProgramData
from singe.shapes import size

MOST_LINES = 200
MODELS = Path(__file__).parents[4] / "shared" / "models"


def runner(program: ProgramData, folder: Path) -> Runner:
    path = folder / "a.singe"
    path.write_bytes(to_bytes(program))
    return Runner(path)


def test_it_is_short_and_knows_nothing_of_the_package() -> None:
    text = Path(plain_runner.__file__).read_text()
    assert len(text.splitlines()) <= MOST_LINES
    imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]
    names = {a.name for n in imports if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module) for n in imports if isinstance(n, ast.ImportFrom)}
    assert names == {"hashlib", "json", "pathlib", "numpy", "wasmtime"}


def test_loops_in_loops_and_branches(tmp_path: Path) -> None:
    """y counts the inner turns: `limit` of them, at most 4, for each of 3 outer turns, if `yes`; otherwise y is −x."""
    p = Assembler("wasm")
    limit, yes = p.input("limit", (1,)), p.input("yes", (1,), bool_)
    y, inner, going, spare = p.output("y", (1,)), p.slot((1,)), p.slot((1,), bool_), p.slot((1,))
    zero, turn = p.const(np.zeros(1, np.float32)), p.const(np.ones(1, np.float32))
    p.copy(zero, y)
    with p.when(yes), p.loop(count=3):
        p.copy(zero, inner)
        p.op("less", [inner, limit], going)
        with p.loop(count=4, condition=going):
            p.op("add", [inner, turn], spare)
            p.copy(spare, inner)
            p.op("add", [y, turn], spare)
            p.copy(spare, y)
            p.op("less", [inner, limit], going)
    with p.when(yes):
        pass
    with p.otherwise():
        p.op("neg", [limit], y)
    run = runner(p.program(), tmp_path).run
    for most, turns in ((2, 2), (10, 4), (0, 0)):
        assert run({"limit": np.array([most], np.float32), "yes": np.array([True])})["y"] == [3 * turns]
    assert run({"limit": np.array([7], np.float32), "yes": np.array([False])})["y"] == [-7]


def test_sizes_found_in_mid_run(tmp_path: Path) -> None:
    p = Assembler("wasm")
    count, x = p.input("count", (1,), int32), p.input("x", (1,))
    n = size("found")
    y, half = p.output("y", (n, 2)), p.slot((n, 2))
    p.bind("found", buffer=count)
    p.op("expand", [x], half, shape=(n, 2))
    p.op("add", [half, half], y)
    run = runner(p.program(), tmp_path).run
    for k in (3, 0, 1000, 3):
        found = run({"count": np.array([k], np.int32), "x": np.array([2], np.float32)})["y"]
        np.testing.assert_array_equal(found, np.full((k, 2), 4, np.float32))


def test_a_state_is_kept(tmp_path: Path) -> None:
    def step(x: sg.Tensor, *, count: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return x + count, {"count": count + x}

    model = sg.Model.of(step, {"x": (2,)}, "wasm", states={"count": np.array([5, 6], np.float32)})
    run = runner(model.program().data, tmp_path).run
    for k in range(3):
        (found,) = run({"x": np.ones(2, np.float32)}).values()
        np.testing.assert_array_equal(found, [6 + k, 7 + k])


@pytest.mark.parametrize("particular", [False, True])
def test_particular_sizes_and_bounds(tmp_path: Path, particular: bool) -> None:
    model = sg.Model.of(lambda x: (x @ x.T).softmax(-1).sum(0), {"x": ("N" if particular else "N<=16", 8)}, "wasm")
    if particular:
        model.specialise(N=4)
    program = model.program()
    own = runner(program.data, tmp_path)
    assert [bool(own.program[field]) for field in ("specialised", "bounds")] == [particular, not particular]
    for n in (4, 9, 16):
        x = np.random.default_rng(n).random((n, 8), np.float32)
        (found,) = own.run({"x": x}).values()
        np.testing.assert_allclose(found, np.asarray(program(x)), rtol=1e-4, atol=1e-6)
    if not particular:
        with pytest.raises(ValueError, match="at most 16"):
            own.run({"x": np.zeros((17, 8), np.float32)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist_cnn", "ppocr_cls", "basic_pitch"])
def test_whole_models(tmp_path: Path, name: str) -> None:
    if not (MODELS / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is absent: it belongs in {MODELS}")
    model = sg.load(MODELS / f"{name}.onnx", device="wasm")
    expected = np.load(MODELS / f"{name}.npz")
    run = runner(model.program().data, tmp_path).run
    found = run({i.name: expected[f"in:{i.name}"] for i in model.inputs})
    assert len(found) == len(model.outputs)
    for out, array in found.items():
        np.testing.assert_allclose(array, expected[f"out:{out}"], rtol=1e-3, atol=5e-4)
