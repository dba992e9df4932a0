"""Matrices in the common block formats of GGUF as packed weights: (q − zero) · scale, without a detour by floats.

Numbers of 5 and 6 bits take 8, and so do those of a table. In formats with a minimum the zero is its quotient by the scale, so that weights are those
of blocks.py up to a rounding; in the others they are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from ...files import let_go
from ...ops.products.blocks import BITS_PER_WORD, packed
from ..stored import PackedMatrix
from .blocks import AT_ONCE, CURVE, FP4, BlockFormat, fives, float_, nibbles, scales_and_minima


class BlockParts(NamedTuple):
    """Blocks as q · scale − least, or as (q − zero) · scale: q is (blocks, elements), scale and least (blocks, parts)."""

    q: np.ndarray
    scale: np.ndarray
    zero: float = 0.0
    least: np.ndarray | None = None


def _k(b: np.ndarray, q: np.ndarray) -> BlockParts:
    scale, least = scales_and_minima(b)
    return BlockParts(q.reshape(len(b), -1), scale[..., 0], least=least[..., 0])


def _q5_k(b: np.ndarray) -> BlockParts:
    high = b["h"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)
    return _k(b, nibbles(b["q"].reshape(-1, 4, 32)).reshape(-1, 8, 32) | high << np.uint8(4))


def _q6_k(b: np.ndarray) -> BlockParts:
    low = nibbles(b["q"].reshape(-1, 2, 64)).reshape(-1, 8, 32)
    places = np.array((0, 2, 4, 6), np.uint8)[:, None]
    high = (b["h"].reshape(-1, 2, 1, 32) >> places & np.uint8(3)).reshape(-1, 8, 32)
    return BlockParts((low | high << np.uint8(4)).reshape(len(b), -1), float_(b["d"]) * b["s"], 32.0)


def _coded(values: np.ndarray, b: np.ndarray, scale: np.ndarray) -> BlockParts:
    """Blocks of which four bits choose one of 16 whole numbers."""
    return BlockParts((values + 128).astype(np.uint8)[nibbles(b["q"])], scale, 128.0)


PARTS: Final[Mapping[str, tuple[int, Callable[[np.ndarray], BlockParts]]]] = {
    "Q4_0": (4, lambda b: BlockParts(nibbles(b["q"]), float_(b["d"]), 8.0)),
    "Q4_1": (4, lambda b: BlockParts(nibbles(b["q"]), float_(b["d"]), least=-float_(b["m"]))),
    "Q5_0": (8, lambda b: BlockParts(fives(b), float_(b["d"]), 16.0)),
    "Q5_1": (8, lambda b: BlockParts(fives(b), float_(b["d"]), least=-float_(b["m"]))),
    "Q8_0": (8, lambda b: BlockParts(b["q"].view(np.uint8) ^ np.uint8(128), float_(b["d"]), 128.0)),
    "Q4_K": (4, lambda b: _k(b, nibbles(b["q"].reshape(-1, 4, 32)))),
    "Q5_K": (8, _q5_k),
    "Q6_K": (8, _q6_k),
    "IQ4_NL": (8, lambda b: _coded(CURVE, b, float_(b["d"]))),
    "MXFP4": (8, lambda b: _coded(FP4, b, np.ldexp(np.float32(1), b["e"].astype(np.int32) - 128))),
}
"""The formats that stay packed ↦ the bits of a number then, and the parts of blocks."""


def packed_matrix(form: BlockFormat, raw: memoryview, shape: tuple[int, ...]) -> PackedMatrix:
    """The matrix (outputs, inputs) whose blocks are in `raw`. A few outputs at a time: intermediate arrays are larger."""
    bits, parts_of = PARTS[form.name]
    n, depth = shape
    blocks: np.ndarray[Any, Any] = np.frombuffer(raw, form.layout).reshape(n, -1)
    words = np.empty((-(-depth * bits // BITS_PER_WORD), n), np.int32)
    made: list[tuple[np.ndarray, np.ndarray | None]] = []
    zero, step = 0.0, max(1, AT_ONCE // max(depth, 1))
    for first in range(0, n, step):
        some = blocks[first : first + step]
        q, scale, zero, least = parts_of(some.reshape(-1))
        scale = scale.reshape(len(some), -1)
        q = q.reshape(len(some), depth)
        zeros = None
        if least is not None:  # where the scale is 0, all weights of a block are −least
            none = scale == 0
            q = np.where(np.repeat(none, depth // max(scale.shape[1], 1), axis=1), 0, q)
            scale = np.where(none, np.float32(1), scale)
            zeros = (least.reshape(scale.shape) / scale).T
        words[:, first : first + step] = packed(q.T, bits)
        made.append((scale.T, zeros))
    let_go(raw)
    scale = np.concatenate([s for s, _ in made], axis=1, dtype=np.float32)
    every = [z for _, z in made if z is not None]
    middle = np.concatenate(every, axis=1, dtype=np.float32) if every else np.asarray(zero, np.float32)
    return PackedMatrix(words, scale, middle, bits, depth // len(scale))
