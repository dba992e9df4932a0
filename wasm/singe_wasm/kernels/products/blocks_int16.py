"""The Routine "matmul_blocks_int16": the template of blocks.py with rows in integers of 16 bits.

Each block of rows is quantised into records (code/wide_rows.py): for each block of the weights the row's integers, their
sum times the middle of the weights' range, and their sum; then the row's step. The sum of a block's products is an integer; it is scaled and
added to the tile's sums in floats. With 8 columns to a tile, all that the inner loop uses stays in registers. The rows of a
tile share the unpacked weights.

Halves: a word of a column, shifted and masked, is two weights of 16 bits, which one instruction multiplies by two integers of a
record, and adds.

Groups: of integers of which eight bits count, the bytes v of a group are multiplied by the weights, which one instruction adds
in 16 bits, and the sums by the groups' n. That is for x64 without AVX-VNNI; elsewhere the whole integers are multiplied, with
the same sums.

Bytes: where one instruction multiplies and adds four bytes, exactly (relaxed SIMD on ARM, and on x64 with AVX-VNNI), it takes
the high bytes of a block, then the low ones. Such an instruction of ARM takes the weights as bytes with a sign: 128 is then
subtracted from weights of 8 bits. A function has code for both, and asks the processor; the integers are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple

from singe.extension import WIDE_TOP, Kernel, Reduce, Routine, Store, scalar, wide_step_of

from ...code.encode import Function, v128
from ...code.values import I32, F32x4, I32x4
from ...code.wide_rows import GROUPS_BYTES, OVERWRITTEN
from ...code.writer import Tree, Writer
from ...levels import Level
from ..lower import SizeParameters
from .blocks import BlockProduct, BlockSchedule, BlockTemplate, schedule_blocks
from .feeds import Feed
from .integers import takes_bytes
from .product import ACCUMULATOR, RegisterTile, TilePlace, broadcasts

ROWS: Final = {
    ("halves", False): 4,
    ("halves", True): 6,
    ("bytes", False): 6,
    ("groups", False): 3,
    ("groups", True): 4,
}
"""Form, and whether rows are read by fours ↦ the rows of a tile, as measured (docs/measurements/quantised.md); of bytes, as many
as registers hold."""
LAST_ROWS: Final = (3, 2, 1)
"""The heights of the last tiles of an open number of rows, so that a few rows, as of drafts, are one tile: unpacking weights takes as
long as two rows' products."""
MAX_WORDS_PER_TURN: Final = 4
"""Words of a column in a turn of the innermost loop if the tile has one row."""
RECORD_BLOCK_END: Final = 8
"""Bytes of a block's two sums in a record."""
SIGN: Final = 128
"""What a byte without a sign differs by from one with a sign."""


def schedule_int16(routine: Routine, constants: Collection[int]) -> BlockSchedule | None:
    """How the template computes the Routine: the schedule of the same product of floats, with room for records. None if it cannot."""
    kernel = _in_floats(routine.kernel)
    s = None if kernel is None else schedule_blocks(Routine("matmul_blocks", kernel, routine.facts), constants)
    if s is None or s.depth < 1:
        return None
    floats = replace(s.floats, spare=max(ROWS.values()) * _record(s))
    return replace(s, floats=floats, in_bytes=routine.facts.get("in_bytes", False))


def _record(s: BlockSchedule) -> int:
    """Bytes of a record, and of what writing it overwrites."""
    return (2 * _padded(s.block) + RECORD_BLOCK_END) * s.blocks + 4 + OVERWRITTEN + _padded(s.block)


