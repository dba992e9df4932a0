"""The register-tiled product of a Contraction: out[m, n] = epilogue(Σ over k of a[m, k] · b[k, n]).

A tile is `rows` × `columns` accumulators in registers. B comes as panels of `columns` columns, [panel][k][columns], the
last one filled up with zeros. A tile of few rows spans several panels where these are those of more rows: where the number
of rows is open, and where the weights are shared with such a product. A's rows come from a Feed. The epilogue is evaluated
on the accumulators where they are; where it has conditions on the column, as a concatenation has, by pieces of columns. The
column tail, and any epilogue that cannot be vectorised, goes through a scratch buffer element by element; if only its
addresses are not contiguous, the epilogue's values are computed four at a time and stored one by one. A sum is one
accumulator's, in the order of k, so tiles and blocks never change a result's bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from singe.extension import Contraction, Dim, Expr, Reduce, affine, ceildiv, float32, scalar

from ...code.values import I32, F32x4, I32x4, Int, minimum
from ...code.writer import Tree, Writer
from ..lanes import lane_cost
from ..lower import Lowering, Shift
from ..split_loops import ColumnPiece, column_pieces
from ..thread_shares import divide
from .feeds import Feed, Runs

ACCUMULATOR: Final = scalar.var("a0", float32)
VECTOR_REGISTERS: Final = 15
"""Vector registers that V8 can allocate on x64; further values are spilled to memory at each step."""
CACHE_BYTES: Final = 1 << 20
"""Bytes of an operand that stay in a core's cache while the other one is streamed through."""
STEPS_PER_TURN_OF_ONE_ROW: Final = 4
"""Steps of k in a turn of the innermost loop if the tile has one row."""
STEPS_PER_TURN_OF_FOUR_LOADS: Final = 4
"""Steps in a turn if the level reads rows four elements at a time.

Where a load fills all lanes with one element, wasmtime's compiler takes the way through an integer register, for which
Intel's processors have one port: two of its turns for two multiply-adds. Shuffles of a vector spare that. 6 × 8
accumulators on a Xeon of 3.9 GHz, whose peak is 58 GFLOP/s: 31 in wasmtime, by shuffles 48; in Chromium 61 and 39."""
STEPS_PER_TURN_OF_SEVERAL_POINTERS: Final = 2
"""Steps in a turn otherwise, if the rows need several pointers, which are moved in each turn; other tiles make one step."""
MAX_BYTES_FROM_ONE_POINTER: Final = 1 << 20
"""Rows whose addresses are fewer bytes apart have one pointer."""


class RegisterTile(NamedTuple):
    """The accumulators of a tile: rows by columns (a multiple of 4)."""

    rows: int
    columns: int


RELAXED: Final = RegisterTile(6, 8)
SIMD: Final = RegisterTile(4, 8)
FEW_COLUMNS: Final = RegisterTile(8, 4)
"""Tiles chosen by measurement: the registers must hold the accumulators, one operand, one value of the other operand, and,
without relaxed SIMD, a product."""
FEW_ROWS: Final = {1: 32, 2: 16, 3: 12}
"""A small number of rows ↦ the columns of their tile, as measured: a step with fewer than 8 accumulators waits for the
additions of the step before it."""
LAST: Final = (2, 1)
"""The heights of the last tiles of an open number of rows."""


def choose_tile(m: Dim, n: Dim, relaxed: bool, as_open: bool = False) -> RegisterTile:
    """The tile for a product; its columns are the same at both levels of SIMD, which share packed weights. as_open: its
    columns are those for an open number of rows."""
    if isinstance(m, int) and m in FEW_ROWS and not as_open:
        return RegisterTile(m, FEW_ROWS[m])
    if isinstance(n, int) and n <= 4:
        return FEW_COLUMNS
    return RELAXED if relaxed else SIMD


