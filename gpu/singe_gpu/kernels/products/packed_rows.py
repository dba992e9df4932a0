"""The template for products of a few rows by packed weights, as when a text grows token by token: the weights are read once.

A workgroup computes a few fours of columns. It first brings the rows to workgroup memory, a part of the depth at a time; if the
Routine says how a row is made, it makes it there. Each invocation then multiplies some words of a four of columns, which it loads
as vectors of 16 bytes, by all rows, and the sums of the invocations that have the same columns are added at the end.

Numbers of a word are not moved to its lowest bits one by one: with an exponent put before them, bits of a word are the mantissa of
2²³ + number · 2^place. Subtracting 2²³ is exact, and so is dividing by 2^place, which the rows in workgroup memory have done. A zero
that is a whole constant is subtracted with the 2²³; others take the sum of a row over the words that an invocation has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from singe.extension import Expr, Routine, Store, int32, scalar

from ...code.shader import Shader, Text
from ...code.statements import Statements
from ...dialect import Dialect
from ..nest import put_folds
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH, in_fours, put_four
from .gemm import MAX_WORKGROUPS_PER_DIMENSION, add_slices
from .packed import PackedProduct, packed_product

MAX_ROWS: Final = 4
"""The most rows: with more, tiles of them are faster."""
THREADS: Final = 256
MAX_VECTORS: Final = 8
"""The most fours of columns of a workgroup: neighbours read 128 bytes of a line of words."""
MIN_VECTORS: Final = 2
"""The least: memory is read in pieces of 32 bytes."""
WORKGROUPS_TO_FILL: Final = 256
"""A workgroup has fewer columns where there would be fewer workgroups than this."""
HELD_ELEMENTS: Final = 3072
"""The most elements of the rows in workgroup memory at once: 12 KiB of the 16 that every device has."""
MAX_WORDS_AT_ONCE: Final = 4
"""The most words of a column that an invocation loads before it multiplies them."""
_EXPONENT: Final = 0x4B000000
"""The bits of 2²³ as a float32."""


class _PlaceInWord(NamedTuple):
    """Where a number is in a word: the word is moved right by `shift` bits, and then the number is at `at`."""

    shift: int
    at: int


PLACES: Final[Mapping[int, Sequence[_PlaceInWord]]] = {
    4: tuple(_PlaceInWord(16 * (j // 4), 4 * (j % 4)) for j in range(8)),
    8: tuple(_PlaceInWord(16 * (j // 2), 8 * (j % 2)) for j in range(4)),
}
"""Bits of a number ↦ the places of the numbers of a word. A mantissa has 23 bits."""


def packed_rows(dialect: Dialect, routine: Routine) -> PackedProduct | None:
    """The facts of a Routine that the template takes; None for others."""
    p = packed_product(dialect, routine)
    few = p is not None and not p.c.batch and isinstance(p.c.rows, int) and p.c.rows <= MAX_ROWS
    return p if few else None


def print_packed_rows(p: PackedProduct, shader: Shader) -> Text:
    return _PackedRowsText(p, shader).text()


class _PackedRowsText:
    """A shader while it is written."""

    def __init__(self, p: PackedProduct, shader: Shader) -> None:
        self.p, self.shader, self.c = p, shader, p.c
        assert isinstance(p.c.rows, int)
        self.rows = p.c.rows
        fours = p.columns // VECTOR_LENGTH
        self.vectors = MAX_VECTORS
        while self.vectors > MIN_VECTORS and fours // self.vectors < WORKGROUPS_TO_FILL:
            self.vectors //= 2
        self.slices = THREADS // self.vectors
        parts = -(-p.depth * self.rows // HELD_ELEMENTS)
        self.part = -(-p.depth // parts // p.block) * p.block
        """How much of the depth is in workgroup memory at once."""
        in_block = p.block // p.each
        self.at_once = MAX_WORDS_AT_ONCE
        while in_block % self.at_once or (self.at_once > 1 and self.part // p.each // self.at_once < self.slices):
            self.at_once //= 2
        self.in_block = in_block
        shader.shared("row", f"array<vec4<f32>, {-(-self.part // VECTOR_LENGTH)}>", self.rows)
        shader.shared("sums", f"array<vec4<f32>, {THREADS}>", self.rows)

    def text(self) -> Text:
        p, out = self.p, Statements(self.shader)
        total = -(-p.columns // (self.vectors * VECTOR_LENGTH))
        out.put("let tile = i32(group.x + group.y * groups.x);")
        if total > MAX_WORKGROUPS_PER_DIMENSION:
            out.put(f"if (tile >= {total}i) {{ return; }}")
        out.put(f"let side = (tile * {self.vectors}i + i32(lane) % {self.vectors}i) * {VECTOR_LENGTH}i;")
        out.put(f"let slice = i32(lane) / {self.vectors}i;")
        self._declare(out)
        starts = range(0, p.depth, self.part)
        self._fetch_first(out, 0)
        if p.folds:
            put_folds(out, replace(self.c.kernel, stages=tuple(p.folds)), THREADS)
        for i in range(self.rows):
            out.put(f"var c{i} = vec4<f32>();")
        for first in starts:
            if first:
                self._fetch_first(out, first)
                out.put("workgroupBarrier();")
            self._multiply(out, first)
        add_slices(out, self.slices, self.vectors, [f"c{i}" for i in range(self.rows)], "sums")
        test = f"if (side < {p.columns}i)" if p.columns % (self.vectors * VECTOR_LENGTH) else ""
        if test:
            with out.scope(test) as inside:
                self._store(inside)
        else:
            self._store(out)
        return self.shader.text(out.lines, THREADS, total)

    def _length(self, first: int) -> int:
        return min(self.part, self.p.depth - first)

    def _units(self, first: int) -> int:
        """Words that are multiplied at once, in the part of the depth that begins there."""
        return self._length(first) // self.p.each // self.at_once

    def _declare(self, out: Statements) -> None:
        """What an invocation multiplies next: it is loaded while other work is done."""
        for g in range(self.at_once):
            out.put(f"var next{g} = vec4<u32>();")
        out.put("var next_scale = vec4<f32>();")
        if isinstance(self.p.zero, int):
            out.put("var next_zero = vec4<f32>();")

    def _fetch_first(self, out: Statements, first: int) -> None:
        with out.scope(f"if (slice < {self._units(first)}i)") as some:
            self._fetch(some, "slice", first)

    def _fetch(self, out: Statements, unit: str, first: int) -> None:
        """Load the words of a unit, and what they are scaled by."""
        p, shader, count = self.p, self.shader, self.at_once
        start = f"{unit} * {count}i" if count > 1 else unit
        word = out.let("word", f"{start} + {first // p.each}i" if first else start)
        block = out.let("block", f"{word} / {self.in_block}i * {p.columns}i + side")
        for g in range(count):
            text = shader.load_vector(p.words, f"(({word} + {g}i) * {p.columns}i + side)")
            out.put(f"next{g} = bitcast<vec4<u32>>({text});")
        out.put(f"next_scale = {shader.load_vector(p.scale, block)};")
        if isinstance(p.zero, int):
            out.put(f"next_zero = {shader.load_vector(p.zero, block)};")

    def _multiply(self, out: Statements, first: int) -> None:
        """Bring a part of the rows to workgroup memory, and multiply it."""
        p, c, length = self.p, self.c, self._length(first)
        out.hoist([c.a])
        with out.scope(f"for (var four = i32(lane); four < {length // VECTOR_LENGTH}i; four += {THREADS}i)") as turn:
            at = turn.let("at", f"four * {VECTOR_LENGTH}i + {first}i" if first else f"four * {VECTOR_LENGTH}i")
            for i in range(self.rows):
                swaps = [{c.k: scalar.var(at, int32) + k, c.m: scalar.const(i, int32)} for k in range(VECTOR_LENGTH)]
                turn.names[scalar.var(at, int32)] = at
                values = turn.values([_at(c.a, swap) for swap in swaps])
                factors = (2.0 ** -PLACES[p.bits][k % p.each].at for k in range(VECTOR_LENGTH))
                scaled = (x if f == 1.0 else f"{x} * {f!r}f" for x, f in zip(values, factors, strict=True))
                turn.put(f"row[{i}][four] = vec4<f32>({', '.join(scaled)});")
        out.put("workgroupBarrier();")
        units = self._units(first)
        with out.scope(f"for (var unit = slice; unit < {units}i; unit += {self.slices}i)") as turn:
            words = [turn.let(f"word{g}", f"next{g}") for g in range(self.at_once)]
            scale = turn.let("scale", "next_scale")
            zero = turn.let("zero", "next_zero") if isinstance(p.zero, int) else ""
            with turn.scope(f"if (unit + {self.slices}i < {units}i)") as some:
                self._fetch(some, some.let("later", f"unit + {self.slices}i"), first)
            self._unit(turn, words, scale, zero)

    def _unit(self, out: Statements, words: Sequence[str], scale: str, zero: str) -> None:
        """Multiply some words of a four of columns by all rows."""
        p, count, held = self.p, self.at_once, bool(zero)
        fours = p.each // VECTOR_LENGTH
        for i in range(self.rows):
            out.put(f"var dot{i} = vec4<f32>();")
            if held:
                out.put(f"var sum{i} = 0.0f;")
        places = PLACES[p.bits]
        back = ", ".join(f"{2.0 ** places[k].at!r}f" for k in range(VECTOR_LENGTH))
        for g, name in enumerate(words):
            for i in range(self.rows):
                for q in range(fours):
                    out.put(f"let x{g}_{i}_{q} = row[{i}][unit * {count * fours}i + {g * fours + q}i];")
                    if held:
                        out.put(f"sum{i} += dot(x{g}_{i}_{q}, vec4<f32>({back}));")
            if max(place.shift for place in places):
                out.put(f"let high{g} = {name} >> vec4<u32>(16u);")
            for j, place in enumerate(places):
                source = f"high{g}" if place.shift else name
                mask = ((1 << p.bits) - 1) << place.at
                lifted = f"({source} & vec4<u32>({mask}u)) | vec4<u32>({_EXPONENT}u)"
                start_ = float(1 << 23) + (0.0 if held else float(p.zero) * 2.0**place.at)
                out.put(f"let q{g}_{j} = bitcast<vec4<f32>>({lifted}) - vec4<f32>({start_!r}f);")
                for i in range(self.rows):
                    x = f"x{g}_{i}_{j // VECTOR_LENGTH}.{VECTOR_COMPONENTS[j % VECTOR_LENGTH]}"
                    out.put(f"dot{i} += q{g}_{j} * {x};")
        for i in range(self.rows):
            dot = f"(dot{i} - {zero} * sum{i})" if held else f"dot{i}"
            out.put(f"c{i} += {scale} * {dot};")

    def _store(self, out: Statements) -> None:
        c = self.c
        (total,) = c.accumulators
        fours = in_fours((c.store,), c.n, self.shader, (c.a, *(r.value for r in self.p.folds)))
        out.names[c.n] = "side"
        for i in range(self.rows):
            store = _row(c.store, {c.m: scalar.const(i, int32)})
            if fours:
                put_four(out, (store,), c.n, {total: f"c{i}"}, (c.a, *(r.value for r in self.p.folds)))
                continue
            for k, part in enumerate(VECTOR_COMPONENTS):
                with out.scope("") as one:
                    one.names[c.n] = one.let("n", f"side + {k}i")
                    one.names[total] = f"c{i}.{part}"
                    index, value = one.values([store.index, store.value])
                    one.put(self.shader.store(store.port, index, value))


def _at(e: Expr, swap: Mapping[Expr, Expr]) -> Expr:
    return scalar.substitute(e, {k: v for k, v in swap.items() if k.word == "var"})


def _row(store: Store, swap: Mapping[Expr, Expr]) -> Store:
    return replace(store, index=_at(store.index, swap), value=_at(store.value, swap))
