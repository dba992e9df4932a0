"""A device has one object whatever name it is asked by, and every place that takes a device takes all of its names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from third_party import install

import singe as sg
from singe import plugins
from singe.onnx import backend as onnx_backend
from singe.runtime import devices
from singe.runtime.devices import Unopened
from singe.runtime.registry import factories
from singe.tools.cli import main

VARIABLE = "SINGE_DEVICE"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package whose backend `acme-many` has two devices."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(install(folder))
    monkeypatch.setattr(devices, "_devices", dict(devices._devices))
    plugins.plugins.cache_clear()
    yield
    plugins.plugins.cache_clear()
    sys.modules.pop("acme", None)


def test_all_names_of_a_device_open_the_same_one(acme: None) -> None:
    first, second = sg.device("acme-many"), sg.device("acme-many:1")
    assert first is sg.device("acme-many:0") is sg.device("acme-many:first")
    assert second is sg.device("acme-many:1") is not first
    assert (first.name, second.name) == ("acme-many", "acme-many:1")
    x = sg.tensor([1.0], device="acme-many:1")
    assert x.to("acme-many:1") is x
    assert x.to("acme-many:first").device is first


def test_a_choice_that_a_backend_lacks_says_what_there_is(acme: None) -> None:
    with pytest.raises(sg.DeviceError, match=r"'wasm:1': the backend 'wasm' has one device; write 'wasm'"):
        sg.device("wasm:1")
    with pytest.raises(sg.DeviceError, match=r"'acme-many:': expected after the colon a number"):
        sg.device("acme-many:")


def test_all_devices_are_listed_by_a_name_that_opens_them(acme: None, capsys: pytest.CaptureFixture[str]) -> None:
    there = sg.devices()
    assert {"numpy", "acme-many", "acme-many:1"} <= set(there)
    assert "acme-many:0" not in there
    for name, found in there.items():
        if isinstance(found, sg.Device):
            assert sg.device(name) is found
    assert main(["devices"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^acme-many:1  here$", printed, re.MULTILINE)
    assert re.search(r"^acme-absent +absent: .*pip install 'acme-devices\[acme-absent\]'", printed, re.MULTILINE)
    assert f"numpy ({VARIABLE} is not set)" in printed


def test_a_library_is_not_imported_to_list_its_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert isinstance(sg.devices()["jax"], Unopened)
    assert main(["devices"]) == 0
    assert re.search(
        r"^jax  installed: jax [0-9.]+, which is imported when it is asked for$", capsys.readouterr().out, re.M
    )
    assert "jax" not in sys.modules


def test_each_place_takes_each_name(acme: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, second = "acme-many:1", sg.device("acme-many:1")
    model = sg.Model.of(lambda x: x + 1, {"x": (2,)}, name)
    assert model.device is second
    sg.save(model, tmp_path / "m.singe")
    assert sg.load(tmp_path / "m.singe", name).device is second
    assert sg.compile(lambda x: x + 1, np.ones(2, np.float32), device=name).device is second
    assert sg.Fusion(name).inner is second
    assert onnx_backend.supports_device("ACME-MANY:1")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    for device in (name, "cpu"):
        command = ["run", str(tmp_path / "m.singe"), "--input", str(tmp_path / "x.npy"), "--device", device]
        assert main(command) == 0
        assert re.search(rf"^device +{sg.device(device).name} \(", capsys.readouterr().out, re.MULTILINE)
    assert main(["compile", str(tmp_path / "m.singe"), "-o", str(tmp_path / "p.singe"), "--device", name]) == 0
    assert "acme-code" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", "m.singe", "--device", "cute:1"])
    assert "invalid choice: 'cute:1'" in capsys.readouterr().err


def test_cpu_is_the_most_preferred_backend_that_is_the_cpu() -> None:
    among = [name for name, factory in factories().items() if factory.cpu]
    assert among == ["wasm", "numpy"]
    there = sg.devices()
    assert sg.device("cpu") is next(there[name] for name in among if isinstance(there[name], sg.Device))


def test_the_variable_names_the_device_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> set[sg.Device]:
        layer = sg.nn.Linear(2, 3)
        with sg.nn.drawing(7):
            drawn = sg.randn(2)
        xp = sg.array_api
        return {
            sg.tensor([1.0]).device, sg.zeros(2).device, drawn.device, sg.randn(2).device, layer.weight.device,
            layer(sg.ones(1, 2)).device, xp.asarray([1.0]).device, xp.__array_namespace_info__().default_device(),
            sg.where(np.array([True]), 1, 2).device,
        }  # fmt: skip

    assert made() == {sg.device("numpy")}
    monkeypatch.setenv(VARIABLE, "wasm")
    assert made() == {sg.device("wasm")}
    assert sg.device() is sg.device("auto") is sg.device("wasm")
    assert sg.device("numpy").name == "numpy"
    monkeypatch.setenv(VARIABLE, "numpy")
    assert sg.device("auto") is sg.device("numpy") is sg.Model.of(lambda x: x, {"x": (2,)}).device
    monkeypatch.setenv(VARIABLE, "cpu")
    assert made() == {sg.device("cpu")}


@pytest.mark.parametrize("name", ["wasn", "wasm:1", ":"])
def test_a_wrong_value_of_the_variable_is_an_error_that_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, name)
    for make in (sg.device, lambda: sg.tensor([1.0])):
        with pytest.raises(sg.DeviceError, match=f"^SINGE_DEVICE names the device '{name}': no "):
            make()


def test_a_program_runs_on_the_variables_device_if_that_runs_its_target(
    monkeypatch: pytest.MonkeyPatch, acme: None, tmp_path: Path
) -> None:
    sg.compile(lambda x: x + 1, np.ones(2, np.float32), device="acme").save(tmp_path / "p.singe")
    assert sg.Program.load(tmp_path / "p.singe").device.name == "acme"
    monkeypatch.setenv(VARIABLE, "acme-many:1")
    assert sg.Program.load(tmp_path / "p.singe").device is sg.device("acme-many:1")
    monkeypatch.setenv(VARIABLE, "numpy")
    assert sg.Program.load(tmp_path / "p.singe").device.name == "acme"


def test_devices_are_equal_if_their_values_may_meet() -> None:
    one, other = sg.Autodiff("numpy"), sg.Autodiff(sg.device("numpy"))
    assert one == other
    assert hash(one) == hash(other)
    assert one != sg.Autodiff("wasm")
    assert one != sg.device("numpy")
    x = sg.tensor([2.0], device=one, requires_grad=True)
    assert x.to(other) is x
    assert (x * sg.tensor([3.0], device=other)).backward()[x].tolist() == [3]
    fused, again = (sg.tensor([1.0], device=sg.Fusion("numpy")) for _ in range(2))
    assert fused.device != again.device
    with pytest.raises(sg.DeviceError, match="which were made by two calls"):
        fused.add(again)


def _adapter(name: str, number: int, api: str = "Vulkan") -> Any:
    return SimpleNamespace(info={"device": name, "vendor_id": 1, "device_id": number, "backend_type": api})


LISTED = [
    _adapter("Intel UHD 770", 7), _adapter("NVIDIA H100", 9), _adapter("NVIDIA H100", 9), _adapter("Intel UHD 770", 7, "D3D12"),
    _adapter("NVIDIA H100/PCIe/SSE2", 0, "OpenGL"),
]  # fmt: skip


def test_webgpu_numbers_its_adapters_and_finds_them_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    native = pytest.importorskip("singe_webgpu.device.native", reason="wgpu is not installed")
    chosen = {"high-performance": LISTED[1], "low-power": LISTED[0]}
    monkeypatch.setattr(native, "_adapter", lambda power="high-performance": chosen[power])
    monkeypatch.setattr(native.wgpu, "gpu", SimpleNamespace(enumerate_adapters_sync=lambda: LISTED))
    there = native.adapters()
    assert there == [LISTED[1], LISTED[2], LISTED[0]], "the fastest first, and each once"
    for choice, number in {"0": 0, "1": 1, "2": 2, "nvidia": 0, "Intel": 2, "770": 2, "low-power": 2}.items():
        assert native._chosen(choice) == (number, there[number]), choice
    for choice in ("3", "10", "77"):  # parts of the names, too
        with pytest.raises(
            sg.DeviceError,
            match=rf"no WebGPU adapter '{choice}'; there are \"webgpu:0\" \(NVIDIA H100\), .*\"webgpu:2\"",
        ):
            native._chosen(choice)
    monkeypatch.setattr(native.wgpu, "gpu", SimpleNamespace(enumerate_adapters_sync=lambda: LISTED[4:]))
    assert native.adapters() == LISTED[4:], "OpenGL where there is nothing else"


def test_webgpu_opens_one_device_by_all_its_names() -> None:
    there = sg.devices()["webgpu"]
    if not isinstance(there, sg.Device):
        pytest.skip(f"webgpu: {there}")
    assert sg.WebGpu() is sg.WebGpu(0) is sg.device("webgpu:0") is there
    part = there.describe()["adapter"][:6].upper()
    assert sg.WebGpu(part) is there
    with pytest.raises(sg.DeviceError, match=r"no WebGPU adapter 'no such'; there are \"webgpu:0\""):
        sg.WebGpu("no such")
