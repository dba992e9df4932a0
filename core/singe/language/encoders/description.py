"""EncoderDescription: the sizes and constants of an encoder, from a config.json, which may hold anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from .families import FAMILIES, EncoderFamily

MAX_SIZE: Final = 1 << 21
"""The most of anything that a model may have."""
MAX_LAYERS: Final = 256
BUCKETS: Final = 32
"""Of distances: transformers computes them for so many, and a config.json that says another number is refused."""
ACTIVATIONS: Final[Mapping[str, str]] = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu",
}  # fmt: skip
"""A config.json's names of functions ↦ ours."""
_SAME: Final[Mapping[str, Any]] = {
    "position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False, "is_encoder_decoder": False,
}  # fmt: skip
"""What must be so, where a config.json says it."""


@dataclass(frozen=True)
class EncoderDescription:
    """forward: the width of the feed-forward part; types: how many texts of an input are told apart; first_position: the number of the first
    token's; buckets: of distances between tokens; tied: whether scores of words are products with the table of tokens."""

    family: EncoderFamily
    width: int
    layers: int
    heads: int
    forward: int
    vocabulary: int
    positions: int
    types: int
    first_position: int
    buckets: int
    epsilon: float
    activation: str
    tied: bool


def of_config(config: Mapping[str, Any], name: str) -> EncoderDescription:
    """name: of the file, for errors."""
    kind = config.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise InputError(
            f"{name}: the architecture {kind!r:.60} is not known: expected one of {', '.join(FAMILIES)}; a model of another one is read from "
            "an ONNX file"
        )
    for key, value in _SAME.items():
        if config.get(key, value) != value:
            raise FormatError(f"{name}: {key} is {config[key]!r:.60}, expected {value!r}")
    told = {**family.defaults, **config}

    def size(key: str, least: int = 1, most: int = MAX_SIZE) -> int:
        found = told.get(key)
        if type(found) is not int or not least <= found <= most:
            raise FormatError(f"{name}: {key} is {found!r:.40}, expected a number from {least} to {most}")
        return found

    sizes = {ours: size(theirs) for ours, theirs in family.sizes.items()}
    if sizes["width"] % sizes["heads"] or sizes["layers"] > MAX_LAYERS:
        raise FormatError(
            f"{name}: {sizes['layers']} layers with {sizes['heads']} heads, a width of {sizes['width']}: expected a multiple, and at most "
            f"{MAX_LAYERS} layers"
        )
    epsilon, act = told.get("layer_norm_eps"), told.get(family.activation)
    if not isinstance(epsilon, (int, float)) or not math.isfinite(epsilon) or not 0 < epsilon < 1:
        raise FormatError(f"{name}: layer_norm_eps is {epsilon!r:.40}, expected a small number")
    if not isinstance(act, str) or act not in ACTIVATIONS:
        raise FormatError(f"{name}: {family.activation} is {act!r:.40}, expected one of {', '.join(ACTIVATIONS)}")
    first = 1 + size("pad_token_id", 0, sizes["positions"] - 2) if family.after_padding else 0
    buckets = BUCKETS if family.relative else 0
    if family.relative and told.get("relative_attention_num_buckets", BUCKETS) != BUCKETS:
        raise FormatError(
            f"{name}: relative_attention_num_buckets is {told['relative_attention_num_buckets']!r:.40}, expected {BUCKETS}"
        )
    types = size("type_vocab_size") if family.typed else 0
    return EncoderDescription(
        family, **sizes, types=types, first_position=first, buckets=buckets, epsilon=float(epsilon),
        activation=ACTIVATIONS[act], tied=config.get("tie_word_embeddings", True) is not False,
    )  # fmt: skip
