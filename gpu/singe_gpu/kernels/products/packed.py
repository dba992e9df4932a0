"""Products with packed weights, as the templates take them: the form as a product, and what the weights are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from singe.extension import Contraction, Reduce, Routine, contraction, float32, int32, scalar

from ...code.shader import BITS_PER_WORD, Packed, Shader
from ...dialect import Dialect
from ..vectorize import VECTOR_LENGTH, loads

KINDS: Final = ("matmul_blocks", "matmul_blocks_with_rows")


@dataclass(frozen=True)
class PackedProduct:
    """A product with packed weights: its form as one, the folds that make the row, and what its weights are read from.

    words, scale, zero: the ports, which are read four elements at a time; zero may be a constant instead.
    """

    c: Contraction
    folds: Sequence[Reduce]
    bits: int
    block: int
    words: int
    scale: int
    zero: int | float

    @property
    def depth(self) -> int:
        assert isinstance(self.c.depth, int)
        return self.c.depth

    @property
    def columns(self) -> int:
        assert isinstance(self.c.columns, int)
        return self.c.columns

    @property
    def each(self) -> int:
        """Numbers in a word."""
        return BITS_PER_WORD // self.bits


def packed_product(dialect: Dialect, routine: Routine) -> PackedProduct | None:
    """The facts of a Routine that the templates take; None for others."""
    if routine.kind not in KINDS:
        return None
    *folds, total, store = routine.kernel.stages
    c = contraction(Routine("matmul_blocks", replace(routine.kernel, stages=(total, store)), routine.facts))
    if c is None or c.window != 1:
        return None
    if not isinstance(c.depth, int) or not isinstance(c.columns, int) or 0 in (c.depth, c.columns, c.rows):
        return None
    bits, block = routine.facts["bits"], routine.facts["block"]
    ports = _weights(c)
    if ports is None:
        return None
    others = {e.value for e in loads([*(r.value for r in folds), c.a, c.store.value])}
    shader = Shader(dialect, routine.kernel.ports)
    vectors = [p for p in ports if isinstance(p, int)]
    fits = all(shader.has_vectors(p) and p not in others for p in vectors) and c.columns % VECTOR_LENGTH == 0
    if not fits or c.depth % block or any(isinstance(p, Packed) for p in routine.kernel.ports):
        return None
    words, scale, zero = ports
    whole = isinstance(zero, float) and zero.is_integer() and 0 <= zero < 1 << bits
    if isinstance(zero, float) and not whole:
        return None
    return PackedProduct(c, [r for r in folds if isinstance(r, Reduce)], bits, block, words, scale, zero)


def _weights(c: Contraction) -> tuple[int, int, int | float] | None:
    """The ports of words, scale and zero, which ROUTINES says how to find."""
    if c.b.word != "mul":
        return None
    inner, scale = c.b.args if c.b.args[1].word == "load" else c.b.args[::-1]
    words = [e for e in loads([inner]) if e.dtype is int32]
    if scale.word != "load" or len(words) != 1:
        return None
    if inner.word != "sub":
        return (words[0].value, scale.value, 0.0) if inner.word == "cast" else None
    zero = inner.args[1]
    if zero.dtype is not float32 or (zero.word == "load" and c.n not in scalar.postorder([zero])):
        return None
    if zero.word not in ("load", "const"):
        return None
    return words[0].value, scale.value, zero.value if zero.word == "load" else float(zero.value)
