"""What must hold of the words of a Program that was read from a file, before they are used.

All groups are complete, and what they name is there. A run ends, if its conditions do: a jump lands on a group, and back
only to where a loop begins, which it can leave. Sizes are found before a group needs them; values of conditions and sizes
can be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

from ..dtypes import bool_, int32, int64
from ..lazy_names import LateModule
from ..shapes import Dim, Shape, at_least, size_name, symbols
from .program import Bind, Host, ProgramData
from .words import AGAIN, COPY, COUNTS, JUMP, LOOP, STOP, UNLESS, WordGroup, settle, ways

if TYPE_CHECKING:
    from . import host_checks
else:
    host_checks = LateModule("program.host_checks")

Need: TypeAlias = Callable[[bool, str], None]
"""FormatError with this text unless it holds."""

NAMES: Final = {
    COPY: "a copy",
    JUMP: "a jump",
    UNLESS: "a branch",
    LOOP: "a loop",
    AGAIN: "a turn's end",
    STOP: "a stop",
}


def check_words(p: ProgramData, need: Need) -> None:
    """Check each group by itself, and where it jumps."""
    _check_complete(p, need)
    for g in p.groups:
        _check_group(p, g, need)
    _check_jumps(p, need)


def _check_complete(p: ProgramData, need: Need) -> None:
    """Check that the words are groups, whose numbers point to something."""
    words, at = p.words, 0
    while at < len(words):
        head = words[at]
        count = words[at + 1] if at + 1 < len(words) else -1
        rest = words[at + 2 : at + 2 + count]
        need(0 <= count == len(rest), f"the group at word {at} is not complete")
        need(
            head in COUNTS or 0 <= head < len(p.kernels),
            f"word {at} is {head}, expected one of {len(p.kernels)} kernels",
        )
        if head >= 0:
            kernel = p.kernels[head]
            wanted = kernel.ports + len(kernel.sizes)
            buffers, zeros = rest[: kernel.ports], rest[kernel.ports :]
            what = f"the call of kernel {head} at word {at}"
            need(
                count == wanted,
                f"{what} has {count} words, expected {kernel.ports} buffers and {len(kernel.sizes)} sizes",
            )
        else:
            what = f"{NAMES[head]} at word {at}"
            need(count == COUNTS[head], f"{what} has {count} words, expected {COUNTS[head]}")
            buffers = rest[:2] if head == COPY else rest[1:] if head == UNLESS else ()
            zeros = rest[2:] if head in (COPY, LOOP) else ()
        for i in buffers:
            need(0 <= i < len(p.buffers), f"{what} names buffer {i} of {len(p.buffers)}")
        need(not any(zeros), f"{what} has {max(zeros, key=abs, default=0)} where a run sets a word, expected 0")
        if head == LOOP:
            need(0 <= rest[1] < len(p.counts), f"{what} has count {rest[1]} of {len(p.counts)}")
        if head == STOP:
            need(0 <= rest[0] < len(p.stops), f"{what} is stop {rest[0]} of {len(p.stops)}")
        at += 2 + count
    for s in p.stops:
        for i in (*s.reads, *s.writes):
            need(0 <= i < len(p.buffers), f"a stop names buffer {i} of {len(p.buffers)}")


def _check_group(p: ProgramData, g: WordGroup, need: Need) -> None:
    if g.head == COPY:
        source, target = p.buffers[g.reads[0]], p.buffers[g.writes[0]]
        need(
            fits(source.bytes, target.bytes),
            f"a copy moves buffer {g.reads[0]} of {source.bytes} bytes to buffer {g.writes[0]} of {target.bytes}",
        )
    elif g.head == UNLESS:
        b = p.buffers[g.reads[0]]
        need(
            b.dtype is bool_ and b.bytes != 0,
            f"a branch has buffer {g.reads[0]} for a condition, expected one of bool that is not empty",
        )
    elif isinstance(g.stop, Host):
        need(bool(g.writes), f"a stop runs {g.stop.op!r:.40} on the host and writes nothing")
    elif isinstance(g.stop, Bind):
        what = f"a stop binds {g.stop.size!r:.40} to"
        need((g.stop.buffer is None) != (g.stop.dim is None), f"{what} a buffer and to a dimension, or to neither")
        need(
            all(p.buffers[i].dtype in (int32, int64) and p.buffers[i].bytes != 0 for i in g.reads),
            f"{what} buffer {g.stop.buffer}, expected one of int32 or int64 that is not empty",
        )


def _check_jumps(p: ProgramData, need: Need) -> None:
    """Check that jumps land on groups, that no run goes round for ever, and that turns of loops are counted from their
    beginning."""
    end = len(p.words)
    at = {g.at: g for g in p.groups}
    ahead: list[int] = []  # where earlier groups jump to, as a heap
    ended: list[tuple[int, int]] = []  # where the outermost loops that have ended begin and end
    left: set[int] = set()  # the loops whose turns end somewhere
    for g in p.groups:
        there = g.jump
        while ahead and ahead[0] <= g.at:
            heappop(ahead)
        if there is None:
            continue
        what = f"{NAMES[g.head]} at word {g.at}"
        need(there in at or there == end, f"{what} jumps to word {there}, where no group begins")
        if g.head == AGAIN:
            loop = at.get(there - 2 - COUNTS[LOOP])
            need(
                loop is not None and loop.head == LOOP and loop.jump == g.end,
                f"{what} does not count the turns of a loop that ends there",
            )
            left.add(there)
            while ended and ended[-1][0] > there:
                ended.pop()
            ended.append((there, g.end))
        elif there > g.at:
            if g.head == LOOP:
                into = ahead[0] if ahead else there
                need(into >= there, f"a jump leads to word {into}, into {what}")
            heappush(ahead, there)
        else:
            first = at.get(there)
            need(g.head == JUMP, f"{what} jumps back")
            need(
                first is not None and first.head == UNLESS and first.jump is not None and first.jump > g.at,
                f"{what} jumps back to where no condition ends the turns",
            )
            k = bisect_right(ended, there, key=lambda loop: loop[0])
            need(k == 0 or there >= ended[k - 1][1], f"{what} jumps back into a loop")
    for g in p.groups:
        need(g.head != LOOP or g.end in left, f"the turns of the loop at word {g.at} do not end")


def check_sizes(p: ProgramData, fixed: Mapping[str, int], need: Need) -> None:
    """Check that every size is found before a group needs it. fixed: the sizes for which the words are."""
    groups = p.groups
    given = frozenset(fixed).union(*(_named(p.buffers[i].shape) for i in p.inputs))
    bits: dict[str, int] = {}  # a set of sizes is a number, with a bit for each, since there may be thousands

    def bits_of(names: Iterable[str]) -> int:
        return sum(1 << bits.setdefault(name, len(bits)) for name in {*names} - given)

    of_buffers = [bits_of(symbols(b.shape)) for b in p.buffers]
    of_kernels = [bits_of(symbols((k.sizes, *(v.groups for v in k.variants)))) for k in p.kernels]

    def found(g: WordGroup) -> int:
        if isinstance(g.stop, Bind):
            return bits_of((g.stop.size,))
        shapes = (
            [p.buffers[i].shape for i in g.writes]
            if isinstance(g.stop, Host) and host_checks.finds_sizes(g.stop)
            else []
        )
        return bits_of(name for shape in shapes for name in _named(shape))

    def known(needed: int, sizes: int, what: str) -> None:
        missing = needed & ~sizes
        if missing:
            need(False, f"{what} needs the size {[*bits][missing.bit_length() - 1]} before it is found")

    reached = settle(ways(groups), 0, lambda k, sizes: sizes | found(groups[k]), int.__and__)
    for g, before in zip(groups, reached, strict=False):
        what = f"{'the call' if g.head >= 0 else NAMES[g.head]} at word {g.at}"
        need(before is not None, f"{what} cannot be reached")
        if before is None:
            continue
        known(bits_of(symbols(g.stop.dims)) if g.stop else 0, before, what)
        if g.head == LOOP:
            known(bits_of(symbols(p.counts[g.rest[1]])), before, what)
        later = before | found(g)
        for i in (*g.reads, *g.writes):
            known(of_buffers[i], later, what)
        if g.head >= 0:
            known(of_kernels[g.head], later, what)
    last = next(reached)
    for number, i in enumerate(p.outputs):
        known(of_buffers[i], last or 0, f"output {number}")


def _named(shape: Shape) -> frozenset[str]:
    """The sizes that are dimensions of a shape by themselves."""
    return frozenset(name for d in shape if (name := size_name(d)) is not None)


def fits(taken: Dim, bound: Dim) -> bool:
    """Whether one count of bytes may be within the other, as far as no sizes are known."""
    return not at_least(taken - bound, 1)
