"""Graph in, Groups out: decides which nodes form one Kernel or Routine, and makes that Kernel.

Three kinds of node are stored in memory ("kept"): the last node of every group, nodes that several groups read and that
are expensive to compute twice, and nodes that a template must read from memory. All others are inlined where they are
read, as expressions of coordinates.

A group grows around an anchor, a Nest (a reduction, window or contraction), whose inner loops it has. Nodes after the
anchor join as long as only the last one is read outside the group; a reduction may store other members too. For most
anchors the joining nodes are elementwise over the anchor's output, seen through reshapes and transposes (the epilogue).
A reduction also takes nodes over the shape of its input, and further reductions over the same axes, so that softmax or a
layer norm becomes one kernel of several stages. A convolution also takes a pooling over its epilogue if the target has a
template for it.

Nodes without an anchor become elementwise kernels. So does the update of a state that reads the state element by
element: it works in place. Finally, elementwise kernels that read or store the same elements are joined into one that
stores several values (_join.py). Running folds and updates are separate kernels, with their inputs inlined. Opaque nodes
and regions are not kernels: their inputs and results are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ...errors import CompileError
from ...graph import Builder, Graph, Node, postorder, rebuild, storage_of
from ...ir import scalar
from ...ir.kernel import Routine
from ...late_dataclass import dataclass
from ...ops import Elementwise, Nest, Opaque, Region, Result, Running, Update, View
from ...shapes import product
from ._alike import AlikeGroups
from ._assemble import Group as Group
from ._assemble import Maker
from ._growth import MAX_MEMBERS, Growth
from ._join import joined
from ._rows import with_own_rows

MAX_INLINE_DEPTH: Final = 48
"""The longest chain of inlined nodes: deeper expressions are slow to print and need too many registers."""
MAX_OPS_COMPUTED_AGAIN: Final = 4
"""The most scalar operations for which computing a value again is faster than storing it."""
WHOLE: Final = (Opaque, Region, Result, Running, Update)
"""Kinds of row whose results are kept in memory; so are the inputs of most of them."""
Takes: TypeAlias = Callable[[Group], bool]
"""Whether the target has a template for a convolution with a pooling."""


def fuse(graph: Graph, max_ports: int, takes: Takes = lambda _: False, repeated: int = 0) -> tuple[Graph, list[Group]]:
    """The groups of a rewritten graph, in an order in which they can run, and the graph they refer to.

    max_ports and repeated are facts of the target; see compiler/target.py.
    """
    graph = _split_wide(graph, max_ports)
    groups = joined(graph, _Fuser(graph, max_ports, takes, repeated).run(), max_ports)
    groups = with_own_rows(graph, groups, max_ports, takes)
    return graph, [group.without_roundings() for group in groups]


def _split_wide(graph: Graph, max_ports: int) -> Graph:
    """The graph with each concat of more inputs than a kernel may read replaced by a tree of concats."""
    limit = max(2, (max_ports - 2) // 2)

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n.op != "concat" or len(new_inputs) <= max_ports - 2:
            return None
        parts = list(new_inputs)
        while len(parts) > limit:
            parts = [b.concat(*parts[i : i + limit], axis=n.attrs["axis"]) for i in range(0, len(parts), limit)]
        return b.concat(*parts, axis=n.attrs["axis"])

    if not any(n.op == "concat" and len(n.inputs) > max_ports - 2 for n in graph.nodes):
        return graph
    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})


@lru_cache(maxsize=4096)
def _elementwise_cost(row: Elementwise, dtypes: tuple[Any, ...], attrs: tuple[Any, ...]) -> int:
    params = [scalar.var(f"x{i}", d.compute) for i, d in enumerate(dtypes)]
    return sum(scalar.WORD_COSTS.get(e.word, 1) for e in scalar.postorder([row.body(*params, **dict(attrs))]) if e.args)


def _own_work(n: Node) -> int:
    """The scalar operations of a node, without its inputs."""
    if isinstance(n.row, Elementwise):
        return _elementwise_cost(n.row, tuple(x.dtype for x in n.inputs), tuple(n.attrs.items()))
    return n.row.work(*n.inputs, **n.attrs) if isinstance(n.row, View) else 0


@dataclass(frozen=True)
class _Cost:
    """The cost of computing one element: scalar operations, loads, and the depth of the expression.

    again: the operations, without those on coordinates and sizes alone that the target repeats rather than stores.
    """

    work: int
    loads: int
    depth: int
    again: int


class _Fuser:
    """One run of the algorithm over one graph."""

    def __init__(self, graph: Graph, max_ports: int, takes: Takes, repeated: int) -> None:
        self.graph = graph
        self.max_ports = max_ports
        self.takes = takes
        self.repeated = repeated
        self.users = graph.users
        self.number = {n: i for i, n in enumerate(graph.nodes)}
        self.outputs = {*graph.roots, *graph.own_size_nodes.values()}
        self.found = {storage_of(n) for n in graph.own_size_nodes.values()}
        self.updates = {
            storage_of(s.updated) for s in graph.states if s.leaf in _read_by_element(storage_of(s.updated))
        }
        self.members: dict[Node, Growth] = {}  # node ↦ the group of which it is a member
        self.kept: set[Node] = set()
        self.costs: dict[Node, _Cost] = {}
        self.made = AlikeGroups(self.kept)

    def run(self) -> list[Group]:
        growths = [self._grow(n) for n in self.graph.nodes if isinstance(n.row, Nest) and n not in self.members]
        for growth in growths:
            self.kept.update(growth.exits)
        for output in self.outputs:
            if storage_of(output).row is not None:
                self.kept.add(storage_of(output))
        for n in self.graph.nodes:
            if isinstance(n.row, WHOLE):
                self.kept.add(n)
                read = n.inputs[:1] if isinstance(n.row, Update) else () if isinstance(n.row, Running) else n.inputs
                self.kept.update(storage_of(x) for x in read if storage_of(x).row is not None)
        self._keep_costly()
        groups: dict[Node, Group] = {}
        by_exit: dict[Node, Growth | None] = {n: None for g in growths for n in g.exits[:-1]}
        by_exit.update((g.exits[-1], g) for g in growths)
        for n in self.graph.nodes:
            self._build(n, by_exit, groups)
        return [groups[n] for n in self.graph.nodes if n in groups]

    # --- growing around an anchor ---

    def _grow(self, anchor: Node) -> Growth:
        growth = self._grown(anchor, Growth(anchor, pools=True))
        if growth.pool is not None and not self._has_template(growth):
            growth = self._grown(anchor, Growth(anchor))
        for m in growth.coords:
            self.members[m] = growth
        return growth

    def _has_template(self, growth: Growth) -> bool:
        """Whether the target has a template for a group, if all of the group's inputs are in memory."""
        made = Maker({storage_of(x) for m in growth.coords for x in m.inputs if x not in growth.coords}, growth).group()
        return isinstance(made.kernel, Routine) and self.takes(made)

    def _grown(self, anchor: Node, growth: Growth) -> Growth:
        """The group, extended by as many of the following nodes as can join."""
        best, exits = 1, (anchor,)
        for n in self.graph.nodes[self.number[anchor] + 1 :]:
            if not any(x in growth.coords for x in n.inputs):
                continue
            # The first reader that cannot join ends the group, so no value leaves it and comes back.
            if n in self.members or n in self.updates or not self._room(n, growth) or not growth.add(n):
                break
            if storage_of(n) is n:
                leaving = dict.fromkeys(storage_of(m) for m in growth.coords if self._leaves(m, growth))
                for m in list(leaving):
                    if m is not n and self._is_computed_again(m, leaving, growth):
                        del leaving[m]
                if leaving.keys() == {n} or self._stores(leaving, growth):
                    best, exits = len(growth.coords), tuple(leaving)
        growth.restore(best, exits)
        return growth

    def _stores(self, leaving: Mapping[Node, None], growth: Growth) -> bool:
        """Whether a group may store several values: it is a reduction with enough ports, and no value gives a size."""
        room = self.max_ports - 1 - self._reads(growth.coords)
        if not growth.axes or growth.last not in leaving or len(leaving) > room or not self.found.isdisjoint(leaving):
            return False
        return not growth.full.isdisjoint(leaving) or not any(self._inlines(n, growth) for n in leaving)

    def _is_computed_again(self, n: Node, leaving: Mapping[Node, None], growth: Growth) -> bool:
        """Whether the readers of a member outside the group compute it again instead of reading it: from values that the group
        stores anyway, of which one is as large. They read no more then, and the member takes no memory."""
        if n not in growth.full or len(n.inputs) < 2 or not self._inlines(n, growth):
            return False
        large = [x for x in n.inputs if product(x.shape) == product(n.shape)]
        return len(large) == 1 and all(x in leaving for x in n.inputs) and _own_work(n) <= MAX_OPS_COMPUTED_AGAIN

    def _inlines(self, n: Node, growth: Growth) -> bool:
        """Whether the readers of a member outside the group are all elementwise over its elements, so that they can
        compute it again from the group's other values."""
        seen = [n]
        for x in seen:
            seen += (u for u in self.users[x] if storage_of(u) is n)
        users = [u for x in seen for u in self.users[x] if u not in growth.coords and u not in seen]
        same = all(isinstance(u.row, Elementwise) and product(u.shape) == product(n.shape) for u in users)
        return isinstance(n.row, Elementwise) and self.outputs.isdisjoint(seen) and same

    def _leaves(self, n: Node, growth: Growth) -> bool:
        """Whether a member's value is read outside the group."""
        return n in self.outputs or any(u not in growth.coords for u in self.users[n])

    def _room(self, n: Node, growth: Growth) -> bool:
        """Whether the group may take one more node: it has neither too many members nor, if all of its inputs are in
        memory, too many buffers."""
        members = {*growth.coords, n}
        return len(members) <= MAX_MEMBERS and self._reads(members) + 2 <= self.max_ports

    def _reads(self, members: Collection[Node]) -> int:
        """How many buffers the members read if every input from outside is in memory."""
        read = {
            storage_of(x)
            for m in members
            for x in m.inputs
            if x not in members and not (x.value is not None and x.value.size == 1)
        }
        return len(read)

    # --- what gets memory ---

    def cost(self, n: Node) -> _Cost:
        """The cost of computing one element of an inlined node."""
        found = self.costs.get(n)
        if found is None:
            if n in self.kept or n.row is None:
                found = _Cost(0, 0 if n.is_const and not n.shape else 1, 0, 0)
            else:
                parts = [self.cost(x) for x in n.inputs]
                own, loads = _own_work(n), sum(p.loads for p in parts)
                work = own + sum(p.work for p in parts)
                known = n.op == "gather" and self._repeats(n.inputs[1], parts[1])
                again = sum(p.again for p in parts) + (0 if known else own)
                found = _Cost(work, loads, 1 + max((p.depth for p in parts), default=0), again)
                if self._repeats(n, found):
                    found = replace(found, again=0)
            self.costs[n] = found
        return found

    def _repeats(self, n: Node, cost: _Cost) -> bool:
        """Whether a value hangs on coordinates and open sizes alone, and the target rather repeats than stores it. (Where
        no size is open, it is a constant.)"""
        return not cost.loads and cost.work < self.repeated and not isinstance(product(n.shape), int)

    def _keep_costly(self) -> None:
        """Decide for all nodes outside the groups, users first, whether they are kept.

        Costs accumulate from the inputs, but decisions start at the outputs, so a cost does not account for nodes that
        are kept later.
        """
        for n in self.graph.nodes:
            if n not in self.members and n.row is not None and self.cost(n).depth > MAX_INLINE_DEPTH:
                self._keep(storage_of(n))
        roots: dict[Node, set[Any]] = {}
        for n in reversed(self.graph.nodes):
            if n.row is None or n in self.members:
                continue
            users = self.users[n]
            where: set[Any] = set()
            for u in users:
                where |= {self.members[u]} if u in self.members else {u} if u in self.kept else roots[u]
            roots[n] = where
            if n in self.kept or storage_of(n) in self.kept:
                continue
            cost = self.cost(n)
            # Each view reads at its own coordinates, so the value is computed once for each view.
            times = len(where) + max(0, sum(isinstance(u.row, View) for u in users) - 1)
            cheap = cost.again <= MAX_OPS_COMPUTED_AGAIN and cost.loads <= 2 and (times <= 3 or not cost.loads)
            wanting = [u for u in users if self._wants_memory(n, u)]
            if wanting or (times > 1 and not cheap and not _is_movement(n)):
                self._keep(storage_of(self._moved(n, wanting)))

    def _keep(self, n: Node) -> None:
        if n.row is not None:
            self.kept.add(n)
            self.costs[n] = _Cost(0, 1, 0, 0)

    def _moved(self, n: Node, readers: Collection[Node]) -> Node:
        """What to keep in the place of a node that readers want in memory: what it moves, if others read that, too, and the
        readers are products, which read in any order."""
        if not all(isinstance(u.row, Nest) and u.row.routine == "matmul" for u in readers):
            return n
        source = n
        while _is_movement(source) and len(source.inputs) == 1:
            source = source.inputs[0]
        return source if source.row is not None and len(self.users[storage_of(source)]) > 1 else n

    def _wants_memory(self, n: Node, u: Node) -> bool:
        """Whether a node should be in memory because reader u reads its elements repeatedly, or needs plain loads."""
        if isinstance(u.row, (Opaque, Region)):
            return False  # its inputs are in memory anyway
        cost = self.cost(n)
        if isinstance(u.row, Nest) and u in self.members:
            if (u.row.routine or "").startswith("conv"):
                return True
            if u.row.over_axes:  # each stage computes the elements that it reads
                return cost.again > 2 * MAX_OPS_COMPUTED_AGAIN and sum(v in self.members for v in self.users[n]) > 1
            return cost.work > MAX_OPS_COMPUTED_AGAIN or cost.loads > 2
        # An update computes each element of its part once.
        read = u.inputs[1] if isinstance(u.row, Update) else u
        return cost.again > MAX_OPS_COMPUTED_AGAIN and not _is_movement(n) and product(n.shape) != product(read.shape)

    # --- building kernels ---

    def _build(self, n: Node, by_exit: Mapping[Node, Growth | None], groups: dict[Node, Group]) -> None:
        if n not in self.kept or n in groups or isinstance(n.row, (Opaque, Region, Result)):
            return
        growth = by_exit.get(n, Growth(n))
        if growth is None:  # a later node's group stores it
            return
        while True:
            group = self.made.of(growth)
            if len(group.kernel.ports) <= self.max_ports:
                groups[n] = group
                return
            victim = self._widest(growth)
            if victim is None:
                raise CompileError(
                    f"{n!r} reads {len(group.kernel.ports) - 1} buffers, and this target allows {self.max_ports - 1}"
                )
            self._keep(victim)
            self._build(victim, by_exit, groups)

    def _widest(self, growth: Growth) -> Node | None:
        """The inlined node that reads the most buffers, preferring those that fit a kernel of their own."""
        best: tuple[int, int, Node] | None = None
        seen: set[Node] = set()
        stack = [x for m in growth.coords for x in m.inputs if x not in growth.coords]
        if not growth.anchored:
            stack = list(growth.anchor.inputs)
        while stack:
            x = stack.pop()
            if x in seen or x in self.kept or x.row is None or x in growth.coords:
                continue
            seen.add(x)
            stack += x.inputs
            leaves = len(self._leaf_buffers(x))
            rank = leaves if leaves < self.max_ports else 1  # nodes that are too wide for one kernel come last
            if leaves >= 2 and storage_of(x) is x and (best is None or (rank, self.number[x]) > best[:2]):
                best = (rank, self.number[x], x)
        return best[2] if best else None

    def _leaf_buffers(self, n: Node) -> set[Node]:
        found: set[Node] = set()
        for x in postorder([n], lambda m: () if m is not n and (m in self.kept or m.row is None) else m.inputs):
            if x is not n and (x in self.kept or x.is_input or (x.is_const and x.shape)):
                found.add(storage_of(x))
        return found


def _read_by_element(n: Node) -> list[Node]:
    """The nodes from which a node is computed by elementwise ops only."""
    return postorder([n], lambda m: m.inputs if isinstance(m.row, Elementwise) else ())


def _is_movement(n: Node) -> bool:
    return isinstance(n.row, View) and (n.row.shares or n.op in ("transpose", "expand", "slice"))
