"""The layers of an encoder and of a decoder, made of the tensors of a file.

Vectors of a source are (length, width), those of several texts, side by side, (texts · length, width).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...late_dataclass import dataclass
from ...nn import Module
from ...ops import ROWS
from ...tensors.calls import apply_row
from ...tensors.functions.creation import concat
from ...tensors.tensor import Tensor
from ..files import Tensors
from ..layers import Norm, Projections
from .description import PairDescription, StackDescription

_FUNCTIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "gelu": lambda x: x.gelu(),
    "gelu_tanh": lambda x: x.gelu(approximate="tanh"),
    "relu": lambda x: x.relu(),
    "silu": lambda x: x.silu(),
}
Turns = tuple[Tensor, Tensor]
"""Cosines and sines of positions."""


@dataclass(frozen=True)
class Distances:
    """What the layers of one run share of the positions. turns: by which queries and keys are turned; added: to scores (heads, queries, keys)."""

    turns: Turns | None = None
    added: Tensor | None = None


def attend(q: Tensor, k: Tensor, v: Tensor, *mask: Tensor, **options: Any) -> Tensor:
    return apply_row(ROWS["attention"], (q, k, v, *mask), **options)


def by_head(x: Tensor, heads: int) -> Tensor:
    """(length, width) ↦ (heads, length, size)."""
    return x.reshape(x.shape[0], heads, -1).swapaxes(0, 1)


def together(x: Tensor) -> Tensor:
    """(heads, length, size) ↦ (length, width)."""
    heads, length, size = x.shape
    return x.swapaxes(0, 1).reshape(length, heads * size)


def part(x: Tensor, axis: int, first: Any, count: Any) -> Tensor:
    """So many of an axis from one on. A slice whose end is given by a size would have a length that nothing can tell from another."""
    starts, sizes = [0] * x.ndim, list(x.shape)
    starts[axis], sizes[axis] = first, count
    return apply_row(ROWS["slice"], (x,), starts=tuple(starts), steps=(1,) * x.ndim, sizes=tuple(sizes))


def texts_by_head(x: Tensor, texts: int, heads: int) -> Tensor:
    """(texts · length, width) ↦ (texts · heads, length, size)."""
    rows, width = x.shape
    length = rows // texts
    y = x.reshape(texts, length, heads, width // heads).swapaxes(1, 2)
    return y.reshape(texts * heads, length, width // heads)


def texts_together(x: Tensor, texts: int) -> Tensor:
    """(texts · heads, length, size) ↦ (texts · length, width)."""
    rows, length, size = x.shape
    heads = rows // texts
    return x.reshape(texts, heads, length, size).swapaxes(1, 2).reshape(texts * length, heads * size)


def attend_said(
    q: Tensor, k: Tensor, v: Tensor, texts: int, past: Any, used: Any, order: Tensor, states: Mapping[str, Tensor], *mask: Tensor,
    **options: Any,
) -> tuple[Tensor, dict[str, Tensor]]:  # fmt: skip
    """What texts attend to of themselves (texts · length, width), and the states with their keys and values. q, k, v (texts · heads, length,
    size): of tokens that follow the first `past` of each text, which goes on from the one that `order` names. The states may have room for more
    texts."""
    keys, values = (_said(states[name], y, texts, past, used, order) for name, y in (("keys", k), ("values", v)))
    y = attend(q, keys[0], values[0], *mask, causal=True, past=past, keys=used, **options)
    return texts_together(y, texts), {"keys": keys[1], "values": values[1]}


def _said(state: Tensor, y: Tensor, texts: int, past: Any, used: Any, order: Tensor) -> tuple[Tensor, Tensor]:
    """Keys or values of texts, and the state with them. Of a state only what is used is moved, or copied: its room is larger."""
    rows = y.shape[0]
    if texts == 1:
        after = state.update_slice(y, 0, past, 0)
        return after if state.shape[0] == rows else part(after[:rows], 1, 0, used), after
    before = part(state if state.shape[0] == rows else state[:rows], 1, 0, past)
    moved = before.reshape(texts, rows // texts, past, y.shape[-1]).take(order, 0).reshape(before.shape)
    said = concat([moved, y], 1)
    return said, state.update_slice(said, 0, 0, 0)


def _turned(x: Tensor, turns: Turns | None) -> Tensor:
    return x if turns is None else apply_row(ROWS["rotary_embedding"], (x, *turns), interleaved=True)


class LayerMaker:
    """Makes the parts of a stack's layers of the tensors of a file."""

    def __init__(self, tensors: Tensors, d: PairDescription, stack: StackDescription) -> None:
        self._tensors, self._d, self.stack = tensors, d, stack

    def norm(self, name: str) -> Norm:
        row = self._d.family
        return Norm(self._tensors, name, self._d.width, self._d.epsilon, not row.root_mean_square, row.norm_bias)

    def products(self, name: str, parts: str) -> Projections:
        """What attends, by the names of its parts."""
        size = self.stack.heads * self.stack.size
        return Projections(self._tensors, [f"{name}.{part}" for part in parts], [size] * len(parts), self._d.width)

    def output(self, name: str) -> Projections:
        """Of what was attended to."""
        return Projections(self._tensors, [f"{name}.output"], [self._d.width], self.stack.heads * self.stack.size)

    def forward(self, path: str) -> PairFeedForward:
        return PairFeedForward(self._tensors, path, self._d.width, self.stack)

    @property
    def norm_first(self) -> bool:
        return self._d.family.norm_first

    @property
    def scale(self) -> float:
        return self._d.score_scale


