"""Depthwise convolution, channels last: one filter a channel, four channels to a vector.

A block of neighbouring outputs along the last space axis lies in registers beside some weights of a line of the window:
each element of the input is loaded once for all of them. Which taps of a block fall outside is known when the code is
printed (the axis has a fixed length), so blocks at the borders are code of their own without the missing taps; the
window's other axes are clipped by their loops' limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Dim, Expr, Routine, Store, affine, ceildiv, float32, int32, scalar

from ..encode import Function, f32, f32x4, get_local, i32, memory
from .gemm import ACCUMULATOR, REGISTERS
from .lower import Lowering, Shift
from .nest import lane_cost
from .share import begin, choose, divide, first_alone, least, loop
from .writer import Node, Writer

HELD: Final = 7
"""Weights of a line that registers hold at once, beside the sums, an element and a product."""


def takes(routine: Routine) -> bool:
    """Whether the template does this convolution."""
    facts = routine.facts
    x_shape, w_shape, grid = facts["x_shape"], facts["w_shape"], routine.kernel.grid
    store = routine.epilogue
    fixed = (*x_shape[-2:], *w_shape, *grid[-2:])
    return (
        facts["group"] == x_shape[-1] == grid[-1]
        and w_shape[-2] == 1
        and all(isinstance(d, int) and d > 0 for d in fixed)
        and fixed[-1] >= 4  # pyright: ignore[reportOperatorIssue]
        and all(routine.ports[facts[p]].dtype is float32 for p in "xw")
        and not store.inner
        and lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-1]) is not None
    )


@dataclass(frozen=True)
class Block:
    """Outputs start, start + 1, … of the last space axis, `count` of them, `turns` times; their taps (output, tap)."""

    start: int
    count: int
    turns: int
    taps: tuple[tuple[int, int], ...]


def blocks(width: int, length: int, window: int, stride: int, dilation: int, pad: int) -> list[Block]:
    """The outputs of an axis in blocks; equal ones become one block of several turns.

    Eight sums hide the latency of an addition; the best block is large enough and leaves few outputs for the last one.
    """
    most = REGISTERS - 2 - min(window, HELD)
    size = min(width, max(range(4, most + 1), key=lambda b: (width / (math.ceil(width / b) * b) * min(b / 8, 1), b)))
    out: list[Block] = []
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
            out[-1] = Block(last.start, count, last.turns + 1, taps)
        else:
            out.append(Block(start, count, 1, taps))
    return out


def print_depthwise(routine: Routine, sizes: Sequence[Dim]) -> Function:
    """The function of a depthwise convolution."""
    return _Depthwise(routine, sizes).function()


class _Depthwise:
    def __init__(self, routine: Routine, sizes: Sequence[Dim]) -> None:
        kernel = routine.kernel
        facts: Any = routine.facts
        self.store: Final[Store] = routine.epilogue
        self.x, self.w = facts["x"], facts["w"]
        self.x_shape, self.w_shape = facts["x_shape"], facts["w_shape"]
        self.window: Final[tuple[int, ...]] = self.w_shape[:-2]
        self.strides, self.dilations, self.pads = facts["strides"], facts["dilations"], facts["pads"]
        self.body: Final = begin(kernel, False, sizes)
        self.writer: Final = Writer(self.body)
        self.variables, self.grid = kernel.grid_vars, kernel.grid
        self.channel: Final = self.variables[-1]
        self.low: Final = Lowering(kernel.ports, sizes, lane=self.channel)
        self.locals: Final = [self.body.local("i32") for _ in self.grid]
        for level, (v, local) in enumerate(zip(self.variables, self.locals, strict=True), 1):
            self.low.variable(v, local, level)
        self.level: Final = len(self.grid)
        self.channels: tuple[int, int] | None = None  # locals: the part's range of them, if these are shared
        self.taps: Final = [scalar.var(f"k{i}", int32, d) for i, d in enumerate(self.window[:-1])]
        self.tap_locals: Final = [self.body.local("i32") for _ in self.taps]
        for i, (v, local) in enumerate(zip(self.taps, self.tap_locals, strict=True)):
            self.low.variable(v, local, self.level + 2 + i)

    def function(self) -> Function:
        outer, channels = self.grid[:-2], self.grid[-1]
        shared = choose([*outer, ceildiv(channels, 4)])
        if shared == len(outer):
            self.channels = divide(self.body, self.low, self.low.dim_code(channels), 4)
        with ExitStack() as stack:
            stack.enter_context(first_alone(self.body, self.low, shared is None))
            for number, (local, extent) in enumerate(zip(self.locals[:-2], outer, strict=True)):
                stack.enter_context(loop(self.writer, self.low, local, extent, shared == number))
            limits = [(self.low.scalar(a), self.low.scalar(b)) for a, b in self._limits()]
            self.writer.hoist([n for pair in limits for n in pair], self.level - 2)
            width = self.grid[-2]
            assert isinstance(width, int)
            for block in blocks(
                width, self.x_shape[-2], self.window[-1], self.strides[-1], self.dilations[-1], self.pads[-1]
            ):
                self._block(block, limits)
        return self.body.finish()

    def _limits(self) -> list[tuple[Expr, Expr]]:
        """The first tap inside the input and the one after the last, for each window axis but the last."""
        out = []
        for i, (window, stride, dilation, pad) in enumerate(
            zip(self.window[:-1], self.strides, self.dilations, self.pads, strict=False)
        ):
            outside = pad - self.variables[1 + i] * stride  # input elements before the window's first one, if positive
            edges = (outside, outside + scalar.size(self.x_shape[1 + i]))
            first, last = (
                scalar.div(scalar.maximum(e, 0) + (dilation - 1), scalar.const(dilation, int32)) for e in edges
            )
            out.append((first, scalar.minimum(last, window)))
        return out

    def _block(self, block: Block, limits: Sequence[tuple[Node, Node]]) -> None:
        column, channels = self.locals[-2], self.grid[-1]
        assert isinstance(channels, int)
        self.body.add(i32(block.start))
        self.body.set(column)
        end = block.start + block.count * block.turns
        with self.writer.loop(column, i32(end), block.count, True):
            self.body.add(get_local(self.channels[0]) if self.channels else i32(0))
            self.body.set(self.locals[-1])
            for end, step in ((channels & -4, 4), (channels, 1))[: 1 + (channels % 4 > 0)]:
                limit = least(self.channels[1], end) if self.channels else i32(end)
                with self.writer.loop(self.locals[-1], limit, step, self.channels is None):
                    self._outputs(block, limits, step == 4)

    def _outputs(self, block: Block, limits: Sequence[tuple[Node, Node]], vector: bool) -> None:
        """A block of outputs for four channels, or for one."""
        body, writer = self.body, self.writer
        kind = "v128" if vector else "f32"
        totals = [body.local(kind) for _ in range(block.count)]
        for total in totals:
            body.add(f32x4(0.0) if vector else f32(0.0))
            body.set(total)
        with ExitStack() as stack:
            for number, ((first, last), local) in enumerate(zip(limits, self.tap_locals, strict=True)):
                writer.push(first)
                body.set(local)
                end = body.local("i32")
                writer.push(last)
                body.set(end)
                stack.callback(body.free, end)
                roots = [address for address, _ in self._addresses(block)]
                stack.enter_context(
                    writer.loop(
                        local,
                        get_local(end),
                        1,
                        False,
                        roots if number + 1 < len(limits) else (),
                        self.level + 2 + number,
                    )
                )
            self._multiply(block, totals, vector)
        shifts: list[Shift] = [((self.variables[-2], i),) if i else () for i in range(block.count)]
        for total, shift in zip(totals, shifts, strict=True):
            self.low.accumulator(ACCUMULATOR, total, self.level + 1, vector, shift)
        self.low.forget()
        for shift in shifts:
            writer.push(self.low.store(self.store.port, self.store.index, self.store.value, shift, vector))
        body.free(*totals)

    def _nearest(self, block: Block) -> int:
        """The input element of the block's first tap that is inside, from where the block's window would start without padding."""
        return min((i * self.strides[-1] + k * self.dilations[-1] for i, k in block.taps), default=0)

    def _addresses(self, block: Block) -> list[tuple[Node, int]]:
        """Of the nearest input element and of the first weight, for the present taps of the outer axes."""
        batch, *space, column, channel = self.variables
        rows = [
            v * s + t * d - p
            for v, s, t, d, p in zip(space, self.strides, self.taps, self.dilations, self.pads, strict=False)
        ]
        place = column * self.strides[-1] + (self._nearest(block) - self.pads[-1])
        x = self.low.address(self.x, affine.flatten((batch, *rows, place, channel), self.x_shape))
        zero = scalar.const(0, int32)
        return [x, self.low.address(self.w, affine.flatten((*self.taps, zero, zero, channel), self.w_shape))]

    def _multiply(self, block: Block, totals: Sequence[int], vector: bool) -> None:
        """All taps along the last axis."""
        body = self.body
        (x, x_offset), (w, w_offset) = self._addresses(block)
        kind = "v128" if vector else "f32"
        x_local, w_local, element = body.local("i32"), body.local("i32"), body.local(kind)
        for node, local in ((x, x_local), (w, w_local)):
            self.writer.push(node)
            body.set(local)
        load = "v128.load" if vector else "f32.load"
        channels = self.grid[-1]
        assert isinstance(channels, int)
        nearest = self._nearest(block)
        for first in range(0, self.window[-1], HELD):
            taps = [(i, k) for i, k in block.taps if first <= k < first + HELD]
            weights = {k: body.local(kind) for k in dict.fromkeys(k for _, k in taps)}
            for k, weight in weights.items():
                body.get(w_local)
                body.add(memory(load, w_offset + 4 * channels * k))
                body.set(weight)
            # Each element once, for all of the outputs that it has a part in; an output's taps keep their order.
            places: dict[int, list[tuple[int, int]]] = {}
            for i, k in taps:
                places.setdefault(i * self.strides[-1] + k * self.dilations[-1] - nearest, []).append((i, k))
            for step, pairs in sorted(places.items()):
                body.get(x_local)
                body.add(memory(load, x_offset + 4 * channels * step))
                body.set(element)
                for i, k in pairs:
                    body.get(element, weights[k])
                    body.multiply_add(totals[i], vector)
            body.free(*weights.values())
        body.free(x_local, w_local, element)
