"""Chooses how an attention is computed: which template does it, and into how many parts the keys are split.

The numbers fit times on an H200, of 2¹⁵ to 2²⁷ scores with 32 to 128 elements in a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from singe.extension import Attention, Dim, ceildiv, dim_max, dim_min

from .few import Few
from .parts import power, vectors
from .tiles import AttentionTile

Way: TypeAlias = "AttentionTile | Few"
MAX_FEW_ROWS: Final = 4
"""The most rows of a head of keys that the template for few rows takes."""
TILES_TO_FILL: Final = 128
"""So many large tiles × blocks of keys keep a device busy; if there are fewer, tiles are small."""
MAX_KEY_PARTS: Final = 64
"""The most parts of the keys: the second kernel reads a result for each."""


@dataclass(frozen=True)
class Cut:
    """A way, into how many parts the keys are split, how many results of rows and parts there are at most, and a dimension that is 1
    at the sizes for which this is chosen, otherwise 0."""

    way: Way
    splits: Dim
    results: Dim
    when: Dim = 1


def chosen(a: Attention) -> list[Cut]:
    """The cuts: one for known sizes, at most three for open ones. Of these, exactly one is chosen at any sizes."""
    # Where the number of queries is open, the template for few rows is printed for one query, as when a text grows.
    few = Few(power(a.rows if isinstance(a.rows, int) else a.group))
    is_few = 1 - dim_min(a.rows // (few.rows + 1), 1) if few.rows <= MAX_FEW_ROWS else 0
    large, small = tiles(a)
    is_large = (1 - is_few) * dim_min(groups(a, large) * blocks(a, large) // TILES_TO_FILL, 1)
    found = [
        cut(a, few, 512, is_few),  # small workgroups with few registers: several run at once
        cut(a, large, 264, is_large),
        cut(a, small, 160, 1 - is_few - is_large),
    ]
    return [one for one in found if one.when != 0]


def tiles(a: Attention) -> tuple[AttentionTile, AttentionTile]:
    """The large and the small tile for a width."""
    wide, small = vectors(a.width), AttentionTile(16, 8, 2, 4)
    if wide <= 16:
        return AttentionTile(8, 16, 8, 8), small
    return AttentionTile(16, 8, 8, 8) if wide <= 32 else AttentionTile(16, 8, 4, 4), small


def groups(a: Attention, way: Way) -> Dim:
    """The workgroups, if the keys are not split."""
    return ceildiv(a.rows, way.rows) * a.points


def blocks(a: Attention, way: Way) -> Dim:
    return dim_max(ceildiv(a.keys, way.block), 1)


def cut(a: Attention, way: Way, busy: int, when: Dim) -> Cut:
    """The keys are split so that there are about `busy` workgroups, and each has as many blocks."""
    wanted = dim_min(dim_max(busy // dim_max(groups(a, way), 1), 1), MAX_KEY_PARTS)
    count = blocks(a, way)
    splits = ceildiv(count, ceildiv(count, wanted))
    known = splits if isinstance(splits, int) else wanted
    if isinstance(known, int):
        return Cut(way, splits, a.points * a.rows * known, when)
    # Memory is a short bound: the product of open splits and rows has thousands of terms, and runs of new sizes evaluate it for each
    # layer. Where the keys are split, groups × splits ≤ busy.
    return Cut(way, splits, dim_min(a.points * a.rows * count, busy * way.rows), when)
