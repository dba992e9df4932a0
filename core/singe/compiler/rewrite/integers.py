"""Optional rewrites: products and convolutions run in integers where that is faster. It costs accuracy.

`packed_in_integers`: `dot_blocks` with constant weights becomes a row of ops/products/blocks_int16.py: that of 8 bits where the caller allows
it and weights have 4, else that of 16. Where the caller allows 8 bits and all weights of an output, of 8 bits, share a scale, it becomes
`dot_int8`. The numbers of the weights stay as they are.

`in_int8`: `dot` and `conv_last` of float32 with constant weights become the rows of ops/products/quantised.py. These do not change:
grouped convolutions (depthwise ones too), weights that cannot be quantised, and products that are too small to gain.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ...dtypes import float32
from ...graph import Builder, Graph, Node, rebuild
from ...ops import ROWS
from ...ops.products.blocks import numbers_of
from ...ops.products.blocks_int16 import MAX_BLOCK
from ...ops.products.quantised import DEEPEST, OFFSET, TOP, quantise_weights

LEAST: Final = {"dot": (24, 24), "conv_last": (32, 24)}
"""op ↦ the fewest elements of a sum, and the fewest outputs, for which integers save more time than quantising takes.

Measured on wasm (docs/measurements/quantised.md). The rows of a convolution overlap: their elements are quantised several times.
"""
OF_EIGHT_BITS: Final = ("packed_int8", "int8")
"""Activations that allow 8 bits beside packed weights."""


def packed_in_integers(graph: Graph, activations: str) -> Graph:
    """See the module's docstring."""
    if all(n.op != "dot_blocks" for n in graph.nodes):
        return graph

    def replaced(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if activations in OF_EIGHT_BITS and (stored := _scaled_by_output(n)) is not None:
            return b.apply(ROWS["dot_int8"], new_inputs[0], *(b.const(a) for a in stored))
        if not _takes_integers(n):
            return None
        row = "dot_blocks_int8" if activations == "packed_int8" and n.attrs["bits"] == 4 else "dot_blocks_int16"
        return b.apply(ROWS[row], *new_inputs, **n.attrs)

    return rebuild(graph, Builder(), replaced, {x: x for x in graph.leaves})


def _scaled_by_output(n: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """The weights of a `dot_blocks` as `dot_int8` has them; None if it cannot have them, or if the product is too small to gain."""
    if n.op != "dot_blocks" or n.attrs["bits"] != 8:
        return None
    words, scale, zero = (x.value for x in n.inputs[1:])
    depth = n.inputs[0].shape[-1]
    if words is None or scale is None or zero is None or len(scale) != 1 or not isinstance(depth, int):
        return None
    if not LEAST["dot"][0] <= depth <= DEEPEST or words.shape[1] < LEAST["dot"][1]:
        return None
    numbers = numbers_of(words, 8, depth) - zero
    if (numbers != np.rint(numbers)).any() or (np.abs(numbers) > TOP).any():
        return None
    return (numbers + OFFSET).astype(np.uint8), scale[0]


def _takes_integers(n: Node) -> bool:
    if n.op != "dot_blocks" or n.attrs["block"] > MAX_BLOCK[n.attrs["bits"]]:
        return False
    return all(x.value is not None for x in n.inputs[1:])


def in_int8(graph: Graph) -> Graph:
    """See the module's docstring."""
    return rebuild(graph, Builder(), _in_int8, {x: x for x in graph.leaves})


def _in_int8(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
    if n.op not in LEAST:
        return None
    x, w = new_inputs
    if w.value is None or x.dtype is not float32:
        return None
    *inner, outputs = w.value.shape
    depth, columns = LEAST[n.op]
    if outputs < columns or not depth <= math.prod(inner) <= DEEPEST:
        return None
    if (len(inner) != 1) if n.op == "dot" else n.attrs["group"] != 1:
        return None
    stored = quantise_weights(w.value)
    if stored is None:
        return None
    facts = {k: v for k, v in n.attrs.items() if k != "group"}
    return b.apply(ROWS[f"{n.op.removesuffix('_last')}_int8"], x, *(b.const(a) for a in stored), **facts)
