"""The work of a step, and two works as one step: small kernels that do not depend on each other run beside each other.

A target whose steps are launches has code for that. A work becomes one with the work of the step before it, so that nothing changes
its place; neither may read or write the memory that the other writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from ...ir.kernel import Kernel
from ...late_dataclass import dataclass
from ...program.program import Place
from ...shapes import Dim
from ..fuse import Group
from ..target import Printed, PrintsBeside, Target

BESIDE: Final = " | "
"""Between the labels of kernels that are one step."""


@dataclass(frozen=True)
class RegionWork:
    """The kernel of a Dispatch: the group of nodes that it computes, and the code that the target printed for it."""

    printed: Printed
    buffers: int
    group: Group | None
    label: str
    moved: Dim
    """The bytes that it reads and writes."""
    parts: tuple[tuple[Kernel, tuple[int, ...]], ...] = ()
    """The kernels of which it is made, or may become a part, with the buffers of each."""


def beside(
    first: RegionWork, second: RegionWork, place: Callable[[int], Place], target: Target
) -> tuple[RegionWork, tuple[int, ...]] | None:
    """Two works as one, and its buffers; None if they depend on each other, or there is no code for both. place: where a buffer lies."""
    touched: list[set[Place]] = []
    written: list[set[Place]] = []
    for work in (first, second):
        ports = [(i, port.written) for kernel, own in work.parts for i, port in zip(own, kernel.ports, strict=True)]
        touched.append({place(i) for i, _ in ports})
        written.append({place(i) for i, writes in ports if writes})
    if not first.parts or not written[0].isdisjoint(touched[1]) or not written[1].isdisjoint(touched[0]):
        return None
    parts = (*first.parts, *second.parts)
    kinds = {i: port for kernel, own in parts for i, port in zip(own, kernel.ports, strict=True)}
    used = tuple(sorted(kinds, key=lambda i: kinds[i].written))
    if len(used) > target.max_ports:
        return None
    number, ports = {i: k for k, i in enumerate(used)}, tuple(kinds[i] for i in used)
    printed = cast("PrintsBeside", target).print_beside(
        [k.renumbered({at: number[i] for at, i in enumerate(own)}, ports) for k, own in parts]
    )
    if printed is None:
        return None
    label = f"{first.label}{BESIDE}{second.label}"
    return RegionWork(printed, len(used), None, label, first.moved + second.moved, parts), used
