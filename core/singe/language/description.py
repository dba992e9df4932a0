"""What a decoder is: its sizes and constants, as the metadata of a GGUF file or a config.json says them.

Every number is checked against a limit before anything is made of it, and what would change the numbers but is not known (an
architecture, a scaling of rotations, an activation) is refused by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import FormatError
from ..late_dataclass import dataclass
from .architectures import ARCHITECTURES, MODEL_TYPES, Architecture

MAX_LAYERS: Final = 1024
MAX_WIDTH: Final = 1 << 20
"""The most elements of a vector inside a decoder, and the most heads."""
MAX_VOCABULARY: Final = 1 << 22
MAX_CONTEXT: Final = 1 << 24
MAX_SHORT_CONVOLUTION: Final = 64
ACTIVATIONS: Final[Mapping[str, str]] = {"silu": "silu", "gelu_pytorch_tanh": "gelu", "gelu_new": "gelu"}
"""The activations of config.json, and what the rows call them."""


@dataclass(frozen=True)
class Rotation:
    """How queries and keys are rotated: the angle of pair i at position p is p / divide · base^(−2i / size) / factors[i]; cosines and
    sines are multiplied by `gain`. factors: one for each pair, or none."""

    base: float
    size: int
    divide: float = 1.0
    factors: tuple[float, ...] = ()
    gain: float = 1.0


@dataclass(frozen=True)
class LayerDescription:
    """One layer. window: how many positions, its own included, a query sees; None for all. kv_heads 0: a short convolution."""

    kv_heads: int
    window: int | None
    rotation: Rotation | None


@dataclass(frozen=True)
class DecoderDescription:
    """See the module's docstring. `context`: the positions for which the model was trained."""

    architecture: Architecture
    vocabulary: int
    context: int
    width: int
    feed_forward: int
    heads: int
    key_size: int
    value_size: int
    epsilon: float
    score_scale: float
    layers: tuple[LayerDescription, ...]
    adjacent: bool
    """Whether rotated pairs are neighbours."""
    score_cap: float = 0.0
    logit_cap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_divisor: float = 1.0
    convolution: int = 0
    """The length of short convolutions."""

    @property
    def rewinds(self) -> bool:
        """Whether the states of earlier positions are kept, so that later ones can be dropped."""
        return all(layer.kv_heads for layer in self.layers)


class Facts:
    """Numbers of a file by key, each checked when it is asked for; errors name the file and the key."""

    def __init__(self, values: Mapping[str, Any], name: str) -> None:
        self.values, self.name = values, name

    def fault(self, key: str, expected: str) -> FormatError:
        got = self.values.get(key)
        return FormatError(f"{self.name}: {key} is {got!r:.80}, expected {expected}")

    def first(self, keys: Sequence[str]) -> str | None:
        """The first of these keys that has a value."""
        return next((k for k in keys if self.values.get(k) is not None), None)

    def whole(self, *keys: str, most: int, least: int = 1, default: int | None = None) -> int:
        key = self.first(keys)
        if key is None:
            if default is None:
                raise FormatError(f"{self.name}: {keys[0]} is missing, expected a whole number from {least} to {most}")
            return default
        value = self.values[key]
        if type(value) is not int or not least <= value <= most:
            raise self.fault(key, f"a whole number from {least} to {most}")
        return value

    def number(self, *keys: str, default: float | None = None) -> float:
        key = self.first(keys)
        if key is None:
            if default is None:
                raise FormatError(f"{self.name}: {keys[0]} is missing, expected a number")
            return default
        value = self.values[key]
        if type(value) not in (int, float) or not math.isfinite(value):
            raise self.fault(key, "a finite number")
        return float(value)

    def positive(self, *keys: str, default: float | None = None) -> float:
        found = self.number(*keys, default=default)
        if found <= 0:
            raise self.fault(self.first(keys) or keys[0], "a number above 0")
        return found

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        if value is not None and type(value) is not bool:
            raise self.fault(key, "true or false")
        return default if value is None else value

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.fault(key, "a word")
        return default if value is None else value

    def numbers(self, key: str, count: int, kind: type[float] | type[int]) -> list[Any]:
        """A list of so many numbers."""
        value = self.values.get(key)
        kinds = (int,) if kind is int else (int, float)
        if not isinstance(value, list) or len(value) != count or not all(type(v) in kinds for v in value):
            raise self.fault(key, f"a list of {count} numbers")
        return value

    def words(self, key: str, count: int) -> list[str]:
        """A list of so many words; empty ones if there is none."""
        value = self.values.get(key)
        if value is None:
            return [""] * count
        if not isinstance(value, list) or len(value) != count or not all(isinstance(v, str) for v in value):
            raise self.fault(key, f"a list of {count} words")
        return value

    def inner(self, key: str) -> Facts:
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.fault(key, "an object")
        return Facts(value or {}, f"{self.name}, {key}")


