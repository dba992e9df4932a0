"""Templates for matrix products: a workgroup computes a tile of the output, each invocation a smaller tile.

tiled  both operands go through workgroup memory, `depth` steps of the sum at a time. Registers hold the invocation's
       tile, and the next part of operands that are quads, which is fetched while the current part is multiplied.
thin   for products too small to fill a device: only sums are shared. Each invocation computes a few rows by four columns
       of the output over every n-th group of four depths; many partial sums are added in two steps.

The operands and the epilogue are the functions of `operands.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from singe.extension import Contraction, Dim, ceildiv, product

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ...rates import Thin, Tile
from ..nest import bind_coordinates
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH
from .operands import Loads, arguments, divides_rows, element, put_functions, quads_of, split_rows, unpacks
from .tile_loaders import Fetched, Filled, TileLayout, TileLoader

MAX_SLICES_PER_INVOCATION: Final = 16
"""How many slices' sums one invocation adds."""
MAX_WORKGROUPS_PER_DIMENSION: Final = 65535
"""The workgroups that every device can dispatch in one dimension. More are spread over two; the surplus does nothing."""


def print_contraction(c: Contraction, cut: Tile | Thin, shader: Shader) -> Text:
    """The contraction in a given cut."""
    if isinstance(cut, Thin) and isinstance(c.rows, int):
        cut = replace(cut, rows=min(cut.rows, max(c.rows, c.window)))
    loads = _loads(shader, c, cut)
    tiled = isinstance(cut, Tile)
    # The loop of a thin product ends at the depth by itself, but for the rest of a four.
    put_functions(shader, c, cut.rows, cut.columns, cut.reach if tiled else VECTOR_LENGTH, loads)
    out, groups = _tiled(shader, c, cut, loads) if tiled else _thin(shader, c, cut, loads)
    return shader.text(out.lines, cut.threads, groups)


def _loads(shader: Shader, c: Contraction, cut: Tile | Thin) -> Loads:
    quads, split, fours = quads_of(shader, c), split_rows(c), set[str]()
    if cut.rows < VECTOR_LENGTH and not c.a_deep:
        quads -= {"a"}
    if cut.rows >= VECTOR_LENGTH and not split and ("a" not in quads or (c.a_deep and divides_rows(c))):
        fours.add("a")
    if "b" not in quads or (isinstance(cut, Thin) and unpacks(c, quads)):
        fours.add("b")
    return Loads(quads, fours=frozenset(fours), split=split)


def place(out: Statements, c: Contraction, rows: int, columns: int) -> Dim:
    """Bind `row`, `column` and batch of the tile that this workgroup computes; returns the number of tiles."""
    shader = out.shader
    across, down = ceildiv(c.columns, columns), ceildiv(c.rows, rows)
    total = across * down * product(c.batch)
    out.put("let tile = i32(group.x + group.y * groups.x);")
    if not isinstance(total, int) or total > MAX_WORKGROUPS_PER_DIMENSION:
        out.put(f"if (tile >= {shader.dim(total)}) {{ return; }}")
    out.put(f"let column = tile % {shader.dim(across)} * {columns}i;")
    out.put(f"let strip = tile / {shader.dim(across)};")
    out.put(f"let row = strip % {shader.dim(down)} * {rows}i;")
    out.put(f"let batch = strip / {shader.dim(down)};")
    bind_coordinates(out, "batch", list(zip(c.batch_vars, c.batch, strict=True)))
    return total


def _sum(name: str, plus: int) -> str:
    """name + plus, without a zero."""
    return name + (f" + {plus}i" if plus else "")


# --- tiled -----------------------------------------------------------------------------------------------------------


