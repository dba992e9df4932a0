"""Makes the Kernel or Routine of one group: members at the group's coordinates, nodes that are not kept inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

from ...dtypes import int32
from ...errors import CompileError
from ...graph import Node, storage_of
from ...ir import affine, scalar
from ...ir.arrays import convert
from ...ir.kernel import Kernel, Port, Reduce, Routine, Scan, Stage, Store, collapse, loop_vars, matmul_operands
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
from ...ops import Elementwise, Folds, Nest, Running, Update, View
from ...ops.movement.move import project
from ...shapes import Shape
from ._growth import Growth


@dataclass(frozen=True, eq=False)
class Group:
    """A Kernel or Routine and the nodes of its ports: `inputs`, which are kept nodes, then `outputs`. It runs at the
    position of its last output in the graph.

    members: the nodes that it computes. base: of an update, the tensor of which the kernel replaces some elements; the
    output takes the memory of the base, or the base is copied first.
    """

    kernel: Kernel | Routine
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    members: tuple[Node, ...]
    base: Node | None = None

    @property
    def constants(self) -> tuple[int, ...]:
        """The ports that read constants."""
        return tuple(k for k, n in enumerate(self.inputs) if n.is_const)

    @property
    def ops(self) -> list[str]:
        """The names of its ops, for people."""
        return [n.op for n in self.members]

    def port(self, output: Node) -> int:
        """The port that writes an output."""
        return len(self.inputs) + self.outputs.index(output)

    def replaceable(self, output: Node) -> tuple[Node, ...]:
        """The inputs whose memory an output may take."""
        if self.base is not None:
            return () if self.base in self.inputs else (self.base,)
        if isinstance(self.kernel, Routine):
            return ()
        return tuple(self.inputs[k] for k in self.kernel.replaceable[self.port(output)])

    def in_place(self, heir: Node, output: Node) -> Group:
        """The group with an output written to the memory of `heir`, one of its `replaceable` inputs."""
        if self.base is not None:
            return replace(self, base=None)
        assert isinstance(self.kernel, Kernel)
        kernel = self.kernel.in_place(self.inputs.index(heir), self.port(output))
        return replace(self, kernel=kernel, inputs=tuple(n for n in self.inputs if n is not heir))

    def without_roundings(self) -> Group:
        """The group without roundings of values that are then stored: a store rounds."""
        nest = self.kernel.kernel if isinstance(self.kernel, Routine) else self.kernel
        stages = tuple(
            replace(s, value=scalar.unrounded(s.value, nest.ports[s.port].dtype)) if isinstance(s, Store) else s
            for s in nest.stages
        )
        if stages == nest.stages:
            return self
        nest = replace(nest, stages=stages)
        return replace(self, kernel=replace(self.kernel, kernel=nest) if isinstance(self.kernel, Routine) else nest)


class Maker:
    """Makes the Kernel or Routine of one group."""

    def __init__(self, kept: Set[Node], growth: Growth) -> None:
        self.kept = kept
        self.growth = growth
        self.ports: dict[Node, int] = {}
        self.values: dict[tuple[Node, tuple[Expr, ...]], Expr] = {}
        self.inside: dict[Node, Expr] = {}
        self.ops: dict[Node, None] = {}

    def group(self) -> Group:
        growth = self.growth
        if isinstance(growth.anchor.row, Running):
            return self._running(growth.anchor, growth.anchor.row)
        if isinstance(growth.anchor.row, Update):
            return self._update(growth.anchor, growth.anchor.row)
        anchor = next(iter(growth.coords))
        stages: list[Stage] = []
        inner: Shape = ()
        facts: Mapping[str, Any] | None = None
        if growth.anchored:
            assert isinstance(anchor.row, Nest)
            if anchor.row.routine is not None:
                facts = anchor.row.facts(*anchor.inputs, **anchor.attrs)
            members = list(growth.coords)
            if growth.pool is not None:
                at = members.index(growth.pool)
                inner, windows = self._pooled(members[:at], growth.pool, stages)
                members, facts = members[at + 1 :], facts and {**facts, **windows}
            for n in members:
                inner = self._compute(n, growth.coords[n], stages) or inner
        exits = growth.exits
        values = [self.inside[n] if growth.anchored else self._inlined(n, growth.coords[n]) for n in exits]
        for k, (n, value) in enumerate(zip(exits, values, strict=True)):
            index = affine.flatten(growth.coords[n], n.shape)
            stages.append(Store(len(self.ports) + k, index, value, n in growth.full))
        kernel = self._kernel(exits, growth.grid, inner, stages)
        made = self._routine(kernel, anchor, facts) if facts is not None else None
        return self._grouped(made or collapse(kernel), exits)

    def _kernel(self, exits: Sequence[Node], grid: Shape, inner: Shape, stages: Sequence[Stage]) -> Kernel:
        ports = (*(Port(n.dtype) for n in self.ports), *(Port(n.dtype, True) for n in exits))
        return Kernel(ports, grid, inner, tuple(stages), name="+".join(dict.fromkeys(n.op for n in self.ops)))

    def _grouped(self, kernel: Kernel | Routine, exits: Sequence[Node], base: Node | None = None) -> Group:
        return Group(kernel, tuple(self.ports), tuple(exits), tuple(self.ops), base)

    def _running(self, n: Node, row: Running) -> Group:
        """A fold along an axis that keeps every step: the axis is the inner loop."""
        self._note(n)
        axis = n.attrs["axis"] % len(n.shape)
        grid = tuple(1 if i == axis else d for i, d in enumerate(n.shape))
        inner = (n.shape[axis],)
        (turn,) = loop_vars("r", inner)
        at = scalar.size(n.shape[axis] - 1) - turn if n.attrs.get("reverse") else turn
        place = tuple(at if i == axis else v for i, v in enumerate(loop_vars("g", grid)))
        scan = Scan("a0", row.word, self.value(n.inputs[0], place))
        index = affine.flatten(place, n.shape)
        store = Store(len(self.ports), index, _stored(scan.accumulator, n), True)
        return self._grouped(collapse(self._kernel((n,), grid, inner, (scan, store))), (n,))

    def _update(self, n: Node, row: Update) -> Group:
        """A kernel over the elements of the part, which stores each of them at its place."""
        self._note(n)
        part = n.inputs[1]
        coords = loop_vars("g", part.shape)
        where = row.where(coords, self._reader(n), *n.inputs, **n.attrs)
        value = self.value(part, coords)
        store = Store(len(self.ports), affine.flatten(where, n.shape), value)
        return self._grouped(collapse(self._kernel((n,), part.shape, (), (store,))), (n,), storage_of(n.inputs[0]))

    def _note(self, n: Node) -> None:
        self.ops.setdefault(n)

    def _compute(self, n: Node, coords: tuple[Expr, ...], stages: list[Stage]) -> Shape:
        """Compute a member at some coordinates; returns its inner loops."""
        self._note(n)
        if isinstance(n.row, Nest):
            return self._fold(n, coords, stages)
        self.inside[n] = self._member(n, coords)
        return ()

    def _pooled(self, members: Sequence[Node], pool: Node, stages: list[Stage]) -> tuple[Shape, Mapping[str, Any]]:
        """A pool over the last member, with the members computed at each place of a window. Returns the inner loops, and
        the facts of the windows (see ROUTINES)."""
        assert isinstance(pool.row, Nest)
        row, inner = pool.row, ()

        def nest(into: list[Stage]) -> Folds:
            def read(_: int, coords: Sequence[Expr]) -> Expr:
                nonlocal inner
                self.inside = {}
                for n in members:
                    inner = self._compute(n, tuple(coords), into) or inner
                return self.inside[members[-1]]

            return row.nest(self.growth.coords[pool], read, *pool.inputs, **pool.attrs)

        windows = row.windows(**pool.attrs)
        assert windows is not None
        folds = nest(stages)
        ((word, value),) = folds.folds
        places = product(*(range(d) for d in windows if d > 1))
        taken = [value([scalar.const(i, int32) for i in place], []) for place in places]
        total = reduce(lambda x, y: scalar.make(word, (x, y), x.dtype), taken)
        anywhere: list[Stage] = []
        ((_, value),) = nest(anywhere).folds
        value([p for p, d in zip(loop_vars("p", tuple(windows)), windows, strict=True) if d > 1], [])
        self.inside = {pool: _stored(folds.result([total]), pool)}
        self._note(pool)
        positions = pool.inputs[0].shape[1:-1]
        return inner, {"windows": tuple(windows), "positions": positions, "value": anywhere[0].value}

    def _fold(self, n: Node, coords: tuple[Expr, ...], stages: list[Stage]) -> Shape:
        """Add the Reduce stages of a Nest; returns its inner loops."""
        assert isinstance(n.row, Nest)
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

    def _member(self, n: Node, place: tuple[Expr, ...]) -> Expr:
        """The value of a node after the anchor, at coordinates of the group."""
        if isinstance(n.row, Elementwise):
            return n.row.value([self.value(x, tuple(project(place, x.shape))) for x in n.inputs], n.dtype, n.attrs)
        return self.inside[n.inputs[0]]

    def value(self, n: Node, coords: tuple[Expr, ...]) -> Expr:
        """A node's element at some coordinates: the value of a member, a load, or an inlined expression."""
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
                compute = n.dtype.compute
                return scalar.const(convert(n.value, compute.numpy).item(), compute)
        if n in self.kept or n.row is None:
            return self._load(n, n.shape, coords)
        base = storage_of(n)
        if (
            base is not n
            and (base in self.kept or base.row is None)
            and not (base.value is not None and (base.value.size == 1 or base.value.dtype == object))
        ):
            return self._load(base, n.shape, coords)
        return self._inlined(n, coords)

    def _load(self, n: Node, shape: Shape, coords: tuple[Expr, ...]) -> Expr:
        """A load from memory, indexed by coordinates within `shape`."""
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
        """The kernel in the form that its template expects, or None if the template cannot take it."""
        assert isinstance(anchor.row, Nest)
        kind = anchor.row.routine or ""
        if kind.startswith("matmul"):
            if kind in ("matmul", "matmul_blocks") and matmul_operands(kernel) is None:
                return None
            return Routine(kind, collapse(kernel, keep=1, least=2), facts)
        x, w = (storage_of(i) for i in anchor.inputs[:2])
        if x not in self.ports or w not in self.ports or (kind == "conv" and x.dtype is not w.dtype):
            return None
        return Routine(kind, kernel, {**facts, "x": self.ports[x], "w": self.ports[w]})


def _stored(value: Expr, n: Node) -> Expr:
    """A fold's result as an element of the node's dtype."""
    return scalar.wrap(scalar.cast(value, n.dtype.compute), n.dtype)


def _symbolic(n: Node, coords: tuple[Expr, ...]) -> Expr:
    """An element of a constant that holds Sizes, whose values a run knows."""
    assert n.value is not None
    flat = affine.flatten(coords, n.shape)
    compute = n.dtype.compute
    values = [scalar.cast(scalar.size(v), compute) for v in n.value.reshape(-1).tolist()]
    out = values[-1] if values else scalar.const(0, compute)
    for i in range(len(values) - 2, -1, -1):
        out = scalar.select(scalar.eq(flat, scalar.const(i, int32)), values[i], out)
    return out
