"""Graph in, Groups out: which nodes become one Kernel or Routine, and that Kernel.

Three kinds of node get memory of their own (they are "kept"): the last node of every group, what several groups read
and is dear to compute twice, and what a template wants to read plainly. All others are inlined where they are read, as
expressions of coordinates.

A group grows around an anchor, a Nest: the reduction, window or contraction whose inner loops it has. Nodes after the
anchor join while every value that leaves the group is the last one's. For most anchors these are elementwise nodes over
its output, seen through reshapes and transposes (an epilogue). A reduction also takes nodes over its input's shape and
further reductions over the same axes, so that softmax or a layer norm is one kernel of several stages.
What has no anchor is an elementwise kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from . import affine, scalar
from ._dtypes import int32, uint8
from ._errors import CompileError
from ._shape import Shape, product
from .graph import Builder, Graph, Node, postorder, rebuild
from .kernel import Kernel, Port, Reduce, Routine, Stage, Store, collapse, loop_vars, matmul_operands
from .ops import Elementwise, Nest, View
from .ops.move import project
from .scalar import COMPUTE, Expr

MAX_MEMBERS: Final = 96
"""Nodes in one group at most."""
MAX_DEPTH: Final = 48
"""How deep a chain of inlined nodes may be: expressions beyond it are slow to print and crowd registers."""
CHEAP: Final = 4
"""Scalar operations up to which computing a value again beats storing it."""
DEAR_WORDS: Final = {"exp": 8, "log": 8, "sin": 8, "cos": 8, "tanh": 8, "sqrt": 4, "div": 2, "rem": 4}


@dataclass(frozen=True, eq=False)
class Group:
    """A Kernel or Routine with the nodes behind its ports: inputs are kept nodes, `output` the one it makes."""

    kernel: Kernel | Routine
    inputs: tuple[Node, ...]
    output: Node
    ops: tuple[str, ...]  # the ops it carries out, for people


def fuse(graph: Graph, max_ports: int) -> tuple[Graph, list[Group]]:
    """The groups of a rewritten graph, in an order in which they can run, and the graph they refer to."""
    graph = _split_wide(graph, max_ports)
    return graph, _Fusion(graph, max_ports).run()


def bare(n: Node) -> Node:
    """The node whose memory a node is: reshapes change no memory."""
    while n.row is not None and n.row.name == "reshape":
        n = n.inputs[0]
    return n


def _split_wide(graph: Graph, max_ports: int) -> Graph:
    """Concats of more inputs than one kernel may read, as trees of narrower ones."""
    limit = max(2, (max_ports - 2) // 2)

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        if n.op != "concat" or len(given) <= max_ports - 2:
            return None
        parts = list(given)
        while len(parts) > limit:
            parts = [b.concat(*parts[i : i + limit], axis=n.attrs["axis"]) for i in range(0, len(parts), limit)]
        return b.concat(*parts, axis=n.attrs["axis"])

    if not any(n.op == "concat" and len(n.inputs) > max_ports - 2 for n in graph.nodes):
        return graph
    return rebuild(graph, Builder(), rule, {x: x for x in graph.inputs})


@lru_cache(maxsize=4096)
def _elementwise_cost(row: Elementwise, dtypes: tuple[Any, ...], attrs: tuple[Any, ...]) -> int:
    params = [scalar.var(f"x{i}", COMPUTE[d]) for i, d in enumerate(dtypes)]
    return sum(DEAR_WORDS.get(e.word, 1) for e in scalar.postorder([row.body(*params, **dict(attrs))]) if e.args)


@dataclass(frozen=True)
class _Cost:
    """What computing one element takes: scalar operations, loads, and how deep the expression is."""

    work: int
    loads: int
    depth: int


class _Fusion:
    """One run of the algorithm over one graph."""

    def __init__(self, graph: Graph, max_ports: int) -> None:
        self.graph = graph
        self.max_ports = max_ports
        self.users = graph.users
        self.number = {n: i for i, n in enumerate(graph.nodes)}
        self.outputs = set(graph.outputs)
        self.members: dict[Node, _Growth] = {}  # node → the group that computes it inside
        self.kept: set[Node] = set()
        self.costs: dict[Node, _Cost] = {}

    def run(self) -> list[Group]:
        growths = [self._grow(n) for n in self.graph.nodes if isinstance(n.row, Nest) and n not in self.members]
        for growth in growths:
            self.kept.add(growth.exit)
        for output in self.graph.outputs:
            if bare(output).row is not None:
                self.kept.add(bare(output))
        self._keep_dear()
        groups: dict[Node, Group] = {}
        by_exit = {g.exit: g for g in growths}
        for n in self.graph.nodes:
            self._build(n, by_exit, groups)
        return [groups[n] for n in self.graph.nodes if n in groups]

    # --- growing around an anchor ---

    def _grow(self, anchor: Node) -> _Growth:
        growth = _Growth(anchor)
        best = 1
        for n in self.graph.nodes[self.number[anchor] + 1 :]:
            if not any(x in growth.coords for x in n.inputs):
                continue
            # A member that a node outside reads must be the last: nothing after it can make the group end in one value.
            if n in self.members or not self._room(n, growth) or not growth.add(n):
                break
            if bare(n) is n and {m for m in growth.coords if self._leaves(m, growth)} == {n}:
                best = len(growth.coords)
        growth.restore(best)
        for m in growth.coords:
            self.members[m] = growth
        return growth

    def _leaves(self, n: Node, growth: _Growth) -> bool:
        """Whether a member's value is read outside the group."""
        return n in self.outputs or any(u not in growth.coords for u in self.users[n])

    def _room(self, n: Node, growth: _Growth) -> bool:
        """Whether the group may take one more: its size, and the buffers it reads if every other input gets memory."""
        members = {*growth.coords, n}
        read = {bare(x) for m in members for x in m.inputs if x not in members and not (x.value is not None and x.value.size == 1)}
        return len(members) <= MAX_MEMBERS and len(read) + 2 <= self.max_ports

    # --- what gets memory ---

    def cost(self, n: Node) -> _Cost:
        """Of computing one element of an inlined node."""
        found = self.costs.get(n)
        if found is None:
            if n in self.kept or n.row is None:
                found = _Cost(0, 0 if n.is_const and not n.shape else 1, 0)
            else:
                parts = [self.cost(x) for x in n.inputs]
                own = _elementwise_cost(n.row, tuple(x.dtype for x in n.inputs), tuple(n.attrs.items())) if isinstance(n.row, Elementwise) else {"pad": 3, "concat": 2 * len(parts), "gather": 4}.get(n.op, 0)
                found = _Cost(own + sum(p.work for p in parts), sum(p.loads for p in parts), 1 + max((p.depth for p in parts), default=0))
            self.costs[n] = found
        return found

    def _keep_dear(self) -> None:
        """Decide for all nodes outside the groups, users first, whether they are kept.

        Costs are needed from the inputs on and decisions from the outputs on, so costs are those with nothing more kept.
        """
        for n in self.graph.nodes:
            if n not in self.members and n.row is not None and self.cost(n).depth > MAX_DEPTH:
                self._keep(bare(n))
        roots: dict[Node, set[Any]] = {}
        for n in reversed(self.graph.nodes):
            if n.row is None or n in self.members:
                continue
            users = self.users[n]
            where: set[Any] = set()
            for u in users:
                where |= {self.members[u]} if u in self.members else {u} if u in self.kept else roots[u]
            roots[n] = where
            if n in self.kept or bare(n) in self.kept:
                continue
            cost = self.cost(n)
            # Each view reads at coordinates of its own: as often as that is the value computed.
            times = len(where) + max(0, sum(isinstance(u.row, View) for u in users) - 1)
            cheap = cost.work <= CHEAP and cost.loads <= 2 and times <= 3
            if any(self._wants_memory(n, u) for u in users) or (times > 1 and not cheap and not _is_movement(n)):
                self._keep(bare(n))

    def _keep(self, n: Node) -> None:
        if n.row is not None:
            self.kept.add(n)
            self.costs[n] = _Cost(0, 1, 0)

    def _wants_memory(self, n: Node, u: Node) -> bool:
        """Whether a reader reads an inlined node so often, or so plainly, that it should lie in memory."""
        cost = self.cost(n)
        if isinstance(u.row, Nest) and u in self.members:
            if u.row.routine == "conv":
                return True
            if u.row.name.startswith("reduce_"):
                return cost.work > 2 * CHEAP and sum(v in self.members for v in self.users[n]) > 1  # once for each stage
            return cost.work > CHEAP or cost.loads > 2
        spread = product(n.shape) != product(u.shape)
        return spread and cost.work > CHEAP and not _is_movement(n)

    # --- building kernels ---

    def _build(self, n: Node, by_exit: Mapping[Node, _Growth], groups: dict[Node, Group]) -> None:
        if n not in self.kept or n in groups:
            return
        growth = by_exit.get(n) or _Growth(n)
        while True:
            maker = _Maker(self, growth)
            group = maker.group()
            if len(group.kernel.ports) <= self.max_ports:
                groups[n] = group
                return
            victim = self._widest(growth)
            if victim is None:
                raise CompileError(f"{n!r} reads {len(group.kernel.ports) - 1} buffers, and this target allows {self.max_ports - 1}")
            self._keep(victim)
            self._build(victim, by_exit, groups)

    def _widest(self, growth: _Growth) -> Node | None:
        """The inlined node that reads the most buffers a kernel of its own may read."""
        best: tuple[int, int, Node] | None = None
        seen: set[Node] = set()
        stack = [x for m in growth.coords for x in m.inputs if x not in growth.coords]
        if not growth.anchored:
            stack = list(growth.exit.inputs)
        while stack:
            x = stack.pop()
            if x in seen or x in self.kept or x.row is None or x in growth.coords:
                continue
            seen.add(x)
            stack += x.inputs
            leaves = len(self._leaf_buffers(x))
            rank = leaves if leaves < self.max_ports else 1  # one that is too wide itself only where nothing else is left
            if leaves >= 2 and _bare_row(x) and (best is None or (rank, self.number[x]) > best[:2]):
                best = (rank, self.number[x], x)
        return best[2] if best else None

    def _leaf_buffers(self, n: Node) -> set[Node]:
        found: set[Node] = set()
        for x in postorder([n], lambda m: () if m is not n and (m in self.kept or m.row is None) else m.inputs):
            if x is not n and (x in self.kept or x.is_input or (x.is_const and x.shape)):
                found.add(bare(x))
        return found


