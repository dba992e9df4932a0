"""The functions of a product's shader that load the operands and store the output: load_a, load_b and store_c.

They are printed from the kernel's own expressions, so that a template works for all products. Outside the matrices the
loads return zero and the store does nothing. An operand that is a quad is loaded as vectors of four; an output whose
neighbours are contiguous is stored as vectors of four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from singe.extension import Contraction, Dim, Expr, affine, ceildiv, divides, int32, scalar

from ...code.shader import Shader
from ...code.statements import Statements
from ..vectorize import VECTOR_LENGTH, in_fours, is_quad, put_copy_of_words, put_four, quad_texts, words_text


def element(shader: Shader, c: Contraction) -> str:
    """The type of an element of the product."""
    return shader.dialect.types[c.b.dtype]


def arguments(c: Contraction) -> str:
    """The batch coordinates, as the first arguments of a call."""
    return "".join(f"{v.value[0]}, " if v.word == "var" else "0i, " for v in c.batch_vars)


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


def _no_word(value: float) -> int:
    raise AssertionError(f"no word holds {value}")


@dataclass(frozen=True)
class WordLoads:
    """The operands that are loaded as words.

    tiles: "a" and "b" ↦ their arrays in workgroup memory. word: that of a constant. ahead: copy_a and copy_b, which copy to a place in
    the tile, stand for load_a and load_b. again: these are there, too.
    """

    tiles: Mapping[str, str] = field(default_factory=dict)
    word: Callable[[float], int] = _no_word
    ahead: bool = False
    again: bool = False


@dataclass(frozen=True)
class Loads:
    """How the functions load and store: sets of "a" and "b", the operands, and "c", the output.

    quads: as vectors of four, as `quads_of` finds them.
    fours: a call gives four neighbours, by the number of the four: rows of "a"; columns of "b", or depths if it is a quad. They
    share what they have in common, as the coordinates of pixels or the words of packed weights. Of a four that crosses an
    edge of the matrix, what is outside may be anything: it is not stored.
    split: the digits of rows that `rows_a` computes for four neighbours, and that load_a is then given.
    """

    quads: frozenset[str]
    words: WordLoads = WordLoads()
    fours: frozenset[str] = frozenset()
    split: Sequence[Digit] = ()


def divides_rows(c: Contraction) -> bool:
    """Whether the first operand divides the number of a row, as into the coordinates of a pixel."""
    divided = [e.args[0] for e in scalar.postorder([c.a]) if e.word in ("div", "rem")]
    return c.m.word == "var" and c.m in scalar.postorder(divided)


def unpacks(c: Contraction, quads: frozenset[str]) -> bool:
    """Whether neighbours in depth of the second operand may be computed from the same vectors, as packed weights are."""
    return "b" in quads and not c.b_deep and divides(c.depth, VECTOR_LENGTH) and c.b.word not in ("load", "select")


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


@dataclass(frozen=True)
class _Side:
    """A parameter of the functions that counts along a side of the matrices."""

    name: str
    variable: Expr
    length: Dim
    tile: int  # of a multiple of it, no call is out of bounds

    def in_fours(self) -> _Side:
        """The number of four neighbours."""
        length = ceildiv(self.length, VECTOR_LENGTH)
        return _Side("q", scalar.var("q", int32, length), length, max(self.tile // VECTOR_LENGTH, 1))


def put_functions(
    shader: Shader, c: Contraction, rows: int, columns: int, depth: int, loads: Loads, operands: str = "ab"
) -> None:
    """Write load_a, load_b and store_c; a side that is a multiple of the tile needs no bounds test. operands: those that are loaded."""
    m, n, k = _Side("m", c.m, c.rows, rows), _Side("n", c.n, c.columns, columns), _Side("k", c.k, c.depth, depth)
    if "a" in operands:
        _put_load(shader, c, "a", c.a, (m, k), c.k if c.a_deep else c.m, loads)
    if "b" in operands:
        _put_load(shader, c, "b", c.b, (k, n), c.k if c.b_deep else c.n, loads)
    if loads.split:
        _put_rows(shader, loads.split)
    kind = f"vec4<{element(shader, c)}>" if "c" in loads.quads else element(shader, c)
    totals = {total: total.value[0] for total in c.accumulators}
    given = "".join(f", {name}: {kind}" for name in totals.values())
    with _function(shader, c, "store_c", (_Side("m", c.place, c.places, rows // c.window), n), given) as out:
        if "c" in loads.quads:
            put_four(out, (c.store,), c.n, totals, (c.a, c.b))
        else:
            out.names.update(totals)
            index, value = out.values([c.store.index, c.store.value])
            out.put(shader.store(c.store.port, index, value))


def _put_load(
    shader: Shader, c: Contraction, name: str, e: Expr, sides: tuple[_Side, ...], along: Expr, loads: Loads
) -> None:
    """Write the function that loads an operand, whose elements are contiguous in memory along a variable."""
    words = loads.words
    if words.ahead and name in words.tiles:
        place = f"{words.tiles[name]}[to]"
        with _function(shader, c, f"copy_{name}", sides, ", to: i32", "", f"{place} = vec4<u32>(0u); return;") as out:
            put_copy_of_words(out, e, words.word, place)
        if not words.again:
            return
    kind = shader.dialect.types[e.dtype]
    if name in loads.quads or name in words.tiles:
        kind = f"vec4<{kind}>" if name in loads.quads else "vec4<u32>"
    split = loads.split if name == "a" else ()
    neighbours = [e]
    if name in loads.fours:
        kind = f"array<{kind}, {VECTOR_LENGTH}>" if name in loads.quads else f"vec4<{kind}>"
        side = sides[0] if name == "a" or name in loads.quads else sides[1]
        four = side.in_fours()
        neighbours = [e] * VECTOR_LENGTH
        if side.variable.word == "var":  # more than one element
            neighbours = [
                affine.substitute(e, {side.variable: four.variable * VECTOR_LENGTH + i}) for i in range(VECTOR_LENGTH)
            ]
        sides = tuple(four if s is side else s for s in sides)
    zero = f"{kind}()" if name in loads.fours else f"{kind}(0)"
    with _function(shader, c, f"load_{name}", sides, ", at: Row" if split else "", kind, f"return {zero};") as out:
        out.names.update((digit.value, f"at.d{i}") for i, digit in enumerate(split))
        if name in loads.quads:
            texts = quad_texts(out, neighbours, along)
        else:
            texts = [words_text(out, e, words.word)] if name in words.tiles else out.values(neighbours)
        joined = ", ".join(texts)
        out.put(f"return {f'{kind}({joined})' if name in loads.fours else joined};")


@contextmanager
def _function(
    shader: Shader,
    c: Contraction,
    name: str,
    sides: Sequence[_Side],
    more: str,
    kind: str = "",
    outside: str = "return;",
) -> Iterator[Statements]:
    """A function of the batch coordinates, of sides and of more parameters. outside: what it does out of bounds."""
    out = Statements(shader)
    out.names.update((v, v.value[0]) for v in c.batch_vars if v.word == "var")
    out.names.update((side.variable, side.name) for side in sides if side.variable.word == "var")
    tests = [f"{side.name} >= {shader.dim(side.length)}" for side in sides if not divides(side.length, side.tile)]
    if tests:
        out.put(f"if ({' || '.join(tests)}) {{ {outside} }}")
    yield out
    names = [*(f"t{i}" for i in range(len(c.batch))), *(side.name for side in sides)]
    header = f"fn {name}({', '.join(f'{n}: i32' for n in names)}{more}){kind and f' -> {kind}'} {{"
    shader.functions.append("\n".join((header, *out.lines, "}")))


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
    for i in range(1, VECTOR_LENGTH):
        out.put(f"let row{i} = row_after(row{i - 1});")
    four = f"array<Row, {VECTOR_LENGTH}>"
    out.put(f"return {four}({', '.join(f'row{i}' for i in range(VECTOR_LENGTH))});")
    shader.functions.append(f"struct Row {{ {', '.join(f'd{i}: i32' for i in range(len(split)))} }}")
    for header, body in (("fn row_after(at: Row) -> Row", after), (f"fn rows_a(m: i32) -> {four}", out)):
        shader.functions.append("\n".join((f"{header} {{", *body.lines, "}")))
