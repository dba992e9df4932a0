"""Ops of com.microsoft that take the place of whole layers, on every device: beside onnxruntime where it has a kernel for CPUs,
otherwise beside their documented formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need
from peer import session
from test_microsoft import TOLERANCE, Case, f, run

from singe.errors import ImportFailure

TOKENS, EXPERTS, WIDTH, INNER = 5, 4, 32, 16
RNG = np.random.default_rng(11)


def moe(inner: int = INNER, *, biases: bool = True, third: bool = False, **attributes: Any) -> Case:
    biases_of = [f(EXPERTS, n) if biases else None for n in (inner, WIDTH)]
    inputs = [f(TOKENS, WIDTH), f(TOKENS, EXPERTS), f(EXPERTS, inner, WIDTH) / 8, biases_of[0]]
    inputs += [f(EXPERTS, WIDTH, INNER) / 4, biases_of[1]]
    if third:
        inputs += [f(EXPERTS, INNER, WIDTH) / 8, f(EXPERTS, INNER)]
    return Case("MoE", tuple(inputs), attributes)


def packed(outputs: int, depth: int, bits: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a few bits, and their scales."""
    scales = RNG.uniform(0.01, 0.02, (EXPERTS, outputs, *([depth // block] if block else []))).astype(np.float32)
    return RNG.integers(0, 256, (EXPERTS, outputs, depth * bits // 8), np.uint8), scales * 8 / (1 << bits - 1)


def qmoe(bits: int, block: int = 0, inner: int = INNER, zeros: bool = False, **attributes: Any) -> Case:
    first, last = packed(inner, WIDTH, bits, block), packed(WIDTH, INNER, bits, block)
    inputs = [f(TOKENS, WIDTH), f(TOKENS, EXPERTS), *first, f(EXPERTS, inner), *last, f(EXPERTS, WIDTH)]
    if zeros:
        counts = [
            (n, -(-depth // block * bits // 8)) if block else (n * bits // 8,)
            for n, depth in ((inner, WIDTH), (WIDTH, INNER))
        ]
        inputs += [None, None, None, *(RNG.integers(0, 256, (EXPERTS, *count), np.uint8) for count in counts)]
    facts = {"expert_weight_bits": bits, **attributes, **({"block_size": block} if block else {})}
    return Case("QMoE", tuple(inputs), facts)


SWIGLU = {"activation_type": "swiglu", "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.3}
ROUTED = qmoe(4, 16, k=2, activation_type="silu")
CASES: dict[str, Case] = {
    "trilu": Case("Trilu", (f(2, 4, 5),)),
    "trilu_lower": Case("Trilu", (f(4, 5), np.array(1, np.int64)), {"upper": 0}),
    "transpose_matmul": Case("TransposeMatMul", (f(2, 4, 3), f(2, 5, 4)), {"transA": 1, "transB": 1, "alpha": 0.5}),
    "moe": moe(),
    "moe_two": moe(k=2, activation_type="gelu"),
    "moe_normalised": moe(k=3, activation_type="silu", normalize_routing_weights=1),
    "moe_no_biases": moe(k=2, biases=False, activation_type="identity"),
    "moe_swiglu": moe(2 * INNER, k=2, swiglu_fusion=1, **SWIGLU),
    "moe_swiglu_plain": moe(2 * INNER, k=2, swiglu_fusion=1, activation_type="swiglu"),
    "moe_batches": replace(moe(k=2), inputs=(f(2, 3, WIDTH), f(6, EXPERTS), *moe().inputs[2:])),
    "qmoe": qmoe(4, activation_type="silu"),
    "qmoe_blocks": qmoe(4, 16, k=2, activation_type="relu"),
    "qmoe_8": qmoe(8, k=2, activation_type="gelu", normalize_routing_weights=1),
    "qmoe_2": qmoe(2, 16, k=2, activation_type="silu"),
    "qmoe_zeros": qmoe(4, 16, zeros=True, k=2, activation_type="silu"),
    "qmoe_zeros_of_columns": qmoe(4, zeros=True, k=2, activation_type="silu"),
    "qmoe_swiglu": qmoe(4, 16, 2 * INNER, k=2, swiglu_fusion=1, normalize_routing_weights=1, **SWIGLU),
    "qmoe_mixing": replace(ROUTED, inputs=(*ROUTED.inputs, *(None,) * 6, np.abs(f(TOKENS, EXPERTS)))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", DEVICES)
def test_it_agrees_with_onnxruntime(device: str, name: str) -> None:
    need(device)
    case = CASES[name]
    wanted = session(case.model()).run(None, case.given())
    bound = 2e-3 if "gelu" in case.attributes.values() else TOLERANCE  # onnxruntime's tanh is rough
    check(run(case, device), wanted, bound, bound)


# --- kernels that onnxruntime has for GPUs only ------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def of_groups(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, groups: int, epsilon: float) -> np.ndarray:
    """The norm of groups of the last axis."""
    y = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
    y = (y - y.mean((1, 3), keepdims=True)) / np.sqrt(y.var((1, 3), keepdims=True) + epsilon)
    return y.reshape(x.shape) * scale + shift


def group_norm(x: Any, scale: Any, shift: Any, groups: int, activation: int = 0, channels_last: int = 1) -> list[Any]:
    y = of_groups(x if channels_last else np.moveaxis(x, 1, -1), scale, shift, groups, 1e-5)
    y = y * sigmoid(y) if activation else y
    return [y if channels_last else np.moveaxis(y, -1, 1)]


def skip_group_norm(x: Any, scale: Any, shift: Any, skip: Any, bias: Any = None, **facts: Any) -> list[Any]:
    total = x + (skip[:, None, None] if skip.ndim == 2 else skip) + (0 if bias is None else bias)
    return [*group_norm(total, scale, shift, **facts), total]


def bias_softmax(x: Any, bias: Any, axis: int, is_inner_broadcast: int) -> list[Any]:
    flat = np.exp(x + bias).reshape(*x.shape[:axis], -1)
    return [(flat / flat.sum(-1, keepdims=True)).reshape(x.shape)]


def convolved(x: Any, w: Any, bias: Any = None, added: Any = None, activation: str = "") -> list[Any]:
    """Without padding or strides."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (1, 2))
    y = np.einsum("nhwcij,mcij->nhwm", windows, w) + (0 if bias is None else bias) + (0 if added is None else added)
    return [np.maximum(y, 0) if activation else y]


def position_bias(x: Any, bias: Any, rel_pos: Any, weight: Any, shift: Any, eco_a: Any, num_heads: int) -> list[Any]:
    batch, length, width = x.shape
    queries = (x + bias).reshape(batch, length, num_heads, width // num_heads).transpose(0, 2, 1, 3)
    gates = sigmoid((queries @ weight + shift).reshape(batch, num_heads, length, 2, -1).sum(-1))
    return [(gates[..., :1] * (gates[..., 1:] * eco_a - 1) + 2) * rel_pos]


def experts(
    x: Any, router: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any = None, b3: Any = None, *, k: int, **facts: Any
) -> list[Any]:
    shares = np.exp(router) / np.exp(router).sum(1, keepdims=True)
    limit, kind = facts.get("swiglu_limit", np.inf), facts["activation_type"]
    out = np.zeros_like(x)
    for t, row in enumerate(x):
        for e in np.argsort(-router[t])[:k]:
            y = w1[e] @ row + b1[e]
            y, beside = (y, w3[e] @ row + b3[e]) if w3 is not None else np.split(y, 2)
            if kind == "swiglu":
                y, beside = np.minimum(y, limit), np.clip(beside, -limit, limit) + facts["activation_beta"]
            y = y * sigmoid(facts.get("activation_alpha", 1.0) * y) * beside
            out[t] += shares[t, e] * (w2[e] @ y + b2[e])
    return [out]


CHANNELS = (f(2, 3, 4, 8), f(8), f(8))
FORMULAS: Mapping[str, tuple[Case, Callable[..., list[Any]]]] = {
    "group_norm": (Case("GroupNorm", CHANNELS, {"groups": 4, "activation": 0}), group_norm),
    "group_norm_silu": (Case("GroupNorm", CHANNELS, {"groups": 2, "activation": 1}), group_norm),
    "group_norm_first": (
        Case("GroupNorm", (f(2, 8, 3, 4), f(8), f(8)), {"groups": 2, "activation": 0, "channels_last": 0}), group_norm
    ),
    "skip_group_norm": (
        Case("SkipGroupNorm", (*CHANNELS, f(2, 3, 4, 8), f(8)), {"groups": 4, "activation": 1}, (0, 1)), skip_group_norm
    ),
    "skip_group_norm_channels": (
        Case("SkipGroupNorm", (*CHANNELS, f(2, 8)), {"groups": 4, "activation": 0}, (0, 1)), skip_group_norm
    ),
    "bias_softmax": (
        Case("BiasSoftmax", (f(2, 3, 4, 5), f(2, 1, 1, 5)), {"axis": 3, "is_inner_broadcast": 1}), bias_softmax
    ),
    "bias_softmax_outer": (
        Case("BiasSoftmax", (f(2, 3, 4, 5), f(4, 5)), {"axis": 2, "is_inner_broadcast": 0}), bias_softmax
    ),
    "conv": (Case("NhwcConv", (f(2, 6, 5, 3), f(4, 3, 3, 2), f(4))), convolved),
    "fused_conv": (
        Case("NhwcFusedConv", (f(2, 6, 5, 3), f(4, 3, 3, 2), None, f(2, 4, 4, 4)), {"activation": "Relu"}), convolved
    ),
    "position_bias": (
        Case("GatedRelativePositionBias", (f(2, 5, 12), f(12), f(1, 3, 5, 5), f(4, 8), f(8), f(1, 3, 1, 1)), {"num_heads": 3}),
        position_bias,
    ),
    "moe_gated": (moe(third=True, k=2, activation_type="silu"), experts),
    "moe_swiglu_beside": (moe(third=True, k=2, **SWIGLU), experts),
    "moe_swiglu_halves": (moe(2 * INNER, k=2, swiglu_fusion=2, **SWIGLU), experts),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("device", DEVICES)
def test_it_follows_its_formula(device: str, name: str) -> None:
    need(device)
    case, formula = FORMULAS[name]
    wanted = [y.astype(np.float32) for y in formula(*case.inputs, **case.attributes)]
    check(run(case, device), wanted, TOLERANCE, TOLERANCE)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (moe(k=5), "k is 5; expected 1 to the number of experts, 4"),
        (moe(k=2, use_sparse_mixer=1), "export the model without it"),
        (moe(activation_type="tanh"), "activation_type is 'tanh'; expected swiglu, relu, gelu, silu, identity"),
        (moe(activation_type="swiglu"), "swiglu_fusion = 0, no third layer"),
        (qmoe(4, quant_type="fp4"), "quant_type 'fp4', weights_prepacked -1; expected weights of integers"),
        (replace(qmoe(4), attributes={"expert_weight_bits": 4, "block_size": 16}), "in blocks of 16; expected"),
        (Case("GroupNorm", CHANNELS, {"groups": 2, "activation": 3}), "activation is 3; expected 0"),
    ],
)  # fmt: skip
def test_what_is_refused(case: Case, message: str) -> None:
    with pytest.raises(ImportFailure, match=message):
        run(case, "CPU")
