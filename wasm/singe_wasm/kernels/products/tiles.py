"""Writes the function of a convolution that winograd.py scheduled: transforms, products, transforms, epilogue. lines.py has what differs along
one axis.

For each band of tiles, which may be of several images, all inputs are transformed; then for each panel of columns its
weights are, and each block of tiles, as many as a register tile has rows, gets its products and its outputs. A transform
goes along one axis, into a square of vectors in scratch, and then along the other, by the functions of transforms.py. The
parts of a run share tiles or columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import Final, Generic, TypeVar

from singe.extension import Contraction, Store, affine, ceildiv, float32, int32, scalar

from ...code.encode import Function
from ...code.values import I32, F32x4, Int, maximum, minimum, select
from ...code.writer import Tree
from ...levels import Level
from ...transforms import TILE_INPUTS, TILE_OUTPUTS, WINDOW_WEIGHTS
from ..lower import Lowering, SizeParameters
from ..thread_shares import begin, choose_loop, divide, first_alone
from .feeds import Feed
from .product import RELAXED, SIMD, Product, Section, row_turns, sections
from .winograd import COLUMNS, SquareSchedule, WinogradSchedule

Schedule = TypeVar("Schedule", bound=WinogradSchedule)


def print_tiles(s: SquareSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled convolution with a window of 3×3."""
    return _Squares(s, sizes, level).function()


class _Inputs(Feed):
    """A block of transformed tiles at one position."""

    def __init__(self, c: Contraction, at: I32, depth: int) -> None:
        super().__init__(c, {})
        self._tree = Tree(at.push, (), "i32", 3, trivial=True)
        self._depth = depth

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        return [(self._tree, 4 * self._depth * i) for i in range(rows)]


class WinogradTiles(Generic[Schedule]):
    """What the templates share: the loops over bands, panels and blocks, and the products."""

    def __init__(self, s: Schedule, sizes: SizeParameters, level: Level) -> None:
        kernel = s.routine.kernel
        self.s: Final = s
        self.store: Final[Store] = s.routine.epilogue
        self.image, *_, self.x, self.channel = kernel.grid_vars
        self.w: Final = begin(kernel, True, sizes)
        self.low: Final = Lowering(kernel.ports, sizes, True, self.channel)
        self.tile: Final = RELAXED if level.relaxed else SIMD
        self.image_at, self.x_at, self.channel_at = (self.w.i32() for _ in range(3))
        for variable, local, depth in (
            (self.image, self.image_at, 2),
            (self.x, self.x_at, 2),
            (self.channel, self.channel_at, 3),
        ):
            self.low.variable(variable, local, depth)
        value = scalar.const(0.0, float32)
        self.c: Final = Contraction(
            kernel, (), s.tiles, s.outputs, s.depth, value, value, self.store, a_deep=True, b_deep=False
        )
        self.product: Final = Product(self.w, self.low, self.low, self.c, self.tile, 1, None, fours=level.fours)
        self.half, self.patch, self.inputs, self.weights, self.sums = (0, *s.areas[:-1])
        self.tiles: Final = self.w.simple(self.low.size(s.tiles))
        self.line: Final = 4 * s.channels  # bytes of an input position

    def function(self) -> Function:
        w, s, low = self.w, self.s, self.low
        turns = row_turns(s.tiles, self.tile.rows)
        whole = turns if isinstance(turns, int) else None
        shared = choose_loop([turns, ceildiv(s.outputs, COLUMNS)])
        self.start()
        with ExitStack() as stack:
            stack.enter_context(first_alone(w, low, shared is None))
            first, limit = (I32.of(0), self.tiles)
            if shared == 0:
                first, limit = divide(w, low, self.tiles, self.tile.rows, whole)
            columns = divide(w, low, s.outputs, COLUMNS) if shared == 1 else (I32.of(0), I32.of(s.outputs))
            at, stop, column = w.i32(), w.i32(), w.i32()
            with w.loop(at, limit, 0, start=first):
                w.set(stop, at + s.band)
                w.set(stop, minimum(stop, limit))
                if whole is not None:
                    # The last turn, which may be longer than the others, is not cut.
                    cut = at <= self.tile.rows * (whole - 1) - s.band
                    w.set(stop, select(cut, stop, limit))
                self.transform_inputs(at, stop)
                with w.loop(column, columns[1], COLUMNS, start=columns[0]):
                    self.transform_weights(column)
                    self._blocks(at, stop, column)
                w.set(at, stop)
        return w.finish()

    def scratch(self, at: int) -> I32:
        return self.w.value(self.low.scratch(0)) + at

    def start(self) -> None:
        """What is computed once."""

    def transform_inputs(self, first: I32, stop: I32) -> None:
        """Transform the inputs of the tiles first … stop."""
        raise NotImplementedError

    def transform_weights(self, column: I32) -> None:
        """The panel of columns from `column` on, [position][k][column]."""
        raise NotImplementedError

    def outputs(self, tile: I32, stop: I32, column: I32) -> None:
        """The outputs of a block's tiles, which end at `stop`."""
        raise NotImplementedError

    # --- products and outputs

    def _blocks(self, first: I32, stop: I32, column: I32) -> None:
        """A panel's products and outputs, one block of tiles after the other."""
        w = self.w
        with w.scope():
            tile, end = w.i32(first), w.i32()
            with w.repeat_while(tile < stop):
                self._block(sections(self.low, self.s.tiles, self.tile.rows, stop), first, tile, end)
                self.outputs(tile, end, column)
                w.set(tile, end)

    def _block(self, cuts: Sequence[Section], first: I32, tile: I32, end: I32) -> None:
        """The products of the block that begins with `tile`, as high as the first section it is in; `end`: its end."""
        w, (cut, *others) = self.w, cuts
        with w.when(tile < cut.limit) if others else nullcontext():
            with w.scope():
                self._sums(first, tile, cut.rows)
            w.set(end, tile + cut.rows)
            if others:
                w.otherwise()
                self._block(others, first, tile, end)

    def _sums(self, first: I32, tile: I32, rows: int) -> None:
        """[position][tile][column] of a block."""
        w, s, product = self.w, self.s, self.product
        inputs = w.i32(self.scratch(self.inputs) + (tile - first) * (4 * s.depth))
        w.set(product.b, self.scratch(self.weights))
        to, feed = w.i32(self.scratch(self.sums)), _Inputs(self.c, inputs, s.depth)
        with w.loop(w.i32(), s.positions, start=0):
            product.sum(feed, rows)
            for i, line in enumerate(product.accumulators[:rows]):
                for j, local in enumerate(line):
                    w.store(to, local, 4 * COLUMNS * i + 16 * j)
            w.add(product.b, s.panel - 4 * s.depth * COLUMNS)
            w.add(inputs, s.stride)
            w.add(to, 4 * COLUMNS * self.tile.rows)


