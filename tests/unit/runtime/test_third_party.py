"""A backend and a target of another package work like ours, and errors say what is wrong with faulty ones."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from third_party import install

import singe as sg
from singe import plugins
from singe.compiler.target import find_target
from singe.onnx import backend as onnx_backend
from singe.runtime import devices
from singe.tools.cli import main
from singe.tools.export.bundle import draft

A = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installs the package for the test; devices that are opened are dropped after it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(install(folder))
    monkeypatch.setattr(devices, "_devices", dict(devices._devices))
    plugins.plugins.cache_clear()
    yield
    plugins.plugins.cache_clear()
    sys.modules.pop("acme", None)


def net() -> sg.Model:
    rng = np.random.default_rng(0)
    layers = sg.nn.Sequential(
        sg.nn.Conv2d(1, 4, 3, padding=1, rng=rng), sg.nn.ReLU(), sg.nn.Flatten(), sg.nn.Linear(4 * 36, 5, rng=rng)
    )
    return sg.Model.of(layers, {"x": ("N", 1, 6, 6)}, "acme")


def saved(folder: Path) -> str:
    path = folder / "net.singe"
    sg.save(net(), path)
    return str(path)


def test_models_programs_and_tensors_run_on_it(tmp_path: Path) -> None:
    model = net()
    for count in (1, 3):
        x = np.random.default_rng(count).normal(size=(count, 1, 6, 6)).astype(np.float32)
        np.testing.assert_allclose(model(x), sg.Model(model.graph(), "numpy")(x), rtol=1e-4, atol=1e-5)
    program = sg.compile(lambda x: (x @ x.T).softmax(-1), A, device="acme")
    assert program.data.target == "acme-code"
    program.save(tmp_path / "p.singe")
    again = sg.Program.load(tmp_path / "p.singe")
    assert again.device is sg.device("acme")
    np.testing.assert_array_equal(again(A), program(A))
    for device in (sg.device("acme"), sg.Fusion(sg.device("acme"))):
        x = sg.tensor(A, device=device)
        np.testing.assert_allclose((x.exp() + 1).sum(1).numpy(), (np.exp(A) + 1).sum(1), rtol=1e-5)


def test_onnx_takes_it_by_its_name() -> None:
    assert onnx_backend.supports_device("ACME")
    assert onnx_backend.supports_device("ACME:0")
    assert not onnx_backend.supports_device("ACME-BROKEN")


def test_its_target_is_a_target() -> None:
    assert find_target("acme-code").name == "acme-code"
    with pytest.raises(
        sg.DeviceError,
        match=r"the target 'acme-rust' of the package acme-devices cannot be loaded from acme:NoSuchTarget: Attr",
    ):
        find_target("acme-rust")
    with pytest.raises(
        sg.DeviceError,
        match=r"the target 'acme-half' of the package acme-devices is a HalfTarget without dtypes, element",
    ):
        find_target("acme-half")
    with pytest.raises(
        sg.DeviceError,
        match=r"no target 'acme-future'; there are acme-code, acme-half, acme-rust, cuda, hip, wasm, wgsl",
    ):
        find_target("acme-future")


FAULTS = {
    "acme-absent": r"the backend 'acme-absent' needs a package that is not here: No module named 'acme_engine'; pip install 'acme-devices\[acme-absent\]'",
    "acme-broken": r"the backend 'acme-broken' of the package acme-devices cannot open a device: RuntimeError: the coil is cold",
    "acme-nothing": r"the backend 'acme-nothing' of the package acme-devices cannot be loaded from acme:NoSuchName: AttributeError",
    "acme-silent": r"the backend 'acme-silent' of the package acme-devices is <function .*, expected a class or a BackendFactory whose attribute target_name",
    "acme-mistaken": r"the backend 'acme-mistaken' of the package acme-devices runs programs for 'acme-code', and its factory says 'wasm'",
    "acme-half": r"the backend 'acme-half' of the package acme-devices is a HalfBackend without prepare, describe; a Backend has them",
    "acme-untyped": r"the target of the backend 'acme-untyped' of the package acme-devices is a HalfTarget without dtypes, element_size, ",
    "acme": None,
}


@pytest.mark.parametrize("name", [k for k, fault in FAULTS.items() if fault])
def test_a_backend_that_cannot_be_had_says_why(name: str) -> None:
    with pytest.raises(sg.DeviceError, match=FAULTS[name]):
        sg.device(name)


def test_faulty_backends_are_in_nobodys_way() -> None:
    """`auto` passes over the one that is preferred to all others and does not open."""
    found = sg.device("auto")
    assert found.name in {"webgpu", "wasm", "numpy"}
    all_of_them = sg.devices()
    assert {"numpy", "wasm", "webgpu", *FAULTS} < set(all_of_them)
    assert isinstance(all_of_them["acme"], sg.Device)
    for name, fault in FAULTS.items():
        assert fault is None or re.search(fault, str(all_of_them[name]))


def test_a_program_that_no_backend_runs(tmp_path: Path) -> None:
    program = sg.compile(lambda x: x + 1, A, device="acme")
    program.save(tmp_path / "p.singe")
    data = (tmp_path / "p.singe").read_bytes()
    (tmp_path / "q.singe").write_bytes(data.replace(b'"acme-code"', b'"acme-gone"'))
    with pytest.raises(
        sg.DeviceError,
        match=r"no device runs programs for 'acme-gone': the installed backends run those for acme-code, ",
    ):
        sg.Program.load(tmp_path / "q.singe")
    with pytest.raises(
        sg.DeviceError, match=r"compiled for 'acme-code', and <device numpy> runs 'host'; compile it again"
    ):
        sg.Program.load(tmp_path / "p.singe", "numpy")


@pytest.mark.slow
def test_devices_inspect_compile_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path)
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^acme +here\n +made by +Acme$", out, re.M)
    assert re.search(r"^acme-broken +absent: .*the coil is cold$", out, re.M)

    assert main(["inspect", path]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^acme +program for acme-code, compiled in ", out, re.M)
    assert "acme-" not in out.replace("acme-code", "")  # the others of this target, and those that are not here
    assert main(["inspect", path, "--device", "acme-untargeted"]) == 2
    assert "no target 'acme-future'" in capsys.readouterr().err

    assert main(["compile", path, "--device", "acme", "-o", str(tmp_path / "p.singe")]) == 0
    assert re.search(r"^target +acme-code$", capsys.readouterr().out, re.M)
    np.save(tmp_path / "x.npy", np.ones((1, 1, 6, 6), np.float32))
    assert main(["run", str(tmp_path / "p.singe"), "--input", f"x={tmp_path}/x.npy"]) == 0
    assert re.search(r"^device +acme \(made by Acme\)|^device +acme", capsys.readouterr().out, re.M)


def test_export_says_that_a_page_does_not_run_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sg.InputError, match=r"got acme, expected some of wasm, webgpu"):
        draft(net(), ["wasm", "acme"]).alone()
    assert main(["export", saved(tmp_path), "-o", str(tmp_path / "bundle"), "--targets", "acme"]) == 2
    assert "got acme, expected some of wasm, webgpu" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
    assert set(draft(net()).alone().manifest["targets"]) == {"wasm", "webgpu"}


@pytest.mark.slow
def test_python_that_starts_with_the_package_there_finds_it(tmp_path: Path) -> None:
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "singe", "devices"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(r"^acme +here$", done.stdout, re.M)


@pytest.mark.slow
def test_the_core_knows_no_code_generator_by_name() -> None:
    """But for the constructors Wasm and WebGpu, whose names are their backends', and singe.ort, whose names are onnxruntime's."""
    found = [
        (path.name, node.value)
        for path in sorted((ROOT / "core" / "singe").rglob("*.py"))
        if "ort" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in ("wasm", "webgpu", "wgsl")
    ]
    assert found == [("devices.py", "wasm"), ("devices.py", "webgpu")]
