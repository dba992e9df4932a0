"""The command `singe bench`, and the scripts of tests/bench: what they print, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from traces import check_trace

import singe
from singe.errors import DeviceError
from singe.runtime.devices import device as open_device
from singe.tools import cli
from singe.tools.measuring import bench


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    try:
        code = cli.main(["bench", *map(str, args)])
    except SystemExit as e:
        code = int(e.code or 0)
    return code, *capsys.readouterr()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure peaks with small problems, to be quick."""
    monkeypatch.setattr(bench, "GEMMS", (128, 128))
    monkeypatch.setattr(bench, "COPIES", (1 << 20, 1 << 20))
    monkeypatch.setattr(bench, "SAMPLE", 0.001)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = x · w, where x is (N, H, 4)."""
    value = helper.make_tensor_value_info
    weight = helper.make_tensor("w", TensorProto.FLOAT, (4, 3), np.arange(12, dtype=np.float32))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [value("x", TensorProto.FLOAT, ["N", "H", 4])], [value("y", TensorProto.FLOAT, ["N", "H", 3])], [weight],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path


def test_bench_prints_times_profile_and_trace(
    capsys: pytest.CaptureFixture[str], small: None, model: Path, tmp_path: Path
) -> None:
    shape = ["--input-shape", "x=Nx5x4", "--batch", 2]
    trace = tmp_path / "t.json"
    code, out, err = run(
        capsys, model, *shape, "--device", "numpy", "--repeat", 3, "--profile", "--most", 1, "--trace", trace
    )
    assert (code, err) == (0, "")
    assert "x float32(2, 5, 4)" in out
    assert "median of 3; least" in out
    assert "items/s (batch 2)" in out
    assert "together" in out
    rows = [line for line in out.splitlines() if line]
    assert len(rows) == len({*rows})
    assert check_trace(trace.read_text())


def test_bench_prints_json(capsys: pytest.CaptureFixture[str], small: None, model: Path) -> None:
    shape = ["--input-shape", "x=2x5x4"]
    code, out, err = run(capsys, model, *shape, "--device", "numpy", "--repeat", 3, "--profile", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert len(data["runs"]) == 3
    assert data["machine"]["numpy"] == np.__version__
    assert data["inputs"][0]["shape"] == [2, 5, 4]
    kernels = data["profile"]["kernels"]
    assert sum(k["seconds"] for k in kernels) + sum(data["profile"]["rest"].values()) == pytest.approx(
        data["profile"]["seconds"]
    )
    assert data["peaks"]["flops"] > 0


def test_bench_shows_the_memory_of_the_device(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    given = [model, "--input-shape", "x=Nx5x4", "--repeat", 1, "--memory"]
    code, out, err = run(capsys, *given, "--device", "wasm")
    assert (code, err) == (0, "")
    assert {"weights", "states", "scratch", "tensors"} <= {line.split()[0] for line in out.splitlines() if line}
    code, out, _ = run(capsys, *given, "--device", "wasm", "--json")
    held = json.loads(out)["device_memory"]
    assert held["by_kind"]["weights"]["in_use"] >= 48
    assert held["in_use"] <= held["peak"]
    code, out, _ = run(capsys, *given, "--device", "numpy")
    assert (code, "unknown" in out) == (0, True)
    assert run(capsys, "--memory")[0] == 2


def test_bench_of_a_program(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    made = tmp_path / "m.singe"
    assert cli.main(["compile", str(model), "--input-shape", "x=Nx5x4", "--device", "numpy", "-o", str(made)]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, made, "--batch", 3, "--repeat", 2)
    assert code == 0
    assert "x float32(3, 5, 4)" in out
    code, _, err = run(capsys, made, "--input-shape", "x=1x5x4")
    assert code == 2
    assert "a program has its shapes already" in err


def test_bench_refuses_in_one_line(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    for args, message in (
        ([model, "--device", "numpy"], "give its open dimensions with --input-shape x="),
        (
            [model, "--device", "numpy", "--input-shape", "x=1x5x4", "--batch", 2],
            "no input has an open first dimension",
        ),
        (["--profile"], "--profile needs a MODEL"),
        (["--input-shape", "x=1"], "--input-shape needs a MODEL"),
        ([model, "--repeat", 0], "expected a number above 0"),
    ):
        code, out, err = run(capsys, *args)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert message in err


@pytest.mark.slow
def test_bench_without_a_model_shows_every_device(capsys: pytest.CaptureFixture[str], small: None) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()]
    assert {*names} >= {"device", "numpy", "wasm", "webgpu"}
    assert len(names) == len({*names})  # a device has one row, whatever other names it has
    code, out, _ = run(capsys, "--device", "numpy", "--json")
    data = json.loads(out)
    assert (code, list(data["devices"])) == (0, ["numpy"])
    assert data["devices"]["numpy"]["flops"] > 0


def test_a_trace_alone_seeks_no_peaks(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("singe.tools.commands.peaks", None)
    trace = tmp_path / "t.json"
    code, out, _ = run(capsys, model, "--device", "numpy", "--input-shape", "x=1x5x4", "--repeat", 2, "--trace", trace)
    assert code == 0
    assert "together" not in out
    assert check_trace(trace.read_text())


# --- the scripts of tests/bench ---------------------------------------------------------------------------------------

SCRIPTS = Path(__file__).parents[2] / "bench"


def script(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_races_of_a_gpu_run_wherever_webgpu_does(model: Path, tmp_path: Path) -> None:
    try:
        open_device("webgpu")
    except DeviceError as e:
        pytest.skip(f"no webgpu here: {e}")
    x = np.random.default_rng(0).random((2, 5, 4), np.float32)
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.savez(tmp_path / "m.npz", **{"in:x": x, "out:y": x @ weight})
    out = tmp_path / "figures.json"
    done = script(SCRIPTS / "gpu.py", "run", "--quick", "--profile", "--models", tmp_path, "--out", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert {(f["what"], f["steps"]) for f in found["chains"] if "PyTorch" not in f["what"]} == {
        ("buffer copy", 1),
        ("elementwise copy (−x)", 1),
        ("GELU", 1),
    }
    assert {f["dtype"] for f in found["products"]} == {"float32", "float16"}
    (figures,) = found["models"]
    assert figures["difference"] < 1e-5
    assert figures["profile"]["kernels"]
    assert "| m | 2 |" in done.stdout or "| m | 1 |" in done.stdout


@pytest.mark.slow
def test_a_race_that_cannot_run_is_told_and_fails(tmp_path: Path) -> None:
    out = tmp_path / "results.md"
    done = script(SCRIPTS / "suite.py", "--quick", "--only", "profile-numpy", "--models", tmp_path, "--out", out)
    assert done.returncode == 1
    text = out.read_text()
    assert "Not run to its end: singe bench:" in text
    assert f"Singe {singe.__version__}" in text
    done = script(SCRIPTS / "suite.py", "--only", "nothing")
    assert done.returncode == 2
    assert "no race nothing" in done.stderr
