"""Programs of real models: reproducible, with few dispatches, and with equal outputs after a round trip."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_devices import MODELS

from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.graph import specialise
from singe.model.files import load
from singe.model.program import Program
from singe.program.program import ProgramData
from singe_webgpu.target import WgslTarget

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="the folder of real models is not here")

HASHES = """
import hashlib, sys
from singe import load
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
for target in ("wgsl", "wasm"):
    program = compile_graph(load(sys.argv[1], "numpy").graph(), find_target(target))
    print({k: hashlib.sha256(v.encode() if isinstance(v, str) else v).hexdigest() for k, v in program.modules.items()})
"""


def text_hashes(program: ProgramData) -> dict[str, str]:
    return {k: hashlib.sha256(v.encode() if isinstance(v, str) else v).hexdigest() for k, v in program.modules.items()}


@pytest.mark.parametrize("name", ["efficientnet_lite0", "magika"])
def test_text_is_the_same_in_every_process(name: str) -> None:
    """No order of sets, no address and no time leaks into the code."""
    said = {
        subprocess.run(
            [sys.executable, "-c", HASHES, str(MODELS / f"{name}.onnx")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize("device_name", ["webgpu"], indirect=True)
def test_wgsl_is_the_same_with_and_without_a_device(device_name: str) -> None:
    """The features of a device select among the variants, but do not change them."""
    model = load(MODELS / "efficientnet_lite0.onnx", device_name)
    on_device = model.program().data
    assert text_hashes(compile_graph(model.graph(), WgslTarget())) == text_hashes(on_device)


@pytest.mark.parametrize("target", ["wgsl", "wasm"])
def test_efficientnet_takes_few_dispatches(target: str) -> None:
    """49 convolutions and a classifier: all else rides along."""
    graph = load(MODELS / "efficientnet_lite0.onnx", "numpy").graph()
    for sizes in ({}, {"N": 1}):  # several kernels of open sizes may be one for some sizes each
        program = compile_graph(specialise(graph, sizes), find_target(target))
        assert len(program.facts["fused"]) <= 60


@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_a_saved_program_gives_the_same_answers(device_name: str, tmp_path: Path) -> None:
    image = np.load(MODELS / "mnist_cnn.npz")["in:input"]
    program = load(MODELS / "mnist_cnn.onnx", device_name).program()
    program.save(tmp_path / "mnist.singe")
    again = Program.load(tmp_path / "mnist.singe")
    assert again.device is program.device
    np.testing.assert_array_equal(again(image), program(image))
    np.testing.assert_array_equal(again(image[:3]), program(image[:3]))
