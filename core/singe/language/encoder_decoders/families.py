"""The families of encoder–decoder networks, one row each: what differs between them, and the names of their tensors.

An encoder reads a source, layer by layer: attention, then a feed-forward part, each added to what it was given. A decoder's layers also
attend to what the encoder made of the source. A folder that names another family is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from ...late_dataclass import dataclass


def _of_bart() -> dict[str, str]:
    """Names of tensors as BART's relatives have them ↦ ours, without ".weight" and ".bias"."""
    layer = r"model\.(en|de)coder\.layers\.(\d+)"
    return {
        r"model\.shared": "tokens",
        r"model\.(?:en|de)coder\.embed_tokens|lm_head": "",
        r"model\.(en|de)coder\.embed_positions": r"\1coder.positions",
        r"model\.(en|de)coder\.layer_norm": r"\1coder.norm",
        rf"{layer}\.self_attn\.([qkv])_proj": r"\1coder.\2.attention.\3",
        rf"{layer}\.self_attn\.out_proj": r"\1coder.\2.attention.output",
        rf"{layer}\.self_attn_layer_norm": r"\1coder.\2.attention_norm",
        rf"{layer}\.encoder_attn\.([qkv])_proj": r"\1coder.\2.cross.\3",
        rf"{layer}\.encoder_attn\.out_proj": r"\1coder.\2.cross.output",
        rf"{layer}\.encoder_attn_layer_norm": r"\1coder.\2.cross_norm",
        rf"{layer}\.fc1": r"\1coder.\2.up",
        rf"{layer}\.fc2": r"\1coder.\2.down",
        rf"{layer}\.final_layer_norm": r"\1coder.\2.forward_norm",
    }


def _of_t5() -> dict[str, str]:
    layer = r"(en|de)coder\.block\.(\d+)\.layer"
    return {
        r"shared": "tokens",
        r"(?:en|de)coder\.embed_tokens": "",
        r"lm_head": "head",
        r"(en|de)coder\.block\.0\.layer\.0\.SelfAttention\.relative_attention_bias": r"\1coder.distances",
        r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias": "",
        rf"{layer}\.0\.SelfAttention\.([qkv])": r"\1coder.\2.attention.\3",
        rf"{layer}\.0\.SelfAttention\.o": r"\1coder.\2.attention.output",
        rf"{layer}\.0\.layer_norm": r"\1coder.\2.attention_norm",
        r"decoder\.block\.(\d+)\.layer\.1\.EncDecAttention\.([qkv])": r"decoder.\1.cross.\2",
        r"decoder\.block\.(\d+)\.layer\.1\.EncDecAttention\.o": r"decoder.\1.cross.output",
        r"decoder\.block\.(\d+)\.layer\.1\.layer_norm": r"decoder.\1.cross_norm",
        rf"{layer}\.[12]\.DenseReluDense\.wi(?:_1)?": r"\1coder.\2.up",
        rf"{layer}\.[12]\.DenseReluDense\.wi_0": r"\1coder.\2.gate",
        rf"{layer}\.[12]\.DenseReluDense\.wo": r"\1coder.\2.down",
        r"encoder\.block\.(\d+)\.layer\.1\.layer_norm": r"encoder.\1.forward_norm",
        r"decoder\.block\.(\d+)\.layer\.2\.layer_norm": r"decoder.\1.forward_norm",
        r"(en|de)coder\.final_layer_norm": r"\1coder.norm",
    }


def _of_moonshine() -> dict[str, str]:
    layer = r"model\.(en|de)coder\.layers\.(\d+)"
    return {
        r"model\.decoder\.embed_tokens": "tokens",
        r"proj_out": "",
        r"model\.encoder\.conv([123])": r"encoder.conv\1",
        r"model\.encoder\.groupnorm": "encoder.sound_norm",
        r"model\.encoder\.layer_norm": "encoder.norm",
        r"model\.decoder\.norm": "decoder.norm",
        rf"{layer}\.self_attn\.([qkv])_proj": r"\1coder.\2.attention.\3",
        rf"{layer}\.self_attn\.o_proj": r"\1coder.\2.attention.output",
        rf"{layer}\.input_layernorm": r"\1coder.\2.attention_norm",
        rf"{layer}\.encoder_attn\.([qkv])_proj": r"\1coder.\2.cross.\3",
        rf"{layer}\.encoder_attn\.o_proj": r"\1coder.\2.cross.output",
        r"model\.decoder\.layers\.(\d+)\.post_attention_layernorm": r"decoder.\1.cross_norm",
        r"model\.decoder\.layers\.(\d+)\.final_layernorm": r"decoder.\1.forward_norm",
        r"model\.encoder\.layers\.(\d+)\.post_attention_layernorm": r"encoder.\1.forward_norm",
        rf"{layer}\.mlp\.fc1": r"\1coder.\2.up",
        rf"{layer}\.mlp\.fc2": r"\1coder.\2.down",
    }


