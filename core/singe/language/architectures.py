"""The families of decoders, one row each: what differs between them. Everything else is as in Llama.

A decoder is a table of embeddings, layers of a mixer (attention, or a short convolution) and a gated feed-forward part, each with its
norms and added to what goes on, a last norm, and scores of all tokens. A file that names another family is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from ..late_dataclass import dataclass

_LLAMA_TENSORS: Final[Mapping[str, str]] = {
    r"model\.embed_tokens": "token_embd",
    r"model\.norm": "output_norm",
    r"lm_head": "output",
    r"model\.layers\.(\d+)\.self_attn\.([qkv])_proj": r"blk.\1.attn_\2",
    r"model\.layers\.(\d+)\.self_attn\.o_proj": r"blk.\1.attn_output",
    r"model\.layers\.(\d+)\.self_attn\.([qk])_norm": r"blk.\1.attn_\2_norm",
    r"model\.layers\.(\d+)\.mlp\.(gate|up|down)_proj": r"blk.\1.ffn_\2",
    r"model\.layers\.(\d+)\.input_layernorm": r"blk.\1.attn_norm",
    r"model\.layers\.(\d+)\.post_attention_layernorm": r"blk.\1.ffn_norm",
}
"""Names of tensors in folders of Hugging Face ↦ those in GGUF, without ".weight" and ".bias"."""
_NORMS_AROUND: Final[Mapping[str, str]] = _LLAMA_TENSORS | {
    r"model\.layers\.(\d+)\.post_attention_layernorm": r"blk.\1.post_attention_norm",
    r"model\.layers\.(\d+)\.pre_feedforward_layernorm": r"blk.\1.ffn_norm",
    r"model\.layers\.(\d+)\.post_feedforward_layernorm": r"blk.\1.post_ffw_norm",
}


@dataclass(frozen=True)
class Architecture:
    """One family. name: in GGUF. model_type: in config.json, if it is another word there."""

    name: str
    model_type: str = ""
    adjacent: bool = False
    """Whether rotated pairs are neighbours in GGUF, whose converter permutes queries and keys; in config.json's folders they are halves."""
    learned_positions: bool = False
    """A table of positions in place of rotations."""
    layer_norm: bool = False
    """Norms that subtract the mean and have a bias, in place of root-mean-square norms."""
    norms_before: bool = True
    norms_after: bool = False
    """Norms of what a part makes, before it is added."""
    head_norms: str = ""
    """Norms of queries and keys before they are rotated: "head" for each head, "all" over all heads, "" for none."""
    one_plus: bool = False
    """Whether safetensors hold a norm's weight less 1 (GGUF holds the weight itself)."""
    fused: bool = False
    """Queries, keys and values in one matrix."""
    fused_gate: bool = False
    """Gate and up in one matrix, the gate first."""
    gated: bool = True
    activation: str = "silu"
    transposed: bool = False
    """Whether safetensors hold matrices as (inputs, outputs)."""
    scaled_embedding: bool = False
    """Embeddings times the root of their width."""
    rotated_unless: int = 0
    """Every so manieth layer has no rotations; 0: all have them."""
    local_layers: int = 0
    """With a window: of so many layers, the last one sees everything; 1: all layers have the window."""
    local_base: float = 0.0
    """The base of rotations in layers with a window; 0: as elsewhere."""
    wide_scale_layers: int = 0
    """With so many layers, GGUF's scale of scores is that of width / heads, not that of a key's size (Gemma 27B)."""
    short_convolutions: bool = False
    """Whether some layers have a short convolution in place of attention."""
    last_norm: str = "output_norm"
    tied: bool = False
    """Whether a config.json that does not say so ties the scores to the embeddings."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What transformers takes where a config.json does not say it."""
    tensors: Mapping[str, str] = field(default_factory=lambda: _LLAMA_TENSORS)


