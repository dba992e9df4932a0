"""Which cut a product gets: the one whose time is estimated to be least, by rates that were measured.

A workgroup does its part of the sum in turns of a cut's `depth` · `slices`. What a cut costs is then

    (turns + ends) · (alone + workgroups · full)

where `alone` is the time of a turn on a device that does nothing else, `full` what each workgroup adds where there are
many, and `ends` what comes before the first turn and after the last, in turns. `tests/bench/gpu.py tune` times products
on a device and fits RATES; only ratios count. A device that is at hand may know better: tune.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from singe._shape import Dim, known, product, symbols
from singe.backend import Printed
from singe.kernel import Routine, collapse

from .contraction import Contraction, contraction
from .gemm import Cut, Thin, Tile, print_contraction
from .nest import print_kernel

Choose: TypeAlias = Callable[[Routine, Contraction], Cut]
"""What says how a Routine that is a product is cut."""


@dataclass(frozen=True)
class Rate:
    """What is known of a cut; see the module's docstring. Times are in microseconds."""

    alone: float
    full: float
    ends: float


RATES: Final[Mapping[Cut, Rate]] = {
    Tile(128, 128, 16, 16, 8, unroll=16): Rate(4.77, 0.0264, 4.16),
    Tile(128, 64, 16, 8, 8, unroll=16): Rate(3.78, 0.0132, 3.31),
    Tile(64, 64, 16, 8, unroll=16): Rate(3.08, 0.00764, 3.29),
    Tile(128, 32, 16, 8, unroll=16): Rate(2.81, 0.00878, 3.49),
    Tile(64, 32, 16, 8, unroll=16): Rate(2.77, 0.0042, 3.96),
    Tile(256, 16, 8, 8, unroll=8): Rate(1.98, 0.00618, 5.1),
    Tile(64, 16, 16): Rate(2.76, 0.00384, 2.61),
    Tile(16, 64, 16): Rate(2.91, 0.00349, 2.26),
    Tile(16, 32, 32): Rate(5.14, 0.00524, 1.3),
    Tile(16, 32, 16, slices=4): Rate(4.83, 0.00919, 1.33),
    Tile(16, 16, 16, slices=4): Rate(4.64, 0.00592, 1.45),
    Tile(8, 32, 16, slices=4): Rate(4.44, 0.00632, 1.66),
    Thin(8, 32): Rate(1.71, 0.000551, 5.19),
    Thin(32, 8): Rate(0.798, 0.00038, 8.16),
    None: Rate(0.0747, 4.13e-05, 124),
}  # fmt: skip
"""As fitted on an NVIDIA H200."""
GUESSES: Final = (1, 16)
"""What a symbolic size counts as when a cut is chosen: the cut should suit both."""
LOW: Final = 64
"""Rows up to which a row for each workgroup was measured."""


def sizes_of(c: Contraction) -> list[dict[str, int]]:
    """The sizes for which a cut is chosen: one set where all are numbers."""
    names = symbols([*c.batch, c.rows, c.columns, c.depth])
    return [dict.fromkeys(names, guess) for guess in (GUESSES if names else GUESSES[:1])]


def ranked(c: Contraction) -> list[Cut]:
    """The cuts that may be had, the best by their estimates first."""
    costs = {cut: 1.0 for cut in RATES if _suits(c, cut)}
    for sizes in sizes_of(c):
        for cut in costs:
            costs[cut] *= cost(c, cut, sizes)
    return sorted(costs, key=lambda cut: costs[cut])


def choose(_: Routine, c: Contraction) -> Cut:
    """The cut of least estimated cost."""
    return ranked(c)[0]


def cost(c: Contraction, cut: Cut, sizes: Mapping[str, int]) -> float:
    """The estimate at these sizes."""
    rows, columns, depth, batch = (known(d, sizes) for d in (c.rows, c.columns, c.depth, product(c.batch)))
    turns, workgroups = work(cut, batch, rows, columns, depth)
    rate = RATES[cut]
    return (turns + rate.ends) * (rate.alone + workgroups * rate.full)


def work(cut: Cut, batch: int, rows: int, columns: int, depth: int) -> tuple[int, int]:
    """A workgroup's turns, and how many workgroups there are."""
    if cut is None:
        return depth, -(-batch * rows * columns // 64)
    if isinstance(cut, Thin):
        return -(-depth // cut.slices), batch * rows * -(-columns // cut.columns)
    return -(-depth // (cut.depth * cut.slices)), batch * -(-rows // cut.rows) * -(-columns // cut.columns)


def _suits(c: Contraction, cut: Cut) -> bool:
    if c.columns == 1 or cut is None:
        return cut is None
    if cut.slices > 1 and c.kernel.in_order:
        return False
    return isinstance(cut, Tile) or not (c.b_deep or max(known(c.rows, sizes) for sizes in sizes_of(c)) > LOW)


def print_routine(routine: Routine, features: frozenset[str], choose: Choose) -> Printed:
    """The Routine in the cut that is chosen for it."""
    found = contraction(routine)
    if found is None or 0 in (found.rows, found.columns, found.depth):
        return print_cut(routine, None, None, features)
    return print_cut(routine, found, choose(routine, found), features)


def print_cut(routine: Routine, c: Contraction | None, cut: Cut, features: frozenset[str]) -> Printed:
    """The Routine, cut as told."""
    if c is not None and cut is not None:
        return print_contraction(c, cut, features)
    # One output for each point of a short window reads side by side with its neighbours.
    return print_kernel(collapse(routine.kernel), features, "points" if routine.kind == "conv" else None)
