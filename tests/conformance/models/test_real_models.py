"""Real models, on every device, for several batch sizes from one compilation: within 1e-4 of onnxruntime's largest output
value, and within 5e-3 of a float64 run where the model is ill-conditioned."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, MODELS, check_relative, need
from peer import answers, session
from third_party import install

from singe import load, plugins
from singe.compiler.compile import compile_graph
from singe.onnx.importer import import_model
from singe.onnx.model import read_model
from singe.runtime import devices
from singe.runtime.devices import device as open_device

BOUND = 1e-4
ILL_CONDITIONED = ("basic_pitch",)
"""Models that take logarithms of cancelling sums, so rounding matters:
onnxruntime's recording itself differs from float64 by 2.3e-3."""
FLOAT64_BOUND = 5e-3
BATCHES = (2, 3)
"""Beside the recorded batch; of an ill-conditioned model only the last, since float64 takes long."""
NAMES = ("basic_pitch", "efficientnet_lite0", "magika", "mnist_cnn", "ppocr_cls", "ppocr_det")

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")


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
    """`count` items made from the recorded ones, each rolled a little further, so that no two are equal."""
    return np.stack([np.roll(x[i % len(x)], i, axis=-1) for i in range(count)])


def expected(name: str, count: int) -> dict[str, np.ndarray]:
    return in_float64(name, count) if name in ILL_CONDITIONED else by_onnxruntime(name, count)


@cache
def by_onnxruntime(name: str, count: int) -> dict[str, np.ndarray]:
    given, x, _ = recorded(name)
    return answers(session(_path(name)), {given: batch(x, count)})


@cache
def in_float64(name: str, count: int) -> dict[str, np.ndarray]:
    """The outputs of ONNX's reference evaluator, with float64 wherever the model has float32."""
    model = onnx.load(_path(name))
    for tensor in model.graph.initializer:
        _widen(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen(attribute.t)
            if node.op_type == "Cast" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.DOUBLE
    evaluator = reference.ReferenceEvaluator(model)
    given, x, _ = recorded(name)
    found = evaluator.run(None, {given: batch(x, count).astype(np.float64)})
    assert all(out.dtype == np.float64 for out in found)
    return dict(zip(evaluator.output_names, found, strict=True))


def _widen(tensor: Any) -> None:
    """Turn a float32 TensorProto into a float64 one."""
    if tensor.data_type == onnx.TensorProto.FLOAT:
        wide = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(wide, tensor.name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_backend_of_another_package(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own target, found by its entry point, runs the models as ours do."""
    monkeypatch.syspath_prepend(install(tmp_path))
    monkeypatch.setattr(devices, "_devices", {})
    plugins.plugins.cache_clear()
    try:
        given, x, outputs = recorded(name)
        model = load(_path(name), "acme", {given: ("N", *x.shape[1:])})
        found = model(x)
        assert model.program({given: x.shape}).data.target == "acme-code"
        found = found if isinstance(found, dict) else {model.outputs[0].name: found}
        check_relative(found, outputs, FLOAT64_BOUND if name in ILL_CONDITIONED else BOUND)
    finally:
        plugins.plugins.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_model(name: str, device: str) -> None:
    """The batch stays symbolic; what else the file leaves open is as recorded."""
    given, x, outputs = recorded(name)
    need(device)
    ill = name in ILL_CONDITIONED
    references = [] if ill else [(x, outputs)]
    references += [(batch(x, n), expected(name, n)) for n in (BATCHES[-1:] if ill else BATCHES)]
    backend = open_device(DEVICES[device]).backend
    graph = import_model(read_model(_path(name)), input_shapes={given: ("N", *x.shape[1:])})
    executable = backend.prepare(compile_graph(graph, backend.target))
    try:
        for array, wanted in references:
            arrays = executable.run([backend.upload(array)])
            found = dict(zip(graph.output_names, map(backend.download, arrays), strict=True))
            check_relative(found, wanted, FLOAT64_BOUND if ill else BOUND)
    finally:
        executable.dispose()


@cache
def _encoder() -> Any:
    return session(_path("minilm_l6_v2_int8"))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_sentence_encoder(device: str) -> None:
    """Its weights are 8-bit integers; the batch and the number of words stay open, and some words are masked."""
    need(device)
    path = _path("minilm_l6_v2_int8")
    with np.load(path.with_suffix(".npz")) as data:
        recordings = [({k[3:]: data[k] for k in data.files if k.startswith("in:")}, data["out:last_hidden_state"])]
    rng = np.random.default_rng(5)
    for shape in ((1, 1), (2, 7), (3, 40)):
        words = rng.integers(1000, 20000, shape)
        given = {"input_ids": words, "token_type_ids": words % 2, "attention_mask": np.ones_like(words)}
        given["attention_mask"][1:, shape[1] // 2 :] = 0
        recordings.append((given, _encoder().run(None, given)[0]))
    model = load(path, DEVICES[device])
    for given, wanted in recordings:
        check_relative({"last_hidden_state": model(given)}, {"last_hidden_state": wanted}, BOUND)
    assert not model.needed
