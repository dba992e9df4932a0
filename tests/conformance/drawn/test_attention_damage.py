"""Nodes of attention and its kin with inputs of any rank, type and number, and with any attributes, give an answer or an
error of ours. They are drawn by seed: the number of a failed case makes it again."""

from __future__ import annotations

import random
from typing import Final

import numpy as np
import pytest

import singe as sg

onnx = pytest.importorskip("onnx")
helper = onnx.helper
pytestmark = pytest.mark.slow

COUNT: Final = 1500
OPS: Final = {
    "": {
        "LayerNormalization": 3, "RMSNormalization": 2, "Gelu": 1, "Swish": 1, "SwiGLU": 2, "RotaryEmbedding": 4, "Attention": 7,
        "LinearAttention": 6, "CausalConvWithState": 4, "SimplifiedLayerNormalization": 2,
    },
    "com.microsoft": {
        "Attention": 7, "MultiHeadAttention": 9, "GroupQueryAttention": 16, "RotaryEmbedding": 4, "SkipLayerNormalization": 5,
        "DecoderMaskedMultiHeadAttention": 11, "SkipSimplifiedLayerNormalization": 4, "EmbedLayerNormalization": 9,
        "FastGelu": 2, "BiasGelu": 2, "QuickGelu": 1, "FusedMatMul": 2, "FusedGemm": 3, "FusedConv": 4,
    },
}  # fmt: skip
"""The ops by domain, with the most inputs of each."""
ATTRIBUTES: Final = {
    "num_heads": (0, 1, 2, -1, 3), "kv_num_heads": (0, 1, 2, -3), "q_num_heads": (0, 1, 2, 4, -2), "axis": (-1, 0, 1, 5),
    "is_causal": (0, 1), "unidirectional": (0, 1), "scale": (0.5,), "qk_matmul_output_mode": (0, 1, 2, 3, 4, -1),
    "softmax_precision": (1, 10, 11, 7, 99), "left_window_size": (-1, 2, -5), "interleaved": (0, 1), "do_rotary": (0, 1),
    "rotary_embedding_dim": (0, 2, 4, -2, 3), "update_rule": ("linear", "gated", "delta", "gated_delta", "none"),
    "activation": ("Relu", "silu", "Clip", "none", "other", "LeakyRelu"), "activation_params": ((0.1,), (0.1, 0.2)),
    "transA": (0, 1), "transBatchA": (0, 1), "past_present_share_buffer": (0, 1), "group": (1, 2), "stash_type": (1, 10, 7),
    "qkv_hidden_sizes": ((2, 2, 4), (4, 4), (2, 2, 2)), "local_window_size": (-1, 2), "smooth_softmax": (0, 1),
}  # fmt: skip
KINDS: Final = (1, 1, 1, 1, 6, 7, 9, 10)
"""Types of elements, by ONNX's numbers; most are float32."""


def draw(seed: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """A model of one node, and inputs for it."""
    r = random.Random(seed)
    domain, op, most = r.choice([(d, op, most) for d, ops in OPS.items() for op, most in ops.items()])
    dims = (0, 1, 2, 3, 4, "N", "M") if r.random() < 0.5 else (1, 2, 4)
    sizes = {"N": r.choice((1, 2, 3)), "M": r.choice((1, 2))}
    names, ports, feeds = [], [], {}
    for i in range(r.randint(1, most)):
        if i and r.random() < 0.25:
            names.append("")
            continue
        shape = [r.choice(dims) for _ in range(r.choice((0, 1, 2, 3, 3, 3, 4, 4, 5)))]
        kind = r.choice(KINDS)
        names.append(f"x{i}")
        ports.append(helper.make_tensor_value_info(f"x{i}", kind, shape))
        values = np.random.default_rng(seed).standard_normal([sizes.get(str(d), d) for d in shape]) * 2
        feeds[f"x{i}"] = values.astype(helper.tensor_dtype_to_np_dtype(kind))
    attributes = {k: r.choice(values) for k, values in ATTRIBUTES.items() if r.random() < 0.4}
    outputs = [f"y{k}" if k == 0 or r.random() < 0.7 else "" for k in range(r.randint(1, 4))]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    results = [helper.make_tensor_value_info(n, 1, None) for n in outputs if n]
    opsets = [helper.make_opsetid("", 28), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], op, ports, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def test_any_node_is_computed_or_refused() -> None:
    computed = 0
    for seed in range(COUNT):
        data, feeds = draw(seed)
        try:
            model = sg.load(data, device="numpy")
            model({p.name: feeds[p.name] for p in model.inputs})
            computed += 1
        except sg.SingeError:
            continue
        except Exception as e:
            raise AssertionError(f"seed {seed}") from e
    assert computed > COUNT / 100
