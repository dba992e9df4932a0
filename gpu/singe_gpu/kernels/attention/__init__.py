"""The templates of attention, softmax(scale · q · kᵀ + mask) · v, which store no scores.

A workgroup goes through the keys of some rows in blocks. For each row it has the largest score so far, the sum of
exp(score − largest), and the sum of the values times that; when the largest score grows, both sums are scaled down. If
there are too few rows to keep a device busy, the keys are split over workgroups, and a second kernel joins what these found.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial, reduce

from singe.extension import Attention, Dim, Printed, dim_max, dim_min

from ...code.shader import Shader, Text
from ...code.variants import for_all_sizes, variants
from ...dialect import Dialect
from .choice import Cut, chosen
from .few import Few, print_few
from .join import print_join
from .parts import AttentionParts, ports, scratch
from .tiles import print_tiles


@lru_cache(maxsize=256)
def print_attention(dialect: Dialect, a: Attention) -> Printed:
    """The function, with the ports of its inputs and of the result, for all sizes."""
    return for_all_sizes(print_cuts(dialect, a, chosen(a)))


def print_cuts(dialect: Dialect, a: Attention, cuts: list[Cut]) -> list[Printed]:
    """A kernel for each cut, and one that joins for all of them, if keys are split."""
    splits: Dim = sum((cut.splits * cut.when for cut in cuts), 0)
    is_split = dim_min(splits - 1, 1)
    results = [cut.results for cut in cuts if cut.splits != 1]
    # No buffer of a kernel that runs may be empty.
    room = dim_max(scratch(a, reduce(dim_max, results, 0)), 16)
    found = []
    for cut in cuts:
        partly = cut.splits != 1
        scratch_bytes = room if partly else 0
        printed = variants(dialect, ports(a, partial=partly), partial(_print, a, cut), cut.when, scratch_bytes)
        found.append(replace(printed, flops=a.flops))
    if is_split != 0:
        shared = 8 if any(isinstance(cut.way, Few) for cut in cuts) else 1
        join = partial(print_join, a, splits, shared)
        found.append(variants(dialect, ports(a, joined=True), join, is_split, room))
    return found


def _print(a: Attention, cut: Cut, shader: Shader) -> Text:
    parts = AttentionParts(a, shader, cut.splits)
    return print_few(parts, cut.way) if isinstance(cut.way, Few) else print_tiles(parts, cut.way)
