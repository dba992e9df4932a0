"""The register-tiled matrix product that matmul and convolution share.

A tile is `rows` × `columns` accumulators in registers. B comes as panels of `columns` columns, [panel][k][columns], the
last one filled up with zeros. A comes from Rows: read in place, or from a panel of a few rows written just before.
The epilogue is evaluated on the accumulators where they are; what sticks out at the right edge (and any epilogue that
does not go four lanes wide) is spilled to scratch and done one element at a time; where only its places are no four
neighbours, its values are spilled. A sum is one accumulator's, in the
order of k, whatever the tiles and blocks: neither may change a result's bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

from singe.extension import Dim, Expr, Kernel, Reduce, Store, ceildiv, float32, scalar

from ..encode import OPS, Body, f32x4, get_local, i32, memory, ops
from .lower import Lowering, Shift
from .nest import lane_cost
from .share import divide, least
from .writer import Node, Writer

ACCUMULATOR: Final = scalar.var("a0", float32)
REGISTERS: Final = 15
"""Vector registers that V8 has to give on x64; what needs more is put into memory at each step."""
CACHED: Final = 1 << 20
"""Bytes of an operand that stay in a core's cache while the other one passes by."""
STEPS: Final = 4
"""Steps of k in a turn of the innermost loop."""
STEPS_LONG, TALL, LONG = 8, 4, 128
"""Those of a product's full tiles, of so many rows, where k is so long: each turn moves a pointer for each row on, which is
up to a twelfth of its time, but steps take bytes."""


@dataclass(frozen=True)
class Tile:
    """Accumulators of a tile: rows by columns (a multiple of 4)."""

    rows: int
    columns: int


RELAXED: Final = Tile(6, 8)
SIMD: Final = Tile(4, 8)
FEW_ROWS: Final = {1: Tile(1, 32), 2: Tile(2, 16), 3: Tile(3, 12)}
FEW_COLUMNS: Final = Tile(8, 4)
"""Tiles, as measured: accumulators, what is held and what passes through (and, without relaxed SIMD, a product) must fit
the registers. At least 8 accumulators hide the latency of an addition."""


def choose_tile(m: Dim, n: Dim, relaxed: bool) -> Tile:
    """The tile for a product; its columns are the same at both levels, as they share packed weights."""
    if isinstance(m, int) and m in FEW_ROWS:
        return FEW_ROWS[m]
    if isinstance(n, int) and n <= 4:
        return FEW_COLUMNS
    return RELAXED if relaxed else SIMD


@dataclass(frozen=True)
class Section:
    """Rows done with tiles of one height, up to a limit (code that pushes it)."""

    rows: int
    limit: bytes
    sure: bool


