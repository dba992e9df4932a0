"""The template for products of many rows by packed weights, on subgroup matrices of 16 bits with float32 sums.

A workgroup brings parts of the depth to workgroup memory: 32 of it for each `slice` of its subgroups. Weights stay packed there; a
subgroup unpacks those that it multiplies, as whole numbers, which 16 bits hold exactly. The 32 numbers of a row are scaled by a power of
two that brings them into the range of 16 bits, where each is the sum of two, with 22 digits: two products are one. Their sums, which
have one scale and one zero, are then scaled in float32 and added. At the end the slices' sums go through workgroup memory to store_c.

The order along the depth is free, as long as both operands have the same: a unit of eight neighbours is four pairs of numbers four
apart, which is how the numbers of a word come out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from singe.extension import float32

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ...rates import MatrixCut
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH
from .gemm import place
from .matrix import MATRIX_SIDE
from .operands import Loads, arguments, put_functions, quads_of
from .packed import PackedProduct

STEP: Final = 32
"""How much of the depth a subgroup multiplies at once."""
UNIT: Final = 8
"""How many numbers of a row an invocation brings at once."""
_UNITS: Final = STEP // UNIT
_SUM: Final = f"subgroup_matrix_result<f32, {MATRIX_SIDE}, {MATRIX_SIDE}>"


class _Table(NamedTuple):
    """What is brought of the weights: an array in workgroup memory, what it holds, its port, a slice's lines and the vectors of a line."""

    name: str
    kind: str
    port: int
    lines: int
    stride: int


def takes(p: PackedProduct) -> bool:
    """Whether the template takes a product."""
    return p.block % STEP == 0 and not p.folds and p.c.a.dtype is float32


def fits(p: PackedProduct, cut: MatrixCut) -> bool:
    """Whether the slices of a cut have equal parts of the depth."""
    return p.depth % cut.depth == 0


def print_packed_matrix(p: PackedProduct, cut: MatrixCut, shader: Shader) -> Text:
    """The product in a given cut, whose depth is that of all slices."""
    return _PackedMatrixText(p, cut, shader).text()


