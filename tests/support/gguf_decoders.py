"""Tiny decoders as GGUF files, written by the package `gguf` from the weights of a folder of Hugging Face.

The names and the order of rows are those of llama.cpp's converter: where rotated pairs are neighbours, the rows of queries and keys are
interleaved; norms of Gemma hold 1 + weight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from singe.language.architectures import MODEL_TYPES

Form = Callable[[str, np.ndarray], Any]
"""(name, matrix) ↦ the quantisation in which a matrix is written."""


def _interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def gguf_tensors(config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    row = MODEL_TYPES[config["model_type"]]
    made: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        base, _, end = name.rpartition(".")
        new = next(m.expand(to) for rule, to in row.tensors.items() if (m := re.fullmatch(rule, base)))
        x = array
        if row.adjacent and re.fullmatch(r"blk\.\d+\.attn_[qk]", new):
            x = _interleaved(x, config["num_attention_heads" if new.endswith("q") else "num_key_value_heads"])
        if row.one_plus and new.endswith("norm"):
            x = x + np.float32(1)
        if row.transposed and new.startswith("blk.") and x.ndim == 2:
            x = x.T
        made[f"{new}.{end}"] = np.ascontiguousarray(x[:, 0] if new.endswith("shortconv.conv") else x)
    return made


def write_gguf(
    path: Path, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], form: Form | None = None, texts: Mapping[str, Any] | None = None
) -> None:  # fmt: skip
    """texts: keys of a tokenizer and a template."""
    import gguf  # noqa: PLC0415 (an index may lack it)

    row = MODEL_TYPES[config["model_type"]]
    tensors = gguf_tensors(config, weights)
    width, heads = config["hidden_size"], config["num_attention_heads"]
    layers = config["num_hidden_layers"]
    size = config.get("head_dim", width // heads)
    kv: Any = config["num_key_value_heads"]
    if row.short_convolutions:
        kv = [0 if k == "conv" else kv for k in config["layer_types"]]
    feed = next(x for name, x in tensors.items() if name.endswith("ffn_down.weight")).shape[1]
    rope = config.get("rope_scaling", {})
    facts: dict[str, Any] = {
        "block_count": layers, "context_length": config["max_position_embeddings"], "embedding_length": width,
        "feed_forward_length": feed, "attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": size,
        "attention.value_length": size, "rope.dimension_count": int(size * config.get("partial_rotary_factor", 1.0)),
        "rope.freq_base": float(config.get("rope_theta", row.defaults.get("rope_theta", 10000.0))),
        "attention.layer_norm_epsilon" if row.layer_norm else "attention.layer_norm_rms_epsilon":
            row.defaults.get("rms_norm_eps", 1e-5),
        "attention.sliding_window": config.get("sliding_window"),
        "attn_logit_softcapping": row.defaults.get("attn_logit_softcapping"),
        "final_logit_softcapping": row.defaults.get("final_logit_softcapping"),
        "embedding_scale": config.get("embedding_multiplier"), "residual_scale": config.get("residual_multiplier"),
        "attention.scale": config.get("attention_multiplier"), "logit_scale": config.get("logits_scaling"),
        "shortconv.l_cache": config.get("conv_L_cache"),
    }  # fmt: skip
    if "query_pre_attn_scalar" in config:
        facts["attention.scale"] = config["query_pre_attn_scalar"] ** -0.5
    if rope.get("rope_type") == "linear":
        facts |= {"rope.scaling.type": "linear", "rope.scaling.factor": rope["factor"]}
    if rope.get("type") == "longrope":
        before = config["original_max_position_embeddings"]
        gain = math.sqrt(1 + math.log(config["max_position_embeddings"] / before) / math.log(before))
        facts |= {"rope.scaling.original_context_length": before, "rope.scaling.attn_factor": gain}
        for which in ("short", "long"):
            tensors[f"rope_factors_{which}.weight"] = np.array(rope[f"{which}_factor"], np.float32)
    if rope.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = llama3_factors(rope, size)
    writer = gguf.GGUFWriter(str(path), row.name)
    for key, value in {**{f"{row.name}.{k}": v for k, v in facts.items() if v is not None}, **(texts or {})}.items():
        _add(writer, key, value)
    for name, x in tensors.items():
        kind = None if form is None or x.ndim != 2 or "shortconv.conv" in name else form(name, x)
        if kind is None:
            writer.add_tensor(name, x.astype(np.float32))
        else:
            writer.add_tensor(name, gguf.quants.quantize(x.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: Any, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_float32(key, value)


def llama3_factors(rope: Mapping[str, Any], size: int) -> np.ndarray:
    """The divisors of speeds that llama.cpp's converter computes."""
    made = []
    for i in range(0, size, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (i / size)
        before, factor = rope["original_max_position_embeddings"], rope["factor"]
        low, high = before / rope["low_freq_factor"], before / rope["high_freq_factor"]
        if length < high:
            made.append(1.0)
        elif length > low:
            made.append(factor)
        else:
            smooth = (before / length - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            made.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(made, np.float32)
