"""Any Kernel as nested loops, with one loop four lanes wide where the indices allow it.

The last grid loop is preferred: reductions over other axes then accumulate vectors, with no fold across lanes. If the
loads of a reduction are contiguous along the last inner loop instead, that loop is taken, and its accumulators are folded
across lanes at the end. A vectorised loop is written as unrolled vectors, single vectors and a scalar tail, each only if
it can occur.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from singe.extension import (
    Dim,
    Expr,
    Kernel,
    Reduce,
    Scan,
    Stage,
    Store,
    ceildiv,
    divides,
    float32,
    identity,
    int32,
    scalar,
)

from ..code import simd
from ..code.elementary import EXP_POLYNOMIAL, LN2_HIGH, LN2_LOW, LOG2E, WHOLE, WHOLE_BITS
from ..code.encode import Function
from ..code.values import I32, V128, I32x4, Int, Value, minimum
from ..code.writer import EFFECT, Tree, Writer
from .lanes import choose_lane
from .lower import Lowering, Shift, SizeParameters
from .memory import SIGN_OF_BYTES
from .ranges import Ranges, take_ranges
from .thread_shares import TURNS_THAT_DIVIDE_WELL, begin, choose_loop, divide, first_alone, guess
from .transposed import blocks

MAX_UNROLLED_TURNS: Final = 8
"""The most turns of an inner loop that is written out."""
LINES: Final = (8, 4)
"""Vectors that a long fold along other axes takes at once: whole cache lines, which it else loads again for each vector."""
MIN_LONG_FOLD_TURNS: Final = 64
"""The fewest turns of a long fold."""
HEAVY_EXPRESSIONS: Final = 96
"""The expressions of a kernel that is not written out for so many vectors."""
BESIDE: Final = 4
"""Turns of another loop that a fold takes at once where the lanes are one vector."""


def print_nests(kernels: Sequence[Kernel], sizes: SizeParameters) -> Function:
    """The function of one or several kernels over the same ports, one after the other."""
    w = begin(kernels[0], False, sizes)
    for kernel in kernels:
        folds = any(isinstance(s, Reduce) for s in kernel.stages)
        stages = tuple(map(_written_out, kernel.stages)) if folds else kernel.stages
        _NestWriter(replace(kernel, stages=stages), sizes, w).write()
    return w.finish()


# --- the loops -------------------------------------------------------------------------------------------------------


@dataclass
class _KernelLoop:
    variable: Expr
    local: I32
    extent: Dim
    level: int
    step: int


@dataclass
class _Strip:
    """A part of the vectorised loop: what one turn computes, as shifts, and how many vectors beside each other it takes along
    the loop; 0: one element. The functions below take both."""

    shifts: tuple[Shift, ...]
    vectors: int
    step: int
    limit: Int
    sure: bool


class _NestWriter:
    def __init__(self, kernel: Kernel, sizes: SizeParameters, w: Writer) -> None:
        self.w = w
        self.lane, self.lane_is_inner = choose_lane(kernel)
        self.kernel, self.ranges = take_ranges(kernel, self.lane)
        weight = self._weight()
        self.unroll = 4 if weight <= 16 else 2 if weight <= 48 else 1
        self.other, self.block = blocks(kernel, self.lane, 4 * self.unroll)
        self.along = self.other  # the loop of which `block` turns are computed at once
        self.by_lines = self._folds_along_others() and weight <= HEAVY_EXPRESSIONS
        self.counts = self._counts()
        if (beside := self._loop_beside()) is not None:
            self.along, self.block = beside, BESIDE
        self.low = Lowering(kernel.ports, sizes, lane=self.lane, other=self.other)
        self.depth = len(kernel.grid)
        self.folded = self.depth + 1  # the level of accumulators: known in a grid point, but not at its start
        self.grid = self._loops(kernel.grid_vars, kernel.grid, 1)
        self.inner = self._loops(kernel.inner_vars, kernel.inner, self.depth + 2)
        self.accumulators: dict[tuple[str, Shift, bool], Value] = {}
        self.nans: dict[Value, I32x4] = {}  # of an accumulator whose fold may lose a NaN: the lanes that have seen one
        self.shared: _KernelLoop | None = None
        self.cut = 1  # the elements of the vectorised loop that parts are made of
        self.range: tuple[Int, I32] = (0, I32.of(0))  # the part's first turn of the shared loop, and its end

    def _loops(self, variables: Sequence[Expr], extents: Sequence[Dim], level: int) -> list[_KernelLoop]:
        loops = []
        for i, (v, d) in enumerate(zip(variables, extents, strict=True)):
            if v.word == "var":
                loops.append(_KernelLoop(v, self.w.i32(), d, level + i, self.block if v is self.along else 1))
                self.low.variable(v, loops[-1].local, level + i)
        return loops

    def _weight(self) -> int:
        """How many expressions each vector computes for itself; the others it shares with the vectors beside it."""
        varying: set[Expr] = set()
        for e in scalar.postorder(self.kernel.roots):
            is_result = e.word == "var" and e.value[1] is None
            if self.lane in (None, e) or is_result or not varying.isdisjoint(e.args):
                varying.add(e)
        return len(varying)

    def _folds_along_others(self) -> bool:
        """Whether there is a long fold for each lane, so that the next turn's elements are in other cache lines."""
        if self.lane is None or self.lane_is_inner or guess(self.kernel.grid[-1]) < 4 * LINES[-1]:
            return False
        turns = math.prod(guess(d) for d in self.kernel.inner)
        folds = [s.value for s in self.kernel.stages if isinstance(s, Reduce)]
        return bool(folds) and (turns >= MIN_LONG_FOLD_TURNS or self._loads_bytes(folds))

    def _loads_bytes(self, values: Sequence[Expr]) -> bool:
        """Whether four vectors are read by one load."""
        loads = [e for e in scalar.postorder(values) if e.word == "load" and self.lane in scalar.postorder([e])]
        return any(self.kernel.ports[e.value].dtype in SIGN_OF_BYTES for e in loads)

    def _counts(self) -> tuple[int, ...]:
        """How many vectors a turn of the vectorised loop takes, the longest first; single ones follow in any case."""
        if self.lane is None or self.other is not None:
            return (1,)
        extent = (self.kernel.inner if self.lane_is_inner else self.kernel.grid)[-1]
        counts = LINES if self.by_lines else (self.unroll,)
        if not isinstance(extent, int):
            return counts
        return tuple(count for count in counts if 4 * count <= extent) or (max(1, extent // 4),)

    def _loop_beside(self) -> Expr | None:
        """Another loop whose turns share what a fold reads, such as the weights of a row's pixels, if the lanes are one vector. So
        the turns' sums do not wait for each other either."""
        lanes = self.kernel.grid[-1] if self.kernel.grid else 0
        short = self.lane is not None and not self.lane_is_inner and isinstance(lanes, int) and lanes < 8
        plain = not any(self.ranges.values()) and not any(isinstance(s, Scan) for s in self.kernel.stages)
        if not short or not plain or self.other is not None or self.unroll == 1:
            return None
        inner = set(self.kernel.inner_vars)
        folds = [s.value for s in self.kernel.stages if isinstance(s, Reduce)]
        loads = [e for e in scalar.postorder(folds) if e.word == "load" and not inner.isdisjoint(scalar.postorder([e]))]
        for variable, extent in zip(self.kernel.grid_vars[:-1], self.kernel.grid[:-1], strict=True):
            shared = sum(variable not in scalar.postorder([e]) for e in loads)
            if variable.word == "var" and 0 < shared < len(loads) and divides(extent, BESIDE):
                return variable
        return None

    def write(self) -> None:
        wide = self.lane is not None and not self.lane_is_inner
        outer = self.grid[:-1] if wide else self.grid
        self._share(outer, wide)
        versions = self._versions(self.grid[-1]) if wide else [(((),), 0)]
        roots = [
            r
            for shifts, vectors in versions
            for stage in self.kernel.stages
            for r in self._roots(stage, shifts, vectors)
        ]
        self.w.hoist(roots, 0)
        with (
            first_alone(self.w, self.low, self.shared is None),
            self._nested(outer, roots, innermost=not wide and not self.kernel.inner, ranges={}),
        ):
            if wide:
                self._run(self.grid[-1], self._point)
            else:
                self._point(((),), 0)

    def _share(self, outer: Sequence[_KernelLoop], wide: bool) -> None:
        """Divide one grid loop among the parts; a vectorised loop is cut at whole turns of its longest strip, or at vectors
        where such strips are few."""
        if wide:
            self.cut = max(s.step for s in self._strips(self.grid[-1]))
            if self.by_lines and guess(self.grid[-1].extent) < TURNS_THAT_DIVIDE_WELL * self.cut:
                self.cut = 4
        turns = [ceildiv(loop.extent, loop.step) for loop in outer]
        chosen = choose_loop([*turns, ceildiv(self.grid[-1].extent, self.cut)] if wide else turns)
        if chosen is not None:
            self.shared = self.grid[chosen]
            step = self.cut if wide and chosen == len(outer) else self.shared.step
            self.range = divide(self.w, self.low, self.low.size(self.shared.extent), step)

    @contextmanager
    def _nested(
        self, loops: Sequence[_KernelLoop], roots: Sequence[Tree], innermost: bool, ranges: Ranges
    ) -> Iterator[None]:
        with ExitStack() as stack:
            for loop in loops:
                needed = () if innermost and loop is loops[-1] else roots
                first, limit = self.range if loop is self.shared else (0, self.low.size(loop.extent))
                if loop.variable in ranges:
                    found = ranges[loop.variable]
                    first, limit = self._int(found.start), self._int(found.stop)
                stack.enter_context(self.w.loop(loop.local, limit, loop.step, first, hoist=needed, level=loop.level))
            yield

    def _int(self, e: Expr) -> Int:
        return e.value if e.word == "const" else self.w.value(self.low.scalar(e))

    def _strips(self, loop: _KernelLoop) -> list[_Strip]:
        """The strips of the vectorised loop that can occur."""
        assert self.lane is not None
        extent = loop.extent
        shared = loop is self.shared
        within = shared and self.cut < 4 * self.counts[0]  # a part may end within a turn of the longest strip
        strips: list[_Strip] = []
        done = 0
        for count in dict.fromkeys((*self.counts, 1, 0)):
            step = 4 * count or 1
            shifts = _shifts(self.lane, 4, count) if self.along is None else _shifts(self.along, 1, self.block)
            if isinstance(extent, int) and not (within and count):
                end = extent - extent % step
                if end > done:
                    limit = minimum(self.range[1], end) if shared else end
                    strips.append(_Strip(shifts, count, step, limit, not shared))
                done = end
            else:
                limit = self.range[1] if shared else self.low.size(extent)
                if count:
                    limit = loop.local + ((limit - loop.local) & -step) if within else limit & -step
                done = extent - extent % 4 if isinstance(extent, int) else 0
                strips.append(_Strip(shifts, count, step, limit, False))
        return strips

    def _run(self, loop: _KernelLoop, turn: Callable[[Sequence[Shift], int], None]) -> None:
        """The vectorised loop around `turn`."""
        self.w.set(loop.local, self.range[0] if loop is self.shared else 0)
        for s in self._strips(loop):
            with self.w.loop(loop.local, s.limit, s.step, sure=s.sure):
                turn(s.shifts, s.vectors)

    def _versions(self, loop: _KernelLoop) -> Iterator[tuple[Sequence[Shift], int]]:
        """The strips of the vectorised loop, one after the other, as trees are asked for."""
        for s in self._strips(loop):
            yield s.shifts, s.vectors

    # --- one point of the grid

    def _point(self, shifts: Sequence[Shift], vectors: int) -> None:
        scans = [s for s in self.kernel.stages if isinstance(s, Scan)]
        stores = [s for s in self.kernel.stages if isinstance(s, Store)]
        if scans:
            self._scan(scans, stores, shifts, vectors)
            return
        if len(stores) == len(self.kernel.stages):
            self._stores(stores, shifts, vectors)
            return
        for stage in self.kernel.stages:
            assert not isinstance(stage, Scan)
            roots = self._roots(stage, shifts, vectors)
            if isinstance(stage, Reduce):
                (self._fold_lanes if self.lane_is_inner else self._fold)(stage, shifts, vectors)
            elif not stage.inner:
                for root in roots:
                    self.w.push(root)
            else:
                self.w.hoist(roots, self.folded)
                self._inner(roots, partial(self._store, stage), shifts, vectors, {})

    def _scan(self, scans: Sequence[Scan], stores: Sequence[Store], shifts: Sequence[Shift], vectors: int) -> None:
        """One walk over the inner loop, in its order."""
        stages: list[Stage] = [*scans, *stores]
        roots = [root for stage in stages for root in self._roots(stage, shifts, vectors)]
        for stage in scans:
            for shift in shifts:
                self._start(stage, self._accumulator(stage, shift, vectors), vectors)
        self.w.hoist(roots, self.folded)

        def turn(shifts: Sequence[Shift], vectors: int) -> None:
            for stage in scans:
                for shift in shifts:
                    self._combine(stage, self._accumulator(stage, shift, vectors), shift, vectors)
            for stage in stores:
                self._store(stage, shifts, vectors)

        self._inner(roots, turn, shifts, vectors, {})

    def _stores(self, stages: Sequence[Store], shifts: Sequence[Shift], vectors: int) -> None:
        """All stores of a point. An element that one store overwrites and another one reads is loaded before."""
        written = {s.port for s in stages[:-1]}
        loads = [e for e in scalar.postorder([s.value for s in stages[1:]]) if e.word == "load" and e.value in written]
        self.w.hoist([self.low.tree(e, shift, vectors) for shift in shifts for e in loads], EFFECT - 1)
        # Store by store: the calls of one that are independent of each other overlap.
        for stage in stages:
            self._store(stage, shifts, vectors)

    def _store(self, stage: Store, shifts: Sequence[Shift], vectors: int) -> None:
        for shift in shifts:
            self.w.push(self.low.store(stage.port, stage.index, stage.value, shift, vectors))

    def _inner(
        self,
        roots: Sequence[Tree],
        turn: Callable[[Sequence[Shift], int], None],
        shifts: Sequence[Shift],
        vectors: int,
        ranges: Ranges,
        unrolled: bool = False,
    ) -> None:
        """The inner loops around `turn`; the last one is in strips if it is vectorised, and no loop if unrolled."""
        loops = self.inner[:-1] if self.lane_is_inner or unrolled else self.inner
        with self._nested(loops, roots, not self.lane_is_inner and not unrolled, ranges):
            if self.lane_is_inner:
                self._run(self.inner[-1], turn)
            elif unrolled:
                self.w.set(self.inner[-1].local, 0)
                with self.w.scope():
                    turn(shifts, vectors)
            else:
                turn(shifts, vectors)

    def _roots(self, stage: Stage, shifts: Sequence[Shift], vectors: int) -> list[Tree]:
        """The trees of a stage, for hoisting."""
        if isinstance(stage, Store):
            versions = self._lane_versions() if self.lane_is_inner and stage.inner else [(s, vectors) for s in shifts]
            return [self.low.store(stage.port, stage.index, stage.value, s, v) for s, v in versions]
        # The result of a Scan changes within the inner loop, so values that depend on it must not be hoisted out.
        level = self.folded + 1 if isinstance(stage, Scan) else self.folded
        for shift in shifts:
            self.low.accumulator(stage.accumulator, self._accumulator(stage, shift, vectors), level, shift)
        versions = self._lane_versions() if self.lane_is_inner else [(s, vectors) for s in shifts]
        taps = self._taps(stage) if isinstance(stage, Reduce) else ((),)
        parts = [part for tap in taps for s, v in versions for part in self._parts(stage, (*s, *tap), v)]
        for part, count in Counter(parts).items():
            part.uses = max(part.uses, count)  # what several vectors are multiplied by is loaded once
        ranges = self.ranges[stage.name].values() if isinstance(stage, Reduce) else ()
        return [*parts, *(self.low.scalar(e) for found in ranges for e in (found.start, found.stop))]

    def _lane_versions(self) -> Iterator[tuple[Shift, int]]:
        return ((shift, vectors) for shifts, vectors in self._versions(self.inner[-1]) for shift in shifts)

    def _accumulator(self, stage: Reduce | Scan, shift: Shift, vectors: int) -> Value:
        key = (stage.name, shift, vectors > 0)
        if key not in self.accumulators:
            self.accumulators[key] = self.w.declare("v128" if vectors else simd.VALUE[stage.value.dtype])
        return self.accumulators[key]

    # --- reductions

    def _parts(self, stage: Reduce | Scan, shift: Shift, vectors: int) -> tuple[Tree, ...]:
        """The operands if the stage is a multiply-add, otherwise the value."""
        parts = stage.value.args if _multiplies(stage) else (stage.value,)
        return tuple(self.low.tree(e, shift, vectors) for e in parts)

    def _taps(self, stage: Reduce) -> Sequence[Shift]:
        """The turns of the last inner loop, if their code is written one after the other: where they are few and light."""
        if self.lane_is_inner or not self.inner or self.unroll == 1:
            return ((),)
        loop, extent = self.inner[-1], self.inner[-1].extent
        short = (
            isinstance(extent, int) and extent <= MAX_UNROLLED_TURNS and loop.variable not in self.ranges[stage.name]
        )
        if not short or any(v.value[1] is None for v in self.low.leaves(stage.value)):  # it uses another fold's result
            return ((),)
        return [((loop.variable, k),) for k in range(extent)]

    def _combine(self, stage: Reduce | Scan, into: Value, shift: Shift, vectors: int) -> None:
        parts = self._parts(stage, shift, vectors)
        w, code = self.w, (simd.VECTOR if vectors else simd.SCALAR)[stage.word][stage.value.dtype]
        if len(parts) == 2:
            w.multiply_add(into, *map(w.value, parts))
        elif into in self.nans:
            # The instruction may lose a NaN. Collecting the lanes that see one separately is cheaper than keeping it.
            with w.scope():
                value = w.f32x4()
                w.set(value, w.value(parts[0]))
                w.fold(into, value, simd.AGAINST_NUMBER[stage.word])
                w.set(self.nans[into], self.nans[into] | value.differs(value))
        else:
            w.fold(into, w.value(parts[0]), code)

    def _start(self, stage: Reduce | Scan, into: Value, vectors: int) -> None:
        start = identity(stage.word, stage.value.dtype)
        self.w.set(into, self.w.value(self.low.tree(start, (), vectors)))
        if vectors and isinstance(stage, Reduce) and stage.word in simd.AGAINST_NUMBER and stage.value.dtype is float32:
            self.nans[into] = self.w.i32x4(0)

    def _end(self, into: Value) -> None:
        """Make the accumulator NaN in lanes that saw one, by setting all bits."""
        seen = self.nans.pop(into, None)
        if seen is not None:
            self.w.set(into, seen | V128(number=into.number))

    def _fold(self, stage: Reduce, shifts: Sequence[Shift], vectors: int) -> None:
        roots = self._roots(stage, shifts, vectors)
        for shift in shifts:
            self._start(stage, self._accumulator(stage, shift, vectors), vectors)
        self.w.hoist(roots, self.folded)
        taps = self._taps(stage)

        def turn(shifts: Sequence[Shift], vectors: int) -> None:
            for tap in taps:
                for shift in shifts:
                    self._combine(stage, self._accumulator(stage, shift, vectors), (*shift, *tap), vectors)

        self._inner(roots, turn, shifts, vectors, self.ranges[stage.name], len(taps) > 1)
        for shift in shifts:
            self._end(self._accumulator(stage, shift, vectors))

    def _fold_lanes(self, stage: Reduce, shifts: Sequence[Shift], vectors: int) -> None:
        """Vectors along the last inner loop, folded across lanes into the scalar accumulator at the end."""
        roots = self._roots(stage, shifts, vectors)
        total = self._accumulator(stage, (), 0)
        totals = [self.w.declare("v128") for _ in range(self.unroll)]
        self._start(stage, total, 0)
        for v in totals:
            self._start(stage, v, 1)
        self.w.hoist(roots, self.folded)

        def turn(shifts: Sequence[Shift], vectors: int) -> None:
            for number, shift in enumerate(shifts):
                self._combine(stage, totals[number] if vectors else total, shift, vectors)

        self._inner(roots, turn, shifts, vectors, self.ranges[stage.name])
        for v in totals:
            self._end(v)
        dtype = stage.value.dtype
        for other in totals[1:]:
            self.w.fold(totals[0], other, simd.VECTOR[stage.word][dtype])
        for number in range(4):
            lane = V128(totals[0].push, simd.extract(dtype, number))
            self.w.fold(total, lane, simd.SCALAR[stage.word][dtype])


def _shifts(variable: Expr, step: int, count: int) -> tuple[Shift, ...]:
    """The present turn of a loop, and those after it."""
    return ((), *(((variable, step * number),) for number in range(1, count)))


def _multiplies(stage: Reduce | Scan) -> bool:
    return stage.word == "add" and stage.value.dtype is float32 and stage.value.word == "mul"


# --- the exponential -------------------------------------------------------------------------------------------------


def _written_out(s: Stage) -> Stage:
    """A stage of a fold with its exponential as an expression: in a loop that costs less than calls, since constants stay in locals and
    vectors are computed side by side. It is that of code/elementary.py, within a unit in the last place."""
    if isinstance(s, Reduce) or (isinstance(s, Store) and s.inner):
        return replace(s, value=_with_exp_written_out(s.value))
    return s


def _with_exp_written_out(value: Expr) -> Expr:
    """With its exponential written out, if it has one: the code of several would be long."""
    found = [e for e in scalar.postorder([value]) if e.word == "exp" and e.dtype is float32]
    return scalar.substitute(value, {found[0]: _exp(found[0].args[0])}) if len(found) == 1 else value


def _exp(x: Expr) -> Expr:
    x = scalar.clip(x, -104.0, 89.0)
    rounded = x * LOG2E + WHOLE
    n, k = rounded - WHOLE, scalar.bits(rounded) - WHOLE_BITS
    x = x - n * LN2_HIGH - n * LN2_LOW
    power = scalar.const(EXP_POLYNOMIAL[0], float32)
    for c in EXP_POLYNOMIAL[1:]:
        power = power * x + c
    half = scalar.shr(k, scalar.const(1, int32))
    return (power * (x * x) + x + 1.0) * _power_of_two(half) * _power_of_two(k - half)


def _power_of_two(exponent: Expr) -> Expr:
    return scalar.of_bits(scalar.shl(exponent + 127, scalar.const(23, int32)))
