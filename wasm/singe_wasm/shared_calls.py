"""Which calls of a run several threads share, and into how many parts each is cut."""

from __future__ import annotations

from collections.abc import Mapping
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
    """heads: the position of a call's head ↦ what is added to it. stride: the bytes of each other thread's workspace."""

    heads: Mapping[int, int]
    stride: int


def shared_calls(plan: Plan, threads: int) -> SharedCalls:
    """Those of a plan at its sizes."""
    if threads == 1:
        return SharedCalls({}, 0)
    heads: dict[int, int] = {}
    most, total, stride = {**plan.sizes, **plan.program.bounds}, 0, 0
    for at, kernel, rest, ports, _, _ in plan.program.groups:
        if kernel < 0:
            continue
        code = plan.program.kernels[kernel]
        took = _number(code.flops, plan.sizes) // FLOPS_PER_US + _number(code.bytes, plan.sizes) // BYTES_PER_US
        if took < CALL_US:
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
    return SharedCalls(heads if total >= RUN_US else {}, stride)


def _number(dim: Dim, sizes: Mapping[str, int]) -> int:
    """A dimension; 0 if its sizes are not known yet."""
    value = evaluate(dim, sizes)
    return max(value, 0) if isinstance(value, int) else 0
