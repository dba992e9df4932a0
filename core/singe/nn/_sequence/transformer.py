"""Encoders and decoders of attention, with PyTorch's names, and steps over a cache for text that grows.

A cache is a dict of tensors by name, so that it can be the states of a Model. `step` takes new elements, the place of the
first of them and the cache, and returns the outputs and the next cache: what `forward` with a causal mask gives for these
elements, in time that does not grow with those before.

    cache = net.cache(batch=1, length=512)
    y, cache = net.step(x, position, cache)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from ...errors import InputError
from ...runtime.random_keys import Rng, one_generator
from ...tensors.functions.creation import zeros
from ...tensors.tensor import Tensor
from .._activation import Activation
from .._dropout import Dropout
from .._linear import Linear
from .._module import Module
from .._norm import LayerNorm
from .._random import Random
from .attention import MultiheadAttention, additive, causal_mask

Cache = Mapping[str, Tensor]

ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"relu": lambda x: x.relu(), "gelu": lambda x: x.gelu()}


class _Layer(Module):
    """What the layers of encoders and decoders share: their parts, and the order of norms.

    There is an attention for each of the names, then a feed-forward part, and a norm for each of them."""

    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    _attentions: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, attentions: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._attentions = attentions or cls._attentions

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            raise InputError(f"activation is {activation!r}, expected {' or '.join(ACTIVATIONS)}, or a layer")
        rng = one_generator(rng)
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rng=rng))
        self.linear1 = Linear(d_model, dim_feedforward, bias, rng=rng)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng=rng)
        self.activation = activation
        self.dropout = Dropout(dropout)
        for k in range(len(self._attentions) + 1):
            setattr(self, f"norm{k + 1}", LayerNorm(d_model, layer_norm_eps, bias=bias))
        self.norm_first = norm_first

    def _fed(self, x: Tensor) -> Tensor:
        call = ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        return self.dropout(self.linear2(self.dropout(call(self.linear1(x)))))

    def _with(self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what a part makes of it, normalised before or after."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def _attended(self, x: Tensor, padding: Tensor | None, mask: Tensor | None, is_causal: bool) -> Tensor:
        """x with self-attention."""

        def part(y: Tensor) -> Tensor:
            return self.dropout(self.self_attn(y, y, y, padding, False, mask, True, is_causal)[0])

        return self._with(x, self.norm1, part)

    def _stepped(
        self, x: Tensor, position: int | Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """New elements with self-attention, and the next keys and values."""

        def part(y: Tensor) -> Tensor:
            nonlocal keys, values
            out, keys, values = self.self_attn.step(y, position, keys, values)
            return out

        return self._with(x, self.norm1, part), keys, values


class TransformerEncoderLayer(_Layer, attentions=("self_attn",)):
    """Self-attention, then a feed-forward part; activation: "relu", "gelu" or a layer."""

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:  # fmt: skip
        return self._with(self._attended(src, src_key_padding_mask, src_mask, is_causal), self.norm2, self._fed)

    def step(self, x: Tensor, position: int | Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `MultiheadAttention.step`."""
        y, keys, values = self._stepped(x, position, keys, values)
        return self._with(y, self.norm2, self._fed), keys, values