def _heights(m: int, most: int) -> tuple[int, list[int]]:
    """Rows in tiles of the most, and the heights of the tiles below: few, and none much lower than the others."""
    rest = m % most
    whole = m - rest
    if not rest:
        return whole, []
    if whole and rest <= most // 2:
        return whole - most, [-(-(most + rest) // 2), (most + rest) // 2]
    return whole, [rest]


def sections(low: Lowering, m: Dim, most: int, stop: int | None) -> list[Section]:
    """How the rows are cut into tiles; stop: a local with the end of a part of them, a multiple of `most` or m."""
    if not isinstance(m, int):
        heights = [h for h in (most, 2, 1) if h <= most]
        end = low.dim_code(m) if stop is None else get_local(stop)
        return [Section(h, end + i32(h - 1) + ops("i32.sub"), False) for h in dict.fromkeys(heights)]
    end, rest = _heights(m, most)
    ends = [(most, end)] if end else []
    for h in rest:
        ends.append((h, end := end + h))
    return [Section(h, i32(at) if stop is None else least(stop, at), stop is None) for h, at in ends]


def row_turns(m: Dim, most: int) -> Dim:
    """How many blocks of rows the parts of a run are given: tiles of the most, and what is below them as one."""
    if not isinstance(m, int):
        return ceildiv(m, most)
    whole, rest = _heights(m, most)
    return whole // most + bool(rest)


def rows_outside(extents: tuple[Dim, Dim, Dim], in_place: bool) -> bool:
    """Whether panels are read for each block of rows, or all rows for each panel: the smaller one should stay in cache."""
    m, n, k = extents
    if not in_place or not (isinstance(m, int) and isinstance(n, int)):
        return True
    return n <= m or not (isinstance(k, int) and 4 * m * k <= CACHED)


def block_columns(extents: tuple[Dim, Dim, Dim], tile: Tile) -> int | None:
    """How many columns' panels are read again and again before the next ones are, rows outside; None: all.

    Any number between one and eight times CACHED was as good at 2048³, where without blocks half of the rate is lost.
    """
    _, n, k = extents
    if not isinstance(n, int) or not isinstance(k, int) or 4 * n * k <= CACHED:
        return None
    panels = -(-n // tile.columns)
    blocks = min(panels, -(-4 * n * k // CACHED))
    return -(-panels // blocks) * tile.columns


def turns(extents: tuple[Dim, Dim, Dim], tile: Tile, in_place: bool) -> list[Dim]:
    """How many turns a product's two loops have, the outer one first: what `share.choose` chooses from."""
    both = [row_turns(extents[0], tile.rows), ceildiv(extents[1], tile.columns)]
    return both if rows_outside(extents, in_place) else both[::-1]


@dataclass(frozen=True)
class Runs:
    """A row of A as `count` runs of `length` elements, `jump` bytes from the end of one to the next."""

    count: int
    length: int
    jump: int


class Rows(Protocol):
    """Where A's rows come from."""

    in_place: bool  # read where they are; otherwise `prepare` writes a panel for each block of rows
    step: int  # bytes from one k to the next
    runs: Runs | None = None  # where k is no single run

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        """The address of k = 0 of each row of the block at the present m, as (node, constant offset)."""
        ...

    def start(self, part: tuple[int, int] | None) -> None:
        """Write what all the rows of a part need; part: locals with its range of rows, None: all."""

    def prepare(self, rows: int) -> None:
        """Write the panel of the block at the present m."""


class Product:
    """Writes the loops over rows and panels of one matrix product."""

    def __init__(
        self, writer: Writer, low: Lowering, edge: Lowering, kernel: Kernel, coordinates: tuple[Expr, Expr],
        extents: tuple[Dim, Dim, Dim], tile: Tile, level: int, spill: Node | None,
    ) -> None:  # fmt: skip
        """low: lanes along n. edge: the same ports, scalar. level: loops open outside. spill: where a tile may be put."""
        self.writer: Final = writer
        self.body: Final[Body] = writer.body
        self.low: Final = low
        store = kernel.stages[-1]
        assert isinstance(store, Store)
        self.store: Final = store
        self.row, self.column = coordinates
        self.m, self.n, self.k = extents
        self.tile: Final = tile
        self.level: Final = level
        self.spill: Final = spill
        column = coordinates[1]
        self.wide: Final = lane_cost(kernel, [store], column) is not None
        # Values alone go four columns at a time only where no tile sticks out: they may load what is not there.
        self.wide_values: Final = (
            isinstance(self.n, int)
            and self.n % tile.columns == 0
            and store.value.dtype is float32
            and lane_cost(kernel, [Reduce("value", "add", store.value)], column) is not None
        )
        self.m_local, self.n_local = self.body.local("i32"), self.body.local("i32")
        self.edge: Final = edge
        self.edge_locals: Final = (self.body.local("i32"), self.body.local("i32"), self.body.local("f32"))
        self.rows: tuple[int, int] | None = None  # locals: the part's range of rows, or
        self.panels: tuple[int, int] | None = None  # of columns
        self.b, self.b_end = self.body.local("i32"), self.body.local("i32")
        self.accumulators: Final = [
            [self.body.local("v128") for _ in range(tile.columns // 4)] for _ in range(tile.rows)
        ]

    def write(self, a: Rows, b: Node, shared: int | None) -> None:
        """The whole product; `b` is the address of the first panel. shared: which loop the parts share, 0 the outer one."""
        outside = rows_outside((self.m, self.n, self.k), a.in_place)
        self._share(shared, outside)
        self._declare(outside)
        a.start(self.rows)
        cuts = sections(self.low, self.m, self.tile.rows, self.rows and self.rows[1])
        self.writer.hoist([b, *(node for cut in cuts for node in self._roots(a, cut.rows))], self.level)
        start = self.body.local("i32")
        self.writer.push(b)
        if self.panels:
            self.body.get(self.panels[0])
            self.body.add(self.low.dim_code(self.k) + ops("i32.mul") + i32(4) + ops("i32.mul i32.add"))
        self.body.set(start)
        first, limit = map(get_local, self.panels) if self.panels else (i32(0), self.low.dim_code(self.n))
        sure = self.panels is None and isinstance(self.n, int) and self.n > 0
        if outside:
            with self._blocks(start, first, limit, sure) as (first, limit):
                for rows in self._cut(cuts, a, self.level + 1):
                    a.prepare(rows)
                    self.body.get(start)
                    self.body.set(self.b)
                    with self._panels(first, limit, sure):
                        self._tile(a, rows)
        else:
            with self._panels(first, limit, sure):
                for rows in self._cut(cuts, a, self.level + 2):
                    self.body.get(start)
                    self.body.set(self.b)
                    self._tile(a, rows)
                self.body.get(self.b)
                self.body.set(start)
        self.body.free(start)

    def _roots(self, a: Rows, rows: int) -> list[Node]:
        return [*self._stores(rows, self.tile.columns // 4), *(node for node, _ in a.addresses(rows))]

    def _share(self, shared: int | None, outside: bool) -> None:
        """The part's range of rows or of columns."""
        if shared is None:
            return
        if (shared == 0) == outside:
            count = row_turns(self.m, self.tile.rows)
            count = count if isinstance(count, int) else None
            self.rows = divide(self.body, self.low, self.low.dim_code(self.m), self.tile.rows, count)
        else:
            self.panels = divide(self.body, self.low, self.low.dim_code(self.n), self.tile.columns)

    def _declare(self, rows_outside: bool) -> None:
        first, second = self.level + 1, self.level + 2
        self.low.variable(self.row, self.m_local, first if rows_outside else second)
        self.low.variable(self.column, self.n_local, second if rows_outside else first)
        for i, line in enumerate(self.accumulators):
            for j, local in enumerate(line):
                self.low.accumulator(ACCUMULATOR, local, self.level + 3, True, self._shift(i, j))
        self.edge.variable(self.row, self.edge_locals[0], self.level + 3)
        self.edge.variable(self.column, self.edge_locals[1], self.level + 4)
        self.edge.accumulator(ACCUMULATOR, self.edge_locals[2], self.level + 4, False)

    def _shift(self, row: int, vector: int) -> Shift:
        return tuple((v, by) for v, by in ((self.row, row), (self.column, 4 * vector)) if by)

    def _cut(self, cuts: Sequence[Section], a: Rows, level: int) -> Iterator[int]:
        """The loops over blocks of rows, by their heights."""
        self.body.add(get_local(self.rows[0]) if self.rows else i32(0))
        self.body.set(self.m_local)
        for cut in cuts:
            with self.writer.loop(self.m_local, cut.limit, cut.rows, cut.sure):
                if level == self.level + 1:
                    self.writer.hoist(self._roots(a, cut.rows), level)
                yield cut.rows

    @contextmanager
    def _blocks(self, start: int, first: bytes, limit: bytes, sure: bool) -> Iterator[tuple[bytes, bytes]]:
        """The loop over blocks of columns, with the code for a block's first and for its end; `start`: of its panels."""
        count = block_columns((self.m, self.n, self.k), self.tile)
        if count is None:
            yield first, limit
            return
        body = self.body
        at, stop = body.local("i32"), body.local("i32")
        body.add(first)
        body.set(at)
        with self.writer.loop(at, limit, count, sure):
            body.get(at)
            body.add(i32(count) + OPS["i32.add"])
            body.tee(stop)
            body.add(limit)
            body.get(stop)
            body.add(limit + ops("i32.lt_s select"))
            body.set(stop)
            yield get_local(at), get_local(stop)
            body.get(self.b)
            body.set(start)
        body.free(at, stop)

    @contextmanager
    def _panels(self, first: bytes, limit: bytes, sure: bool) -> Iterator[None]:
        self.body.add(first)
        self.body.set(self.n_local)
        with self.writer.loop(self.n_local, limit, self.tile.columns, sure):
            yield

    # --- one tile

    def _tile(self, a: Rows, rows: int) -> None:
        self.sum(a, rows)
        self._epilogue(rows)

    def sum(self, a: Rows, rows: int) -> None:
        """The accumulators of one tile, from the panel at `b`, which then is at the panel's end."""
        body = self.body
        accumulators = self.accumulators[:rows]
        for local in (x for line in accumulators for x in line):
            body.add(f32x4(0.0))
            body.set(local)
        places = a.addresses(rows)
        pointers = [body.local("i32") for _ in places]
        for (node, offset), local in zip(places, pointers, strict=True):
            self.writer.push(node)
            body.add(i32(offset) + OPS["i32.add"])
            body.set(local)
        width = 4 * self.tile.columns
        if isinstance(self.k, int):
            runs = a.runs or Runs(1, self.k, 0)
            stop = body.local("i32")
            body.get(self.b)
            body.add(i32(self.k * width) + OPS["i32.add"])
            body.set(stop)
            long = rows == self.tile.rows >= TALL and runs.length >= LONG
            unroll = min(STEPS_LONG if long else STEPS, max(1, runs.length))
            rest = runs.length % unroll
            with self._loop(stop) if runs.count > 1 else nullcontext():
                body.get(self.b)
                body.add(i32((runs.length - rest) * width) + OPS["i32.add"])
                body.set(self.b_end)
                if runs.length:
                    with self._loop(self.b_end):
                        self._turns(pointers, a.step, unroll)
                    self._turns(pointers, a.step, rest)
                if runs.count > 1:
                    for pointer in pointers:
                        body.increase(pointer, runs.jump)
            body.free(stop)
        else:
            body.get(self.b)
            body.add(self.low.dim_code(self.k) + i32(width) + ops("i32.mul i32.add"))
            body.set(self.b_end)
            body.get(self.b, self.b_end)
            body.op("i32.lt_u")
            with body.when(), self._loop(self.b_end):
                self._turns(pointers, a.step, 1)
        body.free(*pointers)

    @contextmanager
    def _loop(self, end: int) -> Iterator[None]:
        """Over k, until the pointer into the panel is at `end`; it runs at least once."""
        body = self.body
        with body.repeat():
            yield
            body.get(self.b, end)
            body.op("i32.lt_u")

    def _turns(self, pointers: Sequence[int], step: int, count: int) -> None:
        """`count` steps of k; the pointers are moved on."""
        if not count:
            return
        body = self.body
        width = self.tile.columns // 4
        for turn in range(count):
            a = [(p, memory("v128.load32_splat", turn * step)) for p in pointers]
            b = [(self.b, memory("v128.load", 16 * (turn * width + j))) for j in range(width)]
            # Registers hold the fewer ones of a turn, beside the accumulators; the others pass through one register.
            held, passing = (b, a) if len(b) <= len(a) else (a, b)
            locals_ = [body.local("v128") for _ in held]
            one = body.local("v128")
            for (pointer, load), local in zip(held, locals_, strict=True):
                body.get(pointer)
                body.add(load)
                body.set(local)
            for i, (pointer, load) in enumerate(passing):
                body.get(pointer)
                body.add(load)
                body.set(one)
                for j, local in enumerate(locals_):
                    body.get(one, local)
                    body.multiply_add(self.accumulators[i][j] if held is b else self.accumulators[j][i])
            body.free(one, *locals_)
        for pointer in pointers:
            body.increase(pointer, count * step)
        body.increase(self.b, 16 * width * count)

    # --- the epilogue

    def _stores(self, rows: int, vectors: int) -> list[Node]:
        if not self.wide:
            return []
        s = self.store
        return [
            self.low.store(s.port, s.index, s.value, self._shift(i, j), True)
            for i in range(rows)
            for j in range(vectors)
        ]

    def _epilogue(self, rows: int) -> None:
        width = self.tile.columns
        vectors = width // 4
        if not self.wide:
            self._element_by_element(rows)
            return
        if isinstance(self.n, int) and self.n % width == 0:
            self._whole(rows, vectors)
            return
        self.body.get(self.n_local)
        self.body.add(self.low.dim_code(self.n) + i32(width) + ops("i32.sub i32.le_s"))
        with self.body.when():
            with self.writer.scope():
                self._whole(rows, vectors)
            self.body.otherwise()
            if isinstance(self.n, int) and self.n % 4 == 0:
                with self.writer.scope():
                    self._whole(rows, self.n % width // 4)
            else:
                self._element_by_element(rows)

    def _whole(self, rows: int, vectors: int) -> None:
        for node in self._stores(rows, vectors):
            self.writer.push(node)

    def _element_by_element(self, rows: int) -> None:
        """The tile through scratch; columns beyond n are left out."""
        assert self.spill is not None
        body, width = self.body, self.tile.columns
        with self.writer.scope():
            for i in range(rows):
                for j in range(width // 4):
                    self.writer.push(self.spill)
                    self.writer.push(
                        self.low.vector(self.store.value if self.wide_values else ACCUMULATOR, self._shift(i, j))
                    )
                    body.add(memory("v128.store", 4 * (i * width + 4 * j)))
        row, column, value = self.edge_locals
        stop, end, at = body.local("i32"), body.local("i32"), body.local("i32")
        for local, start, count in ((stop, self.m_local, i32(rows)), (end, self.n_local, i32(width))):
            body.get(start)
            body.add(count + OPS["i32.add"])
            body.set(local)
        # end = min(n0 + width, n)
        body.get(end)
        body.add(self.low.dim_code(self.n))
        body.get(end)
        body.add(self.low.dim_code(self.n) + ops("i32.lt_s select"))
        body.set(end)
        self.writer.push(self.spill)
        body.set(at)
        body.get(self.m_local)
        body.set(row)
        done = ACCUMULATOR if self.wide_values else self.store.value
        store = self.edge.store(self.store.port, self.store.index, done)
        with self.writer.scope(), self.writer.loop(row, get_local(stop), 1, True):
            body.get(self.n_local)
            body.set(column)
            with self.writer.loop(column, get_local(end), 1, True):
                body.get(at)
                body.get(column, self.n_local)
                body.add(ops("i32.sub") + i32(2) + ops("i32.shl i32.add") + memory("f32.load"))
                body.set(value)
                self.writer.push(store)
            body.increase(at, 4 * width)
        body.free(stop, end, at)
