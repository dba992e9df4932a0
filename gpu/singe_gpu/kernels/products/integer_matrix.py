"""Products of 8-bit integers on subgroup matrices, whose sums are integers: those of integers.py, bit by bit, in larger tiles.

A workgroup brings a part of the depth to workgroup memory, as lines of bytes along the depth: the two parts of each number of the first
operand (see integers.py), and the weights. Each of its subgroups multiplies a tile of them; meanwhile the next part is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from singe.extension import Contraction, float32

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ...rates import SUBGROUP_LANES, MatrixCut
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH
from .gemm import place
from .matrix import MATRIX_SIDE, UNIT_BYTES
from .operands import Loads, arguments, put_functions, quads_of

MATRIX_DEPTH: Final = 32
"""Bytes of the depth in a matrix."""
WORDS_BESIDE: Final = 4
"""Words of the depth, and so rows of memory, that neighbours read where columns are contiguous: 32 bytes of each row."""
_SUM: Final = f"subgroup_matrix_result<i32, {MATRIX_SIDE}, {MATRIX_SIDE}>"
_VECTORS: Final = MATRIX_SIDE * MATRIX_SIDE // VECTOR_LENGTH
"""Of a matrix of sums."""


def print_integer_matrix(c: Contraction, cut: MatrixCut, shader: Shader) -> Text:
    """The contraction in a given cut."""
    if c.a.word == "cast" and c.a.args[0].dtype is float32:  # whole numbers need no test before they are converted
        c = replace(c, a=c.a.args[0])
    quads = quads_of(shader, c) - {name for name, deep in (("a", not c.a_deep), ("b", c.b_deep)) if deep}
    put_functions(shader, c, cut.rows, cut.columns, cut.depth, Loads(quads))
    stride = cut.depth // UNIT_BYTES + 1  # the eight lines that are read at once are in different banks
    for name, lines in (("halves", cut.rows), ("odds", cut.rows), ("weights", cut.columns)):
        shader.shared(name, "vec4<u32>", max(lines * stride, cut.subgroups * _VECTORS if name == "halves" else 0))
    out = Statements(shader)
    total = place(out, c, cut.rows, cut.columns)
    across = cut.columns // cut.sub_columns
    out.put(f"let upper = subgroup / {across}u % {cut.rows // cut.sub_rows}u * {cut.sub_rows}u;")
    out.put(f"let left = subgroup % {across}u * {cut.sub_columns}u;")
    sums = [f"{i}_{j}" for i in range(cut.sub_rows // MATRIX_SIDE) for j in range(cut.sub_columns // MATRIX_SIDE)]
    for name in sums:
        out.put(f"var h{name} = {_SUM}();")
        out.put(f"var o{name} = {_SUM}();")
    parts = _TilesOfBytes(c, cut, quads, stride)
    parts.prepare(out)
    parts.fetch(out, "0i")
    depth = shader.dim(c.depth)
    with out.scope(f"for (var base = 0i; base < {depth}; base += {cut.depth}i)") as turn:
        parts.put(turn)
        turn.put("workgroupBarrier();")
        with turn.scope(f"if (base + {cut.depth}i < {depth})") as more:
            parts.fetch(more, f"base + {cut.depth}i")
        _multiply(turn, cut, stride)
        turn.put("workgroupBarrier();")
    _put_drain(shader, c, "c" in quads)
    for name in sums:
        i, j = map(int, name.split("_"))
        m, n = f"row + i32(upper) + {i * MATRIX_SIDE}i", f"column + i32(left) + {j * MATRIX_SIDE}i"
        out.put(f"drain({arguments(c)}{m}, {n}, subgroup * {_VECTORS}u, member, h{name} + h{name} + o{name});")
    return shader.text(out.lines, cut.threads, total)


class _TilesOfBytes:
    """How a part of the depth comes to workgroup memory: each invocation packs some words of four neighbours along the depth."""

    def __init__(self, c: Contraction, cut: MatrixCut, quads: frozenset[str], stride: int) -> None:
        self._c, self._cut, self._quads, self._stride = c, cut, quads, stride
        self._words: Final = cut.depth // VECTOR_LENGTH
        self._blocks: Final = "b" in quads
        """Whether the second operand comes by four words of four neighbouring columns."""
        self._columns: Final = cut.columns // (VECTOR_LENGTH if self._blocks else 1)

    def _turns(self, lines: int) -> Iterable[tuple[int, str]]:
        """Numbers, each with that of an invocation's word."""
        count, threads = lines * self._words, self._cut.threads
        assert count % threads == 0, self._cut
        return [(turn, f"(i32(lane) + {turn * threads}i)") for turn in range(count // threads)]

    def prepare(self, out: Statements) -> None:
        for turn, word in self._turns(self._cut.rows):
            out.put(f"let a_line{turn} = {word} / {self._words}i;")
            out.put(f"let a_word{turn} = {word} % {self._words}i;")
            out.put(f"var next_a{turn} = vec4<i32>();")
        for turn, word in self._turns(self._columns):
            if self._blocks:
                strip = f"{word} / {WORDS_BESIDE}i"
                out.put(f"let b_line{turn} = {strip} % {self._columns}i * {VECTOR_LENGTH}i;")
                out.put(f"let b_word{turn} = {strip} / {self._columns}i * {WORDS_BESIDE}i + {word} % {WORDS_BESIDE}i;")
            else:
                out.put(f"let b_line{turn} = {word} / {self._words}i;")
                out.put(f"let b_word{turn} = {word} % {self._words}i;")
            for k in range(VECTOR_LENGTH if self._blocks else 1):
                out.put(f"var next_b{turn}_{k} = vec4<i32>();")

    def fetch(self, out: Statements, base: str) -> None:
        given, types = arguments(self._c), out.shader.dialect.types
        for turn, _ in self._turns(self._cut.rows):
            line, deep = f"row + a_line{turn}", f"{base} + a_word{turn} * {VECTOR_LENGTH}i"
            calls = [f"load_a({given}{line}, {deep} + {k}i)" for k in range(VECTOR_LENGTH)]
            four = (
                f"load_a({given}{line}, {deep})"
                if "a" in self._quads
                else f"vec4<{types[self._c.a.dtype]}>({', '.join(calls)})"
            )
            out.put(f"next_a{turn} = vec4<i32>({four});")
        for turn, _ in self._turns(self._columns):
            line, deep = f"column + b_line{turn}", f"{base} + b_word{turn} * {VECTOR_LENGTH}i"
            calls = [f"load_b({given}{deep} + {k}i, {line})" for k in range(VECTOR_LENGTH)]
            if self._blocks:
                for k, call in enumerate(calls):
                    out.put(f"next_b{turn}_{k} = vec4<i32>({call});")
            else:
                out.put(f"next_b{turn}_0 = vec4<i32>(vec4<{types[self._c.b.dtype]}>({', '.join(calls)}));")

    def put(self, out: Statements) -> None:
        for turn, _ in self._turns(self._cut.rows):
            at = self._at(f"a_line{turn}", f"a_word{turn}")
            out.put(f"halves{at} = packed_bytes(next_a{turn} >> vec4<u32>(1u));")
            out.put(f"odds{at} = packed_bytes(next_a{turn} & vec4<i32>(1i));")
        for turn, _ in self._turns(self._columns):
            if not self._blocks:
                out.put(f"weights{self._at(f'b_line{turn}', f'b_word{turn}')} = packed_bytes(next_b{turn}_0);")
                continue
            for i, part in enumerate(VECTOR_COMPONENTS):
                turned = ", ".join(f"next_b{turn}_{k}.{part}" for k in range(VECTOR_LENGTH))
                at = self._at(f"(b_line{turn} + {i}i)", f"b_word{turn}")
                out.put(f"weights{at} = packed_bytes(vec4<i32>({turned}));")

    def _at(self, line: str, word: str) -> str:
        return f"[{line} * {self._stride}i + {word} / {VECTOR_LENGTH}i][{word} % {VECTOR_LENGTH}i]"


def _multiply(out: Statements, cut: MatrixCut, stride: int) -> None:
    """Multiply one part of the depth and add to the sums."""
    left, right = (
        f"subgroup_matrix_left<i8, {MATRIX_DEPTH}, {MATRIX_SIDE}>",
        f"subgroup_matrix_right<i8, {MATRIX_SIDE}, {MATRIX_DEPTH}>",
    )
    for step in range(cut.depth // MATRIX_DEPTH):
        along = step * MATRIX_DEPTH // UNIT_BYTES

        def load(kind: str, order: str, tile: str, first: str, number: int, along: int = along) -> str:
            at = f"({first} + {number * MATRIX_SIDE}u) * {stride}u + {along}u"
            return f"subgroupMatrixLoad<{kind}, {order}>(&{tile}, {at}, {stride}u)"

        for i in range(cut.sub_rows // MATRIX_SIDE):
            out.put(f"let half{step}_{i} = {load(left, 'row_major', 'halves', 'upper', i)};")
            out.put(f"let odd{step}_{i} = {load(left, 'row_major', 'odds', 'upper', i)};")
        for j in range(cut.sub_columns // MATRIX_SIDE):
            out.put(f"let weight{step}_{j} = {load(right, 'col_major', 'weights', 'left', j)};")
            for i in range(cut.sub_rows // MATRIX_SIDE):
                for sums, part in (("h", "half"), ("o", "odd")):
                    name = f"{sums}{i}_{j}"
                    out.put(f"{name} = subgroupMatrixMultiplyAccumulate({part}{step}_{i}, weight{step}_{j}, {name});")


def _put_drain(shader: Shader, c: Contraction, in_fours: bool) -> None:
    """Write the function that stores a matrix of sums, through workgroup memory that nothing else needs any more."""
    names = [f"t{i}" for i in range(len(c.batch))]
    parameters = [*(f"{n}: i32" for n in (*names, "m", "n")), "first: u32", "member: u32", f"sums: {_SUM}"]
    batch, barrier = "".join(f"{n}, " for n in names), shader.dialect.matrices.barrier
    line = MATRIX_SIDE // VECTOR_LENGTH
    stores = (
        [("side", "total")] if in_fours else [(f"side + {i}i", f"total.{p}") for i, p in enumerate(VECTOR_COMPONENTS)]
    )
    shader.functions.append("\n".join([
        f"fn drain({', '.join(parameters)}) {{",
        f"  subgroupMatrixStore<row_major>(&halves, first, sums, {line}u);",
        f"  {barrier}",
        f"  for (var at = member; at < {_VECTORS}u; at += {SUBGROUP_LANES}u) {{",
        "    let total = bitcast<vec4<i32>>(halves[first + at]);",
        f"    let side = n + i32(at % {line}u) * {VECTOR_LENGTH}i;",
        *(f"    store_c({batch}m + i32(at / {line}u), {n}, {value});" for n, value in stores),
        "  }",
        f"  {barrier}",
        "}",
    ]))  # fmt: skip