def panels_across(c: Contraction, tile: RegisterTile, few: Mapping[int, int] = FEW_ROWS) -> Mapping[int, int]:
    """The height of a tile of few rows ↦ the number of panels it spans, if more than one. few: as FEW_ROWS.

    If the open number of rows is always larger than a tile's, such tiles are not worth their code.
    """
    many = not isinstance(c.rows, int) and affine.at_least(c.rows, tile.rows, named=1)
    if many or not isinstance(c.depth, int):
        return {}
    count = -(-c.columns // tile.columns) if isinstance(c.columns, int) else None
    across: dict[int, int] = {}
    for rows in (c.rows,) if isinstance(c.rows, int) else LAST:
        most = max(-(-few.get(rows, 0) // tile.columns), 1)
        # At least that many columns, in tiles as equal in width as possible.
        across[rows] = most if not count else -(-count // -(-count // most))
    return {rows: spanned for rows, spanned in across.items() if spanned > 1}


class TilePlace(NamedTuple):
    """An element of A: an address in a local, and constant bytes."""

    pointer: I32
    offset: int


def _pointers(places: Sequence[TilePlace]) -> Collection[I32]:
    return {id(p.pointer): p.pointer for p in places}.values()


def unrolled(places: Sequence[TilePlace], fours: bool, step: int = 4) -> int:
    """The steps of k in a turn. fours: see Level; step: bytes from one k to the next."""
    if len(places) == 1:
        return STEPS_PER_TURN_OF_ONE_ROW
    if fours and step == 4:
        return STEPS_PER_TURN_OF_FOUR_LOADS
    return STEPS_PER_TURN_OF_SEVERAL_POINTERS if len(_pointers(places)) > 1 else 1


def broadcasts(w: Writer, places: Sequence[TilePlace], count: int, fours: bool, step: int = 4) -> Iterator[list[F32x4]]:
    """An element of each row in all lanes, for each of `count` steps of k; see `unrolled`. Rows that are read by fours take
    locals."""
    if fours and step == 4 and count == STEPS_PER_TURN_OF_FOUR_LOADS and len(places) > 1:
        rows = [w.local(p.pointer.f32x4(p.offset)) for p in places]
        yield from ([row.broadcast(turn) for row in rows] for turn in range(STEPS_PER_TURN_OF_FOUR_LOADS))
    else:
        for turn in range(count):
            yield [p.pointer.f32x4(p.offset + turn * step, "v128.load32_splat") for p in places]


class Section(NamedTuple):
    """Rows done with tiles of one height, up to a limit."""

    rows: int
    limit: Int
    sure: bool


def _heights(m: int, most: int) -> tuple[int, list[int]]:
    """The rows in tiles of the largest height, and the heights of the last tiles: few tiles of similar heights."""
    rest = m % most
    whole = m - rest
    if not rest:
        return whole, []
    if whole and rest <= most // 2:
        return whole - most, [-(-(most + rest) // 2), (most + rest) // 2]
    return whole, [rest]


def sections(low: Lowering, m: Dim, most: int, stop: I32 | None, last: Sequence[int] = LAST) -> list[Section]:
    """How the rows are cut into tiles; stop: a local with the end of a part, which is a multiple of `most`, or m. last: as LAST."""
    if not isinstance(m, int):
        heights = [h for h in (most, *last) if h <= most]
        end = low.size(m) if stop is None else stop
        return [Section(h, end - (h - 1), False) for h in dict.fromkeys(heights)]
    end, rest = _heights(m, most)
    ends = [(most, end)] if end else []
    for h in rest:
        ends.append((h, end := end + h))
    return [Section(h, at if stop is None else minimum(stop, at), stop is None) for h, at in ends]


def row_turns(m: Dim, most: int) -> Dim:
    """The number of row blocks to divide among the parts of a run: the largest tiles, and the remaining tiles as one."""
    if not isinstance(m, int):
        return ceildiv(m, most)
    whole, rest = _heights(m, most)
    return whole // most + bool(rest)


def rows_outside(c: Contraction, in_place: bool) -> bool:
    """Whether the loop over rows is the outer one. The operand of the inner loop is reread, and should stay in cache."""
    m, n, k = c.rows, c.columns, c.depth
    if not in_place or not (isinstance(m, int) and isinstance(n, int)):
        return True
    return n <= m or not (isinstance(k, int) and 4 * m * k <= CACHE_BYTES)


def block_columns(c: Contraction, tile: RegisterTile) -> int | None:
    """If rows are the outer loop: the columns whose panels are used for all rows before the next panels; None for all.

    At 2048³, panels of one to eight times CACHE_BYTES bytes were equally fast; without blocks, the rate was half.
    """
    n, k = c.columns, c.depth
    if not isinstance(n, int) or not isinstance(k, int) or 4 * n * k <= CACHE_BYTES:
        return None
    panels = -(-n // tile.columns)
    blocks = min(panels, -(-4 * n * k // CACHE_BYTES))
    return -(-panels // blocks) * tile.columns


class Product:
    """Writes the loops over rows and panels of one product."""

    last: Sequence[int] = LAST

    def __init__(
        self, w: Writer, low: Lowering, edge: Lowering, c: Contraction, tile: RegisterTile, level: int, spill: Tree | None,
        across: Mapping[int, int] | None = None, accumulator: Expr = ACCUMULATOR, fours: bool = False,
    ) -> None:  # fmt: skip
        """low: lanes along n. edge: the same ports, scalar. level: loops open outside. spill: scratch for a tile. across: as
        `panels_across` says; None: tiles of any height span one panel. accumulator: what the store reads. fours: see Level."""
        self.w: Final = w
        self.low: Final = low
        self.edge: Final = edge
        self.c: Final = c
        self.tile: Final = tile
        self.level: Final = level
        self.spill: Final = spill
        self.across: Final = across or {}
        self.fours: Final = fours
        self.n: Final = low.size(c.columns)
        self.pieces: Final = column_pieces(c.kernel, c.store, c.n, c.columns)
        self.wide: Final = bool(self.pieces)
        # Only the values are vectorised, and only if no tile crosses the edge: they may load elements that do not exist.
        self.wide_values: Final = (
            isinstance(c.columns, int)
            and c.columns % tile.columns == 0
            and c.store.value.dtype is float32
            and lane_cost(c.kernel, [Reduce("value", "add", c.store.value)], c.n) is not None
        )
        self.row, self.column = w.i32(), w.i32()
        self.accumulator: Final = accumulator
        # What is spilled: an accumulator, or the value to store.
        self.spilled: Final = ACCUMULATOR if self.wide_values else accumulator
        floats = self.spilled.dtype is float32
        self.edge_row, self.edge_column, self.edge_value = w.i32(), w.i32(), w.f32() if floats else w.i32()
        self.rows: tuple[I32, I32] | None = None  # the part's range of rows, or
        self.panels: tuple[I32, I32] | None = None  # of columns
        self.b = w.i32()
        self.accumulators: Final[list[list[F32x4 | I32x4]]] = [
            [
                w.f32x4() if accumulator.dtype is float32 else w.i32x4()
                for _ in range(max(map(self._spanned, range(i + 1, tile.rows + 1))) * tile.columns // 4)
            ]
            for i in range(tile.rows)
        ]

    def _spanned(self, rows: int) -> int:
        """The number of panels that a tile with this many rows spans."""
        return self.across.get(rows, 1)

    def rows_outside(self, in_place: bool) -> bool:
        """Whether the loop over rows is the outer one; in_place: whether the feed reads rows in place."""
        return rows_outside(self.c, in_place)

    def turns(self, in_place: bool) -> list[Dim]:
        """How many turns the two loops have, the outer one first: what `share.choose_loop` chooses from."""
        both = [row_turns(self.c.rows, self.tile.rows), ceildiv(self.c.columns, self.tile.columns)]
        return both if self.rows_outside(in_place) else both[::-1]

    def write(self, feed: Feed, b: Tree, shared: int | None) -> None:
        """The whole product; `b` is the address of the first panel. shared: which loop the parts share, 0 the outer one."""
        w, tile = self.w, self.tile
        outside = self.rows_outside(feed.in_place)
        if shared is not None and (shared == 0) == outside:
            count = row_turns(self.c.rows, tile.rows)
            whole = count if isinstance(count, int) else None
            self.rows = divide(w, self.low, self.low.size(self.c.rows), tile.rows, whole)
        elif shared is not None:
            self.panels = divide(w, self.low, self.n, tile.columns)
        self._declare(outside)
        feed.start(self.rows)
        cuts = sections(self.low, self.c.rows, tile.rows, self.rows and self.rows[1], self.last)
        w.hoist([b, *(tree for cut in cuts for tree in self._roots(feed, cut.rows))], self.level)
        first, limit = self.panels or (I32.of(0), self.n)
        start = w.i32(w.value(b) + first * self.low.size(self.c.depth) * 4)
        if outside:
            with self._blocks(start, first, limit) as (first, limit):
                for rows in self._cut(cuts, feed, self.level + 1):
                    feed.prepare(rows)
                    w.set(self.b, start)
                    for panels, whole in self._panels(first, limit, self._spanned(rows)):
                        self._tile(feed, rows, panels, whole)
        else:
            for panels, whole in self._panels(first, limit, min((self._spanned(cut.rows) for cut in cuts), default=1)):
                for rows in self._cut(cuts, feed, self.level + 2):
                    w.set(self.b, start)
                    self._tile(feed, rows, panels, whole)
                w.set(start, self.b)

    def _roots(self, feed: Feed, rows: int) -> list[Tree]:
        return [
            *self._stores(rows, self._spanned(rows) * self.tile.columns // 4),
            *(tree for tree, _ in feed.addresses(rows)),
        ]

    def _declare(self, rows_outside: bool) -> None:
        first, second = self.level + 1, self.level + 2
        self.low.variable(self.c.m, self.row, first if rows_outside else second)
        self.low.variable(self.c.n, self.column, second if rows_outside else first)
        for i, line in enumerate(self.accumulators):
            for j, local in enumerate(line):
                self.low.accumulator(self.accumulator, local, self.level + 3, self._shift(i, j))
        self.edge.variable(self.c.m, self.edge_row, self.level + 3)
        self.edge.variable(self.c.n, self.edge_column, self.level + 4)
        self.edge.accumulator(self.spilled, self.edge_value, self.level + 4)

    def _shift(self, row: int, vector: int) -> Shift:
        return tuple((v, by) for v, by in ((self.c.m, row), (self.c.n, 4 * vector)) if by)

    def _cut(self, cuts: Sequence[Section], feed: Feed, level: int) -> Iterator[int]:
        """The loops over blocks of rows, by their heights."""
        self.w.set(self.row, self.rows[0] if self.rows else 0)
        for cut in cuts:
            with self.w.loop(self.row, cut.limit, cut.rows, sure=cut.sure):
                if level == self.level + 1:
                    self.w.hoist(self._roots(feed, cut.rows), level)
                yield cut.rows

    @contextmanager
    def _blocks(self, start: I32, first: I32, limit: I32) -> Iterator[tuple[I32, I32]]:
        """The loop over blocks of columns, with a block's first column and its end; `start`: its panels."""
        count = block_columns(self.c, self.tile)
        if count is None:
            yield first, limit
            return
        at, stop = self.w.i32(), self.w.i32()
        with self.w.loop(at, limit, count, start=first):
            self.w.set(stop, at + count)
            self.w.set(stop, minimum(stop, limit))
            yield at, stop
            self.w.set(start, self.b)

    def _panels(self, first: I32, limit: I32, across: int) -> Iterator[tuple[int, bool]]:
        """The loops over panels; yields the panels that a tile spans, and whether it surely does not cross the last column."""
        w, n, width = self.w, self.c.columns, self.tile.columns
        # A block of columns has at least one.
        sure = self.panels is None and isinstance(n, int) and n > 0
        # The panels of the last tile, or of any tile if a part or a block may end anywhere.
        rest = -(-n // width) % across if isinstance(n, int) and limit.known == n else min(across - 1, 1)
        if not rest:
            with w.loop(self.column, limit, across * width, start=first, sure=sure):
                yield across, False
            return
        with w.loop(self.column, limit - (across * width - 1), across * width, start=first):
            yield across, True
        with w.loop(self.column, limit, rest * width):
            yield rest, False

    # --- one tile

    def _tile(self, feed: Feed, rows: int, panels: int = 1, full: bool = False) -> None:
        self.sum(feed, rows, panels)
        self._epilogue(rows, panels, full)

    def pointers(self, feed: Feed, rows: int) -> list[I32]:
        """Locals with the address of the first k of each row."""
        return [self.w.i32(self.w.value(tree) + offset) for tree, offset in feed.addresses(rows)]

    def _starts(self, feed: Feed, rows: int) -> list[TilePlace]:
        """The first k of each row; rows at constant distances share a local."""
        first: dict[Tree, tuple[I32, int]] = {}
        places = []
        for tree, offset in feed.addresses(rows):
            if tree not in first or not 0 <= offset - first[tree][1] < MAX_BYTES_FROM_ONE_POINTER:
                first[tree] = self.w.i32(self.w.value(tree) + offset), offset
            pointer, start = first[tree]
            places.append(TilePlace(pointer, offset - start))
        return places

    def sum(self, feed: Feed, rows: int, panels: int = 1) -> None:
        """The accumulators of one tile, from the panels at `b`, which then is at their end."""
        w, depth, width = self.w, self.c.depth, 4 * self.tile.columns
        for local in (x for line in self.accumulators[:rows] for x in line[: panels * width // 16]):
            w.set(local, 0.0)
        with w.scope():
            places = self._starts(feed, rows)
            if isinstance(depth, int):
                runs = feed.runs or Runs(1, depth, 0)
                several = runs.count > 1
                with self._until(w.i32(self.b + depth * width)) if several else nullcontext():
                    self._run(places, feed.step, runs.length, panels)
                    for pointer in _pointers(places) if several else ():
                        w.add(pointer, runs.jump)
                if panels > 1:
                    w.add(self.b, (panels - 1) * depth * width)
            else:
                k, start = self.low.size(depth), w.i32(self.b)
                for count in dict.fromkeys((unrolled(places, self.fours, feed.step), 1)):
                    end = w.i32(start + (k & -count) * width)
                    with w.when(self.b.below(end)), self._until(end):
                        self._steps(places, feed.step, count)

    def _run(self, places: Sequence[TilePlace], step: int, length: int, panels: int) -> None:
        """The products of `length` neighbours in k."""
        if not length:
            return
        unroll = min(unrolled(places, self.fours, step), length)
        rest = length % unroll
        with self._until(self.w.i32(self.b + (length - rest) * 4 * self.tile.columns)):
            self._steps(places, step, unroll, panels)
        self._steps(places, step, rest, panels)

    @contextmanager
    def _until(self, end: I32) -> Iterator[None]:
        """Over k, while the pointer into the panel is below `end`; it runs at least once."""
        with self.w.repeat_while(self.b.below(end)):
            yield

    def _steps(self, places: Sequence[TilePlace], step: int, count: int, panels: int = 1) -> None:
        """`count` steps of k; the pointers are moved on."""
        if not count:
            return
        w, width, depth = self.w, self.tile.columns // 4, self.c.depth
        panel = 16 * width * depth if isinstance(depth, int) else 0  # bytes
        with w.scope():
            for turn, a in enumerate(broadcasts(w, places, count, self.fours, step)):
                b = [self.b.f32x4(i * panel + 16 * (turn * width + j)) for i in range(panels) for j in range(width)]
                # Besides the accumulators, registers hold the operand with fewer values in a step; the other one is loaded
                # value by value.
                held, passing = (b, a) if len(b) <= len(a) else (a, b)
                with w.scope():
                    kept = [w.local(value) for value in held]
                    one = w.f32x4()
                    for i, value in enumerate(passing):
                        w.set(one, value)
                        for j, local in enumerate(kept):
                            into = self.accumulators[i][j] if held is b else self.accumulators[j][i]
                            w.multiply_add(into, one, local)
        for pointer in _pointers(places):
            w.add(pointer, count * step)
        w.add(self.b, 16 * width * count)

    # --- the epilogue

    def _stores(self, rows: int, vectors: int) -> list[Tree]:
        if not self.wide:
            return []
        return [
            self.low.store(s.port, s.index, s.value, self._shift(i, j), 1)
            for _, s in self.pieces
            for i in range(rows)
            for j in range(vectors)
        ]

    def _epilogue(self, rows: int, panels: int = 1, full: bool = False) -> None:
        width = panels * self.tile.columns
        within = [stop for stop, _ in self.pieces[:-1] if isinstance(stop, int) and stop % 4]  # vectors
        if not self.wide:
            self._element_by_element(rows, width)
        elif within:
            crosses = reduce(or_, [self.column.below(stop) & (self.column + width - stop > 0) for stop in within])
            with self.w.when(crosses):
                self._element_by_element(rows, width)
                self.w.otherwise()
                self._by_vectors(rows, panels, full)
        else:
            self._by_vectors(rows, panels, full)

    def _by_vectors(self, rows: int, panels: int, full: bool) -> None:
        w, n, width = self.w, self.c.columns, panels * self.tile.columns
        if full or (isinstance(n, int) and n % self.tile.columns == 0):
            self._whole(rows, width // 4)
        else:
            with w.when(self.column <= self.n - width):
                self._whole(rows, width // 4)
                w.otherwise()
                if isinstance(n, int) and n % 4 == 0:
                    self._whole(rows, (n % self.tile.columns + width - self.tile.columns) // 4)
                else:
                    self._element_by_element(rows, width)

    def _whole(self, rows: int, vectors: int) -> None:
        for vector in range(vectors):
            self._vectors_of(self.pieces, rows, vector)

    def _vectors_of(self, pieces: Sequence[ColumnPiece], rows: int, vector: int) -> None:
        """Store one vector of each row, by the piece that it is in."""
        (stop, s), *rest = pieces
        with self.w.when(self.column < stop - 4 * vector) if rest else nullcontext():
            for i in range(rows):
                self.w.push(self.low.store(s.port, s.index, s.value, self._shift(i, vector), 1))
            if rest:
                self.w.otherwise()
                self._vectors_of(rest, rows, vector)

    def _element_by_element(self, rows: int, width: int) -> None:
        """Store a tile of `width` columns through scratch, element by element; columns beyond n are left out."""
        assert self.spill is not None
        w, s = self.w, self.c.store
        with w.scope():
            spill = w.value(self.spill)
            with w.scope():
                for i in range(rows):
                    for j in range(width // 4):
                        value = self.low.vector(s.value if self.wide_values else self.accumulator, self._shift(i, j))
                        w.put(spill, value, 4 * (i * width + 4 * j))
            end = w.i32(self.column + width)
            w.set(end, minimum(end, w.simple(self.n)))
            at = w.i32(spill)
            store = self.edge.store(s.port, s.index, self.spilled if self.wide_values else s.value)
            with w.loop(self.edge_row, self.row + rows, start=self.row, sure=True):
                with w.loop(self.edge_column, end, start=self.column, sure=True):
                    place = at + ((self.edge_column - self.column) << 2)
                    w.set(self.edge_value, place.f32() if self.spilled.dtype is float32 else place.load())
                    w.push(store)
                w.add(at, 4 * width)
