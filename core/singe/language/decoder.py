"""The decoder: one module for all architectures, which reads its description, and takes its weights of a file.

A run takes the ids of T new tokens, which follow K − T tokens that the cache holds, and gives the scores of the token after each of
the last R, and the tokens that it chooses after the last S (choosing.py). K and R are sizes: they come as the lengths of empty inputs,
as sizes that a run computes do (ops/sizes.py), so that one Program serves all of them. The cache is states of a fixed room, written in
place, and rounded to the type in which they are held before a query reads them, or to rows in eight bits
(ops/products/eight_bit_rows.py); one set of weights serves all sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..dtypes import int32
from ..errors import InputError
from ..gradients import checkpoint
from ..ir.attention import EIGHT_BIT_BLOCK
from ..nn import Module
from ..ops import ROWS
from ..ops.products.eight_bit_rows import words_of_row
from ..tensors.calls import apply_row
from ..tensors.functions.creation import arange, concat, tensor, where, zeros
from ..tensors.tensor import Tensor
from .choosing import LATEST_TOKEN, SAMPLING, chosen
from .description import DecoderDescription, LayerDescription, Rotation
from .files import Tensors
from .layers import Norm, Projections, embeddings, floats
from .sampling import REMEMBERED

KEYS: Final = "keys"
VALUES: Final = "values"
"""The states whose names begin so hold what positions have; others hold what the latest positions leave."""
CACHE_AXIS: Final = 1
"""Of those, the axis of positions."""
LATEST: Final = "latest"
"""The state that is the token that a run has chosen last: a later one takes it by the number `LATEST_TOKEN`."""
ONE_TOKEN: Final[Sequence[Mapping[str, int]]] = ({"T": 1, "R": 0, "S": 1}, {"T": 1, "R": 1, "S": 0})
"""The sizes of the runs that write a text, token by token: chosen by the run, or by the host."""
INPUTS: Final[Mapping[str, Sequence[int | str]]] = {
    "ids": ("T",), "keys": ("K", 0), "rows": ("R", 0), "sampling": ("S", len(SAMPLING)), "before": ("S", REMEMBERED)
}  # fmt: skip
"""Of `forward`: names and shapes."""
TYPES: Final[Mapping[str, str]] = {
    "ids": "int32",
    "keys": "bool",
    "rows": "bool",
    "sampling": "float32",
    "before": "int32",
}


States = Mapping[str, Tensor]


def bounded(room: int) -> dict[str, Sequence[int | str]]:
    """The inputs of `forward` with room for so many positions."""
    return {**INPUTS, "keys": (f"K<={room}", 0)}


def numbered(name: str, k: int) -> str:
    """A state of the conversation of this number."""
    return f"{name}_{k}"


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The rows of all parts."""
    return parts[0] if len(parts) == 1 else concat(list(parts), 0)


class ConversationPart(NamedTuple):
    """The tokens of one conversation in a run: in which rows, how many, how many there are with them, and how many are before. masks: by
    window, which keys its tokens see."""

    first: Any
    rows: Any
    length: Any
    used: Any
    past: Any
    masks: Mapping[int, Tensor]


class Turn(NamedTuple):
    """What the layers of one run share. length: of all parts; rotations: cosines and sines of the new positions. outer: before the axis
    of positions, how many texts a run takes that has no cache, and one part for all of them."""

    length: Any
    parts: Sequence[ConversationPart]
    rotations: Mapping[Rotation, tuple[Tensor, Tensor]]
    outer: tuple[Any, ...] = ()

    def rows(self, x: Tensor, part: ConversationPart, dim: int) -> Tensor:
        """Those of a part, along a dimension."""
        return x if len(self.parts) == 1 else x.narrow(dim, part.first, part.rows)


class RotationTable(Module):
    """The cosines and sines of all positions for which there is room, computed in float64."""

    def __init__(self, rotation: Rotation, room: int) -> None:
        pairs = np.arange(0, rotation.size, 2)
        speeds = rotation.base ** (-pairs / rotation.size) / (np.asarray(rotation.factors) if rotation.factors else 1.0)
        angles = np.arange(room)[:, None] / rotation.divide * speeds
        self.cosines, self.sines = (tensor((f(angles) * rotation.gain).astype(np.float32)) for f in (np.cos, np.sin))

    def forward(self, first: Any, count: Any) -> tuple[Tensor, Tensor]:
        """Those of `count` positions. A slice whose end is given by a size would have a length that nothing can tell from another."""
        sizes = count, self.cosines.shape[1]
        cosines, sines = (
            apply_row(ROWS["slice"], (x,), starts=(first, 0), steps=(1, 1), sizes=sizes)
            for x in (self.cosines, self.sines)
        )
        return cosines, sines


