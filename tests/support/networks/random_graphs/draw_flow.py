"""Random Graphs with control flow, ops of several results, sizes found in mid-run, and states; see sketch.py.

    drawn = draw(seed, kinds)

Values that a loop carries, and states, are kept within bounds, so that the facts in the sketch stay true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from networks.random_graphs.draws import STEPS
from networks.random_graphs.sketch import Sketch, Step, drawn_input, elements, filled, is_number, open_sizes, values_for
from singe.dtypes import NUMBERS, DType, bool_, float32, int32, int64
from singe.graph import Graph, GraphState, Node, postorder
from singe.ops import ROWS
from singe.shapes import Dim, product

IF, LOOP = ROWS["if"], ROWS["loop"]
DEEPEST: Final = 2
"""How deep regions may be nested."""


def region(s: Sketch, values: Sequence[Node]) -> tuple[Sketch, tuple[Node, ...]]:
    """A sketch of a region, and the region's inputs for these values of the graph around it."""
    t = s.inner()
    inputs = tuple(s.b.input(f"r{k}", x.shape, x.dtype) for k, x in enumerate(values))
    for x, y in zip(values, inputs, strict=True):
        t.add(y, x in s.exact, s.bound[x])
    return t, inputs


def graph_of(s: Sketch, inputs: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """The Graph of a region. It binds those sizes found in mid-run that depend only on its own inputs."""
    own = {*inputs}
    bound = {k: n for k, n in s.b.size_nodes.items() if all(x in own for x in postorder([n]) if x.is_input)}
    return Graph(tuple(inputs), tuple(outputs), tuple(f"y{k}" for k in range(len(outputs))), bound)


def some(s: Sketch, count: int) -> list[Node]:
    found = [s.pick() for _ in range(count)]
    return [x for x in dict.fromkeys(found) if x is not None]


def hits(s: Sketch) -> Node | None:
    """The number of elements of some exact value that are below a limit, as an int32."""
    x = s.pick(lambda n: n in s.exact and (is_number(n) or n.dtype is bool_))
    if x is None:
        return None
    below = (
        x
        if x.dtype is bool_
        else s.b.less(x, s.b.const(s.one_of(0, 1, 2) if x.dtype.kind == "uint" else s.whole(-2, 2), x.dtype))
    )
    flat = s.b.reshape(s.b.cast(below, to=int32), shape=(product(x.shape),))
    return s.b.reshape(s.b.reduce_sum(flat, axes=(0,)), shape=s.one_of((), (), (1,)))


def flag(s: Sketch) -> Node | None:
    """A condition: usually computed, sometimes constant."""
    if s.chance(0.1):
        return s.b.const(s.chance(0.5))
    given = s.pick(lambda n: n.dtype is bool_ and all(d == 1 for d in n.shape)) if s.chance(0.3) else None
    count = hits(s) if given is None else None
    return given if count is None else s.b.less(count, s.b.const(s.whole(0, 4), int32))


def few(s: Sketch) -> Node | None:
    """A computed integer from 0 to 3."""
    count = hits(s)
    return (
        None
        if count is None
        else s.b.cast(s.b.minimum(count, s.b.const(s.whole(0, 3), int32)), to=s.one_of(int32, int64))
    )


# --- regions ---------------------------------------------------------------------------------------------------------


def branch(s: Sketch) -> None:
    condition = flag(s) if s.depth < DEEPEST else None
    if condition is None:
        return
    captures = some(s, s.whole(1, 3))
    (t, then), (u, otherwise) = region(s, captures), region(s, captures)
    for sketch in (t, u):
        sketch.grow(ALL_STEPS, s.whole(0, 4))
    pairs: list[tuple[Node, Node]] = []
    for _ in range(s.whole(1, 3)):
        p = t.pick()
        q = p and (
            u.pick(lambda n, p=p: n.dtype is p.dtype and n.shape == p.shape and s.chance(0.8))
            or u.pick(lambda n, p=p: n.dtype is p.dtype and len(n.shape) == len(p.shape))
        )
        if p is not None and q is not None:
            pairs.append((p, q))
    if not pairs:
        return
    graphs = graph_of(s, then, [p for p, _ in pairs]), graph_of(s, otherwise, [q for _, q in pairs])
    made = s.b.results_of(s.b.node(IF, condition, *captures, then=graphs[0], otherwise=graphs[1]))
    for n, (p, q) in zip(made, pairs, strict=True):
        s.add(n, p in t.exact and q in u.exact, max(t.bound[p], u.bound[q]))


def within(s: Sketch, n: Node, limit: float) -> Node:
    """The value clipped to −limit … limit."""
    if s.bound[n] <= limit or n.dtype not in NUMBERS:
        return n
    n = s.b.minimum(n, s.b.const(limit, n.dtype))
    return n if n.dtype.kind == "uint" else s.b.maximum(n, s.b.const(-limit, n.dtype))


def carried_on(s: Sketch, x: Node, limit: float) -> Node:
    """The next value of a carried value x: a value of its shape and dtype, within the limit."""
    n = s.pick(lambda n: n.dtype is x.dtype and n.shape == x.shape and (n in s.exact or x not in s.exact)) or x
    if n is x and is_number(x) and s.chance(0.7):
        n = s.b.add(x, s.b.const(1, x.dtype))
        s.bound[n] = s.bound[x] + 1
    return within(s, n, limit)


def limit_of(s: Sketch, x: Node) -> float:
    """The bound of a carried value: a power of two."""
    return float(2 ** int(np.ceil(np.log2(max(4.0, s.bound[x])))))


def loop(s: Sketch) -> None:
    if s.depth >= DEEPEST:
        return
    carried = some(s, s.whole(1, 3))
    if not carried:
        return
    captures = some(s, s.whole(0, 2))
    limits = [limit_of(s, x) for x in carried]
    count, condition, extra = turns(s)
    t, inputs = region(s, [*carried, *captures])
    for x, limit in zip(inputs, limits, strict=False):
        t.bound[x] = max(t.bound[x], limit) if x in t.bound else limit
    owned = [s.b.input("turn", (), int64), s.b.input("limit", (), int64)] if extra else []
    for x in owned:
        t.add(x, True, 8)
    t.grow(ALL_STEPS, s.whole(1, 5))
    after = [carried_on(t, x, limit) for x, limit in zip(inputs, limits, strict=False)]
    go_on: Node | None = s.b.const(True)
    if extra:
        turn = s.b.add(owned[0], s.b.const(1))
        after.append(turn)
        go_on = s.b.less(turn, owned[1])
    elif condition is not None:
        go_on = flag(t)
    if go_on is None:
        return
    n = len(carried)
    inner = (*inputs[:n], *owned[:1], *inputs[n:], *owned[1:])
    initial = (*carried, *((s.b.const(0),) if extra else ()), *captures, *((extra[0],) if extra else ()))
    lead = () if condition is None else (condition,)
    made = s.b.results_of(
        s.b.node(LOOP, *lead, *initial, body=graph_of(s, inner, [go_on, *after]), carried=len(after),
                 conditional=condition is not None, count=count)
    )  # fmt: skip
    for k, y in enumerate(made):
        s.add(y, k >= n or carried[k] in s.exact, 8 if k >= n else limits[k])


def turns(s: Sketch) -> tuple[Dim | None, Node | None, list[Node]]:
    """When a loop ends: a count, a condition, and, if the loop counts turns itself, their limit."""
    way = s.whole(0, 4)
    if way == 0:
        return s.whole(0, 3), None, []
    if way == 1 and open_sizes(s):
        return s.one_of(*open_sizes(s)), None, []
    number = few(s)
    if way == 2 and number is not None:
        return s.b.size_of(number), None, []
    if way == 3 and number is not None:
        limit = s.b.reshape(s.b.cast(number, to=int64), shape=())
        return None, s.b.less(s.b.const(0), limit), [limit]
    return s.whole(1, 4), flag(s) or s.b.const(True), []


def scan(s: Sketch) -> None:
    """A loop of which every turn writes a row of a carried tensor, computed from a row of another tensor."""
    x = s.pick(lambda n: is_number(n) and 1 <= len(n.shape) <= 4)
    if x is None or s.depth >= DEEPEST:
        return
    d, rest = x.shape[0], x.shape[1:]
    t = s.inner()
    out, turn, whole = (
        s.b.input("out", x.shape, x.dtype),
        s.b.input("turn", (), int64),
        s.b.input("whole", x.shape, x.dtype),
    )
    row = s.b.gather(whole, s.b.reshape(turn, shape=(1,)), axis=0) if filled(x, 0) else None
    if row is None:  # the axis may be empty, so no row of x can be read: make one
        row = s.b.expand(s.b.cast(turn, to=x.dtype), shape=(1, *rest))
    t.add(row, x in s.exact, max(s.bound[x], 8))
    t.grow(STEPS, s.whole(0, 3))
    new = carried_on(t, row, limit_of(s, x))
    starts = (turn, *(s.b.const(0) for _ in rest))
    body = graph_of(
        s, (out, turn, whole), (s.b.const(True), s.b.update_slice(out, new, *starts), s.b.add(turn, s.b.const(1)))
    )
    first = x if s.chance(0.3) else s.b.expand(s.b.const(0, x.dtype), shape=x.shape)
    made, _ = s.b.apply(LOOP, first, s.b.const(0), x, body=body, carried=2, conditional=False, count=d)
    s.add(made, x in s.exact, max(limit_of(s, x), s.bound[x]))


def growing(s: Sketch) -> None:
    """A loop with a carried value that gets longer in every turn."""
    x = s.pick(lambda n: 1 <= len(n.shape) <= 3 and elements(n) < 100)
    if x is None or s.depth >= DEEPEST:
        return
    own = s.b.input("own", (s.own_size(), *x.shape[1:]), x.dtype)
    part = s.b.input("part", x.shape, x.dtype)
    number = few(s)
    count: Dim = s.whole(0, 3) if number is None or s.chance(0.5) else s.b.size_of(number)
    grown = s.b.concat(*((own, part) if s.chance(0.5) else (part, own)), axis=0)
    body = graph_of(s, (own, part), (s.b.const(True), grown))
    made = s.b.node(LOOP, x, x, body=body, carried=1, conditional=False, count=count)
    s.add(made, x in s.exact, s.bound[x])


# --- several results, sizes found in mid-run, updates ------------------------------------------------------------------


def order(s: Sketch) -> None:
    x = s.pick(lambda n: n in s.exact and is_number(n) and len(n.shape) >= 1)
    if x is None:
        return
    axis = s.whole(0, len(x.shape) - 1)
    d = x.shape[axis]
    if s.chance(0.5):
        values, places = s.b.sort(x, axis=axis, descending=s.chance(0.5))
    else:
        k = s.whole(0 if s.chance(0.2) else 1, min(d, 5)) if isinstance(d, int) and d else d
        values, places = s.b.top_k(x, axis=axis, k=k, largest=s.chance(0.5))
    s.add(values, True, s.bound[x])
    s.add(places, True, 1e4)


def selection(s: Sketch) -> None:
    """An op whose number of results depends on data."""
    x = s.pick(lambda n: n in s.exact and len(n.shape) >= 1 and (is_number(n) or n.dtype is bool_))
    if x is None:
        return
    way = s.whole(0, 3)
    if way == 0:
        s.add(s.b.nonzero(x), True, 1e4)
    elif way == 1 and is_number(x):
        for n in s.b.unique(x, axis=s.one_of(None, s.whole(0, len(x.shape) - 1)), ordered=s.chance(0.5)):
            s.add(n, True, max(s.bound[x], 1e4 if n.dtype is int64 else 0))
    elif way == 2:
        axis = s.whole(0, len(x.shape) - 1)
        others = tuple(i for i in range(len(x.shape)) if i != axis)
        c = x if x.dtype is bool_ else s.b.less(x, s.b.const(s.whole(0, 2), x.dtype))
        counts = s.b.reduce_sum(s.b.cast(c, to=int32), axes=others) if others else s.b.cast(c, to=int32)
        chosen = s.b.less(s.b.reshape(counts, shape=(x.shape[axis],)), s.b.const(s.whole(1, 3), int32))
        y = s.pick(lambda n: len(n.shape) > axis and n.shape[axis] == x.shape[axis]) or x
        s.add(s.b.compress(y, chosen, axis=axis), y in s.exact, s.bound[y])
    else:
        found_size(s)


def found_size(s: Sketch) -> None:
    number = few(s)
    if number is None:
        return
    d = s.b.size_of(number)
    x = s.pick(lambda n: len(n.shape) <= 3)
    if s.chance(0.4):
        s.add(s.b.arange(s.b.const(0, int64), s.b.const(s.one_of(1, 2), int64), count=d), True, 1e4)
    elif x is not None and s.chance(0.5):
        s.add(s.b.expand(x, shape=(d, *x.shape)), x in s.exact, s.bound[x])
    elif x is not None and is_number(x) and x.shape:
        after = tuple(d if i == 0 else 0 for i in range(len(x.shape)))
        y = s.b.pad(x, s.b.const(1, x.dtype), before=(0,) * len(after), after=after, mode="constant")
        s.add(y, x in s.exact, max(1, s.bound[x]))


def update(s: Sketch) -> None:
    """A tensor with a part replaced at a computed place."""
    x = s.pick(lambda n: 1 <= len(n.shape) <= 4)
    part = s.pick(lambda n: x is not None and n.dtype is x.dtype and len(n.shape) <= len(x.shape))
    if x is None or part is None:
        return
    start, exact, bound = few(s), {x, part} <= s.exact, max(s.bound[x], s.bound[part])
    part = s.b.reshape(part, shape=(*(1,) * (len(x.shape) - len(part.shape)), *part.shape))
    if start is None or not all(
        (p == 1 and isinstance(d, int) and d > 0) or p == d for p, d in zip(part.shape, x.shape, strict=True)
    ):
        return
    starts = [s.one_of(start, s.b.const(s.whole(0, 2))) for _ in x.shape]
    s.add(s.b.update_slice(x, part, *starts), exact, bound)


def scatter(s: Sketch) -> None:
    x = s.pick(
        lambda n: (
            is_number(n)
            and 1 <= len(n.shape) <= 3
            and filled(n, 0)
            and isinstance(n.shape[0], int)
            and n.dtype.bits >= 32
        )
    )
    if x is None:
        return
    shape = (1, *x.shape[1:])
    index = s.b.expand(s.b.const(s.whole(0, int(x.shape[0]) - 1)), shape=shape)  # pyright: ignore[reportArgumentType]
    part = s.b.expand(s.b.const(s.whole(0, 3), x.dtype), shape=shape)
    if s.chance(0.5):
        s.add(s.b.scatter_elements(x, part, index, axis=0), x in s.exact, max(3, s.bound[x]))
    else:
        op = s.one_of("add", "max", "min")
        s.add(s.b.scatter_elements_reduce(x, part, index, axis=0, reduction=op), x in s.exact, s.bound[x] + 3)


FLOW_STEPS: Final[Sequence[Step]] = (
    branch,
    branch,
    loop,
    loop,
    scan,
    growing,
    order,
    selection,
    selection,
    found_size,
    update,
    scatter,
)
ALL_STEPS: Final[Sequence[Step]] = (*STEPS, *FLOW_STEPS)


# --- graphs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A graph, and the names of outputs and states that are computed from exact values and must be equal to the bit."""

    graph: Graph
    exact: frozenset[str]
    seed: int

    def arrays(self, sizes: dict[str, int], run: int) -> list[np.ndarray]:
        """Values for the inputs."""
        rng = np.random.default_rng([self.seed, run])
        return [values_for(x, sizes, rng) for x in self.graph.inputs]


def first_states(graph: Graph) -> list[np.ndarray]:
    """The values of a graph's states before its first run."""
    shapes = [[int(d) for d in s.leaf.shape] for s in graph.states]  # pyright: ignore[reportArgumentType]
    return [
        np.zeros(shape, s.leaf.dtype.numpy) if s.initial is None else s.initial
        for s, shape in zip(graph.states, shapes, strict=True)
    ]


def draw(seed: int, kinds: Sequence[DType], steps: Sequence[Step] = ALL_STEPS) -> Drawn:
    """A graph of nodes of these dtypes."""
    rng = np.random.default_rng(seed)
    s = Sketch(rng, kinds)
    own = [k for k in kinds if k is float32 or s.chance(0.5)] if s.chance(0.8) else list(kinds)
    s.kinds = list(dict.fromkeys([*own, bool_, int32, int64, float32]))
    inputs = [drawn_input(s, f"x{i}", float32 if i == 0 else s.kind(float32, *s.kinds)) for i in range(s.whole(1, 3))]
    leaves = [
        drawn_input(s, f"s{i}", s.kind(float32, int64, *s.kinds), fixed=True) for i in range(s.one_of(0, 0, 1, 2))
    ]
    limits = [limit_of(s, x) for x in leaves]
    for x, limit in zip(leaves, limits, strict=True):
        s.bound[x] = min(limit, s.bound[x]) if x.dtype not in NUMBERS else limit
    s.grow(steps, s.whole(4, 16))
    states = []
    for x, limit in zip(leaves, limits, strict=True):
        other = leaves[0]
        swaps = s.chance(0.15) and (other.shape, other.dtype) == (x.shape, x.dtype)
        initial = None if s.chance(0.5) else values_for(x, {}, rng)
        states.append(GraphState(x, x.name, initial, other if swaps else carried_on(s, x, limit)))
    used = {x for n in s.nodes for x in n.inputs}
    ends = [n for n in s.nodes if n not in used and n not in inputs] or [s.nodes[-1]]
    outputs = tuple(dict.fromkeys([*ends[-4:], s.nodes[len(s.nodes) // 2]]))
    names = tuple(f"y{i}" for i in range(len(outputs)))
    graph = Graph(tuple(inputs), outputs, names, dict(s.b.size_nodes), tuple(states))
    return Drawn(graph, frozenset(name for name, n in zip(names, outputs, strict=True) if n in s.exact), seed)
