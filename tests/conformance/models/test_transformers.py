"""Transformers with random weights agree with onnxruntime on every device, at several sizes from one compilation: as
exporters write them, and as onnxruntime's own optimiser rewrites them. Decoders run step by step with their caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_transformers as made
import pytest
from onnx_devices import DEVICES, check_relative, need

import singe as sg

runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow

BOUND = 2e-5
Feeds = dict[str, np.ndarray]


def words(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
    return rng.integers(0, made.WORDS, (batch, length))


def bert_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for feeds in encoder_feeds(rng):
        yield feeds | {"token_type_ids": rng.integers(0, 2, feeds["input_ids"].shape)}


def encoder_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for batch, length in ((1, 7), (3, 12), (2, 1), (1, 70)):
        mask = np.arange(length) < rng.integers(1, length + 1, (batch, 1))
        yield {"input_ids": words(rng, batch, length), "attention_mask": mask.astype(np.int64)}


def translation_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for feeds, length in zip(encoder_feeds(rng), (5, 1, 4, 66), strict=True):
        yield feeds | {"decoder_input_ids": words(rng, len(feeds["input_ids"]), length)}


def vit_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for batch in (1, 3):
        yield {"pixels": rng.standard_normal((batch, 3, 12, 12)).astype(np.float32)}


def sound_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for batch, length in ((1, 20), (2, 9), (1, 300)):
        yield {"mel": rng.standard_normal((batch, 8, length)).astype(np.float32)}


def text_feeds(rng: np.random.Generator) -> Iterator[Feeds]:
    for batch, length, states in ((1, 5, 10), (2, 1, 4), (2, 8, 3), (1, 40, 150)):
        encoded = rng.standard_normal((batch, states, made.WIDTH)).astype(np.float32)
        yield {"input_ids": words(rng, batch, length), "states": encoded}


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], Callable[[np.random.Generator], Iterator[Feeds]]]] = {
    "bert": (made.bert, bert_feeds),
    "modern_bert": (made.modern_bert, encoder_feeds),
    "t5": (made.t5, translation_feeds),
    "vit": (made.vit, vit_feeds),
    "whisper_encoder": (made.whisper_encoder, sound_feeds),
    "whisper_decoder": (made.whisper_decoder, text_feeds),
}
DECODERS: dict[str, tuple[Callable[[], onnx.ModelProto], int]] = {
    "gpt2": (made.gpt2, made.HEADS),
    "llama": (lambda: made.llama("plain"), made.KV_HEADS),
    "llama_opset23": (lambda: made.llama("opset23"), made.KV_HEADS),
    "llama_microsoft": (lambda: made.llama("microsoft"), made.KV_HEADS),
}
"""Decoders, with their heads of keys."""


@cache
def file_of(name: str) -> bytes:
    make, _ = MODELS.get(name) or DECODERS[name]
    return make().SerializeToString()


@cache
def session(name: str) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    return runtime.InferenceSession(file_of(name), options)


def expected(name: str, feeds: Feeds) -> Feeds:
    outputs = session(name).get_outputs()
    return dict(zip((o.name for o in outputs), session(name).run(None, feeds), strict=True))


def run(model: sg.Model, feeds: Feeds) -> Feeds:
    found = model(feeds)
    return found if isinstance(found, dict) else {model.outputs[0].name: found}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("device", DEVICES)
def test_models(device: str, name: str) -> None:
    need(device)
    model = sg.load(file_of(name), device=DEVICES[device])
    for feeds in MODELS[name][1](np.random.default_rng(0)):
        check_relative(run(model, feeds), expected(name, feeds), BOUND)
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
    for feeds in MODELS[name][1](np.random.default_rng(0)):
        check_relative(run(model, feeds), expected(name, feeds), BOUND)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("device", DEVICES)
def test_decoders_step_by_step(device: str, name: str) -> None:
    """A prompt, then a word at a time, with each device's caches; one sequence is padded on the left unless lengths say
    where sequences end."""
    need(device)
    model = sg.load(file_of(name), device=DEVICES[device])
    rng, batch, past = np.random.default_rng(1), 2, 0
    mine = theirs = dict.fromkeys(
        (p.name for p in model.inputs if p.name.startswith("past")),
        np.zeros((batch, DECODERS[name][1], 0, made.SIZE), np.float32),
    )
    lengths = (70, 1, 1) if name == "llama_microsoft" else (70, 1, 1, 3)  # onnxruntime takes one sequence for the last
    for length in lengths:
        mask = np.ones((batch, past + length), np.int64)
        if name != "llama_microsoft":
            mask[1, :2] = 0
        places = np.maximum(mask.cumsum(1) - 1, 0)[:, past:]
        feeds = {"input_ids": words(rng, batch, length), "attention_mask": mask, "position_ids": places}
        feeds = {k: x for k, x in feeds.items() if any(p.name == k for p in model.inputs)}
        got, wanted = run(model, feeds | mine), expected(name, feeds | theirs)
        check_relative(got, wanted, BOUND)
        mine, theirs = (
            {k.replace("present", "past"): x for k, x in found.items() if k.startswith("present")}
            for found in (got, wanted)
        )
        past += length
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
