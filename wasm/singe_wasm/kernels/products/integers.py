"""The Routines in 8-bit integers: the templates of contraction.py with products of integers.

"matmul_int8" and "conv_int8": the schedule is that of "matmul" or "conv" for the kernel with one sum of floats in place of the integers' stages. A's rows
come from its feed, and each block of them is quantised into records, [k][step, zero], before it is multiplied. A panel of
B holds four k of a column side by side, [k / 4][column][4], and then the sums of its columns. The integer sums of a tile
are converted to floats in the accumulators, so the epilogue is written as for any product.

With relaxed SIMD one instruction adds four products, whose one side has 7 bits; otherwise A's integers take two bytes
each, and a sum is kept as two sums of pairs. Both levels give the same bits.

"matmul_integers" and "conv_integers" are the same without quantising: A's rows hold whole numbers, and the sums are the
accumulators. The numbers of a row lie within 255 of each other, so they are bytes above the row's least one, which is its
zero. The instruction that adds four products takes a byte in place of 7 bits on some processors, and there it is used;
elsewhere the numbers take two bytes each. A function has code for both, and asks the processor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from singe.extension import (
    OFFSET,
    Contraction,
    Dim,
    Expr,
    Kernel,
    Port,
    Reduce,
    Routine,
    Store,
    float32,
    int8,
    scalar,
    step_of,
    uint8,
)

from ...code.encode import Function, v128
from ...code.values import I32, I32x4
from ...code.writer import Tree, Writer
from ...levels import Level
from ..lower import SizeParameters
from .contraction import ProductSchedule, Template, schedule
from .feeds import Feed, Runs
from .product import ACCUMULATOR, Product, RegisterTile, TilePlace, broadcasts, panels_across

COLUMNS: Final = 8
ROWS: Final = {True: 6, False: 2}
"""Rows of a tile where one instruction adds four products and elsewhere, chosen so that the accumulators and operands fit the registers."""
FEW_ROWS: Final = {True: {1: 32, 2: 16}, False: {1: 16}}
"""The same ↦ a small number of rows ↦ the columns of their tile, which spans several panels. A step with fewer than 8
accumulators waits for the step before it on processors that add four products in one instruction."""
NAMES: Final = {
    (False, True): "quantise_bytes",
    (False, False): "quantise_words",
    (True, True): "bytes_of",
    (True, False): "words_of",
}
"""Whether A's numbers are whole, and whether one instruction adds four products ↦ the function that writes a record."""
RECORD_END: Final = 8
"""Bytes of a row's step and zero; with whole numbers of two bytes, of zeros."""