class CachedAttention(Module):
    """Attention with a cache of keys and values."""

    def __init__(self, d: DecoderDescription, layer: LayerDescription, tensors: Tensors, path: str) -> None:
        row, kv = d.architecture, layer.kv_heads
        outputs = d.heads * d.key_size, kv * d.key_size, kv * d.value_size
        names = [f"{path}.attn_qkv"] if row.fused else [f"{path}.attn_{x}" for x in "qkv"]
        self.inputs = Projections(tensors, names, outputs, d.width)
        self.output = Projections(tensors, [f"{path}.attn_output"], [d.width], d.heads * d.value_size)
        sizes = {"": (0, 0), "head": (d.key_size, d.key_size), "all": outputs[:2]}[row.head_norms]
        self.norms = [
            Norm(tensors, f"{path}.attn_{x}_norm", size, d.epsilon, row.layer_norm)
            for x, size in zip("qk", sizes, strict=True)
            if size
        ]
        self.norms_of_heads = row.head_norms == "head"
        self.heads, self.kv_heads, self.key_size, self.value_size = d.heads, kv, d.key_size, d.value_size
        self.scale, self.cap, self.adjacent = d.score_scale, d.score_cap, d.adjacent
        self.rotation, self.window = layer.rotation, layer.window

    def states(self, room: int) -> dict[str, tuple[int, ...]]:
        return {KEYS: (self.kv_heads, room, self.key_size), VALUES: (self.kv_heads, room, self.value_size)}

    def forward(self, x: Tensor, turn: Turn, held: Sequence[States]) -> tuple[Tensor, list[States]]:
        q, k, v = self.inputs(x)
        if self.norms and not self.norms_of_heads:
            q, k = (norm(y) for norm, y in zip(self.norms, (q, k), strict=True))
        counts = (self.heads, self.key_size), (self.kv_heads, self.key_size), (self.kv_heads, self.value_size)
        q, k, v = (
            y.reshape(*turn.outer, turn.length, *count).swapaxes(-3, -2)
            for y, count in zip((q, k, v), counts, strict=True)
        )
        if self.norms_of_heads:
            q, k = (norm(y) for norm, y in zip(self.norms, (q, k), strict=True))
        if self.rotation is not None:
            angles = turn.rotations[self.rotation]
            q, k = (apply_row(ROWS["rotary_embedding"], (y, *angles), interleaved=self.adjacent) for y in (q, k))
        attended, after = list[Tensor](), list[States]()
        for part, before in zip(turn.parts, held, strict=True):
            new = {KEYS: turn.rows(k, part, -2), VALUES: turn.rows(v, part, -2)}
            after.append(
                {name: before[name].update_slice(_as_held(x, before[name]), 0, part.past, 0) for name, x in new.items()}
                if before
                else new
            )
            masks = () if self.window is None else (part.masks[self.window],)
            y = apply_row(
                ROWS["attention"], (turn.rows(q, part, -2), after[-1][KEYS], after[-1][VALUES], *masks),
                scale=self.scale, causal=True, past=part.past, softcap=self.cap, keys=part.used,
            )  # fmt: skip
            attended.append(y.swapaxes(-3, -2).reshape(part.rows, self.heads * self.value_size))
        (y,) = self.output(joined(attended))
        return y, after


def _as_held(x: Tensor, cache: Tensor) -> Tensor:
    """New keys or values as those of a cache are held."""
    return apply_row(ROWS["eight_bit_rows"], (x,)) if cache.dtype is int32 else x.to(cache.dtype)


class ShortConvolution(Module):
    """A gated convolution along positions, which sees a few of those before."""

    def __init__(self, d: DecoderDescription, tensors: Tensors, path: str) -> None:
        self.inputs = Projections(tensors, [f"{path}.shortconv.in_proj"], [d.width] * 3, d.width)
        self.output = Projections(tensors, [f"{path}.shortconv.out_proj"], [d.width], d.width)
        weight = floats(tensors.take(f"{path}.shortconv.conv.weight", (d.width, d.convolution)))
        self.taps = [tensor(np.ascontiguousarray(w)) for w in weight.T]
        self.width = d.width

    def states(self, room: int) -> dict[str, tuple[int, ...]]:
        return {"before": (len(self.taps) - 1, self.width)}

    def forward(self, x: Tensor, turn: Turn, held: Sequence[States]) -> tuple[Tensor, list[States]]:
        gate, after, y = self.inputs(x)
        made, left = list[Tensor](), list[States]()
        for part, states in zip(turn.parts, held, strict=True):
            new = turn.rows(gate * y, part, 0).reshape(*turn.outer, part.length, self.width)
            before = states["before"] if states else zeros(*turn.outer, len(self.taps) - 1, self.width)
            seen = concat([before, new], -2)
            total = seen[..., : part.length, :] * self.taps[0]
            for k, tap in enumerate(self.taps[1:], 1):
                total = total + seen[..., k : part.length + k, :] * tap
            made.append(total.reshape(part.rows, self.width))
            left.append({"before": seen[..., part.length :, :]})
        (out,) = self.output(after * joined(made))
        return out, left


