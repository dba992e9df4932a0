"""The Routine "matmul_blocks_int16": the template of blocks.py with rows in integers of 16 bits.

Each block of rows is quantised into records: for each block of the weights the row's integers, in the order of the weights
in the halves of a word, and their sum times the middle of the weights' range; then the row's step. A word of a column,
shifted and masked, is two weights of 16 bits, which one instruction multiplies by two integers of a record, and adds. The
sum of a block is an integer; it is scaled and added to the tile's sums in floats.

With 8 columns to a tile, all that the inner loop uses stays in registers. The rows of a tile share the unpacked weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from singe.extension import Kernel, Reduce, Routine, Store, scalar, wide_step_of

from ...code.encode import Function, v128
from ...code.values import I32, F32x4, I32x4
from ...code.writer import Tree
from ...levels import Level
from ..lower import SizeParameters
from .blocks import BlockProduct, BlockSchedule, BlockTemplate, schedule_blocks
from .feeds import Evaluated, Feed, InPlace
from .product import ACCUMULATOR, RegisterTile, TilePlace, broadcasts

ROWS: Final = 4
"""Rows of a tile, as measured (docs/measurements/quantised.md)."""
MAX_WORDS_PER_TURN: Final = 4
"""Words of a column in a turn of the innermost loop if the tile has one row."""
RECORD_END: Final = 4 + 32
"""Bytes of a row's step, and of what writing a record may overwrite."""


def schedule_int16(routine: Routine, constants: Collection[int]) -> BlockSchedule | None:
    """How the template computes the Routine: the schedule of the same product of floats, with room for records. None if it cannot."""
    kernel = _in_floats(routine.kernel)
    s = None if kernel is None else schedule_blocks(Routine("matmul_blocks", kernel, routine.facts), constants)
    if s is None or s.depth < 1:
        return None
    floats, feed = s.floats, s.floats.feed
    if isinstance(feed, InPlace) and feed.step != 4:
        feed = Evaluated(floats.c, {})
    return replace(s, floats=replace(floats, feed=feed, spare=ROWS * _record(s)))


def _record(s: BlockSchedule) -> int:
    """Bytes of a record."""
    return 2 * s.each * s.words + 4 * s.blocks + RECORD_END


def _in_floats(kernel: Kernel) -> Kernel | None:
    """The kernel as a product of floats: one sum, which the store uses in place of the scaled one."""
    if len(kernel.stages) != 3:
        return None
    most, total, store = kernel.stages
    if not isinstance(most, Reduce) or not isinstance(total, Reduce) or not isinstance(store, Store) or store.inner:
        return None
    if most.value.word != "abs" or total.value.word != "mul":
        return None
    scaled = total.accumulator * wide_step_of(most.accumulator)
    value = scalar.substitute(store.value, {scaled: ACCUMULATOR})
    if {most.accumulator, total.accumulator} & set(scalar.postorder([value])) - {ACCUMULATOR}:
        return None
    product = Reduce("a0", "add", most.value.args[0] * total.value.args[1])
    return Kernel(kernel.ports, kernel.grid, kernel.inner, (product, replace(store, value=value)), kernel.name)


