"""Real models against onnxruntime: within 1e-4 of the largest output value, on every device, for several batch sizes
from one compilation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx_devices import DEVICES, MODELS, check_relative, need

from singe.compile import compile_graph
from singe.device import device as open_device
from singe.onnx.importer import import_model
from singe.onnx.model import read_model

BOUND = 1e-4
BATCHES = (1, 2, 3, 7)
NAMES = ("basic_pitch", "efficientnet_lite0", "magika", "mnist_cnn", "ppocr_cls", "ppocr_det")

runtime = pytest.importorskip("onnxruntime")


def _path(name: str) -> Path:
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {MODELS}")
    return path


@cache
def recorded(name: str) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """The input's name, the recorded input, and the recorded outputs."""
    with np.load(_path(name).with_suffix(".npz")) as data:
        ((given, x),) = ((k[3:], data[k]) for k in data.files if k.startswith("in:"))
        return given, x, {k[4:]: data[k] for k in data.files if k.startswith("out:")}


def batch(x: np.ndarray, count: int) -> np.ndarray:
    """`count` items made of the recorded ones, each turned a little further, so that no two are equal."""
    return np.stack([np.roll(x[i % len(x)], i, axis=-1) for i in range(count)])


@cache
def expected(name: str, count: int) -> dict[str, np.ndarray]:
    """onnxruntime's outputs."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(_path(name), options, providers=["CPUExecutionProvider"])
    given, x, _ = recorded(name)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {given: batch(x, count)}), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_model(name: str, device: str) -> None:
    """The batch stays symbolic; what else the file leaves open is as recorded."""
    given, x, outputs = recorded(name)
    need(device)
    backend = open_device(DEVICES[device]).backend
    graph = import_model(read_model(_path(name)), input_shapes={given: ("N", *x.shape[1:])})
    executable = backend.prepare(compile_graph(graph, backend.target))
    try:
        for array, wanted in ((x, outputs), *((batch(x, n), expected(name, n)) for n in BATCHES)):
            arrays = executable.run([backend.upload(array)])
            check_relative(dict(zip(graph.output_names, map(backend.download, arrays), strict=True)), wanted, BOUND)
    finally:
        executable.dispose()