class FeedForward(Module):
    def __init__(self, d: DecoderDescription, tensors: Tensors, path: str) -> None:
        row, n = d.architecture, d.feed_forward
        names = [f"{path}.ffn_{x}" for x in (("up",) if row.fused_gate or not row.gated else ("gate", "up"))]
        self.inputs = Projections(tensors, names, [n, n] if row.gated else [n], d.width)
        self.output = Projections(tensors, [f"{path}.ffn_down"], [d.width], n)
        self.activation = row.activation

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = self.inputs(x)
        y = first.silu() if self.activation == "silu" else first.gelu(approximate="tanh")
        (out,) = self.output(y * rest[0] if rest else y)
        return out


class DecoderLayer(Module):
    """A mixer and a feed-forward part, each added to what goes on."""

    def __init__(self, d: DecoderDescription, layer: LayerDescription, tensors: Tensors, path: str) -> None:
        row = d.architecture
        self.mixer = CachedAttention(d, layer, tensors, path) if layer.kv_heads else ShortConvolution(d, tensors, path)
        self.feed_forward = FeedForward(d, tensors, path)

        def norms(names: tuple[str, str], wanted: bool) -> list[Norm]:
            return [Norm(tensors, f"{path}.{x}", d.width, d.epsilon, row.layer_norm) for x in names if wanted]

        self.before = norms(("attn_norm", "ffn_norm"), row.norms_before)
        self.after = norms(("post_attention_norm", "post_ffw_norm"), row.norms_after)
        self.residual_scale = d.residual_scale

    def forward(self, x: Tensor, turn: Turn, held: Sequence[States]) -> tuple[Tensor, list[States]]:
        y, updated = self.mixer(self.before[0](x) if self.before else x, turn, held)
        x = x + self._scaled(self.after[0](y) if self.after else y)
        y = self.feed_forward(self.before[1](x) if self.before else x)
        return x + self._scaled(self.after[1](y) if self.after else y), updated

    def _scaled(self, x: Tensor) -> Tensor:
        return x if self.residual_scale == 1.0 else x * self.residual_scale


