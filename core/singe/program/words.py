"""What a run does: a flat list of int words, which the compiler writes and every runner reads.

Words come in groups. A group is a head that says what to do, the count of the words that follow, and those words:

| head       | words that follow     | what a run does there                                                                  |
|------------|-----------------------|----------------------------------------------------------------------------------------|
| k ≥ 0      | buffers…, sizes…      | calls kernel k over these buffers, with these sizes                                    |
| COPY −1    | to, from, bytes       | copies so many bytes from one buffer to another                                        |
| JUMP −2    | distance              | continues `distance` words after this group's head (before it if negative)             |
| UNLESS −3  | distance, buffer      | jumps, as JUMP does, unless the first element of a bool buffer is true                 |
| LOOP −4    | distance, count, left | left = count; jumps if that is 0                                                       |
| AGAIN −5   | distance              | decrements `left` of its LOOP, the word before the jump's target; jumps unless it is 0 |
| STOP −6    | number                | leaves `stops[number]`, a Host, Bind or Check, to the runner                           |

After a group that does not jump comes the next one. A run starts at the first word and ends after the last group.

A Program's words do not depend on the sizes of a run: the sizes of a call, the bytes of a copy and `left` are 0 there, and
the count of a LOOP is an index into the Program's `counts`. A Plan sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ..time_limits import time_limit

if TYPE_CHECKING:
    from .program import Code, Stop

COPY: Final = -1
JUMP: Final = -2
UNLESS: Final = -3
LOOP: Final = -4
AGAIN: Final = -5
STOP: Final = -6

COUNTS: Final[Mapping[int, int]] = {COPY: 3, JUMP: 1, UNLESS: 2, LOOP: 3, AGAIN: 1, STOP: 1}
"""A head ↦ the count of the words that follow; after a kernel's number come its ports and sizes."""


class WordGroup(NamedTuple):
    """A group: the position of its head, the words that follow, and the buffers that it reads and writes. A kernel may write
    any of its buffers."""

    at: int
    head: int
    rest: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    stop: Stop | None = None

    @property
    def end(self) -> int:
        """The position of the next group."""
        return self.at + 2 + len(self.rest)

    @property
    def jump(self) -> int | None:
        """Where it may jump to."""
        return self.at + self.rest[0] if self.head in (JUMP, UNLESS, LOOP, AGAIN) else None


def groups_in(words: Sequence[int], kernels: Sequence[Code], stops: Sequence[Stop]) -> Iterator[WordGroup]:
    """The groups of complete words, in their order."""
    at = 0
    while at < len(words):
        head, count = words[at], words[at + 1]
        rest = tuple(words[at + 2 : at + 2 + count])
        if head >= 0:
            buffers = rest[: kernels[head].ports]
            yield WordGroup(at, head, rest, buffers, buffers)
        elif head == COPY:
            yield WordGroup(at, head, rest, (rest[1],), (rest[0],))
        elif head == UNLESS:
            yield WordGroup(at, head, rest, (rest[1],), ())
        elif head == STOP:
            stop = stops[rest[0]]
            yield WordGroup(at, head, rest, stop.reads, stop.writes, stop)
        else:
            yield WordGroup(at, head, rest, (), ())
        at += 2 + count


def outermost(groups: Sequence[WordGroup]) -> Iterator[WordGroup]:
    """The groups that every run reaches: those in no branch and no loop."""
    inside = 0
    for g in groups:
        if g.at >= inside:
            yield g
        inside = max(inside, g.jump or 0)


def execution_order(words: MutableSequence[int], holds: Callable[[int], bool], at: int = 0) -> Iterator[int]:
    """The positions of the calls, copies and stops of a run over a Plan's words, in order; holds(word) reads a condition's
    buffer. `left` is the only word that a run changes. It ends with an error when the thread's time limit is over."""
    end, limit = len(words), time_limit()
    is_limited = limit.is_finite
    while at < end:
        if is_limited:
            limit.check()
        head, behind = words[at], at + 2 + words[at + 1]
        if head >= COPY or head == STOP:
            yield at
            at = behind
        elif head == AGAIN:
            start = at + words[at + 2]
            words[start - 1] -= 1
            at = start if words[start - 1] else behind
        elif head == LOOP:
            words[at + 4] = words[at + 3]
            at = behind if words[at + 4] else at + words[at + 2]
        else:
            at = behind if head == UNLESS and holds(words[at + 3]) else at + words[at + 2]


# --- what holds before and after groups ------------------------------------------------------------------------------

T = TypeVar("T")


def ways(groups: Sequence[WordGroup]) -> list[list[int]]:
    """The numbers of the groups that may come after each group; the end counts as one more group."""
    number = {g.at: k for k, g in enumerate(groups)}
    out: list[list[int]] = []
    for k, g in enumerate(groups):
        there = [] if g.jump is None else [number.get(g.jump, len(groups))]
        out.append([*([] if g.head == JUMP else [k + 1]), *there])
    return out


def settle(
    edges: Sequence[Sequence[int]], first: T, change: Callable[[int, T], T], join: Callable[[T, T], T]
) -> Iterator[T | None]:
    """What holds before each group in turn, and at the end: `first` before group 0; change(k, before) after group k, and so
    before the groups of edges[k]; joined where several ways meet. None: no way leads there.

    It is kept only where ways meet, and computed again along the way from there.
    """
    end = len(edges)
    straight = {k + 1 for k, there in enumerate(edges) if k + 1 in there}
    straight -= {to for k, there in enumerate(edges) for to in there if to != k + 1}  # what no other way leads to
    kept = {0: first}
    waiting = {0: None}
    while waiting:
        k = next(iter(waiting))
        del waiting[k]
        state, onward = kept[k], True
        while onward and k < end:
            state, onward, at = change(k, state), False, k
            for there in edges[at]:
                if there in straight:
                    k, onward = there, True
                    continue
                new = join(kept[there], state) if there in kept else state
                if there not in kept or new != kept[there]:
                    kept[there] = new
                    waiting[there] = None
    before: T | None = None
    for k in range(end + 1):
        before = before if k in straight else kept.get(k)
        yield before
        before = change(k, before) if before is not None and k < end else None
