"""Which calls of a run several threads share, and into how many parts each is cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from singe.extension import Dim, Plan, align, evaluate

from .calls import MOST_PARTS, PARTS_BITS, SPACE_BITS, SPACE_WORDS

FLOPS_PER_US: Final = 60_000
BYTES_PER_US: Final = 30_000
CALL_US: Final = 6
"""A call is shared if it takes one thread about this many microseconds: some times as long as threads wait for each other."""
RUN_US: Final = 1200
"""And if all such calls take this many. In shorter runs, what threads gain goes into waking them, and into reading what others wrote."""
PART_US: Final = 100
"""A part takes so many, or all parts are as many as the threads: smaller ones mostly read what other threads wrote."""
PARTS_PER_THREAD: Final = 4


class SharedCalls(NamedTuple):
    """heads: the position of a call's head ↦ what is added to it; 0: one thread makes it. stride: the bytes of each other thread's workspace."""

    heads: Mapping[int, int]
    stride: int


def shared_calls(plan: Plan, threads: int, found: Sequence[int] | None = None) -> SharedCalls:
    """Those of a plan at its sizes. found: only of the calls that have these words."""
    groups = plan.program.groups
    if found is not None:
        groups = [groups[k] for k in {bisect_right(groups, at, key=itemgetter(0)) - 1 for at in found}]
    heads: dict[int, int] = {}
    most, total, stride = {**plan.sizes, **plan.program.bounds}, 0, 0
    for at, kernel, rest, ports, _, _ in groups:
        if kernel < 0:
            continue
        heads[at] = 0
        code = plan.program.kernels[kernel]
        took = _number(code.flops, plan.sizes) // FLOPS_PER_US + _number(code.bytes, plan.sizes) // BYTES_PER_US
        if threads == 1 or took < CALL_US:
            continue
        if not code.workspace:
            parts = threads * max(1, min(PARTS_PER_THREAD, took // (threads * PART_US)))
            heads[at] = min(parts, MOST_PARTS) << PARTS_BITS
        elif len(rest) + 2 <= SPACE_WORDS:
            room = _number(plan.program.buffers[ports[-1]].bytes, most)
            if not room:
                continue
            stride = max(stride, align(room) + 4 * SPACE_WORDS)
            heads[at] = min(threads, MOST_PARTS) << PARTS_BITS | len(ports) + 1 << SPACE_BITS
        else:
            continue
        total += took
    return SharedCalls(heads if total >= RUN_US else dict.fromkeys(heads, 0), stride)


def _number(dim: Dim, sizes: Mapping[str, int]) -> int:
    """A dimension; 0 if its sizes are not known yet."""
    value = evaluate(dim, sizes)
    return max(value, 0) if isinstance(value, int) else 0
