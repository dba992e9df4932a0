"""What is done for a graph, in order: kernels that fusion made, ops of their own, and sizes that a run finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from ...graph import Graph, Node, storage_of
from ...late_dataclass import dataclass
from ...ops import SIZES, Opaque, Region, Result, Row
from ..fuse import Group, fuse
from ..lower.bfloat16_scatter import rounded_once
from ..lower.runtime_sizes import computed
from ..lower.sorting_networks import on_device
from ..partition import on_host
from ..target import Target, execution_of
from .buffers import bytes_of, weight
from .reorder import release_memory_early


@dataclass(frozen=True, eq=False)
class BindSize:
    """An item: set a size to the value of a node."""

    size: str
    node: Node


Item: TypeAlias = "Group | Node | BindSize"


class Items:
    """Makes the items of graphs for a target."""

    def __init__(self, target: Target) -> None:
        self.target: Final = target
        self.execution: Final = execution_of(target)

    def of(self, graph: Graph, has_code: Callable[[Group], bool]) -> tuple[Graph, list[Item]]:
        """The final form of a graph, and its items in order. has_code: whether the target has code for a group's kernel."""
        fuses = self.execution.fuses
        if fuses:
            graph = on_host(rounded_once(on_device(graph, self.target)), self.target)
        graph = computed(graph, not fuses)
        groups: dict[Node, Group] = {}
        if fuses:
            graph, found = fuse(graph, self.target.max_ports, has_code, self.target.repeated)
            groups = {g.outputs[-1]: g for g in found}
        told: dict[Node, list[str]] = {}
        for s, n in graph.own_size_nodes.items():
            if s not in n.attrs.get(SIZES, ()):
                told.setdefault(n, []).append(s)
        stepped = (Opaque, Region) if fuses else Row
        items: list[Item] = []
        for n in graph.nodes:
            if n in groups:
                items.append(groups[n])
            elif isinstance(n.row, stepped) and not isinstance(n.row, Result):
                items.append(n)
            items += (BindSize(s, n) for s in told.get(n, ()))
        # Sizes that are found in mid-run are needed by more than the readers of a value: such items keep their order.
        return graph, items if graph.own_size_nodes else release_memory_early(
            items, self.reads, partial(self._made, graph), self._room(graph)
        )

    def _made(self, graph: Graph, item: Item) -> Sequence[Node]:
        """The values that an item makes, and the nodes that are their names."""
        if isinstance(item, Group):
            return item.outputs
        assert isinstance(item, Node)
        return [item, *(u for u in graph.users[item] if isinstance(u.row, Result))]

    def _room(self, graph: Graph) -> Callable[[Node], int]:
        """The bytes of a value among the slots: none for what comes from outside or goes there."""
        outside = {self.memory(x) for x in (*graph.roots, *graph.leaves)}

        def room(n: Node) -> int:
            several = len(n.results) > 1  # which have nodes of their own
            return 0 if n in outside or n.is_const or several else weight(bytes_of(n.shape, n.dtype))

        return room

    def updates_last(self, items: list[Item], pairs: Sequence[tuple[Node, Node]]) -> list[Item]:
        """The items, with the update of each leaf moved after all readers of the leaf, if no item in between needs the new
        value.

        pairs: leaves, each with the node that is to be computed in its memory.
        """
        if not pairs:
            return items
        reads = {item: set(self.reads(item)) for item in items}
        writes = {n: item for item in items for n in (item.outputs if isinstance(item, Group) else [item])}
        for _ in pairs:
            moved = False
            for leaf, updated in pairs:
                item = writes.get(self.memory(updated))
                if item is None:
                    continue
                at = items.index(item)
                made = {n for n, by in writes.items() if by is item}
                last = max((k for k, other in enumerate(items) if leaf in reads[other]), default=at)
                if last > at and all(made.isdisjoint(reads[x]) for x in items[at + 1 : last + 1]):
                    items.insert(last, items.pop(at))
                    moved = True
            if not moved:
                break
        return items

    def memory(self, n: Node) -> Node:
        """The node whose memory this node shares, or the node itself."""
        return storage_of(n) if self.execution.views else n

    def reads(self, item: Item) -> list[Node]:
        if isinstance(item, Group):
            return [*item.inputs, *(() if item.base is None else (item.base,))]
        return [self.memory(x) for x in ((item.node,) if isinstance(item, BindSize) else item.inputs)]


def found_by(item: Item) -> Sequence[str]:
    """The sizes that a run finds at an item."""
    if isinstance(item, BindSize):
        return (item.size,)
    return () if isinstance(item, Group) else [s for s in item.attrs.get(SIZES, ()) if s]
