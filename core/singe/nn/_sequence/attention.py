"""Attention of several heads, with PyTorch's names and masks, and a cache of keys and values for text that grows."""

from __future__ import annotations

import math
from typing import Any

from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...runtime.random_keys import Rng, one_generator
from ...shapes import same_form, show, whole
from ...tensors.calls import apply_row
from ...tensors.functions.creation import arange, concat, where, zeros, zeros_like
from ...tensors.tensor import Tensor
from .._dropout import Dropout
from .._linear import Linear
from .._module import Module
from ..init import normal, xavier_uniform


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(query · keyᵀ / √size + mask) · value over (…, length, size); mask: see `additive`."""
    given = () if mask is None else (mask,)
    return apply_row(ROWS["attention"], (query, key, value, *given))


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(query · keyᵀ / √size + mask)."""
    scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.mT
    return (scores if mask is None else scores + mask).softmax(-1)


def additive(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers that are added to scores: where one of bools is true, −∞."""
    return where(mask, -math.inf, zeros_like(mask, like.dtype)) if mask.dtype.kind == "bool" else mask


def causal_mask(rows: Any, columns: Any, first: int | Tensor, like: Tensor) -> Tensor:
    """True where a column is after the row's own place, which is `first` for row 0."""
    return arange(columns, device=like.device) > (arange(rows, device=like.device) + first).unsqueeze(1)


class MultiheadAttention(Module):
    """Attention of queries (target, batch, embed_dim) to keys and values (source, batch, …); with batch_first (batch,
    length, …). The batch may be left out. The result is (outputs, weights averaged over heads, or None).

    in_proj_weight holds the projections of queries, keys and values; with kdim or vdim they are three weights.
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    out_proj: Linear
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        what = type(self).__name__
        if whole(embed_dim, what, "embed_dim") % whole(num_heads, what, "num_heads"):
            raise InputError(f"MultiheadAttention: embed_dim {embed_dim} cannot be divided into {num_heads} heads")
        rng = one_generator(rng)
        self.embed_dim, self.num_heads, self.batch_first, self.add_zero_attn = (
            embed_dim,
            num_heads,
            batch_first,
            add_zero_attn,
        )
        sizes = embed_dim, kdim or embed_dim, vdim or embed_dim
        apart = sizes != (embed_dim,) * 3
        self.in_proj_weight = None if apart else xavier_uniform((3 * embed_dim, embed_dim), rng=rng)
        weights = [xavier_uniform((embed_dim, n), rng=rng) for n in sizes] if apart else [None] * 3
        self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = weights
        self.in_proj_bias = zeros(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, rng=rng)
        if bias:
            self.out_proj = self.out_proj.replace(bias=zeros(embed_dim))
        self.bias_k = normal((1, 1, embed_dim), rng=rng) if add_bias_kv else None
        self.bias_v = normal((1, 1, embed_dim), rng=rng) if add_bias_kv else None
        self.dropout = Dropout(dropout)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Masks of bools are true for what is left out; those of floats are added to the scores. key_padding_mask: (batch,
        source); attn_mask: (target, source) or (batch · heads, target, source); is_causal: without attn_mask, each
        element attends only to those up to its place."""
        if query.ndim == 2:
            padding = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
            axis = 0 if self.batch_first else 1
            q, k, v = (t.unsqueeze(axis) for t in (query, key, value))
            y, weights = self.forward(q, k, v, padding, need_weights, attn_mask, average_attn_weights, is_causal)
            return y.squeeze(axis), None if weights is None else weights.squeeze(0)
        if query.ndim != 3 or not same_form(query.shape[-1], self.embed_dim):
            raise ShapeError(
                f"MultiheadAttention: queries {show(query.shape)}, expected 3 axes, the last {self.embed_dim}"
            )
        q = self._heads(self._batched(query), 0)
        k, v = self.keys_values(key, value)
        mask = attn_mask
        if mask is None and is_causal:
            mask = causal_mask(q.shape[2], k.shape[2], 0, q)
        if mask is not None:
            mask = additive(mask, q)
            if mask.ndim == 3:
                mask = mask.reshape(q.shape[0], self.num_heads, *mask.shape[1:])
        if key_padding_mask is not None:
            padded = additive(key_padding_mask, q).unsqueeze(1).unsqueeze(1)
            mask = padded if mask is None else mask + padded
        k, v, added = self._extended(k, v)
        if mask is not None and added:
            mask = mask.pad([(0, 0)] * (mask.ndim - 1) + [(0, added)])
        if not need_weights and not (self.dropout.training and self.dropout.p):
            return self._joined(attention(q, k, v, mask)), None
        weights = self.dropout(attention_weights(q, k, mask))
        y = self._joined(weights @ v)
        return y, None if not need_weights else weights.mean(1) if average_attn_weights else weights

    # --- with a cache ---

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of all heads: (batch, heads, source, size)."""
        return self._heads(self._batched(key), 1), self._heads(self._batched(value), 2)

    def cache(self, batch: int, length: int, device: Any = None) -> tuple[Tensor, Tensor]:
        """Room for the keys and values of so many elements."""
        shape = batch, self.num_heads, length, self.embed_dim // self.num_heads
        return zeros(shape, device=device), zeros(shape, device=device)

    def step(self, x: Tensor, position: int | Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Self-attention of new elements, the first of which is at `position`, to themselves and those before: the
        outputs, and the cache with their keys and values."""
        batched = self._batched(x)
        q, k, v = (self._heads(batched, part) for part in range(3))
        keys, values = (held.update_slice(new, 0, 0, position, 0) for held, new in ((keys, k), (values, v)))
        mask = additive(causal_mask(q.shape[2], keys.shape[2], position, q), q)
        return self._joined(attention(q, keys, values, mask)), keys, values

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """Attention to keys and values that `keys_values` made."""
        q = self._heads(self._batched(query), 0)
        mask = None if key_padding_mask is None else additive(key_padding_mask, q).unsqueeze(1).unsqueeze(1)
        return self._joined(attention(q, keys, values, mask))

    # --- parts ---

    def _batched(self, x: Tensor) -> Tensor:
        """(batch, length, size)."""
        return x if self.batch_first else x.transpose(1, 0, 2)

    def _joined(self, y: Tensor) -> Tensor:
        """The outputs of all heads, projected, in the layout of the inputs."""
        batch, _, length, _ = y.shape
        y = self.out_proj(y.transpose(0, 2, 1, 3).reshape(batch, length, self.embed_dim))
        return y if self.batch_first else y.transpose(1, 0, 2)

    def _heads(self, x: Tensor, part: int) -> Tensor:
        """The queries (part 0), keys (1) or values (2) of x (batch, length, size): (batch, heads, length, size)."""
        rows = slice(part * self.embed_dim, (part + 1) * self.embed_dim)
        whole, bias = self.in_proj_weight, self.in_proj_bias
        weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[part] if whole is None else whole[rows]
        assert weight is not None
        if not same_form(x.shape[-1], weight.shape[1]):
            raise ShapeError(f"MultiheadAttention: got {show(x.shape)}, expected {weight.shape[1]} on the last axis")
        y = x.linear(weight, None if bias is None else bias[rows])
        return self._split(y)

    def _split(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[:2], self.num_heads, self.embed_dim // self.num_heads).transpose(0, 2, 1, 3)

    def _extended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """Keys and values with those that the layer adds, and how many these are."""
        added = 0
        if self.bias_k is not None and self.bias_v is not None:
            more = [self._split(t).expand(k.shape[0], -1, -1, -1) for t in (self.bias_k, self.bias_v)]
            k, v, added = concat([k, more[0]], 2), concat([v, more[1]], 2), 1
        if self.add_zero_attn:
            k, v = (concat([t, zeros_like(t[:, :, :1])], 2) for t in (k, v))
            added += 1
        return k, v, added
