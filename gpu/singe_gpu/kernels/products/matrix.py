"""A template for matrix products on subgroup matrices, with float32 sums.

A workgroup computes a tile of the output, each subgroup a smaller tile of 16×16 matrices. The operands' tiles have the
same layout in workgroup memory as in device memory, with 16 bytes of elements in a vec4<u32>: an operand whose depth is
contiguous is read as rows, another as columns. The next part is fetched while the current part is multiplied, and
stored beside it; or, where the language copies ahead, as many parts are on their way as a turn has, less one. Sums go
through workgroup memory to store_c, so that any epilogue works.

Each line of a tile is padded by one vector, so that the eight lines read at once are in different banks; by two where elements
of 32 bits are read one by one, across lines. Offsets of matrices are u32: shaders check each offset, and checking an i32
halved the speed on an H200.

In a wide cut, four subgroups multiply straight from workgroup memory, and go on before the product is there. Lines then have 128 bytes
each, whose vectors lie in an order of each line's own instead of a padding; longer ones are cut into blocks of such lines.

Matrices of float32 are a dialect's own: it computes their products as exactly as in float32, from parts of fewer digits. An
infinity or a number next to the largest one has no such parts, so that a sum which is not finite is computed again, by `exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from singe.extension import Contraction, Dim, DType, Expr, bfloat16, divides, float16, float32

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ...dialect import BARRIER, Dialect, Matrices
from ...rates import SUBGROUP_LANES, MatrixCut
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH, in_fours, is_words
from .gemm import place
from .operands import Loads, WordLoads, arguments, put_functions

MATRIX_SIDE: Final = 16
"""The sides of a matrix, as SUBGROUP_MATRIX says."""
MAX_SHORT_LINES: Final = 128
"""The most lines in a tile if they have 32 bytes each: with 256, a product took twice as long."""
SHORT_LINE_VECTORS: Final = 2
MAX_STRIP_MATRICES: Final = 4
UNIT_BYTES: Final = 16
"""Of a vector of workgroup memory."""
WIDE_LINE_VECTORS: Final = 8
"""The vectors of a line of a wide cut, and the lines whose orders differ."""
WIDE_ROWS: Final = 64
"""The rows of which four subgroups compute 16 each."""
MAX_ROWS_WITHOUT_MATRICES: Final = 2
"""With at most this many rows, matrices would be mostly empty."""


class _Coding(NamedTuple):
    """The elements of matrices: whether they represent a number, a u32 of nothing else, and the text of a u32 of the texts of as many
    numbers as it holds."""

    represents: Callable[[float], bool]
    word: Callable[[float], int]
    join: str


def _half(value: float) -> int:
    return int(np.float16(value).view(np.uint16))


def _single(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


_CODINGS: Final[Mapping[DType, _Coding]] = {
    float16: _Coding(lambda x: float(np.float16(x)) == x, lambda x: _half(x) * 0x10001, "pair_of({0}, {1})"),
    bfloat16: _Coding(
        lambda x: float(np.float32(x)) == x and _single(x) % (1 << 16) == 0,
        lambda x: (_single(x) >> 16) * 0x10001,
        "(bfloat16_of_f32({0}) | (bfloat16_of_f32({1}) << 16u))",
    ),
    float32: _Coding(lambda x: True, _single, "bitcast<u32>({0})"),
}


class _SumStrip(NamedTuple):
    """The matrices of sums beside each other that a subgroup writes to workgroup memory at once; lengths are in vectors."""

    matrices: int
    line: int
    stride: int

    @staticmethod
    def of(cut: MatrixCut, ahead: bool) -> _SumStrip:
        """Several of a row where parts are copied ahead, whose memory is free by then; otherwise one matrix."""
        count = min(cut.sub_columns // MATRIX_SIDE, MAX_STRIP_MATRICES) if ahead else 1
        line = count * MATRIX_SIDE // VECTOR_LENGTH
        return _SumStrip(count, line, line + (count > 1))  # lines of several matrices would be in the same banks

    @property
    def vectors(self) -> int:
        return MATRIX_SIDE * self.stride


def elements(dialect: Dialect, c: Contraction) -> DType | None:
    """The elements with which subgroup matrices can compute the product; None if they cannot, or are hardly faster."""
    few = isinstance(c.rows, int) and c.rows <= MAX_ROWS_WITHOUT_MATRICES
    if few or c.window != 1:
        return None
    kind = next((d for d in dialect.matrices.types if all(_exact(e, c, d) for e in (c.a, c.b))), None)
    if kind is not float32:
        return kind
    # `exact` reads words; a product that must gather its elements gains little.
    return kind if len(_words(Shader(dialect, c.kernel.ports), c, float32)) == 2 else None


def _words(shader: Shader, c: Contraction, kind: DType) -> set[str]:
    """Which of "a" and "b" are words."""
    store = (c.store.index, c.store.value)
    along = {"a": (c.a, c.k if c.a_deep else c.m, c.b), "b": (c.b, c.k if c.b_deep else c.n, c.a)}
    return {name for name, (e, side, other) in along.items() if is_words(e, side, shader, (other, *store), kind)}


def fitting(dialect: Dialect, c: Contraction, cuts: Iterable[MatrixCut]) -> list[MatrixCut]:
    """The cuts of which the tiles fit into workgroup memory, without too many short lines."""
    kind, matrices = elements(dialect, c), dialect.matrices
    assert kind is not None
    found = list[MatrixCut]()
    for cut in cuts:
        operands = [_Operand.of(name, c, cut, kind, matrices) for name in "ab"]
        most = matrices.wide_bytes if cut.wide else matrices.workgroup_bytes
        if UNIT_BYTES * sum(x.room for x in operands) <= most and all(
            x.lines <= MAX_SHORT_LINES or x.units > SHORT_LINE_VECTORS for x in operands
        ):
            found.append(cut)
    return found


def _exact(e: Expr, c: Contraction, kind: DType) -> bool:
    """Whether an operand is only loads of such elements, values rounded to them, or constants that they represent."""
    if e.word == "load":
        return c.kernel.ports[e.value].dtype is kind
    if e.word == "const":
        return _CODINGS[kind].represents(e.value)
    if e.word == "rounded":
        return e.value is kind
    return e.word == "select" and all(_exact(x, c, kind) for x in e.args[1:])


def print_matrix(c: Contraction, cut: MatrixCut, shader: Shader) -> Text:
    """The contraction in a given cut."""
    dialect = shader.dialect
    kind = elements(dialect, c)
    assert kind is not None
    found = _words(shader, c, kind)
    a, b = (replace(_Operand.of(name, c, cut, kind, dialect.matrices), words=name in found) for name in "ab")
    tiles = {x.name: x.tile for x in (a, b) if x.words}
    words = WordLoads(tiles, _CODINGS[kind].word, dialect.matrices.ahead, again=kind is float32)
    quads = frozenset("c" if in_fours((c.store,), c.n, shader, (c.a, c.b)) else "")
    # Where parts are copied ahead, those beyond the depth are left out.
    reach = cut.depth * (1 if dialect.matrices.ahead else cut.parts)
    put_functions(shader, c, cut.rows, cut.columns, reach, Loads(quads, words=words))
    shader.functions += [x.gather() for x in (a, b) if not x.words]
    for x in (a, b):
        shader.shared(x.tile, "vec4<u32>", x.room)
    out = Statements(shader)
    total = place(out, c, cut.rows, cut.columns)
    sums = _sums(out, c, cut, a, b)
    if words.again:
        _put_again(out, c, cut, a, b, sums, "c" in quads)
    _drain(out, c, sums, b, "c" in quads)
    return shader.text(out.lines, cut.threads, total)


@dataclass(frozen=True)
class _Operand:
    """How an operand's tile is loaded into workgroup memory, and from there into matrices.

    A line is contiguous in memory: along the depth if `deep`, otherwise across it.
    """

    name: str
    side: int
    deep: bool
    kind: DType
    element: str
    kept: int  # parts of the depth in workgroup memory
    strip: _SumStrip
    c: Contraction
    cut: MatrixCut
    words: bool = False

    @staticmethod
    def of(name: str, c: Contraction, cut: MatrixCut, kind: DType, matrices: Matrices) -> _Operand:
        side, deep = (cut.rows, c.a_deep) if name == "a" else (cut.columns, c.b_deep)
        kept = cut.parts if matrices.ahead else 2  # the current one and the next
        strip = _SumStrip.of(cut, matrices.ahead)
        return _Operand(name, side, deep, kind, matrices.types[kind], kept, strip, c, cut)

    @property
    def tile(self) -> str:
        return f"tile_{self.name}"

    @property
    def room(self) -> int:
        """Vectors of workgroup memory; the sums are written through b's."""
        return max(self.vectors * self.kept, self.cut.subgroups * self.strip.vectors if self.name == "b" else 0)

    @property
    def lines(self) -> int:
        return self.side if self.deep else self.cut.depth

    @property
    def unit(self) -> int:
        """Elements in a vector of workgroup memory."""
        return UNIT_BYTES // self.kind.size

    @property
    def units(self) -> int:
        """Vectors of a line, without its padding."""
        return (self.cut.depth if self.deep else self.side) // self.unit

    @property
    def stride(self) -> int:
        if self.cut.wide:
            return self.units
        return self.units + (1 if self.deep or self.kind.size == 2 else 2)

    @property
    def vectors(self) -> int:
        """Vectors of one part's tile."""
        return self.lines * self.stride

    @property
    def turns(self) -> range:
        count = self.lines * self.units
        assert count % self.cut.threads == 0, self.cut
        return range(count // self.cut.threads)

    def prepare(self, out: Statements, ahead: bool) -> None:
        for turn in self.turns:
            unit = f"(i32(lane) + {turn * self.cut.threads}i)" if turn else "i32(lane)"
            out.put(f"let {self.name}_line{turn} = {unit} / {self.units}i;")
            out.put(f"let {self.name}_unit{turn} = {unit} % {self.units}i;")
            if self.cut.wide:
                line, place, side = f"{self.name}_line{turn}", f"{self.name}_unit{turn}", f"{WIDE_LINE_VECTORS}i"
                block = f"({place} / {side} * {self.lines}i + {line}) * {side}"
                out.put(f"let {self.name}_at{turn} = {block} + (({place} % {side}) ^ ({line} % {side}));")
            if not ahead:
                out.put(f"var next_{self.name}{turn} = vec4<u32>();")

    def fetch(self, out: Statements, base: str) -> None:
        for turn in self.turns:
            function = "load" if self.words else "words"
            out.put(f"next_{self.name}{turn} = {function}_{self.name}({self._place(turn, base)});")

    def put(self, out: Statements, part: int) -> None:
        for turn in self.turns:
            out.put(f"{self.tile}[{self._at(turn, part)}] = next_{self.name}{turn};")

    def copy(self, out: Statements, base: str, part: int) -> None:
        """Fetch and put in one, where the language copies ahead."""
        for turn in self.turns:
            place, at = self._place(turn, base), self._at(turn, part)
            if self.words:
                out.put(f"copy_{self.name}({place}, {at});")
            else:
                out.put(f"{self.tile}[{at}] = words_{self.name}({place});")

    def _place(self, turn: int, base: str) -> str:
        """Where words lie in the matrix, as the arguments of a call. After the last part, elements beyond the depth are
        fetched but never used."""
        first = "row" if self.name == "a" else "column"
        line, unit = f"{self.name}_line{turn}", f"{self.name}_unit{turn} * {self.unit}i"
        side, deep = (line, unit) if self.deep else (unit, line)
        side, deep = f"{first} + {side}", f"{base} + {deep}"
        order = (side, deep) if self.name == "a" else (deep, side)
        return f"{arguments(self.c)}{', '.join(order)}"

    def _at(self, turn: int, part: int) -> str:
        """Where they lie in the tile."""
        if self.cut.wide:
            return f"{part * self.vectors}i + {self.name}_at{turn}"
        return f"{part * self.vectors}i + {self.name}_line{turn} * {self.stride}i + {self.name}_unit{turn}"

    def gather(self) -> str:
        """The function that packs elements into a vector if they are not contiguous in memory."""
        names = [f"t{i}" for i in range(len(self.c.batch))] + (["m", "k"] if self.name == "a" else ["k", "n"])
        along = "k" if self.deep else "m" if self.name == "a" else "n"

        def load(i: int) -> str:
            return f"load_{self.name}({', '.join(f'{n} + {i}i' if n == along and i else n for n in names)})"

        join = _CODINGS[self.kind].join
        each = 4 // self.kind.size
        words = [join.format(*map(load, range(i, i + each))) for i in range(0, self.unit, each)]
        header = f"fn words_{self.name}({', '.join(f'{n}: i32' for n in names)}) -> vec4<u32> {{"
        return f"{header}\n  return vec4<u32>({', '.join(words)});\n}}"

    def matrix(self, part: int, side: str, number: int, step: int) -> str:
        """A matrix of the tile: number `number` from `side` on, at step `step` of 16 along the depth."""
        order = "row_major" if self.deep == (self.name == "a") else "col_major"
        across, along = f"({side} + {number * MATRIX_SIDE}u)", step * MATRIX_SIDE
        if self.deep:
            at = f"{across} * {self.stride}u + {part * self.vectors + along // self.unit}u"
        else:
            at = f"{across} / {self.unit}u + {part * self.vectors + along * self.stride}u"
        kind = "left" if self.name == "a" else "right"
        shape = f"subgroup_matrix_{kind}<{self.element}, {MATRIX_SIDE}, {MATRIX_SIDE}>"
        return f"subgroupMatrixLoad<{shape}, {order}>(&{self.tile}, {at}, {self.stride}u)"

    def wide(self, part: int, rows: str, step: int) -> tuple[str, str]:
        """The order of a tile's elements, and where the matrix of 16 along the depth begins that four subgroups take. rows: the first
        of those of the left side, a multiple of 64; of the right side they take all columns."""
        order = "row_major" if self.deep == (self.name == "a") else "col_major"
        along = step * MATRIX_SIDE * (1 if self.deep else WIDE_LINE_VECTORS * self.unit) // self.unit
        at = f"{part * self.vectors + along}u"
        return order, f"{rows} * {WIDE_LINE_VECTORS}u + {at}" if self.name == "a" else at


def _sums(out: Statements, c: Contraction, cut: MatrixCut, a: _Operand, b: _Operand) -> list[list[str]]:
    """Write the loop over the depth; returns the names of a subgroup's sums."""
    across = cut.columns // cut.sub_columns
    # The remainder changes no value, but bounds the offset: an offset known to be within the tile is not checked.
    down = cut.rows // cut.sub_rows
    out.put(f"let upper = subgroup / {across}u % {down}u * {cut.sub_rows}u;")
    out.put(f"let left = subgroup % {across}u * {cut.sub_columns}u;")
    count = cut.sub_columns // MATRIX_SIDE
    sums = [[f"c{i}_{j}" for j in range(count)] for i in range(cut.sub_rows // MATRIX_SIDE)]
    ahead = out.shader.dialect.matrices.ahead
    for operand in (a, b):
        operand.prepare(out, ahead)
    kind = f"subgroup_matrix_result<f32, {MATRIX_SIDE}, {MATRIX_SIDE}>"
    if cut.wide:
        out.put(f"var sums = array<{kind}, {count}>();")
        sums = [[f"sums[{j}]" for j in range(count)]]
    else:
        for name in (name for line in sums for name in line):
            out.put(f"var {name} = {kind}();")
    turns = f"for (var base = 0i; base < {out.shader.dim(c.depth)}; base += {cut.depth * cut.parts}i)"
    if ahead:
        _put_turns_ahead(out, turns, c.depth, cut, a, b, sums)
        return sums
    _fetch(out, (a, b), "0i")
    _put(out, (a, b), 0)
    with out.scope(turns) as turn:
        for part in range(cut.parts):
            _fetch(turn, (a, b), f"base + {(part + 1) * cut.depth}i")
            _multiply(turn, cut, a, b, sums, part)
            _put(turn, (a, b), (part + 1) % 2)
    return sums


def _put_turns_ahead(
    out: Statements, turns: str, depth: Dim, cut: MatrixCut, a: _Operand, b: _Operand, sums: Sequence[Sequence[str]]
) -> None:  # fmt: skip
    """The loop where parts are copied ahead. Parts beyond the depth are neither copied, since all workgroups would read the last
    element, nor multiplied. In a wide cut, the part before is still being multiplied while the next is copied."""
    on_their_way, end = cut.parts - (2 if cut.wide else 1), out.shader.dim(depth)
    for part in range(on_their_way):
        _copy(out, (a, b), depth, f"{part * cut.depth}i", part)
    with out.scope(turns) as turn:
        for part in range(cut.parts):
            if part and not divides(depth, cut.depth * cut.parts):
                turn.put(f"if (base + {part * cut.depth}i >= {end}) {{ break; }}")
            turn.put(f"copiesWait<{on_their_way - 1}>();")
            later = part + on_their_way
            following = (turn, (a, b), depth, f"base + {later * cut.depth}i", later % cut.parts)
            if cut.wide:
                _multiply_wide(turn, cut, a, b, part)
                _copy(*following)
                turn.put("wideWait<1>();")
            else:
                turn.put(BARRIER)
                _copy(*following)
                _multiply(turn, cut, a, b, sums, part)
    if cut.wide:
        out.put("wideWait<0>();")
    out.put("copiesWait<0>();")
    out.put(BARRIER)


def _multiply_wide(out: Statements, cut: MatrixCut, a: _Operand, b: _Operand, part: int) -> None:
    """Begin to multiply one part of the depth."""
    out.put("wideBarrier();")
    for step in range(cut.depth // MATRIX_SIDE):
        rows = f"(upper / {WIDE_ROWS}u * {WIDE_ROWS}u)"
        (left, from_a), (right, from_b) = a.wide(part, rows, step), b.wide(part, "", step)
        out.put(f"multiplyWide<{a.element}, {left}, {right}>(&sums, &{a.tile}, {from_a}, &{b.tile}, {from_b});")
    out.put("wideEnd();")


def _copy(out: Statements, operands: Sequence[_Operand], depth: Dim, base: str, part: int) -> None:
    with out.scope(f"if ({base} < {out.shader.dim(depth)})") as there:
        for operand in operands:
            operand.copy(there, base, part)
    out.put("copiesEnd();")


def _fetch(out: Statements, operands: Sequence[_Operand], base: str) -> None:
    for operand in operands:
        operand.fetch(out, base)


def _put(out: Statements, operands: Sequence[_Operand], part: int) -> None:
    for operand in operands:
        operand.put(out, part)
    out.put(BARRIER)


def _multiply(
    out: Statements, cut: MatrixCut, a: _Operand, b: _Operand, sums: Sequence[Sequence[str]], part: int
) -> None:
    """Multiply one part of the depth and add to the sums."""
    steps = cut.depth // MATRIX_SIDE
    for step in range(steps):
        number = part * steps + step
        for i in range(len(sums)):
            out.put(f"let a{number}_{i} = {a.matrix(part % a.kept, 'upper', i, step)};")
        for j in range(len(sums[0])):
            out.put(f"let b{number}_{j} = {b.matrix(part % b.kept, 'left', j, step)};")
            for i, line in enumerate(sums):
                out.put(f"{line[j]} = subgroupMatrixMultiplyAccumulate(a{number}_{i}, b{number}_{j}, {line[j]});")


def _put_again(
    out: Statements, c: Contraction, cut: MatrixCut, a: _Operand, b: _Operand, sums: Sequence[Sequence[str]], in_quads: bool
) -> None:  # fmt: skip
    """Write what a subgroup does of whose sums some are not finite: it computes all without matrices, and ends."""
    _put_exact(out.shader, c, a, b)
    line = cut.sub_columns // VECTOR_LENGTH
    fine = " && ".join(f"areFinite({name})" for names in sums for name in names)
    with out.scope(f"if (subgroupAny(!({fine})))") as again:
        with again.scope(f"for (var at = member; at < {cut.sub_rows * line}u; at += {SUBGROUP_LANES}u)") as turn:
            turn.put(f"let m = row + i32(upper + at / {line}u);")
            turn.put(f"let n = column + i32(left + at % {line}u * {VECTOR_LENGTH}u);")
            parts = (f"exact({arguments(c)}m, n + {i}i)" for i in range(VECTOR_LENGTH))
            turn.put(f"let total = vec4<f32>({', '.join(parts)});")
            for n, value in _stores("n", in_quads):
                turn.put(f"store_c({arguments(c)}m, {n}, {value});")
        again.put("return;")


def _put_exact(shader: Shader, c: Contraction, a: _Operand, b: _Operand) -> None:
    """Write the function `exact`: a sum without matrices."""
    out = Statements(shader)
    out.put("var total = 0.0f;")
    with out.scope(f"for (var k = 0i; k < {shader.dim(c.depth)}; k++)") as turn:
        parts = list[str]()
        for x, side in ((a, "m"), (b, "n")):
            along = "k" if x.deep else side
            places = [f"{n} / {x.unit}i * {x.unit}i" if n == along else n for n in ("mk" if x is a else "kn")]
            turn.put(f"let {x.name} = load_{x.name}({arguments(c)}{', '.join(places)});")
            parts.append(f"bitcast<f32>({x.name}[{along} % {x.unit}i])")
        turn.put(f"total += {' * '.join(parts)};")
    out.put("return total;")
    names = [*(f"t{i}" for i in range(len(c.batch))), "m", "n"]
    header = f"fn exact({', '.join(f'{n}: i32' for n in names)}) -> f32 {{"
    shader.functions.append("\n".join((header, *out.lines, "}")))


def _stores(side: str, in_quads: bool) -> list[tuple[str, str]]:
    """The columns of the stores of `total`, and what they store."""
    if in_quads:
        return [(side, "total")]
    return [(f"{side} + {i}i", f"total.{part}") for i, part in enumerate(VECTOR_COMPONENTS)]


def _drain(out: Statements, c: Contraction, sums: Sequence[Sequence[str]], b: _Operand, in_quads: bool) -> None:
    """Write the sums through workgroup memory to store_c, one strip of each subgroup at a time."""
    names = [f"t{i}" for i in range(len(c.batch))]
    strip, barrier, tile = b.strip, out.shader.dialect.matrices.barrier, b.tile
    kind = f"subgroup_matrix_result<f32, {MATRIX_SIDE}, {MATRIX_SIDE}>"
    matrices = [f"sum{j}" for j in range(strip.matrices)]
    parameters = [
        *(f"{n}: i32" for n in (*names, "m", "n")),
        "first: u32",
        "member: u32",
        *(f"{x}: {kind}" for x in matrices),
    ]
    batch = "".join(f"{n}, " for n in names)
    line = MATRIX_SIDE // VECTOR_LENGTH
    at = "at" if strip.stride == strip.line else f"at / {strip.line}u * {strip.stride}u + at % {strip.line}u"
    out.shader.functions.append("\n".join([
        f"fn drain({', '.join(parameters)}) {{",
        *(
            f"  subgroupMatrixStore<row_major>(&{tile}, first + {j * line}u, {x}, {strip.stride}u);"
            for j, x in enumerate(matrices)
        ),
        f"  {barrier}",
        f"  for (var at = member; at < {MATRIX_SIDE * strip.line}u; at += {SUBGROUP_LANES}u) {{",
        f"    let total = bitcast<vec4<f32>>({tile}[first + {at}]);",
        f"    let side = n + i32(at % {strip.line}u) * {VECTOR_LENGTH}i;",
        *(f"    store_c({batch}m + i32(at / {strip.line}u), {n}, {value});" for n, value in _stores("side", in_quads)),
        "  }",
        f"  {barrier}",
        "}",
    ]))  # fmt: skip
    for i, row in enumerate(sums):
        for j in range(0, len(row), strip.matrices):
            m, n = f"row + i32(upper) + {i * MATRIX_SIDE}i", f"column + i32(left) + {j * MATRIX_SIDE}i"
            given = ", ".join(row[j : j + strip.matrices])
            out.put(f"drain({arguments(c)}{m}, {n}, subgroup * {strip.vectors}u, member, {given});")