@dataclass(frozen=True)
class IntegerSchedule:
    """The schedule of floats that the rows come from, the port of the weights, and the accumulator of whole numbers (None:
    rows are quantised)."""

    floats: ProductSchedule
    weights: int
    whole: Expr | None = None

    @property
    def words(self) -> int:
        """Words of a column of B: four integers each."""
        return words(self.floats.c)

    def record(self, fours: bool) -> int:
        """Bytes of a row's record. fours: whether one instruction adds four products."""
        return (4 if fours else 8) * self.words + RECORD_END

    @property
    def records(self) -> Dim:
        """Where the records of rows are in scratch."""
        return self.floats.scratch - self.floats.spare

    def pack(self, contents: np.ndarray) -> np.ndarray:
        """B's panels, as bytes; of numbers of elements, the numbers in their order."""
        (stored,) = self.floats.matrices(contents)
        k, n = stored.shape
        count = -(-n // COLUMNS)
        numbers = contents.dtype.itemsize > 1
        padded = np.zeros((4 * self.words, count * COLUMNS), np.int32)
        padded[:k, :n] = stored if numbers or self.whole is not None else stored.astype(np.int32) - OFFSET
        panels = padded.reshape(self.words, 4, count, COLUMNS).transpose(2, 0, 3, 1)
        if numbers:
            return np.pad(panels.reshape(count, -1), ((0, 0), (0, 4 * COLUMNS)))
        block = np.ascontiguousarray(panels.astype(np.int8)).reshape(count, -1).view(np.uint8)
        sums = padded.sum(0, dtype=np.int32).reshape(count, COLUMNS)
        return np.concatenate([block, np.ascontiguousarray(sums).view(np.uint8)], axis=1)


def words(c: Contraction) -> int:
    assert isinstance(c.depth, int)
    return -(-c.depth // 4)


def schedule_integers(routine: Routine, constants: Collection[int]) -> IntegerSchedule | None:
    """How the template computes the Routine; None if it cannot."""
    parts = (_whole_parts if routine.kind.endswith("_integers") else _quantised_parts)(routine.kernel)
    if parts is None or parts.weights.value not in constants:
        return None
    kernel, weights = routine.kernel, parts.weights
    ports = tuple(Port(float32) if i == weights.value else p for i, p in enumerate(kernel.ports))
    product = Reduce("a0", "add", parts.x * scalar.load(weights.value, weights.args[0], float32))
    twin = Kernel(ports, kernel.grid, kernel.inner, (product, parts.store), kernel.name)
    kind = routine.kind.removesuffix("_integers").removesuffix("_int8")
    floats = schedule(Routine(kind, twin, routine.facts), constants)
    if (
        floats is None
        or not floats.packed
        or floats.b_batch
        or not isinstance(floats.c.depth, int)
        or floats.c.depth < 1
    ):
        return None
    made = IntegerSchedule(floats, weights.value, parts.whole)
    spare = max(ROWS.values()) * made.record(False)
    return replace(made, floats=replace(floats, spare=spare))


@dataclass(frozen=True)
class _Parts:
    """A: an element of the rows, in floats; the load of the weights; the store over the accumulator of a product of
    floats, or over `whole`."""

    x: Expr
    weights: Expr
    store: Store
    whole: Expr | None = None


def _whole_parts(kernel: Kernel) -> _Parts | None:
    if len(kernel.stages) != 2:
        return None
    total, store = kernel.stages
    if not isinstance(total, Reduce) or not isinstance(store, Store) or store.inner or total.value.word != "mul":
        return None
    x, weights = total.value.args
    if x.word != "cast" or x.args[0].dtype is not float32 or weights.word != "load":
        return None
    return _Parts(x.args[0], weights, store, total.accumulator) if kernel.ports[weights.value].dtype is int8 else None


def _quantised_parts(kernel: Kernel) -> _Parts | None:
    *folds, store = kernel.stages
    if len(folds) != 3 or not all(isinstance(s, Reduce) for s in folds) or not isinstance(store, Store) or store.inner:
        return None
    most, _, total = (s for s in folds if isinstance(s, Reduce))
    weights = _weights(total.value, kernel.ports)
    found = [s.accumulator for s in folds if isinstance(s, Reduce)]
    restored = scalar.cast(found[2], float32) * step_of(found[0], found[1])
    value = scalar.substitute(store.value, {restored: ACCUMULATOR})
    if weights is None or any(v in scalar.postorder([value]) for v in found[1:]):
        return None
    return _Parts(most.value, weights, replace(store, value=value))


def _weights(total: Expr, ports: Sequence[Port]) -> Expr | None:
    """The load of the weights, which are multiplied by the quantised operand."""
    if total.word != "mul" or total.args[1].word != "add":
        return None
    load, offset = total.args[1].args
    plain = load.word == "load" and ports[load.value].dtype is uint8
    return load if plain and offset.word == "const" and offset.value == -OFFSET else None


def print_integers(s: IntegerSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled Routine."""
    if s.whole is None or not level.relaxed:
        return _Integers(s, sizes, level).function()
    w = s.floats.begin(sizes)
    with w.when(takes_bytes()):
        _Integers(s, sizes, level, w).write()
        w.otherwise()
        _Integers(s, sizes, level._replace(relaxed=False), w).write()
    return w.finish()


def takes_bytes() -> I32:
    """Whether the instruction that adds four products takes bytes without a sign, and adds all four exactly."""
    most = [I32x4(v128(bytes([b] * 16))) for b in (127, 255)]
    return most[0].dot_add(most[1], I32x4.of(0)).lane(0).equals(4 * 127 * 255)


class _Integers(Template):
    """At a relaxed level one instruction adds four products."""

    def __init__(self, s: IntegerSchedule, sizes: SizeParameters, level: Level, w: Writer | None = None) -> None:
        self.integers: Final = s
        super().__init__(s.floats, sizes, level, w)

    def make_product(self) -> Product:
        return _IntegerProduct(self)

    def make_feed(self) -> Feed:
        return _Records(self.integers, super().make_feed()).bound(self)


class _Records(Feed):
    """The rows of a block as integers."""

    in_place = False
    step = 1

    def __init__(self, s: IntegerSchedule, floats: Feed) -> None:
        super().__init__(floats.c, floats.facts)
        self._schedule, self._floats = s, floats
        depth = floats.c.depth
        assert isinstance(depth, int)
        if floats.step != 4:  # k and k + 1 are not neighbours
            self._shape = Runs(depth, 1, floats.step - 4)
        else:
            self._shape = floats.runs or Runs(1, depth, 0)

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        record = self._schedule.record(self.job.level.relaxed)
        return [(self.job.low.scratch(self._schedule.records), record * i) for i in range(rows)]

    def start(self, part: tuple[I32, I32] | None) -> None:
        self._floats.start(part)

    def prepare(self, rows: int) -> None:
        self._floats.prepare(rows)
        w, runs = self.job.w, self._shape
        name = NAMES[self._schedule.whole is not None, self.job.level.relaxed]
        for (to, place), (source, offset) in zip(self.addresses(rows), self._floats.addresses(rows), strict=True):
            w.call(name, w.value(to) + place, w.value(source) + offset, runs.count, runs.length, runs.jump)


class _IntegerProduct(Product):
    """The product of records and panels of integers. A column of a panel is its integers, as words, and their sum."""

    def __init__(self, job: _Integers) -> None:
        s = job.integers
        self.whole: Final = s.whole is not None
        depth = s.words + 1
        c = replace(job.c, depth=depth)
        tile = RegisterTile(ROWS[job.level.relaxed], COLUMNS)
        across = panels_across(c, tile, FEW_ROWS[job.level.relaxed])
        accumulator = ACCUMULATOR if s.whole is None else s.whole
        spill, fours = job.low.scratch(0), job.level.fours
        super().__init__(job.w, job.low, job.edge, c, tile, job.depth, spill, across, accumulator, fours)
        self.words: Final = s.words
        self.panel: Final = 4 * tile.columns * depth  # bytes
        self.dots: Final = job.level.relaxed
        self.sums: Final = [[job.w.i32x4() for _ in line] for line in self.accumulators]
        # Where one instruction does not add four products, a vector of sums holds two columns, each as two sums of pairs; the
        # other two are here.
        self.others: Final = [] if self.dots else [[job.w.i32x4() for _ in line] for line in self.sums]

    def _tile(self, feed: Feed, rows: int, panels: int = 1, full: bool = False) -> None:
        w = self.w
        vectors = panels * self.tile.columns // 4
        for local in (x for line in (*self.sums[:rows], *self.others[:rows]) for x in line[:vectors]):
            w.set(local, 0)
        with w.scope():
            pointers = self.pointers(feed, rows)
            unroll = min(4, self.words)
            rest = self.words % unroll
            with self._until(w.i32(self.b + 4 * self.tile.columns * (self.words - rest))):
                self._turns(pointers, unroll, vectors)
            self._turns(pointers, rest, vectors)
            (self._to_whole if self.whole else self._to_floats)(pointers, vectors)
        w.add(self.b, 4 * self.tile.columns + (panels - 1) * self.panel)  # past the columns' sums
        self._epilogue(rows, panels, full)

    def _at(self, vector: int, turn: int = 0) -> int:
        """Bytes from `b` to a vector of the tile's columns, `turn` words on."""
        width = self.tile.columns // 4
        return vector // width * self.panel + 16 * (turn * width + vector % width)

    def _turns(self, pointers: Sequence[I32], count: int, vectors: int) -> None:
        """`count` words of every column; the pointers are moved on."""
        if not count:
            return
        w = self.w
        with w.scope():
            if self.dots:
                for turn, words in enumerate(broadcasts(w, [TilePlace(p, 0) for p in pointers], count, self.fours)):
                    with w.scope():
                        self._four([word.integers() for word in words], turn, vectors)
            else:
                for turn in range(count):
                    with w.scope():
                        self._pairs(pointers, turn, vectors)
        for pointer in pointers:
            w.add(pointer, count * (4 if self.dots else 8))
        w.add(self.b, 4 * self.tile.columns * count)

    def _four(self, a: Sequence[I32x4], turn: int, vectors: int) -> None:
        """A word of B against four of A's bytes in one instruction."""
        w = self.w
        b = [self.b.i32x4(self._at(j, turn)) for j in range(vectors)]
        # Registers hold the fewer of both, beside the sums; the others pass through one register.
        held, passing = (b, a) if len(b) <= len(a) else (a, b)
        kept = [w.local(value) for value in held]
        one = w.i32x4()
        for i, value in enumerate(passing):
            w.set(one, value)
            for j, local in enumerate(kept):
                into = self.sums[i][j] if held is b else self.sums[j][i]
                w.set(into, local.dot_add(one, into) if held is b else one.dot_add(local, into))

    def _pairs(self, pointers: Sequence[I32], turn: int, vectors: int) -> None:
        """Two columns of B, made wider, against four of A's integers: two sums of pairs for each column."""
        w = self.w
        held = [w.local(p.i32x4(8 * turn, "v128.load64_splat")) for p in pointers]
        one = w.i32x4()
        for j in range(vectors):
            for half, sums in enumerate((self.sums, self.others)):
                w.set(one, self.b.i32x4(self._at(j, turn) + 8 * half, "v128.load8x8_s"))
                for local, line in zip(held, sums, strict=False):
                    w.set(line[j], one.with_("i32x4.dot_i16x8_s", local) + line[j])

    def _sum(self, row: int, vector: int) -> I32x4:
        """The sums of four columns."""
        total = self.sums[row][vector]
        if not self.others:
            return total
        other = self.others[row][vector]
        return total.shuffled(other, 0, 2, 4, 6) + total.shuffled(other, 1, 3, 5, 7)

    def _to_whole(self, pointers: Sequence[I32], vectors: int) -> None:
        """The sums of whole numbers: sum − zero · sum of the column."""
        for i, pointer in enumerate(pointers):
            zero = self.w.local(pointer.i32x4(4, "v128.load32_splat")) if self.dots else None
            for j in range(vectors):
                total = self._sum(i, j)
                centred = total if zero is None else total - self.b.i32x4(self._at(j)) * zero
                self.w.set(self.accumulators[i][j], centred)

    def _to_floats(self, pointers: Sequence[I32], vectors: int) -> None:
        """The sums as floats: (sum − zero · sum of the column) · step; the pointers are at the records' ends."""
        w = self.w
        zero, step = w.i32x4(), w.f32x4()
        for i, pointer in enumerate(pointers):
            w.set(step, pointer.f32x4(0, "v128.load32_splat"))
            w.set(zero, pointer.i32x4(4, "v128.load32_splat"))
            for j in range(vectors):
                centred = self._sum(i, j) - self.b.i32x4(self._at(j)) * zero
                w.set(self.accumulators[i][j], centred.as_floats() * step)
