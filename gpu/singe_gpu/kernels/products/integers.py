"""Products of 8-bit integers: four products of bytes in one instruction, where the language has it (see PACKED_DOTS).

x is a whole number from −255 to 255, which no byte holds: it is taken as 2 · (x >> 1) + (x & 1), of which both parts are
bytes with a sign. So the sum is 2 · h + o, where h and o are sums of products of bytes, and exact, as int32 wraps. A word
holds four neighbours along the depth. A workgroup computes a tile of the output from tiles of words in workgroup memory;
each invocation packs its share of them, then computes four rows by four columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from singe.extension import Contraction, float32

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH
from .gemm import place
from .operands import Loads, arguments, put_functions, quads_of

TILE_ROWS: Final = 32
"""Rows and columns of a workgroup's tile."""
TILE_DEPTH_WORDS: Final = 8
"""Words of the depth in a tile."""
VECTORS_PER_TILE_ROW: Final = TILE_ROWS // VECTOR_LENGTH
"""Vectors of four in a side of the tile."""


def print_integers(c: Contraction, shader: Shader) -> Text:
    """The contraction in words of four bytes."""
    if c.a.word == "cast" and c.a.args[0].dtype is float32:  # whole numbers need no test before they are converted
        c = replace(c, a=c.a.args[0])
    quads = quads_of(shader, c) - {name for name, deep in (("a", not c.a_deep), ("b", c.b_deep)) if deep}
    put_functions(shader, c, TILE_ROWS, TILE_ROWS, VECTOR_LENGTH * TILE_DEPTH_WORDS, Loads(quads))
    for name in ("halves", "odds", "weights"):
        shader.shared(name, f"array<vec4<u32>, {VECTORS_PER_TILE_ROW}>", TILE_DEPTH_WORDS)
    out = Statements(shader)
    total = place(out, c, TILE_ROWS, TILE_ROWS)
    out.put(f"let x = i32(lane) % {VECTORS_PER_TILE_ROW}i;")
    out.put(f"let y = i32(lane) / {VECTORS_PER_TILE_ROW}i;")
    for i in range(VECTOR_LENGTH):
        out.put(f"var h{i} = vec4<i32>();")
        out.put(f"var o{i} = vec4<i32>();")
    with out.scope(
        f"for (var base = 0i; base < {shader.dim(c.depth)}; base += {VECTOR_LENGTH * TILE_DEPTH_WORDS}i)"
    ) as step:
        _fill(step, c, quads)
        step.put("workgroupBarrier();")
        with step.scope(f"for (var word = 0i; word < {TILE_DEPTH_WORDS}i; word++)") as turn:
            turn.put("let half = halves[word][y];")
            turn.put("let odd = odds[word][y];")
            turn.put("let weight = weights[word][x];")
            for i, row in enumerate(VECTOR_COMPONENTS):
                for sums, left in (("h", "half"), ("o", "odd")):
                    dots = (f"dot4I8Packed({left}.{row}, weight.{column})" for column in VECTOR_COMPONENTS)
                    turn.put(f"{sums}{i} += vec4<i32>({', '.join(dots)});")
        step.put("workgroupBarrier();")
    for i in range(VECTOR_LENGTH):
        out.put(f"let c{i} = h{i} * 2i + o{i};")
        at = f"{arguments(c)}row + y * {VECTOR_LENGTH}i + {i}i, column + x * {VECTOR_LENGTH}i"
        if "c" in quads:
            out.put(f"store_c({at}, c{i});")
        else:
            for j, part in enumerate(VECTOR_COMPONENTS):
                out.put(f"store_c({at} + {j}i, c{i}.{part});")
    return shader.text(out.lines, VECTORS_PER_TILE_ROW * VECTORS_PER_TILE_ROW, total)


def _fill(out: Statements, c: Contraction, quads: frozenset[str]) -> None:
    """Pack a word of four rows, and one of four columns: neighbouring invocations read neighbours in memory."""
    given, types = arguments(c), out.shader.dialect.types

    def four(name: str, fixed: str, deep: str, swapped: bool) -> str:
        places = (f"{deep} + {k}i" for k in range(VECTOR_LENGTH))
        calls = (f"load_{name}({given}{f'{at}, {fixed}' if swapped else f'{fixed}, {at}'})" for at in places)
        return f"vec4<{types[(c.a if name == 'a' else c.b).dtype]}>({', '.join(calls)})"

    for i, part in enumerate(VECTOR_COMPONENTS):
        row, deep = f"row + y * {VECTOR_LENGTH}i + {i}i", f"base + x * {VECTOR_LENGTH}i"
        text = f"load_a({given}{row}, {deep})" if "a" in quads else four("a", row, deep, False)
        out.put(f"let a{i} = vec4<i32>({text});")
        out.put(f"halves[x][y].{part} = packed_bytes(a{i} >> vec4<u32>(1u));")
        out.put(f"odds[x][y].{part} = packed_bytes(a{i} & vec4<i32>(1i));")
    column, deep = f"column + x * {VECTOR_LENGTH}i", f"base + y * {VECTOR_LENGTH}i"
    for i in range(VECTOR_LENGTH if "b" in quads else 0):
        out.put(f"let b{i}s = load_b({given}{deep} + {i}i, {column});")
    for i, part in enumerate(VECTOR_COMPONENTS):
        turned = f"vec4<i32>({', '.join(f'b{k}s.{part}' for k in range(VECTOR_LENGTH))})"
        text = turned if "b" in quads else four("b", f"{column} + {i}i", deep, True)
        out.put(f"weights[y][x].{part} = packed_bytes({text});")
