"""Templates for matrix products: a workgroup computes a tile of the output, each invocation a smaller tile.

tiled  both operands go through workgroup memory, `depth` steps of the sum at a time. Registers hold the invocation's
       tile, and the next part of the operands, which is fetched while the current part is multiplied.
thin   for products too small to fill a device: only sums are shared. Each invocation computes a few rows by four columns
       of the output over every n-th group of four depths; the partial sums are added in two steps.

The operands and the epilogue are functions of the shader, load_a, load_b and store_c, printed from the kernel's own
expressions. Outside the matrices the loads return zero and the store does nothing. An operand that is a quad is loaded
as vectors of four; an output whose neighbours are contiguous is stored as vectors of four.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from singe.extension import Contraction, Dim, Expr, affine, ceildiv, divides, int32, product, scalar

from ..code.shader import Shader, Text
from ..code.wgsl import TYPES, Statements
from .feeds import Feed, Fetched, Filled, Spot
from .nest import bind_coordinates
from .quads import PARTS, SIDE, in_fours, is_quad, octet_text, put_four, quad_text, quad_texts


@dataclass(frozen=True)
class Tile:
    """A cut by tiles: the tile of a workgroup and the part of it that one invocation holds, in elements.

    All are powers of two; the invocation's sides are multiples of 4, since it works on vectors. With `slices` > 1, that
    many teams of the workgroup each sum over a part of the depth, for products too small to fill a device otherwise.
    The innermost loop is unrolled `unroll` times; if that covers the tile's depth there is no loop.
    """

    rows: int
    columns: int
    depth: int
    thread_rows: int = 4
    thread_columns: int = 4
    slices: int = 1
    unroll: int = 4

    def __str__(self) -> str:
        sliced = f"×{self.slices}" if self.slices > 1 else ""
        return f"{self.rows}×{self.columns}×{self.depth}{sliced} by {self.thread_rows}×{self.thread_columns}"

    @property
    def team(self) -> int:
        """How many invocations compute the tile together."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    @property
    def threads(self) -> int:
        return self.team * self.slices

    @property
    def reach(self) -> int:
        """How much of the depth a workgroup covers in one turn."""
        return self.depth * self.slices

    @property
    def shared_bytes(self) -> int:
        """Bytes of workgroup memory; WebGPU guarantees 16 KiB."""
        return 4 * self.slices * self.depth * (self.rows + self.columns)


@dataclass(frozen=True)
class Thin:
    """A cut for a small product: a workgroup's tile, of which each invocation has all rows, and slices of the depth."""

    rows: int
    columns: int
    slices: int

    def __str__(self) -> str:
        return f"thin {self.rows}×{self.columns}×{self.slices}"

    @property
    def vectors(self) -> int:
        """Vectors in a row of the tile."""
        return self.columns // SIDE

    @property
    def threads(self) -> int:
        return self.vectors * self.slices

    @property
    def reach(self) -> int:
        return self.slices * SIDE

    @property
    def shared_bytes(self) -> int:
        return 16 * self.rows * self.threads


FEW: Final = 8
"""How many slices' sums one invocation adds."""
SPREAD: Final = 65535
"""The workgroups that every device can dispatch in one dimension. More are spread over two; the surplus does nothing."""
Cut: TypeAlias = "Tile | Thin | None"
"""How a product is computed; None: by the plain kernel."""


def print_contraction(c: Contraction, cut: Tile | Thin, shader: Shader) -> Text:
    """The contraction in a given cut."""
    quads = quads_of(shader, c)
    if cut.rows < SIDE and not c.a_deep:
        quads -= {"a"}
    split = split_rows(c)
    shared = isinstance(cut, Thin) and _shared(c, quads)
    put_functions(shader, c, cut.rows, cut.columns, cut.reach, quads, split=split, shared=shared)
    if isinstance(cut, Tile):
        out, groups = _tiled(shader, c, cut, quads, bool(split))
    else:
        out, groups = _thin(shader, c, cut, quads, bool(split))
    return shader.text(out.lines, cut.threads, groups)


def _element(c: Contraction) -> str:
    return TYPES[c.b.dtype]


# --- the functions that a template calls -------------------------------------------------------------------------------


def quads_of(shader: Shader, c: Contraction) -> frozenset[str]:
    """Which of "a" and "b" are loaded as vectors, and whether "c", the output, is stored as vectors."""
    rest = (c.store.index, c.store.value)
    along_a, along_b = c.k if c.a_deep else c.m, c.k if c.b_deep else c.n
    found = {"a": is_quad(c.a, along_a, shader, (c.b, *rest)), "b": is_quad(c.b, along_b, shader, (c.a, *rest))}
    found["c"] = in_fours((c.store,), c.n, shader, (c.a, c.b))
    return frozenset(name for name, quad in found.items() if quad)


