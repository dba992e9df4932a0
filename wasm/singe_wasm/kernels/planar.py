"""Convolution to very few channels: four neighbouring outputs of a line to a vector.

The input's lines are rewritten plane by plane, [channel][phase][position], where a phase has every stride-th element, so
that every tap of four neighbouring outputs is four neighbouring elements; padding is zeros that are written. A ring of
as many lines as the window spans lies in scratch, and each line is rewritten once for all the outputs that it has a
part in. A sum goes in the order of k: window, then channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Dim, Routine, Store, affine, float32, int32, scalar

from ..encode import OPS, Function, f32x4, get_local, i32, lane, memory, ops
from . import memory as elements
from .gemm import ACCUMULATOR
from .lower import Lowering, Shift
from .nest import lane_cost
from .share import LARGEST, begin, choose, divide, first_alone, least, loop
from .writer import Writer

VECTORS: Final = {1: 10, 2: 5, 3: 3, 4: 2}
"""Channels of the output → the most vectors of each that a block sums at once: see gemm.REGISTERS."""
_NEVER: Final = -1 << 31


@dataclass(frozen=True)
class Plan:
    """A convolution over lines: `space` and `window` are of (lines, line), one line where there is one axis."""

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
        """Whether there is one axis only."""
        return len(self.facts["w_shape"]) == 3

    def axis(self, fact: str, which: int) -> Any:
        """Of the axis of lines (0) or along a line (1)."""
        values = self.facts[fact]
        return values[which - self.flat] if which or not self.flat else {"pads": 0}.get(fact, 1)

    @property
    def window(self) -> tuple[int, int]:
        *lines, along = self.facts["w_shape"][:-2]
        return (lines[0] if lines else 1), along

    @property
    def width(self) -> int:
        """Positions of a line of the output."""
        width = self.routine.kernel.grid[-2]
        assert isinstance(width, int)
        return width

    @property
    def length(self) -> int:
        """Elements of a line of the input."""
        return self.facts["x_shape"][-2]

    @property
    def span(self) -> int:
        """Lines that a window reaches over, those between its taps included."""
        return (self.window[0] - 1) * self.axis("dilations", 0) + 1

    @property
    def extra(self) -> int:
        """How many elements of a plane beyond the last output's place its last tap is."""
        return (self.window[1] - 1) * self.axis("dilations", 1) // self.axis("strides", 1)

    @property
    def plane(self) -> int:
        """Elements of a plane: what whole vectors of outputs read."""
        return -(-(-(-self.width // 4) * 4 + self.extra) // 4) * 4

    @property
    def line(self) -> int:
        """Bytes of a rewritten line."""
        return 4 * self.channels * self.axis("strides", 1) * self.plane

    @property
    def scratch(self) -> int:
        return self.span * self.line

    @property
    def vectors(self) -> int:
        """Vectors of outputs in a block: of the many, those that leave the fewest over."""
        most = VECTORS[self.outputs]
        all_ = -(-self.width // 4)
        return max(range(-(-most // 2), most + 1), key=lambda v: (all_ / (-(-all_ // v) * v), v))


def plan(routine: Routine) -> Plan | None:
    """How the template does this convolution; None where it does not."""
    facts = routine.facts
    grid, store = routine.kernel.grid, routine.epilogue
    fixed = (*facts["x_shape"][-2:], *facts["w_shape"], *grid[-2:])
    if (
        len(facts["w_shape"]) not in (3, 4)
        or not all(isinstance(d, int) and d > 0 for d in fixed)
        or facts["group"] != 1
        or grid[-1] not in VECTORS
        or grid[-2] < 4  # pyright: ignore[reportOperatorIssue]
        or math.prod(facts["w_shape"][:-2]) == 1
        or any(routine.ports[facts[p]].dtype is not float32 for p in "xw")
        or store.inner
        or lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-2]) is None
    ):
        return None
    made = Plan(routine, facts)
    return made if made.scratch <= LARGEST else None


def print_planar(p: Plan, sizes: Sequence[Dim]) -> Function:
    """The function of a planned convolution."""
    return _Planar(p, sizes).function()


class _Planar:
    def __init__(self, p: Plan, sizes: Sequence[Dim]) -> None:
        kernel = p.routine.kernel
        self.plan: Final = p
        self.store: Final[Store] = p.routine.epilogue
        self.grid: Final = kernel.grid
        self.variables: Final = kernel.grid_vars
        self.column, self.output = self.variables[-2:]
        self.body: Final = begin(kernel, True, sizes)
        self.writer: Final = Writer(self.body)
        self.low: Final = Lowering(kernel.ports, sizes, True, self.column)
        self.edge: Final = Lowering(kernel.ports, sizes, True)
        self.locals: Final = [self.body.local("i32") for _ in self.grid]
        self.edge_column, self.edge_value = self.body.local("i32"), self.body.local("f32")
        for level, (v, local) in enumerate(zip(self.variables, self.locals, strict=True), 1):
            self.low.variable(v, local, level)
            self.edge.variable(v, self.edge_column if v is self.column else local, level)
        self.line_local: Final = self.body.local("i32")
        self.line: Final = scalar.var("line", int32, p.facts["x_shape"][1])  # of the input
        self.low.variable(self.line, self.line_local, len(self.grid))
        self.level: Final = len(self.grid)
        self.part: tuple[int, int] | None = None  # locals: the part's range of positions, if these are shared

    def function(self) -> Function:
        body, p = self.body, self.plan
        outer = len(self.grid) - 2
        block = 4 * p.vectors
        shared = choose([*self.grid[:outer], -(-p.width // block)])
        if shared == outer:
            self.part = divide(body, self.low, i32(p.width), block)
        body.add(i32(0))
        body.set(self.locals[-1])
        with ExitStack() as stack:
            stack.enter_context(first_alone(body, self.low, shared is None))
            for number in range(outer):
                stack.enter_context(
                    loop(self.writer, self.low, self.locals[number], self.grid[number], shared == number)
                )
                if number == 0:
                    # Another image's lines.
                    body.add(i32(_NEVER))
                    body.set(self.line_local)
            self._fill_ring()
            self._positions(block)
        return body.finish()

    # --- the ring of lines

    def _top(self) -> bytes:
        """Code that pushes the first line of the present window."""
        p = self.plan
        if p.flat:
            return i32(0)
        return (
            get_local(self.locals[-3])
            + i32(p.axis("strides", 0))
            + ops("i32.mul")
            + i32(p.axis("pads", 0))
            + ops("i32.sub")
        )

    def _slot(self, line: bytes) -> bytes:
        """Code that pushes the address of a line's place in the ring."""
        p = self.plan
        scratch = get_local(len(self.low.ports))
        if p.span == 1:
            return scratch
        number = line + i32(p.axis("pads", 0)) + ops("i32.add") + i32(p.span) + ops("i32.rem_u")
        return scratch + number + i32(p.line) + ops("i32.mul i32.add")

    def _fill_ring(self) -> None:
        """Rewrite the lines of the present window that are not there yet; `line_local` is the next one."""
        body, p = self.body, self.plan
        top, stop = body.local("i32"), body.local("i32")
        body.add(self._top())
        body.set(top)
        body.add(get_local(top) + get_local(self.line_local) + get_local(top) + get_local(self.line_local))
        body.add(ops("i32.gt_s select"))
        body.set(self.line_local)
        body.get(top)
        body.add(i32(p.span) + ops("i32.add"))
        body.set(stop)
        with self.writer.loop(self.line_local, get_local(stop)):
            to = body.local("i32")
            body.add(self._slot(get_local(self.line_local)))
            body.set(to)
            body.get(self.line_local)
            body.add((i32(1) if p.flat else self.low.dim_code(p.facts["x_shape"][1])) + ops("i32.lt_u"))
            with body.when():
                with self.writer.scope():
                    self._rewrite(to)
                body.otherwise()
                body.get(to)
                body.add(i32(p.line))
                body.call("fill_zero")
            body.free(to)
        body.free(top, stop)

    def _rewrite(self, to: int) -> None:
        """One line into its planes."""
        body, p = self.body, self.plan
        zero = scalar.const(0, int32)
        lines = () if p.flat else (self.line,)
        index = affine.flatten((self.variables[0], *lines, zero, zero), p.facts["x_shape"])
        first, offset = self.low.address(p.facts["x"], index)
        source, channel = body.local("i32"), body.local("i32")
        self.writer.push(first)
        body.add(i32(offset) + ops("i32.add"))
        body.set(source)
        body.add(i32(0))
        body.set(channel)
        with self.writer.loop(channel, i32(p.channels), 1, True):
            for phase in range(p.axis("strides", 1)):
                self._plane(to, source, phase)
                body.increase(to, 4 * p.plane)
            body.increase(source, 4)
        body.free(source, channel)

    def _plane(self, to: int, source: int, phase: int) -> None:
        """The elements phase, phase + stride, … of a channel (counted from the first one of the padding)."""
        body, p = self.body, self.plan
        stride, pad = p.axis("strides", 1), p.axis("pads", 1)
        first = min(max(-(-(pad - phase) // stride), 0), p.plane)
        stop = max(min(-(-(p.length + pad - phase) // stride), p.plane), first)
        for start, end in ((0, first), (stop, p.plane)):
            if end > start:
                body.get(to)
                body.add(i32(4 * start) + ops("i32.add") + i32(4 * (end - start)))
                body.call("fill_zero")
        step = 4 * stride * p.channels
        at, origin, reach = body.local("i32"), body.local("i32"), body.local("i32")
        # Where element 0 of the plane would be, were it inside.
        body.get(source)
        body.add(i32((phase - pad) * 4 * p.channels) + ops("i32.add"))
        body.set(origin)
        begin, end = i32(first), i32(stop)
        if self.part is not None:
            low, high = self.part
            body.add(get_local(high) + i32(p.extra + 4) + ops("i32.add"))
            body.set(reach)
            end = least(reach, stop)
            begin = get_local(low) + i32(first) + get_local(low) + i32(first) + ops("i32.gt_s select")
            body.add(end)
            body.set(reach)
            end = get_local(reach)
        body.add(begin)
        body.set(at)
        for width in (4, 1):
            limit = body.local("i32")
            body.add(end + (i32(-3) + ops("i32.add") if width == 4 else b""))
            body.set(limit)
            with self.writer.loop(at, get_local(limit), width):
                body.get(to, at)
                body.add(i32(2) + ops("i32.shl i32.add"))
                body.get(origin, at)
                body.add(i32(step) + ops("i32.mul i32.add"))
                if width == 1:
                    body.add(memory("f32.load") + memory("f32.store"))
                else:
                    body.apply(elements.load_lanes(float32, 0) if step == 4 else elements.gather(float32, 0, step))
                    body.add(memory("v128.store"))
            body.free(limit)
        body.free(at, origin, reach)

    # --- the sums

    def _positions(self, block: int) -> None:
        """The outputs of a line, by blocks, and what is left over."""
        body, p = self.body, self.plan
        column = self.locals[-2]
        whole = p.width // block * block
        body.add(get_local(self.part[0]) if self.part else i32(0))
        body.set(column)
        if whole:
            limit = least(self.part[1], whole) if self.part else i32(whole)
            with self.writer.loop(column, limit, block, self.part is None):
                self._block(p.vectors, 0)
        if p.width == whole:
            return
        rest = p.width - whole
        body.get(column)
        body.add(i32(whole) + ops("i32.eq"))
        body.add((get_local(self.part[1]) if self.part else i32(p.width)) + i32(p.width) + ops("i32.eq i32.and"))
        with body.when():
            self._block(-(-rest // 4), rest % 4)

    def _block(self, vectors: int, rest: int) -> None:
        """Vectors of neighbouring outputs; of the last one only `rest`, if that is not 0."""
        body, p = self.body, self.plan
        totals = [[body.local("v128") for _ in range(vectors)] for _ in range(p.outputs)]
        for total in (t for line in totals for t in line):
            body.add(f32x4(0.0))
            body.set(total)
        weights, at, tap = (body.local("i32") for _ in range(3))
        w, offset = self.low.address(p.facts["w"], scalar.const(0, int32))
        self.writer.push(w)
        body.add(i32(offset) + ops("i32.add"))
        body.set(weights)
        body.add(i32(0))
        body.set(tap)
        with self.writer.loop(tap, i32(p.window[0]), 1, True) if p.window[0] > 1 else ExitStack():
            line = self._top() + get_local(tap) + i32(p.axis("dilations", 0)) + ops("i32.mul i32.add")
            body.add(self._slot(line))
            body.get(self.locals[-2])
            body.add(i32(2) + ops("i32.shl i32.add"))
            body.set(at)
            self._taps(totals, weights, at)
        body.free(weights, at, tap)
        self._store(totals, vectors, rest)
        body.free(*(t for line in totals for t in line))

    def _taps(self, totals: Sequence[Sequence[int]], weights: int, at: int) -> None:
        """Along a line: taps that are as many phases apart repeat, one element further."""
        p, body = self.plan, self.body
        stride, dilation = p.axis("strides", 1), p.axis("dilations", 1)
        period = stride // math.gcd(stride, dilation)
        turns, rest = divmod(p.window[1], period)
        if turns > 1:
            turn = body.local("i32")
            body.add(i32(0))
            body.set(turn)
            with self.writer.loop(turn, i32(turns), 1, True):
                self._group(totals, weights, at, period)
                body.increase(at, 4 * (period * dilation // stride))
            body.free(turn)
        else:
            rest = p.window[1]
        self._group(totals, weights, at, rest)

    def _group(self, totals: Sequence[Sequence[int]], weights: int, at: int, taps: int) -> None:
        p = self.plan
        stride = p.axis("strides", 1)
        for number in range(taps):
            place = number * p.axis("dilations", 1)
            self._channels(totals, weights, at, 4 * (place % stride * p.plane + place // stride))

    def _channels(self, totals: Sequence[Sequence[int]], weights: int, at: int, offset: int) -> None:
        """One tap's."""
        body, p = self.body, self.plan
        step = 4 * p.axis("strides", 1) * p.plane
        unroll = min(4, p.channels)
        if p.channels <= unroll:
            for number in range(p.channels):
                self._multiply(totals, weights, 4 * p.outputs * number, at, offset + step * number)
            body.increase(weights, 4 * p.outputs * p.channels)
            return
        plane, channel = body.local("i32"), body.local("i32")
        body.get(at)
        body.set(plane)
        whole = p.channels // unroll * unroll
        body.add(i32(0))
        body.set(channel)
        with self.writer.loop(channel, i32(whole), unroll, True):
            for number in range(unroll):
                self._multiply(totals, weights, 4 * p.outputs * number, plane, offset + step * number)
            body.increase(weights, 4 * p.outputs * unroll)
            body.increase(plane, step * unroll)
        for number in range(p.channels - whole):
            self._multiply(totals, weights, 4 * p.outputs * number, plane, offset + step * number)
        body.increase(weights, 4 * p.outputs * (p.channels - whole))
        body.free(plane, channel)

    def _multiply(self, totals: Sequence[Sequence[int]], weights: int, weight: int, at: int, offset: int) -> None:
        """One element of k."""
        body = self.body
        factors = [body.local("v128") for _ in totals]
        for j, factor in enumerate(factors):
            body.get(weights)
            body.add(memory("v128.load32_splat", weight + 4 * j))
            body.set(factor)
        values = body.local("v128")
        for v in range(len(totals[0])):
            body.get(at)
            body.add(memory("v128.load", offset + 16 * v))
            body.set(values)
            for factor, line in zip(factors, totals, strict=True):
                body.get(values, factor)
                body.multiply_add(line[v])
        body.free(values, *factors)

    # --- the epilogue

    def _store(self, totals: Sequence[Sequence[int]], vectors: int, rest: int) -> None:
        shifts = {
            (j, v): tuple((var, by) for var, by in ((self.column, 4 * v), (self.output, j)) if by)
            for v in range(vectors)
            for j in range(len(totals))
        }
        for (j, v), shift in shifts.items():
            self.low.accumulator(ACCUMULATOR, totals[j][v], self.level + 1, True, shift)
        self.low.forget()
        s = self.store
        whole = vectors - (rest > 0)
        with self.writer.scope():
            for (_, v), shift in shifts.items():
                if v < whole:
                    self.writer.push(self.low.store(s.port, s.index, s.value, shift, True))
        for number in range(rest):
            for j, line in enumerate(totals):
                self._store_one(line[-1], number, 4 * whole + number, ((self.output, j),) if j else ())

    def _store_one(self, total: int, number: int, position: int, shift: Shift) -> None:
        body, s = self.body, self.store
        body.get(self.locals[-2])
        body.add(i32(position) + OPS["i32.add"])
        body.set(self.edge_column)
        body.get(total)
        body.add(lane("f32x4.extract_lane", number))
        body.set(self.edge_value)
        self.edge.accumulator(ACCUMULATOR, self.edge_value, self.level + 1, False, shift)
        self.edge.forget()
        with self.writer.scope():
            self.writer.push(self.edge.store(s.port, s.index, s.value, shift))