def _padded(count: int) -> int:
    """The integers of so many weights in a record."""
    return -(-count // 8) * 8


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
    plain = "groups" if s.in_bytes and level.relaxed else "halves"
    if not level.relaxed or level.fours:  # wasmtime's compiler has no instruction for four bytes
        return _WideRows(s, sizes, level, plain).function()
    w = s.floats.begin(sizes)
    with w.when(takes_bytes() | has_signs()):
        _WideRows(s, sizes, level, "bytes", w).write()
        w.otherwise()
        _WideRows(s, sizes, level, plain, w).write()
    return w.finish()


def has_signs() -> I32:
    """Whether the instruction that adds four products takes both operands as bytes with a sign, as ARM's does."""
    least, one = (I32x4(v128(bytes([b] * 16))) for b in (128, 1))
    return one.dot_add(least, I32x4.of(0)).lane(0).equals(4 * -128)


class _WideRows(BlockTemplate):
    """form: "halves", "bytes" or "groups"."""

    def __init__(
        self, s: BlockSchedule, sizes: SizeParameters, level: Level, form: str, w: Writer | None = None
    ) -> None:
        self.form: Final = form
        super().__init__(s, sizes, level, w)

    def make_product(self) -> _WideProduct:
        return _FORMS[self.form](self)

    def make_feed(self) -> Feed:
        return _WideRecords(self.blocks, super().make_feed()).bound(self)


def _middle(s: BlockSchedule) -> int:
    """What is taken from the weights as integers: the zero where it is one whole number, else half of their range; nothing
    where a block's sum is a float32 without rounding."""
    most, z = (1 << s.bits) - 1, s.zero
    if isinstance(z, float) and z.is_integer() and 0 <= z <= most:
        return int(z)
    return 0 if s.block * most * WIDE_TOP < 1 << 24 else most + 1 >> 1


class _WideRecords(Feed):
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
        w, s, product = self.job.w, self._schedule, self.job.product
        assert isinstance(product, _WideProduct)
        name = f"{'short_' if s.in_bytes else ''}{product.form}_for_{s.bits}_bits"
        for (to, place), (source, offset) in zip(self.addresses(rows), self._floats.addresses(rows), strict=True):
            at = w.value(to) + place, w.value(source) + offset
            w.call(name, *at, s.depth, s.block, product.middle)


class _RecordPart(NamedTuple):
    """Some integers of a block: where they begin behind the pointers, and the sums of their products."""

    offset: int
    sums: Sequence[Sequence[I32x4]]


class _WideProduct(BlockProduct):
    """The product of records and packed weights, which are unpacked in registers. step: bytes of a part's integers for a
    word of weights. middle: what the sums in records are multiplied by."""

    form: ClassVar[str]
    step: int
    middle: I32 | int

    def __init__(self, job: _WideRows) -> None:
        s = job.blocks
        tile = RegisterTile(ROWS[self.form, job.level.fours], s.floats.columns)
        super().__init__(job, replace(job.c, depth=s.words), tile, {})
        self.last = LAST_ROWS
        self.vectors: Final = range(0, 4 * self.width, 16)
        self.sums: Final = [[self.w.i32x4() for _ in line] for line in self.accumulators]
        self.middle = _middle(s)

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
        self.products(places, sums, -(-count // s.each), _padded(count))
        scales = [w.local(self.scale.f32x4(at)) for at in self.vectors]
        gaps = self._gaps()
        taken = None if self.middle == 0 else w.i32x4()
        plain, part = w.f32x4(), w.f32x4()
        for (pointer, offset), line, totals in zip(places, sums, self.accumulators, strict=False):
            if taken:
                w.set(taken, pointer.i32x4(offset, "v128.load32_splat"))
            if gaps:
                w.set(plain, pointer.f32x4(offset + 4, "v128.load32_splat"))
            for j, scale in enumerate(scales):
                w.set(part, (line[j] - taken if taken else line[j]).as_floats())
                if gaps:
                    w.multiply_add(part, gaps[j], plain)
                w.multiply_add(totals[j], part, scale)
        w.add(places[0].pointer, RECORD_BLOCK_END)

    def _gaps(self) -> Sequence[F32x4]:
        """The middle less the zeros of a block's columns; none if these are the middle."""
        middle, zero = _middle(self.s), self.s.zero
        if not isinstance(zero, int):
            return [] if zero == middle else [F32x4.of(middle - zero)] * len(self.vectors)
        return [self.w.local(middle - at) for at in self.zeros(self.vectors)]

    def products(self, places: Sequence[TilePlace], sums: Sequence[Sequence[I32x4]], words: int, padded: int) -> None:
        """Set the sums to those of a block of so many words, whose integers are padded to as many; the pointers are moved behind these."""
        raise NotImplementedError

    def multiply_word(
        self,
        words: Sequence[I32x4],
        numbers: Sequence[Sequence[Sequence[F32x4]]],
        sums: Sequence[Sequence[Sequence[I32x4]]],
    ) -> None:
        """Add the products of a word of each column. numbers, sums: of each part, the rows' numbers and their sums."""
        w = self.w
        for number in range(self.step // 4):
            with w.scope():
                held = [w.local(self.weights(word, number)) for word in words]
                one = w.i32x4()
                for rows, lines in zip(numbers, sums, strict=True):
                    for value, line in zip(rows[number], lines, strict=False):
                        w.set(one, value.integers())
                        for weights, into in zip(held, line, strict=True):
                            w.set(into, self.multiply(into, weights, one))

    def weights(self, word: I32x4, number: int) -> I32x4:
        """Weights of each column that one instruction takes, the same number in each word."""
        raise NotImplementedError

    def multiply(self, into: I32x4, weights: I32x4, one: I32x4) -> I32x4:
        """A sum and the products of weights and a row's integers."""
        raise NotImplementedError

    def walk(self, places: Sequence[TilePlace], words: int, parts: Sequence[_RecordPart]) -> None:
        """Add the products of `words` words of each column and the integers of some parts; the pointers are moved on."""
        w = self.w
        if not words:
            return
        turn = min(MAX_WORDS_PER_TURN if len(places) == 1 else 1, words)
        whole = words // turn * turn
        several = w.repeat_while(self.b.below(w.i32(self.b + whole * 4 * self.width)))
        with several if whole > turn else nullcontext():
            self._words(places, turn, parts)
        self._words(places, words - whole, parts)

    def _words(self, places: Sequence[TilePlace], count: int, parts: Sequence[_RecordPart]) -> None:
        if not count:
            return
        w = self.w
        for turn in range(count):
            with w.scope():
                words = [w.local(self.b.i32x4(4 * self.width * turn + at)) for at in self.vectors]
                numbers = [
                    self._numbers([TilePlace(p, at + self.step * turn + part.offset) for p, at in places])
                    for part in parts
                ]
                self.multiply_word(words, numbers, [part.sums for part in parts])
        w.add(places[0].pointer, self.step * count)
        w.add(self.b, 4 * self.width * count)

    def _numbers(self, places: Sequence[TilePlace]) -> Sequence[Sequence[F32x4]]:
        """Four bytes of each row in all lanes, for each of those of a word."""
        count = self.step // 4
        if self.fours and count == 4:  # also for one row, other than `broadcasts`
            rows = [self.w.local(p.pointer.f32x4(p.offset)) for p in places]
            return [[row.broadcast(turn) for row in rows] for turn in range(4)]
        return list(broadcasts(self.w, places, count, False))


class _Halves(_WideProduct):
    form = "halves"

    def __init__(self, job: _WideRows) -> None:
        self.step = 2 * job.blocks.each
        super().__init__(job)

    def products(self, places: Sequence[TilePlace], sums: Sequence[Sequence[I32x4]], words: int, padded: int) -> None:
        _clear(self.w, sums)
        self.walk(places, words, [_RecordPart(0, sums)])
        self.w.add(places[0].pointer, 2 * padded - self.step * words)

    def weights(self, word: I32x4, number: int) -> I32x4:
        bits = self.s.bits
        moved = word.halves_right(bits * number) if number else word
        return moved if bits * (number + 1) == 16 else moved & _repeated((1 << bits) - 1, 2)

    def multiply(self, into: I32x4, weights: I32x4, one: I32x4) -> I32x4:
        return weights.with_("i32x4.dot_i16x8_s", one) + into


class _Bytes(_WideProduct):
    form = "bytes"

    def __init__(self, job: _WideRows) -> None:
        self.step = job.blocks.each
        super().__init__(job)
        w = self.w
        self.lows: Final = [[w.i32x4() for _ in self.vectors]]
        self.signs: Final = w.i32x4()
        if self.s.bits == 8:
            signed = w.i32(has_signs())
            w.set(self.signs, (signed * int.from_bytes(bytes([SIGN] * 4), "little", signed=True)).splat())
            self.middle = w.i32(signed * -SIGN + _middle(self.s))

    def products(self, places: Sequence[TilePlace], sums: Sequence[Sequence[I32x4]], words: int, padded: int) -> None:
        w, pointer, rest = self.w, places[0].pointer, padded - self.step * words
        _clear(w, sums)
        if len(places) == 1:  # more sums at once: each waits for its products
            _clear(w, self.lows)
            self.walk(places, words, [_RecordPart(0, sums), _RecordPart(padded, self.lows)])
            for high, low in zip(sums[0], self.lows[0], strict=True):
                w.set(high, (high << 8) + low)
            w.add(pointer, padded + rest)
            return
        self.walk(places, words, [_RecordPart(0, sums)])
        for into in (x for line in sums for x in line):
            w.set(into, into << 8)
        w.add(pointer, rest)
        w.add(self.b, -4 * self.width * words)
        self.walk(places, words, [_RecordPart(0, sums)])
        w.add(pointer, rest)

    def weights(self, word: I32x4, number: int) -> I32x4:
        if self.s.bits == 8:
            return word ^ self.signs
        return (word.halves_right(4) if number else word) & _repeated(15, 1)

    def multiply(self, into: I32x4, weights: I32x4, one: I32x4) -> I32x4:
        return one.dot_add(weights, into)


class _Groups(_WideProduct):
    form = "groups"
    step = GROUPS_BYTES
    _begins = False
    """Whether a word is the first of a block: it is not added, which saves a twentieth of the time."""

    def products(self, places: Sequence[TilePlace], sums: Sequence[Sequence[I32x4]], words: int, padded: int) -> None:
        self._begins = True
        self._words(places, 1, [_RecordPart(0, sums)])
        self._begins = False
        self.walk(places, words - 1, [_RecordPart(0, sums)])

    def multiply_word(
        self,
        words: Sequence[I32x4],
        numbers: Sequence[Sequence[Sequence[F32x4]]],
        sums: Sequence[Sequence[Sequence[I32x4]]],
    ) -> None:
        w = self.w
        low = [w.local(word & _repeated(15, 1)) for word in words]
        high = [w.local(word.halves_right(4) & _repeated(15, 1)) for word in words]
        ((first, second, n),), (lines,) = numbers, sums
        for row, line in enumerate(lines[: len(first)]):
            a, b, each = (w.local(x[row].integers()) for x in (first, second, n))
            for i, into in enumerate(line):
                pairs = a.dot_pairs(low[i]).with_("i16x8.add", b.dot_pairs(high[i]))
                total = pairs.with_("i32x4.dot_i16x8_s", each)
                w.set(into, total if self._begins else total + into)


_FORMS: Final = {c.form: c for c in (_Halves, _Bytes, _Groups)}


def _clear(w: Writer, sums: Sequence[Sequence[I32x4]]) -> None:
    for local in (x for line in sums for x in line):
        w.set(local, 0)


def _repeated(number: int, size: int) -> I32x4:
    """A number of so many bytes, as often as a vector holds it."""
    return I32x4(v128(number.to_bytes(size, "little") * (16 // size)))
