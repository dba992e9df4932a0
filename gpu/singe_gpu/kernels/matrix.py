"""A template for float16 matrix products on subgroup matrices, with float32 sums.

A workgroup computes a tile of the output, each subgroup a smaller tile of 16×16 matrices. The operands' tiles have the
same layout in workgroup memory as in device memory, with eight float16 in a vec4<u32>: an operand whose depth is
contiguous is read as rows, another as columns. The next part is fetched while the current part is multiplied, and
stored beside it. Sums go through workgroup memory to store_c, so that any epilogue works.

Each line of a tile is padded by one vector, so that the eight lines read at once are in different banks. Offsets of
matrices are u32: shaders check each offset, and checking an i32 halved the speed on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from singe.extension import Contraction, Expr, float16

from ..code.shader import Shader, Text
from ..code.statements import Statements
from .gemm import place
from .operands import Loads, arguments, put_functions
from .vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH, in_fours, is_quad

MATRIX_SIDE: Final = 16
"""The sides of a matrix, as SUBGROUP_MATRIX says."""
SUBGROUP_LANES: Final = 32
"""The invocations of a subgroup, as SUBGROUP_MATRIX says."""
ELEMENTS_PER_VECTOR: Final = 8
"""Elements in a vector of workgroup memory."""
WORKGROUP_BYTES_OF_MATRICES: Final = 1 << 15
"""Bytes of workgroup memory, as SUBGROUP_MATRIX says."""
DEPTH_PARTS_IN_MEMORY: Final = 2
"""Parts of the depth in workgroup memory: the current one and the next."""
MAX_TILE_LINES: Final = 128
"""The most lines in a tile: with 256 lines of 32 bytes each, a product took twice as long."""
MAX_ROWS_WITHOUT_MATRICES: Final = 2
"""With at most this many rows, matrices would be mostly empty."""
_SPARE: Final = MATRIX_SIDE * MATRIX_SIDE * 4 // 16
"""Vectors of workgroup memory for a subgroup's sums."""


@dataclass(frozen=True)
class MatrixCut:
    """A cut by subgroup matrices: the tiles of a workgroup and of a subgroup, in elements.

    A turn of the loop covers `parts` parts of `depth`, an even number of them.
    """

    rows: int
    columns: int
    depth: int
    sub_rows: int
    sub_columns: int
    parts: int = 2

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.depth} by {self.sub_rows}×{self.sub_columns}, {self.parts} a turn"

    @property
    def subgroups(self) -> int:
        return self.rows // self.sub_rows * (self.columns // self.sub_columns)

    @property
    def threads(self) -> int:
        return self.subgroups * SUBGROUP_LANES


def suits(c: Contraction) -> bool:
    """Whether subgroup matrices can compute the product, and may be faster."""
    few = isinstance(c.rows, int) and c.rows <= MAX_ROWS_WITHOUT_MATRICES
    return not few and c.window == 1 and all(_exact(e, c) for e in (c.a, c.b))


def fits(c: Contraction, cut: MatrixCut) -> bool:
    """Whether the tiles fit into workgroup memory, without too many short lines."""
    operands = [_Operand.of(name, c, cut, False) for name in "ab"]
    return 16 * sum(x.room for x in operands) <= WORKGROUP_BYTES_OF_MATRICES and all(
        x.lines <= MAX_TILE_LINES for x in operands
    )


def _exact(e: Expr, c: Contraction) -> bool:
    """Whether an operand is only float16 loads, values rounded to float16, or constants that float16 represents."""
    if e.word == "load":
        return c.kernel.ports[e.value].dtype is float16
    if e.word == "const":
        return float(np.float16(e.value)) == e.value
    if e.word == "rounded":
        return e.value is float16
    return e.word == "select" and all(_exact(x, c) for x in e.args[1:])


def print_matrix(c: Contraction, cut: MatrixCut, shader: Shader) -> Text:
    """The contraction in a given cut."""
    store = (c.store.index, c.store.value)
    a = _Operand.of("a", c, cut, is_quad(c.a, c.k if c.a_deep else c.m, shader, (c.b, *store), ELEMENTS_PER_VECTOR))
    b = _Operand.of("b", c, cut, is_quad(c.b, c.k if c.b_deep else c.n, shader, (c.a, *store), ELEMENTS_PER_VECTOR))
    octets = frozenset(x.name for x in (a, b) if x.octets)
    quads = frozenset("c" if in_fours((c.store,), c.n, shader, (c.a, c.b)) else "")
    put_functions(shader, c, cut.rows, cut.columns, cut.depth * cut.parts, Loads(quads, octets))
    shader.functions += [x.gather() for x in (a, b) if not x.octets]
    for x in (a, b):
        shader.shared(x.tile, "vec4<u32>", x.room)
    out = Statements(shader)
    total = place(out, c, cut.rows, cut.columns)
    sums = _sums(out, c, cut, a, b)
    _drain(out, c, sums, b.tile, "c" in quads)
    return shader.text(out.lines, cut.threads, total)