_ROWS: Final = (
    Architecture("llama", adjacent=True, defaults={"rms_norm_eps": 1e-6}),
    Architecture(
        "smollm3", adjacent=True, rotated_unless=4, tied=True, defaults={"rms_norm_eps": 1e-6, "rope_theta": 2e6},
    ),
    Architecture("qwen2", defaults={"rms_norm_eps": 1e-6}),
    Architecture("qwen3", head_norms="head", defaults={"rms_norm_eps": 1e-6, "head_dim": 128}),
    Architecture(
        "gemma2", norms_after=True, one_plus=True, activation="gelu", scaled_embedding=True, local_layers=2, wide_scale_layers=46,
        tied=True,
        defaults={
            "rms_norm_eps": 1e-6, "head_dim": 256, "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
            "sliding_window": 4096, "hidden_activation": "gelu_pytorch_tanh",
        },
        tensors=_NORMS_AROUND,
    ),
    Architecture(
        "gemma3", "gemma3_text", norms_after=True, head_norms="head", one_plus=True, activation="gelu", scaled_embedding=True,
        local_layers=6, local_base=10000.0, wide_scale_layers=62, tied=True,
        defaults={
            "rms_norm_eps": 1e-6, "head_dim": 256, "query_pre_attn_scalar": 256, "rope_theta": 1e6, "sliding_window": 4096,
            "hidden_activation": "gelu_pytorch_tanh",
        },
        tensors=_NORMS_AROUND,
    ),
    Architecture(
        "phi3", fused=True, fused_gate=True, local_layers=1,
        tensors=_LLAMA_TENSORS | {
            r"model\.layers\.(\d+)\.self_attn\.qkv_proj": r"blk.\1.attn_qkv",
            r"model\.layers\.(\d+)\.mlp\.gate_up_proj": r"blk.\1.ffn_up",
        },
    ),
    Architecture("granite", adjacent=True, defaults={"rms_norm_eps": 1e-6}),
    Architecture("olmo2", norms_before=False, norms_after=True, head_norms="all", tensors=_NORMS_AROUND),
    Architecture(
        "lfm2", head_norms="head", short_convolutions=True, last_norm="token_embd_norm", tied=True,
        defaults={"norm_eps": 1e-5, "rope_theta": 1e6, "conv_L_cache": 3, "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0},
        tensors=_LLAMA_TENSORS | {
            r"model\.embedding_norm": "token_embd_norm",
            r"model\.layers\.(\d+)\.operator_norm": r"blk.\1.attn_norm",
            r"model\.layers\.(\d+)\.self_attn\.out_proj": r"blk.\1.attn_output",
            r"model\.layers\.(\d+)\.self_attn\.([qk])_layernorm": r"blk.\1.attn_\2_norm",
            r"model\.layers\.(\d+)\.conv\.(conv|in_proj|out_proj)": r"blk.\1.shortconv.\2",
            r"model\.layers\.(\d+)\.feed_forward\.w1": r"blk.\1.ffn_gate",
            r"model\.layers\.(\d+)\.feed_forward\.w2": r"blk.\1.ffn_down",
            r"model\.layers\.(\d+)\.feed_forward\.w3": r"blk.\1.ffn_up",
            r"model\.layers\.(\d+)\.ffn_norm": r"blk.\1.ffn_norm",
        },
    ),
    Architecture(
        "gpt2", learned_positions=True, layer_norm=True, fused=True, gated=False, activation="gelu", transposed=True, tied=True,
        defaults={"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
        tensors={
            r"(?:transformer\.)?wte": "token_embd",
            r"(?:transformer\.)?wpe": "position_embd",
            r"(?:transformer\.)?ln_f": "output_norm",
            r"lm_head": "output",
            r"(?:transformer\.)?h\.(\d+)\.ln_1": r"blk.\1.attn_norm",
            r"(?:transformer\.)?h\.(\d+)\.ln_2": r"blk.\1.ffn_norm",
            r"(?:transformer\.)?h\.(\d+)\.attn\.c_attn": r"blk.\1.attn_qkv",
            r"(?:transformer\.)?h\.(\d+)\.attn\.c_proj": r"blk.\1.attn_output",
            r"(?:transformer\.)?h\.(\d+)\.mlp\.c_fc": r"blk.\1.ffn_up",
            r"(?:transformer\.)?h\.(\d+)\.mlp\.c_proj": r"blk.\1.ffn_down",
        },
    ),
)  # fmt: skip
ARCHITECTURES: Final[Mapping[str, Architecture]] = {row.name: row for row in _ROWS}
"""By the name in GGUF's `general.architecture`."""
MODEL_TYPES: Final[Mapping[str, Architecture]] = {row.model_type or row.name: row for row in _ROWS} | {
    "mistral": ARCHITECTURES["llama"]
}
"""By the name in config.json's `model_type`."""
