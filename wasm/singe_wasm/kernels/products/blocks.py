"""The Routine "matmul_blocks": the template of contraction.py with weights of 4 or 8 bits, which stay packed in memory.

A panel of B is the words of its columns, [word][column], and the panels of scales and zeros are [block][column]. A tile of
few rows unpacks a word's weights in registers, for all of its rows: the sum of a block is scaled and added to the tile's
sums. For many rows, the panels of a few columns are unpacked into scratch, as floats, and multiplied as any product is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from singe.extension import (
    Contraction,
    Expr,
    Kernel,
    PackedPlaces,
    Packer,
    Port,
    Reduce,
    Routine,
    affine,
    float32,
    scalar,
)

from ...code.encode import Function
from ...code.values import I32, F32x4, I32x4, minimum
from ...code.writer import Tree, Writer
from ...levels import Level
from ..lower import SizeParameters
from .contraction import ProductSchedule, Template, schedule
from .feeds import Evaluated, Feed, InPlace, panels, places_in_panels
from .product import Product, RegisterTile, panels_across

MAX_ROWS_UNPACKED_PER_TILE: Final = 12
"""The most rows for which weights are unpacked for each tile."""
ACROSS: Final = {1: 16, 2: 16}
"""A small number of rows ↦ the columns of their tile."""
UNPACKED_PANEL_BYTES: Final = 1 << 19
"""Bytes of panels that are unpacked at once."""
BITS_PER_WORD: Final = 32


@dataclass(frozen=True)
class BlockSchedule:
    """The schedule of a product of floats with the same rows and store, and where the weights are.

    zero: the port of the zeros, or the one number. in_bytes: of rows in integers, whether eight bits count.
    """

    floats: ProductSchedule
    weights: int
    scale: int
    zero: int | float
    bits: int
    block: int
    in_bytes: bool = False

    @property
    def each(self) -> int:
        """Weights of a word."""
        return BITS_PER_WORD // self.bits

    @property
    def depth(self) -> int:
        depth = self.floats.c.depth
        assert isinstance(depth, int)
        return depth

    @property
    def words(self) -> int:
        """Words of a column."""
        return -(-self.depth // self.each)

    @property
    def blocks(self) -> int:
        """Blocks of a column."""
        return -(-self.depth // self.block)

    @property
    def unpacked(self) -> int:
        """The columns whose panels are unpacked at once."""
        width = self.floats.columns
        return max(UNPACKED_PANEL_BYTES // (4 * width * self.depth), 1) * width

    @property
    def scaled_row(self) -> int:
        """Bytes of a row that is scaled for unpacking; 0 if there is none."""
        rows = self.floats.c.rows
        return 4 * (self.depth + self.blocks) if rows == 1 or not isinstance(rows, int) else 0

    def pack(self, contents: np.ndarray) -> np.ndarray:
        """Words, scales or zeros as panels."""
        return panels(contents, self.floats.columns)

    @property
    def packers(self) -> Mapping[int, Packer]:
        return dict.fromkeys(self._rows, self.pack)

    @property
    def places(self) -> Mapping[int, PackedPlaces]:
        across = self.floats.c.columns
        assert isinstance(across, int)
        return {k: places_in_panels(rows, across, self.floats.columns) for k, rows in self._rows.items()}

    @property
    def _rows(self) -> Mapping[int, int]:
        """The ports that are packed ↦ their rows."""
        zero = {self.zero: self.blocks} if isinstance(self.zero, int) else {}
        return {self.weights: self.words, self.scale: self.blocks, **zero}


def schedule_blocks(routine: Routine, constants: Collection[int]) -> BlockSchedule | None:
    """How the template computes the Routine; None if it cannot."""
    kernel = routine.kernel
    first = kernel.stages[0]
    if not isinstance(first, Reduce) or first.value.word != "mul":
        return None
    x, weight = first.value.args
    found = _ports(weight)
    if found is None:
        return None
    w, scale, zero = found
    ports = {w, scale, *((zero,) if isinstance(zero, int) else ())}
    rest = [x, *(e for e in kernel.roots[1:])]
    strays = any(e.word == "load" and e.value in ports for e in scalar.postorder(rest))
    n = kernel.grid[-1]
    depth = kernel.inner[0]
    if strays or not ports <= set(constants) or not isinstance(n, int) or not isinstance(depth, int) or 0 in (n, depth):
        return None
    k, column = kernel.inner_vars[0], kernel.grid_vars[-1]
    ports_of_floats = tuple(Port(float32) if i == w else p for i, p in enumerate(kernel.ports))
    product = replace(first, value=x * scalar.load(w, affine.flatten((k, column), (depth, n)), float32))
    twin = Kernel(ports_of_floats, kernel.grid, kernel.inner, (product, *kernel.stages[1:]), kernel.name)
    floats = schedule(Routine("matmul", twin), constants)
    if floats is None or not floats.packed or floats.b_batch:
        return None
    feed = Evaluated(floats.c, {}) if isinstance(floats.feed, InPlace) and floats.feed.step != 4 else floats.feed
    floats = replace(floats, as_open=True, feed=feed)
    made = BlockSchedule(floats, w, scale, zero, routine.facts["bits"], routine.facts["block"])
    panels = 4 * made.unpacked * depth if _many(made) else 0
    return replace(made, floats=replace(floats, spare=panels + made.scaled_row))


def _ports(weight: Expr) -> tuple[int, int, int | float] | None:
    """The ports of (q − zero) · scale: of the words, the scales, and the zeros or the one number."""
    if weight.word != "mul" or weight.args[1].word != "load":
        return None
    centred, scale = weight.args
    if centred.word == "sub":
        number, zero = centred.args
    else:
        number, zero = centred, scalar.const(0.0, float32)
    loads = {e.value for e in scalar.postorder([number]) if e.word == "load"}
    if len(loads) != 1 or zero.word not in ("load", "const"):
        return None
    return loads.pop(), scale.value, zero.value


def _many(s: BlockSchedule) -> bool:
    """Whether there may be more than a few rows."""
    rows = s.floats.c.rows
    return not isinstance(rows, int) or rows > MAX_ROWS_UNPACKED_PER_TILE


def print_blocks(s: BlockSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled Routine."""
    rows = s.floats.c.rows
    if isinstance(rows, int):
        return _Blocks(s, sizes, level, rows <= MAX_ROWS_UNPACKED_PER_TILE).function()
    w = s.floats.begin(sizes)
    few = _Blocks(s, sizes, level, True, w)
    with w.when(few.low.size(rows) <= MAX_ROWS_UNPACKED_PER_TILE):
        few.write()
        w.otherwise()
        _Blocks(s, sizes, level, False, w).write()
    return w.finish()