_BART_SIZES: Final[Mapping[str, str]] = {
    "width": "d_model", "vocabulary": "vocab_size", "room": "max_position_embeddings", "encoder_layers": "encoder_layers",
    "encoder_heads": "encoder_attention_heads", "encoder_forward": "encoder_ffn_dim", "decoder_layers": "decoder_layers",
    "decoder_heads": "decoder_attention_heads", "decoder_forward": "decoder_ffn_dim",
}  # fmt: skip
_T5_SIZES: Final[Mapping[str, str]] = {
    "width": "d_model", "vocabulary": "vocab_size", "room": "n_positions", "encoder_layers": "num_layers", "encoder_heads": "num_heads",
    "encoder_forward": "d_ff", "decoder_layers": "num_decoder_layers", "decoder_heads": "num_heads", "decoder_forward": "d_ff",
}  # fmt: skip
_MOONSHINE_SIZES: Final[Mapping[str, str]] = {
    "width": "hidden_size", "vocabulary": "vocab_size", "room": "max_position_embeddings", "encoder_layers": "encoder_num_hidden_layers",
    "encoder_heads": "encoder_num_attention_heads", "encoder_forward": "intermediate_size",
    "decoder_layers": "decoder_num_hidden_layers", "decoder_heads": "decoder_num_attention_heads",
    "decoder_forward": "intermediate_size",
}  # fmt: skip
_T5_DEFAULTS: Final[Mapping[str, Any]] = {
    "n_positions": 512, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
}  # fmt: skip


@dataclass(frozen=True)
class PairFamily:
    """One family. name: config.json's `model_type`; tensors: its names ↦ ours, or "" for what comes twice or says nothing; defaults: what
    transformers takes where a config.json does not say it."""

    name: str
    tensors: Mapping[str, str]
    sizes: Mapping[str, str] = field(default_factory=lambda: _BART_SIZES)
    """Ours ↦ as config.json has them."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    same: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What must be so, where a config.json says it."""
    activation: tuple[str, str] = ("activation_function", "activation_function")
    """How config.json calls the functions of the feed-forward parts of the encoder and of the decoder."""
    norm_first: bool = True
    """Whether what attends is normed, and all at the end; otherwise each sum is."""
    root_mean_square: bool = False
    """Whether norms leave the mean as it is."""
    norm_bias: bool = True
    waves: int | None = None
    """Positions are waves, of which the slowest has a speed of 10000^-((n − 1) / (n − waves)) of n; None: not of waves."""
    first_position: int = 0
    relative: bool = False
    """Whether what is added to scores depends on how far two tokens are apart."""
    rotated: bool = False
    """Whether queries and keys are turned by their position."""
    scaled: bool = True
    """Whether scores are divided by the root of a head's size."""
    gated_decoder: bool = False
    """Whether the first matrix of the decoder's feed-forward part has a gate's rows after its own."""
    logit_bias: bool = False


_ROWS: Final = (
    PairFamily(
        "marian",
        _of_bart() | {"final_logits_bias": "logit_bias"},
        defaults={"max_position_embeddings": 1024, "scale_embedding": False, "tie_word_embeddings": True},
        same={
            "share_encoder_decoder_embeddings": True, "normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False,
            "add_bias_logits": False, "static_position_embeddings": True, "tie_word_embeddings": True,
        },
        norm_first=False, waves=0, logit_bias=True,
    ),
    PairFamily(
        "m2m_100",
        _of_bart(),
        defaults={"max_position_embeddings": 1024, "scale_embedding": True},
        same={"tie_word_embeddings": True},
        waves=1, first_position=2,
    ),
    *(
        PairFamily(
            name, _of_t5(), _T5_SIZES,
            {**_T5_DEFAULTS, "tie_word_embeddings": name == "t5"},
            activation=("feed_forward_proj", "feed_forward_proj"), root_mean_square=True, relative=True, scaled=False,
        )
        for name in ("t5", "mt5")
    ),
    PairFamily(
        "moonshine",
        _of_moonshine(),
        _MOONSHINE_SIZES,
        {
            "max_position_embeddings": 512, "encoder_hidden_act": "gelu", "decoder_hidden_act": "silu", "rope_theta": 10000.0,
            "partial_rotary_factor": 0.9,
        },
        {"attention_bias": False, "rope_scaling": None, "tie_word_embeddings": True},
        ("encoder_hidden_act", "decoder_hidden_act"),
        norm_bias=False, rotated=True, gated_decoder=True,
    ),
)  # fmt: skip
FAMILIES: Final[Mapping[str, PairFamily]] = {row.name: row for row in _ROWS}
"""By config.json's `model_type`."""
