"""Joins elementwise kernels that share memory traffic into one kernel that stores several values.

Two kernels are joined if they have the same loops and share an element: both read it, or the later one reads the element
that the earlier one stores. The joined kernel runs in the position of the later one, or, if something in between reads
the earlier one's values, in the position of the earlier one, provided that all inputs are computed by then. So no cycle
arises. Kernels are not joined if that needs more memory, or if it keeps a target from using vectors: kernels that gather
are never joined, and kernels with types that some target computes one element at a time only with kernels of the same
types.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from ...dtypes import DType, float32
from ...graph import Graph, Node, storage_of, symbols_of
from ...ir import affine, scalar
from ...ir.kernel import Kernel, Port, Store
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
from ...ops import Opaque, Region
from ...shapes import Shape
from ..schedule.buffers import bytes_of, weight
from ._assemble import Group
from ._growth import MAX_MEMBERS

NEGLIGIBLE_BYTES: Final = 64
"""Bytes that do not count when a kernel is moved past those that compute them."""


@dataclass(frozen=True)
class _Access:
    """An access: the element of a value that a kernel reads or stores in each iteration of its loops."""

    value: Node
    index: Expr
    grid: Shape


def joined(graph: Graph, groups: Sequence[Group], max_ports: int) -> list[Group]:
    """The groups of a graph after joining, in an order in which they can run."""
    return _Joining(graph, groups, max_ports).run()


class _Joining:
    """The groups and their readers. A group's key is the node at whose position it runs, the last of its outputs."""

    def __init__(self, graph: Graph, groups: Sequence[Group], max_ports: int) -> None:
        self.graph = graph
        self.max_ports = max_ports
        self.number = {n: i for i, n in enumerate(graph.nodes)}
        self.found = {storage_of(n) for n in graph.own_size_nodes.values()}
        self.states: dict[Node, list[Node]] = {}  # a state's next value ↦ the nodes that read the state
        for s in graph.states:
            self.states.setdefault(storage_of(s.updated), []).append(s.leaf)
        roots = [storage_of(n) for n in graph.roots]
        self.roots = set(roots)
        # The states that are outputs in no other way, so that their next value may be computed in their memory.
        self.own = {
            s.leaf for s in graph.states if roots.count(storage_of(s.updated)) == 1 and s.leaf not in self.roots
        }
        self.settled: dict[Node, Node] = {}  # states of which a group counts on computing the next value in place ↦ it
        self.groups = {g.outputs[-1]: g for g in groups}
        self.maker = {n: g.outputs[-1] for g in groups for n in g.outputs}
        self.readers: dict[Node, set[Node]] = {n: set() for n in graph.nodes}
        for key, g in self.groups.items():
            for n in (*g.inputs, *(() if g.base is None else (g.base,))):
                self.readers[n].add(key)
        alone = [n for n in graph.nodes if isinstance(n.row, (Opaque, Region))]
        for n in alone:
            for x in n.inputs:
                self.readers[storage_of(x)].add(n)
        self.steps = sorted(self.number[n] for n in (*self.groups, *alone))

    def run(self) -> list[Group]:
        met: dict[_Access, Node] = {}  # an element ↦ an output of the last group that accesses it
        for key in list(self.groups):
            place: Node | None = key
            while place is not None:
                key = place
                elements = self._elements(self.groups[key])
                others = dict.fromkeys(self.maker[met[e]] for e in elements if e in met)
                place = next((k for k in (self._join(x, key) for x in others if x is not key) if k is not None), None)
                met.update(dict.fromkeys(elements, key))
        return sorted(self.groups.values(), key=lambda g: self.number[g.outputs[-1]])

    def _elements(self, group: Group) -> Sequence[_Access]:
        """The elements through which a group may be joined to others; none if it must stay separate."""
        kernel = group.kernel
        if not isinstance(kernel, Kernel) or not all(isinstance(s, Store) for s in kernel.stages):
            return ()
        if group.base is not None or not self.found.isdisjoint(group.outputs):
            return ()
        loops = {v for v in kernel.grid_vars if v.word == "var"}
        last = kernel.grid_vars[-1] if kernel.grid else None
        values = (*group.inputs, *group.outputs)
        found: list[_Access] = []
        for port, index in (*_loads(kernel), *((s.port, s.index) for s in kernel.stages if isinstance(s, Store))):
            terms = affine.linear(index)[0]
            step = 0 if last is None else terms.get(last, 0)
            if not terms.keys() <= loops or not isinstance(step, int) or step < 0:
                return ()
            if terms.keys() == loops:
                # A state is updated in place, so storing an element of it also accesses that element of its readers.
                same = (values[port], *self.states.get(values[port], ()))
                found += (_Access(n, index, kernel.grid) for n in same)
        return found

    def _join(self, *keys: Node) -> Node | None:
        """Join two groups if possible; returns the key of the joined group."""
        first, second = sorted(keys, key=self.number.__getitem__)
        place = self._place(first, second)
        x, y = self.groups[first], self.groups[second]
        outputs = (*y.outputs, *x.outputs) if place is first else (*x.outputs, *y.outputs)
        needed = [n for n in outputs if n is place or n in self.roots or self.readers[n] - {first, second}]
        both = None if place is None else _both(x, y, needed)
        if place is None or both is None or not self._fits(both, place, first, second):
            return None
        del self.groups[first], self.groups[second]
        self.groups[place] = both
        self.steps.remove(self.number[first if place is second else second])
        self.maker.update(dict.fromkeys((*x.outputs, *y.outputs), place))
        for n in (*x.inputs, *y.inputs):
            self.readers[n] -= {first, second}
        for n in both.inputs:
            self.readers[n].add(place)
        return place

    def _place(self, first: Node, second: Node) -> Node | None:
        """The position at which two groups can run as one, or None."""
        x, y = self.groups[first], self.groups[second]
        outputs = (*x.outputs, *y.outputs)
        after = min((k for n in outputs for k in self._read(n, first, second)), default=len(self.number))
        # An update of a state must run after all readers of the state, and before all readers of its own value.
        states = [leaf for n in outputs for leaf in self.states.get(n, ())]
        if any(k >= after for leaf in states for k in self._read(leaf, first, second)):
            return None
        if after > self.number[second] and (self._adjacent(first, second) or self._late(first, second)):
            return second
        sizes = (
            {s for m in y.members for n in (m, *m.inputs) for s in symbols_of(n)} if self.graph.own_size_nodes else ()
        )
        told = (n for s, n in self.graph.own_size_nodes.items() if s in sizes)
        needed = (*(n for n in y.inputs if n not in x.outputs), *told)
        ready = all(self._made(n) < self.number[first] for n in needed)
        return first if ready and self._early(first, second) else None

    def _fits(self, both: Group, place: Node, first: Node, second: Node) -> bool:
        """Whether a joined group binds no more buffers than the target allows, and leaves to others what they count on."""
        at = self.number[place]
        for leaf in both.inputs:
            updated = self.settled.get(leaf)
            if updated is None:
                continue
            if updated in both.outputs:
                if not self._alone(leaf, at, first, second):
                    return False
            elif at > self.number[self.maker[updated]]:
                return False
        excess = len(both.kernel.ports) - self.max_ports
        if excess <= 0:
            return True
        # A value that is computed in the memory of a state is read and stored through one port.
        free = {
            leaf: n
            for n in both.outputs
            for leaf in self.states.get(n, ())
            if leaf in self.own and leaf in both.replaceable(n) and self._alone(leaf, at, first, second)
        }
        if len(free) < excess:
            return False
        self.settled.update(free)
        return True

    def _alone(self, leaf: Node, at: int, *apart: Node) -> bool:
        """Whether all readers of a state, but for the groups `apart`, run before a position."""
        return all(k < at for k in self._read(leaf, *apart))

    def _late(self, first: Node, second: Node) -> bool:
        """Whether running the first group later needs no more memory, although its inputs are held longer."""
        x, y = self.groups[first], self.groups[second]
        held = [n for n in x.inputs if n not in y.inputs and self._last(n, first) < self.number[second]]
        return self._scratch(held) <= self._scratch(x.outputs)

    def _early(self, first: Node, second: Node) -> bool:
        """Whether running the second group earlier needs no more memory, although its outputs are held longer."""
        y = self.groups[second]
        freed = [n for n in y.inputs if self._last(n, first, second) < self.number[first]]
        made = [n for n in y.outputs if n not in self.states]
        return sum(map(_bytes, made)) <= self._scratch(freed)

    def _scratch(self, values: Iterable[Node]) -> int:
        """The scratch memory of values: inputs, constants and outputs take none."""
        return sum(_bytes(n) for n in values if n.row is not None and n not in self.roots)

    def _adjacent(self, first: Node, second: Node) -> bool:
        """Whether nothing runs between two groups but kernels of a few numbers, such as of a learning rate."""
        start, end = (bisect_left(self.steps, self.number[n]) for n in (first, second))
        between = (self.groups.get(self.graph.nodes[k]) for k in self.steps[start + 1 : end])
        return all(g is not None and sum(map(_bytes, g.outputs)) <= NEGLIGIBLE_BYTES for g in between)

    def _last(self, value: Node, *apart: Node) -> int:
        return max(self._read(value, *apart), default=-1)

    def _read(self, value: Node, *apart: Node) -> list[int]:
        """The positions at which a value is read, without those of the groups `apart`."""
        return [self.number[key] for key in self.readers[value] if key not in apart]

    def _made(self, value: Node) -> int:
        """The position at which a value is computed; -1 for an input or constant."""
        return -1 if value.row is None else self.number[self.maker.get(value, value)]


