"""Transformers with random weights agree with onnxruntime on every device, at several sizes from one compilation: as
exporters write them, and as onnxruntime's own optimiser rewrites them. Decoders run step by step with their caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_devices import DEVICES, check_relative, need

pytest.importorskip("onnxruntime")

import onnx_transformers as made
import onnxruntime as runtime
from transformer_cases import (
    BOUND,
    DECODERS,
    MODELS,
    Feeds,
    caches_of,
    cases,
    expected,
    file_of,
    no_caches,
    step_feeds,
    words,
)

import singe as sg

pytestmark = pytest.mark.slow


def run(model: sg.Model, feeds: Feeds) -> Feeds:
    found = model(feeds)
    return found if isinstance(found, dict) else {model.outputs[0].name: found}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("device", DEVICES)
def test_models(device: str, name: str) -> None:
    need(device)
    model = sg.load(file_of(name), device=DEVICES[device])
    for feeds, wanted in cases(name):
        check_relative(run(model, feeds), wanted, BOUND)
    assert not model.needed


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"t5"}))  # it has nothing that is fused
@pytest.mark.parametrize("device", DEVICES)
def test_models_that_onnxruntime_optimised(device: str, name: str, tmp_path: Any) -> None:
    """Its fused ops, most of them com.microsoft's, give what the plain ones give."""
    need(device)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    runtime.InferenceSession(file_of(name), options)
    fused, plain = onnx.load(options.optimized_model_filepath), onnx.load_from_string(file_of(name))
    assert {n.op_type for n in fused.graph.node} - {n.op_type for n in plain.graph.node}
    model = sg.load(options.optimized_model_filepath, device=DEVICES[device])
    for feeds, wanted in cases(name):
        check_relative(run(model, feeds), wanted, BOUND)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("device", DEVICES)
def test_decoders_step_by_step(device: str, name: str) -> None:
    """A prompt, then a word at a time, with each device's caches."""
    need(device)
    model = sg.load(file_of(name), device=DEVICES[device])
    mine = theirs = no_caches(name)
    for feeds in step_feeds(name):
        got, wanted = run(model, feeds | mine), expected(name, feeds | theirs)
        check_relative(got, wanted, BOUND)
        mine, theirs = caches_of(got), caches_of(wanted)
    assert not model.needed


def halved(name: str) -> bytes:
    """The model with float16 in place of float32."""
    model = onnx.load_from_string(file_of(name))
    single, half = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        if tensor.data_type == single:
            values = np.clip(onnx.numpy_helper.to_array(tensor), -65504, 65504)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = half
    for attribute in (a for node in model.graph.node if node.op_type == "Cast" for a in node.attribute):
        attribute.i = half if attribute.i == single else attribute.i
    return model.SerializeToString()


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("device", DEVICES)
def test_decoders_in_float16(device: str, name: str) -> None:
    need(device)
    model = sg.load(halved(name), device=DEVICES[device])
    rng, batch, length = np.random.default_rng(2), 2, 9
    given = {
        "input_ids": words(rng, batch, length),
        "attention_mask": np.ones((batch, length), np.int64),
        "position_ids": np.arange(length)[None].repeat(batch, 0),
    }
    empty = np.zeros((batch, DECODERS[name][1], 0, made.SIZE), np.float32)
    feeds = {p.name: given.get(p.name, empty) for p in model.inputs}
    got = run(model, {k: x.astype(np.float16) if x.dtype == np.float32 else x for k, x in feeds.items()})
    assert all(x.dtype == np.float16 for x in got.values())
    check_relative({k: x.astype(np.float32) for k, x in got.items()}, expected(name, feeds), 3e-3)
