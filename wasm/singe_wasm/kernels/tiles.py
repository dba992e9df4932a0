"""Writes the function of a convolution that winograd.py planned: transforms, products, transforms, epilogue.

For each image and band of tiles: all inputs are transformed, then for each panel of columns its weights, and for each
block of tiles, as many as a register tile has rows, its products and its outputs. A transform goes along one axis, into
a square of vectors in scratch, and then along the other: transforms.py has the functions that are called for it. The
parts of a run share images, tiles or columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from singe.extension import Dim, Store, affine, ceildiv, float32, int32, scalar

from ..encode import Body, Function, f32x4, get_local, i32, memory, ops
from ..transforms import SIZE, TAPS, WIDE
from .gemm import RELAXED, SIMD, Product, Rows, Section, row_turns, sections
from .lower import Lowering
from .share import begin, choose, divide, first_alone, loop
from .winograd import COLUMNS, POSITIONS, Plan
from .writer import Node, Writer


def print_tiles(p: Plan, sizes: Sequence[Dim], relaxed: bool) -> Function:
    """The function of a planned convolution."""
    return _Tiles(p, sizes, relaxed).function()


class _Panel(Rows):
    """A block of tiles at one position."""

    in_place = True
    step = 4

    def __init__(self, pointer: int, channels: int) -> None:
        self._node: Final = Node(get_local(pointer), (), "i32", 3, trivial=True)
        self._channels: Final = channels

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        return [(self._node, 4 * self._channels * i) for i in range(rows)]


class _Tiles:
    def __init__(self, p: Plan, sizes: Sequence[Dim], relaxed: bool) -> None:
        kernel = p.routine.kernel
        self.plan: Final = p
        self.store: Final[Store] = p.routine.epilogue
        self.image, self.y, self.x, self.channel = kernel.grid_vars
        self.body: Final[Body] = begin(kernel, True, sizes)
        self.writer: Final = Writer(self.body)
        self.low: Final = Lowering(kernel.ports, sizes, True, self.channel)
        self.tile: Final = RELAXED if relaxed else SIMD
        self.image_local, self.y_local, self.x_local, self.channel_local = (self.body.local("i32") for _ in range(4))
        levels = ((self.image, self.image_local, 1), (self.x, self.x_local, 2), (self.channel, self.channel_local, 3))
        for variable, local, level in (*levels, (self.y, self.y_local, 4)):
            self.low.variable(variable, local, level)
        extents = (p.tiles, p.outputs, p.channels)
        self.product: Final = Product(
            self.writer, self.low, self.low, kernel, (self.x, self.channel), extents, self.tile, 1, None
        )
        self.half, self.patch, self.inputs, self.weights, self.sums = (0, *p.areas[:-1])

    def function(self) -> Function:
        body, p, low = self.body, self.plan, self.low
        images, turns = p.routine.kernel.grid[0], row_turns(p.tiles, self.tile.rows)
        assert isinstance(turns, int)
        shared = choose([images, turns, ceildiv(p.outputs, COLUMNS)])
        with ExitStack() as stack:
            stack.enter_context(first_alone(body, low, shared is None))
            stack.enter_context(loop(self.writer, low, self.image_local, images, shared == 0))
            tiles = divide(body, low, i32(p.tiles), self.tile.rows, turns) if shared == 1 else None
            columns = divide(body, low, i32(p.outputs), COLUMNS) if shared == 2 else None
            first, stop, column = (body.local("i32") for _ in range(3))
            body.add(get_local(tiles[0]) if tiles else i32(0))
            body.set(first)
            limit = get_local(tiles[1]) if tiles else i32(p.tiles)
            last = self.tile.rows * (turns - 1)  # where the last turn begins, which is not cut
            with self.writer.loop(first, limit, 0, tiles is None):
                self._least(stop, get_local(first) + i32(p.band) + ops("i32.add"), limit)
                body.add(limit)
                body.get(stop)
                body.get(first)
                body.add(i32(last - p.band) + ops("i32.gt_s select"))
                body.set(stop)
                self._transform_inputs(first, stop)
                body.add(get_local(columns[0]) if columns else i32(0))
                body.set(column)
                end = get_local(columns[1]) if columns else i32(p.outputs)
                with self.writer.loop(column, end, COLUMNS, columns is None):
                    self._transform_weights(column)
                    self._blocks(first, stop, column)
                body.get(stop)
                body.set(first)
        return body.finish()

    # --- pieces of code

    def _least(self, into: int, value: bytes, limit: bytes, other: bool = False) -> None:
        """into = min(value, limit); other: max."""
        body = self.body
        body.add(value)
        body.tee(into)
        body.add(limit)
        body.get(into)
        body.add(limit + ops("i32.gt_s select" if other else "i32.lt_s select"))
        body.set(into)

    def _most(self, into: int, value: bytes, limit: bytes) -> None:
        """into = max(value, limit)."""
        self._least(into, value, limit, other=True)

    def _scratch(self, at: int) -> bytes:
        return get_local(len(self.low.ports)) + i32(at) + ops("i32.add")

    @contextmanager
    def _times(self, count: int) -> Iterator[int]:
        """A loop of so many turns, at least one."""
        turn = self.body.local("i32")
        self.body.add(i32(0))
        self.body.set(turn)
        with self.writer.loop(turn, i32(count), 1, True):
            yield turn
        self.body.free(turn)

    def _square(self, kind: str, source: int, apart: int, step: bytes, lines: int, to: bytes, on: int) -> None:
        """The transform of a square of so many lines: along them, and what results the other way.

        Vectors of a line are `apart` bytes apart, lines what `step` pushes, results `on`. `source`: a local.
        """
        body, half = self.body, self._scratch(self.half)
        body.get(source)
        body.add(i32(apart) + step + half + i32(16) + i32(16 * SIZE) + i32(lines))
        body.call(f"winograd_{kind}")
        across = WIDE if kind == "output" else SIZE
        body.add(half + i32(16 * SIZE) + i32(16) + to + i32(SIZE * on) + i32(on) + i32(across))
        body.call(f"winograd_{kind}")

    # --- inputs

    def _transform_inputs(self, first: int, stop: int) -> None:
        """Those of the tiles first … stop."""
        body, p = self.body, self.plan
        line = 4 * p.channels
        _, height, width, _ = p.facts["x_shape"]
        tile, top, left, source, apart, to = (body.local("i32") for _ in range(6))
        zero = scalar.const(0, int32)
        image, offset = self.low.address(
            p.facts["x"], affine.flatten((self.image, zero, zero, zero), p.facts["x_shape"])
        )
        self.writer.hoist([image], 1)
        body.get(first)
        body.set(tile)
        body.add(self._scratch(self.inputs))
        body.set(to)
        with self.writer.loop(tile, get_local(stop)):
            for local, word, pad in ((top, "i32.div_u", p.facts["pads"][0]), (left, "i32.rem_u", p.facts["pads"][1])):
                body.get(tile)
                body.add(i32(p.along) + ops(word) + i32(WIDE) + ops("i32.mul") + i32(pad))
                body.op("i32.sub")
                body.set(local)
            self.writer.push(image)
            body.add(i32(offset) + ops("i32.add"))
            body.get(top)
            body.add(i32(width) + ops("i32.mul"))
            body.get(left)
            body.add(ops("i32.add") + i32(line) + ops("i32.mul i32.add"))
            body.set(source)
            body.add(i32(width * line))
            body.set(apart)
            # Inside: neither the first line and element nor the last ones are beyond the input, unsigned.
            for local, length in ((top, height), (left, width)):
                body.get(local)
                body.add(i32(max(length - SIZE + 1, 0)) + ops("i32.lt_u"))
            body.add(ops("i32.and i32.eqz"))
            with body.when():
                self._copy_patch(top, left, source)
                body.add(self._scratch(self.patch))
                body.set(source)
                body.add(i32(SIZE * line))
                body.set(apart)
            self._transform_tile(source, apart, to)
            body.increase(to, line)
        body.free(tile, top, left, source, apart, to)

    def _copy_patch(self, top: int, left: int, source: int) -> None:
        """The tile with zeros around the input; `source` is where its first element would be."""
        body, p = self.body, self.plan
        line = 4 * p.channels
        _, height, width, _ = p.facts["x_shape"]
        to, row, before, count = (body.local("i32") for _ in range(4))
        # before = max(−left, 0), count = max(min(width − left, SIZE) − before, 0)
        self._most(before, i32(0) + get_local(left) + ops("i32.sub"), i32(0))
        self._least(count, i32(width) + get_local(left) + ops("i32.sub"), i32(SIZE))
        self._most(count, get_local(count) + get_local(before) + ops("i32.sub"), i32(0))
        body.add(self._scratch(self.patch))
        body.set(to)
        body.get(top)
        body.set(row)
        end = body.local("i32")
        body.get(top)
        body.add(i32(SIZE) + ops("i32.add"))
        body.set(end)
        with self.writer.loop(row, get_local(end), 1, True):
            body.get(row)
            body.add(i32(height) + ops("i32.lt_u"))
            with body.when():
                body.get(to)
                for local in (before, count):
                    body.get(local)
                    body.add(i32(line) + ops("i32.mul"))
                body.get(source, before)
                body.add(i32(line) + ops("i32.mul i32.add") + i32(SIZE * line))
                body.call("copy_padded")
                body.otherwise()
                body.get(to)
                body.add(i32(SIZE * line))
                body.call("fill_zero")
            body.increase(to, SIZE * line)
            body.increase(source, width * line)
        body.free(to, row, before, count, end)

    def _transform_tile(self, source: int, apart: int, to: int) -> None:
        """One tile's inputs, a vector of channels after the other; lines are the number of bytes in `apart` apart."""
        body, line = self.body, 4 * self.plan.channels
        end, put = body.local("i32"), body.local("i32")
        body.get(to)
        body.set(put)
        body.get(source)
        body.add(i32(line) + ops("i32.add"))
        body.set(end)
        with self.writer.loop(source, get_local(end), 16, True):
            self._square("input", source, line, get_local(apart), SIZE, get_local(put), self.plan.stride)
            body.increase(put, 16)
        body.free(end, put)

    # --- weights

    def _transform_weights(self, column: int) -> None:
        """The panel of columns from `column` on, [position][channel][column], zeros where there are none."""
        body, p = self.body, self.plan
        tap = 4 * p.channels * p.outputs
        source, offset = self.low.address(p.facts["w"], scalar.const(0, int32))
        vector, to, at, put, start = (body.local("i32") for _ in range(5))
        body.get(column)
        body.set(vector)
        body.add(self._scratch(self.weights))
        body.set(to)
        with self._times(COLUMNS // 4):
            self.writer.push(source)
            body.add(i32(offset) + ops("i32.add"))
            body.get(vector)
            body.add(i32(4) + ops("i32.mul i32.add"))
            body.set(start)
            body.get(to)
            body.set(put)
            with self._times(p.channels):
                body.get(vector)
                body.add(i32(p.outputs) + ops("i32.lt_s"))
                with body.when():
                    self._square("weight", start, tap, i32(TAPS * tap), TAPS, get_local(put), p.panel)
                    body.otherwise()
                    body.get(put)
                    body.set(at)
                    with self._times(POSITIONS):
                        body.get(at)
                        body.add(f32x4(0.0) + memory("v128.store"))
                        body.increase(at, p.panel)
                body.increase(put, 4 * COLUMNS)
                body.increase(start, 4 * p.outputs)
            body.increase(to, 16)
            body.increase(vector, 4)
        body.free(vector, to, at, put, start)

    # --- products and outputs

    def _blocks(self, first: int, stop: int, column: int) -> None:
        """A panel's products and outputs, a block of tiles after the other."""
        body, p = self.body, self.plan
        tile, end = body.local("i32"), body.local("i32")
        body.get(first)
        body.set(tile)
        with body.repeat():
            with self.writer.scope():
                self._block(sections(self.low, p.tiles, self.tile.rows, stop), first, tile, end)
                self._outputs(tile, end, column)
            body.get(end)
            body.tee(tile)
            body.get(stop)
            body.op("i32.lt_s")
        body.free(tile, end)

    def _block(self, cuts: Sequence[Section], first: int, tile: int, end: int) -> None:
        """The products of the block that begins with `tile`, as high as the first section it is in; `end`: where it ends."""
        body, (cut, *others) = self.body, cuts

        def block() -> None:
            with self.writer.scope():
                self._sums(first, tile, cut.rows)
            body.get(tile)
            body.add(i32(cut.rows) + ops("i32.add"))
            body.set(end)

        if not others:
            block()
            return
        body.get(tile)
        body.add(cut.limit + ops("i32.lt_s"))
        with body.when():
            block()
            body.otherwise()
            self._block(others, first, tile, end)

    def _sums(self, first: int, tile: int, rows: int) -> None:
        """[position][tile][column] of a block."""
        body, p, product = self.body, self.plan, self.product
        inputs, to = body.local("i32"), body.local("i32")
        body.add(self._scratch(self.inputs))
        body.get(tile, first)
        body.add(ops("i32.sub") + i32(4 * p.channels) + ops("i32.mul i32.add"))
        body.set(inputs)
        for local, at in ((product.b, self.weights), (to, self.sums)):
            body.add(self._scratch(at))
            body.set(local)
        panel = _Panel(inputs, p.channels)
        with self._times(POSITIONS):
            product.sum(panel, rows)
            self._put_sums(rows, to)
            body.increase(product.b, p.panel - 4 * p.channels * COLUMNS)
            body.increase(inputs, p.stride)
            body.increase(to, 4 * COLUMNS * self.tile.rows)
        body.free(inputs, to)

    def _put_sums(self, rows: int, to: int) -> None:
        for i, line in enumerate(self.product.accumulators[:rows]):
            for j, local in enumerate(line):
                self.body.get(to, local)
                self.body.add(memory("v128.store", 4 * COLUMNS * i + 16 * j))

    def _outputs(self, tile: int, stop: int, column: int) -> None:
        """The outputs of a block's tiles, which end at `stop`, a vector of channels after the other."""
        body, p = self.body, self.plan
        position = 4 * COLUMNS * self.tile.rows
        high, wide = (WIDE // w for w in p.window)
        number, source, at, half, end, bottom = (body.local("i32") for _ in range(6))
        body.get(tile)
        body.set(number)
        body.add(self._scratch(self.sums))
        body.set(source)
        self._least(end, get_local(column) + i32(COLUMNS) + ops("i32.add"), i32(p.outputs))
        with self.writer.loop(number, get_local(stop), 1, True):
            body.get(number)
            body.add(i32(p.along) + ops("i32.rem_u") + i32(wide) + ops("i32.mul"))
            body.set(self.x_local)
            body.get(column)
            body.set(self.channel_local)
            with self.writer.loop(self.channel_local, get_local(end), 4, True):
                body.get(self.channel_local, column)
                body.add(ops("i32.sub") + i32(4) + ops("i32.mul"))
                body.get(source)
                body.op("i32.add")
                body.set(at)
                self._square("output", at, position, i32(SIZE * position), SIZE, self._scratch(self.half), 16)
                body.add(self._scratch(self.half))
                body.set(half)
                body.get(number)
                body.add(i32(p.along) + ops("i32.div_u") + i32(high) + ops("i32.mul"))
                body.set(self.y_local)
                if p.stored[0] % high:
                    self._least(bottom, get_local(self.y_local) + i32(high) + ops("i32.add"), i32(p.stored[0]))
                else:
                    body.get(self.y_local)
                    body.add(i32(high) + ops("i32.add"))
                    body.set(bottom)
                self._store_lines(half, bottom)
            body.increase(source, 4 * COLUMNS)
        body.free(number, source, at, half, end, bottom)

    def _store_lines(self, half: int, bottom: int) -> None:
        """A tile's outputs from the lines at `half` on, those inside the output; lines of a window at once."""
        body, p, s = self.body, self.plan, self.store
        lines, across = p.window
        wide = WIDE // across
        done = [[body.local("v128") for _ in range(WIDE)] for _ in range(lines)]
        shifts = [((self.x, j),) if j else () for j in range(wide)]
        for j, shift in enumerate(shifts):
            window = [local for line in done for local in line[j * across : (j + 1) * across]]
            for number, local in enumerate(window):
                self.low.accumulator(scalar.var(f"a{number}", float32), local, 4, True, shift)
        self.low.forget()
        nodes = [self.low.store(s.port, s.index, s.value, shift, True) for shift in shifts]
        sure = p.stored[1] % wide or wide
        self.writer.hoist(nodes[:sure], 3)
        with self.writer.loop(self.y_local, get_local(bottom), 1, True):
            for i, line in enumerate(done):
                for j, local in enumerate(line):
                    body.get(half)
                    body.add(memory("v128.load", 16 * (SIZE * i + j)))
                    body.set(local)
            body.increase(half, 16 * SIZE * lines)
            for j, node in enumerate(nodes):
                if j >= sure:
                    body.get(self.x_local)
                    body.add(i32(p.stored[1] - j) + ops("i32.lt_s"))
                    with body.when(), self.writer.scope():
                        self.writer.push(node)
                else:
                    self.writer.push(node)
        body.free(*(local for line in done for local in line))