@dataclass(frozen=True)
class _Operand:
    """How an operand's tile is loaded into workgroup memory, and from there into matrices.

    A line is contiguous in memory: along the depth if `deep`, otherwise across it.
    """

    name: str
    side: int
    deep: bool
    octets: bool
    c: Contraction
    cut: MatrixCut

    @staticmethod
    def of(name: str, c: Contraction, cut: MatrixCut, octets: bool) -> _Operand:
        side, deep = (cut.rows, c.a_deep) if name == "a" else (cut.columns, c.b_deep)
        return _Operand(name, side, deep, octets, c, cut)

    @property
    def tile(self) -> str:
        return f"tile_{self.name}"

    @property
    def room(self) -> int:
        """Vectors of workgroup memory; the sums are written through b's."""
        return max(self.vectors * DEPTH_PARTS_IN_MEMORY, self.cut.subgroups * _SPARE if self.name == "b" else 0)

    @property
    def lines(self) -> int:
        return self.side if self.deep else self.cut.depth

    @property
    def units(self) -> int:
        """Vectors of a line, without its padding."""
        return (self.cut.depth if self.deep else self.side) // ELEMENTS_PER_VECTOR

    @property
    def stride(self) -> int:
        return self.units + 1

    @property
    def vectors(self) -> int:
        """Vectors of one part's tile."""
        return self.lines * self.stride

    @property
    def turns(self) -> range:
        count = self.lines * self.units
        assert count % self.cut.threads == 0, self.cut
        return range(count // self.cut.threads)

    def prepare(self, out: Statements) -> None:
        for turn in self.turns:
            unit = f"(i32(lane) + {turn * self.cut.threads}i)" if turn else "i32(lane)"
            out.put(f"let {self.name}_line{turn} = {unit} / {self.units}i;")
            out.put(f"let {self.name}_unit{turn} = {unit} % {self.units}i;")
            out.put(f"var next_{self.name}{turn} = vec4<u32>();")

    def fetch(self, out: Statements, base: str) -> None:
        # After the last part, elements beyond the depth are fetched but never used.
        first = "row" if self.name == "a" else "column"
        for turn in self.turns:
            line, unit = f"{self.name}_line{turn}", f"{self.name}_unit{turn} * {ELEMENTS_PER_VECTOR}i"
            side, deep = (line, unit) if self.deep else (unit, line)
            side, deep = f"{first} + {side}", f"{base} + {deep}"
            order = (side, deep) if self.name == "a" else (deep, side)
            call = f"({arguments(self.c)}{', '.join(order)})"
            out.put(f"next_{self.name}{turn} = {'load' if self.octets else 'octet'}_{self.name}{call};")

    def put(self, out: Statements, part: int) -> None:
        for turn in self.turns:
            at = f"{part * self.vectors}i + {self.name}_line{turn} * {self.stride}i + {self.name}_unit{turn}"
            out.put(f"{self.tile}[{at}] = next_{self.name}{turn};")

    def gather(self) -> str:
        """The function that packs eight elements into a vector if they are not contiguous in memory."""
        names = [f"t{i}" for i in range(len(self.c.batch))] + (["m", "k"] if self.name == "a" else ["k", "n"])
        along = "k" if self.deep else "m" if self.name == "a" else "n"

        def load(i: int) -> str:
            return f"load_{self.name}({', '.join(f'{n} + {i}i' if n == along and i else n for n in names)})"

        pairs = [f"pair_of({load(i)}, {load(i + 1)})" for i in range(0, ELEMENTS_PER_VECTOR, 2)]
        header = f"fn octet_{self.name}({', '.join(f'{n}: i32' for n in names)}) -> vec4<u32> {{"
        return f"{header}\n  return vec4<u32>({', '.join(pairs)});\n}}"

    def matrix(self, part: int, side: str, number: int, step: int) -> str:
        """A matrix of the tile: number `number` from `side` on, at step `step` of 16 along the depth."""
        kind = "left" if self.name == "a" else "right"
        order = "row_major" if self.deep == (self.name == "a") else "col_major"
        across, along = f"({side} + {number * MATRIX_SIDE}u)", step * MATRIX_SIDE
        if self.deep:
            at = f"{across} * {self.stride}u + {part * self.vectors + along // ELEMENTS_PER_VECTOR}u"
        else:
            at = f"{across} / {ELEMENTS_PER_VECTOR}u + {part * self.vectors + along * self.stride}u"
        shape = f"subgroup_matrix_{kind}<f16, {MATRIX_SIDE}, {MATRIX_SIDE}>"
        return f"subgroupMatrixLoad<{shape}, {order}>(&{self.tile}, {at}, {self.stride}u)"


def _sums(out: Statements, c: Contraction, cut: MatrixCut, a: _Operand, b: _Operand) -> list[list[str]]:
    """Write the loop over the depth; returns the names of a subgroup's sums."""
    across = cut.columns // cut.sub_columns
    # The remainder changes no value, but bounds the offset: an offset known to be within the tile is not checked.
    down = cut.rows // cut.sub_rows
    out.put(f"let upper = subgroup / {across}u % {down}u * {cut.sub_rows}u;")
    out.put(f"let left = subgroup % {across}u * {cut.sub_columns}u;")
    sums = [[f"c{i}_{j}" for j in range(cut.sub_columns // MATRIX_SIDE)] for i in range(cut.sub_rows // MATRIX_SIDE)]
    for operand in (a, b):
        operand.prepare(out)
    for line in sums:
        for name in line:
            out.put(f"var {name} = subgroup_matrix_result<f32, {MATRIX_SIDE}, {MATRIX_SIDE}>();")
    _fetch(out, (a, b), "0i")
    _put(out, (a, b), 0)
    reach = cut.depth * cut.parts
    with out.scope(f"for (var base = 0i; base < {out.shader.dim(c.depth)}; base += {reach}i)") as turn:
        for part in range(cut.parts):
            _fetch(turn, (a, b), f"base + {(part + 1) * cut.depth}i")
            _multiply(turn, cut, a, b, sums, part)
            _put(turn, (a, b), (part + 1) % DEPTH_PARTS_IN_MEMORY)
    return sums


def _fetch(out: Statements, operands: Sequence[_Operand], base: str) -> None:
    for operand in operands:
        operand.fetch(out, base)


def _put(out: Statements, operands: Sequence[_Operand], part: int) -> None:
    for operand in operands:
        operand.put(out, part)
    out.put("workgroupBarrier();")


def _multiply(
    out: Statements, cut: MatrixCut, a: _Operand, b: _Operand, sums: Sequence[Sequence[str]], part: int
) -> None:
    """Multiply one part of the depth and add to the sums."""
    steps = cut.depth // MATRIX_SIDE
    for step in range(steps):
        number = part * steps + step
        for i in range(len(sums)):
            out.put(f"let a{number}_{i} = {a.matrix(part % DEPTH_PARTS_IN_MEMORY, 'upper', i, step)};")
        for j in range(len(sums[0])):
            out.put(f"let b{number}_{j} = {b.matrix(part % DEPTH_PARTS_IN_MEMORY, 'left', j, step)};")
            for i, line in enumerate(sums):
                out.put(f"{line[j]} = subgroupMatrixMultiplyAccumulate(a{number}_{i}, b{number}_{j}, {line[j]});")


def _drain(out: Statements, c: Contraction, sums: Sequence[Sequence[str]], tile: str, in_quads: bool) -> None:
    """Write the sums through workgroup memory to store_c, one matrix of each subgroup at a time."""
    names = [f"t{i}" for i in range(len(c.batch))]
    parameters = "".join(f"{n}: i32, " for n in names) + "m: i32, n: i32, first: u32, member: u32, "
    batch = "".join(f"{n}, " for n in names)
    line = MATRIX_SIDE // VECTOR_LENGTH
    stores = (
        [("side", "total")]
        if in_quads
        else [(f"side + {i}i", f"total.{part}") for i, part in enumerate(VECTOR_COMPONENTS)]
    )
    out.shader.functions.append("\n".join([
        f"fn drain({parameters}sum: subgroup_matrix_result<f32, {MATRIX_SIDE}, {MATRIX_SIDE}>) {{",
        f"  subgroupMatrixStore<row_major>(&{tile}, first, sum, {line}u);",
        "  workgroupBarrier();",
        f"  for (var at = member; at < {_SPARE}u; at += {SUBGROUP_LANES}u) {{",
        f"    let total = bitcast<vec4<f32>>({tile}[first + at]);",
        f"    let side = n + i32(at % {line}u) * {VECTOR_LENGTH}i;",
        *(f"    store_c({batch}m + i32(at / {line}u), {n}, {value});" for n, value in stores),
        "  }",
        "  workgroupBarrier();",
        "}",
    ]))  # fmt: skip
    for i, row in enumerate(sums):
        for j, name in enumerate(row):
            m, n = f"row + i32(upper) + {i * MATRIX_SIDE}i", f"column + i32(left) + {j * MATRIX_SIDE}i"
            out.put(f"drain({arguments(c)}{m}, {n}, subgroup * {_SPARE}u, member, {name});")
