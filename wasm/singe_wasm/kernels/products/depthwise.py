"""Depthwise convolution, channels last: one filter a channel, four channels to a vector.

A block of neighbouring outputs along the last space axis is held in registers, with some weights of a line of the window:
each element of the input is loaded once for all outputs. If the axis has a fixed length and padding, blocks at the borders
get separate code without the taps outside of the input. If either is open, outputs whose taps are all inside are computed
in whole blocks, the others one by one with a test for each tap. The limits of loops clip the window's other axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Expr, Routine, Store, affine, ceildiv, float32, int32, scalar

from ...code.encode import Function
from ...code.values import I32, Int, maximum, minimum
from ...code.writer import Tree, Writer
from ..lanes import lane_cost
from ..lower import Lowering, Shift, SizeParameters
from ..thread_shares import begin, choose_loop, divide, first_alone, loop
from .product import ACCUMULATOR, VECTOR_REGISTERS

WEIGHTS_IN_REGISTERS: Final = 7
"""Weights of a line that are held in registers at once, besides the sums, an element and a product."""


def takes(routine: Routine) -> bool:
    """Whether the template can compute this convolution."""
    facts = routine.facts
    x_shape, w_shape, grid = facts["x_shape"], facts["w_shape"], routine.kernel.grid
    store = routine.epilogue
    fixed = (x_shape[-1], *w_shape, grid[-1])
    return (
        facts["group"] == x_shape[-1] == grid[-1]
        and w_shape[-2] == 1
        and all(isinstance(d, int) and d > 0 for d in (*fixed, *(d for d in grid[-2:] if isinstance(d, int))))
        and all(affine.at_least(p, 0) for p in facts["pads"])
        and fixed[-1] >= 4  # pyright: ignore[reportOperatorIssue]
        and all(routine.ports[facts[p]].dtype is float32 for p in "xw")
        and not store.inner
        and lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-1]) is not None
    )


@dataclass(frozen=True)
class Stretch:
    """Outputs start, start + 1, … of the last space axis in turns of `count`; taps: those of one turn, as (output, tap).

    checked: whether taps may be outside of the input, and are tested at run time.
    """

    start: Int
    count: int
    stop: Int
    taps: tuple[tuple[int, int], ...]
    checked: bool = False


def _size(width: int, window: int) -> int:
    """Outputs in a block: eight sums hide the latency of an addition, and the tail should be small."""
    most = VECTOR_REGISTERS - 2 - min(window, WEIGHTS_IN_REGISTERS)
    return min(width, max(range(4, most + 1), key=lambda b: (width / (math.ceil(width / b) * b) * min(b / 8, 1), b)))


def stretches(width: int, length: int, window: int, stride: int, dilation: int, pad: int) -> list[Stretch]:
    """The outputs of an axis of fixed length in blocks; equal ones become one stretch of several turns."""
    size = _size(width, window)
    out: list[Stretch] = []
    for start in range(0, width, size):
        count = min(size, width - start)
        taps = tuple(
            (i, k)
            for k in range(window)
            for i in range(count)
            if 0 <= (start + i) * stride + k * dilation - pad < length
        )
        last = out[-1] if out else None
        if last is not None and (last.count, last.taps) == (count, taps):
            out[-1] = Stretch(last.start, count, start + count, taps)
        else:
            out.append(Stretch(start, count, start + count, taps))
    return out


def open_stretches(
    w: Writer, width: I32, length: I32, window: int, stride: int, dilation: int, pad: I32
) -> list[Stretch]:
    """The outputs of an axis whose length or padding is known at run time."""

    def taps(count: int) -> tuple[tuple[int, int], ...]:
        return tuple((i, k) for k in range(window) for i in range(count))

    # The first output whose taps are all inside, and the one after the last.
    width = w.simple(width)
    first = w.i32(minimum(w.simple((pad + (stride - 1)) // stride), width))
    room = w.i32(length + (pad - ((window - 1) * dilation + 1)))
    last = w.i32(room // stride + 1)
    w.set(last, minimum(last, width))
    w.set(last, maximum(last, first))
    w.set(last, first + (last - first) * (room >= 0))
    out = [Stretch(0, 1, first, taps(1), True)]
    start = first
    for size in (_size(64, window), 4):
        stop = w.i32(last - (last - start) % size)
        out.append(Stretch(start, size, stop, taps(size)))
        start = stop
    return [*out, Stretch(start, 1, width, taps(1), True)]


def print_depthwise(routine: Routine, sizes: SizeParameters) -> Function:
    """The function of a depthwise convolution."""
    return _Depthwise(routine, sizes).function()


class _Depthwise:
    def __init__(self, routine: Routine, sizes: SizeParameters) -> None:
        kernel = routine.kernel
        facts: Any = routine.facts
        self.store: Final[Store] = routine.epilogue
        self.x, self.weights = facts["x"], facts["w"]
        self.x_shape, self.w_shape = facts["x_shape"], facts["w_shape"]
        self.window: Final[tuple[int, ...]] = self.w_shape[:-2]
        self.strides, self.dilations, self.pads = facts["strides"], facts["dilations"], facts["pads"]
        self.w: Final = begin(kernel, False, sizes)
        self.variables, self.grid = kernel.grid_vars, kernel.grid
        self.low: Final = Lowering(kernel.ports, sizes, lane=self.variables[-1])
        self.locals: Final = [self.w.i32() for _ in self.grid]
        for level, (v, local) in enumerate(zip(self.variables, self.locals, strict=True), 1):
            self.low.variable(v, local, level)
        self.level: Final = len(self.grid)
        self.channels: int = self.grid[-1]  # pyright: ignore[reportAttributeAccessIssue]
        self.part: tuple[I32, I32] | None = None  # the part's range of channels, if these are shared
        self.taps: Final = [scalar.var(f"k{i}", int32, d) for i, d in enumerate(self.window[:-1])]
        self.tap_locals: Final = [self.w.i32() for _ in self.taps]
        for i, (v, local) in enumerate(zip(self.taps, self.tap_locals, strict=True)):
            self.low.variable(v, local, self.level + 2 + i)

    def function(self) -> Function:
        w, outer, width, length = self.w, self.grid[:-2], self.grid[-2], self.x_shape[-2]
        shared = choose_loop([*outer, ceildiv(self.channels, 4)])
        if shared == len(outer):
            self.part = divide(w, self.low, self.channels, 4)
        axis, pad = (self.window[-1], self.strides[-1], self.dilations[-1]), self.pads[-1]
        if isinstance(width, int) and isinstance(length, int) and isinstance(pad, int):
            parts = stretches(width, length, *axis, pad)
        else:
            size = self.low.size
            parts = open_stretches(w, size(width), size(length), *axis, size(pad))
        with ExitStack() as stack:
            stack.enter_context(first_alone(w, self.low, shared is None))
            for number, (local, extent) in enumerate(zip(self.locals[:-2], outer, strict=True)):
                stack.enter_context(loop(w, self.low, local, extent, shared == number))
            limits = [(self.low.scalar(a), self.low.scalar(b)) for a, b in self._limits()]
            w.hoist([tree for pair in limits for tree in pair], self.level - 2)
            for stretch in parts:
                self._stretch(stretch, limits)
        return w.finish()

    def _limits(self) -> list[tuple[Expr, Expr]]:
        """The first tap inside the input and the one after the last, for each window axis but the last."""
        out = []
        for i, (window, stride, dilation, pad) in enumerate(
            zip(self.window[:-1], self.strides, self.dilations, self.pads, strict=False)
        ):
            # Input elements before the window's first one, if positive.
            outside = scalar.size(pad) - self.variables[1 + i] * stride
            edges = (outside, outside + scalar.size(self.x_shape[1 + i]))
            first, last = (
                scalar.div(scalar.maximum(e, 0) + (dilation - 1), scalar.const(dilation, int32)) for e in edges
            )
            out.append((first, scalar.minimum(last, window)))
        return out

    def _stretch(self, s: Stretch, limits: Sequence[tuple[Tree, Tree]]) -> None:
        w, channels = self.w, self.channels
        with w.loop(self.locals[-2], s.stop, s.count, start=s.start):
            w.set(self.locals[-1], self.part[0] if self.part else 0)
            for end, step in ((channels & -4, 4), (channels, 1))[: 1 + (channels % 4 > 0)]:
                limit = minimum(self.part[1], end) if self.part else end
                with w.loop(self.locals[-1], limit, step, sure=self.part is None):
                    self._outputs(s, limits, step == 4)

    def _outputs(self, s: Stretch, limits: Sequence[tuple[Tree, Tree]], vector: bool) -> None:
        """A block of outputs for four channels, or for one."""
        w = self.w
        totals = [w.f32x4(0.0) if vector else w.f32(0.0) for _ in range(s.count)]
        with ExitStack() as stack:
            for number, ((first, last), local) in enumerate(zip(limits, self.tap_locals, strict=True)):
                roots = [address for address, _ in self._addresses(s)]
                hoist = roots if number + 1 < len(limits) else ()
                end, level = w.i32(w.value(last)), self.level + 2 + number
                stack.enter_context(w.loop(local, end, start=w.value(first), hoist=hoist, level=level))
            self._multiply(s, totals, vector)
        shifts: list[Shift] = [((self.variables[-2], i),) if i else () for i in range(s.count)]
        for total, shift in zip(totals, shifts, strict=True):
            self.low.accumulator(ACCUMULATOR, total, self.level + 1, shift)
        self.low.forget()
        for shift in shifts:
            w.push(self.low.store(self.store.port, self.store.index, self.store.value, shift, int(vector)))

    def _nearest(self, s: Stretch) -> int:
        """The input element of the block's first inside tap, relative to the start of its window without padding."""
        return min((i * self.strides[-1] + k * self.dilations[-1] for i, k in s.taps), default=0)

    def _place(self, s: Stretch) -> Expr:
        """The index of the nearest input element."""
        return self.variables[-2] * self.strides[-1] + scalar.size(self._nearest(s) - self.pads[-1])

    def _addresses(self, s: Stretch) -> list[tuple[Tree, int]]:
        """The addresses of the nearest input element and of the first weight, at the present taps of the outer axes."""
        batch, *space, _, channel = self.variables
        rows = [
            v * stride + t * d - scalar.size(p)
            for v, stride, t, d, p in zip(space, self.strides, self.taps, self.dilations, self.pads, strict=False)
        ]
        x = self.low.address(self.x, affine.flatten((batch, *rows, self._place(s), channel), self.x_shape))
        zero = scalar.const(0, int32)
        return [x, self.low.address(self.weights, affine.flatten((*self.taps, zero, zero, channel), self.w_shape))]

    def _multiply(self, s: Stretch, totals: Sequence[Any], vector: bool) -> None:
        """All taps along the last axis."""
        w = self.w
        (x_tree, x_offset), (w_tree, w_offset) = self._addresses(s)
        x, weights = w.i32(w.value(x_tree)), w.i32(w.value(w_tree))

        def load(at: I32, offset: int) -> Any:
            return at.f32x4(offset) if vector else at.f32(offset)

        nearest, element = self._nearest(s), w.f32x4() if vector else w.f32()
        for first in range(0, self.window[-1], WEIGHTS_IN_REGISTERS):
            taps = [(i, k) for i, k in s.taps if first <= k < first + WEIGHTS_IN_REGISTERS]
            with w.scope():
                held = {
                    k: w.local(load(weights, w_offset + 4 * self.channels * k))
                    for k in dict.fromkeys(k for _, k in taps)
                }
                # Load each element once, for all outputs that use it; the taps of an output keep their order.
                places: dict[int, list[tuple[int, int]]] = {}
                for i, k in taps:
                    places.setdefault(i * self.strides[-1] + k * self.dilations[-1] - nearest, []).append((i, k))
                for step, pairs in sorted(places.items()):
                    with ExitStack() as stack:
                        element_at, offset = x, x_offset + 4 * self.channels * step
                        if s.checked:
                            # The block's start may be before the memory's, and an instruction's offset does not wrap.
                            element_at, offset = x + offset, 0
                            place = w.value(self.low.scalar(self._place(s))) + step
                            stack.enter_context(w.when(place.below(self.low.size(self.x_shape[-2]))))
                        w.set(element, load(element_at, offset))
                        for i, k in pairs:
                            w.multiply_add(totals[i], element, held[k])
