"""Convolution to very few channels: four neighbouring outputs of a line to a vector.

The input's lines are rewritten plane by plane, [channel][phase][position], where a phase has every stride-th element, so
every tap of four neighbouring outputs is four neighbouring elements; padding is written as zeros. Scratch holds a ring of
as many lines as the window spans, and each line is rewritten once for all outputs that use it. Sums are in the order of
k: window, then channel. Lengths and padding may be open; they are then computed at run time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Dim, Routine, Store, affine, ceildiv, float32, int32, scalar

from ...code.encode import Function
from ...code.values import I32, F32x4, maximum, minimum
from .. import memory as elements
from ..lanes import lane_cost
from ..lower import Lowering, Shift, SizeParameters
from ..thread_shares import MAX_SCRATCH_BYTES, begin, choose_loop, divide, first_alone, guess, loop
from .product import ACCUMULATOR

VECTORS: Final = {1: 10, 2: 5, 3: 3, 4: 2}
"""Channels of the output → the most vectors of each that a block sums at once: see product.REGISTERS."""
_NEVER: Final = -1 << 31
Totals = Sequence[Sequence[F32x4]]
"""Accumulators: [output][vector]."""


@dataclass(frozen=True)
class PlanarSchedule:
    """A convolution over lines. window: its extents across lines and along a line; with one axis, a single line."""

    routine: Routine
    facts: Any

    @property
    def channels(self) -> int:
        return self.facts["x_shape"][-1]

    @property
    def outputs(self) -> int:
        return self.facts["w_shape"][-1]

    @property
    def flat(self) -> bool:
        """Whether there is only one axis."""
        return len(self.facts["w_shape"]) == 3

    def axis(self, fact: str, which: int) -> Any:
        """A fact for the axis across lines (0) or along a line (1)."""
        values = self.facts[fact]
        return values[which - self.flat] if which or not self.flat else {"pads": 0}.get(fact, 1)

    @property
    def window(self) -> tuple[int, int]:
        *lines, along = self.facts["w_shape"][:-2]
        return (lines[0] if lines else 1), along

    @property
    def width(self) -> Dim:
        """Positions of a line of the output."""
        return self.routine.kernel.grid[-2]

    @property
    def span(self) -> int:
        """The lines that a window spans, including those between its taps."""
        return (self.window[0] - 1) * self.axis("dilations", 0) + 1

    @property
    def extra(self) -> int:
        """The distance from the last output's position to its last tap, in elements of a plane."""
        return (self.window[1] - 1) * self.axis("dilations", 1) // self.axis("strides", 1)

    @property
    def plane(self) -> Dim:
        """Elements of a plane: as many as whole vectors of outputs read."""
        return (ceildiv(self.width, 4) + ceildiv(self.extra, 4)) * 4

    @property
    def line(self) -> Dim:
        """Bytes of a rewritten line."""
        return self.plane * (4 * self.channels * self.axis("strides", 1))

    @property
    def scratch(self) -> Dim:
        return self.line * self.span

    @property
    def vectors(self) -> int:
        """Vectors of outputs in a block: the number that wastes the fewest lanes, from half of the most on."""
        most = VECTORS[self.outputs]
        if not isinstance(self.width, int):
            return most
        all_ = -(-self.width // 4)
        return max(range(-(-most // 2), most + 1), key=lambda v: (all_ / (-(-all_ // v) * v), v))


def schedule(routine: Routine) -> PlanarSchedule | None:
    """How the template computes this convolution; None if it cannot."""
    facts = routine.facts
    grid, store = routine.kernel.grid, routine.epilogue
    lengths = (facts["x_shape"][-2], grid[-2])
    fixed = (facts["x_shape"][-1], *facts["w_shape"], grid[-1], *(d for d in lengths if isinstance(d, int)))
    if (
        len(facts["w_shape"]) not in (3, 4)
        or not all(isinstance(d, int) and d > 0 for d in fixed)
        or not all(affine.at_least(p, 0) for p in facts["pads"])
        or facts["group"] != 1
        or grid[-1] not in VECTORS
        or (isinstance(grid[-2], int) and grid[-2] < 4)
        or math.prod(facts["w_shape"][:-2]) == 1
        or any(routine.ports[facts[p]].dtype is not float32 for p in "xw")
        or store.inner
        or lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-2]) is None
    ):
        return None
    made = PlanarSchedule(routine, facts)
    return made if guess(made.scratch) <= MAX_SCRATCH_BYTES else None


def print_planar(s: PlanarSchedule, sizes: SizeParameters) -> Function:
    """The function of a scheduled convolution."""
    return _Planar(s, sizes).function()


class _Planar:
    def __init__(self, s: PlanarSchedule, sizes: SizeParameters) -> None:
        kernel = s.routine.kernel
        self.s: Final = s
        self.store: Final[Store] = s.routine.epilogue
        self.grid: Final = kernel.grid
        self.variables: Final = kernel.grid_vars
        self.column, self.output = self.variables[-2:]
        self.w: Final = begin(kernel, True, sizes)
        self.low: Final = Lowering(kernel.ports, sizes, True, self.column)
        self.edge: Final = Lowering(kernel.ports, sizes, True)
        self.locals: Final = [self.w.i32() for _ in self.grid]
        self.edge_column, self.edge_value = self.w.i32(), self.w.f32()
        for level, (v, local) in enumerate(zip(self.variables, self.locals, strict=True), 1):
            self.low.variable(v, local, level)
            self.edge.variable(v, self.edge_column if v is self.column else local, level)
        self.next_line: Final = self.w.i32()  # of the input, to be rewritten
        self.line: Final = scalar.var("line", int32, s.facts["x_shape"][1])
        self.low.variable(self.line, self.next_line, len(self.grid))
        self.level: Final = len(self.grid)
        self.pads: Final = [self.low.size(s.axis("pads", which)) for which in range(2)]
        self.width, self.plane = self.w.simple(self.low.size(s.width)), self.w.simple(self.low.size(s.plane))
        self.line_bytes: Final = self.w.simple(self.plane * (4 * s.channels * s.axis("strides", 1)))
        self.part: tuple[I32, I32] | None = None  # the part's range of positions, if these are shared

    def function(self) -> Function:
        w, s = self.w, self.s
        outer = len(self.grid) - 2
        block = 4 * s.vectors
        shared = choose_loop([*self.grid[:outer], ceildiv(s.width, block)])
        if shared == outer:
            self.part = divide(w, self.low, self.width, block)
        w.set(self.locals[-1], 0)
        with ExitStack() as stack:
            stack.enter_context(first_alone(w, self.low, shared is None))
            for number in range(outer):
                stack.enter_context(loop(w, self.low, self.locals[number], self.grid[number], shared == number))
                if number == 0:
                    w.set(self.next_line, _NEVER)  # lines of another image cannot be reused
            self._fill_ring()
            self._positions(block)
        return w.finish()

    # --- the ring of lines

    def _top(self) -> I32:
        """The first line of the present window."""
        s = self.s
        return I32.of(0) if s.flat else self.locals[-3] * s.axis("strides", 0) - self.pads[0]

    def _slot(self, line: I32) -> I32:
        """The address of a line's place in the ring."""
        s, scratch = self.s, self.w.value(self.low.scratch(0))
        return scratch if s.span == 1 else scratch + (line + self.pads[0]) % s.span * self.line_bytes

    def _fill_ring(self) -> None:
        """Rewrite the lines of the present window that are not there yet."""
        w, s = self.w, self.s
        with w.scope():
            top = w.i32(self._top())
            w.set(self.next_line, maximum(top, self.next_line))
            with w.loop(self.next_line, top + s.span):
                to = w.i32(self._slot(self.next_line))
                with w.when(self.next_line.below(1 if s.flat else self.low.size(s.facts["x_shape"][1]))):
                    self._rewrite(to)
                    w.otherwise()
                    w.call("fill_zero", to, self.line_bytes)

    def _rewrite(self, to: I32) -> None:
        """One line into its planes."""
        w, s = self.w, self.s
        zero = scalar.const(0, int32)
        lines = () if s.flat else (self.line,)
        index = affine.flatten((self.variables[0], *lines, zero, zero), s.facts["x_shape"])
        first, offset = self.low.address(s.facts["x"], index)
        source, channel = w.i32(w.value(first) + offset), w.i32()
        with w.loop(channel, s.channels, start=0):
            for phase in range(s.axis("strides", 1)):
                self._plane(to, source, phase)
                w.add(to, self.plane * 4)
            w.add(source, 4)

    def _plane(self, to: I32, source: I32, phase: int) -> None:
        """The elements phase, phase + stride, … of a channel, counted from the first one of the padding."""
        w, s = self.w, self.s
        stride = s.axis("strides", 1)
        with w.scope():
            padding = w.simple(self.pads[1] + (stride - 1 - phase))
            first = w.simple(minimum(w.simple(padding // stride), self.plane))
            inside = w.simple((self.low.size(s.facts["x_shape"][-2]) + padding) // stride)
            stop = w.simple(maximum(w.simple(minimum(inside, self.plane)), first))
            for start, end in ((I32.of(0), first), (stop, self.plane)):
                if start.known is None or end.known is None or start.known < end.known:
                    w.call("fill_zero", to + start * 4, (end - start) * 4)
            # The address of element 0 of the plane, which may be outside the input.
            origin = w.i32(source + (phase - self.pads[1]) * (4 * s.channels))
            if self.part is not None:
                low, high = self.part
                first = w.i32(maximum(low, first))
                reach = w.i32(high + (s.extra + 4))
                stop = w.i32(minimum(reach, stop))
            apart = stride * s.channels
            step = 4 * apart
            at = w.i32(first)
            lanes = elements.load_lanes(float32, 0) if apart == 1 else elements.gather(float32, 0, apart)
            with w.loop(at, stop - 3, 4):
                w.store(to + (at << 2), F32x4((origin + at * step).push, lanes))
            with w.loop(at, stop):
                w.store(to + (at << 2), (origin + at * step).f32())

    # --- the sums

    def _positions(self, block: int) -> None:
        """The outputs of a line: whole blocks, then the tail."""
        w, s, column = self.w, self.s, self.locals[-2]
        w.set(column, self.part[0] if self.part else 0)
        end = self.part[1] if self.part else self.width
        width = self.width.known
        if width is None:
            with w.loop(column, end - (block - 1), block):
                self._block(s.vectors)
            with w.loop(column, end - 3, 4):
                self._block(1)
            with w.when(column < end):
                self._block(1, 4, end)
            return
        whole = width // block * block
        if whole:
            limit = minimum(end, whole)
            with w.loop(column, limit, block, sure=self.part is None):
                self._block(s.vectors)
        if width != whole:
            rest = width - whole
            with w.when(column.equals(whole) & end.equals(width)) if self.part else nullcontext():
                self._block(-(-rest // 4), rest % 4)

    def _block(self, vectors: int, rest: int = 0, end: I32 | None = None) -> None:
        """Vectors of neighbouring outputs. If `rest` is not 0, the last vector stores only `rest` of them, or those before
        `end`."""
        w, s = self.w, self.s
        with w.scope():
            totals = [[w.f32x4(0.0) for _ in range(vectors)] for _ in range(s.outputs)]
            with w.scope():
                weights, offset = self.low.address(s.facts["w"], scalar.const(0, int32))
                weight, tap = w.i32(w.value(weights) + offset), w.i32(0)
                with w.loop(tap, s.window[0], start=0) if s.window[0] > 1 else nullcontext():
                    line = self._top() + tap * s.axis("dilations", 0)
                    at = w.i32(self._slot(line) + (self.locals[-2] << 2))
                    self._taps(totals, weight, at)
            self._store(totals, vectors, rest, end)

    def _taps(self, totals: Totals, weights: I32, at: I32) -> None:
        """The taps along a line. Taps `period` apart have the same phase, so a loop repeats them some elements further."""
        s, w = self.s, self.w
        stride, dilation = s.axis("strides", 1), s.axis("dilations", 1)
        period = stride // math.gcd(stride, dilation)
        turns, rest = divmod(s.window[1], period)
        if turns > 1:
            with w.loop(w.i32(), turns, start=0):
                self._group(totals, weights, at, period)
                w.add(at, 4 * (period * dilation // stride))
        else:
            rest = s.window[1]
        self._group(totals, weights, at, rest)

    def _group(self, totals: Totals, weights: I32, at: I32, taps: int) -> None:
        for number in range(taps):
            with self.w.scope():
                self._channels(totals, weights, at, number * self.s.axis("dilations", 1))

    def _channels(self, totals: Totals, weights: I32, at: I32, place: int) -> None:
        """The products of the tap at a place."""
        w, s = self.w, self.s
        stride = s.axis("strides", 1)
        step, offset = self.plane * (4 * stride), 4 * (place // stride)
        if step.known is None:
            step, at = w.simple(step), w.i32(at + self.plane * (4 * (place % stride)))
        else:
            offset += 4 * (place % stride) * self.plane.known  # pyright: ignore[reportOperatorIssue]

        def several(plane: I32, count: int) -> None:
            for number in range(count):
                self._multiply(totals, weights, 4 * s.outputs * number, plane, offset + (step.known or 0) * number)
                if step.known is None:
                    w.add(plane, step)
            w.add(weights, 4 * s.outputs * count)

        unroll = min(4, s.channels)
        if s.channels <= unroll:
            several(at, s.channels)
            return
        plane, whole = w.i32(at), s.channels // unroll * unroll
        with w.loop(w.i32(), whole, unroll, start=0):
            several(plane, unroll)
            w.add(plane, (step.known or 0) * unroll)
        several(plane, s.channels - whole)

    def _multiply(self, totals: Totals, weights: I32, weight: int, at: I32, offset: int) -> None:
        """One element of k."""
        w = self.w
        with w.scope():
            factors = [w.f32x4(weights.f32x4(weight + 4 * j, "v128.load32_splat")) for j in range(len(totals))]
            values = w.f32x4()
            for v in range(len(totals[0])):
                w.set(values, at.f32x4(offset + 16 * v))
                for factor, line in zip(factors, totals, strict=True):
                    w.multiply_add(line[v], values, factor)

    # --- the epilogue

    def _store(self, totals: Totals, vectors: int, rest: int, end: I32 | None) -> None:
        w, s = self.w, self.store
        shifts: dict[tuple[int, int], Shift] = {
            (j, v): tuple((var, by) for var, by in ((self.column, 4 * v), (self.output, j)) if by)
            for v in range(vectors)
            for j in range(len(totals))
        }
        for (j, v), shift in shifts.items():
            self.low.accumulator(ACCUMULATOR, totals[j][v], self.level + 1, shift)
        self.low.forget()
        whole = vectors - (rest > 0)
        with w.scope():
            for (_, v), shift in shifts.items():
                if v < whole:
                    w.push(self.low.store(s.port, s.index, s.value, shift, 1))
        for number in range(rest):
            w.set(self.edge_column, self.locals[-2] + (4 * whole + number))
            with w.when(self.edge_column < end) if end is not None else nullcontext():
                for j, line in enumerate(totals):
                    shift: Shift = ((self.output, j),) if j else ()
                    w.set(self.edge_value, line[-1].lane(number))
                    self.edge.accumulator(ACCUMULATOR, self.edge_value, self.level + 1, shift)
                    self.edge.forget()
                    with w.scope():
                        w.push(self.edge.store(s.port, s.index, s.value, shift))