def _tiled(shader: Shader, c: Contraction, tile: Tile, loads: Loads) -> tuple[Statements, Dim]:
    out = Statements(shader)
    vector = f"vec4<{element(shader, c)}>"
    total = place(out, c, tile.rows, tile.columns)
    across, down = tile.columns // tile.thread_columns, tile.rows // tile.thread_rows
    out.put(f"let member = i32(lane){'' if tile.slices == 1 else f' % {tile.team}i'};")
    out.put(f"let x = member % {across}i;")
    out.put(f"let y = member / {across}i;")
    if tile.slices > 1:
        out.put(f"let slice = i32(lane) / {tile.team}i;")
    feeds = [_feed(shader, c, tile, name, loads) for name in "ab"]
    for feed in feeds:
        feed.prepare(out)
    sums = [[f"c{i}_{j}" for j in range(tile.thread_columns // VECTOR_LENGTH)] for i in range(tile.thread_rows)]
    names = [name for line in sums for name in line]
    for name in names:
        out.put(f"var {name} = {vector}();")
    operands = _Operands((feeds[0].spot, feeds[1].spot), (down, across), sums)
    if _several(c, tile):
        _put_parts(out, c, tile, feeds, operands)
    else:
        _fill(out, feeds, "0i")
        _walk(out, tile, operands)
    if tile.slices > 1:
        _gather(out, tile, operands)
    out.put(f"let top = row + y * {VECTOR_LENGTH}i;")
    out.put(f"let left = column + x * {VECTOR_LENGTH}i;")
    for i in range(0, len(sums), c.window):
        m = i // VECTOR_LENGTH * down * VECTOR_LENGTH + i % VECTOR_LENGTH
        for j, names in enumerate(zip(*sums[i : i + c.window], strict=True)):
            _store(out, c, ("top", m), ("left", j * across * VECTOR_LENGTH), names, loads)
    return out, total


def _several(c: Contraction, tile: Tile) -> bool:
    """Whether the depth has more than one part."""
    return not isinstance(c.depth, int) or c.depth > tile.reach


def _put_parts(out: Statements, c: Contraction, tile: Tile, feeds: Sequence[TileLoader], operands: _Operands) -> None:
    """Multiply part by part of the depth; while one is multiplied, the next is fetched."""
    depth = out.shader.dim(c.depth)
    if tile.unroll == tile.depth or not any(isinstance(feed, Fetched) for feed in feeds):
        # Compilers move the loads in between the multiplications: on an H100, 4096³ takes a tenth less time.
        _fetch(out, feeds, "0i")
        with out.scope(f"for (var base = 0i; base < {depth}; base += {tile.reach}i)") as step:
            _fill(step, feeds, "base")
            _fetch(step, feeds, f"base + {tile.reach}i")
            _walk(step, tile, operands)
        return
    # Loads that are written once, not twice, take less time to compile.
    with out.scope(f"for (var base = 0i; ; base += {tile.reach}i)") as step:
        _fetch(step, feeds, "base")
        with step.scope("if (base > 0i)") as later:
            _walk(later, tile, operands)
        step.put(f"if (base >= {depth}) {{ break; }}")
        _fill(step, feeds, "base")


def _fetch(out: Statements, feeds: Sequence[TileLoader], base: str) -> None:
    for feed in feeds:
        feed.fetch(out, base)


def _fill(out: Statements, feeds: Sequence[TileLoader], base: str) -> None:
    """Write the tiles for all invocations."""
    for feed in feeds:
        feed.put(out, base)
    out.put("workgroupBarrier();")


def _store(
    out: Statements, c: Contraction, row: tuple[str, int], column: tuple[str, int], sums: Sequence[str], loads: Loads
) -> None:  # fmt: skip
    """Store four columns of a row, or of a window's rows; row and column: a name and an offset."""
    m = _sum(*row) if c.window == 1 else f"({_sum(*row)}) / {c.window}i"
    for number, part in enumerate([""] if "c" in loads.quads else [f".{part}" for part in VECTOR_COMPONENTS]):
        values = ", ".join(f"{name}{part}" for name in sums)
        out.put(f"store_c({arguments(c)}{m}, {_sum(column[0], column[1] + number)}, {values});")


def _feed(shader: Shader, c: Contraction, tile: Tile, name: str, loads: Loads) -> TileLoader:
    side, deep_first, first = (tile.rows, c.a_deep, "row") if name == "a" else (tile.columns, c.b_deep, "column")
    vector = f"vec4<{element(shader, c)}>"
    start = f"slice * {tile.depth}i + " if tile.slices > 1 else ""
    split = name == "a" and bool(loads.split)
    quad, four = name in loads.quads, name in loads.fours
    spot = TileLayout(
        name, side, tile.depth, tile.team, deep_first, quad, vector, arguments(c), first, start, split, four
    )
    shader.shared(f"tile_{name}", f"array<{vector}, {side // VECTOR_LENGTH}>", tile.slices * tile.depth)
    return Fetched(spot) if quad and _several(c, tile) else Filled(spot)


@dataclass(frozen=True)
class _Operands:
    """The operands of an invocation. Its vectors are `apart` in a tile, so that neighbours read neighbours."""

    spots: tuple[TileLayout, TileLayout]
    apart: tuple[int, int]
    sums: Sequence[Sequence[str]]


def _walk(out: Statements, tile: Tile, operands: _Operands) -> None:
    """Multiply the tiles and add to the sums; afterwards the tiles are free."""
    with ExitStack() as stack:
        turn, first = out, ""
        if tile.unroll < tile.depth:
            header = f"for (var first = 0i; first < {tile.depth}i; first += {tile.unroll}i)"
            turn, first = stack.enter_context(out.scope(header)), "first"
        for number in range(tile.unroll):
            _multiply(turn, operands, _sum(first, number) if first else f"{number}i", number)
    out.put("workgroupBarrier();")


def _multiply(out: Statements, operands: _Operands, deep: str, number: int) -> None:
    sums = operands.sums
    counts = (len(sums) // VECTOR_LENGTH, len(sums[0]))
    for name, spot, at, step, count in zip(
        ("left", "right"), operands.spots, "yx", operands.apart, counts, strict=True
    ):
        for i in range(count):
            out.put(f"let {name}{number}_{i} = {spot.place(deep, _sum(at, i * step))};")
    for i, line in enumerate(sums):
        for j, sum_ in enumerate(line):
            left, right = (
                f"left{number}_{i // VECTOR_LENGTH}.{VECTOR_COMPONENTS[i % VECTOR_LENGTH]}",
                f"right{number}_{j}",
            )
            out.put(f"{sum_} += {left} * {right};")


def _gather(out: Statements, tile: Tile, operands: _Operands) -> None:
    """Add all teams' sums into the first team's, through the second operand's tiles; the other teams end."""
    assert (tile.slices - 1) * tile.rows <= tile.slices * tile.depth, tile
    down, across = operands.apart

    def places(slice_: str) -> Iterator[tuple[str, str]]:
        """Each sum, and where a team's is."""
        for i, line in enumerate(operands.sums):
            for j, name in enumerate(line):
                row = f"({slice_} * {tile.thread_rows}i + {i}i) * {down}i + y"
                yield name, f"tile_b[{row}][{_sum('x', j * across)}]"

    with out.scope("if (slice > 0i)") as other:
        for name, at in places("(slice - 1i)"):
            other.put(f"{at} = {name};")
    out.put("workgroupBarrier();")
    out.put("if (slice > 0i) { return; }")
    with out.scope(f"for (var other = 0i; other < {tile.slices - 1}i; other++)") as turn:
        for name, at in places("other"):
            turn.put(f"{name} += {at};")


# --- thin ------------------------------------------------------------------------------------------------------------


def _thin(shader: Shader, c: Contraction, cut: Thin, loads: Loads) -> tuple[Statements, Dim]:
    out = Statements(shader)
    vector = f"vec4<{element(shader, c)}>"
    total = place(out, c, cut.rows, cut.columns)
    shader.shared("parts", f"array<{vector}, {cut.threads}>", cut.rows)
    out.put(f"let side = column + i32(lane) % {cut.vectors}i * {VECTOR_LENGTH}i;")
    out.put(f"let slice = i32(lane) / {cut.vectors}i;")
    sums = [f"c{i}" for i in range(cut.rows)]
    for name in sums:
        out.put(f"var {name} = {vector}();")
    for i in range(0, cut.rows if loads.split else 0, VECTOR_LENGTH):
        out.put(f"let rows{i // VECTOR_LENGTH} = rows_a({_sum('row', i)});")
    header = f"for (var deep = slice * {VECTOR_LENGTH}i; deep < {shader.dim(c.depth)}; deep += {cut.reach}i)"
    with out.scope(header) as turn:
        left = _fours(turn, c, "a", cut.rows, loads)
        right = _rights(turn, c, vector, loads)
        for number, four in enumerate(right):
            for name, line in zip(sums, left, strict=True):
                turn.put(f"{name} += {line[number]} * {four};")
    add_slices(out, cut.slices, cut.vectors, sums)
    for i in range(0, cut.rows, c.window):
        _store(out, c, ("row", i), ("side", 0), sums[i : i + c.window], loads)
    return out, total


def add_slices(out: Statements, slices: int, vectors: int, sums: Sequence[str], parts: str = "parts") -> None:
    """Add all slices' sums into the first slice's, in two steps if they are many; the other slices end. vectors: how many neighbours
    have the same slice. parts: the array in workgroup memory through which they go."""
    few = min(slices, MAX_SLICES_PER_INVOCATION)

    def add(where: Statements, start: int, end: int) -> None:
        step = start * vectors
        with where.scope(f"for (var other = lane + {step}u; other < {end * vectors}u; other += {step}u)") as turn:
            for i, name in enumerate(sums):
                turn.put(f"{name} += {parts}[{i}][other];")

    def put(where: Statements) -> None:
        for i, name in enumerate(sums):
            where.put(f"{parts}[{i}][lane] = {name};")

    put(out)
    out.put("workgroupBarrier();")
    if few < slices:
        with out.scope(f"if (slice < {few}i)") as some:
            add(some, few, slices)
            put(some)
        out.put("workgroupBarrier();")
    out.put("if (slice > 0i) { return; }")
    add(out, 1, few)


def _rights(out: Statements, c: Contraction, vector: str, loads: Loads) -> list[str]:
    """The second operand at four depths: names of vectors of four columns."""
    if "b" in loads.fours and "b" in loads.quads:
        fours = out.let("rights", f"load_b({arguments(c)}deep / {VECTOR_LENGTH}i, side)")
        return [f"{fours}[{deep}]" for deep in range(VECTOR_LENGTH)]
    if "b" in loads.quads and c.b_deep:
        texts = [
            f"{vector}({', '.join(line)})" for line in zip(*_fours(out, c, "b", VECTOR_LENGTH, loads), strict=True)
        ]
    else:
        texts = [_load(c, "b", 0, deep, loads) for deep in range(VECTOR_LENGTH)]
    return [out.let(f"right{deep}", text) for deep, text in enumerate(texts)]


def _fours(out: Statements, c: Contraction, name: str, count: int, loads: Loads) -> list[list[str]]:
    """An operand at `count` sides: for each, the texts at four depths."""
    quad, four = name in loads.quads, name in loads.fours
    if not quad and not four:
        return [[_load(c, name, side, deep, loads) for deep in range(VECTOR_LENGTH)] for side in range(count)]
    if quad and (c.a_deep if name == "a" else c.b_deep):
        step = VECTOR_LENGTH if four else 1
        found = [out.let(f"{name}{side}", _load(c, name, side, 0, loads)) for side in range(0, count, step)]
        vectors = (
            [f"{found[side // VECTOR_LENGTH]}[{side % VECTOR_LENGTH}]" for side in range(count)] if four else found
        )
        return [[f"{vector}.{part}" for part in VECTOR_COMPONENTS] for vector in vectors]
    fours = [
        [out.let(f"{name}{side}_{deep}", _load(c, name, side, deep, loads)) for deep in range(VECTOR_LENGTH)]
        for side in range(0, count, VECTOR_LENGTH)
    ]
    return [
        [f"{vector}.{VECTOR_COMPONENTS[side % VECTOR_LENGTH]}" for vector in fours[side // VECTOR_LENGTH]]
        for side in range(count)
    ]


def _load(c: Contraction, name: str, side: int, deep: int, loads: Loads) -> str:
    """A call of load_a or load_b at an offset from the invocation's position."""
    first = "row" if name == "a" else "side"
    across = _sum(f"{first} / {VECTOR_LENGTH}i", side // VECTOR_LENGTH) if name in loads.fours else _sum(first, side)
    at = (across, _sum("deep", deep))
    more = f", rows{side // VECTOR_LENGTH}[{side % VECTOR_LENGTH}]" if name == "a" and loads.split else ""
    return f"load_{name}({arguments(c)}{', '.join(at if name == 'a' else reversed(at))}{more})"