@dataclass(frozen=True)
class Digit:
    """A coordinate of a row: a digit of its number, of `length` values. The last digit may be all that is left: None."""

    value: Expr
    length: Dim | None


def _shared(c: Contraction, quads: frozenset[str]) -> bool:
    """Whether neighbours in depth of the second operand may be computed from the same vectors, as packed weights are."""
    return "b" in quads and not c.b_deep and divides(c.depth, SIDE) and c.b.word not in ("load", "select")


def split_rows(c: Contraction) -> list[Digit]:
    """The digits into which the first operand divides its rows, the fastest first, if by open sizes, which is slow; none
    if it divides them otherwise."""
    every = scalar.postorder([c.a])
    alone = {c.m}  # expressions that depend only on rows and sizes
    for e in every:
        if any(a in alone for a in e.args) and all(a in alone or a.word in ("const", "size") for a in e.args):
            alone.add(e)
    split = [e for e in every if e in alone and e.word in ("div", "rem") and e.args[1].word in ("const", "size")]
    used = {a for e in every if e not in split for a in e.args}
    starts: dict[Expr, Dim] = {c.m: 1}  # quotients ↦ what they divide a row by
    starts.update((e, e.args[1].value) for e in split if e.word == "div" and e.args[0] is c.m)
    digits: dict[Dim, Digit] = {}
    for e in split:
        quotient, length = (e.args[0], e.args[1].value) if e.word == "rem" else (e, None)
        if e in used and quotient in starts:
            digits[starts[quotient]] = Digit(e, length)
    found: list[Digit] = []
    start: Dim = 1
    while start in digits:
        found.append(digits.pop(start))
        start = 0 if found[-1].length is None else start * found[-1].length
    open_ = any(not isinstance(d.length, int | None) for d in found)
    return found if open_ and len(found) == len(used.intersection(split)) else []


