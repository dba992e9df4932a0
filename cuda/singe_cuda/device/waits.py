"""Which commands of a list must wait for which: a graph of the driver's runs the others at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Access(NamedTuple):
    """A range of addresses that a command reads, or may write, too."""

    first: int
    end: int
    written: bool


def waits_of(commands: Sequence[Sequence[Access]]) -> list[list[int]]:
    """For each command the earlier ones that it waits for: those that write what it uses, or use what it writes; without those for which
    another one of these waits already."""
    owners = np.array([k for k, accesses in enumerate(commands) for _ in accesses], np.int64)
    first, end, written = np.array([a for accesses in commands for a in accesses], np.int64).reshape(-1, 3).T
    waits: list[list[int]] = []
    ahead: list[int] = []  # of each command all those that are done before it, as bits
    for k, accesses in enumerate(commands):
        count = int(np.searchsorted(owners, k))
        before: set[int] = set()
        for a in accesses:
            meets = (first[:count] < a.end) & (end[:count] > a.first)
            before.update(owners[:count][meets & ((written[:count] != 0) | a.written)].tolist())
        waits.append([])
        done = 0
        for other in sorted(before, reverse=True):
            if not done >> other & 1:
                waits[-1].append(other)
                done |= ahead[other] | 1 << other
        ahead.append(done)
    return waits