class PairFeedForward(Module):
    def __init__(self, tensors: Tensors, path: str, width: int, stack: StackDescription) -> None:
        size, self.gate = stack.forward, stack.gate
        names = [f"{path}.up", f"{path}.gate"] if stack.gate == "own" else [f"{path}.up"]
        self.up = Projections(tensors, names, [size] * (2 if stack.gate else 1), width)
        self.down = Projections(tensors, [f"{path}.down"], [width], size)
        self.activation = stack.activation

    def forward(self, x: Tensor) -> Tensor:
        y, *gate = self.up(x)
        function = _FUNCTIONS[self.activation]
        return self.down(function(gate[0]) * y if gate else function(y))[0]


class Residual(Module):
    """Adds to vectors what a part makes of them; they are normed before, or with it."""

    def __init__(self, layers: LayerMaker, name: str) -> None:
        self.norm = layers.norm(name)
        self.first = layers.norm_first

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.first else x

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y if self.first else self.norm(x + y)


class PairEncoderLayer(Module):
    def __init__(self, layers: LayerMaker, path: str) -> None:
        self.attention, self.forwarding = (Residual(layers, f"{path}.{part}_norm") for part in ("attention", "forward"))
        self.inputs = layers.products(f"{path}.attention", "qkv")
        self.output = layers.output(f"{path}.attention")
        self.feed_forward = layers.forward(path)
        self.heads, self.scale = layers.stack.heads, layers.scale

    def forward(self, x: Tensor, distances: Distances) -> Tensor:
        q, k, v = (by_head(y, self.heads) for y in self.inputs(self.attention.before(x)))
        q, k = _turned(q, distances.turns), _turned(k, distances.turns)
        mask = () if distances.added is None else (distances.added,)
        (y,) = self.output(together(attend(q, k, v, *mask, scale=self.scale)))
        x = self.attention.after(x, y)
        return self.forwarding.after(x, self.feed_forward(self.forwarding.before(x)))


class PairDecoderLayer(Module):
    def __init__(self, layers: LayerMaker, path: str) -> None:
        self.attention, self.crossing, self.forwarding = (
            Residual(layers, f"{path}.{part}_norm") for part in ("attention", "cross", "forward")
        )
        self.inputs = layers.products(f"{path}.attention", "qkv")
        self.output = layers.output(f"{path}.attention")
        self.query, self.heard = (layers.products(f"{path}.cross", parts) for parts in ("q", "kv"))
        self.cross_output = layers.output(f"{path}.cross")
        self.feed_forward = layers.forward(path)
        self.heads, self.scale = layers.stack.heads, layers.scale

    def forward(
        self, x: Tensor, texts: int, past: Any, used: Any, heard: Any, order: Tensor, distances: Distances, states: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:  # fmt: skip
        """x (texts · length, width) ↦ the same, and the keys and values of its texts. heard: how many positions of the source are in use."""
        q, k, v = (texts_by_head(y, texts, self.heads) for y in self.inputs(self.attention.before(x)))
        q, k = _turned(q, distances.turns), _turned(k, distances.turns)
        mask = () if distances.added is None else (concat([distances.added] * texts, 0),)
        y, after = attend_said(q, k, v, texts, past, used, order, states, *mask, scale=self.scale)
        x = self.attention.after(x, self.output(y)[0])
        (q,) = self.query(self.crossing.before(x))
        y = attend(by_head(q, self.heads), states["heard_keys"], states["heard_values"], keys=heard, scale=self.scale)
        x = self.crossing.after(x, self.cross_output(together(y))[0])
        return self.forwarding.after(x, self.feed_forward(self.forwarding.before(x))), after
