"""The functions of a product's shader that load the operands and store the output: load_a, load_b and store_c.

They are printed from the kernel's own expressions, so that a template works for all products. Outside the matrices the
loads return zero and the store does nothing. An operand that is a quad is loaded as vectors of four; an output whose
neighbours are contiguous is stored as vectors of four.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from singe.extension import Contraction, Dim, Expr, affine, ceildiv, divides, int32, scalar

from ..code.shader import Shader
from ..code.wgsl import TYPES, Statements
from .quads import SIDE, in_fours, is_quad, octet_text, put_four, quad_text, quad_texts


def element(c: Contraction) -> str:
    """The type of an element of the product."""
    return TYPES[c.b.dtype]


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


def unpacks(c: Contraction, quads: frozenset[str]) -> bool:
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
    kind = f"vec4<{element(c)}>" if "c" in quads else element(c)
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
