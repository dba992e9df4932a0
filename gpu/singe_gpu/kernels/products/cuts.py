"""Products of open sizes: a Program has several cuts of them, and the sizes of a run select one.

Cuts are chosen by the number of outputs, since that decides how many workgroups there are: each cut serves a range of
these numbers. The product is printed once per cut; in a run, all but one of these kernels have no workgroups and cost
nothing. The cuts are the fewest whose times, estimated or measured at samples, are CLOSE_ENOUGH_RATIO those of the best cut at each
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import isqrt, log
from typing import Final, TypeAlias

import numpy as np

from singe.extension import Contraction, Dim, Printed, Routine, dim_min, known, product, symbols

from ...code.variants import for_all_sizes, variants
from ...dialect import Dialect
from ...rates import Cut
from .aligned import forms
from .cut_choice import Sizes, costs, extents, possible, print_at

Cuts: TypeAlias = Sequence[tuple[int, Cut]]
"""The cuts of a product, each with the least number of outputs for which it is used; the first with 0."""
Choose: TypeAlias = Callable[[Routine, Contraction], Cuts]
"""Chooses the cuts of a Routine that is a product."""
MAX_CUTS: Final = 4
"""The most cuts of a product."""
CLOSE_ENOUGH_RATIO: Final = 1.02
"""No more cuts are added once the mean ratio to the best times is at most this."""
LARGEST_SAMPLED_SIZE: Final = 1024
"""The largest open size among the samples."""
BATCH_EXPONENT: Final = 3
"""Where the size of a batch is n among the samples, sizes of the products in it are about n to this power."""


def choose(dialect: Dialect, routine: Routine, c: Contraction) -> Cuts:
    """The cuts with the lowest estimated costs."""
    cuts = possible(dialect, routine, c)
    every = samples(c)
    times = [[there[cut] for cut in cuts] for there in (costs(c, dialect.rates, sizes) for sizes in every)]
    return divided([outputs(c, sizes) for sizes in every], cuts, np.array(times))


def samples(c: Contraction) -> list[Sizes]:
    """Sets of growing sizes: all sizes 1, then one size at a time is doubled. A single set if no size is open.
    Sets without a product are left out, unless all are."""
    inner = symbols([c.rows, c.columns, c.depth])
    powers = {name: 1 if name in inner else BATCH_EXPONENT for name in sorted(symbols(c.batch) | inner)}
    sizes = dict.fromkeys(powers, 1)
    found: dict[tuple[int, ...], Sizes] = {extents(c, sizes): dict(sizes)}
    while growing := [name for name, n in sizes.items() if n < LARGEST_SAMPLED_SIZE]:
        sizes[min(growing, key=lambda name: sizes[name] ** powers[name])] *= 2
        found[extents(c, sizes)] = dict(sizes)
    return [at for extent, at in found.items() if min(extent) > 0] or list(found.values())[-1:]


def outputs(c: Contraction, sizes: Sizes) -> int:
    """The number of outputs, as far as it depends on open sizes."""
    return known(_outputs(c), sizes)


def _outputs(c: Contraction) -> Dim:
    return product(d for d in (product(c.batch), c.rows, c.columns) if not isinstance(d, int))


def divided(counts: Sequence[int], cuts: Sequence[Cut], times: np.ndarray) -> Cuts:
    """The best cuts, given the number of outputs of each sample, and the time of each cut at it."""
    losses = np.log(times / times.min(1, keepdims=True))
    total = np.vstack([np.zeros(len(cuts)), losses.cumsum(0)])
    between = total[None] - total[:, None]  # [i, j]: the loss of each cut over the samples from i to j
    least = between.min(-1)
    end = len(counts)
    # For the samples before each: the loss with the best spans so far, and where these begin.
    best: list[tuple[float, tuple[int, ...]]] = [(loss, (0,)) for loss in least[0]]
    for _ in range(MAX_CUTS - 1):
        if best[end][0] <= end * log(CLOSE_ENOUGH_RATIO):
            break
        best = [
            min([best[j], *((best[i][0] + least[i, j], (*best[i][1], i)) for i in range(1, j))]) for j in range(end + 1)
        ]
    found: list[tuple[int, Cut]] = []
    for i, j in pairwise((*best[end][1], end)):
        cut = cuts[int(between[i, j].argmin())]
        if not found or found[-1][1] != cut:
            found.append((isqrt(counts[i - 1] * counts[i]) if i else 0, cut))
    return found


def print_product(dialect: Dialect, routine: Routine, c: Contraction, choose: Choose) -> Printed:
    """A Routine that is a product, in the cuts chosen for its sizes."""
    return for_all_sizes(
        form.of_sizes(printed)
        for form in forms(dialect, routine, c)
        for printed in _printed(dialect, form.routine, form.contraction, choose(form.routine, form.contraction))
    )


def _printed(dialect: Dialect, routine: Routine, c: Contraction, cuts: Cuts) -> Iterator[Printed]:
    every = samples(c)
    ends = [*(first for first, _ in cuts[1:]), None]
    for (first, cut), end in zip(cuts, ends, strict=True):
        served = [sizes for sizes in every if first <= outputs(c, sizes) and (end is None or outputs(c, sizes) < end)]
        when = _reached(c, first) - (0 if end is None else _reached(c, end))
        sizes = served[len(served) // 2] if served else every[-1]
        yield variants(dialect, routine.kernel.ports, partial(print_at, routine, c, cut, sizes), when)


def _reached(c: Contraction, count: int) -> Dim:
    """A dimension: 1 if there are at least `count` outputs, otherwise 0."""
    return dim_min(_outputs(c) // count, 1) if count else 1
