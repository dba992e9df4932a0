"""PairNetwork: one module for all families, which reads its description, and takes its weights of a file.

`hear` computes the keys and values of a source once, for all layers of the decoder, and leaves them as states of a fixed room, which `say`
has, too: it takes tokens of several texts about the same source, side by side, and writes their own keys and values to states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...nn import Module
from ...tensors.functions.creation import arange, tensor
from ...tensors.tensor import Tensor
from ..decoder import RotationTable
from ..distances import distance_buckets, two_sided_buckets
from ..files import Tensors
from ..layers import Projections, embeddings, floats
from .description import PairDescription
from .layers import Distances, LayerMaker, PairDecoderLayer, PairEncoderLayer, by_head
from .sounds import FRAME, MAX_FRAMES, MAX_SECONDS, RATE, SoundStem, frames_of, positions_of, sound_room

States = Mapping[str, tuple[tuple[int, ...], str]]
SAY_TYPES: Final[Mapping[str, str]] = {
    "ids": "int32",
    "keys": "bool",
    "rows": "bool",
    "heard": "bool",
    "order": "int32",
}


def source_room(d: PairDescription) -> int:
    """Of the encoder: how many positions a source has at most."""
    return sound_room(d) if d.family.rotated else d.room


def source_input(d: PairDescription) -> tuple[Sequence[int | str], str]:
    """The shape and the type of a source: of tokens, or of frames of samples."""
    return ((f"F<={MAX_FRAMES}", FRAME), "float32") if d.family.rotated else ((f"S<={d.room}",), "int32")


def heard_bound(d: PairDescription) -> str:
    """The size that says how much of a source there is: how many tokens, or samples."""
    return f"H<={MAX_SECONDS * RATE if d.family.rotated else d.room}"


def as_source(given: Sequence[int] | np.ndarray, of_sound: bool) -> np.ndarray:
    """Tokens or samples, as `source_input` says."""
    return frames_of(np.asarray(given, np.float32)) if of_sound else np.asarray(given, np.int32)


def say_shapes(d: PairDescription, texts: int) -> dict[str, Sequence[int | str]]:
    return {
        "ids": (texts, "T"), "keys": (f"K<={d.room}", 0), "rows": ("R", 0), "heard": (heard_bound(d), 0), "order": (texts,),
    }  # fmt: skip


def _waves(d: PairDescription, steps: int) -> np.ndarray:
    """Positions (room, width), computed in float64: sines, then cosines. steps: see PairFamily.waves."""
    count = d.width // 2
    speeds = 10000.0 ** -(np.arange(count) / (count - steps))
    angles = (np.arange(d.room) + d.family.first_position)[:, None] * speeds
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


class PairNetwork(
    Module, buffers=("encoder_places", "decoder_places", "encoder_distances", "decoder_distances", "logit_bias")
):
    """See the module's docstring."""

    encoder_places: Tensor | None
    decoder_places: Tensor | None
    encoder_distances: Tensor | None
    decoder_distances: Tensor | None
    logit_bias: Tensor | None

    def __init__(self, d: PairDescription, tensors: Tensors) -> None:
        row = d.family
        self.embedding, tied = embeddings(tensors.take("tokens.weight", (d.vocabulary, d.width)))
        self.head: Module = tied if d.tied else Projections(tensors, ["head"], [d.vocabulary], d.width)
        self.encoder_places, self.decoder_places = (
            None if row.waves is None else tensor(self._places(d, tensors, part, row.waves))
            for part in ("encoder", "decoder")
        )
        self.encoder_distances = self.decoder_distances = None
        if d.buckets:
            buckets = (
                two_sided_buckets(d.room - 1, d.buckets, d.farthest),
                distance_buckets(np.arange(d.room), d.buckets, d.farthest),
            )
            self.encoder_distances, self.decoder_distances = (
                tensor(floats(tensors.take(f"{part}.distances.weight", (d.buckets, stack.heads)))[numbers].T.copy())
                for part, stack, numbers in zip(("encoder", "decoder"), (d.encoder, d.decoder), buckets, strict=True)
            )
        self.rotations = None if d.rotation is None else RotationTable(d.rotation, max(d.room, source_room(d)))
        self.stem = SoundStem(d, tensors) if row.rotated else None
        reads, says = LayerMaker(tensors, d, d.encoder), LayerMaker(tensors, d, d.decoder)
        self.encoder = [PairEncoderLayer(reads, f"encoder.{k}") for k in range(d.encoder.layers)]
        self.decoder = [PairDecoderLayer(says, f"decoder.{k}") for k in range(d.decoder.layers)]
        self.encoder_norm, self.norm = (
            maker.norm(f"{part}.norm") if row.norm_first else None
            for maker, part in ((reads, "encoder"), (says, "decoder"))
        )
        self.logit_bias = None
        if row.logit_bias:
            self.logit_bias = tensor(floats(tensors.take("logit_bias", (1, d.vocabulary)))[0])
        self.description = d
        tensors.check_all_taken()

    @staticmethod
    def _places(d: PairDescription, tensors: Tensors, part: str, waves: int) -> np.ndarray:
        name = f"{part}.positions.weight"
        return floats(tensors.take(name, (d.room, d.width))) if tensors.has(name) else _waves(d, waves)

    def heard(self) -> States:
        """The states of a source by name: their shapes and types."""
        return self._states(
            ("heard_keys", "heard_values"), self.description.decoder.heads, source_room(self.description)
        )

    def said(self, texts: int) -> States:
        """Those of so many texts."""
        return self._states(("keys", "values"), texts * self.description.decoder.heads, self.description.room)

    def _states(self, names: Sequence[str], heads: int, room: int) -> States:
        shape = (heads, room, self.description.decoder.size)
        return {f"{name}_{k}": (shape, "float32") for k in range(len(self.decoder)) for name in names}

    def hear(self, source: Tensor, heard: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """source: tokens (S,), or frames (F, FRAME); heard (H, 0): how many tokens or samples it has. What the encoder makes of it
        (positions, width), which the states hold as keys and values."""
        x = self._embedded(source) if self.stem is None else self.stem(source, heard.shape[0])
        count = x.shape[0]
        if self.encoder_places is not None:
            x = x + self.encoder_places[:count]
        distances = self._distances(0, count, count, self.encoder_distances, self.description.room - 1)
        for layer in self.encoder:
            x = layer(x, distances)
        x = x if self.encoder_norm is None else self.encoder_norm(x)
        updated = dict(states)
        for k, layer in enumerate(self.decoder):
            for name, y in zip(("heard_keys", "heard_values"), layer.heard(x), strict=True):
                updated[f"{name}_{k}"] = states[f"{name}_{k}"].update_slice(by_head(y, layer.heads), 0, 0, 0)
        return x, updated

    def say(
        self, ids: Tensor, keys: Tensor, rows: Tensor, heard: Tensor, order: Tensor, **states: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """ids (texts, T): tokens that follow those of the texts so far, each of which goes on from the one that `order` names; keys (K, 0):
        how many tokens a text has then; rows (R, 0): the scores (texts · R, vocabulary) after the last R of each are given; heard (H, 0):
        how many tokens or samples the source has."""
        texts, length = ids.shape
        used, count = keys.shape[0], rows.shape[0]
        past, positions = used - length, self._positions(heard.shape[0])
        x = self._embedded(ids.reshape(-1))
        width = x.shape[-1]
        if self.decoder_places is not None:
            places = self.decoder_places[past:used]
            x = x + places if texts == 1 else (x.reshape(texts, length, width) + places).reshape(texts * length, width)
        distances = self._distances(past, length, used, self.decoder_distances, 0)
        updated = dict(states)
        for k, layer in enumerate(self.decoder):
            own = {name: states[f"{name}_{k}"] for name in ("heard_keys", "heard_values", "keys", "values")}
            x, after = layer(x, texts, past, used, positions, order, distances, own)
            updated |= {f"{name}_{k}": y for name, y in after.items()}
        last = x.reshape(texts, length, width)[:, length - count :].reshape(texts * count, width)
        return self._scores(last), updated

    def _positions(self, heard: Any) -> Any:
        return heard if self.stem is None else positions_of(heard)

    def _embedded(self, ids: Tensor) -> Tensor:
        x, scale = self.embedding(ids), self.description.embedding_scale
        return x if scale == 1.0 else x * scale

    def _scores(self, x: Tensor) -> Tensor:
        x = x if self.norm is None else self.norm(x)
        if self.description.head_scale != 1.0:
            x = x * self.description.head_scale
        made = self.head(x)
        scores = made[0] if isinstance(made, tuple) else made
        return scores if self.logit_bias is None else scores + self.logit_bias

    def _distances(self, past: Any, length: Any, used: Any, table: Tensor | None, middle: int) -> Distances:
        """Of `length` positions after `past`. table: what is added at a distance (heads, distances), which is in its column middle + key −
        query, or query − key where the middle is 0."""
        turns = None if self.rotations is None else self.rotations(past, length)
        if table is None:
            return Distances(turns)
        places = arange(used, dtype="int32")
        apart = places.unsqueeze(0) - places[past:used].unsqueeze(1)
        columns = apart + middle if middle else (-apart).maximum(0)
        return Distances(turns, table.take(columns, 1))
