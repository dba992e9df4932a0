"""Groups in, a Plan out: the order of the kernels and where every buffer lies.

Scratch lies in slots (see program.py): a buffer takes a slot when it is written and leaves it after its last reader. The
free slot that fits best is taken, so that a chain of layers uses two or three. A kernel that may work in place takes over
the slot of an input that dies with it. A graph's outputs lie in memory of their own, never in a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..graph.graph import Graph, Node, bare
from ..ir.kernel import Kernel
from ..shapes import Dim, evaluate, product, symbols
from .fuse import Group


@dataclass
class Schedule:
    """The groups in order, the slot of each node that has one, and which nodes lie directly in an output."""

    groups: list[Group]
    slots: dict[Node, int]
    count: int
    direct: dict[Node, int]


class Slots:
    """Slots handed out and taken back."""

    def __init__(self) -> None:
        self.of: dict[Node, int] = {}
        self._room: list[Dim] = []
        self._free: list[int] = []

    @property
    def count(self) -> int:
        return len(self._room)

    def take(self, n: Node) -> None:
        """A slot for a node: the smallest free one that is large enough, else the largest, which then grows."""
        need = _weight(_bytes(n))
        enough = [s for s in self._free if _weight(self._room[s]) >= need]
        if self._free:
            slot = (
                min(enough, key=lambda s: _weight(self._room[s]))
                if enough
                else max(self._free, key=lambda s: _weight(self._room[s]))
            )
            self._free.remove(slot)
            self._room[slot] = max(self._room[slot], _bytes(n), key=_weight)
        else:
            slot = len(self._room)
            self._room.append(_bytes(n))
        self.of[n] = slot

    def inherit(self, n: Node, dying: Node) -> None:
        """The slot of a node that dies, for one of the same size."""
        self.of[n] = self.of[dying]

    def give(self, n: Node) -> None:
        self._free.append(self.of[n])


def schedule(graph: Graph, groups: Sequence[Group]) -> Schedule:
    """Plan the memory of the groups, in their order."""
    made = {g.output for g in groups}
    direct: dict[Node, int] = {}
    for number, output in enumerate(graph.outputs):
        if bare(output) in made:
            direct.setdefault(bare(output), number)
    last = {n: step for step, group in enumerate(groups) for n in group.inputs}
    slots = Slots()
    planned: list[Group] = []
    for step, group in enumerate(groups):
        dying = [n for n in dict.fromkeys(group.inputs) if last[n] == step and n in slots.of]
        if group.output not in direct:
            heir = _heir(group, dying)
            if heir is None:
                slots.take(group.output)
            else:
                group = _in_place(group, heir)
                slots.inherit(group.output, dying.pop(dying.index(heir)))
        for n in dying:
            slots.give(n)
        planned.append(group)
    return Schedule(planned, slots.of, slots.count, direct)


def _bytes(n: Node) -> Dim:
    return product(n.shape) * n.dtype.size


def _weight(dim: Dim) -> int:
    """A size for comparing: every symbolic dimension counts as 8."""
    value = evaluate(dim, dict.fromkeys(symbols(dim), 8))
    assert isinstance(value, int)
    return value


def _heir(group: Group, dying: Sequence[Node]) -> Node | None:
    """The input that dies here and whose memory the output may take."""
    if isinstance(group.kernel, Kernel):
        for number in group.kernel.replaceable:
            n = group.inputs[number]
            if n in dying and _bytes(n) == _bytes(group.output):
                return n
    return None


def _in_place(group: Group, heir: Node) -> Group:
    """The group with its output in the memory of an input."""
    assert isinstance(group.kernel, Kernel)
    number = group.inputs.index(heir)
    return replace(group, kernel=group.kernel.in_place(number), inputs=tuple(n for n in group.inputs if n is not heir))