class _Squares(WinogradTiles[SquareSchedule]):
    def __init__(self, s: SquareSchedule, sizes: SizeParameters, level: Level) -> None:
        super().__init__(s, sizes, level)
        self.y: Final = s.routine.kernel.grid_vars[1]
        self.y_at: Final = self.w.i32()
        self.low.variable(self.y, self.y_at, 4)
        simple, size = self.w.simple, self.low.size
        self.height, self.width = (simple(size(d)) for d in s.facts["x_shape"][1:-1])
        self.down, self.across = (simple(size(d)) for d in s.stored)
        self.along, self.lines = (simple(size(d)) for d in (s.along, s.lines))

    def start(self) -> None:
        # A tile is inside the input if neither its first line and element nor its last ones are outside (unsigned compare).
        self.clear = [
            self.w.simple(maximum(self.w.simple(length - (TILE_INPUTS - 1)), 0)) for length in (self.height, self.width)
        ]

    def _square(self, kind: str, source: I32, apart: Int, step: Int, lines: int, to: Int, on: int) -> None:
        """Transform a square of `lines` lines: along the lines, then the results along the other axis.

        Vectors of a line are `apart` bytes apart, lines `step`, results `on`.
        """
        half, name = self.scratch(self.half), f"winograd_{kind}"
        self.w.call(name, source, apart, step, half, 16, 16 * TILE_INPUTS, lines)
        self.w.call(
            name,
            half,
            16 * TILE_INPUTS,
            16,
            to,
            TILE_INPUTS * on,
            on,
            TILE_OUTPUTS if kind == "output" else TILE_INPUTS,
        )

    # --- inputs

    def transform_inputs(self, first: I32, stop: I32) -> None:
        """Transform the inputs of the tiles first … stop."""
        w, s, line = self.w, self.s, self.line
        zero = scalar.const(0, int32)
        index = affine.flatten((self.image, zero, zero, zero), s.facts["x_shape"])
        image, offset = self.low.address(s.facts["x"], index)
        with w.scope():
            tile, to = w.i32(), w.i32(self.scratch(self.inputs))
            with w.loop(tile, stop, start=first):
                top, left = (
                    w.i32(at * TILE_OUTPUTS - self.low.size(pad))
                    for at, pad in zip((self._line(tile), tile % self.along), s.facts["pads"], strict=True)
                )
                source = w.i32(w.value(image) + offset + (top * self.width + left) * line)
                apart = w.i32(self.width * line)
                with w.when((top.below(self.clear[0]) & left.below(self.clear[1])).zero):
                    self._copy_patch(top, left, source)
                    w.set(source, self.scratch(self.patch))
                    w.set(apart, TILE_INPUTS * line)
                put, end = w.i32(to), w.i32(source + line)
                with w.loop(source, end, 16, sure=True):
                    self._square("input", source, line, apart, TILE_INPUTS, put, s.stride)
                    w.add(put, 16)
                w.add(to, line)

    def _line(self, tile: I32) -> I32:
        """The line of tiles that a tile is in; its image is noted."""
        line = self.w.i32(tile // self.along)
        self.w.set(self.image_at, line // self.lines)
        return line % self.lines

    def _copy_patch(self, top: I32, left: I32, source: I32) -> None:
        """The tile with zeros around the input; `source` is where its first element would be."""
        w, line = self.w, self.line
        before, count = w.i32(0 - left), w.i32(self.width - left)
        w.set(before, maximum(before, 0))
        w.set(count, minimum(count, TILE_INPUTS))
        w.set(count, count - before)
        w.set(count, maximum(count, 0))
        to, row = w.i32(self.scratch(self.patch)), w.i32()
        with w.loop(row, top + TILE_INPUTS, start=top, sure=True):
            with w.when(row.below(self.height)):
                w.call("copy_padded", to, before * line, count * line, source + before * line, TILE_INPUTS * line)
                w.otherwise()
                w.call("fill_zero", to, TILE_INPUTS * line)
            w.add(to, TILE_INPUTS * line)
            w.add(source, self.width * line)

    # --- weights

    def transform_weights(self, column: I32) -> None:
        """The panel of columns from `column` on, [position][channel][column], zeros where there are none."""
        w, s = self.w, self.s
        tap = 4 * s.channels * s.outputs
        source, offset = self.low.address(s.facts["w"], scalar.const(0, int32))
        with w.scope():
            vector, to = w.i32(column), w.i32(self.scratch(self.weights))
            with w.loop(w.i32(), COLUMNS // 4, start=0):
                start, put = w.i32(w.value(source) + offset + vector * 4), w.i32(to)
                with w.loop(w.i32(), s.channels, start=0):
                    with w.when(vector < s.outputs):
                        self._square("weight", start, tap, WINDOW_WEIGHTS * tap, WINDOW_WEIGHTS, put, s.panel)
                        w.otherwise()
                        at = w.i32(put)
                        with w.loop(w.i32(), s.positions, start=0):
                            w.store(at, F32x4.of(0.0))
                            w.add(at, s.panel)
                    w.add(put, 4 * COLUMNS)
                    w.add(start, 4 * s.outputs)
                w.add(to, 16)
                w.add(vector, 4)

    def outputs(self, tile: I32, stop: I32, column: I32) -> None:
        """The outputs of a block's tiles, which end at `stop`, one vector of channels after the other."""
        w, s = self.w, self.s
        position = 4 * COLUMNS * self.tile.rows
        high, wide = (TILE_OUTPUTS // x for x in s.window)
        with w.scope():
            number, source = w.i32(), w.i32(self.scratch(self.sums))
            end = w.i32(column + COLUMNS)
            w.set(end, minimum(end, s.outputs))
            with w.loop(number, stop, start=tile, sure=True):
                w.set(self.x_at, number % self.along * wide)
                line = w.i32(self._line(number) * high)
                with w.loop(self.channel_at, end, 4, start=column, sure=True):
                    at = w.i32(source + (self.channel_at - column) * 4)
                    self._square(
                        "output", at, position, TILE_INPUTS * position, TILE_INPUTS, self.scratch(self.half), 16
                    )
                    half = w.i32(self.scratch(self.half))
                    w.set(self.y_at, line)
                    bottom = w.i32(self.y_at + high)
                    if self.down.known is None or self.down.known % high:
                        w.set(bottom, minimum(bottom, self.down))
                    self._store_lines(half, bottom)
                w.add(source, 4 * COLUMNS)

    def _store_lines(self, half: I32, bottom: I32) -> None:
        """A tile's outputs from the lines at `half` on, those inside the output; lines of a window at once."""
        w, s, store = self.w, self.s, self.store
        lines, across = s.window
        wide = TILE_OUTPUTS // across
        done = [[w.f32x4() for _ in range(TILE_OUTPUTS)] for _ in range(lines)]
        shifts = [((self.x, j),) if j else () for j in range(wide)]
        for j, shift in enumerate(shifts):
            window = [local for line in done for local in line[j * across : (j + 1) * across]]
            for number, local in enumerate(window):
                self.low.accumulator(scalar.var(f"a{number}", float32), local, 4, shift)
        self.low.forget()
        trees = [self.low.store(store.port, store.index, store.value, shift, 1) for shift in shifts]
        sure = 1 if self.across.known is None else self.across.known % wide or wide
        w.hoist(trees[:sure], 3)
        with w.loop(self.y_at, bottom, sure=True):
            for i, line in enumerate(done):
                for j, local in enumerate(line):
                    w.set(local, half.f32x4(16 * (TILE_INPUTS * i + j)))
            w.add(half, 16 * TILE_INPUTS * lines)
            for j, tree in enumerate(trees):
                with w.when(self.x_at < self.across - j) if j >= sure else nullcontext():
                    w.push(tree)