class _PackedMatrixText:
    """A shader while it is written."""

    def __init__(self, p: PackedProduct, cut: MatrixCut, shader: Shader) -> None:
        self.p, self.c, self.cut, self.shader = p, p.c, cut, shader
        self.slices: Final = cut.depth // STEP
        self.threads: Final = cut.threads * self.slices
        self.fours: Final = cut.columns // VECTOR_LENGTH
        lines = STEP // p.each
        # Four lines of words that are read at once are in different banks.
        self.words: Final = _Table("words", "u32", p.words, lines, self.fours + UNIT // lines)
        self.tables: Final = [self.words, _Table("scales", "f32", p.scale, 1, self.fours)]
        self.zero: Final = isinstance(p.zero, int)
        if isinstance(p.zero, int):
            self.tables.append(_Table("offsets", "f32", p.zero, 1, self.fours))
        self.whole: Final = 1 << (p.bits - 1) if self.zero else int(p.zero)
        """What is subtracted from a number while it is unpacked: its zero, or what a zero is near to."""
        self.quad: Final = "a" in quads_of(shader, p.c) and p.c.a_deep
        self.units: Final = self.slices * cut.rows * _UNITS
        self.down: Final = range(cut.sub_rows // MATRIX_SIDE)
        self.across: Final = range(cut.sub_columns // MATRIX_SIDE)
        self.total_line: Final = self.fours + 1
        """Vectors of a line of sums, which are in other banks than those of the next."""

    def text(self) -> Text:
        p, c, cut, shader, out = self.p, self.c, self.cut, self.shader, Statements(self.shader)
        quads = quads_of(shader, c) - ({"b"} if self.quad else {"a", "b"})
        put_functions(shader, c, cut.rows, cut.columns, cut.depth, Loads(quads), operands="a")
        shader.shared("larger", "vec4<u32>", max(2 * self.units, self.slices * cut.rows * self.total_line))
        shader.shared("smaller", "vec4<u32>", 2 * self.units)
        for table in self.tables:
            shader.shared(table.name, f"vec4<{table.kind}>", 2 * self.slices * table.lines * table.stride)
        for name in ("row_scales", "row_sums") if self.zero else ("row_scales",):
            shader.shared(name, "f32", 2 * self.slices * cut.rows)
        total = place(out, c, cut.rows, cut.columns)
        across, down = cut.columns // cut.sub_columns, cut.rows // cut.sub_rows
        out.put(f"let slice = subgroup / {cut.subgroups}u;")
        out.put(f"let upper = subgroup / {across}u % {down}u * {cut.sub_rows}u;")
        out.put(f"let left = subgroup % {across}u * {cut.sub_columns}u;")
        for i in self.down:
            for j in self.across:
                out.put(f"var c{i}_{j} = {_SUM}();")
        self._declare(out)
        self._fetch(out, "0i")
        self._put(out, "0u")
        out.put("workgroupBarrier();")
        out.put("var half = 0u;")
        with out.scope(f"for (var base = 0i; base < {p.depth}i; base += {cut.depth}i)") as turn:
            more = f"base + {cut.depth}i < {p.depth}i"
            with turn.scope(f"if ({more})") as some:
                self._fetch(some, f"base + {cut.depth}i")
            self._multiply(turn)
            turn.put("half = 1u - half;")
            with turn.scope(f"if ({more})") as some:
                self._put(some, "half")
            turn.put("workgroupBarrier();")
        self._drain(out, "c" in quads)
        return shader.text(out.lines, self.threads, total)

    def _declare(self, out: Statements) -> None:
        """Where an invocation's pieces lie, and what holds the next ones while the current ones are multiplied."""
        rows = self.cut.rows
        for turn, piece in self._pieces(self.units):
            out.put(f"let a_line{turn} = {piece} / {_UNITS}i % {rows}i;")
            out.put(f"let a_deep{turn} = {piece} / {_UNITS * rows}i * {STEP}i + {piece} % {_UNITS}i * {UNIT}i;")
            for side in range(UNIT // VECTOR_LENGTH):
                out.put(f"var next_a{turn}_{side} = vec4<f32>();")
        for table in self.tables:
            for turn, _ in self._pieces(self._vectors(table)):
                out.put(f"var next_{table.name}{turn} = vec4<{table.kind}>();")

    def _pieces(self, count: int) -> list[tuple[int, str]]:
        """Turns, each with the number of an invocation's piece of so many."""
        turns = range(-(-count // self.threads))
        return [(turn, f"(i32(lane) + {turn * self.threads}i)" if turn else "i32(lane)") for turn in turns]

    def _vectors(self, table: _Table) -> int:
        """How many vectors of a table are brought at once."""
        return self.slices * table.lines * self.fours

    @contextmanager
    def _within(self, out: Statements, turn: int, piece: str, count: int) -> Iterator[Statements]:
        """Where the piece is one of so many."""
        if (turn + 1) * self.threads <= count:
            yield out
        else:
            with out.scope(f"if ({piece} < {count}i)") as some:
                yield some

    def _fetch(self, out: Statements, base: str) -> None:
        p, shader = self.p, self.shader
        for turn, _ in self._pieces(self.units):
            for side in range(UNIT // VECTOR_LENGTH):
                deep = f"{base} + a_deep{turn} + {side * VECTOR_LENGTH}i"
                out.put(f"next_a{turn}_{side} = {self._four(f'row + a_line{turn}', deep)};")
        for table in self.tables:
            for turn, piece in self._pieces(count := self._vectors(table)):
                with self._within(out, turn, piece, count) as some:
                    line = f"{piece} / {self.fours}i"
                    if table is self.words:
                        line = f"(({base}) / {p.each}i + {line})"
                    else:
                        line = f"({base} + {line} * {STEP}i) / {p.block}i"
                    at = f"({line} * {p.columns}i + column + {piece} % {self.fours}i * {VECTOR_LENGTH}i)"
                    text = shader.load_vector(table.port, at)
                    some.put(
                        f"next_{table.name}{turn} = {f'bitcast<vec4<u32>>({text})' if table is self.words else text};"
                    )

    def _four(self, row: str, deep: str) -> str:
        """Four neighbours of a row."""
        given = arguments(self.c)
        if self.quad:
            return f"load_a({given}{row}, {deep})"
        parts = (f"load_a({given}{row}, {deep} + {k}i)" for k in range(VECTOR_LENGTH))
        return f"vec4<f32>({', '.join(parts)})"

    def _put(self, out: Statements, half: str) -> None:
        rows = self.cut.rows
        for turn, piece in self._pieces(self.units):
            units = [f"next_a{turn}_{side}" for side in range(UNIT // VECTOR_LENGTH)]
            scale = out.let(f"scale{turn}", f"scaleOfUnits({', '.join(units)})")
            for name in ("larger", "smaller"):
                scaled = ", ".join(f"{unit} * {scale}" for unit in units)
                out.put(f"{name}[i32({half}) * {self.units}i + {piece}] = {name}Parts({scaled});")
            sums = {"row_scales": f"powerBack({scale})"}
            if self.zero:
                sums["row_sums"] = out.let(f"sum{turn}", f"sumOfUnits({', '.join(units)})")
            with out.scope(f"if ({piece} % {_UNITS}i == 0i)") as first:
                for name, text in sums.items():
                    first.put(f"{name}[i32({half}) * {self.slices * rows}i + {piece} / {_UNITS}i] = {text};")
        for table in self.tables:
            for turn, piece in self._pieces(count := self._vectors(table)):
                with self._within(out, turn, piece, count) as some:
                    value = f"next_{table.name}{turn}"
                    if table.name == "offsets":
                        value = f"next_scales{turn} * ({value} - vec4<f32>({self.whole}.0f))"
                    first = f"i32({half}) * {self.slices * table.lines * table.stride}i"
                    at = f"{first} + {piece} / {self.fours}i * {table.stride}i + {piece} % {self.fours}i"
                    some.put(f"{table.name}[{at}] = {value};")

    def _multiply(self, out: Statements) -> None:
        """Multiply one part of the depth and add to the sums."""
        p, cut = self.p, self.cut
        part = out.let("part", f"half * {self.slices}u + slice")
        for i in self.down:
            at = f"{part} * {cut.rows * _UNITS}u + (upper + {i * MATRIX_SIDE}u) * {_UNITS}u"
            out.put(f"let rows{i} = packedLeft(&larger, &smaller, {at});")
        for j in self.across:
            side = f"(left + {j * MATRIX_SIDE}u) / {VECTOR_LENGTH}u"
            at = f"{part} * {self.words.lines * self.words.stride}u + {side}"
            out.put(f"let columns{j} = packedRight<{p.bits}, {self.whole}>(&words, {at}, {self.words.stride}u);")
            for i in self.down:
                row, columns = f"{part} * {cut.rows}u + upper + {i * MATRIX_SIDE}u", f"{part} * {self.fours}u + {side}"
                total = f"c{i}_{j}"
                out.put(
                    f"{total} = addScaled({total}, multiplyPacked(rows{i}, columns{j}), &row_scales, {row}, &scales, {columns});"
                )
                if self.zero:
                    out.put(f"{total} = lessZeros({total}, &row_sums, {row}, &offsets, {columns});")

    def _drain(self, out: Statements, in_quads: bool) -> None:
        """Write the sums of all slices to workgroup memory, and their totals to store_c."""
        cut, line = self.cut, self.total_line
        for i in self.down:
            for j in self.across:
                row = f"slice * {cut.rows}u + upper + {i * MATRIX_SIDE}u"
                at = f"({row}) * {line}u + (left + {j * MATRIX_SIDE}u) / {VECTOR_LENGTH}u"
                out.put(f"subgroupMatrixStore<row_major>(&larger, {at}, c{i}_{j}, {line}u);")
        out.put("workgroupBarrier();")
        count = cut.rows * self.fours
        with out.scope(f"for (var at = i32(lane); at < {count}i; at += {self.threads}i)") as turn:
            turn.put(f"let place = at / {self.fours}i * {line}i + at % {self.fours}i;")
            parts = (f"bitcast<vec4<f32>>(larger[place + {k * cut.rows * line}i])" for k in range(self.slices))
            turn.put(f"let total = {' + '.join(parts)};")
            turn.put(f"let side = column + at % {self.fours}i * {VECTOR_LENGTH}i;")
            stores = [("side", "total")]
            if not in_quads:
                stores = [(f"side + {k}i", f"total.{part}") for k, part in enumerate(VECTOR_COMPONENTS)]
            for n, value in stores:
                turn.put(f"store_c({arguments(self.c)}row + at / {self.fours}i, {n}, {value});")
