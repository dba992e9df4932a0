"""One function's work among the parts of a run: one of its loops, cut into as many nearly equal ranges.

A function's last two arguments are the number of the part that it does and how many parts there are. Only whole turns
go to different parts, so that results are equal bit for bit however many there are. Part k of n is parts 2k and 2k + 1
of 2n. What cannot be cut is part 0's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from singe.extension import Dim, Kernel, evaluate, symbols

from ..encode import Body, get_local, i32, integers, ops
from .lower import Lowering
from .writer import Writer

LARGEST: Final = 8 << 20
"""Bytes of a part's scratch beyond which a convolution copies no lines of its input there."""
ENOUGH: Final = 12
"""Turns of a loop that divide well among a few threads."""


def begin(kernel: Kernel, scratch: bool, sizes: Sequence[Dim]) -> Body:
    """A kernel's function: it takes an address for each port and for the workspace, the sizes, the part and how many."""
    return Body(integers(len(kernel.ports) + scratch + len(sizes) + 2))


def choose(turns: Sequence[Dim]) -> int | None:
    """Which of some nested loops, the outermost first, is cut: the first of enough turns, else that of the most."""
    counts = [_guess(d) for d in turns]
    for i, count in enumerate(counts):
        if count >= ENOUGH:
            return i
    most = max(counts, default=0)
    return counts.index(most) if most > 1 else None


def _guess(dim: Dim) -> int:
    """A dimension where every size is 1."""
    value = evaluate(dim, dict.fromkeys(symbols(dim), 1))
    assert isinstance(value, int)
    return value


def divide(body: Body, low: Lowering, end: bytes, step: int = 1, turns: int | None = None) -> tuple[int, int]:
    """Locals with this part's range of a loop from 0 to `end` (code that pushes it).

    Turns take `step` each, but for the last of `turns`, which ends at `end`.
    """
    count, whole, rest = (body.local("i32") for _ in range(3))
    body.add(i32(turns) if turns is not None else end + i32(step - 1) + ops("i32.add") + i32(step) + ops("i32.div_u"))
    body.tee(count)
    body.get(low.parts)
    body.op("i32.div_u")
    body.set(whole)
    body.get(count, low.parts)
    body.op("i32.rem_u")
    body.set(rest)
    start, stop = body.local("i32"), body.local("i32")
    # ⌊number · count / parts⌋ without a large product: a half is as much as two quarters, wherever these end.
    for bound, number in ((start, 0), (stop, 1)):
        body.get(low.part)
        if number:
            body.add(i32(number) + ops("i32.add"))
        body.tee(bound)
        body.get(whole)
        body.op("i32.mul")
        body.get(bound, rest)
        body.op("i32.mul")
        body.get(low.parts)
        body.op("i32.div_u", "i32.add")
        body.set(bound)
    for bound in (start, stop):
        body.add(end)
        body.get(bound)
        body.add(i32(step) + ops("i32.mul"))
        body.get(bound, count)
        body.op("i32.eq", "select")
        body.set(bound)
    body.free(count, whole, rest)
    return start, stop


def least(local: int, limit: int) -> bytes:
    """Code that pushes the smaller of a local and a number."""
    both = get_local(local) + i32(limit)
    return both + both + ops("i32.lt_s select")


@contextmanager
def first_alone(body: Body, low: Lowering, alone: bool) -> Iterator[None]:
    """What only part 0 does, if `alone`."""
    if not alone:
        yield
        return
    body.get(low.part)
    body.op("i32.eqz")
    with body.when():
        yield


@contextmanager
def loop(writer: Writer, low: Lowering, local: int, extent: Dim, shared: bool) -> Iterator[None]:
    """A loop over all of its turns, or, shared, over this part's."""
    end = low.dim_code(extent)
    start, stop = divide(writer.body, low, end) if shared else (None, None)
    writer.body.add(i32(0) if start is None else get_local(start))
    writer.body.set(local)
    sure = not shared and isinstance(extent, int) and extent > 0
    with writer.loop(local, end if stop is None else get_local(stop), 1, sure):
        yield