class TransformerDecoderLayer(_Layer, attentions=("self_attn", "multihead_attn")):
    """Self-attention, attention to the memory, then a feed-forward part."""

    multihead_attn: MultiheadAttention
    norm3: LayerNorm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        def remembered(y: Tensor) -> Tensor:
            masks = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)
            return self.dropout(self.multihead_attn(y, memory, memory, *masks)[0])

        x = self._attended(tgt, tgt_key_padding_mask, tgt_mask, tgt_is_causal)
        return self._with(self._with(x, self.norm2, remembered), self.norm3, self._fed)

    def step(
        self, x: Tensor, position: int | Tensor, keys: Tensor, values: Tensor, memory: tuple[Tensor, Tensor],
        memory_key_padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """As `MultiheadAttention.step`; memory: what its `keys_values` made of it."""

        def remembered(y: Tensor) -> Tensor:
            return self.multihead_attn.attend(y, *memory, memory_key_padding_mask)

        y, keys, values = self._stepped(x, position, keys, values)
        return self._with(self._with(y, self.norm2, remembered), self.norm3, self._fed), keys, values


def _copied(layer: Module) -> Module:
    """A copy that draws other random numbers."""
    rngs = [part.rng for _, part in layer.named_modules() if isinstance(part, Random)]
    return copy.deepcopy(layer, {id(rng): rng.spawn(1)[0] for rng in rngs if rng is not None})


class _Stack(Module):
    """Copies of a layer, one after the other, and a norm."""

    layers: list[Any]
    norm: Module | None

    def _set(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        self.layers = [_copied(layer) for _ in range(num_layers)]
        self.norm = norm

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)

    def _through(self, x: Tensor, *argument: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *argument)
        return self._normed(x)

    def _room(self, batch: int, length: int, device: Any) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for k, layer in enumerate(self.layers):
            found[f"keys_{k}"], found[f"values_{k}"] = layer.self_attn.cache(batch, length, device)
        return found

    def _stepped(
        self, x: Tensor, position: int | Tensor, cache: Cache, more: Callable[[int], tuple[Any, ...]]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Outputs of new elements, and the next cache; more: what else layer k gets."""
        after = dict(cache)
        for k, layer in enumerate(self.layers):
            keys, values = f"keys_{k}", f"values_{k}"
            x, after[keys], after[values] = layer.step(x, position, cache[keys], cache[values], *more(k))
        return self._normed(x), after


class TransformerEncoder(_Stack):
    """Copies of a layer, one after the other, and a norm."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self._set(encoder_layer, num_layers, norm)

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:  # fmt: skip
        return self._through(src, mask, src_key_padding_mask, is_causal)

    def cache(self, batch: int, length: int, device: Any = None) -> dict[str, Tensor]:
        """Room for so many elements."""
        return self._room(batch, length, device)

    def step(self, x: Tensor, position: int | Tensor, cache: Cache) -> tuple[Tensor, dict[str, Tensor]]:
        """Outputs of new elements, each of which attends to those up to its place, and the next cache."""
        return self._stepped(x, position, cache, lambda k: ())


class TransformerDecoder(_Stack):
    """Copies of a layer, one after the other, and a norm."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self._set(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal
        return self._through(tgt, memory, *masks)

    def cache(self, batch: int, length: int, memory: Tensor) -> dict[str, Tensor]:
        """Room for so many elements, and the keys and values of the memory."""
        found = self._room(batch, length, memory.device)
        for k, layer in enumerate(self.layers):
            held = layer.multihead_attn.keys_values(memory, memory)
            found[f"memory_keys_{k}"], found[f"memory_values_{k}"] = held
        return found

    def step(
        self, x: Tensor, position: int | Tensor, cache: Cache, memory_key_padding_mask: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Outputs of new elements, each of which attends to those up to its place and to the memory, and the next cache."""

        def memory(k: int) -> tuple[Any, ...]:
            return (cache[f"memory_keys_{k}"], cache[f"memory_values_{k}"]), memory_key_padding_mask

        return self._stepped(x, position, cache, memory)


class Transformer(Module):
    """An encoder, and a decoder whose memory is the encoder's output."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Activation = "relu", layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        rng = one_generator(rng)
        facts = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2)]
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*facts, rng=rng), num_encoder_layers, norms[0])
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*facts, rng=rng), num_decoder_layers, norms[1])

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool = False, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal
        return self.decoder(tgt, memory, *masks)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> Tensor:
        """The causal mask, as numbers: −∞ after each element's own place."""
        like = zeros((length, length))
        return additive(causal_mask(length, length, 0, like), like)