def _even(size: int, most: int, name: str) -> int:
    if size % 2 or size > most:
        raise FormatError(f"{name}: {size} elements of a head are rotated, expected an even number up to {most}")
    return size


def _unknown(name: str, what: str, got: str, known: Sequence[str]) -> FormatError:
    return FormatError(f"{name}: {what} {got!r:.80}, which Singe does not know; it knows {', '.join(known)}")


def _windows(row: Architecture, layers: int, window: int, context: int, name: str) -> list[int | None]:
    """The window of each layer. window: 0 for none."""
    if not window or window >= context:
        return [None] * layers
    if not row.local_layers:
        raise FormatError(
            f"{name}: {row.name} with a window of {window} positions, which Singe does not know of this architecture; load it with "
            f"context={window} or less"
        )
    return [window if row.local_layers == 1 or (i + 1) % row.local_layers else None for i in range(layers)]


def _layers(
    row: Architecture,
    windows: Sequence[int | None],
    kv_heads: Sequence[int],
    rotated: Sequence[bool],
    rotation: Rotation,
    local: Rotation,
) -> tuple[LayerDescription, ...]:
    return tuple(
        LayerDescription(kv, window, None if row.learned_positions or not turns else local if window else rotation)
        for window, kv, turns in zip(windows, kv_heads, rotated, strict=True)
    )


def _check_heads(name: str, heads: int, kv_heads: Sequence[int]) -> None:
    if any(kv and heads % kv for kv in kv_heads):
        raise FormatError(f"{name}: {heads} heads of queries and {max(kv_heads)} of keys, expected a multiple")


# --- GGUF ------------------------------------------------------------------------------------------------------------


