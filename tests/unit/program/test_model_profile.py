"""What a model says of itself: where the time of a run goes, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import singe as sg
from singe import nn

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def model(device: sg.Device | str) -> sg.Model:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return sg.Model.of(net, {"x": ("n", 4)}, device, name="a <small> net")


@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_a_profile_adds_up_and_is_a_table_a_picture_and_a_trace(device: str, tmp_path: Path) -> None:
    found = model(device).profile(X, repeat=3)
    total = sum(k.seconds for k in found.kernels) + sum(found.rest.values())
    assert total == pytest.approx(found.seconds)
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["kernel", "kind", "output"]
    assert any(line.startswith("together") and line.endswith("100.0%") for line in lines)
    assert all(any(line.startswith(k.label) for line in lines) for k in found.kernels)
    found.save(tmp_path / "run.svg")
    picture = ElementTree.parse(tmp_path / "run.svg").getroot()
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}rect")) >= len(found.kernels)
    found.save(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    with pytest.raises(sg.InputError, match=r"expected|a picture, .svg, or a trace, .json; got .txt"):
        found.save(tmp_path / "run.txt")


@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_a_profile_says_what_each_layer_takes(device: str) -> None:
    of_module = model(device)
    of_module(X)  # compiled, with origins of no node
    found = of_module.profile(X, repeat=3)
    assert all(any(name in x.name for x in found.layers) for name in ("'0', Linear", "'1', ReLU", "'2', Linear"))
    assert sum(x.seconds for x in found.layers) == pytest.approx(sum(k.seconds for k in found.kernels))
    assert "'0', Linear" in str(found)

    def function(x: sg.Tensor) -> sg.Tensor:
        steep = x.exp()
        return steep @ x.T

    (first, *_) = sg.Model.of(function, {"x": (3, 4)}, device).profile(X, repeat=1).layers
    assert "steep = x.exp()" in first.name


def test_a_profile_names_the_nodes_of_a_file(tmp_path: Path) -> None:
    sg.onnx.save(model("numpy"), tmp_path / "net.onnx")
    found = sg.load(tmp_path / "net.onnx", device="wasm").profile(X, repeat=1)
    assert any("(Relu)" in x.name for x in found.layers)
    sg.export(model("numpy"), tmp_path / "net.singe")
    assert sg.load(tmp_path / "net.singe", device="wasm").profile(X, repeat=1).kernels


def test_a_profile_leaves_the_states_as_they_are() -> None:
    counting = sg.Model.of(lambda x, *, n: (x * n, {"n": n + 1}), {"x": (2,)}, "wasm", states={"n": np.float32(1)})
    ones = np.ones(2, np.float32)
    counting(ones)
    counting.profile(ones, repeat=2)
    np.testing.assert_array_equal(counting(ones), [2, 2])


@pytest.mark.parametrize("repeat", [0, -1, 2.5, "3"])
def test_a_number_of_runs_is_at_least_one(repeat: object) -> None:
    with pytest.raises(sg.InputError, match=r"repeat: got .*, expected a number of runs, at least 1"):
        model("numpy").profile(X, repeat=repeat)  # pyright: ignore[reportArgumentType]


def test_a_summary_names_inputs_outputs_ops_and_layers() -> None:
    told = model("numpy").summary()
    for text in ("x", "float32", "(n, 4)", "output", "(n, 2)", "matmul", "relu"):
        assert text in told
