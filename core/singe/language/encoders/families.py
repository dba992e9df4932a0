"""The families of encoders, one row each: what differs between them. Everything else is as in BERT.

An encoder is a table of tokens, positions and types, normed, then layers of attention and of a feed-forward part, each added to what it
was given and normed. A folder that names another family is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from ...late_dataclass import dataclass

_SIZES: Final[Mapping[str, str]] = {
    "width": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads", "forward": "intermediate_size",
    "vocabulary": "vocab_size", "positions": "max_position_embeddings",
}  # fmt: skip
_DEFAULTS: Final[Mapping[str, Any]] = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512,
    "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0,
}  # fmt: skip


def _layers(prefix: str) -> dict[str, str]:
    """Names of tensors as BERT's, and those of its relatives, have them ↦ those of `TextEncoder`, without ".weight" and ".bias"."""
    layer = rf"(?:{prefix}\.)?encoder\.layer\.(\d+)"
    return {
        rf"(?:{prefix}\.)?embeddings\.word_embeddings": "tokens",
        rf"(?:{prefix}\.)?embeddings\.position_embeddings": "positions",
        rf"(?:{prefix}\.)?embeddings\.LayerNorm": "norm",
        rf"{layer}\.attention\.output\.dense": r"\1.output",
        rf"{layer}\.attention\.output\.LayerNorm": r"\1.attention_norm",
        rf"{layer}\.intermediate\.dense": r"\1.up",
        rf"{layer}\.output\.dense": r"\1.down",
        rf"{layer}\.output\.LayerNorm": r"\1.forward_norm",
    }


def _of_bert(prefix: str) -> dict[str, str]:
    layer = rf"(?:{prefix}\.)?encoder\.layer\.(\d+)"
    return _layers(prefix) | {
        rf"(?:{prefix}\.)?embeddings\.token_type_embeddings": "types",
        rf"{layer}\.attention\.self\.(query|key|value)": r"\1.\2",
    }


_ROBERTA_HEADS: Final[Mapping[str, str]] = {
    r"(?:\w+\.)?pooler\.dense": "pooler",
    r"classifier\.dense": "classes.dense",
    r"classifier(?:\.out_proj)?": "classes.output",
    r"lm_head\.dense": "words.dense",
    r"lm_head\.layer_norm": "words.norm",
    r"lm_head(?:\.decoder)?": "words.output",
}


@dataclass(frozen=True)
class EncoderFamily:
    """One family. name: config.json's `model_type`; model: how the classes of its models begin, which config.json's `architectures` names."""

    name: str
    model: str
    tensors: Mapping[str, str]
    sizes: Mapping[str, str] = field(default_factory=lambda: _SIZES)
    """Ours ↦ as config.json has them."""
    defaults: Mapping[str, Any] = field(default_factory=lambda: _DEFAULTS)
    """What transformers takes where a config.json does not say it."""
    activation: str = "hidden_act"
    """How config.json calls the function of the feed-forward part."""
    typed: bool = True
    """Whether a table tells the first text of a pair from the second."""
    after_padding: bool = False
    """Whether the first position is the one after the padding token's number."""
    relative: bool = False
    """Whether what is added to scores depends on how far two tokens are apart."""
    class_activation: str = "tanh"
    """The function before the scores of classes."""


_ROWS: Final = (
    EncoderFamily(
        "bert", "Bert",
        _of_bert("bert") | {
            r"(?:bert\.)?pooler\.dense": "classes.dense",
            r"classifier": "classes.output",
            r"cls\.predictions\.transform\.dense": "words.dense",
            r"cls\.predictions\.transform\.LayerNorm": "words.norm",
            r"cls\.predictions(?:\.decoder)?": "words.output",
            r"cls\.seq_relationship": "pooler",
        },
    ),
    EncoderFamily(
        "distilbert", "DistilBert",
        {
            r"(?:distilbert\.)?embeddings\.word_embeddings": "tokens",
            r"(?:distilbert\.)?embeddings\.position_embeddings": "positions",
            r"(?:distilbert\.)?embeddings\.LayerNorm": "norm",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.attention\.q_lin": r"\1.query",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.attention\.k_lin": r"\1.key",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.attention\.v_lin": r"\1.value",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.attention\.out_lin": r"\1.output",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.sa_layer_norm": r"\1.attention_norm",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.ffn\.lin1": r"\1.up",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.ffn\.lin2": r"\1.down",
            r"(?:distilbert\.)?transformer\.layer\.(\d+)\.output_layer_norm": r"\1.forward_norm",
            r"pre_classifier": "classes.dense",
            r"classifier": "classes.output",
            r"vocab_transform": "words.dense",
            r"vocab_layer_norm": "words.norm",
            r"vocab_projector": "words.output",
        },
        {
            "width": "dim", "layers": "n_layers", "heads": "n_heads", "forward": "hidden_dim", "vocabulary": "vocab_size",
            "positions": "max_position_embeddings",
        },
        {"dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512, "activation": "gelu", "layer_norm_eps": 1e-12},
        activation="activation", typed=False, class_activation="relu",
    ),
    *(
        EncoderFamily(
            name, model, _of_bert("(?:roberta|camembert)") | _ROBERTA_HEADS, after_padding=True, defaults=_DEFAULTS | {"pad_token_id": 1}
        )
        for name, model in (("roberta", "Roberta"), ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))
    ),
    EncoderFamily(
        "mpnet", "MPNet",
        _layers("mpnet") | _ROBERTA_HEADS | {
            r"(?:mpnet\.)?encoder\.layer\.(\d+)\.attention\.attn\.q": r"\1.query",
            r"(?:mpnet\.)?encoder\.layer\.(\d+)\.attention\.attn\.k": r"\1.key",
            r"(?:mpnet\.)?encoder\.layer\.(\d+)\.attention\.attn\.v": r"\1.value",
            r"(?:mpnet\.)?encoder\.layer\.(\d+)\.attention\.attn\.o": r"\1.output",
            r"(?:mpnet\.)?encoder\.layer\.(\d+)\.attention\.LayerNorm": r"\1.attention_norm",
            r"(?:mpnet\.)?encoder\.relative_attention_bias": "distances",
        },
        defaults=_DEFAULTS | {"pad_token_id": 1},
        typed=False, after_padding=True, relative=True,
    ),
)  # fmt: skip
FAMILIES: Final[Mapping[str, EncoderFamily]] = {row.name: row for row in _ROWS}
"""By config.json's `model_type`."""