def _bare_row(n: Node) -> bool:
    return bare(n) is n


def _is_movement(n: Node) -> bool:
    return isinstance(n.row, View) and n.op in ("reshape", "transpose", "expand", "slice")


class _Growth:
    """A group while it grows: its members, each with the coordinates at which the group computes it.

    For a reduction, coordinates run over the shape of its input: the reduced axes are inner loops. A member is "full" if
    it has a value for each point of them.
    """

    def __init__(self, anchor: Node) -> None:
        self.anchored = isinstance(anchor.row, Nest)
        self.exit = anchor
        self.coords: dict[Node, tuple[Expr, ...]] = {}
        self.full: set[Node] = set()
        self.axes: tuple[int, ...] = ()
        self.space: Shape = ()
        self.grid: Shape = anchor.shape
        if self.anchored and anchor.op.startswith("reduce_"):
            self.axes = tuple(sorted(anchor.attrs["axes"]))
            self.space = anchor.inputs[0].shape
            inner = iter(loop_vars("r", tuple(self.space[a] for a in self.axes)))
            outer = loop_vars("g", self.grid)
            self.everywhere = tuple(next(inner) if i in self.axes else outer[i] for i in range(len(self.space)))
        self.coords[anchor] = loop_vars("g", self.grid)

    def restore(self, count: int) -> None:
        """Back to the first `count` members, the last of which is the exit."""
        kept = list(self.coords)[:count]
        self.coords = {n: self.coords[n] for n in kept}
        self.full &= set(kept)
        self.exit = kept[-1]

    def add(self, n: Node) -> bool:
        """Take a node that reads a member, if its value can be had at the group's coordinates."""
        inside = [x for x in n.inputs if x in self.coords]
        if isinstance(n.row, Elementwise):
            place = self._elementwise(n, inside)
        elif isinstance(n.row, View) and n.row.forward is not None and inside[0] not in self.full and len(n.inputs) == 1:
            place = tuple(n.row.forward(self.coords[inside[0]], *n.inputs, **n.attrs))
        elif self.axes and isinstance(n.row, Nest) and n.op.startswith("reduce_") and inside[0] in self.full and tuple(sorted(n.attrs["axes"])) == self.axes:
            place = loop_vars("g", self.grid)
        else:
            place = None
        if place is None:
            return False
        self.coords[n] = place
        self.exit = n
        return True

    def _elementwise(self, n: Node, inside: Sequence[Node]) -> tuple[Expr, ...] | None:
        if self.axes and n.shape == self.space and self.space != self.grid:
            if all(x in self.full or x.shape == self.grid and self.coords[x] == loop_vars("g", self.grid) for x in inside):
                self.full.add(n)
                return self.everywhere
            return None
        places = {self.coords[x] for x in inside if x.shape == n.shape and x not in self.full}
        same = all(x.shape == n.shape and x not in self.full for x in inside)
        return places.pop() if same and len(places) == 1 else None


