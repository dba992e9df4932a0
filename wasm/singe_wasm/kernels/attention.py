"""Attention: strips of queries over blocks of keys; see core/singe/ir/attention.py.

The keys and the values of a head are packed as panels of COLUMNS, [panel][k][key] and [panel][key][column], filled up with
zeros, as float32. A strip's queries, times the scale, are copied too. For few queries, a panel of keys is packed where the one before was, and
values are read where they are. A block's scores lie in scratch while they become weights, and
the strip's sums of values do until they are stored: of float16 all this is float32. Rows in eight bits (core/singe/ops/products/eight_bit_rows.py)
are read as bytes, and multiplied by the scale of their block. The parts of a run share the strips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from singe.extension import EIGHT_BIT_BLOCK, Dim, DType, bool_, float32, int8

from ..code.elementary import falling_exp, four_halves
from ..code.encode import Body, Function, integers, ops
from ..code.values import F32, I32, F32x4, I32x4, Int, maximum, minimum
from ..code.writer import Writer
from ..levels import Level
from . import memory as elements
from .attention_strips import COLUMNS, MAX_KEYS_PER_BLOCK, QUERIES_PER_STRIP, SCALE_BYTES, SCORE_ROW_BYTES, Strips
from .lower import Lowering, SizeParameters
from .products.product import LAST, RELAXED, SIMD, TilePlace, broadcasts, unrolled
from .thread_shares import divide

STEPS_IN_PLACE: Final = 4
"""Values in a turn of the innermost loop where they are not packed."""
MIN_PACKED_QUERIES: Final = 8
"""For fewer queries, packing all keys and values, which then are read again, takes longer than the products."""
LAST_QUERIES: Final = (3, *LAST)
"""The heights of the last tiles: queries are often three for a head of keys."""
FEW_QUERIES: Final = (4, *LAST_QUERIES)
"""The heights of tiles of values that are not packed."""
LEAST: Final = -3.4028234663852886e38
_MAX: Final = ops("f32x4.pmax")  # keeps the first one if the second is NaN, which the weights then are
_MAX_ONE: Final = ops("f32.max")


def print_strips(s: Strips, sizes: SizeParameters, level: Level) -> Function:
    """The function, with the ports of the inputs and of the result, and the scratch memory."""
    return _Template(s, sizes, level).function()


class _Template:
    """The function under construction."""

    def __init__(self, s: Strips, sizes: SizeParameters, level: Level) -> None:
        self.s: Final = s
        self.a: Final = s.a
        self.low: Final = Lowering(s.ports, sizes, scratch=True)
        self.w: Final = Writer(Body(integers(len(s.ports) + 1 + len(sizes) + 2)))
        self.tile: Final = RELAXED if level.relaxed else SIMD
        self.fours: Final = level.fours
        self.at: Final = I32(number=len(s.ports))  # scratch

    def function(self) -> Function:
        w, s, low, a = self.w, self.s, self.low, self.a
        strips = w.simple(low.size(s.count))
        self.keys, self.rows = (w.simple(low.size(d)) for d in (a.keys, a.rows))
        are_many = isinstance(a.rows, int) and a.rows >= MIN_PACKED_QUERIES
        can_be_few = a.width % COLUMNS == 0 and not are_many
        self.few = w.i32(self.rows < MIN_PACKED_QUERIES) if can_be_few else None
        strip, packed, (first, last) = w.i32(), w.i32(-1), divide(w, low, low.size(s.count * a.points))
        with w.loop(strip, last, start=first):
            point, row = w.i32(strip // strips), w.i32(strip % strips * QUERIES_PER_STRIP)
            other = point.differs(packed)
            with w.when(other if self.few is None else self.few.zero & other):
                w.set(packed, point)
                self._pack_keys(point)
                self._pack_values(point)
            count = w.i32(self.rows - row)
            w.set(count, minimum(count, QUERIES_PER_STRIP))
            self._strip(point, row, count)
        return w.finish()

    # --- packing

    def _load(self, at: I32, dtype: DType, offset: int = 0) -> F32:
        """An element as float32."""
        return F32(at.push, elements.load(dtype, offset))

    def _four(self, at: I32, dtype: DType, offset: int = 0, scale: F32x4 | None = None) -> F32x4:
        """Four neighbours, as float32, times a scale if there is one."""
        if dtype is int8:
            four = I32x4(at.push, elements.load_lanes(int8, offset)).as_floats()
        else:
            four = at.f32x4(offset) if dtype is float32 else four_halves(self.w, at, offset)
        return four if scale is None else four * scale

    def _scale(self, block: I32, offset: int = 0) -> F32x4 | None:
        """The scale of the block of a row that begins at a place, if there are scales."""
        return self.w.f32x4(block.f32x4(offset + EIGHT_BIT_BLOCK, "v128.load32_splat")) if self.a.packed else None

    @contextmanager
    def _blocks(self, count: int) -> Iterator[int]:
        """Go through the blocks of a row; without scales it is one. Gives their size."""
        if not self.a.packed:
            yield count
            return
        with self.w.loop(self.w.i32(), count, EIGHT_BIT_BLOCK, start=0):
            yield EIGHT_BIT_BLOCK

    def _copy(self, to: I32, source: I32, count: int, dtype: DType, scale: float = 1.0) -> None:
        """Copy neighbours, times a scale, as float32; both locals move on."""
        w, (fours, rest) = self.w, divmod(count, 4)
        turn = w.i32()
        if fours:
            with w.loop(turn, fours, start=0):
                four = self._four(source, dtype)
                w.store(to, four * scale if scale != 1 else four)
                w.add(to, 16)
                w.add(source, 4 * dtype.size)
        if rest:
            with w.loop(turn, rest, start=0):
                value = self._load(source, dtype)
                w.store(to, value * scale if scale != 1 else value)
                w.add(to, 4)
                w.add(source, dtype.size)

    def _pack_keys(self, point: I32) -> None:
        """[panel][k][key]."""
        w = self.w
        with w.scope():
            key, to = w.i32(), w.i32(self.at + self.s.panels)
            with w.loop(key, self.keys, COLUMNS, start=0):
                self._pack_panel(point, key, to)
                w.add(to, 4 * COLUMNS * self.a.size)

    def _pack_panel(self, point: I32, key: I32, to: I32) -> None:
        """The panel that a key begins, four keys by four elements at a time."""
        w, a, kind = self.w, self.a, self.s.kind
        size, rest = self.s.bytes(a.size), a.size % 4
        with w.scope():
            start = w.i32(I32(number=1) + point * self.low.size(a.room) * size)
            for half in range(0, COLUMNS, 4):
                # Beyond the last key, it is read again; its scores count for nothing.
                lines = [w.i32(self.keys - 1) for _ in range(4)]
                for i, line in enumerate(lines):
                    own = w.i32(key + half + i)
                    w.set(line, start + minimum(own, line) * size)
                put, turn = w.i32(to + 4 * half), w.i32()
                with self._blocks(a.size) as count:
                    scales = [self._scale(line) for line in lines]
                    if count >= 4:
                        with w.loop(turn, count // 4, start=0):
                            fours = [self._four(line, kind, 0, y) for line, y in zip(lines, scales, strict=True)]
                            for k, column in enumerate(_turned(w, [four.integers() for four in fours])):
                                w.store(put, column, 4 * COLUMNS * k)
                            for line in lines:
                                w.add(line, 4 * kind.size)
                            w.add(put, 16 * COLUMNS)
                    if a.packed:
                        for line in lines:
                            w.add(line, SCALE_BYTES)
                if rest:
                    with w.loop(turn, rest, start=0):
                        for i, line in enumerate(lines):
                            w.store(put, self._load(line, kind), 4 * i)
                            w.add(line, kind.size)
                        w.add(put, 4 * COLUMNS)

    def _pack_values(self, point: I32) -> None:
        """[panel][key][column]."""
        w, s, a, kind = self.w, self.s, self.a, self.s.kind
        padded = w.simple(self.low.size(s.padded))
        with w.scope():
            start = w.i32(self.at + self.low.size(s.values))
            line = w.i32(I32(number=2) + point * self.low.size(a.room) * s.bytes(a.width))
            key, panel = w.i32(), w.i32(padded * (4 * COLUMNS))
            with w.loop(key, self.keys, start=0):
                to = w.i32(start + key * (4 * COLUMNS))
                for column in range(0, a.width, COLUMNS):
                    count, put = min(COLUMNS, a.width - column), w.i32(to)
                    if count < COLUMNS:
                        self._zeros(put, 4 * COLUMNS)
                    if count == COLUMNS:
                        scale = self._scale(line, s.bytes(column - column % EIGHT_BIT_BLOCK))
                        for i in range(2):
                            w.store(put, self._four(line, kind, s.bytes(column) + 4 * i * kind.size, scale), 16 * i)
                    else:
                        source = w.i32(line + column * kind.size)
                        self._copy(put, source, count, kind)
                    w.add(to, panel)
                w.add(line, s.bytes(a.width))
            with w.loop(key, padded):
                to = w.i32(start + key * (4 * COLUMNS))
                for _ in range(0, a.width, COLUMNS):
                    self._zeros(to, 4 * COLUMNS)
                    w.add(to, panel)

    def _zeros(self, to: I32, size: int) -> None:
        """Fill whole vectors with zeros."""
        for offset in range(0, size, 16):
            self.w.store(to, F32x4.of(0.0), offset)

    # --- a strip

    def _strip(self, point: I32, row: I32, count: I32) -> None:
        w, s, a, at = self.w, self.s, self.a, self.at
        source = w.i32(I32(number=0) + (point * self.rows + row) * (a.size * a.dtype.size))
        to, turn = w.i32(at), w.i32()
        with w.loop(turn, count, start=0):
            self._copy(to, source, a.size, a.dtype, a.scale)
        w.set(to, at + s.sums)
        with w.loop(turn, count * (s.wide // 4), start=0):
            w.store(to, F32x4.of(0.0))
            w.add(to, 16)
        w.set(to, at + s.tops)
        with w.loop(turn, count, start=0):
            w.store(to, F32.of(LEAST))
            w.store(to, F32.of(0.0), 4)
            w.add(to, 8)
        base, end = w.i32(0), w.i32(self.keys)
        if a.causal:
            self._limit(row, count, end)
        with w.loop(base, end, MAX_KEYS_PER_BLOCK):
            keys = w.i32(end - base)
            w.set(keys, minimum(keys, MAX_KEYS_PER_BLOCK))
            panels = w.i32((keys + (COLUMNS - 1)) // COLUMNS)
            self._scores(point, base, panels, count)
            with w.loop(turn, count, start=0):
                self._weights(point, row, turn, base, keys, panels)
            if self.few is None:
                self._add_values(base, panels, count)
            else:
                with w.when(self.few):
                    self._add_values_in_place(point, base, keys, count)
                    w.otherwise()
                    self._add_values(base, panels, count)
        self._store(point, row, count)

    def _limit(self, row: I32, count: I32, end: I32) -> None:
        """The end of the keys that some row of the strip sees."""
        w, low, a = self.w, self.low, self.a
        queries = w.simple(low.size(a.queries))
        last = w.i32(row + count - 1)
        seen = w.i32(queries - 1)
        with w.when((row // queries).equals(last // queries)):
            w.set(seen, last % queries)
        w.add(seen, low.size(a.past) + 1)
        w.set(seen, maximum(seen, 0))
        w.set(end, minimum(seen, end))

    @contextmanager
    def _tiles(self, count: I32, height: int, row: I32) -> Iterator[None]:
        with self.w.loop(row, count - (height - 1), height):
            yield

    def _scores(self, point: I32, base: I32, panels: I32, count: I32) -> None:
        """The scores of a block: queries by panels of keys."""
        w, s, size = self.w, self.s, self.a.size
        with w.scope():
            packed = I32.of(1) if self.few is None else w.i32(self.few.zero)
            panel, row, start = w.i32(), w.i32(), w.i32(self.at + s.panels + packed * base * (4 * size))
            step = w.simple(packed * (4 * COLUMNS * size))
            to = w.i32(self.at + s.scores)
            with w.loop(panel, panels, start=0):
                if self.few is not None:
                    with w.when(self.few):
                        self._pack_panel(point, w.i32(base + panel * COLUMNS), start)
                w.set(row, 0)
                for height in (self.tile.rows, *LAST_QUERIES):
                    with self._tiles(count, height, row):
                        put = w.i32(to + row * SCORE_ROW_BYTES)
                        total = _zero(w, height)
                        self._sum(total, w.i32(self.at + row * (4 * size)), 4 * size, w.i32(start), size)
                        _put(w, total, put, SCORE_ROW_BYTES)
                w.add(start, step)
                w.add(to, 4 * COLUMNS)

    def _add_values(self, base: I32, panels: I32, count: I32) -> None:
        """Add a block's weights by panels of values."""
        w, s = self.w, self.s
        with w.scope():
            padded = w.simple(self.low.size(s.padded))
            row, column, start = w.i32(), w.i32(), w.i32(self.at + self.low.size(s.values) + base * (4 * COLUMNS))
            with w.loop(column, 4 * s.wide, 4 * COLUMNS, start=0):
                w.set(row, 0)
                for height in (self.tile.rows, *LAST):
                    with self._tiles(count, height, row):
                        put = w.i32(self.at + s.sums + column + row * (4 * s.wide))
                        total = [[w.f32x4(put.f32x4(4 * s.wide * i + 16 * j)) for j in range(2)] for i in range(height)]
                        self._sum(
                            total,
                            w.i32(self.at + s.scores + row * SCORE_ROW_BYTES),
                            SCORE_ROW_BYTES,
                            w.i32(start),
                            panels,
                        )
                        _put(w, total, put, 4 * s.wide)
                w.add(start, padded * (4 * COLUMNS))

    def _add_values_in_place(self, point: I32, base: I32, keys: I32, count: I32) -> None:
        """The same, of values where they are."""
        w, s, a, kind = self.w, self.s, self.a, self.s.kind
        line = s.bytes(a.width)
        with w.scope():
            row, column = w.i32(), w.i32()
            start = w.i32(I32(number=2) + (point * self.low.size(a.room) + base) * line)
            whole, end = w.i32(start + (keys & -STEPS_IN_PLACE) * line), w.i32(start + keys * line)
            with w.loop(column, a.width * kind.size, kind.size * COLUMNS, start=0):
                place = block = column
                if a.packed:
                    block = w.i32(column // EIGHT_BIT_BLOCK * s.bytes(EIGHT_BIT_BLOCK))
                    place = w.i32(block + column % EIGHT_BIT_BLOCK)
                w.set(row, 0)
                for height in FEW_QUERIES:
                    with self._tiles(count, height, row):
                        put = w.i32(self.at + s.sums + column * (4 // kind.size) + row * (4 * s.wide))
                        total = [[w.f32x4(put.f32x4(4 * s.wide * i + 16 * j)) for j in range(2)] for i in range(height)]
                        weights = w.i32(self.at + s.scores + row * SCORE_ROW_BYTES)
                        rows = [TilePlace(weights, SCORE_ROW_BYTES * i) for i in range(height)]
                        at = w.i32(start)
                        for limit, steps in ((whole, STEPS_IN_PLACE), (end, 1)):
                            with w.loop(at, limit, steps * line):
                                values = w.i32(at + block) if a.packed else at
                                self._steps(total, rows, w.i32(at + place), steps, line, kind, values)
                        _put(w, total, put, 4 * s.wide)

    def _sum(self, total: Sequence[Sequence[F32x4]], a: I32, line: int, b: I32, depth: Int) -> None:
        """Add the products of some rows with a panel; depth: how many, or a local with how many times COLUMNS."""
        rows = [TilePlace(a, line * i) for i in range(len(total))]
        count = unrolled(rows, self.fours)
        whole = depth // count * count if isinstance(depth, int) else depth * COLUMNS
        if whole != 0:
            with self._until(b, b + whole * (4 * COLUMNS)):
                self._steps(total, rows, b, count)
        if isinstance(depth, int):
            self._steps(total, rows, b, depth % count)

    @contextmanager
    def _until(self, b: I32, end: I32) -> Iterator[None]:
        limit = self.w.i32(end)
        with self.w.repeat_while(b.below(limit)):
            yield

    def _steps(
        self,
        total: Sequence[Sequence[F32x4]],
        rows: Sequence[TilePlace],
        b: I32,
        count: int,
        line: int = 4 * COLUMNS,
        dtype: DType = float32,
        values: I32 | None = None,
    ) -> None:
        """line: bytes from a row of the panel, of these elements, to the next. values: where the first one's block begins, if they are values
        where they are; otherwise the pointer to the panel is moved on."""
        if not count:
            return
        w = self.w
        with w.scope():
            for k, factors in enumerate(broadcasts(w, rows, count, self.fours)):
                with w.scope():
                    scale = None if values is None else self._scale(values, line * k)
                    columns = [w.f32x4(self._four(b, dtype, line * k + 4 * dtype.size * j, scale)) for j in range(2)]
                    one = w.f32x4()
                    for value, sums in zip(factors, total, strict=True):
                        w.set(one, value)
                        for into, column in zip(sums, columns, strict=True):
                            w.multiply_add(into, one, column)
        w.add(rows[0].pointer, 4 * count)
        if values is None:
            w.add(b, line * count)

    # --- weights

    def _weights(self, point: I32, row: I32, number: I32, base: I32, keys: I32, panels: I32) -> None:
        """One row's scores of a block become weights; its sums so far are scaled down."""
        w, s, a, at = self.w, self.s, self.a, self.at
        line = w.i32(at + s.scores + number * SCORE_ROW_BYTES)
        end = w.i32(line + panels * (4 * COLUMNS))
        here = w.i32()
        if a.cap:
            self._vectors(line, end, lambda p, i: w.store(p, _tanh(p.f32x4(16 * i) / a.cap) * a.cap, 16 * i))
        limit = w.i32(line + keys * 4)
        query = w.i32((row + number) % self.low.size(a.queries)) if a.causal or a.mask is not None else None
        if a.causal and query is not None:
            seen = w.i32(query + self.low.size(a.past) + 1 - base)
            w.set(seen, maximum(seen, 0))
            w.set(seen, line + seen * 4)
            w.set(limit, minimum(limit, seen))
        if a.mask is not None and query is not None:
            self._mask(point, row + number, query, base, line, limit)
        w.set(here, limit)
        with w.loop(here, end, 4):
            w.store(here, F32.of(float("-inf")))
        most = [w.f32x4(LEAST) for _ in range(2)]
        self._vectors(line, end, lambda p, i: w.fold(most[i], p.f32x4(16 * i), _MAX))
        w.fold(most[0], most[1], _MAX)
        tops = w.i32(at + s.tops + number * 8)
        old, top = w.f32(tops.f32()), w.f32(tops.f32())
        for lane in range(4):
            w.set(top, _max(top, most[0].lane(lane)))
        w.store(tops, top)
        total, wide = [w.f32x4(0.0) for _ in range(2)], w.f32x4(top.splat())

        def weigh(p: I32, i: int) -> None:
            with w.scope():
                x = w.f32x4(p.f32x4(16 * i) - wide)
                w.set(x, falling_exp(w, x))
                w.store(p, x, 16 * i)
                w.set(total[i], total[i] + x)

        self._vectors(line, end, weigh)
        sums = w.f32(tops.f32(4))
        with w.when(old.differs(top)):
            down = w.f32x4((old - top).splat())
            w.set(down, falling_exp(w, down))
            w.set(sums, sums * down.lane(0))
            start = w.i32(at + s.sums + number * (4 * s.wide))
            self._vectors(start, w.i32(start + 4 * s.wide), lambda p, i: w.store(p, p.f32x4(16 * i) * down, 16 * i))
        w.set(total[0], total[0] + total[1])
        for lane in range(4):
            w.set(sums, sums + total[0].lane(lane))
        w.store(tops, sums, 4)

    def _vectors(self, start: I32, end: I32, each: Callable[[I32, int], None]) -> None:
        """Do something with both vectors of each COLUMNS from a start to an end."""
        with self.w.scope():
            at = self.w.i32(start)
            with self.w.loop(at, end, 4 * COLUMNS):
                for i in range(2):
                    each(at, i)

    def _mask(self, point: I32, row: I32, query: I32, base: I32, line: I32, limit: I32) -> None:
        """Add the mask to a row's scores up to a limit, or set those that it hides to −∞."""
        w, low, a = self.w, self.low, self.a
        assert a.mask is not None
        assert a.mask_dtype is not None
        *outer, head, step_q, step = a.mask
        kind = a.mask_dtype
        index = w.i32(query * low.size(step_q) + base * low.size(step))
        if head != 0:
            w.add(index, (point % low.size(a.heads) * a.group + row // low.size(a.queries)) * low.size(head))
        after: Dim = a.heads
        for d, by in reversed(list(zip(a.outer, outer, strict=True))):
            if by != 0:
                w.add(index, point // low.size(after) % low.size(d) * low.size(by))
            after = after * d
        mask, at = w.i32(I32(number=3) + index * kind.size), w.i32(line)
        if step == 1 and kind in (float32, bool_):
            with w.loop(at, limit - 15, 16):
                if kind is bool_:
                    seen = I32x4(mask.push, elements.load_lanes(bool_, 0))
                    w.store(at, seen.choose(at.f32x4(), F32x4.of(float("-inf"))))
                else:
                    w.store(at, at.f32x4() + mask.f32x4())
                w.add(mask, 4 * kind.size)
        with w.loop(at, limit, 4):
            if kind is bool_:
                with w.when(I32(mask.push, elements.load(bool_, 0)).zero):
                    w.store(at, F32.of(float("-inf")))
            else:
                w.store(at, at.f32() + self._load(mask, kind))
            if step != 0:
                w.add(mask, kind.size)

    # --- results

    def _store(self, point: I32, row: I32, count: I32) -> None:
        w, s, a, at = self.w, self.s, self.a, self.at
        number = w.i32()
        to = w.i32(I32(number=len(s.ports) - 1) + (point * self.rows + row) * (a.width * a.dtype.size))
        with w.loop(number, count, start=0):
            source = w.i32(at + s.sums + number * (4 * s.wide))
            share = w.f32(w.i32(at + s.tops + number * 8).f32(4))
            w.set(share, 1.0 / _max(share, F32.of(1.0)))  # at least 1 if the row sees any key
            wide, turn = w.f32x4(share.splat()), w.i32()
            fours, rest = divmod(a.width, 4) if a.dtype is float32 else (0, a.width)
            if fours:
                with w.loop(turn, fours, start=0):
                    w.store(to, source.f32x4() * wide)
                    w.add(to, 16)
                    w.add(source, 16)
            if rest:
                with w.loop(turn, rest, start=0):
                    to.push(w.body)
                    (source.f32() * share).push(w.body)
                    w.body.apply(elements.store(a.dtype, 0))
                    w.add(to, a.dtype.size)
                    w.add(source, 4)


def _max(a: F32, b: F32) -> F32:
    """The larger one; NaN if one is."""
    return F32(a.push, b.push, _MAX_ONE)


def _tanh(x: F32x4) -> F32x4:
    return F32x4(x.push, lambda body: body.call("tanh"))


def _zero(w: Writer, rows: int) -> list[list[F32x4]]:
    return [[w.f32x4(0.0) for _ in range(2)] for _ in range(rows)]


def _put(w: Writer, total: Sequence[Sequence[F32x4]], to: I32, line: int) -> None:
    for i, sums in enumerate(total):
        for j, value in enumerate(sums):
            w.store(to, value, line * i + 16 * j)


def _turned(w: Writer, rows: Sequence[I32x4]) -> list[I32x4]:
    """A square of 4 × 4 elements, turned."""
    a, b, c, d = (w.i32x4(row) for row in rows)
    low = [w.i32x4(x.shuffled(y, 0, 4, 1, 5)) for x, y in ((a, b), (c, d))]
    high = [w.i32x4(x.shuffled(y, 2, 6, 3, 7)) for x, y in ((a, b), (c, d))]
    return [x.shuffled(y, *lanes) for x, y in (low, high) for lanes in ((0, 1, 4, 5), (2, 3, 6, 7))]
