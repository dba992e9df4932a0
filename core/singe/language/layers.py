"""The layers of a decoder, each made of the tensors of a file: no weights are made up first, and packed ones stay packed.

Matrices that multiply the same vectors are joined into one where the file quantises them alike, so that a run has fewer products.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ..dtypes import float32
from ..ir.arrays import convert
from ..nn import Module, PackedLinear
from ..ops.products.blocks import BITS_PER_WORD
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor
from ..weights.stored import PackedMatrix, StoredArray
from .files import Tensors


def floats(stored: StoredArray) -> np.ndarray:
    """The elements as float32."""
    return convert(stored.read(), np.dtype(np.float32))


def vector(tensors: Tensors, name: str, size: int) -> Tensor:
    return tensor(floats(tensors.take(name, (size,))))


class Matrix(Module, buffers=("weight",)):
    """x @ weight.T + bias with plain weights."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: np.ndarray | None) -> None:
        self.weight = weight
        self.bias = None if bias is None else tensor(bias)

    def forward(self, x: Tensor) -> Tensor:
        return x.linear(self.weight, self.bias)


class Reordered(Module, buffers=("order",)):
    """A layer whose matrix has its inputs in another order than the vectors that it gets."""

    order: Tensor

    def __init__(self, layer: PackedLinear, order: np.ndarray) -> None:
        self.layer = layer
        self.order = tensor(order)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.take(self.order, x.ndim - 1))


def packed_layer(matrix: PackedMatrix, inputs: int, bias: np.ndarray | None) -> Module:
    """The layer with these weights, for vectors in the order of the inputs."""
    layer = packed_linear(matrix, inputs, bias)
    return layer if matrix.order is None else Reordered(layer, matrix.order)


def packed_linear(matrix: PackedMatrix, inputs: int, bias: np.ndarray | None) -> PackedLinear:
    """The layer with these weights, for vectors in the matrix's own order."""
    outputs = matrix.words.shape[1]
    layer = PackedLinear(inputs, outputs, matrix.bits, matrix.block, bias is not None, matrix.zero.ndim > 0)
    held = {"words": tensor(matrix.words), "scale": tensor(matrix.scale), "zero": tensor(matrix.zero)}
    return layer.replace(**held, **({} if bias is None else {"bias": tensor(bias)}))


class Projections(Module):
    """Products of the same vectors with several matrices; calling it gives a tensor for each."""

    def __init__(self, tensors: Tensors, names: Sequence[str], outputs: Sequence[int], inputs: int) -> None:
        """names: of the matrices, without ".weight"; one name may hold them all, one below the other."""
        sizes = [sum(outputs)] if len(names) == 1 else list(outputs)
        stored = [tensors.take(f"{name}.weight", (n, inputs)) for name, n in zip(names, sizes, strict=True)]
        biases = [
            floats(tensors.take(f"{name}.bias", (n,))) if tensors.has(f"{name}.bias") else None
            for name, n in zip(names, sizes, strict=True)
        ]
        self.names, self.inputs, self.sizes = tuple(names), inputs, tuple(outputs)
        self.parts = _parts(stored, biases, inputs)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        made = [part(x) for part in self.parts]
        if len(made) == len(self.sizes):
            return tuple(made)
        (y,) = made
        return tuple(y[..., a:b] for a, b in pairwise(accumulate(self.sizes, initial=0)))


def _parts(stored: Sequence[StoredArray], biases: Sequence[np.ndarray | None], inputs: int) -> list[Module]:
    """One layer if all weights have one form, otherwise one for each."""
    packed = [None if s.packed is None else s.packed() for s in stored]
    forms = {
        None
        if m is None
        else (
            m.bits,
            m.block,
            m.zero.ndim,
            b"" if m.zero.ndim else m.zero.tobytes(),
            b"" if m.order is None else m.order.tobytes(),
        )
        for m in packed
    }
    if len(forms) > 1:
        return [_layer(s, m, b, inputs) for s, m, b in zip(stored, packed, biases, strict=True)]
    bias = None
    if any(b is not None for b in biases):
        bias = np.concatenate(
            [np.zeros(s.shape[0], np.float32) if b is None else b for s, b in zip(stored, biases, strict=True)]
        )
    matrices = [m for m in packed if m is not None]
    if not matrices:
        whole = np.concatenate([floats(s) for s in stored]) if len(stored) > 1 else floats(stored[0])
        return [Matrix(tensor(whole), bias)]
    first = matrices[0]
    if len(matrices) == 1:
        return [packed_layer(first, inputs, bias)]
    words, scale = (
        np.concatenate(arrays, axis=1) for arrays in zip(*((m.words, m.scale) for m in matrices), strict=True)
    )
    zero = np.concatenate([m.zero for m in matrices], axis=1) if first.zero.ndim else first.zero
    return [packed_layer(first._replace(words=words, scale=scale, zero=zero), inputs, bias)]


def _layer(stored: StoredArray, matrix: PackedMatrix | None, bias: np.ndarray | None, inputs: int) -> Module:
    return Matrix(tensor(floats(stored)), bias) if matrix is None else packed_layer(matrix, inputs, bias)


class TokenTable(Module, buffers=("weight",)):
    """Rows of a matrix by number."""

    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.take(ids, 0)


class PackedTokenTable(Module):
    """Rows of the matrix of a PackedLinear by number: the same weights serve both."""

    def __init__(self, matrix: PackedLinear) -> None:
        self.matrix = matrix

    def forward(self, ids: Tensor) -> Tensor:
        m = self.matrix
        each, width = BITS_PER_WORD // m.bits, m.scale.shape[0] * m.block
        words = m.words.take(ids, 1).unsqueeze(1)
        places = (np.arange(each, dtype=np.int32) * m.bits).reshape(1, each, 1)
        numbers = (words.bitwise_right_shift(tensor(places)) & (1 << m.bits) - 1).reshape(width, ids.shape[0])
        by_block = numbers.cast(float32).reshape(m.scale.shape[0], m.block, ids.shape[0])
        zero = m.zero.take(ids, 1).unsqueeze(1) if m.zero.ndim else m.zero
        return ((by_block - zero) * m.scale.take(ids, 1).unsqueeze(1)).reshape(width, ids.shape[0]).mT


def embeddings(stored: StoredArray) -> tuple[Module, Module]:
    """The layer that gives the rows of a table of tokens, and that which multiplies with the whole of it: both hold the same weights."""
    matrix = None if stored.packed is None else stored.packed()
    if matrix is None or matrix.order is not None or stored.shape[1] % matrix.block:
        weight = tensor(floats(stored))
        return TokenTable(weight), Matrix(weight, None)
    layer = packed_linear(matrix, stored.shape[1], None)
    return PackedTokenTable(layer), layer


class Norm(Module):
    """A root-mean-square norm, or one that also subtracts the mean (`layer_norm`), and has a bias unless `biased` says no."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, tensors: Tensors, name: str, size: int, epsilon: float, layer_norm: bool, biased: bool = True
    ) -> None:
        self.weight = vector(tensors, f"{name}.weight", size)
        self.bias = vector(tensors, f"{name}.bias", size) if layer_norm and biased else None
        self.size, self.epsilon, self.layer_norm = size, epsilon, layer_norm

    def forward(self, x: Tensor) -> Tensor:
        if not self.layer_norm:
            return x.rms_norm(self.size, self.weight, self.epsilon)
        return x.layer_norm(self.size, self.weight, self.bias, self.epsilon)