class _Maker:
    """Prints one group as a Kernel or Routine."""

    def __init__(self, fusion: _Fusion, growth: _Growth) -> None:
        self.fusion = fusion
        self.growth = growth
        self.ports: dict[Node, int] = {}
        self.values: dict[tuple[Node, tuple[Expr, ...]], Expr] = {}
        self.inside: dict[Node, Expr] = {}
        self.ops: dict[Node, None] = {}

    def group(self) -> Group:
        growth = self.growth
        exit_ = growth.exit
        anchor = next(iter(growth.coords))
        stages: list[Stage] = []
        inner: Shape = ()
        facts: Mapping[str, Any] | None = None
        if growth.anchored:
            assert isinstance(anchor.row, Nest)
            if anchor.row.routine is not None:
                facts = anchor.row.facts(*anchor.inputs, **anchor.attrs)
            for n in growth.coords:
                if isinstance(n.row, Nest):
                    inner = self._fold(n, stages)
                else:
                    self._note(n)
                    self.inside[n] = self._member(n)
        value = self.inside[exit_] if growth.anchored else self._inlined(exit_, growth.coords[exit_])
        index = affine.flatten(growth.coords[exit_], exit_.shape)
        output = len(self.ports)
        stages.append(Store(output, index, value, exit_ in growth.full))
        ports = (*(Port(n.dtype) for n in self.ports), Port(exit_.dtype, True))
        kernel = Kernel(ports, growth.grid, inner, tuple(stages), name="+".join(dict.fromkeys(n.op for n in self.ops)))
        made = self._routine(kernel, anchor, facts) if facts is not None else None
        return Group(made or collapse(kernel), tuple(self.ports), exit_, tuple(n.op for n in self.ops))

    def _note(self, n: Node) -> None:
        self.ops.setdefault(n)

    def _fold(self, n: Node, stages: list[Stage]) -> Shape:
        """A Nest as Reduce stages."""
        assert isinstance(n.row, Nest)
        self._note(n)
        coords = self.growth.coords[n]
        folds = n.row.nest(coords, self._reader(n), *n.inputs, **n.attrs)
        variables = loop_vars("r", folds.inner)
        results: list[Expr] = []
        for word, value in folds.folds:
            name = f"a{sum(isinstance(s, Reduce) for s in stages)}"
            stage = Reduce(name, word, value(variables, results))
            stages.append(stage)
            results.append(stage.accumulator)
        self.inside[n] = _stored(folds.result(results), n)
        return folds.inner

    def _reader(self, n: Node) -> Callable[[int, Sequence[Expr]], Expr]:
        return lambda k, coords: self.value(n.inputs[k], tuple(coords))

    def _member(self, n: Node) -> Expr:
        """A node after the anchor, at the group's coordinates."""
        if isinstance(n.row, Elementwise):
            place = self.growth.coords[n]
            return n.row.value([self.value(x, tuple(project(place, x.shape))) for x in n.inputs], n.dtype, n.attrs)
        return self.inside[n.inputs[0]]

    def value(self, n: Node, coords: tuple[Expr, ...]) -> Expr:
        """A node's element at some coordinates: of a member, of memory, or inlined."""
        if n in self.inside:
            return self.inside[n]
        key = (n, coords)
        found = self.values.get(key)
        if found is None:
            found = self.values[key] = self._read(n, coords)
        return found

    def _read(self, n: Node, coords: tuple[Expr, ...]) -> Expr:
        if n.value is not None:
            if n.value.dtype == object:
                return _symbolic(n, coords)
            if n.value.size == 1:
                return scalar.const(n.value.reshape(-1)[0].item(), COMPUTE[n.dtype])
        if n in self.fusion.kept or n.row is None:
            return self._load(n, n.shape, coords)
        base = bare(n)
        if base is not n and (base in self.fusion.kept or base.row is None) and not (base.value is not None and base.value.size == 1):
            return self._load(base, n.shape, coords)
        return self._inlined(n, coords)

    def _load(self, n: Node, shape: Shape, coords: tuple[Expr, ...]) -> Expr:
        """An element of memory, `shape` being how it is looked at."""
        port = self.ports.setdefault(n, len(self.ports))
        return scalar.load(port, affine.flatten(coords, shape), n.dtype)

    def _inlined(self, n: Node, coords: tuple[Expr, ...]) -> Expr:
        self._note(n)
        if isinstance(n.row, Elementwise):
            return n.row.value([self.value(x, tuple(project(coords, x.shape))) for x in n.inputs], n.dtype, n.attrs)
        if isinstance(n.row, View):
            return n.row.value(coords, self._reader(n), *n.inputs, **n.attrs)
        raise CompileError(f"{n!r} cannot be inlined")

    def _routine(self, kernel: Kernel, anchor: Node, facts: Mapping[str, Any]) -> Routine | None:
        """The kernel as its template wants it, or None where the template cannot take it."""
        assert isinstance(anchor.row, Nest) and anchor.row.routine is not None
        if anchor.row.routine == "matmul":
            if matmul_operands(kernel) is None:
                return None
            return Routine("matmul", collapse(kernel, keep=1, least=2), facts)
        x, w = (bare(i) for i in anchor.inputs)
        if x not in self.ports or w not in self.ports or x.dtype is not w.dtype:
            return None
        return Routine("conv", kernel, {**facts, "x": self.ports[x], "w": self.ports[w]})


def _stored(value: Expr, n: Node) -> Expr:
    """A fold's result as an element of the node's dtype."""
    value = scalar.cast(value, COMPUTE[n.dtype])
    return scalar.and_(value, 255) if n.dtype is uint8 else value


def _symbolic(n: Node, coords: tuple[Expr, ...]) -> Expr:
    """An element of a constant that holds Sizes: they are known when it runs."""
    assert n.value is not None
    flat = affine.flatten(coords, n.shape)
    compute = COMPUTE[n.dtype]
    values = [scalar.cast(scalar.size(v), compute) for v in n.value.reshape(-1).tolist()]
    out = values[-1] if values else scalar.const(0, compute)
    for i in range(len(values) - 2, -1, -1):
        out = scalar.select(scalar.eq(flat, scalar.const(i, int32)), values[i], out)
    return out
