"""Which groups of a Program are the last to read a place, and which may overwrite what they read: along all ways that a run may go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ...program.program import Place
from ...program.words import settle

Places: TypeAlias = frozenset[Place]


class LastReads(NamedTuple):
    """What ends at a group."""

    last: Places
    """The places that it is the last to read, or reads and overwrites."""
    alone: Places
    """Those of them whose arrays no other place shares, so that the group's result may have their memory."""
    dead: Places
    """The places that some way to the group leaves, and nothing reads from there."""


def last_reads(
    slots: Sequence[Sequence[Places]], fresh: Sequence[bool], ways: Sequence[Sequence[int]]
) -> list[LastReads]:
    """What ends at each group. slots: the places that a group reads, and those that it writes. fresh: whether its results share no
    array with what it reads. ways: the groups to which a run may go from each (program/words.py)."""
    end = len(ways)
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for k, there in enumerate(ways):
        for to in there:
            before[to].append(k)

    def needed(k: int, later: Places) -> Places:
        """The places that are read from a group on, if those in `later` are read after it."""
        return later if k == end else (later - slots[k][1]) | slots[k][0]

    def share(k: int, shared: Places) -> Places:
        """The places whose arrays others may share after a group, if those in `shared` may before it."""
        reads, writes = slots[k]
        return shared - writes if fresh[k] else shared | reads | writes

    nothing: Places = frozenset()
    # The ways from the end, in numbers from there.
    back = [[end - to for to in before[end - k]] for k in range(end)]
    ahead = settle(back, nothing, lambda k, later: needed(end - k, later), frozenset.union)
    read = [later or nothing for later in ahead][::-1]
    shared = [places or nothing for places in settle(ways, nothing, share, frozenset.union)]
    found: list[LastReads] = []
    for k in range(end):
        reads, writes = slots[k]
        last = frozenset(p for p in reads if p not in read[k] or p in writes)
        dead = nothing.union(*(read[b] for b in before[k])) - needed(k, read[k])
        found.append(LastReads(last, last - shared[k] if fresh[k] else nothing, dead))
    return found