def _bytes(value: Node) -> int:
    """The bytes of a value, as a number to compare by."""
    return weight(bytes_of(value.shape, value.dtype))


def _loads(kernel: Kernel) -> list[tuple[int, Expr]]:
    """The port and the index of each load."""
    return [(e.value, e.args[0]) for e in scalar.postorder(kernel.roots) if e.word == "load"]


def _both(x: Group, y: Group, outputs: Sequence[Node]) -> Group | None:
    """Two groups as one, x before y, that stores only these outputs; None if it would be too large."""
    a, b = x.kernel, y.kernel
    assert isinstance(a, Kernel)
    assert isinstance(b, Kernel)
    inputs = tuple(dict.fromkeys((*x.inputs, *(n for n in y.inputs if n not in x.outputs))))
    members = tuple(dict.fromkeys((*x.members, *y.members)))
    count = len(inputs) + len(outputs)
    if len(members) > MAX_MEMBERS or _unusual(a) != _unusual(b):
        return None
    values = tuple(dict.fromkeys((*inputs, *outputs, *x.outputs, *y.outputs)))
    number = {n: port for port, n in enumerate(values)}
    ports = tuple(Port(n.dtype, port >= len(inputs)) for port, n in enumerate(values))
    a, b = (
        k.renumbered({port: number[n] for port, n in enumerate((*g.inputs, *g.outputs))}, ports)
        for k, g in ((a, x), (b, y))
    )
    stored = {scalar.load(s.port, s.index, ports[s.port].dtype): s.value for s in a.stages if isinstance(s, Store)}
    b = b.with_roots((scalar.substitute(e, stored) for e in b.roots), b.grid)
    if any(ports[port].written for port, _ in _loads(b)):
        return None
    stages = tuple(s for s in (*a.stages, *b.stages) if isinstance(s, Store) and s.port < count)
    name = "+".join(dict.fromkeys(n.op for n in members))
    return Group(Kernel(ports[:count], a.grid, (), stages, name), inputs, tuple(outputs), members)


def _unusual(kernel: Kernel) -> frozenset[DType]:
    """The types in a kernel that some target computes one element at a time."""
    kinds = {*(p.dtype for p in kernel.ports), *(e.dtype for e in scalar.postorder(kernel.roots))}
    return frozenset(d for d in kinds if d.bits > 32 or (d.is_float and d is not float32))