class Decoder(Module):
    """See the module's docstring."""

    def __init__(self, d: DecoderDescription, tensors: Tensors, room: int, cache_dtype: str = "float32") -> None:
        """room: for so many positions there will be keys and values, held in cache_dtype; "int8": as rows in eight bits."""
        row = d.architecture
        table = tensors.take("token_embd.weight", (d.vocabulary, d.width))
        self.embedding, tied = embeddings(table)
        if tensors.has("output.weight"):
            self.head: Module = Projections(tensors, ["output"], [d.vocabulary], d.width)
        else:
            self.head = tied
        self.positions = None
        if row.learned_positions:
            self.positions = tensor(floats(tensors.take("position_embd.weight", (d.context, d.width))))
        self.layers = [DecoderLayer(d, layer, tensors, f"blk.{i}") for i, layer in enumerate(d.layers)]
        self.norm = Norm(tensors, row.last_norm, d.width, d.epsilon, row.layer_norm)
        rotations = dict.fromkeys(layer.rotation for layer in d.layers if layer.rotation is not None and layer.kv_heads)
        self.tables = [(rotation, RotationTable(rotation, room)) for rotation in rotations]
        self.windows = tuple(sorted({layer.window for layer in d.layers if layer.window is not None}))
        self.room, self.cache_dtype = room, cache_dtype
        self.embedding_scale, self.logit_divisor, self.logit_cap = d.embedding_scale, d.logit_divisor, d.logit_cap
        tensors.check_all_taken()

    def states(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shapes and types of the states by name."""
        held = {
            f"{what}_{i}": self._held(what, shape)
            for i, layer in enumerate(self.layers)
            for what, shape in layer.mixer.states(self.room).items()
        }
        return {**held, LATEST: ((1,), "int32")}

    def _held(self, what: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
        if what not in (KEYS, VALUES):
            return shape, "float32"
        if self.cache_dtype != "int8":
            return shape, self.cache_dtype
        *outer, size = shape
        if size % EIGHT_BIT_BLOCK:
            raise InputError(
                f'cache_dtype: "int8" takes heads of a multiple of {EIGHT_BIT_BLOCK} numbers, and {what} of this model have {size}; load '
                'it with "float16"'
            )
        return (*outer, words_of_row(size)), "int32"

    def forward(
        self, ids: Tensor, keys: Tensor, rows: Tensor, sampling: Tensor, before: Tensor, latest: Tensor, **states: Tensor
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:  # fmt: skip
        """ids (T,); keys (K, 0) and rows (R, 0) are empty: see the module's docstring. sampling and before: of `chosen`."""
        length, used, count = ids.shape[0], keys.shape[0], sampling.shape[0]
        ids, before = (where(x == LATEST_TOKEN, latest, x) for x in (ids, before))
        x, updated = self._layers(ids, [self._part(0, length, used)], [states])
        scores, ends = (self._logits(self.norm(x[length - n :])) for n in (rows.shape[0], count))
        tokens = chosen(ends, sampling, before)
        after = concat([latest, tokens])
        after = apply_row(ROWS["slice"], (after,), starts=(count,), steps=(1,), sizes=(1,))
        return (scores, tokens), {**updated[0], LATEST: after}

    def vectors(self, ids: Tensor, keys: Tensor, rows: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """As `forward`, what the scores are made of: (R, width)."""
        length, used = ids.shape[0], keys.shape[0]
        x, updated = self._layers(ids, [self._part(0, length, used)], [states])
        return self.norm(x[length - rows.shape[0] :]), {**updated[0], LATEST: states[LATEST]}

    def side_by_side(self, ids: Tensor, *keys: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """A token of each of several conversations: ids (B,), B times keys (K, 0), and each state once for each, numbered. The scores
        (B, vocabulary) after each of the tokens."""
        parts = [self._part(k, 1, x.shape[0]) for k, x in enumerate(keys)]
        names = self.states()
        held = [{name: states[numbered(name, k)] for name in names} for k in range(len(keys))]
        x, updated = self._layers(ids, parts, held)
        own = [{**one, LATEST: before[LATEST]} for one, before in zip(updated, held, strict=True)]
        after = {numbered(name, k): value for k, one in enumerate(own) for name, value in one.items()}
        return self._logits(self.norm(x)), after

    def _part(self, first: int, length: Any, used: Any, texts: Any = 1) -> ConversationPart:
        past = used - length
        masks = {window: self._near(used, past, window) for window in self.windows}
        return ConversationPart(first, length if texts == 1 else texts * length, length, used, past, masks)

    def _turn(self, parts: Sequence[ConversationPart], length: Any, outer: tuple[Any, ...] = ()) -> Turn:
        rotations = dict[Rotation, tuple[Tensor, Tensor]]()
        for rotation, table in self.tables:
            cosines, sines = zip(*(table(p.past, p.length) for p in parts), strict=True)
            rotations[rotation] = joined(cosines), joined(sines)
        return Turn(length, parts, rotations, outer)

    def _layers(
        self, ids: Tensor, parts: Sequence[ConversationPart], held: Sequence[States]
    ) -> tuple[Tensor, list[States]]:
        """What the layers make of the tokens of each part's conversation, and its states then."""
        x = self._embedded(ids)
        if self.positions is not None:
            x = x + joined([self.positions[p.past : p.used] for p in parts])
        turn = self._turn(parts, ids.shape[0])
        updated = [dict[str, Tensor]() for _ in parts]
        for i, layer in enumerate(self.layers):
            names = layer.mixer.states(self.room)
            x, after = layer(x, turn, [{what: one[f"{what}_{i}"] for what in names} for one in held])
            for mine, one in zip(updated, after, strict=True):
                mine.update({f"{what}_{i}": value for what, value in one.items()})
        return x, list(updated)

    def scores(self, ids: Tensor) -> Tensor:
        """ids (texts, T) ↦ the scores (texts, T, vocabulary) of what follows each, without a cache: for training, which computes a layer
        again for its gradient, so that one layer's values are held at a time."""
        count, length = ids.shape
        turn = self._turn([self._part(0, length, length, count)], length, (count,))
        x = self._embedded(ids.reshape(-1))
        if self.positions is not None:
            x = (x.reshape(count, length, -1) + self.positions[:length]).reshape(count * length, -1)
        for layer in self.layers:
            x = checkpoint(lambda x, layer=layer: layer(x, turn, [{}])[0])(x)
        return self._logits(self.norm(x)).reshape(count, length, -1)

    def _embedded(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        return x if self.embedding_scale == 1.0 else x * self.embedding_scale

    def _logits(self, x: Tensor) -> Tensor:
        made = self.head(x)
        logits = made[0] if isinstance(made, tuple) else made
        if self.logit_divisor != 1.0:
            logits = logits / self.logit_divisor
        return logits if not self.logit_cap else (logits / self.logit_cap).tanh() * self.logit_cap

    @staticmethod
    def _near(used: Any, past: Any, window: int) -> Tensor:
        """Whether a key is among those of a query's window; that it is not a later one is seen to elsewhere."""
        places = arange(used, dtype="int32")
        return places[past:used].unsqueeze(1) - places < window