def put_functions(
    shader: Shader, c: Contraction, rows: int, columns: int, depth: int, quads: frozenset[str],
    octets: frozenset[str] = frozenset(), split: Sequence[Digit] = (), shared: bool = False,
) -> None:  # fmt: skip
    """Write load_a, load_b and store_c; a side that is a multiple of the tile needs no bounds test.

    shared: load_b gives the vectors of four neighbours in depth, by the number of the four.
    split: the digits of rows that `rows_a` computes for four neighbours, and that load_a is then given.
    """
    limits = {"m": (c.rows, rows), "n": (c.columns, columns), "k": (c.depth, depth), "q": (0, 1)}

    def function(
        name: str, variables: Sequence[tuple[str, Expr]], more: str, result: str, otherwise: str
    ) -> Statements:
        out = Statements(shader)
        names = [*(f"t{i}" for i in range(len(c.batch))), *(n for n, _ in variables)]
        shader.functions.append(f"fn {name}({', '.join(f'{n}: i32' for n in names)}{more}){result} {{")
        out.names.update((v, v.value[0]) for v in c.batch_vars if v.word == "var")
        out.names.update((v, n) for n, v in variables if v.word == "var")
        tests = [f"{n} >= {shader.dim(limits[n][0])}" for n, _ in variables if not divides(*limits[n])]
        if tests:
            out.put(f"if ({' || '.join(tests)}) {{ return{otherwise}; }}")
        return out

    def close(out: Statements) -> None:
        shader.functions[-1] = "\n".join((shader.functions[-1], *out.lines, "}"))

    four = scalar.var("k", int32, ceildiv(c.depth, SIDE))
    for name, e, variables in (("a", c.a, (("m", c.m), ("k", c.k))), ("b", c.b, (("k", c.k), ("n", c.n)))):
        along = c.k if (c.a_deep if name == "a" else c.b_deep) else c.m if name == "a" else c.n
        kind = f"vec4<{TYPES[e.dtype]}>" if name in quads else "vec4<u32>" if name in octets else TYPES[e.dtype]
        if name == "b" and shared:
            kind, variables = f"array<{kind}, {SIDE}>", (("q", four), ("n", c.n))
        more = ", at: Row" if name == "a" and split else ""
        out = function(f"load_{name}", variables, more, f" -> {kind}", f" {kind}({'' if 'array' in kind else '0'})")
        if more:
            out.names.update((digit.value, f"at.d{i}") for i, digit in enumerate(split))
        if name == "b" and shared:
            deep = [affine.substitute(e, {c.k: four * SIDE + i}) for i in range(SIDE)]
            text = f"{kind}({', '.join(quad_texts(out, deep, c.n))})"
        elif name in quads:
            text = quad_text(out, e, along)
        else:
            text = octet_text(out, e, along) if name in octets else out.value(e)
        out.put(f"return {text};")
        close(out)
    if split:
        _put_rows(shader, split)
    limits["m"] = (c.places, rows // c.window)
    kind = f"vec4<{_element(c)}>" if "c" in quads else _element(c)
    totals = {total: total.value[0] for total in c.accumulators}
    given = "".join(f", {name}: {kind}" for name in totals.values())
    out = function("store_c", (("m", c.place), ("n", c.n)), given, "", "")
    if "c" in quads:
        put_four(out, (c.store,), c.n, totals, (c.a, c.b))
    else:
        out.names.update(totals)
        index, value = out.values([c.store.index, c.store.value])
        out.put(shader.store(c.store.port, index, value))
    close(out)


def _put_rows(shader: Shader, split: Sequence[Digit]) -> None:
    """Write rows_a: the digits of four neighbouring rows. Those of the first take divisions, those of the others follow."""
    out, after = Statements(shader), Statements(shader)
    rest = "m"
    digits: list[str] = []
    after.put("var row = at;")
    with ExitStack() as stack:
        inner = after
        for i, digit in enumerate(split):
            inner.put(f"row.d{i}++;")
            if digit.length is None:
                digits.append(rest)
                continue
            by = shader.dim(digit.length)
            quotient = out.let(shader.fresh(), f"{rest} / {by}")
            digits.append(f"{rest} - {quotient} * {by}")
            rest = quotient
            inner = stack.enter_context(inner.scope(f"if (row.d{i} == {by})"))
            inner.put(f"row.d{i} = 0i;")
    after.put("return row;")
    out.put(f"let row0 = Row({', '.join(digits)});")
    for i in range(1, SIDE):
        out.put(f"let row{i} = row_after(row{i - 1});")
    four = f"array<Row, {SIDE}>"
    out.put(f"return {four}({', '.join(f'row{i}' for i in range(SIDE))});")
    shader.functions.append(f"struct Row {{ {', '.join(f'd{i}: i32' for i in range(len(split)))} }}")
    for header, body in (("fn row_after(at: Row) -> Row", after), (f"fn rows_a(m: i32) -> {four}", out)):
        shader.functions.append("\n".join((f"{header} {{", *body.lines, "}")))


def place(out: Statements, c: Contraction, rows: int, columns: int) -> Dim:
    """Bind `row`, `column` and batch of the tile that this workgroup computes; returns the number of tiles."""
    shader = out.shader
    across, down = ceildiv(c.columns, columns), ceildiv(c.rows, rows)
    total = across * down * product(c.batch)
    out.put("let tile = i32(group.x + group.y * groups.x);")
    if not isinstance(total, int) or total > SPREAD:
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


def arguments(c: Contraction) -> str:
    """The batch coordinates, as the first arguments of a call."""
    return "".join(f"{v.value[0]}, " if v.word == "var" else "0i, " for v in c.batch_vars)


# --- tiled -----------------------------------------------------------------------------------------------------------


def _tiled(shader: Shader, c: Contraction, tile: Tile, quads: frozenset[str], split: bool) -> tuple[Statements, Dim]:
    out = Statements(shader)
    vector = f"vec4<{_element(c)}>"
    total = place(out, c, tile.rows, tile.columns)
    across, down = tile.columns // tile.thread_columns, tile.rows // tile.thread_rows
    out.put(f"let member = i32(lane){'' if tile.slices == 1 else f' % {tile.team}i'};")
    out.put(f"let x = member % {across}i;")
    out.put(f"let y = member / {across}i;")
    if tile.slices > 1:
        out.put(f"let slice = i32(lane) / {tile.team}i;")
    a = _feed(shader, c, tile, "a", quads, split)
    b = _feed(shader, c, tile, "b", quads, False)
    a.prepare(out)
    b.prepare(out)
    sums = [[f"c{i}_{j}" for j in range(tile.thread_columns // SIDE)] for i in range(tile.thread_rows)]
    names = [name for line in sums for name in line]
    for name in names:
        out.put(f"var {name} = {vector}();")
    part = "" if tile.slices == 1 else f" + slice * {tile.depth}i"
    for feed in (a, b):
        feed.fetch(out, f"0i{part}")
    with out.scope(f"for (var base = 0i; base < {shader.dim(c.depth)}; base += {tile.reach}i)") as step:
        for feed in (a, b):
            feed.put(step, f"base{part}")
        step.put("workgroupBarrier();")
        for feed in (a, b):
            feed.fetch(step, f"base + {tile.reach}i{part}")
        _walk(step, tile, _Operands((a.spot, b.spot), (down, across), sums))
        step.put("workgroupBarrier();")
    if tile.slices > 1:
        _gather(out, tile, names)
    out.put(f"let top = row + y * {SIDE}i;")
    out.put(f"let left = column + x * {SIDE}i;")
    for i in range(0, len(sums), c.window):
        m = i // SIDE * down * SIDE + i % SIDE
        for j, names in enumerate(zip(*sums[i : i + c.window], strict=True)):
            _store(out, c, ("top", m), ("left", j * across * SIDE), names, quads)
    return out, total


def _store(
    out: Statements, c: Contraction, row: tuple[str, int], column: tuple[str, int], sums: Sequence[str], quads: frozenset[str]
) -> None:  # fmt: skip
    """Store four columns of a row, or of a window's rows; row and column: a name and an offset."""
    m = _sum(*row) if c.window == 1 else f"({_sum(*row)}) / {c.window}i"
    for number, part in enumerate([""] if "c" in quads else [f".{part}" for part in PARTS]):
        values = ", ".join(f"{name}{part}" for name in sums)
        out.put(f"store_c({arguments(c)}{m}, {_sum(column[0], column[1] + number)}, {values});")


def _feed(shader: Shader, c: Contraction, tile: Tile, name: str, quads: frozenset[str], split: bool) -> Feed:
    side, deep_first, first = (tile.rows, c.a_deep, "row") if name == "a" else (tile.columns, c.b_deep, "column")
    vector = f"vec4<{_element(c)}>"
    bare = Spot(name, side, tile.depth, tile.team, deep_first, vector, arguments(c), first, "", split)
    shader.shared(f"tile_{name}", f"array<{vector}, {side // SIDE}>", tile.slices * tile.depth)
    spot = replace(bare, start=f"slice * {tile.depth}i + ") if tile.slices > 1 else bare
    return Fetched(spot) if name in quads else Filled(spot)


@dataclass(frozen=True)
class _Operands:
    """The operands of an invocation. Its vectors are `apart` in a tile, so that neighbours read neighbours."""

    spots: tuple[Spot, Spot]
    apart: tuple[int, int]
    sums: Sequence[Sequence[str]]


def _walk(out: Statements, tile: Tile, operands: _Operands) -> None:
    """Multiply the tiles and add to the sums."""
    with ExitStack() as stack:
        turn, first = out, ""
        if tile.unroll < tile.depth:
            header = f"for (var first = 0i; first < {tile.depth}i; first += {tile.unroll}i)"
            turn, first = stack.enter_context(out.scope(header)), "first"
        for number in range(tile.unroll):
            _multiply(turn, operands, _sum(first, number) if first else f"{number}i", number)


def _multiply(out: Statements, operands: _Operands, deep: str, number: int) -> None:
    sums = operands.sums
    counts = (len(sums) // SIDE, len(sums[0]))
    for name, spot, at, step, count in zip(
        ("left", "right"), operands.spots, "yx", operands.apart, counts, strict=True
    ):
        for i in range(count):
            out.put(f"let {name}{number}_{i} = {spot.place(deep, _sum(at, i * step))};")
    for i, line in enumerate(sums):
        for j, sum_ in enumerate(line):
            left, right = f"left{number}_{i // SIDE}.{PARTS[i % SIDE]}", f"right{number}_{j}"
            out.put(f"{sum_} += {left} * {right};")


def _gather(out: Statements, tile: Tile, names: Sequence[str]) -> None:
    """Add all teams' sums into the first team's, through the operands' workgroup memory; the other teams end."""
    line = tile.columns // SIDE
    assert (tile.slices - 1) * len(names) * tile.team <= tile.slices * tile.depth * line, tile

    def place(slice_: str, k: int) -> str:
        at = f"({slice_} * {len(names)}i + {k}i) * {tile.team}i + member"
        return f"tile_b[({at}) / {line}i][({at}) % {line}i]"

    with out.scope("if (slice > 0i)") as other:
        for k, name in enumerate(names):
            other.put(f"{place('(slice - 1i)', k)} = {name};")
    out.put("workgroupBarrier();")
    out.put("if (slice > 0i) { return; }")
    with out.scope(f"for (var other = 0i; other < {tile.slices - 1}i; other++)") as turn:
        for k, name in enumerate(names):
            turn.put(f"{name} += {place('other', k)};")


# --- thin ------------------------------------------------------------------------------------------------------------


def _thin(shader: Shader, c: Contraction, cut: Thin, quads: frozenset[str], split: bool) -> tuple[Statements, Dim]:
    out = Statements(shader)
    vector = f"vec4<{_element(c)}>"
    total = place(out, c, cut.rows, cut.columns)
    shader.shared("parts", f"array<{vector}, {cut.threads}>", cut.rows)
    out.put(f"let side = column + i32(lane) % {cut.vectors}i * {SIDE}i;")
    out.put(f"let slice = i32(lane) / {cut.vectors}i;")
    sums = [f"c{i}" for i in range(cut.rows)]
    for name in sums:
        out.put(f"var {name} = {vector}();")
    for i in range(0, cut.rows if split else 0, SIDE):
        out.put(f"let rows{i // SIDE} = rows_a({_sum('row', i)});")
    header = f"for (var deep = slice * {SIDE}i; deep < {shader.dim(c.depth)}; deep += {cut.reach}i)"
    with out.scope(header) as turn:
        left = _fours(turn, c, "a", cut.rows, quads, split)
        right = _rights(turn, c, vector, quads)
        for number, four in enumerate(right):
            for name, line in zip(sums, left, strict=True):
                turn.put(f"{name} += {line[number]} * {four};")
    _add_slices(out, cut, sums)
    for i in range(0, cut.rows, c.window):
        _store(out, c, ("row", i), ("side", 0), sums[i : i + c.window], quads)
    return out, total


def _add_slices(out: Statements, cut: Thin, sums: Sequence[str]) -> None:
    """Add all slices' sums into the first slice's, in two steps; the other slices end."""
    few = min(cut.slices, FEW)

    def add(where: Statements, start: int, end: int) -> None:
        step = start * cut.vectors
        with where.scope(f"for (var other = lane + {step}u; other < {end * cut.vectors}u; other += {step}u)") as turn:
            for i, name in enumerate(sums):
                turn.put(f"{name} += parts[{i}][other];")

    def put(where: Statements) -> None:
        for i, name in enumerate(sums):
            where.put(f"parts[{i}][lane] = {name};")

    put(out)
    out.put("workgroupBarrier();")
    if few < cut.slices:
        with out.scope(f"if (slice < {few}i)") as some:
            add(some, few, cut.slices)
            put(some)
        out.put("workgroupBarrier();")
    out.put("if (slice > 0i) { return; }")
    add(out, 1, few)


def _rights(out: Statements, c: Contraction, vector: str, quads: frozenset[str]) -> list[str]:
    """The second operand at four depths: names of vectors of four columns."""
    if _shared(c, quads):
        fours = out.let("rights", f"load_b({arguments(c)}deep / {SIDE}i, side)")
        return [f"{fours}[{deep}]" for deep in range(SIDE)]
    if "b" in quads and not c.b_deep:
        texts = [_load(c, "b", 0, deep) for deep in range(SIDE)]
    else:
        texts = [f"{vector}({', '.join(line)})" for line in zip(*_fours(out, c, "b", SIDE, quads), strict=True)]
    return [out.let(f"right{deep}", text) for deep, text in enumerate(texts)]


def _fours(
    out: Statements, c: Contraction, name: str, count: int, quads: frozenset[str], split: bool = False
) -> list[list[str]]:
    """An operand at `count` sides: for each, the texts at four depths."""
    deep_first = c.a_deep if name == "a" else c.b_deep
    if name not in quads:
        return [[_load(c, name, side, deep, split) for deep in range(SIDE)] for side in range(count)]
    if deep_first:
        vectors = [out.let(f"{name}{side}", _load(c, name, side, 0, split)) for side in range(count)]
        return [[f"{vector}.{part}" for part in PARTS] for vector in vectors]
    fours = [
        [out.let(f"{name}{side}_{deep}", _load(c, name, side, deep, split)) for deep in range(SIDE)]
        for side in range(0, count, SIDE)
    ]
    return [[f"{vector}.{PARTS[side % SIDE]}" for vector in fours[side // SIDE]] for side in range(count)]


def _load(c: Contraction, name: str, side: int, deep: int, split: bool = False) -> str:
    """A call of load_a or load_b at an offset from the invocation's position."""
    at = (_sum("row" if name == "a" else "side", side), _sum("deep", deep))
    more = f", rows{side // SIDE}[{side % SIDE}]" if split else ""
    return f"load_{name}({arguments(c)}{', '.join(at if name == 'a' else reversed(at))}{more})"