class BlockTemplate(Template):
    """What the templates with packed weights share."""

    def __init__(self, s: BlockSchedule, sizes: SizeParameters, level: Level, w: Writer | None = None) -> None:
        self.blocks: Final = s
        super().__init__(s.floats, sizes, level, w)


class _Blocks(BlockTemplate):
    """few: whether weights are unpacked for each tile."""

    def __init__(
        self, s: BlockSchedule, sizes: SizeParameters, level: Level, few: bool, w: Writer | None = None
    ) -> None:
        self.few: Final = few
        super().__init__(s, sizes, level, w)

    def make_product(self) -> Product:
        return (_FewRowsProduct if self.few else _ManyRows)(self)

    def make_feed(self) -> Feed:
        feed = super().make_feed()
        return _ScaledRow(self.blocks, feed).bound(self) if self.few and self.blocks.scaled_row else feed


class _ScaledRow(Feed):
    """The one row of a tile with its elements divided by the powers of two by which a word's weights are too large where they
    are not shifted, and behind each block the sum of its elements; other rows as they are."""

    in_place = False

    def __init__(self, s: BlockSchedule, floats: Feed) -> None:
        super().__init__(floats.c, floats.facts)
        self._schedule, self._floats = s, floats

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        s = self._schedule
        if rows > 1:
            return self._floats.addresses(rows)
        return [(self.job.low.scratch(s.floats.scratch - s.scaled_row), 0)]

    def start(self, part: tuple[I32, I32] | None) -> None:
        self._floats.start(part)

    def prepare(self, rows: int) -> None:
        self._floats.prepare(rows)
        if rows > 1:
            return
        w, s = self.job.w, self._schedule
        ((to, place),), ((source, offset),) = self.addresses(1), self._floats.addresses(1)
        w.call(f"scaled_for_{s.bits}_bits", w.value(to) + place, w.value(source) + offset, s.depth, s.block)


