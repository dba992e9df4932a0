"""Loop and Scan: the graphs that they own become regions of the row `loop`.

They collect elements, one per turn, in a tensor that is allocated before the first turn if the number of turns has a bound;
otherwise it grows. A Loop that carries sequences or optionals is unrolled if its number of turns is known. If only a run
finds it, the elements of each sequence must be equal, and are carried as rows of one tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import numpy as np

from ....dtypes import dtype, int64
from ....errors import ImportFailure, ShapeError, SizeNeeded, ValueNeeded
from ....graph import Builder, Node, Stack, Value
from ....graph.objects import described, leaves, mapped
from ....ops import ROWS
from ....shapes import MAX_ELEMENTS, Dim, axis_of, product, repeating, show, size, symbols
from ...choice import known_flag
from ...model import OnnxGraph, OnnxValue
from ...scope import Scope
from .._call import Call, adapter, inputs_below
from ..movement.shapes import part
from ._values import blank, joined, kind_of, nodes, scalar, stack, symbols_below

MOST_ROOM: Final = 1 << 22
"""The most elements to allocate for all turns that a loop may make, although it may end early."""
MAX_UNROLLED: Final = 4096
"""The most turns of a loop that is unrolled."""


# --- loops -----------------------------------------------------------------------------------------------------------

Turn: TypeAlias = "Callable[[Scope, Sequence[Node]], tuple[Sequence[Node], Sequence[Node]]]"
"""One turn: (scope of the body, carried values) ↦ (their next values, further values that the caller wants)."""


class Turns:
    """The body of a loop under construction: each carried value initially, `before` and `after` a turn.

    A dimension that changes from turn to turn is a separate size within the body.
    """

    def __init__(self, scope: Scope, initial: Sequence[Node], turn: Turn, count: Dim | None, call: str = "") -> None:
        """turn is called again if a dimension turns out to change; count: the most turns; call: the node's first output. The
        first of the carried values is the number of the turn."""
        self.b: Final = scope.builder
        self.count: Final = count
        self.initial = list(initial)
        changing: set[tuple[int, int]] = set()
        while True:
            self.captures: dict[Node, Node] = {}
            self.scope = scope.within(self.captures, call)
            self.before = [self.leaf(x, [i for j, i in changing if j == k]) for k, x in enumerate(initial)]
            self.scope.turn = self.before[0]
            with repeating(count):
                after, self.rest = turn(self.scope, self.before)
            self.after = list(after)
            found = set()
            for k, (x, y) in enumerate(zip(self.before, self.after, strict=True)):
                if len(x.shape) != len(y.shape):
                    raise ImportFailure(
                        f"a carried value of shape {show(x.shape)} has the shape {show(y.shape)} after a turn"
                    )
                found |= {(k, i) for i, (d, e) in enumerate(zip(x.shape, y.shape, strict=True)) if d != e}
            if found <= changing:
                return
            changing |= found

    def leaf(self, initial: Node, changing: Sequence[int]) -> Node:
        shape = [size(self.b.fresh("turn")) if i in changing else d for i, d in enumerate(initial.shape)]
        return self.b.input("carried", shape, initial.dtype)

    def carry(self, initial: Node, changing: Sequence[int], after: Callable[[Node], Node]) -> int:
        """Carry one more value; returns its number."""
        before = self.leaf(initial, changing)
        self.initial.append(initial)
        self.before.append(before)
        with repeating(self.count):
            self.after.append(after(before))
        return len(self.initial) - 1

    def collect(self, element: Node, turn: Node, room: Dim | None) -> int:
        """Carry the collected elements of all turns; room: how many to allocate (None: the tensor grows)."""
        b, shape = self.b, element.shape
        inner = {s for x in self.before for s in symbols(x.shape)} - {s for x in self.initial for s in symbols(x.shape)}
        inner |= b.graph((*self.before, *self.captures.values()), (element,)).own_size_nodes.keys()
        if symbols(shape) & inner:
            raise ImportFailure(f"a loop collects elements of shape {show(shape)}, which changes from turn to turn")
        part = b.reshape(element, shape=(1, *shape))
        zeros = b.expand(b.const(0, element.dtype), shape=(0 if room is None else room, *shape))
        if room is None:
            return self.carry(zeros, [0], lambda x: b.concat(x, part, axis=0))
        return self.carry(zeros, [], lambda x: b.update_slice(x, part, turn, *[b.const(0)] * len(shape)))

    def made(self, count: Dim | None, condition: Node | None, again: Node) -> tuple[Node, ...]:
        """The loop: the carried values after the last turn."""
        if not self.initial:
            return ()
        body = self.b.graph((*self.before, *self.captures.values()), (again, *self.after), self.scope.checks)
        given = () if condition is None else (condition,)
        return self.b.results_of(
            self.b.node(
                ROWS["loop"], *given, *self.initial, *self.captures, body=body, carried=len(self.initial),
                conditional=condition is not None, count=count,
            )
        )  # fmt: skip


def _count(call: Call, limit: Node | None) -> Dim | None:
    """The most turns of a Loop; None if there is no bound."""
    if limit is None:
        return None
    b = call.b
    count = b.size_of(b.maximum(scalar(call, limit, "the trip count"), b.const(0, limit.dtype)))
    # Exporters write the largest int64 for an endless loop.
    return None if isinstance(count, int) and count > MAX_ELEMENTS else count


@adapter("Loop", objects=True)
def _loop(call: Call) -> list[Value]:
    graph, initial = call.subgraph("body"), call.values[2:]
    if all(isinstance(x, (Node, Stack)) for x in initial):
        return _repeated(call, graph, initial)
    try:
        return _unrolled(call, graph)
    except (SizeNeeded, ValueNeeded):
        stacked = _stacked(call, graph, initial)
        if stacked is not None:
            with suppress(ImportFailure, ShapeError):
                return _repeated(call, graph, stacked)
        raise


def _stacked(call: Call, graph: OnnxGraph, initial: Sequence[Value]) -> list[Value] | None:
    """The carried values with sequences as rows of tensors; None if their elements are not equal. What a first turn appends
    to a sequence without elements says what these are like."""
    b, bound, after = call.b, set(call.b.size_nodes), tuple(initial)
    if () in initial:
        first = [b.input("turn", (1,) if v.shape == (1,) else (), int64) for v in graph.inputs[:1]]
        with suppress(ImportFailure, ShapeError):
            made = call.scope.within({}).outputs(graph, [*first, b.const(np.array(True)), *initial])
            after = tuple(made[1 : 1 + len(initial)])
    if len(after) < len(initial):
        return None
    found = [_as_rows(b, x, y, frozenset(bound)) for x, y in zip(initial, after, strict=True)]
    return None if None in found else found


def _as_rows(b: Builder, x: Value, after: Value, outer: frozenset[str]) -> Value:
    """A carried value, or None if it cannot be carried as tensors. after: what it is after a turn; outer: the sizes that are
    known before."""
    if isinstance(x, (Node, Stack)):
        return x
    if not isinstance(x, tuple) or x:
        return stack(b, x) if isinstance(x, tuple) else None
    like = stack(b, after) if isinstance(after, tuple) else after
    if not isinstance(like, Stack) or symbols(like.rows.shape[1:]) & b.size_nodes.keys() - outer:
        return None
    return Stack(blank(b, like.rows.dtype, (0, *like.rows.shape[1:])))


def _repeated(call: Call, graph: OnnxGraph, initial: Sequence[Value]) -> list[Value]:
    """A Loop over tensors, and sequences that are rows of tensors."""
    b, carried, flat = call.b, len(initial), list(leaves(tuple(initial)))
    collected = len(graph.outputs) - 1 - carried
    if len(graph.inputs) != 2 + carried or collected < 0:
        raise call.fail(
            f"{carried} values are carried, but the body takes {len(graph.inputs)} inputs and gives "
            f"{len(graph.outputs)}; expected two more inputs, and one more output at least"
        )
    yes, zero = b.const(np.array(True)), b.const(0)
    given = call.maybe(1)
    condition = yes if given is None else scalar(call, given, "the condition")
    count = _count(call, call.maybe(0))

    def whole(values: Iterable[Node]) -> list[Value]:
        """The carried values, of these tensors."""
        parts = iter(values)
        return list(mapped(lambda _: next(parts), tuple(initial)))

    def fits(values: Sequence[Value]) -> None:
        wanted = [Node, *map(type, initial), *[Node] * collected]
        for k, (x, kind) in enumerate(zip(values, wanted, strict=True)):
            if not isinstance(x, kind):
                like = "a tensor" if kind is Node else "a sequence of equal tensors"
                raise ImportFailure(f"output {k} of the body is {described(x)}; expected {like}")
        for x, y in zip(flat, leaves(tuple(values[1 : 1 + carried])), strict=True):
            if x.dtype is not y.dtype or len(x.shape) != len(y.shape):
                raise ImportFailure(f"a value that is {kind_of(x)} is carried, and {kind_of(y)} after a turn")

    def turn(scope: Scope, values: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
        number, *states = values
        # A turn runs only while the condition holds.
        first = [
            b.reshape(x, shape=v.shape if v.shape == (1,) else ())
            for x, v in zip((number, yes), graph.inputs, strict=False)
        ]
        again, *made = scope.outputs(graph, [*first, *whole(states)], fits)
        made = [_as_declared(b, x, v) for x, v in zip(made, graph.outputs[1:], strict=True)]
        after, elements = tuple(made[:carried]), nodes(made[carried:])
        return [b.add(number, b.const(1)), *leaves(after)], [*nodes([again]), *elements]

    turns = Turns(call.scope, [zero, *flat], turn, count, call.name)
    again, *elements = turns.rest
    again = scalar(call, again, "the condition")
    endless = known_flag(b, condition) is True and known_flag(b, again) is True
    shut = None if endless and count is not None else condition
    places = []
    for x in elements:
        room = count
        if shut is not None and room is not None:
            needs = product((room, *x.shape))
            room = None if isinstance(needs, int) and needs > MOST_ROOM else room
        places.append((turns.collect(x, turns.before[0], room), room))
    last = turns.made(count, shut, again)
    kept = whole(last[1 : 1 + len(flat)])
    if shut is not None and any(room is not None for _, room in places):
        made = b.size_of(last[0])
        return [*kept, *(part(b, last[k], 0, 0, made) if room is not None else last[k] for k, room in places)]
    return [*kept, *(last[k] for k, _ in places)]


def _flag(call: Call, x: Value) -> bool:
    """A condition that must be known."""
    if not isinstance(x, Node):
        raise call.fail(f"the condition is {described(x)}")
    holds = known_flag(call.b, x)
    if holds is not None:
        return holds
    text = "a loop that carries sequences or optionals: its condition must be known before a run"
    inputs = inputs_below(call.b, [x])
    raise ValueNeeded(text, inputs) if inputs else SizeNeeded(text, symbols_below([x]))


def _unrolled(call: Call, graph: OnnxGraph) -> list[Value]:
    """A Loop of which each turn is imported."""
    b, carried = call.b, list(call.values[2:])
    count, given = None if call.maybe(0) is None else call.ints(0)[0], call.maybe(1)
    again: Value = b.const(np.array(True)) if given is None else given
    collected: list[list[Value]] = []
    turn = 0
    while (count is None or turn < count) and _flag(call, again):
        if turn == MAX_UNROLLED:
            raise call.fail(f"a loop that carries sequences or optionals makes more than {MAX_UNROLLED} turns")
        first = [b.const(np.full((1,) if v.shape == (1,) else (), turn, np.int64)) for v in graph.inputs[:1]]
        again, *made = call.scope.within(None, f"{call.name}/{turn}").outputs(graph, [*first, again, *carried])
        carried = made[: len(carried)]
        collected.append(made[len(carried) :])
        turn += 1
    return [
        *carried,
        *(_rows(b, [x[k] for x in collected], v) for k, v in enumerate(graph.outputs[1 + len(carried) :])),
    ]


def _rows(b: Any, elements: Sequence[Value], declared: OnnxValue) -> Node:
    """What a loop collects, along a new first axis."""
    found = nodes(elements)
    if found:
        return joined(b, found)
    shape = declared.shape
    if shape is None or declared.dtype is None or not all(isinstance(d, int) for d in shape):
        raise ImportFailure(f"a loop of no turns collects {declared.name!r}, the shape of which is not in the file")
    return b.expand(b.const(0, dtype(declared.dtype)), shape=(0, *shape))


def _as_declared(b: Any, x: Value, declared: OnnxValue) -> Value:
    """A tensor with the lengths that the file declares in place of those that only a run can find; the run checks them."""
    if not isinstance(x, Node) or declared.shape is None or len(declared.shape) != len(x.shape):
        return x
    pairs = zip(x.shape, declared.shape, strict=True)
    shape = tuple(d if isinstance(d, int) and symbols(own) & b.size_nodes.keys() else own for own, d in pairs)
    return x if shape == x.shape else b.reshape(x, shape=shape)


# --- Scan ------------------------------------------------------------------------------------------------------------

ScanBody: TypeAlias = "Callable[[Scope, Sequence[Node], Sequence[Node]], tuple[Sequence[Node], Sequence[Node]]]"
"""One turn: (scope of the body, states, elements) ↦ (new states, elements to collect)."""


def scan(
    scope: Scope,
    states: Sequence[Node],
    xs: Sequence[tuple[Node, int, bool]],
    backward: Sequence[bool],
    element: ScanBody,
    call: str = "",
) -> tuple[Sequence[Node], Sequence[Node]]:
    """The last states, and the collected elements along a first axis. xs: the tensors, each with its axis and whether it
    is read from the end. backward: for each collected value, whether it is written from the end."""
    b = scope.builder
    for x, axis, _ in xs:
        if axis >= len(x.shape):
            raise ImportFailure(f"the scanned tensor {x!r} has no axis {axis}")
    lengths = [x.shape[axis] for x, axis, _ in xs]
    length = lengths[0]
    if any(d != length for d in lengths):
        raise ImportFailure(f"the scanned tensors have different lengths: {', '.join(map(str, lengths))}")

    def place(number: Node, reverse: bool) -> Node:
        return b.sub(b.const(length - 1), number) if reverse else number

    def turn(inner: Scope, values: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
        number, *carried = values
        parts = [b.gather(inner.captured(x), place(number, reverse), axis=axis) for x, axis, reverse in xs]
        after, made = element(inner, carried, parts)
        return [b.add(number, b.const(1)), *after], made

    turns = Turns(scope, [b.const(0), *states], turn, length, call)
    number = turns.before[0]
    ways = [*backward, *[False] * (len(turns.rest) - len(backward))]
    places = [turns.collect(x, place(number, way), length) for x, way in zip(turns.rest, ways, strict=True)]
    last = turns.made(length, None, b.const(np.array(True)))
    return last[1 : 1 + len(states)], [last[k] for k in places]


@adapter("Scan")
def _scan(call: Call) -> list[Node]:
    graph, count = call.subgraph("body"), call.attr("num_scan_inputs", 0)
    batched = call.version < 9
    given = call.inputs[batched:]
    if batched and call.inputs[:1] != (None,):
        raise call.fail("a Scan of opset 8 with lengths of its sequences; convert the model to opset 9 or later")
    if not 1 <= count <= len(given) or any(x is None for x in given):
        raise call.fail(f"{count} of its {len(given)} inputs are scanned; expected at least 1, and no input omitted")
    values = [x for x in given if x is not None]
    states, xs = values[:-count], values[-count:]
    collected = len(graph.outputs) - len(states)
    if collected < 0:
        raise call.fail(f"the body gives {len(graph.outputs)} values for {len(states)} states")
    reverse = _ways(call, "directions" if batched else "scan_input_directions", count)
    backward = _ways(call, "scan_output_directions", collected)

    def element(scope: Scope, before: Sequence[Node], parts: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
        made = nodes(scope.outputs(graph, [*before, *parts]))
        return made[: len(states)], made[len(states) :]

    if batched:  # the same for each element of the batch

        def example(scope: Scope, _: Sequence[Node], parts: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
            own = [(x, 0, way) for x, way in zip(parts[len(states) :], reverse, strict=True)]
            after, made = scan(scope, parts[: len(states)], own, (), element, call.name)
            return (), (*after, *made)

        return list(scan(call.scope, (), [(x, 0, False) for x in values], (), example, call.name)[1])
    axes = call.items("scan_input_axes", int) or (0,) * count
    places = call.items("scan_output_axes", int) or (0,) * collected
    if len(axes) != count or len(places) != collected:
        raise call.fail(
            f"got {len(axes)} and {len(places)} axes for {count} scanned inputs and {collected} scanned outputs"
        )
    sources = [(x, axis_of(a, len(x.shape), "Scan"), way) for x, a, way in zip(xs, axes, reverse, strict=True)]
    after, made = scan(call.scope, states, sources, backward, element, call.name)
    return [*after, *(_moved(call.b, x, a) for x, a in zip(made, places, strict=True))]


def _ways(call: Call, name: str, count: int) -> tuple[bool, ...]:
    given = call.items(name, int) or (0,) * count
    if len(given) != count or not set(given) <= {0, 1}:
        raise call.fail(f"attribute {name!r} is {given}; expected {count} numbers, each 0 or 1")
    return tuple(bool(way) for way in given)


def _moved(b: Any, x: Node, axis: int) -> Node:
    """The first axis at another place."""
    at = axis_of(axis, len(x.shape), "Scan")
    order = list(range(1, len(x.shape)))
    order.insert(at, 0)
    return x if at == 0 else b.transpose(x, perm=tuple(order))
