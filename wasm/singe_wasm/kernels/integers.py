"""The Routines "matmul_int8" and "conv_int8": the products of gemm.py in 8-bit integers.

Their templates are those of "matmul" and "conv" for the kernel with one sum of floats instead of what integers sum and
mean: A's rows come from there, and are quantised a few at a time into records, [k][step, zero], before they are
multiplied. A panel of B holds four k of a column side by side, [k / 4][column][4], and then the sums of its columns. The
sum that a tile leaves is made a float, in the accumulators, for an epilogue as of any product.

With relaxed SIMD four products are added by one instruction, which takes 7 bits on one side; else A's integers take two
bytes each, and two sums of pairs stand for one. Both levels give the same bits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from singe.extension import OFFSET, Dim, Expr, Kernel, Port, Reduce, Routine, Store, float32, scalar, step_of, uint8

from ..encode import OPS, Function, i32, i32x4, memory, ops, shuffle
from . import conv, matmul
from .gemm import ACCUMULATOR, Product, Rows, Runs, Tile, turns
from .lower import Lowering
from .share import choose, first_alone, loop
from .writer import Node, Writer

COLUMNS: Final = 8
ROWS: Final = {True: 6, False: 2}
"""Rows of a tile with relaxed SIMD and without; accumulators, what is held and what passes through fit the registers."""
ONE_ROW: Final = 16
"""Columns of a tile of one row."""
RECORD_END: Final = 8
"""Bytes of a row's step and zero."""