class BlockProduct(Product):
    """The walk along the packed weights of some columns."""

    def __init__(self, job: BlockTemplate, c: Contraction, tile: RegisterTile, across: Mapping[int, int]) -> None:
        spill, fours = job.low.scratch(0), job.level.fours
        super().__init__(job.w, job.low, job.edge, c, tile, job.depth, spill, across, fours=fours)
        self.job: Final = job
        self.s: Final = job.blocks
        self.width: Final = self.tile.columns  # of a panel
        self.scale, self.zero = self.w.i32(), self.w.i32()

    def begin(self, words: I32, column: I32) -> None:
        """Set the pointers to the panels of a column, a multiple of the width."""
        w, s, low = self.w, self.s, self.job.low
        w.set(words, w.value(low.pointer(s.weights)) + column * (4 * s.words))
        w.set(self.scale, w.value(low.pointer(s.scale)) + column * (4 * s.blocks))
        if isinstance(s.zero, int):
            w.set(self.zero, w.value(low.pointer(s.zero)) + column * (4 * s.blocks))

    def each_block(self, words: I32, write: Callable[[int], None]) -> None:
        """`write` for each block, with the number of its weights; it moves the pointer to the words."""
        w, s = self.w, self.s
        whole, rest = divmod(s.depth, s.block)

        def block(count: int) -> None:
            with w.scope():
                write(count)
            for pointer in (self.scale, self.zero) if isinstance(s.zero, int) else (self.scale,):
                w.add(pointer, 4 * self.width)

        if whole:
            with w.repeat_while(words.below(w.i32(words + whole * s.block // s.each * 4 * self.width))):
                block(s.block)
        if rest:
            block(rest)

    def _each_word(self, words: I32, count: int, write: Callable[[int], None]) -> None:
        """`write` for each word of a block, with the number of its weights."""
        w, s = self.w, self.s
        whole, rest = divmod(count, s.each)
        if whole:
            with w.repeat_while(words.below(w.i32(words + whole * 4 * self.width))):
                write(s.each)
                w.add(words, 4 * self.width)
        if rest:
            write(rest)
            w.add(words, 4 * self.width)

    def zeros(self, offsets: Sequence[int]) -> Sequence[F32x4]:
        """The zeros of a block, by the places of the vectors."""
        if not isinstance(self.s.zero, int):
            return [F32x4.of(self.s.zero)] * len(offsets)
        return [self.w.local(self.zero.f32x4(at)) for at in offsets]

    def _number(self, word: I32x4, place: int, zero: F32x4) -> F32x4:
        """q − zero of the weights at a place of a word."""
        bits = self.s.bits
        return ((word >> bits * place if place else word) & (1 << bits) - 1).as_floats() - zero


class _FewRowsProduct(BlockProduct):
    """Weights are unpacked in registers."""

    def __init__(self, job: _Blocks) -> None:
        c, tile = replace(job.c, depth=job.blocks.words), job.s.tile(job.level.relaxed)
        super().__init__(job, c, tile, panels_across(c, tile, ACROSS))
        self.sums: Final = [[self.w.f32x4() for _ in line] for line in self.accumulators]

    def _places(self, vectors: int, rows: int) -> list[int]:
        """Bytes from the first panel's words, or scales, to the vectors of a tile; a panel has that many rows."""
        each = self.width // 4
        return [(j // each * rows * each + j % each) * 16 for j in range(vectors)]

    def sum(self, feed: Feed, rows: int, panels: int = 1) -> None:
        w, s = self.w, self.s
        vectors = panels * self.width // 4
        for local in (x for line in self.accumulators[:rows] for x in line[:vectors]):
            w.set(local, 0.0)
        with w.scope():
            pointers = self.pointers(feed, rows)
            self.begin(self.b, self.column)
            self.each_block(self.b, lambda count: self._block(pointers, vectors, count))
        if panels > 1:
            w.add(self.b, (panels - 1) * s.words * 4 * self.width)

    def _block(self, pointers: Sequence[I32], vectors: int, count: int) -> None:
        w, places = self.w, self._places(vectors, self.s.blocks)
        sums = [line[:vectors] for line in self.sums[: len(pointers)]]
        for local in (x for line in sums for x in line):
            w.set(local, 0.0)
        if len(sums) == 1:
            self._each_word(self.b, count, lambda inside: self._word(pointers[0], sums[0], inside))
            whole = w.local(pointers[0].f32x4(0, "v128.load32_splat"))
            w.add(pointers[0], 4)
            for into, zero in zip(sums[0], self.zeros(places), strict=True):
                w.set(into, into - zero * whole)
        else:
            zeros = self.zeros(places)
            self._each_word(self.b, count, lambda inside: self._rows(pointers, sums, zeros, inside))
        for j, at in enumerate(places):
            scale = w.local(self.scale.f32x4(at))
            for total, line in zip(self.accumulators, sums, strict=False):
                w.multiply_add(total[j], line[j], scale)

    def _word(self, pointer: I32, sums: Sequence[F32x4], count: int) -> None:
        """The products of a word's weights, without their zeros, and a scaled row's elements. The weights of half a word are
        not shifted."""
        w, bits = self.w, self.s.bits
        half = self.s.each // 2
        with w.scope():
            words = [w.local(self.b.i32x4(at)) for at in self._places(len(sums), self.s.words)]
            one = w.f32x4()
            for turn in range(count):
                w.set(one, pointer.f32x4(4 * turn, "v128.load32_splat"))
                for into, word in zip(sums, words, strict=True):
                    if turn == half:
                        w.set(word, word >> bits * half)
                    number = word & ((1 << bits) - 1) << bits * (turn % half)
                    w.multiply_add(into, number.as_floats(), one)
        w.add(pointer, 4 * count)

    def _rows(
        self, pointers: Sequence[I32], sums: Sequence[Sequence[F32x4]], zeros: Sequence[F32x4], count: int
    ) -> None:
        """The products of a word's weights and several rows' elements."""
        w = self.w
        with w.scope():
            words = [w.local(self.b.i32x4(at)) for at in self._places(len(zeros), self.s.words)]
            for turn in range(count):
                with w.scope():
                    held = [w.local(self._number(word, turn, zero)) for word, zero in zip(words, zeros, strict=True)]
                    one = w.f32x4()
                    for pointer, line in zip(pointers, sums, strict=True):
                        w.set(one, pointer.f32x4(4 * turn, "v128.load32_splat"))
                        for into, weight in zip(line, held, strict=True):
                            w.multiply_add(into, weight, one)
        for pointer in pointers:
            w.add(pointer, 4 * count)


class _ManyRows(BlockProduct):
    """The panels of a few columns are unpacked, then multiplied by all rows."""

    def __init__(self, job: _Blocks) -> None:
        super().__init__(job, job.c, job.s.tile(job.level.relaxed), {})

    def rows_outside(self, in_place: bool) -> bool:
        return True

    @contextmanager
    def _blocks(self, start: I32, first: I32, limit: I32) -> Iterator[tuple[I32, I32]]:
        w = self.w
        at, stop = w.i32(), w.i32()
        with w.loop(at, limit, self.s.unpacked, start=first):
            w.set(stop, at + self.s.unpacked)
            w.set(stop, minimum(stop, limit))
            w.set(start, w.value(self._unpacked()))
            self._unpack(start, at, stop)
            yield at, stop

    def _unpacked(self) -> Tree:
        """The address of the unpacked panels."""
        return self.job.low.scratch(self.s.floats.scratch - self.s.floats.spare)

    def _unpack(self, to: I32, first: I32, limit: I32) -> None:
        """Unpack the panels of some columns."""
        w, places = self.w, range(0, 4 * self.width, 16)
        with w.scope():
            words, column, out = w.i32(), w.i32(), w.i32(to)

            def block(count: int) -> None:
                scales = [w.local(self.scale.f32x4(at)) for at in places]
                zeros = self.zeros(places)

                def word(inside: int) -> None:
                    held = [w.local(words.i32x4(at)) for at in places]
                    for turn in range(inside):
                        for at, one, zero, scale in zip(places, held, zeros, scales, strict=True):
                            w.store(out, self._number(one, turn, zero) * scale, turn * 4 * self.width + at)
                    w.add(out, inside * 4 * self.width)

                self._each_word(words, count, word)

            with w.loop(column, limit, self.width, start=first):
                self.begin(words, column)
                self.each_block(words, block)
