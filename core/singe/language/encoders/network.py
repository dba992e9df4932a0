"""TextEncoder: one module for all families, which reads its description, and takes its weights of a file; and its heads.

A run takes the tokens of several texts (rows, tokens), a mask that is 1 where one is, and their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...late_dataclass import dataclass
from ...nn import Module
from ...tensors.functions.creation import arange, tensor, where
from ...tensors.tensor import Tensor
from ..distances import two_sided_buckets
from ..files import Tensors
from ..layers import Norm, Projections, floats, vector
from .description import EncoderDescription

FAR: Final = 128
"""Tokens that are further apart share the last of the buckets of distances."""
HIDDEN: Final = -1e4
"""What is added to the score of a token that is not there: its exponent is 0 in half precision, too."""
INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_FUNCTIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "gelu": lambda x: x.gelu(),
    "gelu_tanh": lambda x: x.gelu(approximate="tanh"),
    "relu": lambda x: x.relu(),
    "tanh": lambda x: x.tanh(),
}


def _dense(tensors: Tensors, name: str, outputs: int, inputs: int) -> Callable[[Tensor], Tensor]:
    layer = Projections(tensors, [name], [outputs], inputs)
    return lambda x: layer(x)[0]


def _table(tensors: Tensors, name: str, rows: int, width: int) -> Tensor:
    return tensor(floats(tensors.take(f"{name}.weight", (rows, width))))


class TextEncoderLayer(Module):
    def __init__(self, d: EncoderDescription, tensors: Tensors, k: int) -> None:
        self.inputs = Projections(
            tensors, [f"{k}.{part}" for part in ("query", "key", "value")], [d.width] * 3, d.width
        )
        self.output = Projections(tensors, [f"{k}.output"], [d.width], d.width)
        self.up = Projections(tensors, [f"{k}.up"], [d.forward], d.width)
        self.down = Projections(tensors, [f"{k}.down"], [d.width], d.forward)
        self.attention_norm, self.forward_norm = (
            Norm(tensors, f"{k}.{part}_norm", d.width, d.epsilon, True) for part in ("attention", "forward")
        )
        self.heads, self.size, self.activation = d.heads, d.width // d.heads, d.activation

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, tokens, width = x.shape
        q, k, v = (y.reshape(rows, tokens, self.heads, self.size).swapaxes(1, 2) for y in self.inputs(x))
        seen = q.scaled_dot_product_attention(k, v, mask).swapaxes(1, 2).reshape(rows, tokens, width)
        x = self.attention_norm(x + self.output(seen)[0])
        (y,) = self.up(x)
        return self.forward_norm(x + self.down(_FUNCTIONS[self.activation](y))[0])


class TextEncoder(Module, buffers=("tokens", "positions", "types", "distances")):
    """Vectors of tokens (rows, tokens, width)."""

    tokens: Tensor
    positions: Tensor
    types: Tensor | None
    distances: Tensor | None

    def __init__(self, d: EncoderDescription, tensors: Tensors) -> None:
        self.tokens = _table(tensors, "tokens", d.vocabulary, d.width)
        rows = floats(tensors.take("positions.weight", (d.positions, d.width)))[d.first_position :]
        self.positions = tensor(rows)
        self.types = _table(tensors, "types", d.types, d.width) if d.types else None
        self.norm = Norm(tensors, "norm", d.width, d.epsilon, True)
        self.layers = [TextEncoderLayer(d, tensors, k) for k in range(d.layers)]
        self.reach = len(rows) - 1
        self.distances = None
        if d.buckets:
            by_bucket = floats(tensors.take("distances.weight", (d.buckets, d.heads)))
            self.distances = tensor(by_bucket[two_sided_buckets(self.reach, d.buckets, FAR)].T.copy())

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        places = arange(input_ids.shape[1], dtype="int32")
        x = self.tokens.take(input_ids, 0) + self.positions.take(places, 0)
        if self.types is not None:
            x = x + (self.types[0] if self.types.shape[0] == 1 else self.types.take(token_type_ids, 0))
        mask = (attention_mask > 0).unsqueeze(1).unsqueeze(1)
        if self.distances is not None:
            apart = places.unsqueeze(0) - places.unsqueeze(1) + self.reach
            mask = where(mask, self.distances.take(apart, 1).unsqueeze(0), HIDDEN)
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


Head = Callable[[Tensor], Tensor]


def _vectors(d: EncoderDescription, tensors: Tensors, encoder: TextEncoder, labels: int) -> Head:
    return lambda x: x


def _of_text(d: EncoderDescription, tensors: Tensors, encoder: TextEncoder, labels: int) -> Head:
    """Of the first token."""
    dense = _dense(tensors, "classes.dense", d.width, d.width)
    output = _dense(tensors, "classes.output", labels, d.width)
    function = _FUNCTIONS[d.family.class_activation]
    return lambda x: output(function(dense(x[:, 0])))


def _of_tokens(d: EncoderDescription, tensors: Tensors, encoder: TextEncoder, labels: int) -> Head:
    return _dense(tensors, "classes.output", labels, d.width)


def _of_words(d: EncoderDescription, tensors: Tensors, encoder: TextEncoder, labels: int) -> Head:
    dense = _dense(tensors, "words.dense", d.width, d.width)
    norm = Norm(tensors, "words.norm", d.width, d.epsilon, True)
    table = encoder.tokens if d.tied else _table(tensors, "words.output", d.vocabulary, d.width)
    bias = vector(tensors, "words.output.bias", d.vocabulary)
    function = _FUNCTIONS[d.activation]
    return lambda x: norm(function(dense(x))).linear(table, bias)


@dataclass(frozen=True)
class EncoderHead:
    """A row of HEADS. model: how the classes of models with it end, "" for any; tensors: those of the file that are its own; output: what its
    output is called."""

    model: str
    tensors: Sequence[str]
    output: str
    make: Callable[[EncoderDescription, Tensors, TextEncoder, int], Head]


HEADS: Final[Mapping[str, EncoderHead]] = {
    "vectors": EncoderHead("", (), "last_hidden_state", _vectors),
    "text": EncoderHead("ForSequenceClassification", ("classes.dense", "classes.output"), "logits", _of_text),
    "tokens": EncoderHead("ForTokenClassification", ("classes.output",), "logits", _of_tokens),
    "words": EncoderHead("ForMaskedLM", ("words.dense", "words.norm", "words.output"), "logits", _of_words),
}
"""What is said of a text: the vectors of its tokens, the classes of all of it, the classes of its tokens, the words in their places."""
