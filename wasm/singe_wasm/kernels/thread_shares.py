"""Divides the work of a function among the parts of a run: one of its loops is cut into nearly equal ranges.

A function's last two parameters are the number of the part to compute and the number of parts. Ranges are cut at whole
turns, so results have the same bits for any number of parts; part k of n covers parts 2k and 2k + 1 of 2n. If there is no
loop to cut, part 0 does all the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from singe.extension import Dim, Kernel, Routine, guessed

from ..code.encode import Body, integers
from ..code.values import I32, Int, select
from ..code.writer import Writer
from .lower import Lowering, SizeParameters

MAX_SCRATCH_BYTES: Final = 8 << 20
"""The most bytes of scratch to which a convolution copies lines of its input."""
TURNS_THAT_DIVIDE_WELL: Final = 12
"""Turns of a loop that divide well among a few threads."""
USUAL_THREADS: Final = 4
"""A usual number of threads; what divides evenly among them does so among two."""
NOTICED_PERCENT: Final = 3
"""Percent of their time that matter: a difference below this does not move the cut from the outer loop."""
ASSUMED_SIZE: Final = 256
"""The value assumed for an open dimension if only its magnitude matters."""


def begin(kernel: Kernel | Routine, scratch: bool, sizes: SizeParameters) -> Writer:
    """A kernel's function: an address for each port and for the scratch memory, the sizes, the part and how many parts."""
    return Writer(Body(integers(len(kernel.ports) + scratch + len(sizes) + 2)))


def choose_loop(turns: Sequence[Dim], equal: int = 0) -> int | None:
    """The loop to cut, of nested loops given outermost first: the first one with enough turns, otherwise the longest.

    equal: of so many innermost loops, which cost the same to cut, the one whose turns divide most evenly.
    """
    counts = [guess(d, 1) for d in turns]
    for i, count in enumerate(counts):
        if count >= TURNS_THAT_DIVIDE_WELL:
            rivals = range(i, len(counts) if i >= len(counts) - equal else i + 1)
            return min((j for j in rivals if counts[j] >= TURNS_THAT_DIVIDE_WELL), key=lambda j: _idle(counts[j]))
    most = max(counts, default=0)
    return counts.index(most) if most > 1 else None


def _idle(turns: int) -> int:
    """Percent of USUAL_THREADS threads' time that is lost if turns are divided among them, in steps of a few percent."""
    return 100 * (-turns % USUAL_THREADS) // (turns * NOTICED_PERCENT)


def guess(dim: Dim, size: int = ASSUMED_SIZE) -> int:
    """A dimension with every open size taken as this number."""
    return guessed(dim, size)


def divide(w: Writer, low: Lowering, end: Int, step: int = 1, turns: Int | None = None) -> tuple[I32, I32]:
    """Locals with this part's range of a loop from 0 to `end`.

    Turns take `step` each, but for the last of `turns`, which ends at `end`.
    """
    start, stop = w.i32(), w.i32()
    with w.scope():
        end = w.simple(end)
        count = w.i32((end + (step - 1)) // step if turns is None else turns)
        whole, rest = w.i32(count // low.parts), w.i32(count % low.parts)
        # ⌊number · count / parts⌋ without a large product, and the same for half as many parts with half the number.
        for bound, number in ((start, low.part), (stop, low.part + 1)):
            w.set(bound, number)
            w.set(bound, bound * whole + (bound * rest) // low.parts)
        for bound in (start, stop):
            w.set(bound, select(bound.equals(count), end, bound * step))
    return start, stop


@contextmanager
def first_alone(w: Writer, low: Lowering, alone: bool) -> Iterator[None]:
    """Code that only part 0 runs, if `alone`."""
    if not alone:
        yield
        return
    with w.when(low.part.zero):
        yield


@contextmanager
def loop(w: Writer, low: Lowering, local: I32, extent: Dim, shared: bool) -> Iterator[None]:
    """A loop over all of its turns or, if shared, over this part's."""
    start, stop = divide(w, low, low.size(extent)) if shared else (0, low.size(extent))
    with w.loop(local, stop, start=start):
        yield
