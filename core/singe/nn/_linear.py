"""The linear layer, that with packed weights, and the bilinear one."""

from __future__ import annotations

import numpy as np

from ..dtypes import float32
from ..errors import InputError
from ..ops import ROWS
from ..ops.products.blocks import BITS, BITS_PER_WORD
from ..runtime.random_keys import Rng, one_generator
from ..tensors.calls import apply_row
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor
from ._module import Module
from .init import by_inputs, check_sizes


class Linear(Module):
    """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, rng: Rng = None) -> None:
        check_sizes(self, in_features=in_features, out_features=out_features)
        rng = one_generator(rng)
        self.weight = by_inputs((out_features, in_features), in_features, rng=rng)
        self.bias = by_inputs((out_features,), in_features, rng=rng) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.linear(self.weight, self.bias)


class PackedLinear(Module, buffers=("words", "scale", "zero")):
    """Linear with weights of 4 or 8 bits that stay packed in memory, as `load_weights(…, packed=True)` makes it.

    A weight is (q − zero) · scale. `block` neighbours along the inputs share the scale, and the zero unless it is one
    number for all. words is (words, outputs): 32 / bits neighbours in each, the first in the lowest bits; scale is
    (blocks, outputs). The weights are constants of a trained model; only the bias is a parameter.
    """

    words: Tensor
    scale: Tensor
    zero: Tensor
    bias: Tensor | None
    bits: int
    block: int

    def __init__(
        self, in_features: int, out_features: int, bits: int = 4, block: int = 32, bias: bool = True, zeros: bool = True
    ) -> None:
        """zeros: whether each block has a zero of its own."""
        if bits not in BITS or block < 1 or block * bits % BITS_PER_WORD:
            raise InputError(
                f"PackedLinear: {bits} bits in blocks of {block}; expected 4 or 8, in blocks of whole words"
            )
        blocks = -(-in_features // block)
        self.bits, self.block = bits, block
        self.words = tensor(np.zeros((-(-in_features * bits // BITS_PER_WORD), out_features), np.int32))
        self.scale = tensor(np.zeros((blocks, out_features), np.float32))
        self.zero = tensor(np.zeros((blocks, out_features) if zeros else (), np.float32))
        self.bias = tensor(np.zeros(out_features, np.float32)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).cast(float32)
        scale, zero = self.scale.cast(float32), self.zero.cast(float32)
        y = apply_row(ROWS["dot_blocks"], (rows, self.words, scale, zero), bits=self.bits, block=self.block)
        y = y.reshape(*x.shape[:-1], self.words.shape[-1]).cast(x.dtype)
        return y if self.bias is None else y + self.bias


class Bilinear(Module):
    """x1 · weight[k] · x2 + bias[k] for each output k; weight is (outputs, inputs of x1, inputs of x2)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, rng: Rng = None
    ) -> None:
        rng = one_generator(rng)
        self.weight = by_inputs((out_features, in1_features, in2_features), in1_features, rng=rng)
        self.bias = by_inputs((out_features,), in1_features, rng=rng) if bias else None

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.bilinear(x2, self.weight, self.bias)