def of_gguf(
    metadata: Mapping[str, Any],
    vector: Callable[[str, int], tuple[float, ...]],
    vocabulary: int,
    context: int,
    name: str,
) -> DecoderDescription:
    """metadata: of a GGUF file. vector: gives a tensor of so many numbers, or nothing if the file has none of this name.
    context: the positions for which room will be made. name: of the file, for errors."""
    kind = Facts(metadata, name).text("general.architecture")
    row = ARCHITECTURES.get(kind)
    if row is None:
        raise _unknown(name, "the architecture", kind, list(ARCHITECTURES))
    facts = Facts({k.removeprefix(f"{kind}."): v for k, v in metadata.items()}, f"{name}, {kind}")
    layers = facts.whole("block_count", most=MAX_LAYERS)
    width = facts.whole("embedding_length", most=MAX_WIDTH)
    heads = facts.whole("attention.head_count", most=MAX_WIDTH)
    if isinstance(metadata.get(f"{kind}.attention.head_count_kv"), list):
        kv_heads = facts.numbers("attention.head_count_kv", layers, int)
        if not all(0 <= kv <= heads for kv in kv_heads):
            raise facts.fault("attention.head_count_kv", f"numbers from 0 to {heads}")
    else:
        kv_heads = [facts.whole("attention.head_count_kv", most=heads, default=heads)] * layers
    if not row.short_convolutions and 0 in kv_heads:
        raise facts.fault("attention.head_count_kv", "a head of keys in each layer")
    _check_heads(name, heads, kv_heads)
    key_size = facts.whole("attention.key_length", most=MAX_WIDTH, default=max(width // heads, 1))
    trained = facts.whole("context_length", most=MAX_CONTEXT, default=context)
    turned = _even(facts.whole("rope.dimension_count", most=MAX_WIDTH, default=key_size), key_size, facts.name)
    base = facts.positive("rope.freq_base", default=10000.0)
    rotation = Rotation(base, turned, *_gguf_scaling(facts, vector, turned, context))
    windows = _windows(
        row, layers, facts.whole("attention.sliding_window", most=MAX_CONTEXT, least=0, default=0), context, name
    )
    local = Rotation(row.local_base, turned) if row.local_base else rotation
    rotated = [not row.rotated_unless or (i + 1) % row.rotated_unless != 0 for i in range(layers)]
    wide = width // heads if layers == row.wide_scale_layers else key_size
    return DecoderDescription(
        architecture=row,
        vocabulary=vocabulary,
        context=trained,
        width=width,
        feed_forward=facts.whole("feed_forward_length", most=MAX_WIDTH),
        heads=heads,
        key_size=key_size,
        value_size=facts.whole("attention.value_length", most=MAX_WIDTH, default=key_size),
        epsilon=facts.positive(*_EPSILONS, default=1e-5),
        score_scale=facts.positive("attention.scale", default=wide**-0.5),
        layers=_layers(row, windows, kv_heads, rotated, rotation, local),
        adjacent=row.adjacent,
        score_cap=facts.number("attn_logit_softcapping", default=0.0),
        logit_cap=facts.number("final_logit_softcapping", default=0.0),
        embedding_scale=math.sqrt(width) if row.scaled_embedding else facts.number("embedding_scale", default=1.0),
        residual_scale=facts.number("residual_scale", default=1.0),
        logit_divisor=facts.positive("logit_scale", default=1.0),
        convolution=facts.whole("shortconv.l_cache", most=MAX_SHORT_CONVOLUTION, least=2)
        if row.short_convolutions
        else 0,
    )


_EPSILONS: Final = (
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "rms_norm_eps",
    "norm_eps",
    "layer_norm_epsilon",
)


def _gguf_scaling(
    facts: Facts, vector: Callable[[str, int], tuple[float, ...]], turned: int, context: int
) -> tuple[float, tuple[float, ...], float]:
    """What positions are divided by, the factors of pairs, and the gain."""
    kind = facts.text("rope.scaling.type", "none")
    if kind not in ("none", "linear", "longrope"):
        raise _unknown(facts.name, "rope.scaling.type is", kind, ("none", "linear", "longrope"))
    divide = facts.positive("rope.scaling.factor", default=1.0) if kind == "linear" else 1.0
    before = facts.whole("rope.scaling.original_context_length", most=MAX_CONTEXT, default=context)
    factors = vector("rope_freqs.weight", turned // 2) or vector(
        "rope_factors_long.weight" if context > before else "rope_factors_short.weight", turned // 2
    )
    return divide, factors, facts.positive("rope.scaling.attn_factor", default=1.0)


# --- config.json -----------------------------------------------------------------------------------------------------


def of_config(config: Mapping[str, Any], context: int, name: str) -> DecoderDescription:
    """config: the contents of a config.json."""
    facts = Facts(config, name)
    kind = facts.text("model_type")
    row = MODEL_TYPES.get(kind)
    if row is None:
        raise _unknown(name, "model_type is", kind, list(MODEL_TYPES))
    facts = Facts({**row.defaults, **config}, name)
    layers = facts.whole("num_hidden_layers", "n_layer", most=MAX_LAYERS)
    width = facts.whole("hidden_size", "n_embd", most=MAX_WIDTH)
    heads = facts.whole("num_attention_heads", "n_head", most=MAX_WIDTH)
    kinds = facts.words("layer_types", layers)
    kv = facts.whole("num_key_value_heads", most=heads, default=heads)
    kv_heads = [0 if k == "conv" else kv for k in kinds]
    _check_heads(name, heads, kv_heads)
    key_size = facts.whole("head_dim", most=MAX_WIDTH, default=max(width // heads, 1))
    trained = facts.whole("max_position_embeddings", "n_positions", most=MAX_CONTEXT, default=context)
    activation = (
        facts.text("hidden_activation") or facts.text("hidden_act") or facts.text("activation_function", "silu")
    )
    if ACTIVATIONS.get(activation) != row.activation:
        raise _unknown(
            name, f"{kind} with the activation", activation, [k for k, v in ACTIVATIONS.items() if v == row.activation]
        )
    newer = facts.inner("rope_parameters")
    if "full_attention" in newer.values:
        newer = newer.inner("full_attention")
    older = facts.inner("rope_scaling")
    scaling = older if older.values else newer
    partial = facts.positive("partial_rotary_factor", default=newer.positive("partial_rotary_factor", default=1.0))
    turned = _even(int(key_size * partial), key_size, name)
    base = newer.positive("rope_theta", default=facts.positive("rope_theta", default=10000.0))
    rotation = Rotation(base, turned, *_config_scaling(facts, scaling, base, turned, trained, context))
    local = (
        Rotation(facts.positive("rope_local_base_freq", default=row.local_base or base), turned)
        if row.local_base
        else rotation
    )
    windows = _config_windows(row, facts, kinds, context)
    rotated = [not row.rotated_unless or (i + 1) % row.rotated_unless != 0 for i in range(layers)]
    if "no_rope_layers" in config:
        rotated = [bool(v) for v in facts.numbers("no_rope_layers", layers, int)]
    scalar = facts.positive("query_pre_attn_scalar", default=float(key_size))
    return DecoderDescription(
        architecture=row,
        vocabulary=facts.whole("vocab_size", most=MAX_VOCABULARY),
        context=trained,
        width=width,
        feed_forward=_feed_forward(facts, row, width),
        heads=heads,
        key_size=key_size,
        value_size=key_size,
        epsilon=facts.positive(*_EPSILONS, default=1e-5),
        score_scale=facts.positive("attention_multiplier", default=scalar**-0.5),
        layers=_layers(row, windows, kv_heads, rotated, rotation, local),
        adjacent=False,
        score_cap=facts.number("attn_logit_softcapping", default=0.0),
        logit_cap=facts.number("final_logit_softcapping", default=0.0),
        embedding_scale=math.sqrt(width) if row.scaled_embedding else facts.number("embedding_multiplier", default=1.0),
        residual_scale=facts.number("residual_multiplier", default=1.0),
        logit_divisor=facts.positive("logits_scaling", default=1.0),
        convolution=facts.whole("conv_L_cache", most=MAX_SHORT_CONVOLUTION, least=2) if row.short_convolutions else 0,
    )


def _feed_forward(facts: Facts, row: Architecture, width: int) -> int:
    if not row.short_convolutions:
        return facts.whole("intermediate_size", "n_inner", most=MAX_WIDTH, default=4 * width)
    wide = facts.whole("block_ff_dim", "intermediate_size", most=MAX_WIDTH)
    if not facts.flag("block_auto_adjust_ff_dim", default=True):
        return wide
    each = facts.whole("block_multiple_of", most=MAX_WIDTH, default=256)
    wide = int(facts.positive("block_ffn_dim_multiplier", default=1.0) * int(2 * wide / 3))
    return -(-wide // each) * each


def _config_windows(row: Architecture, facts: Facts, kinds: Sequence[str], context: int) -> list[int | None]:
    window = facts.whole("sliding_window", most=MAX_CONTEXT, least=0, default=0)
    if not facts.flag("use_sliding_window", default=True):
        window = 0
    named = [k for k in kinds if k]
    if not window or window >= context or not named or "conv" in named:
        return _windows(row, len(kinds), window, context, facts.name)
    return [window if k == "sliding_attention" else None for k in kinds]


def _config_scaling(
    facts: Facts, scaling: Facts, base: float, turned: int, trained: int, context: int
) -> tuple[float, tuple[float, ...], float]:
    kind = scaling.text("rope_type") or scaling.text("type", "default")
    pairs = turned // 2
    match kind:
        case "default":
            return 1.0, (), 1.0
        case "linear":
            return scaling.positive("factor"), (), 1.0
        case "llama3":
            factor, low, high = (scaling.positive(k) for k in ("factor", "low_freq_factor", "high_freq_factor"))
            before = scaling.whole("original_max_position_embeddings", most=MAX_CONTEXT)
            if high <= low:
                raise scaling.fault("high_freq_factor", f"a number above {low}, the low_freq_factor")
            turns = (before * base ** (-2 * i / turned) / (2 * math.pi) for i in range(pairs))
            kept = (min(max((t - low) / (high - low), 0.0), 1.0) for t in turns)
            return 1.0, tuple(1 / (k + (1 - k) / factor) for k in kept), 1.0
        case "longrope" | "su":
            before = facts.whole(
                "original_max_position_embeddings", most=MAX_CONTEXT,
                default=scaling.whole("original_max_position_embeddings", most=MAX_CONTEXT, default=trained),
            )  # fmt: skip
            factors = scaling.numbers("long_factor" if context > before else "short_factor", pairs, float)
            if not all(math.isfinite(v) and v > 0 for v in factors):
                raise scaling.fault("short_factor", f"{pairs} numbers above 0")
            stretch = max(trained / before, 1.0)
            gain = math.sqrt(1 + math.log(stretch) / math.log(before)) if stretch > 1 and before > 1 else 1.0
            return 1.0, tuple(map(float, factors)), scaling.positive("attention_factor", default=gain)
        case "dynamic":
            before = scaling.whole("original_max_position_embeddings", most=MAX_CONTEXT, default=trained)
            if min(context, trained) > before:
                raise FormatError(
                    f"{scaling.name}: the rotations change with the length of a text beyond {before} tokens, which Singe does not do; "
                    f"load it with context={before} or less"
                )
            return 1.0, (), 1.0
        case "yarn":
            return _yarn(scaling, base, turned, trained)
        case _:
            known = ("default", "linear", "llama3", "longrope", "dynamic", "yarn")
            raise _unknown(scaling.name, "the rotations are scaled by", kind, known)


def _yarn(scaling: Facts, base: float, turned: int, trained: int) -> tuple[float, tuple[float, ...], float]:
    """Pairs that turn often are kept, those that turn seldom are slowed by the factor, and between them it changes evenly by pair."""
    factor = scaling.positive("factor")
    before = scaling.whole("original_max_position_embeddings", most=MAX_CONTEXT, default=trained)
    fast, slow = scaling.positive("beta_fast", default=32.0), scaling.positive("beta_slow", default=1.0)
    if factor < 1:
        raise scaling.fault("factor", "a number from 1")
    if not (1e-6 <= slow < fast <= 1e6 and base > 1):
        raise scaling.fault(
            "beta_fast", f"more than beta_slow, {slow}, both from 1e-6 to 1e6, and a rope_theta above 1"
        )

    def pair(turns: float) -> float:
        """The pair that turns so often in `before` positions."""
        return turned * math.log(before / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(fast), pair(slow)
    if scaling.flag("truncate", default=True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, turned - 1)
    width = high - low if high != low else 0.001
    slowed = (min(max((i - low) / width, 0.0), 1.0) for i in range(turned // 2))

    def gain(m: float) -> float:
        return 0.1 * m * math.log(factor) + 1

    both = [scaling.number(key, default=0.0) for key in ("mscale", "mscale_all_dim")]
    if not all(0 <= m <= 1e6 for m in both):
        raise scaling.fault("mscale", "a number from 0 to 1e6, as mscale_all_dim")
    usual = gain(both[0]) / gain(both[1]) if all(both) else gain(1.0)
    return (
        1.0,
        tuple(1 / (s / factor + (1 - s)) for s in slowed),
        scaling.positive("attention_factor", default=usual),
    )
