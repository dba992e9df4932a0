"""Turns a rewritten Graph into the steps of a Program, with nested blocks for its regions and a place for each value.

A block is the steps of one graph. Its caller gives the buffers of the graph's leaves (inputs, states, captured and carried
values) and the target buffers of its results. A result is computed in its target if the value there is not read
afterwards; otherwise it is computed elsewhere and copied at the end. An output that can be computed in the memory of a
donated input is placed there. All other values take a slot when they are written and free it after their last reader; a
kernel that may work in place takes over the slot of an input that it is the last to read. While a region runs, the values
that it captures are kept. The checks of a block's sizes are done in that block, as soon as it knows these sizes; checks
outside of regions that depend on the inputs' sizes alone are done before the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np

from ...dtypes import DType, bool_, string, uint8
from ...graph import Graph, Node
from ...ir.kernel import Kernel, Routine
from ...late_dataclass import dataclass
from ...ops import Elementwise, Opaque, Region, Update, without_sizes
from ...program.program import Bind, Buffer, Check, Host
from ...shapes import Checks, Dim, Shape, Size, deferring, repeating, require, symbols
from ..fuse import Group
from ..lower.runtime_sizes import named
from ..partition import unsupported_dtypes
from ..target import Packer, Printed, Target, execution_of
from .beside import RegionWork, beside
from .buffers import BufferTable, Slots, bytes_of
from .packed import PackedConstants
from .steps import Copy, Dispatch, If, Loop, Step
from .work import BindSize, Item, Items, found_by


@dataclass(frozen=True, eq=False)
class WeightUse:
    """A port of a kernel that reads a constant: the constant, its packer, and the buffer of the packed constant."""

    kernel: Kernel | Routine
    port: int
    values: np.ndarray
    packer: Packer | None
    buffer: Buffer


@dataclass
class _Block:
    """The state of assembling the steps of one graph."""

    graph: Graph
    checks: Checks
    items: list[Item]
    of: dict[Node, int]  # the buffer of each value
    roots: Sequence[Node]  # the nodes whose memory the graph's roots share
    held: dict[Node, int] = field(default_factory=dict)  # the slot of each value that has one
    last: dict[Node, int] = field(default_factory=dict)  # the item that reads a value last
    steps: list[Step] = field(default_factory=list)


class StepScheduler:
    """Assembles steps; see the module's docstring. The kernel number of a Dispatch is an index into `work`; `uses`
    lists the constants that kernels read. specialised: the steps are for particular sizes, beside those for open ones."""

    def __init__(self, target: Target, layout: BufferTable, late: Iterable[str], specialised: bool = False) -> None:
        self.target = target
        self._allocates: Final = execution_of(target).allocates
        self._launches: Final = execution_of(target).launches
        self._items: Final = Items(target)
        self._specialised = specialised
        self._known: frozenset[str] = frozenset()  # the sizes known after the steps so far
        self.layout = layout
        self.slots = Slots(late)
        self.work: list[RegionWork] = []
        self.uses: list[WeightUse] = []
        self.computed: dict[int, Sequence[Node]] = {}
        """A buffer ↦ the nodes that a kernel, or a step on the host, computes with it."""
        self._scratch: dict[frozenset[str], int] = {}
        self._printed: dict[tuple[Kernel | Routine, frozenset[int]], Printed | None] = {}
        self._packed: Final = PackedConstants()

    def steps(
        self,
        graph: Graph,
        leaf_buffers: Mapping[Node, int],
        targets: Sequence[int],
        checks: Checks,
        checked: frozenset[str] = frozenset(),
        last: Sequence[Step] = (),
        copied: Sequence[int] = (),
        donated: Sequence[Node] = (),
    ) -> list[Step]:
        """The steps of a graph. leaf_buffers: the buffers of its leaves; targets: the buffers in which its roots must end up.

        checks: those that `deferring` collects meanwhile; checked: sizes whose checks are done elsewhere. last: steps
        before the copies at the end; copied: the numbers of roots that must be copied after them. donated: inputs whose
        memory outputs may take; the targets of outputs that can be computed there are moved there.
        """
        checks.update(graph.checks)
        graph, items = self._items.of(graph, lambda g: self._print(g.kernel, g.constants) is not None)
        b = _Block(graph, checks, items, dict(leaf_buffers), [self._items.memory(x) for x in graph.roots])
        over = self._written_over(b, donated)
        lying: dict[tuple[str, int], list[Node]] = {}  # the leaves at each place
        for x, buffer in leaf_buffers.items():
            lying.setdefault(self._at(buffer), []).append(x)
        pairs = [
            *((s.leaf, s.updated) for s in graph.states),
            *((x, graph.outputs[k]) for x, k in over.items()),
            *((x, n) for n, t in zip(graph.roots, targets, strict=True) for x in lying.get(self._at(t), ())),
        ]
        b.items = items = self._items.updates_last(items, pairs)
        for group in (g for g in items if isinstance(g, Group) and isinstance(g.kernel, Routine)):
            code = self._print(group.kernel, group.constants)
            if code is not None:
                self._packed.note(group, self._sharing(group, code)[0])
        for i, item in enumerate(items):
            b.last.update(dict.fromkeys(self._items.reads(item), i))
        made = {n: i for i, item in enumerate(items) for n in self._writes(b, item)}
        for x, k in self._taken(b, made, donated, over).items():
            self.layout.move(targets[k], self._at(b.of[x]))
        direct = self._direct(b, made, targets, copied, lying)
        ends = [(x, t) for k, (x, t) in enumerate(zip(b.roots, targets, strict=True)) if direct.get(x) != k]
        b.last.update({n: len(items) for n, _ in ends})
        outside = self._known
        for n in graph.nodes:
            for d in (d for shape, _ in n.results for d in shape if not symbols(d) <= checked):
                require(d, f"{n.op}: the dimension {d} must be at least 0")
        self._known = outside.union(symbols([x.shape for x in graph.leaves]))
        b.steps += [Check(dim, text) for dim, text in checks.items() if isinstance(dim, int)]
        self._check(b, checked)
        for i, item in enumerate(items):
            dying = [n for n in dict.fromkeys(self._items.reads(item)) if b.last[n] == i and n in b.held]
            unread = self._place(b, i, dying, {n: targets[k] for n, k in direct.items()})
            self._emit(b, item)
            before = self._known
            self._known = before.union(found_by(item))
            self._check(b, before)
            self.slots.release(b.held.pop(n) for n in dying if n in b.held)
            self.slots.release(unread)
        b.steps += last
        self._copy_all(b.steps, [(self._buffer(b, n), t) for n, t in ends])
        self.slots.release(b.held.values())
        self._known = outside
        return b.steps

    def _region(
        self,
        graph: Graph,
        leaf_buffers: Mapping[Node, int],
        targets: Sequence[int],
        last: Sequence[Step],
        copied: Sequence[int],
    ) -> list[Step]:
        """The steps of a region, with checks of its own."""
        with deferring() as checks:
            return self.steps(graph, leaf_buffers, targets, checks, last=last, copied=copied)

    def _check(self, b: _Block, before: frozenset[str]) -> None:
        """Add the checks whose sizes are all known, and were not all known before."""
        for dim, text in b.checks.items():
            if symbols(dim) <= self._known and not symbols(dim) <= before:
                b.steps.append(Check(dim, text))

    # --- the values of items ---

    def _writes(self, b: _Block, item: Item) -> list[Node]:
        if isinstance(item, Group):
            return list(item.outputs)
        return [] if isinstance(item, BindSize) else [n for n in self._values(b, item) if n is not None]

    def _values(self, b: _Block, n: Node) -> list[Node | None]:
        """The values of a node: the node itself, or its results; None for a result that no node reads."""
        if len(n.results) == 1:
            return [n]
        read = {u.attrs["index"]: u for u in b.graph.users[n]}
        return [read.get(k) for k in range(len(n.results))]

    # --- the places of values ---

    def _at(self, buffer: int) -> tuple[str, int]:
        return self.layout.buffers[buffer].place

    def _buffer(self, b: _Block, n: Node, shape: Shape | None = None) -> int:
        """The buffer of a value, viewed with a shape."""
        root = self._items.memory(n)
        found = self.layout.const(root) if root.is_const else b.of[root]
        return self.layout.seen(found, n.shape if shape is None else shape)

    def _reusable_inputs(self, b: _Block, item: Item, n: Node) -> Sequence[Node]:
        """The inputs of an item whose memory its result n may take."""
        if isinstance(item, Group):
            return item.replaceable(n)
        assert isinstance(item, Node)
        inputs = [self._items.memory(x) for x in item.inputs]
        if item.op == "if":
            return inputs[1:]
        if item.op == "loop":
            first = inputs[item.attrs["conditional"] :][self._values(b, item).index(n)]
            return (first,) if inputs.count(first) == 1 else ()
        return () if isinstance(item.row, Opaque) else inputs

    def _grows(self, b: _Block, item: Item, n: Node) -> bool:
        """Whether the shape of a loop's result may change from turn to turn: a slot can hold it, an output cannot."""
        if not isinstance(item, Node) or item.op != "loop":
            return False
        return any(k == self._values(b, item).index(n) for k, _, _ in named(item))

    # --- outputs in the memory of donated inputs ---

    def _written_over(self, b: _Block, donated: Sequence[Node]) -> dict[Node, int]:
        """The donated inputs that an output equals, or that it can overwrite as it is computed ↦ the output's number."""
        makes = {n: item for item in b.items for n in self._writes(b, item)} if donated else {}
        alike = self._alike(b)
        found: dict[Node, int] = {}
        for x in donated:
            free = [k for k in alike.get((x.shape, x.dtype), ()) if k not in found.values()]
            over = [
                k
                for k in free
                if b.roots[k] in makes and x in self._overwritten_inputs(b, makes[b.roots[k]], b.roots[k])
            ]
            same = [k for k in free if b.roots[k] is x]
            updated = [k for k in over if isinstance(b.roots[k].row, Update)]
            if over or same:
                found[x] = [*same, *updated, *over][0]
        return found

    def _taken(
        self, b: _Block, buffers: Mapping[Node, int], donated: Sequence[Node], over: Mapping[Node, int]
    ) -> dict[Node, int]:
        """The donated inputs whose memory an output takes ↦ the output's number. over: the preferred pairs."""
        found = {x: k for x, k in over.items() if b.roots[k] is x or self._may_lie(b, buffers, k, x)}
        alike = self._alike(b)
        for x in donated:
            for k in alike.get((x.shape, x.dtype), ()):
                if self._allocates and not isinstance(b.roots[k].row, Elementwise):
                    continue
                if (
                    x not in found
                    and k not in found.values()
                    and b.roots[k] in buffers
                    and self._may_lie(b, buffers, k, x)
                ):
                    found[x] = k
        return found

    def _alike(self, b: _Block) -> dict[tuple[Shape, DType], list[int]]:
        """The numbers of the outputs by shape and type; a node that is several outputs counts once, strings not at all."""
        found: dict[tuple[Shape, DType], list[int]] = {}
        numbers = {x: k for k, x in reversed(list(enumerate(b.roots[: len(b.graph.outputs)])))}
        for k in sorted(numbers.values()):
            y = b.graph.outputs[k]
            if y.dtype is not string:
                found.setdefault((y.shape, y.dtype), []).append(k)
        return found

    def _overwritten_inputs(self, b: _Block, item: Item, n: Node) -> Sequence[Node]:
        """The inputs of an item that a runner overwrites with its result n if they have the same place."""
        row = item.row if isinstance(item, Node) else None
        if row is None or isinstance(row, Region):
            return self._reusable_inputs(b, item, n)
        assert isinstance(item, Node)
        return item.inputs[:1] if isinstance(row, Update) else item.inputs if isinstance(row, Elementwise) else ()

    def _may_lie(self, b: _Block, buffers: Mapping[Node, int], k: int, x: Node) -> bool:
        """Whether root k may overwrite x: x is not another root, and is not read after k is computed."""
        n, last = b.roots[k], b.last.get(x, -1)
        if any(r is x for j, r in enumerate(b.roots) if j != k):
            return False
        return last < buffers[n] or (last == buffers[n] and x in self._reusable_inputs(b, b.items[last], n))

    def _direct(
        self, b: _Block, buffers: Mapping[Node, int], targets: Sequence[int], copied: Sequence[int],
        lying: Mapping[tuple[str, int], Sequence[Node]],
    ) -> dict[Node, int]:  # fmt: skip
        """The values that can be computed in the target of a root ↦ the number of the root. lying: the leaves at each place."""
        direct: dict[Node, int] = {}
        for k, (n, target) in enumerate(zip(b.roots, targets, strict=True)):
            if n not in buffers or n in direct or k in copied:
                continue
            if self._at(target)[0] != "slot" and self._grows(b, b.items[buffers[n]], n):
                continue
            late = symbols(self.layout.buffers[target].shape) & self.slots.late
            if not late <= symbols(n.shape):
                continue  # the target is allocated only after another item has found its size
            if all(self._may_lie(b, buffers, k, x) for x in lying.get(self._at(target), ())):
                direct[n] = k
        return direct

    def _place(self, b: _Block, i: int, dying: Sequence[Node], direct: Mapping[Node, int]) -> list[int]:
        """Give places to the values of item i. Returns the slots of values that no node reads, which are free after it."""
        item, unread = b.items[i], list[int]()
        for n in self._writes(b, item):
            if n in direct:
                b.of[n] = direct[n]
                continue
            need = bytes_of(n.shape, n.dtype)
            heirs = (
                ()
                if self._allocates and not isinstance(getattr(item, "row", None), Update)
                else self._reusable_inputs(b, item, n)
            )
            heir = next((x for x in heirs if x in dying and x in b.held and bytes_of(x.shape, x.dtype) == need), None)
            slot = self.slots.acquire(need, b.last.get(n, i) - i) if heir is None else b.held.pop(heir)
            name = item.kernel.name if isinstance(item, Group) else n.op
            b.of[n] = self.layout.add(name, n.dtype, n.shape, ("slot", slot))
            if n in b.last:
                b.held[n] = slot
            else:
                unread.append(slot)
        return unread

    # --- steps ---

    def _emit(self, b: _Block, item: Item) -> None:
        members = item.members if isinstance(item, Group) else (item,) if isinstance(item, Node) else ()
        self.computed.update((b.of[n], members) for n in self._writes(b, item))
        if isinstance(item, Group):
            self._dispatch(b, item)
        elif isinstance(item, BindSize):
            n = item.node
            if n.value is not None:
                found = n.value.reshape(-1)[0]
                b.steps.append(Bind(item.size, dim=found if isinstance(found, Size) else int(found)))
            else:
                b.steps.append(Bind(item.size, buffer=self._buffer(b, n)))
        elif item.op == "if":
            self._if(b, item)
        elif item.op == "loop":
            self._loop(b, item)
        else:
            self._opaque(b, item)

    def _dispatch(self, b: _Block, group: Group) -> None:
        for n in group.outputs:
            for heir in group.replaceable(n):
                if not heir.is_const and self._at(b.of[heir]) == self._at(b.of[n]):
                    group = group.in_place(heir, n)
                    break
        if group.base is not None:
            b.steps.append(Copy(self._buffer(b, group.base), b.of[group.outputs[0]]))
        group, gathered = self._packed.gathering(group)
        kernel = group.kernel
        printed = self._print(kernel, group.constants)
        if printed is None and isinstance(kernel, Routine):
            printed = self._print(kernel.kernel, group.constants)
        assert printed is not None
        printed, packed = self._sharing(group, printed)
        buffers: list[int] = []
        for k, n in enumerate(group.inputs):
            if n.value is None:
                buffers.append(b.of[n])
            else:
                packer = gathered.get(k, printed.packers.get(k))
                buffers.append(packed[k] if k in packed else self.layout.const(n, packer))
                if k not in gathered:
                    self.uses.append(WeightUse(kernel, k, n.value, packer, self.layout.buffers[buffers[-1]]))
        self._run(b, printed, [*buffers, *(b.of[n] for n in group.outputs)], group, kernel.name)

    def _print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        """The target's code for a kernel; equal kernels are printed once."""
        key = kernel, frozenset(constants)
        if key not in self._printed:
            self._printed[key] = self.target.print(kernel, constants)
        return self._printed[key]

    def _sharing(self, group: Group, printed: Printed) -> tuple[Printed, Mapping[int, int]]:
        """A group's code and the buffers of its packed constants: code over weights that are there already, if it has such."""
        if self._specialised and printed.sharing is not None:
            other = printed.sharing()
            found = {k: self.layout.shared(group.inputs[k], packer) for k, packer in other.packers.items()}
            if None not in found.values():
                return other, {k: buffer for k, buffer in found.items() if buffer is not None}
        return printed, {}

    def _run(self, b: _Block, printed: Printed, buffers: list[int], group: Group | None, label: str) -> None:
        moved: Dim = 0
        for i in buffers:
            moved = moved + self.layout.buffers[i].bytes
        kernel = None if group is None else group.kernel
        if self._launches and isinstance(kernel, Kernel) and not (printed.others or printed.packers or printed.scratch):
            one = RegionWork(printed, len(buffers), group, label, moved, ((kernel, tuple(buffers)),))
            before = self._before(b)
            both = None if before is None else beside(before, one, self._at, self.target)
            if both is not None:
                self.work[-1], used = both
                b.steps[-1] = Dispatch(len(self.work) - 1, used)
            else:
                b.steps.append(Dispatch(len(self.work), tuple(buffers)))
                self.work.append(one)
            return
        for code in (printed, *printed.others):
            own = [*buffers, self._workspace(code)] if code.scratch != 0 else buffers
            b.steps.append(Dispatch(len(self.work), tuple(own)))
            self.work.append(RegionWork(code, len(own), group, label, moved))

    def _before(self, b: _Block) -> RegionWork | None:
        """The work of the last step, if no other step has the same."""
        last = b.steps[-1] if b.steps else None
        return self.work[-1] if isinstance(last, Dispatch) and last.kernel == len(self.work) - 1 else None

    def _workspace(self, p: Printed) -> int:
        """The buffer of a workspace. All kernels share one slot for it."""
        late = symbols(p.scratch) & self.slots.late
        if late not in self._scratch:
            self._scratch[late] = self.slots.acquire(p.scratch)
        place = ("slot", self._scratch[late])
        for k, found in enumerate(self.layout.buffers):
            if found.place == place and found.shape == (p.scratch,):
                return k
        return self.layout.add("scratch", uint8, (p.scratch,), place, 1)

    def _opaque(self, b: _Block, n: Node) -> None:
        """Add a dispatch of the target's function for an opaque op, or a step on the host."""
        assert n.row is not None
        inputs = [self._buffer(b, x) for x in n.inputs]
        outputs, free = self._results(b, n)
        attrs = without_sizes(n.attrs)
        printed = None
        if not unsupported_dtypes(n, self.target):
            given = tuple((x.shape, x.dtype) for x in n.inputs)
            printed = self.target.print_opaque(n.op, attrs, given, n.results)
        if printed is not None:
            self._run(b, printed, [*inputs, *outputs], None, n.op)
        else:
            b.steps.append(Host(n.row.name, attrs, tuple(inputs), tuple(outputs)))
        self.slots.release(free)

    def _results(self, b: _Block, n: Node) -> tuple[list[int], list[int]]:
        """The buffers of all results of a node, and the slots of results that no node reads."""
        free: list[int] = []
        buffers: list[int] = []
        for value, (shape, kind) in zip(self._values(b, n), n.results, strict=True):
            if value is None:
                free.append(self.slots.acquire(bytes_of(shape, kind)))
                buffers.append(self.layout.add(n.op, kind, shape, ("slot", free[-1])))
            else:
                buffers.append(self.layout.seen(b.of[value], shape))
        return buffers, free

    def _if(self, b: _Block, n: Node) -> None:
        targets, free = self._results(b, n)
        condition, *captures = n.inputs
        names = named(n)
        branches: list[tuple[Step, ...]] = []
        for graph in (n.attrs["then"], n.attrs["otherwise"]):
            given = {x: self._buffer(b, c, x.shape) for x, c in zip(graph.inputs, captures, strict=True)}
            early: list[Step] = []
            late: list[Step] = []
            copied: list[int] = []
            for k, axis, name in names:
                dim = graph.outputs[k].shape[axis]
                if symbols(dim) & graph.own_size_nodes.keys():
                    late.append(Bind(name, dim=dim))
                    copied.append(k)
                else:
                    early.append(Bind(name, dim=dim))
            branches.append((*early, *self._region(graph, given, targets, late, copied)))
        b.steps.append(If(self._buffer(b, condition), branches[0], branches[1]))
        self.slots.release(free)

    def _loop(self, b: _Block, n: Node) -> None:
        carried, free = self._results(b, n)
        body: Graph = n.attrs["body"]
        inputs = list(n.inputs)
        condition = None
        if n.attrs["conditional"]:
            free.append(self.slots.acquire(1))
            condition = self.layout.add("condition", bool_, (), ("slot", free[-1]))
            b.steps.append(Copy(self._buffer(b, inputs.pop(0), ()), condition))
        else:
            body = replace(body, outputs=body.outputs[1:], output_names=body.output_names[1:])
        initial, captures = inputs[: len(carried)], inputs[len(carried) :]
        outputs = body.outputs[-len(carried) :] if carried else ()
        first: list[Step] = []
        last: list[Step] = []
        copied: set[int] = set()
        for k, axis, name in named(n):
            b.steps.append(Bind(name, dim=initial[k].shape[axis]))
            (own,) = symbols(body.inputs[k].shape[axis])
            first.append(Bind(own, dim=n.results[k][0][axis]))
            last.append(Bind(name, dim=outputs[k].shape[axis]))
            copied.add(k + (condition is not None))
        self._copy_all(b.steps, [(self._buffer(b, x), c) for x, c in zip(initial, carried, strict=True)])
        given = {x: self.layout.seen(c, x.shape) for x, c in zip(body.inputs, carried, strict=False)}
        rest = body.inputs[len(carried) :]
        given |= {x: self._buffer(b, c, x.shape) for x, c in zip(rest, captures, strict=True)}
        targets = [*(() if condition is None else (condition,)), *carried]
        with repeating(n.attrs.get("count")):
            steps = self._region(body, given, targets, last, sorted(copied))
        b.steps.append(Loop(n.attrs.get("count"), condition, (*first, *steps)))
        self.slots.release(free)

    def _copy_all(self, steps: list[Step], moves: Sequence[tuple[int, int]]) -> None:
        """Append copies that together act as one simultaneous copy. A buffer that another copy overwrites is copied
        first; a cycle is broken by a copy to a slot."""
        waiting = [(s, t) for s, t in moves if self._at(s) != self._at(t)]
        free: list[int] = []
        while waiting:
            sources = [self._at(s) for s, _ in waiting]
            ready = next((m for m in waiting if self._at(m[1]) not in sources), None)
            if ready is not None:
                steps.append(self._copy(*ready))
                waiting.remove(ready)
                continue
            source, target = waiting.pop()
            held = self.layout.buffers[source]
            free.append(self.slots.acquire(held.bytes))
            kept = self.layout.add(held.name, held.dtype, held.shape, ("slot", free[-1]), held.size)
            steps.append(self._copy(source, kept))
            waiting.append((kept, target))
        self.slots.release(free)

    def _copy(self, source: int, target: int) -> Step:
        """A copy step; strings are on the host, so a host step copies them."""
        b = self.layout.buffers[target]
        return Host("reshape", {"shape": b.shape}, (source,), (target,)) if b.dtype is string else Copy(source, target)