@dataclass(frozen=True)
class Plan:
    """The template of floats that the rows come from, and the port of the weights."""

    floats: matmul.Plan | conv.Plan
    weights: int

    @property
    def extents(self) -> tuple[Dim, Dim, int]:
        m, n, k = self.floats.extents
        assert isinstance(k, int)
        return m, n, k

    @property
    def words(self) -> int:
        """Words of a column of B."""
        return -(-self.extents[2] // 4)

    @property
    def columns(self) -> int:
        return ONE_ROW if self.extents[0] == 1 else COLUMNS

    @property
    def scratch(self) -> Dim:
        return self._areas.end

    @property
    def records(self) -> Dim:
        """Where the records of rows lie in scratch."""
        return self._areas.end + -self.floats.spare

    @property
    def _areas(self) -> matmul.Areas | conv.Areas:
        return matmul.areas(self.floats) if isinstance(self.floats, matmul.Plan) else conv.areas(self.floats)


def plan(routine: Routine, constants: Collection[int]) -> Plan | None:
    """How the templates do this routine; None where they do not."""
    kernel = routine.kernel
    *folds, store = kernel.stages
    if len(folds) != 3 or not all(isinstance(s, Reduce) for s in folds) or not isinstance(store, Store) or store.inner:
        return None
    most, _, total = (s for s in folds if isinstance(s, Reduce))
    weights = _weights(total.value, kernel.ports)
    if weights is None or weights.value not in constants:
        return None
    found = [s.accumulator for s in folds if isinstance(s, Reduce)]
    restored = scalar.cast(found[2], float32) * step_of(found[0], found[1])
    value = scalar.substitute(store.value, {restored: ACCUMULATOR})
    if any(v in scalar.postorder([value]) for v in found[1:]):
        return None
    ports = tuple(Port(float32) if i == weights.value else p for i, p in enumerate(kernel.ports))
    product = Reduce("a0", "add", most.value * scalar.load(weights.value, weights.args[0], float32))
    twin = Kernel(ports, kernel.grid, kernel.inner, (product, replace(store, value=value)), kernel.name)
    if routine.kind == "matmul_int8":
        floats = matmul.plan(twin, constants)
    else:
        floats = conv.plan(Routine("conv", twin, routine.facts), constants)
    if floats is None or not floats.packed or not isinstance(floats.extents[2], int) or floats.extents[2] < 1:
        return None
    record = 8 * -(-floats.extents[2] // 4) + RECORD_END
    return Plan(replace(floats, spare=max(ROWS.values()) * record), weights.value)


def _weights(total: Expr, ports: Sequence[Port]) -> Expr | None:
    """The load of what is multiplied by the quantised operand."""
    if total.word != "mul" or total.args[1].word != "add":
        return None
    load, offset = total.args[1].args
    plain = load.word == "load" and ports[load.value].dtype is uint8
    return load if plain and offset.word == "const" and offset.value == -OFFSET else None


def pack(p: Plan, contents: np.ndarray) -> np.ndarray:
    """B's panels, as bytes."""
    _, n, k = p.extents
    assert isinstance(n, int)
    stored = matmul.matrix(p.floats, contents) if isinstance(p.floats, matmul.Plan) else contents.reshape(k, n)
    count = -(-n // p.columns)
    padded = np.zeros((4 * p.words, count * p.columns), np.int32)
    padded[:k, :n] = stored.astype(np.int32) - OFFSET
    sums = padded.sum(0, dtype=np.int32).reshape(count, p.columns)
    words = padded.astype(np.int8).reshape(p.words, 4, count, p.columns).transpose(2, 0, 3, 1)
    block = np.ascontiguousarray(words).reshape(count, -1).view(np.uint8)
    return np.concatenate([block, np.ascontiguousarray(sums).view(np.uint8)], axis=1)


def print_integers(p: Plan, sizes: Sequence[Dim], relaxed: bool) -> Function:
    """The function of a planned routine."""
    f = p.floats
    if isinstance(f, matmul.Plan):
        job, loops, coordinates = matmul.Template(f, sizes, relaxed), list(f.batch), (f.m, f.n)
    else:
        job, loops, coordinates = conv.Template(f, sizes, relaxed), f.outer, f.kernel.grid_vars[-2:]
    m, n, _ = p.extents
    # A column of a panel is so many words: its integers, four to one, and their sum.
    extents = (m, n, p.words + 1)
    tile = Tile(1 if m == 1 else ROWS[relaxed], p.columns)
    depth = len(loops)
    shared = choose([*(d for _, d in loops), *turns(extents, tile, False)])
    with ExitStack() as stack:
        stack.enter_context(first_alone(job.body, job.low, shared is None))
        for level, (variable, extent) in enumerate(loops, 1):
            local = job.body.local("i32")
            for low in job.all:
                low.variable(variable, local, level)
            stack.enter_context(loop(job.writer, job.low, local, extent, shared == level - 1))
        product = _Product(
            job.writer, job.low, job.edge, f.kernel, coordinates, extents, tile, depth, job.low.scratch(0), relaxed
        )
        rows = _Records(p, job.writer, job.low, job.rows(product, depth), relaxed)
        product.write(rows, job.low.pointer(p.weights), None if shared is None or shared < depth else shared - depth)
    return job.body.finish()


class _Records(Rows):
    """The rows of a block, quantised."""

    in_place = False
    step = 1

    def __init__(self, p: Plan, writer: Writer, low: Lowering, floats: Rows, relaxed: bool) -> None:
        self._writer, self._low, self._floats, self._first = writer, low, floats, p.records
        self._bytes = (4 if relaxed else 8) * p.words + RECORD_END
        self._function = "quantise_bytes" if relaxed else "quantise_words"
        k = p.extents[2]
        if floats.step != 4:  # no neighbours
            self._shape = Runs(k, 1, floats.step - 4)
        else:
            self._shape = floats.runs or Runs(1, k, 0)

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        return [(self._low.scratch(self._first), self._bytes * i) for i in range(rows)]

    def start(self, part: tuple[int, int] | None) -> None:
        self._floats.start(part)

    def prepare(self, rows: int) -> None:
        self._floats.prepare(rows)
        body, shape = self._writer.body, self._shape
        for (to, place), (source, offset) in zip(self.addresses(rows), self._floats.addresses(rows), strict=True):
            for node, by in ((to, place), (source, offset)):
                self._writer.push(node)
                body.add(i32(by) + OPS["i32.add"])
            body.add(i32(shape.count) + i32(shape.length) + i32(shape.jump))
            body.call(self._function)


class _Product(Product):
    """The product of records by panels of integers."""

    def __init__(
        self, writer: Writer, low: Lowering, edge: Lowering, kernel: Kernel, coordinates: tuple[Expr, ...],
        extents: tuple[Dim, Dim, int], tile: Tile, level: int, spill: Node, relaxed: bool,
    ) -> None:  # fmt: skip
        row, column = coordinates
        super().__init__(writer, low, edge, kernel, (row, column), extents, tile, level, spill)
        self.words: Final = extents[2] - 1
        self.relaxed: Final = relaxed
        # Without relaxed SIMD a vector of accumulators holds two columns, each as two sums; the other two are here.
        self.others: Final = [] if relaxed else [[self.body.local("v128") for _ in line] for line in self.accumulators]

    def _tile(self, a: Rows, rows: int) -> None:
        body = self.body
        for line in (*self.accumulators[:rows], *self.others[:rows]):
            for local in line:
                body.add(i32x4(0))
                body.set(local)
        pointers = [body.local("i32") for _ in range(rows)]
        for (node, offset), local in zip(a.addresses(rows), pointers, strict=True):
            self.writer.push(node)
            body.add(i32(offset) + OPS["i32.add"])
            body.set(local)
        unroll = min(4, self.words)
        rest = self.words % unroll
        body.get(self.b)
        body.add(i32(4 * self.tile.columns * (self.words - rest)) + OPS["i32.add"])
        body.set(self.b_end)
        with self._loop(self.b_end):
            self._turns(pointers, 0, unroll)
        self._turns(pointers, 0, rest)
        self._restore(pointers)
        body.increase(self.b, 4 * self.tile.columns)
        body.free(*pointers)
        self._epilogue(rows)

    def _turns(self, pointers: Sequence[int], step: int, count: int) -> None:
        """`count` words of every column; the pointers are moved on."""
        if not count:
            return
        width = self.tile.columns // 4
        for turn in range(count):
            (self._four if self.relaxed else self._twice_two)(pointers, turn, width)
        for pointer in pointers:
            self.body.increase(pointer, count * (4 if self.relaxed else 8))
        self.body.increase(self.b, 16 * width * count)

    def _four(self, pointers: Sequence[int], turn: int, width: int) -> None:
        """A word of B against four of A's bytes in one instruction."""
        body = self.body
        held = [body.local("v128") for _ in range(width)]
        one = body.local("v128")
        for j, local in enumerate(held):
            body.get(self.b)
            body.add(memory("v128.load", 16 * (turn * width + j)))
            body.set(local)
        for pointer, line in zip(pointers, self.accumulators, strict=False):
            body.get(pointer)
            body.add(memory("v128.load32_splat", 4 * turn))
            body.set(one)
            for b, into in zip(held, line, strict=True):
                body.get(b, one, into)
                body.op("i32x4.relaxed_dot_i8x16_i7x16_add_s")
                body.set(into)
        body.free(one, *held)

    def _twice_two(self, pointers: Sequence[int], turn: int, width: int) -> None:
        """Two columns of B, made wider, against four of A's integers: two sums of pairs for each column."""
        body = self.body
        held = [body.local("v128") for _ in pointers]
        one = body.local("v128")
        for pointer, local in zip(pointers, held, strict=True):
            body.get(pointer)
            body.add(memory("v128.load64_splat", 8 * turn))
            body.set(local)
        for j in range(width):
            for half, accumulators in enumerate((self.accumulators, self.others)):
                body.get(self.b)
                body.add(memory("v128.load8x8_s", 16 * (turn * width + j) + 8 * half))
                body.set(one)
                for local, line in zip(held, accumulators, strict=False):
                    body.get(one, local)
                    body.op("i32x4.dot_i16x8_s")
                    body.get(line[j])
                    body.op("i32x4.add")
                    body.set(line[j])
        body.free(one, *held)

    def _restore(self, pointers: Sequence[int]) -> None:
        """The accumulators as floats: (sum − zero · sum of the column) · step; the pointers are at the records' ends."""
        body = self.body
        zero, step = body.local("v128"), body.local("v128")
        for i, pointer in enumerate(pointers):
            for local, offset in ((step, 0), (zero, 4)):
                body.get(pointer)
                body.add(memory("v128.load32_splat", offset))
                body.set(local)
            for j, into in enumerate(self.accumulators[i]):
                body.get(into)
                if self.others:
                    other = self.others[i][j]
                    body.get(other)
                    body.add(shuffle(0, 2, 4, 6))
                    body.get(into, other)
                    body.add(shuffle(1, 3, 5, 7) + ops("i32x4.add"))
                body.get(self.b)
                body.add(memory("v128.load", 16 * j))
                body.get(zero)
                body.op("i32x4.mul", "i32x4.sub", "f32x4.convert_i32x4_s")
                body.get(step)
                body.op("f32x4.mul")
                body.set(into)
        body.free(zero, step)