def print_int16(s: BlockSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled Routine."""
    return _HalvesTemplate(s, sizes, level).function()


class _HalvesTemplate(BlockTemplate):
    def make_product(self) -> _Int16Product:
        return _Int16Product(self)

    def make_feed(self) -> Feed:
        return _HalvesRecords(self.blocks, super().make_feed()).bound(self)


class _HalvesRecords(Feed):
    """The rows of a block as records."""

    in_place = False

    def __init__(self, s: BlockSchedule, floats: Feed) -> None:
        super().__init__(floats.c, floats.facts)
        self._schedule, self._floats = s, floats

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        s = self._schedule
        first = self.job.low.scratch(s.floats.scratch - s.floats.spare)
        return [(first, _record(s) * i) for i in range(rows)]

    def start(self, part: tuple[I32, I32] | None) -> None:
        self._floats.start(part)

    def prepare(self, rows: int) -> None:
        self._floats.prepare(rows)
        w, s = self.job.w, self._schedule
        for (to, place), (source, offset) in zip(self.addresses(rows), self._floats.addresses(rows), strict=True):
            w.call(f"halves_for_{s.bits}_bits", w.value(to) + place, w.value(source) + offset, s.depth, s.block)


class _Int16Product(BlockProduct):
    """The product of records and packed weights, which are unpacked in registers."""

    def __init__(self, job: _HalvesTemplate) -> None:
        s = job.blocks
        super().__init__(job, replace(job.c, depth=s.words), RegisterTile(ROWS, s.floats.columns), {})
        self.vectors: Final = range(0, 4 * self.width, 16)
        self.middle: Final = 1 << s.bits - 1
        self.sums: Final = [[self.w.i32x4() for _ in line] for line in self.accumulators]

    def sum(self, feed: Feed, rows: int, panels: int = 1) -> None:
        w = self.w
        for local in (x for line in self.accumulators[:rows] for x in line):
            w.set(local, 0.0)
        with w.scope():
            places = self._starts(feed, rows)
            self.begin(self.b, self.column)
            self.each_block(self.b, lambda count: self._block(places, count))
            step = w.f32x4()
            for (pointer, offset), line in zip(places, self.accumulators, strict=False):
                w.set(step, pointer.f32x4(offset, "v128.load32_splat"))
                for total in line:
                    w.set(total, total.floats() * step)

    def _block(self, places: Sequence[TilePlace], count: int) -> None:
        """The products of a block of `count` weights; the pointers are moved on."""
        w, s = self.w, self.s
        sums = self.sums[: len(places)]
        for local in (x for line in sums for x in line):
            w.set(local, 0)
        words = -(-count // s.each)
        turn = min(MAX_WORDS_PER_TURN if len(places) == 1 else 1, words)
        whole = words // turn * turn
        several = w.repeat_while(self.b.below(w.i32(self.b + whole * 4 * self.width)))
        with several if whole > turn else nullcontext():
            self._words(places, turn)
        self._words(places, words - whole)
        scales = [w.local(self.scale.f32x4(at)) for at in self.vectors]
        gaps = self._gaps()
        whole_sum, part = w.i32x4(), w.f32x4()
        for (pointer, offset), line, totals in zip(places, sums, self.accumulators, strict=False):
            w.set(whole_sum, pointer.i32x4(offset, "v128.load32_splat"))
            for j, scale in enumerate(scales):
                w.set(part, (line[j] - whole_sum).as_floats())
                if gaps:
                    w.multiply_add(part, gaps[j], whole_sum.as_floats())
                w.multiply_add(totals[j], part, scale)
        w.add(places[0].pointer, 4)

    def _gaps(self) -> Sequence[F32x4]:
        """(the middle − zero) / the middle for the columns of a block; none if they are 0."""
        if not isinstance(self.s.zero, int):
            gap = (self.middle - self.s.zero) / self.middle
            return [F32x4.of(gap)] * len(self.vectors) if gap else []
        return [self.w.local((zero * -1.0 + self.middle) * (1 / self.middle)) for zero in self.zeros(self.vectors)]

    def _words(self, places: Sequence[TilePlace], count: int) -> None:
        """The products of `count` words of each column; the pointers are moved on."""
        if not count:
            return
        w, s = self.w, self.s
        pairs = s.each // 2
        for turn in range(count):
            with w.scope():
                words = [w.local(self.b.i32x4(4 * self.width * turn + at)) for at in self.vectors]
                shifted = [TilePlace(p, offset + 4 * pairs * turn) for p, offset in places]
                for number, numbers in enumerate(self._pairs(shifted, pairs)):
                    with w.scope():
                        held = [w.local(self._weights(word, number)) for word in words]
                        one = w.i32x4()
                        for value, line in zip(numbers, self.sums, strict=False):
                            w.set(one, value.integers())
                            for weights, into in zip(held, line, strict=True):
                                w.set(into, weights.with_("i32x4.dot_i16x8_s", one) + into)
        w.add(places[0].pointer, 4 * pairs * count)
        w.add(self.b, 4 * self.width * count)

    def _pairs(self, places: Sequence[TilePlace], count: int) -> Iterator[list[F32x4]]:
        """Two integers of each row in all lanes, `count` times."""
        if self.fours and count == 4:  # also for one row, other than `broadcasts`
            rows = [self.w.local(p.pointer.f32x4(p.offset)) for p in places]
            yield from ([row.broadcast(turn) for row in rows] for turn in range(4))
        else:
            yield from broadcasts(self.w, places, count, False)

    def _weights(self, word: I32x4, number: int) -> I32x4:
        """Two weights of each column, the same number in each half of a word."""
        bits = self.s.bits
        moved = word.halves_right(bits * number) if number else word
        mask = I32x4(v128(((1 << bits) - 1).to_bytes(2, "little") * 8))
        return moved if bits * (number + 1) == 16 else moved & mask
