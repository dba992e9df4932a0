"""PairDescription: the sizes and constants of an encoder and a decoder, from a config.json, which may hold anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from ..description import Rotation
from .families import FAMILIES, PairFamily

MAX_SIZE: Final = 1 << 21
"""The most of anything that a model may have."""
MAX_LAYERS: Final = 256
MAX_ROOM: Final = 1 << 14
MAX_PLACES: Final = 1 << 26
"""The most numbers of a table of positions, which is computed where a file has none."""
MAX_KEYS: Final = 1 << 28
"""The most elements of the keys of all layers, at as many positions as there is room for, of all texts side by side: these are states,
whatever the file holds."""
ACTIVATIONS: Final[Mapping[str, str]] = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "swish": "silu", "silu": "silu", "gated-gelu": "gelu_tanh",
    "gated-silu": "silu", "gated-relu": "relu",
}  # fmt: skip
"""A config.json's names of functions ↦ ours; those that begin with "gated-" stand for two matrices of which one is a gate."""
_GATED: Final = "gated-"


@dataclass(frozen=True)
class StackDescription:
    """The layers of an encoder or a decoder. size: of a head; forward: the width of the feed-forward part; gate: whether it has one, as "own"
    matrix, or as rows that are "joined" below those of the first."""

    layers: int
    heads: int
    size: int
    forward: int
    activation: str
    gate: str = ""


@dataclass(frozen=True)
class PairDescription:
    """room: positions of the decoder, and of the encoder where it reads texts. buckets: of distances between tokens, of which those from
    `farthest` on are one. embedding_scale: of the table's rows; head_scale: of what the table scores, where it is tied."""

    family: PairFamily
    width: int
    vocabulary: int
    room: int
    encoder: StackDescription
    decoder: StackDescription
    epsilon: float
    tied: bool
    embedding_scale: float = 1.0
    head_scale: float = 1.0
    buckets: int = 0
    farthest: int = 0
    rotation: Rotation | None = None

    @property
    def score_scale(self) -> float:
        """0 for one by the root of a head's size."""
        return 0.0 if self.family.scaled else 1.0


def of_config(config: Mapping[str, Any], name: str) -> PairDescription:
    """name: of the file, for errors."""
    kind = config.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise InputError(f"{name}: the architecture {kind!r:.60} is not known: expected one of {', '.join(FAMILIES)}")
    for key, value in family.same.items():
        if config.get(key, value) != value:
            raise FormatError(f"{name}: {key} is {config[key]!r:.60}, expected {value!r}")
    told = {**family.defaults, **config}

    def size(key: str, most: int = MAX_SIZE) -> int:
        found = told.get(key)
        if type(found) is not int or not 0 < found <= most:
            raise FormatError(f"{name}: {key} is {found!r:.40}, expected a number from 1 to {most}")
        return found

    def number(key: str, most: float) -> float:
        found = told.get(key)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found <= most:
            raise FormatError(f"{name}: {key} is {found!r:.40}, expected a number above 0, at most {most:g}")
        return float(found)

    if told.get("num_decoder_layers", 0) is None or (family.relative and "num_decoder_layers" not in told):
        told["num_decoder_layers"] = told.get("num_layers")
    sizes = {ours: size(theirs, MAX_ROOM if ours == "room" else MAX_SIZE) for ours, theirs in family.sizes.items()}
    width = sizes["width"]
    stacks = [
        _stack(told, family, sizes, part, size("d_kv") if family.relative else 0, name)
        for part in ("encoder", "decoder")
    ]
    _check_memory(sizes["room"], width, stacks, name)
    buckets = size("relative_attention_num_buckets", 1024) if family.relative else 0
    farthest = size("relative_attention_max_distance", MAX_ROOM) if family.relative else 0
    if family.relative and (buckets % 4 or farthest <= buckets // 2):
        raise FormatError(
            f"{name}: {buckets} buckets of distances up to {farthest}: expected a multiple of 4, and distances above half of it"
        )
    tied = told.get("tie_word_embeddings", True) is not False
    rotation = None
    if family.rotated:
        turned = int(stacks[0].size * number("partial_rotary_factor", 1.0))
        if turned % 2 or stacks[0].size != stacks[1].size:
            raise FormatError(
                f"{name}: {turned} elements of a head are turned, expected an even number, the same in both parts"
            )
        rotation = Rotation(number("rope_theta", 1e9), turned)
    return PairDescription(
        family, width, sizes["vocabulary"], sizes["room"], *stacks,
        epsilon=number("layer_norm_epsilon", 0.1) if family.root_mean_square else 1e-5,
        tied=tied,
        embedding_scale=math.sqrt(width) if told.get("scale_embedding") is True else 1.0,
        head_scale=width**-0.5 if family.relative and tied else 1.0,
        buckets=buckets,
        farthest=farthest,
        rotation=rotation,
    )  # fmt: skip


def _check_memory(room: int, width: int, stacks: Sequence[StackDescription], name: str) -> None:
    if room * width > MAX_PLACES:
        raise FormatError(
            f"{name}: {room} positions of a width of {width}, expected at most {MAX_PLACES} numbers in all"
        )
    for stack in stacks:
        if stack.layers * stack.heads * stack.size * room > MAX_KEYS:
            raise FormatError(
                f"{name}: {room} positions of {stack.heads} heads of {stack.size} in {stack.layers} layers, expected at most {MAX_KEYS} numbers in all"
            )


def check_room(d: PairDescription, texts: int) -> None:
    """Refuse so many texts side by side if their keys take too much memory."""
    of_one = d.decoder.layers * d.decoder.heads * d.decoder.size * d.room
    if texts * of_one > MAX_KEYS:
        raise InputError(
            f"beams: {texts} texts side by side, each of {d.room} positions in {d.decoder.layers} layers: expected at most {MAX_KEYS // of_one}"
        )


def _stack(
    config: Mapping[str, Any], family: PairFamily, sizes: Mapping[str, int], part: str, head_size: int, name: str
) -> StackDescription:
    layers, heads, width = sizes[f"{part}_layers"], sizes[f"{part}_heads"], sizes["width"]
    if layers > MAX_LAYERS or (not head_size and width % heads):
        raise FormatError(
            f"{name}: an {part} of {layers} layers with {heads} heads, a width of {width}: expected a multiple, and at most {MAX_LAYERS} layers"
        )
    if (of_keys := config.get(f"{part}_num_key_value_heads", heads)) not in (None, heads):
        raise FormatError(
            f"{name}: {part}_num_key_value_heads is {of_keys!r:.40}, expected {heads}, as many as of queries"
        )
    key = family.activation[part == "decoder"]
    act = config.get(key)
    if not isinstance(act, str) or act not in ACTIVATIONS:
        raise FormatError(f"{name}: {key} is {act!r:.40}, expected one of {', '.join(ACTIVATIONS)}")
    joined = family.gated_decoder and part == "decoder"
    gate = "own" if act.startswith(_GATED) else "joined" if joined else ""
    return StackDescription(
        layers, heads, head_size or width // heads, sizes[f"{part}_forward"], ACTIVATIONS[act], gate
    )
