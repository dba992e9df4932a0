"""WhisperDescription: the sizes of a Whisper model and what its files say of tokens, from a folder of Hugging Face or of CTranslate2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from ...weights.stored import StoredArray, Weights

MAX_SIZE: Final = 1 << 20
"""The most of anything that a model may have."""
MAX_LAYERS: Final = 256


@dataclass(frozen=True)
class WhisperDescription:
    """bands: of the spectrogram; positions: of the encoder, each two frames; room: of the decoder. forward sizes: of the layers between.

    suppressed: tokens that are never said; suppressed_first: those with which no text begins. alignment: (layer, head) of the heads that
    follow the sound."""

    width: int
    bands: int
    positions: int
    room: int
    vocabulary: int
    encoder_layers: int
    encoder_heads: int
    encoder_forward: int
    decoder_layers: int
    decoder_heads: int
    decoder_forward: int
    suppressed: Sequence[int] = ()
    suppressed_first: Sequence[int] = ()
    alignment: Sequence[tuple[int, int]] = ()

    @property
    def following(self) -> Sequence[tuple[int, int]]:
        """Those heads; where the files do not name them, all of the later half of the layers."""
        later = range(self.decoder_layers // 2, self.decoder_layers)
        return self.alignment or [(layer, head) for layer in later for head in range(self.decoder_heads)]

    @property
    def frames(self) -> int:
        """Of a window."""
        return 2 * self.positions


_CONFIG: Final[Mapping[str, str]] = {
    "width": "d_model", "bands": "num_mel_bins", "positions": "max_source_positions", "room": "max_target_positions",
    "vocabulary": "vocab_size", "encoder_layers": "encoder_layers", "encoder_heads": "encoder_attention_heads",
    "encoder_forward": "encoder_ffn_dim", "decoder_layers": "decoder_layers", "decoder_heads": "decoder_attention_heads",
    "decoder_forward": "decoder_ffn_dim",
}  # fmt: skip
_SAME: Final[Mapping[str, Any]] = {"activation_function": "gelu", "scale_embedding": False}


def of_config(config: Mapping[str, Any], generation: Mapping[str, Any], name: str) -> WhisperDescription:
    """From config.json and generation_config.json, which may be empty."""
    if config.get("model_type") != "whisper":
        raise InputError(f"{name}: model_type is {config.get('model_type')!r:.60}, expected 'whisper'")
    for key, value in _SAME.items():
        if config.get(key, value) != value:
            raise FormatError(f"{name}: {key} is {config[key]!r:.60}, expected {value!r}")
    sizes = {ours: _size(config.get(theirs), f"{name}: {theirs}") for ours, theirs in _CONFIG.items()}
    told = {**config, **generation}
    return _checked(
        WhisperDescription(
            **sizes,
            suppressed=_tokens(told.get("suppress_tokens"), f"{name}: suppress_tokens"),
            suppressed_first=_tokens(told.get("begin_suppress_tokens"), f"{name}: begin_suppress_tokens"),
            alignment=_pairs(told.get("alignment_heads"), f"{name}: alignment_heads"),
        ),
        name,
    )


def of_ctranslate2(weights: Weights, config: Mapping[str, Any], name: str) -> WhisperDescription:
    """From the arrays of a model.bin and the config.json beside it."""
    if weights.metadata["spec"] != "WhisperSpec":
        raise InputError(f"{name}: a model of the kind {weights.metadata['spec']!r:.60}, expected 'WhisperSpec'")
    stored = weights.stored

    def sizes(key: str, count: int) -> tuple[int, ...]:
        found = stored.get(key)
        if found is None or len(found.shape) != count:
            raise FormatError(f"{name}: {key} is {found and found.shape}, expected an array of {count} axes")
        return found.shape

    def layers(part: str) -> int:
        return next(k for k in range(MAX_LAYERS + 1) if f"{part}/layer_{k}/ffn/linear_0/weight" not in stored)

    width, bands, _ = sizes("encoder/conv1/weight", 3)
    return _checked(
        WhisperDescription(
            width, bands, sizes("encoder/position_encodings/encodings", 2)[0],
            sizes("decoder/position_encodings/encodings", 2)[0], sizes("decoder/embeddings/weight", 2)[0],
            layers("encoder"), _number(stored, "encoder/num_heads", name), sizes("encoder/layer_0/ffn/linear_0/weight", 2)[0],
            layers("decoder"), _number(stored, "decoder/num_heads", name), sizes("decoder/layer_0/ffn/linear_0/weight", 2)[0],
            _tokens(config.get("suppress_ids"), f"{name}: suppress_ids"),
            _tokens(config.get("suppress_ids_begin"), f"{name}: suppress_ids_begin"),
            _pairs(config.get("alignment_heads"), f"{name}: alignment_heads"),
        ), name,
    )  # fmt: skip


def _checked(d: WhisperDescription, name: str) -> WhisperDescription:
    for part, heads, layers in (
        ("encoder", d.encoder_heads, d.encoder_layers),
        ("decoder", d.decoder_heads, d.decoder_layers),
    ):
        if d.width % heads or layers > MAX_LAYERS:
            raise FormatError(
                f"{name}: an {part} of {layers} layers with {heads} heads, a width of {d.width}: expected a multiple"
            )
    wrong = [t for t in (*d.suppressed, *d.suppressed_first) if t >= d.vocabulary]
    heads = [x for x in d.alignment if x[0] >= d.decoder_layers or x[1] >= d.decoder_heads]
    if wrong or heads:
        raise FormatError(f"{name}: names {(wrong or heads)[0]}, which the model has not")
    return d


def _size(value: Any, name: str) -> int:
    if type(value) is not int or not 0 < value <= MAX_SIZE:
        raise FormatError(f"{name} is {value!r:.40}, expected a number from 1 to {MAX_SIZE}")
    return value


def _number(stored: Mapping[str, StoredArray], key: str, name: str) -> int:
    found = stored.get(key)
    if found is None or found.shape != () or found.dtype.is_float:
        raise FormatError(f"{name}: {key} is not a whole number")
    return _size(int(found.read()), f"{name}: {key}")


def _tokens(value: Any, name: str) -> tuple[int, ...]:
    """−1, which stands for a list that the file does not have, is left out."""
    found: Any = [] if value is None else value
    if not isinstance(found, list) or not all(type(x) is int and -1 <= x < MAX_SIZE for x in found):
        raise FormatError(f"{name} is {value!r:.60}, expected a list of tokens")
    return tuple(x for x in found if x >= 0)


def _pairs(value: Any, name: str) -> tuple[tuple[int, int], ...]:
    found: Any = [] if value is None else value
    if not isinstance(found, list) or not all(
        isinstance(x, list) and len(x) == 2 and all(type(n) is int and 0 <= n < MAX_LAYERS for n in x) for x in found
    ):
        raise FormatError(f"{name} is {value!r:.60}, expected pairs of a layer and a head")
    return tuple((x[0], x[1]) for x in found)
