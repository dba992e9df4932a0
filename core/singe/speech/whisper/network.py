"""Whisper: a network that hears a window of sound, and says what follows the tokens so far.

`hear` computes the keys and values of the window once, for all layers of the decoder, and leaves them as states, which `say` has, too: it
takes tokens of several texts about the same window, side by side, and writes their own keys and values to states of a fixed room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...language.encoder_decoders.layers import attend, attend_said, by_head, part, texts_by_head, together
from ...language.files import Tensors
from ...language.layers import Norm, Projections, embeddings, floats
from ...nn import Module
from ...tensors.functions.creation import arange, stack, tensor, where
from ...tensors.tensor import Tensor
from .description import WhisperDescription

EPSILON: Final = 1e-5
States = Mapping[str, tuple[tuple[int, ...], str]]
_RANGE: Final = 8.0
"""Powers below the loudest by more than this many tens are as good as silent."""

HEAR_TYPES: Final[Mapping[str, str]] = {"powers": "float32", "peak": "float32", "count": "int32"}
SAY_TYPES: Final[Mapping[str, str]] = {
    "ids": "int32",
    "keys": "bool",
    "rows": "bool",
    "order": "int32",
    "looked": "bool",
}


def hear_shapes(d: WhisperDescription) -> dict[str, Sequence[int | str]]:
    return {"powers": (d.frames, d.bands), "peak": (1,), "count": (1,)}


def say_shapes(d: WhisperDescription, texts: int) -> dict[str, Sequence[int | str]]:
    return {"ids": (texts, "T"), "keys": (f"K<={d.room}", 0), "rows": ("R", 0), "order": (texts,), "looked": ("L", 0)}


def features(powers: Tensor, peak: Tensor, count: Tensor) -> Tensor:
    """What the encoder takes (1, bands, frames), of a spectrogram (frames, bands): see `Whisper.hear`."""
    x = (powers.maximum(peak - _RANGE) + 4.0) / 4.0
    there = arange(x.shape[0], dtype="int32").unsqueeze(1) < count
    return where(there, x, 0.0).mT.unsqueeze(0)


class _Layers:
    """Makes the layers of a description from the tensors of a file."""

    def __init__(self, tensors: Tensors, width: int) -> None:
        self._tensors, self._width = tensors, width

    def norm(self, name: str) -> Norm:
        return Norm(self._tensors, name, self._width, EPSILON, True)

    def products(self, name: str, parts: str, size: int | None = None) -> Projections:
        """Matrices of the same vectors, which are in the file one by one, or one below the other."""
        joined = self._tensors.has(f"{name}.{parts}.weight")
        names = [f"{name}.{parts}"] if joined else [f"{name}.{part}" for part in parts]
        return Projections(self._tensors, names, [size or self._width] * len(parts), self._width)

    def product(self, name: str, outputs: int, inputs: int) -> Projections:
        return Projections(self._tensors, [name], [outputs], inputs)


class WhisperFeedForward(Module):
    def __init__(self, layers: _Layers, path: str, width: int, size: int) -> None:
        self.norm = layers.norm(f"{path}.forward_norm")
        self.up, self.down = layers.product(f"{path}.up", size, width), layers.product(f"{path}.down", width, size)

    def forward(self, x: Tensor) -> Tensor:
        (y,) = self.up(self.norm(x))
        (y,) = self.down(y.gelu())
        return x + y


class WhisperEncoderLayer(Module):
    def __init__(self, layers: _Layers, path: str, d: WhisperDescription) -> None:
        self.norm = layers.norm(f"{path}.attention_norm")
        self.inputs = layers.products(f"{path}.attention", "qkv")
        self.output = layers.product(f"{path}.attention.output", d.width, d.width)
        self.feed_forward = WhisperFeedForward(layers, path, d.width, d.encoder_forward)
        self.heads = d.encoder_heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (by_head(y, self.heads) for y in self.inputs(self.norm(x)))
        (y,) = self.output(together(attend(q, k, v)))
        return self.feed_forward(x + y)


class WhisperDecoderLayer(Module):
    def __init__(self, layers: _Layers, path: str, d: WhisperDescription) -> None:
        self.norm, self.cross_norm = (layers.norm(f"{path}.{name}_norm") for name in ("attention", "cross"))
        self.inputs = layers.products(f"{path}.attention", "qkv")
        self.output = layers.product(f"{path}.attention.output", d.width, d.width)
        self.query = layers.products(f"{path}.cross", "q")
        self.heard = layers.products(f"{path}.cross", "kv")
        self.cross_output = layers.product(f"{path}.cross.output", d.width, d.width)
        self.feed_forward = WhisperFeedForward(layers, path, d.width, d.decoder_forward)
        self.heads = d.decoder_heads

    def forward(
        self, x: Tensor, texts: int, past: Any, used: Any, order: Tensor, states: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """x (texts · length, width) ↦ the same, the keys and values of its texts, and what it looks for in the sound, by head."""
        q, k, v = (texts_by_head(y, texts, self.heads) for y in self.inputs(self.norm(x)))
        y, after = attend_said(q, k, v, texts, past, used, order, states)
        x = x + self.output(y)[0]
        (q,) = self.query(self.cross_norm(x))
        q = by_head(q, self.heads)
        x = x + self.cross_output(together(attend(q, states["heard_keys"], states["heard_values"])))[0]
        return self.feed_forward(x), after, q


class Whisper(Module):
    """See the module's docstring."""

    def __init__(self, d: WhisperDescription, tensors: Tensors) -> None:
        layers = _Layers(tensors, d.width)
        self.convolutions = [
            tuple(tensor(floats(tensors.take(f"encoder.conv{k}.{name}", shape))) for name, shape in shapes.items())
            for k, shapes in (
                (1, {"weight": (d.width, d.bands, 3), "bias": (d.width,)}),
                (2, {"weight": (d.width, d.width, 3), "bias": (d.width,)}),
            )
        ]
        self.places = tensor(floats(tensors.take("encoder.positions.weight", (d.positions, d.width))))
        self.encoder = [WhisperEncoderLayer(layers, f"encoder.{k}", d) for k in range(d.encoder_layers)]
        self.encoder_norm = layers.norm("encoder.norm")
        self.embedding, self.head = embeddings(tensors.take("decoder.tokens.weight", (d.vocabulary, d.width)))
        self.positions = tensor(floats(tensors.take("decoder.positions.weight", (d.room, d.width))))
        self.decoder = [WhisperDecoderLayer(layers, f"decoder.{k}", d) for k in range(d.decoder_layers)]
        self.norm = layers.norm("decoder.norm")
        self.description = d
        tensors.check_all_taken()

    def heard(self) -> States:
        """The states of a window by name: their shapes and types."""
        d = self.description
        return self._states(("heard_keys", "heard_values"), (d.decoder_heads, d.positions, d.width // d.decoder_heads))

    def said(self, texts: int) -> States:
        """Those of so many texts."""
        d = self.description
        return self._states(("keys", "values"), (texts * d.decoder_heads, d.room, d.width // d.decoder_heads))

    def _states(self, names: Sequence[str], shape: tuple[int, ...]) -> States:
        return {f"{name}_{k}": (shape, "float32") for k in range(len(self.decoder)) for name in names}

    def hear(self, powers: Tensor, peak: Tensor, count: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """powers (frames, bands): of the window, of which the first `count` are of the sound; peak: the largest of the whole sound. What
        the encoder makes of it (positions, width), which the states hold as keys and values."""
        x = features(powers, peak, count)
        for (weight, bias), stride in zip(self.convolutions, (1, 2), strict=True):
            x = x.conv(weight, bias, stride=stride, padding=1).gelu()
        x = x[0].mT + self.places
        for layer in self.encoder:
            x = layer(x)
        x = self.encoder_norm(x)
        updated = dict(states)
        for k, layer in enumerate(self.decoder):
            for name, y in zip(("heard_keys", "heard_values"), layer.heard(x), strict=True):
                updated[f"{name}_{k}"] = by_head(y, layer.heads)
        return x, updated

    def say(
        self, ids: Tensor, keys: Tensor, rows: Tensor, order: Tensor, looked: Tensor, **states: Tensor
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
        """ids (texts, T): tokens that follow those of the texts so far, each of which goes on from the one that `order` names; keys (K, 0):
        how many tokens a text has then; rows (R, 0): the scores (texts · R, vocabulary) after the last R of each are given; looked (L, 0):
        and how alike what the heads that follow the sound look for at the last L of the last text is to each position (heads, L, positions).
        The states may have room for more texts."""
        texts, length = ids.shape
        used, count, told = keys.shape[0], rows.shape[0], looked.shape[0]
        past = used - length
        x = self.embedding(ids.reshape(-1))
        width = x.shape[-1]
        places = part(self.positions, 0, past, length)
        x = x + places if texts == 1 else (x.reshape(texts, length, width) + places).reshape(texts * length, width)
        updated = dict(states)
        following: list[Tensor] = []
        for k, layer in enumerate(self.decoder):
            own = {name: states[f"{name}_{k}"] for name in ("heard_keys", "heard_values", "keys", "values")}
            x, after, q = layer(x, texts, past, used, order, own)
            updated |= {f"{name}_{k}": y for name, y in after.items()}
            last = part(q, 1, texts * length - told, told)
            following += [
                last[head] @ own["heard_keys"][head].mT / q.shape[-1] ** 0.5
                for at, head in self.description.following
                if at == k
            ]
        last = part(x.reshape(texts, length, width), 1, length - count, count).reshape(texts * count, width)
        return (self.head(self.norm(last)), stack(following)), updated
