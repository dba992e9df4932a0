"""The models of onnx_transformers.py with their inputs, and what onnxruntime computes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_transformers as made
import peer

BOUND = 2e-5
"""On the differences, relative to the largest value of an output."""
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
    return peer.session(file_of(name))


def expected(name: str, feeds: Feeds) -> Feeds:
    return peer.answers(session(name), feeds)


def step_feeds(name: str) -> Iterator[Feeds]:
    """A decoder's inputs but for its caches: a prompt, then a word at a time. One sequence is padded on the left unless
    lengths say where sequences end."""
    rng, batch, past = np.random.default_rng(1), 2, 0
    known = {p.name for p in session(name).get_inputs()}
    lengths = (70, 1, 1) if name == "llama_microsoft" else (70, 1, 1, 3)  # onnxruntime takes one sequence for the last
    for length in lengths:
        mask = np.ones((batch, past + length), np.int64)
        if name != "llama_microsoft":
            mask[1, :2] = 0
        places = np.maximum(mask.cumsum(1) - 1, 0)[:, past:]
        feeds = {"input_ids": words(rng, batch, length), "attention_mask": mask, "position_ids": places}
        yield {k: x for k, x in feeds.items() if k in known}
        past += length


def no_caches(name: str) -> Feeds:
    """A decoder's caches before the prompt."""
    empty = np.zeros((2, DECODERS[name][1], 0, made.SIZE), np.float32)
    return {p.name: empty for p in session(name).get_inputs() if p.name.startswith("past")}


def caches_of(found: Feeds) -> Feeds:
    """The caches that a step gives, as inputs of the next one."""
    return {k.replace("present", "past"): x for k, x in found.items() if k.startswith("present")}


def cases(name: str) -> Iterator[tuple[Feeds, Feeds]]:
    """Inputs of a model, and onnxruntime's outputs; a decoder gets onnxruntime's caches."""
    if name in MODELS:
        for feeds in MODELS[name][1](np.random.default_rng(0)):
            yield feeds, expected(name, feeds)
        return
    caches = no_caches(name)
    for feeds in step_feeds(name):
        wanted = expected(name, feeds | caches)
        yield feeds | caches, wanted
        caches = caches_of(wanted)
