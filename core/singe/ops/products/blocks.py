"""The row that multiplies by weights of a few bits: `dot_blocks`, as `dot` with weights that are stored in blocks.

A weight is (q − zero) · scale: q is an integer without a sign, of 4 or 8 bits, and `block` neighbours along the depth
share the scale and the zero, which need not be whole. A word of int32 holds 32 / bits neighbours along the depth, the
first in the lowest bits. So w is (words, n), and scale is (blocks, n); zero is as scale, or one number for all weights.
The last words and the last block may hold more weights than the depth has. Where x is not finite, so are its products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import float32, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape, ceildiv, product, show
from ..kinds import Folds, Nest, Read, Shaped, register, sum_to
from ..movement.move import numbered, project

BITS_PER_WORD: Final = 32
"""Bits of a word."""
BITS: Final = (4, 8)
WEIGHTS_UNPACKED_AT_ONCE: Final = 1 << 20
"""How many weights are unpacked at once over whole arrays."""


def packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Integers (depth, n) as words (words, n); those beyond the depth are 0."""
    each = BITS_PER_WORD // bits
    depth, n = numbers.shape
    padded = np.zeros((-(-depth // each), each, n), np.uint32)
    padded.reshape(-1, n)[:depth] = numbers
    words = np.zeros((len(padded), n), np.uint32)
    for k in range(each):
        words |= padded[:, k] << np.uint32(bits * k)
    return words.view(np.int32)


def numbers_of(words: np.ndarray, bits: int, depth: int) -> np.ndarray:
    """What `packed` was given, as float32."""
    places = np.arange(0, BITS_PER_WORD, bits, dtype=np.uint32)[:, None]
    numbers = words.view(np.uint32)[:, None, :] >> places & np.uint32((1 << bits) - 1)
    return numbers.reshape(-1, words.shape[-1])[:depth].astype(np.float32)


def unpacked(xp: ArrayAdapter, w: Array, scale: Array, zero: Array, bits: int, block: int) -> Array:
    """The weights as float32 (depth, n), where the depth is that of all words."""
    words = xp.words
    places = xp.reshape(xp.arange(BITS_PER_WORD // bits, int32) * bits, (BITS_PER_WORD // bits, 1))
    numbers = words["and"](words["shr"](w[:, None, :], places), xp.asarray((1 << bits) - 1, int32))
    numbers = xp.cast(xp.reshape(numbers, (w.shape[0] * places.shape[0], w.shape[1])), float32)
    number = xp.clip(xp.arange(numbers.shape[0], int64) // block, 0, scale.shape[0] - 1)
    zero = zero if zero.ndim == 0 else xp.take(zero, number, axis=0)
    return (numbers - zero) * xp.take(scale, number, axis=0)


def _shape(x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int) -> Shape:
    if len(x.shape) < 2 or len(w.shape) != 2 or bits not in BITS or block < 1 or block % (BITS_PER_WORD // bits):
        raise ShapeError(
            f"dot_blocks: got {show(x.shape)} and {show(w.shape)} with {bits} bits in blocks of {block}, expected (…, m, k) "
            "and (words, n) with 4 or 8 bits in blocks of whole words"
        )
    depth, n = x.shape[-1], w.shape[1]
    fits = w.shape[0] == ceildiv(depth, BITS_PER_WORD // bits) and scale.shape == (ceildiv(depth, block), n)
    if not fits or zero.shape not in ((), scale.shape):
        raise ShapeError(
            f"dot_blocks: got words {show(w.shape)}, scales {show(scale.shape)} and zeros {show(zero.shape)} for a depth of "
            f"{show((depth,))} in blocks of {block}"
        )
    return (*x.shape[:-1], n)


def _nest(
    coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int
) -> Folds:
    *batch, m, n = coords
    each = BITS_PER_WORD // bits

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        (k,) = inner
        word, place = affine.index_div(k, each), affine.index_rem(k, each)
        q = scalar.shr(read(1, [word, n]), place * bits) & const((1 << bits) - 1, int32)
        at = [affine.index_div(k, block), n]
        weight = (scalar.cast(q, float32) - read(3, at[: len(zero.shape)])) * read(2, at)
        return read(0, [*project(batch, x.shape[:-2]), m, k]) * weight

    return Folds((x.shape[-1],), [("add", value)])


def _evaluate(xp: ArrayAdapter, x: Array, w: Array, scale: Array, zero: Array, *, bits: int, block: int) -> Array:
    depth, n = x.shape[-1], w.shape[1]
    count = max(WEIGHTS_UNPACKED_AT_ONCE // max(n, 1) // block, 1)
    out = xp.full((*x.shape[:-1], n), 0, float32)
    for first in range(0, scale.shape[0], count):
        part = slice(first, min(first + count, scale.shape[0]))
        ends = (min(k * block * bits // BITS_PER_WORD, w.shape[0]) for k in (part.start, part.stop))
        words = w[slice(*ends), :]
        matrix = unpacked(xp, words, scale[part, :], zero if zero.ndim == 0 else zero[part, :], bits, block)
        inside = slice(first * block, min((first + count) * block, depth))
        out = out + xp.matmul(x[..., inside], matrix[: inside.stop - inside.start, :])
    return out


def _vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, *, bits: int, block: int) -> list[Any]:
    """That of a plain product with the unpacked weights."""
    x, w, scale, zero = inputs
    each, n, depth = BITS_PER_WORD // bits, w.shape[1], x.shape[-1]
    words, blocks = w.shape[0], scale.shape[0]
    places = b.reshape(b.const(np.arange(0, BITS_PER_WORD, bits), int32), shape=(1, each, 1))
    q = b.bitwise_right_shift(b.reshape(w, shape=(words, 1, n)), places)
    q = b.reshape(b.bitwise_and(q, b.const((1 << bits) - 1, int32)), shape=(words * each, n))
    number = b.div(numbered(b, depth), b.const(block, int32))
    q = b.cast(b.slice(q, starts=(0, 0), steps=(1, 1), sizes=(depth, n)), to=float32)
    zeros = b.gather(b.expand(zero, shape=(blocks, n)), number, axis=0)
    weights = b.mul(b.sub(q, zeros), b.gather(scale, number, axis=0))
    rows = product(x.shape[:-1])
    flat = b.reshape(x, shape=(rows, depth)), b.reshape(g, shape=(rows, n))
    turned = [b.transpose(v, perm=(1, 0)) for v in (weights, flat[0])]
    by_weight = b.dot(turned[1], flat[1])
    by_scale, by_zero = b.mul(by_weight, b.sub(q, zeros)), b.neg(b.mul(by_weight, b.gather(scale, number, axis=0)))

    def summed(v: Any) -> Any:
        room = b.expand(b.const(0, float32), shape=(blocks, n))
        return b.scatter_nd_reduce(room, v, b.reshape(number, shape=(depth, 1)), reduction="add")

    by_x = b.reshape(b.dot(flat[1], turned[0]), shape=x.shape)
    return [by_x, None, summed(by_scale), sum_to(b, summed(by_zero), zero.shape)]


def _facts(*inputs: Shaped, bits: int, block: int) -> Mapping[str, Any]:
    return {"bits": bits, "block": block}


register(
    Nest(name="dot_blocks", public=False, doc="product with weights of 4 or 8 bits, which share scales and zeros in blocks", routine="matmul_blocks",
         dtypes=(float32,), argument_types=(float32, int32, float32, float32), result_type=float32, shape=_shape, nest=_nest, evaluate=_evaluate,
         facts=_facts, vjp=_vjp, tolerance=64, floor=1e-5),
)  # fmt: skip
