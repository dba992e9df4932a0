"""How an attention is cut into strips of queries, and what lies where in their scratch memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from singe.extension import EIGHT_BIT_BLOCK, Attention, Dim, DType, Port, ceildiv, int8

from .products.product import RELAXED

QUERIES_PER_STRIP: Final = 24
"""The queries of a strip."""
MAX_KEYS_PER_BLOCK: Final = 256
"""The most keys of a block."""
COLUMNS: Final = RELAXED.columns
"""The keys, or columns of values, of a panel."""
SCORE_ROW_BYTES: Final = 4 * (MAX_KEYS_PER_BLOCK + 16)
"""Bytes from one row of scores to the next."""
SCALE_BYTES: Final = 4
"""Bytes of the scale of a block of numbers in eight bits."""


@dataclass(frozen=True)
class Strips:
    """How an attention is cut, and its layout of scratch in bytes."""

    a: Attention

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        a = self.a
        mask = () if a.mask_dtype is None else (Port(a.mask_dtype),)
        return (Port(a.dtype), Port(a.held), Port(a.held), *mask, Port(a.dtype, True))

    @property
    def kind(self) -> DType:
        """The elements of keys and values."""
        return int8 if self.a.packed else self.a.held

    def bytes(self, count: int) -> int:
        """The bytes of so many, with the scales between them."""
        return count * self.kind.size + self.a.packed * (count // EIGHT_BIT_BLOCK) * SCALE_BYTES

    @cached_property
    def count(self) -> Dim:
        """The strips of a head of keys."""
        return ceildiv(self.a.rows, QUERIES_PER_STRIP)

    @cached_property
    def padded(self) -> Dim:
        """The keys of all panels."""
        return ceildiv(self.a.keys, COLUMNS) * COLUMNS

    @property
    def wide(self) -> int:
        """The width of all panels of values."""
        return -(-self.a.width // COLUMNS) * COLUMNS

    # The layout: rows of queries, rows of scores, rows of sums, each row's largest score and sum; then the panels.

    @property
    def scores(self) -> int:
        return 4 * QUERIES_PER_STRIP * self.a.size

    @property
    def sums(self) -> int:
        return self.scores + QUERIES_PER_STRIP * SCORE_ROW_BYTES

    @property
    def tops(self) -> int:
        return self.sums + 4 * QUERIES_PER_STRIP * self.wide

    @property
    def panels(self) -> int:
        return self.tops + 8 * QUERIES_PER_STRIP + 15 & -16

    @cached_property
    def values(self) -> Dim:
        return self.padded * (4 * self.a.size) + self.panels

    @cached_property
    def scratch(self) -> Dim:
        return self.values + self.padded * (4 * self.wide)
