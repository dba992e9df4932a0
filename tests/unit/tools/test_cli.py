"""The command line: exit codes, messages, and that its outputs are those of a Model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from onnx import TensorProto, helper

import singe as sg
from singe.program.program import ProgramData
from singe.report import LEFT, RIGHT, clean, quantity, seconds, table
from singe.shapes import Size
from singe.tools import cli
from singe.tools.opening import compiled

WEIGHT = np.array([[1, 0, -1], [0, 2, 0]], np.float32)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do not say what they wait for, however busy this machine is."""
    monkeypatch.setattr("singe.tools.progress.PATIENCE", 600.0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """scores = x · w, the classes of a batch of rows; and `twice`,
    from a second input whose name has special characters."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]), helper.make_node("Add", ["b=2", "b=2"], ["twice"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g",
        [value("x", TensorProto.FLOAT, ["N", 2]), value("b=2", TensorProto.INT64, [])],
        [value("scores", TensorProto.FLOAT, ["N", 3]), value("twice", TensorProto.INT64, [])],
        [helper.make_tensor("w", TensorProto.FLOAT, WEIGHT.shape, WEIGHT.ravel())],
    )  # fmt: skip
    return written(tmp_path / "m.onnx", graph)


def written(path: Path, graph: object) -> Path:
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    )  # pyright: ignore[reportArgumentType]
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> list[object]:
    np.save(tmp_path / "x.npy", np.array([[1, 2]], np.float32))
    np.save(tmp_path / "b.npy", np.int64(21))
    return ["--device", "numpy", "--input", f"x={tmp_path}/x.npy", "--input", f"b=2={tmp_path}/b.npy"]


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_reports_and_writes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, inputs: list[object]
) -> None:
    code, out, err = run(
        capsys,
        "run",
        model,
        *inputs,
        "--output",
        f"scores={tmp_path}/s.npy",
        "--output",
        f"twice={tmp_path}/t",
        "--repeat",
        3,
    )
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), [[1, 4, -1]])
    assert np.load(tmp_path / "t") == 42
    assert re.search(r"^device +numpy \(numpy ", out, re.M)
    assert re.search(r"^run +[\d.]+ ms \(median of 3; least ", out, re.M)
    assert re.search(r"^scores +float32 +\(1, 3\) +-1 +1.3333 +4$", out, re.M)
    assert re.search(r"^twice +int64 +\(\) +42 +42 +42$", out, re.M)
    assert "rank" not in out  # two outputs, and nobody asked


@pytest.mark.parametrize(
    "labels", ["zero\none\ntwo\n", '["zero", "one", "two"]', '{"1": "one", "0": "zero", "2": "two"}']
)
def test_run_ranks_classes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, inputs: list[object], labels: str
) -> None:
    (tmp_path / "labels").write_text(labels)
    code, out, _ = run(capsys, "run", model, *inputs, "--top", 2, "--labels", tmp_path / "labels")
    e = np.exp([1, 4, -1])
    assert code == 0
    assert out.split("\n\n")[-1].splitlines()[1:] == [
        f"   1        {e[1] / e.sum():.1%}      1  one",
        f"   2         {e[0] / e.sum():.1%}      0  zero",
    ]


def test_one_output_of_classes_is_ranked_unasked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Probabilities are shown unchanged, without another softmax. A single input needs no name."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["p"])], "g", [value("x", 1, ["N", 2])], [value("p", 1, ["N", 2])]
    )
    np.save(tmp_path / "x.npy", np.log(np.array([[0.25, 0.75]], np.float32)))
    code, out, _ = run(
        capsys, "run", written(tmp_path / "p.onnx", graph), "--input", f"={tmp_path}/x.npy", "--device", "numpy"
    )
    assert code == 0
    assert [line.split() for line in out.splitlines()[-2:]] == [["1", "75.0%", "1"], ["2", "25.0%", "0"]]


def test_a_compiled_program_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, inputs: list[object]
) -> None:
    code, out, _ = run(capsys, "compile", model, "-o", tmp_path / "m.singe", "--device", "numpy")
    assert code == 0
    assert re.search(r"^target +host$", out, re.M)
    code, out, _ = run(capsys, "run", tmp_path / "m.singe", *inputs, "--top", 1)
    assert code == 0
    assert re.search(r"^ +1 +9\d\.\d% +1$", out, re.M)


# --- inspect, devices -------------------------------------------------------------------------------------------------


def test_inspect(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    code, out, err = run(capsys, "inspect", model, "--kernels")
    assert (code, err) == (0, "")
    for line in (
        r"x +float32 +\(N, 2\)", r"b=2 +int64 +\(\)", r"scores +float32 +\(N, 3\)", r"matmul +1", r"float32 +1 +24 B",
        r"numpy +program for host, compiled in .*", r"wasm +program for wasm, compiled in .*", r"webgpu +program for wgsl, compiled in .*",
        r"ops +all by NumPy, one by one", r"ops +all on the device, fused into 2 dispatches", r"memory +\d+ slots, .* at N=1; in bytes .*",
    ):  # fmt: skip
        assert re.search(f"^{line}$", out, re.M), line


def test_inspect_describes_each_target_of_this_machine_and_of_pages_once(
    capsys: pytest.CaptureFixture[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is not here is compiled for if it is named, and those of pages also otherwise."""

    def none_but_numpy(name: str) -> sg.Device:
        if name != "numpy":
            raise sg.DeviceError("not here")
        return sg.device(name)

    monkeypatch.setattr("singe.tools.commands.open_device", none_but_numpy)
    _, out, _ = run(capsys, "inspect", model)
    assert re.findall(r"^(\w+) +program for (\w+)", out, re.M) == [
        ("numpy", "host"), ("wasm", "wasm"), ("webgpu", "wgsl")
    ]  # fmt: skip
    _, out, _ = run(capsys, "inspect", model, "--device", "cuda")
    assert re.findall(r"^(\w+) +program for (\w+)", out, re.M) == [("cuda", "cuda")]
    _, out, _ = run(capsys, "inspect", model, "--device", "jax")
    assert re.search("^ops +all by jax, one by one$", out, re.M)

    def none_for_wasm(model: sg.Model, name: str, **changes: Any) -> ProgramData:
        if name == "wasm":
            raise sg.CompileError("too large")
        return compiled(model, name, **changes)

    monkeypatch.setattr("singe.tools.commands.compiled", none_for_wasm)
    code, out, _ = run(capsys, "inspect", model)
    assert code == 0
    assert re.search("^wasm: cannot be compiled: too large\n\nwebgpu +program for wgsl", out, re.M)
    assert run(capsys, "inspect", model, "--device", "wasm")[0] == 2


@pytest.mark.slow
def test_inspect_shows_memory_whose_formula_is_too_long(
    capsys: pytest.CaptureFixture[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slots of a network with many open sizes add up to an expression of more parts than one may have."""
    monkeypatch.setattr("singe.tools.inspection._largest", lambda _: Size({(f"N{k}",): 1 for k in range(5000)}))
    code, out, _ = run(capsys, "inspect", model, "--device", "wasm")
    assert code == 0
    assert "for other sizes, give --input-shape" in out


def test_inspect_one_device_with_numbers_for_shapes(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    code, out, _ = run(
        capsys, "inspect", model, "--device", "wasm", "--input-shape", "x=5x2", "--input-shape", "b=2=scalar"
    )
    assert code == 0
    assert "(5, 3)" in out
    assert "webgpu" not in out
    code, out, _ = run(capsys, "inspect", model, "--device", "wasm", "--input-shape", "x=Batchx2")
    assert "(Batch, 3)" in out


def test_inspect_shows_open_sizes_bounds_and_what_is_specialised(
    capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    code, out, _ = run(
        capsys, "inspect", model, "--device", "wasm", "--input-shape", "x=N<=64x2", "--specialise", "N=8"
    )
    assert code == 0
    assert re.search(r"^N +at most 64$", out, re.M)
    assert re.search(r"^specialised +N=8: 2 steps, .* of weights besides the shared ones$", out, re.M)
    code, out, _ = run(capsys, "inspect", model, "--device", "wasm")
    assert re.search(r"^N +none$", out, re.M)


def test_inspect_says_what_programs_need_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As many axes as a vector is long; and as another one has elements that are not 0."""
    value, (of_size, of_value) = helper.make_tensor_value_info, (
        [helper.make_node("ConstantOfShape", ["n"], ["y"])],
        [
            helper.make_node("NonZero", ["n"], ["places"]),
            helper.make_node("Reshape", ["places", "flat"], ["shape"]),
            helper.make_node("ConstantOfShape", ["shape"], ["y"]),
        ],
    )  # fmt: skip
    flat = helper.make_tensor("flat", TensorProto.INT64, (1,), [-1])
    inputs, outputs = [value("n", TensorProto.INT64, ["K"])], [value("y", TensorProto.FLOAT, None)]
    for nodes, what in ((of_size, "the size K"), (of_value, "the values of the input n")):
        path = written(tmp_path / "m.onnx", helper.make_graph(nodes, "g", inputs, outputs, [flat]))
        code, out, err = run(capsys, "inspect", path)
        assert (code, err) == (0, "")
        assert re.search(rf"^one program for each set of +{what}$", out, re.M)
        assert re.search(r"^because +.*ConstantOfShape.*their number must be known before a run$", out, re.M)
        assert "compiled in" not in out
        code, out, err = run(capsys, "compile", path, "--device", "wasm", "-o", tmp_path / "p")
        assert code == 2
        assert ("--input-shape" in err) == ("K" in what)


@pytest.mark.parametrize("command", ["inspect", "export"])
def test_shapes_that_do_not_fit_come_with_the_option_that_gives_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [value("x", TensorProto.FLOAT, ["N", 3])], [value("y", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor("w", TensorProto.FLOAT, WEIGHT.shape, WEIGHT.ravel())],
    )  # fmt: skip
    out = ["-o", tmp_path / "out"] if command == "export" else []
    code, _, error = run(capsys, command, written(tmp_path / "m.onnx", graph), *out)
    assert code == 2
    assert "--input-shape NAME=" in error


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "devices")
    assert code == 0
    assert re.search(r"^numpy +here$", out, re.M)
    names = {line.split("  ")[0] for line in out.splitlines() if line[0] != " "}
    assert {"numpy", "cuda", "wasm", "webgpu", "auto", "cpu", "no name"} <= names


# --- errors -----------------------------------------------------------------------------------------------------------

REFUSED = {
    "no command": ([], "arguments are required: COMMAND"),
    "no such command": (["fly"], "invalid choice: 'fly'"),
    "a slip in a command": (["exprot"], "); did you mean export? (see singe --help)"),
    "a slip in a kind": (["task", "face", "{}/m.onnx"], "; did you mean faces"),
    "a slip in a device": (["run", "{}/m.onnx", "--device", "wsam"], "); did you mean wasm? (see"),
    "no model": (["run"], "arguments are required: MODEL"),
    "a missing model": (["run", "{}/none.onnx"], "none.onnx"),
    "a missing program": (["run", "{}/none.singe"], "none.singe"),
    "a model that is none": (["inspect", "{}/x.npy"], "x.npy"),
    "a program that is none": (["run", "{}/x.singe"], "not a Singe program"),
    "no inputs": (["run", "{}/m.onnx"], "give --input NAME=FILE for each"),
    "an unknown input": (
        ["run", "{}/m.onnx", "--input", "y={}/x.npy"],
        "y: no such input; the inputs are x: float32(N, 2), b=2: int64()",
    ),
    "an input without a name": (["run", "{}/m.onnx", "--input", "{}/x.npy"], "expected NAME=FILE"),
    "an input given twice": (
        ["run", "{}/m.onnx", "--input", "x={}/x.npy", "--input", "x={}/x.npy"],
        "--input is given twice for 'x'",
    ),
    "an input of no file": (["run", "{}/m.onnx", "--input", "x"], "expected NAME=FILE"),
    "a missing array": (["run", "{}/m.onnx", "--input", "x={}/none.npy"], "none.npy: No such file"),
    "an array that is none": (["run", "{}/m.onnx", "--input", "x={}/bad.npy"], "bad.npy: not an array"),
    "an array that promises too much": (["run", "{}/m.onnx", "--input", "x={}/huge.npy"], "huge.npy: not an array"),
    "an array of objects": (["run", "{}/m.onnx", "--input", "x={}/objects.npy"], "objects.npy: not an array"),
    "a file of an unknown kind": (
        ["run", "{}/m.onnx", "--input", "x={}/m.onnx"],
        "expected an .npy file, an .npz file, a sound or a picture",
    ),
    "a picture for a matrix": (["run", "{}/m.onnx", "--input", "x={}/p.png"], "give it as an .npy file"),
    "a shape that does not fit": (
        ["run", "{}/m.onnx", "--input", "x={}/bad_shape.npy", "--input", "b=2={}/b.npy"],
        "got shape (1, 3), expected (N, 2)",
    ),
    "a dtype that does not fit": (
        ["run", "{}/m.onnx", "--input", "x={}/b.npy", "--input", "b=2={}/b.npy"],
        "input 'x': got int64, expected float32",
    ),
    "an unknown output": (
        ["run", "{}/m.onnx", "{inputs}", "--output", "z={}/z.npy"],
        "z: no such output; the outputs are scores, twice",
    ),
    "an output into no folder": (
        ["run", "{}/m.onnx", "{inputs}", "--output", "scores={}/no/z.npy"],
        "No such file or directory",
    ),
    "missing labels": (["run", "{}/m.onnx", "{inputs}", "--labels", "{}/none.txt"], "none.txt: No such file"),
    "labels that are none": (
        ["run", "{}/m.onnx", "{inputs}", "--labels", "{}/bad.json"],
        "bad.json: expected a JSON list",
    ),
    "PyTorch's device": (["run", "{}/m.onnx", "--device", "mps"], '; in its place: "webgpu"'),
    "no such device": (["run", "{}/m.onnx", "--device", "abacus"], "invalid choice: 'abacus'"),
    "a top of none": (["run", "{}/m.onnx", "--top", "0"], "expected a number above 0, got '0'"),
    "a size that is none": (["run", "{}/m.onnx", "--size", "2x3x4"], "expected 224 or 240x320, got '2x3x4'"),
    "a mean that is none": (
        ["run", "{}/m.onnx", "--mean", "1,b"],
        "expected numbers with commas between them, got '1,b'",
    ),
    "a shape that is none": (["inspect", "{}/m.onnx", "--input-shape", "x=1x-2"], "expected NAME=1x3x224x224"),
    "a bound that is none": (["inspect", "{}/m.onnx", "--input-shape", "x=N<=x2"], "expected NAME=1x3x224x224"),
    "a specialised size beyond its bound": (
        ["inspect", "{}/m.onnx", "--input-shape", "x=N<=64x2", "--specialise", "N=65"],
        "N is 65, and must be at most 64",
    ),
    "a specialised size that is not open": (
        ["compile", "{}/m.onnx", "-o", "p", "--specialise", "K=1"],
        "the open sizes are N",
    ),
    "a specialised size without a number": (
        ["inspect", "{}/m.onnx", "--specialise", "N"],
        "expected sizes such as N=1,L=128",
    ),
    "an option that there is not": (
        ["inspect", "{}/m.onnx", "--nope"],
        "unrecognized arguments: --nope (see singe inspect --help)",
    ),
    "a state of nothing": (["inspect", "{}/m.onnx", "--state", "x"], "expected PAST=PRESENT, an input and the output"),
    "a state of an open size": (["inspect", "{}/m.onnx", "--state", "x=scores"], "or --input-shape x=…"),
    "a picture as a model": (["inspect", "{}/real.png"], "real.png: a picture; expected a model or its weights"),
    "a picture as a model, and what takes it": (["inspect", "{}/real.png"], "or singe task KIND FILE"),
    "a program as a model": (
        ["inspect", "{}/m.wasm.singe"],
        "m.wasm is compiled: it runs, and has no Graph",
    ),
    "more than the memory": (["bench", "{}/m.onnx", "--batch", "1000000000000"], "Unable to allocate"),
    "a module without its option": (
        ["export", "{}/m.onnx", "-o", "{}/m.wasm"],
        "m.wasm: expected a folder; one WebAssembly module",
    ),
    "a program into no folder": (["compile", "{}/m.onnx", "-o", "{}/no/p.singe"], "no/p.singe: No such file"),
    "a program in place of its model": (
        ["compile", "{}/m.onnx", "-o", "{}/../{name}/m.onnx"],
        "this is the model itself",
    ),
    "labels of no result": (["diff", "{}/m.onnx", "--labels", "{}/none.txt"], "unrecognized arguments: --labels"),
    "a shape of no input": (["inspect", "{}/m.onnx", "--input-shape", "y=1x2"], "y"),
    "a shape against the model": (["inspect", "{}/m.onnx", "--input-shape", "x=1x5"], "5"),
}


@pytest.mark.parametrize("command", ["export", "compile", "inspect"])
def test_a_program_cannot_be_compiled_again(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path
) -> None:
    program = tmp_path / "p.singe"
    assert run(capsys, "compile", str(model), "-o", str(program), "--device", "wasm")[0] == 0
    code, _, err = run(capsys, command, str(program), *(["-o", str(tmp_path / "out")] if command != "inspect" else []))
    assert code == 2
    assert "p is compiled: it runs, and has no Graph" in err


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_code_2_and_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, inputs: list[object], name: str
) -> None:
    given, message = REFUSED[name]
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    (tmp_path / "huge.npy").write_bytes(data.replace(b"(1, 2), }" + b" " * 10, b"(1000000000, 2), }" + b" "))
    (tmp_path / "x.singe").write_bytes(data)
    (tmp_path / "p.png").write_bytes(b"")
    (tmp_path / "real.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    sg.compile(lambda x: x + 1, np.zeros(2, np.float32), device="numpy").save(tmp_path / "m.wasm.singe")
    (tmp_path / "bad.json").write_text('{"a": 1}')
    np.save(tmp_path / "bad_shape.npy", np.zeros((1, 3), np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    args = [
        a
        for g in given
        for a in (inputs if g == "{inputs}" else [g.replace("{}", str(tmp_path)).replace("{name}", tmp_path.name)])
    ]
    code, _, err = run(capsys, *args)
    assert code == 2
    assert message in err
    assert err.startswith("singe")
    assert err.count("\n") == 1


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"singe {sg.__version__}\n"


def test_verbose_shows_the_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "inspect", "--verbose", tmp_path / "none.onnx")
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("singe inspect: ")


def test_unsupported_ops_are_listed_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Lacking", ["x"], ["y"], domain="no"),
        helper.make_node("Missing", ["y"], ["z"], domain="no"),
    ]
    code, _, err = run(
        capsys,
        "inspect",
        written(tmp_path / "u.onnx", helper.make_graph(nodes, "g", [value("x", 1, [1])], [value("z", 1, [1])])),
    )
    assert code == 2
    assert "no.Lacking" in err
    assert "no.Missing" in err


# --- as a program -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "singe", "run", "none.onnx"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("singe run: none.onnx")  # a slow machine says before that it loads
    done = subprocess.run([sys.executable, "-m", "singe", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in ("run", "inspect", "compile", "devices"))


# --- reports ----------------------------------------------------------------------------------------------------------


def test_tables_are_aligned_and_clean() -> None:
    assert table([("a", LEFT), ("n", RIGHT), ("z", LEFT)], [("x\x1b[31m", 10, ""), ("long\nname", 2, "b")]) == (
        "a           n  z\nx\\x1b[31m  10\nlong name   2  b"
    )
    assert clean("a\tb\x00") == "a b\\x00"


def test_numbers_have_units() -> None:
    assert [seconds(s) for s in (0.00021, 0.0381, 1.239)] == ["0.21 ms", "38.1 ms", "1.24 s"]
    assert [quantity(n, "FLOP") for n in (0, 999, 385_900_000, 2e13)] == [
        "0 FLOP",
        "999 FLOP",
        "385.9 MFLOP",
        "20.0 TFLOP",
    ]


def test_labels_need_not_be_ascii(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, inputs: list[object]
) -> None:
    (tmp_path / "labels").write_text(json.dumps(["ä", "猫", "c"]), "utf-8")
    assert "猫" in run(capsys, "run", model, *inputs, "--labels", tmp_path / "labels")[1]
