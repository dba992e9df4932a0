"""The ops of com.microsoft beside onnxruntime, on every device: a model of one node for each case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_devices import DEVICES, check, need
from peer import session

from singe.errors import ImportFailure
from singe.onnx.backend import prepare
from singe.onnx.model import read_model

RNG = np.random.default_rng(7)
TOLERANCE = 2e-5


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def half(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16) if x.dtype == np.float32 else x


def ints(low: int, high: int, *shape: int, kind: Any = np.int32) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(kind)


def i32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


@dataclass(frozen=True)
class Case:
    """A node: its op, inputs (None: omitted), attributes, which outputs it has, the domain, and the types of outputs that
    are no float32."""

    op: str
    inputs: tuple[np.ndarray | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[int, ...] = (0,)
    domain: str = "com.microsoft"
    kinds: Mapping[int, int] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        given = {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None}
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        outputs = [f"y{k}" if k in self.outputs else "" for k in range(max(self.outputs) + 1)]
        node = helper.make_node(self.op, names, outputs, domain=self.domain, **self.attributes)
        kinds = {n: helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in given.items()}
        graph = helper.make_graph(
            [node],
            self.op,
            [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in given.items()],
            [
                helper.make_tensor_value_info(n, self.kinds.get(int(n[1:]), onnx.TensorProto.FLOAT), None)
                for n in outputs
                if n
            ],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def given(self) -> dict[str, np.ndarray]:
        return {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None}


SKIP = (f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8))
INT = {1: onnx.TensorProto.INT32}
HALVES = dict.fromkeys(range(4), onnx.TensorProto.FLOAT16)
EMBED = (
    ints(0, 9, 2, 4), ints(0, 2, 2, 4), f(9, 8), f(6, 8), f(2, 8), f(8), f(8), i32([1, 1, 1, 0], [1, 1, 0, 0]),
)  # fmt: skip
WORDS = i32(
    [3, 1, 4, 1, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0], [2, 6, 5, 3, 5, 8, 9], [1, 2, 3, 0, 0, 0, 0], [4, 0, 4, 4, 0, 0, 0]
)
CASES: dict[str, Case] = {
    "word_conv": Case("WordConvEmbedding", (WORDS, f(6, 1, 3, 4), f(6), f(10, 4))),
    "word_conv_sizes": Case(
        "WordConvEmbedding",
        (WORDS, f(2, 1, 7, 3), f(2), f(10, 3)),
        {"embedding_size": 2, "conv_window_size": 7, "char_embedding_size": 3},
    ),
    "unique": Case(
        "Unique",
        (np.array([2, 1, 1, 3, 4, 3], np.float32),),
        outputs=(0, 1, 2),
        kinds={1: onnx.TensorProto.INT64, 2: onnx.TensorProto.INT64},
    ),
    "gelu": Case("Gelu", (f(3, 40),)),
    "bias_gelu": Case("BiasGelu", (f(2, 3, 8), f(8))),
    "fast_gelu": Case("FastGelu", (f(3, 40),)),
    "fast_gelu_bias": Case("FastGelu", (f(2, 3, 8), f(8))),
    "quick_gelu": Case("QuickGelu", (f(3, 40),)),
    "quick_gelu_alpha": Case("QuickGelu", (f(3, 40),), {"alpha": 0.7}),
    "fused_matmul": Case("FusedMatMul", (f(2, 3, 4), f(4, 5)), {"alpha": 0.5}),
    "fused_matmul_turned": Case("FusedMatMul", (f(2, 4, 3), f(2, 5, 4)), {"transA": 1, "transB": 1}),
    "fused_matmul_batches": Case("FusedMatMul", (f(3, 2, 4), f(4, 2, 5)), {"transBatchA": 1, "transBatchB": 1}),
    "fused_matmul_both": Case("FusedMatMul", (f(4, 2, 3), f(2, 5, 4)), {"transBatchA": 1, "transA": 1, "transB": 1}),
    "fused_gemm": Case("FusedGemm", (f(3, 4), f(4, 5), f(5)), {"activation": "Relu"}),
    "fused_gemm_leaky": Case(
        "FusedGemm",
        (f(4, 3), f(5, 4)),
        {"activation": "LeakyRelu", "activation_alpha": 0.2, "transA": 1, "transB": 1, "alpha": 2.0},
    ),
    "fused_conv": Case("FusedConv", (f(1, 3, 7, 7), f(4, 3, 3, 3), f(4)), {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "fused_conv_sum": Case(
        "FusedConv",
        (f(1, 3, 6, 6), f(4, 3, 3, 3), f(4), f(1, 4, 4, 4)),
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    ),
    "fused_conv_clip": Case(
        "FusedConv", (f(1, 3, 6, 6), f(4, 3, 3, 3)), {"activation": "Clip", "activation_params": [-1.0, 0.5]}
    ),
    "skip_layer_norm": Case("SkipLayerNormalization", SKIP[:3]),
    "skip_layer_norm_bias": Case("SkipLayerNormalization", SKIP, {"epsilon": 1e-3}, (0, 3)),
    "skip_layer_norm_broadcast": Case("SkipLayerNormalization", (f(2, 3, 8), f(1, 3, 8), f(8), f(8)), {}, (0, 3)),
    "skip_rms_norm": Case("SkipSimplifiedLayerNormalization", SKIP[:3], {"epsilon": 1e-5}, (0, 3)),
    "skip_rms_norm_bias": Case("SkipSimplifiedLayerNormalization", SKIP[:4]),
    "rms_norm": Case("SimplifiedLayerNormalization", (f(2, 3, 8), f(8)), {"epsilon": 1e-3}, (0, 1), domain=""),
    "rms_norm_axis": Case("SimplifiedLayerNormalization", (f(2, 3, 8), f(3, 8)), {"axis": 1}, domain=""),
    "embed": Case("EmbedLayerNormalization", EMBED, {}, (0, 1), kinds=INT),
    "embed_sum": Case("EmbedLayerNormalization", EMBED[:7], {}, (0, 1, 2), kinds=INT),
    "embed_words": Case(
        "EmbedLayerNormalization",
        (EMBED[0], None, EMBED[2], EMBED[3], None, *EMBED[5:7], None, ints(0, 6, 2, 4)),
        {},
        (0, 1),
        kinds=INT,
    ),
    "rotary": Case("RotaryEmbedding", (f(2, 3, 16), ints(0, 9, 2, 3, kind=np.int64), f(9, 4), f(9, 4))),
    "rotary_offset": Case(
        "RotaryEmbedding", (f(2, 2, 3, 8), np.array([2], np.int64), f(9, 4), f(9, 4)), {"interleaved": 1}
    ),
    "rotary_part": Case(
        "RotaryEmbedding",
        (f(2, 3, 16), ints(0, 9, 2, 3, kind=np.int64), f(9, 2), f(9, 2)),
        {"num_heads": 2, "rotary_embedding_dim": 4},
    ),
}
QKV = (f(2, 5, 12), f(12, 24), f(24))
RAW = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
CASES |= {
    "attention": Case("Attention", QKV, {"num_heads": 2}),
    "attention_causal": Case("Attention", QKV, {"num_heads": 2, "unidirectional": 1}),
    "attention_mask": Case("Attention", (*QKV, RAW), {"num_heads": 2}),
    "attention_lengths": Case("Attention", (*QKV, i32(4, 2)), {"num_heads": 2}),
    "attention_ends": Case("Attention", (*QKV, i32(5, 3, 1, 0)), {"num_heads": 2, "mask_filter_value": -100.0}),
    "attention_mask_3d": Case("Attention", (*QKV, ints(0, 2, 2, 5, 5)), {"num_heads": 2, "unidirectional": 1}),
    "attention_sizes": Case(
        "Attention", (f(2, 5, 12), f(12, 20), f(20)), {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4], "scale": 0.2}
    ),
    "attention_past": Case("Attention", (*QKV, None, f(2, 2, 2, 3, 4)), {"num_heads": 2, "unidirectional": 1}, (0, 1)),
    "attention_past_mask": Case("Attention", (*QKV, ints(0, 2, 2, 8), f(2, 2, 2, 3, 4)), {"num_heads": 2}, (0, 1)),
    "attention_bias": Case("Attention", (*QKV, None, None, f(1, 2, 5, 5)), {"num_heads": 2}),
}
Q, K, V = f(2, 3, 8), f(2, 5, 8), f(2, 5, 12)
CASES |= {
    "mha": Case("MultiHeadAttention", (Q, K, V), {"num_heads": 2}),
    "mha_bias": Case("MultiHeadAttention", (Q, K, V, f(28)), {"num_heads": 2, "scale": 0.3}),
    "mha_padding": Case("MultiHeadAttention", (Q, K, V, None, RAW), {"num_heads": 2}),
    "mha_mask": Case("MultiHeadAttention", (Q, K, V, None, ints(0, 2, 2, 3, 5)), {"num_heads": 2}),
    "mha_attention_bias": Case("MultiHeadAttention", (Q, K, V, None, RAW, f(2, 1, 3, 5)), {"num_heads": 2}),
    "mha_cross": Case("MultiHeadAttention", (Q, f(2, 2, 5, 4), f(2, 2, 5, 4)), {"num_heads": 2}),
    "mha_past": Case(
        "MultiHeadAttention", (Q, f(2, 3, 8), f(2, 3, 8), None, None, None, f(2, 2, 4, 4), f(2, 2, 4, 4)),
        {"num_heads": 2, "unidirectional": 1}, (0, 1, 2),
    ),
    "mha_qk": Case("MultiHeadAttention", (Q, K, V, None, RAW), {"num_heads": 2}, (0, 3)),
}  # fmt: skip
COS, SIN = f(12, 8), f(12, 8)


def filled(room: int, counts: list[int]) -> np.ndarray:
    """A cache of which each sequence has so many keys: the others are zeros, as onnxruntime returns them."""
    return f(len(counts), 2, room, 16) * (np.arange(room)[:, None] < np.reshape(counts, (-1, 1, 1, 1)))


def gqa(length: int, past: int, room: int, *seen: int, **more: Any) -> Case:
    """A call with `length` queries after `past` keys, in a cache with room for more. seen: seqlens_k."""
    rotary = (COS, SIN) if more.get("do_rotary") else (None, None)
    cache = tuple(filled(room, [last + 1 - length for last in seen]) if room else None for _ in range(2))
    inputs = (
        f(len(seen), length, 64), f(len(seen), length, 32), f(len(seen), length, 32), *cache,
        np.array(seen, np.int32), np.array(past + length, np.int32), *rotary, *more.pop("inputs", ()),
    )  # fmt: skip
    outputs = more.pop("outputs", (0, 1, 2))
    return Case("GroupQueryAttention", inputs, {"num_heads": 4, "kv_num_heads": 2, **more}, outputs)


CASES |= {
    "gqa_prompt": gqa(5, 0, 0, 4, 4),
    "gqa_prompt_room": gqa(5, 0, 9, 4, 4, do_rotary=1),
    "gqa_step": gqa(1, 6, 6, 6, 6, do_rotary=1),
    "gqa_step_room": gqa(1, 6, 9, 6, 6, do_rotary=1, rotary_interleaved=1),
    "gqa_step_ragged": gqa(1, 6, 9, 6, 3, do_rotary=1),
    "gqa_chunk": gqa(3, 4, 4, 6, do_rotary=1),
    "gqa_window": gqa(6, 0, 0, 5, 5, local_window_size=3),
    "gqa_step_window": gqa(1, 6, 9, 6, 6, local_window_size=3),
    "gqa_softcap": gqa(5, 0, 0, 4, 4, softcap=1.5, scale=0.4),
    "gqa_smooth": gqa(5, 0, 0, 4, 4, smooth_softmax=1),
    "gqa_bias": gqa(3, 4, 4, 6, inputs=(None, f(1, 4, 3, 7))),
    "gqa_sink": gqa(3, 4, 4, 6, inputs=(None, None, f(4))),
    "gqa_places": gqa(3, 4, 4, 6, do_rotary=1, inputs=(np.array([[4, 5, 6]]),)),
}
PROMPT = gqa(5, 0, 0, 4, 4, do_rotary=1)
CHUNK = gqa(3, 4, 4, 6)
CASES |= {
    "gqa_packed": replace(PROMPT, inputs=(np.concatenate(PROMPT.inputs[:3], 2), None, None, *PROMPT.inputs[3:])),
    "gqa_scores": replace(CHUNK, attributes={**CHUNK.attributes, "qk_output": 1}, outputs=(0, 1, 2, 3)),
    "gqa_weights": replace(CHUNK, attributes={**CHUNK.attributes, "qk_output": 2}, outputs=(0, 1, 2, 3)),
    "gqa_half": replace(CHUNK, inputs=tuple(None if x is None else half(x) for x in CHUNK.inputs), kinds=HALVES),
}
DEC = (f(2, 1, 8), f(2, 1, 8), f(2, 1, 8))
CASES |= {
    "decoder_step": Case(
        "DecoderMaskedMultiHeadAttention", (*DEC, None, None, f(2, 2, 9, 4), f(2, 2, 9, 4), i32(4)),
        {"num_heads": 2, "past_present_share_buffer": 1}, (0, 1, 2),
    ),
    "decoder_step_mask": Case(
        "DecoderMaskedMultiHeadAttention", (*DEC, ints(0, 2, 2, 5), None, f(2, 2, 9, 4), f(2, 2, 9, 4), i32(4), None, None, f(24)),
        {"num_heads": 2, "past_present_share_buffer": 1}, (0, 1, 2),
    ),
    "decoder_cross": Case(
        "DecoderMaskedMultiHeadAttention", (DEC[0], f(2, 2, 5, 4), f(2, 2, 5, 4), RAW), {"num_heads": 2}
    ),
}  # fmt: skip


MASK = ints(0, 2, 2, 3, 5)
NORMS = f(16), f(16)


def normed(x: np.ndarray, heads: int, scale: np.ndarray) -> np.ndarray:
    """Heads with the norms that GroupQueryAttention takes before the rotation."""
    y = x.reshape(*x.shape[:2], heads, -1)
    return (y / np.sqrt(np.square(y).mean(-1, keepdims=True) + 1e-6) * scale).reshape(x.shape).astype(np.float32)


def split(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], 2, -1)


STEP = Case("MultiHeadAttention", (*DEC, None, RAW, None, f(2, 2, 4, 4), f(2, 2, 4, 4)), {"num_heads": 2}, (0, 1, 2))
FORMS: dict[str, tuple[Case, Case]] = {
    "packed": (
        Case("MultiHeadAttention", (np.stack([split(x) for x in (K, K[::-1], -K)], 3),), {"num_heads": 2}),
        Case("MultiHeadAttention", (K, np.ascontiguousarray(K[::-1]), -K), {"num_heads": 2}),
    ),
    "packed_keys": (
        Case("MultiHeadAttention", (Q, np.stack([split(x) for x in (K, -K)], 3)), {"num_heads": 2}),
        Case("MultiHeadAttention", (Q, K, -K), {"num_heads": 2}),
    ),
    "mask_4d": (
        Case("Attention", (*QKV, np.tril(np.ones((2, 1, 9, 9), np.int32))), {"num_heads": 2}),
        Case("Attention", (*QKV, np.tril(np.ones((2, 5, 5), np.int32))), {"num_heads": 2}),
    ),
    "norms": (
        replace(PROMPT, inputs=(*PROMPT.inputs, None, None, None, None, None, *NORMS)),
        replace(PROMPT, inputs=(normed(PROMPT.inputs[0], 4, NORMS[0]), normed(PROMPT.inputs[1], 2, NORMS[1]), *PROMPT.inputs[2:])),
    ),
    "decoder_grows": (
        Case("DecoderMaskedMultiHeadAttention", (*DEC, RAW, None, *STEP.inputs[6:8]), {"num_heads": 2}, (0, 1, 2)), STEP
    ),
}  # fmt: skip
"""Forms that onnxruntime has for GPUs only, each with one that it runs here and that must give the same."""


@cache
def expected(name: str) -> list[np.ndarray]:
    case = CASES[name]
    return session(case.model()).run(None, case.given())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", DEVICES)
def test_it_agrees_with_onnxruntime(device: str, name: str) -> None:
    need(device)
    case = CASES[name]
    bound = 4e-3 if case.kinds is HALVES else TOLERANCE
    check(run(case, device), expected(name), bound, bound)


def run(case: Case, device: str) -> list[np.ndarray]:
    return prepare(read_model(case.model().SerializeToString()), device).run(list(case.given().values()))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("device", DEVICES)
def test_forms_agree(device: str, name: str) -> None:
    need(device)
    form, other = FORMS[name]
    check(run(form, device), run(other, device), TOLERANCE, TOLERANCE)


@pytest.mark.parametrize("device", DEVICES)
def test_a_shorter_prompt_in_a_batch_gives_what_it_gives_alone(device: str) -> None:
    need(device)
    both = gqa(5, 0, 9, 4, 2, do_rotary=1)
    q, k, v, *_ = both.inputs
    alone = replace(
        both,
        inputs=(
            *(x[1:, :3] for x in (q, k, v)),
            *(c[1:] for c in both.inputs[3:5]),
            i32([2])[0],
            np.array(3, np.int32),
            COS,
            SIN,
        ),
    )
    y, keys, _ = run(both, device)
    z, own, _ = run(alone, device)
    np.testing.assert_allclose(y[1, :3], z[0], rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(keys[1, :, :3], own[0, :, :3], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_not_supported_is_refused(device: str) -> None:
    need(device)
    for case in (
        replace(CASES["mha"], inputs=(Q, K, V, None, None, None, None, None, i32(1))),
        replace(CASES["gqa_prompt"], attributes={"num_heads": 4, "kv_num_heads": 2, "sliding_window_cache": 1}),
        replace(CASES["rotary"], attributes={"is_packed_batching": 1}),
    ):
        with pytest.raises(ImportFailure, match="export the model without"):
            run(case, device)


@pytest.mark.parametrize(
    ("op", "attributes", "text"),
    [
        ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2}, "a multiple of 8"),
        ("DecoderMaskedMultiHeadAttention", {"num_heads": 1}, "a multiple of 3"),
    ],
)
def test_packed_inputs_of_another_width_are_refused(op: str, attributes: dict[str, int], text: str) -> None:
    packed = f(1, 1, 67)
    given = (packed, None, None, None, None, i32(0), i32(1)) if op.startswith("Group") else (packed,)
    with pytest.raises(ImportFailure, match=text):
        run(Case(op, given, attributes), "CPU")


@pytest.mark.parametrize("device", DEVICES)
def test_a_word_without_characters_is_zeros(device: str) -> None:
    """onnxruntime leaves what was in the memory."""
    need(device)
    case = CASES["word_conv"]
    words = np.concatenate([np.zeros_like(WORDS[:1]), WORDS, np.array([[0, 3, 0, 0, 0, 0, 0]], np.int32)])
    (y,), (wanted,) = run(replace(case, inputs=(words, *case.inputs[1:])), device), run(case, device)
    np.testing.assert_array_equal(y[[0, -1]], 0)
    check([y[1:-1]], [wanted], 0, 0)


def test_word_vectors_of_another_size_are_refused() -> None:
    for at, x, attributes, text in (
        (3, f(10, 5), {}, "over characters"),
        (1, f(6, 2, 3, 4), {}, "over characters"),
        (0, WORDS, {"embedding_size": 5}, "embedding_size is 5"),
    ):
        case = CASES["word_conv"]
        given = tuple(x if i == at else own for i, own in enumerate(case.inputs))
        with pytest.raises(ImportFailure, match=text):
            run(replace(case, inputs=given, attributes=attributes), "CPU")


def test_keys_without_values_are_refused() -> None:
    with pytest.raises(ImportFailure, match="keys or values are missing"):
        run(Case("MultiHeadAttention", (f(1, 3, 8), f(1, 3, 8)), {"num_heads": 2}), "CPU")
