"""What the shaders of an attention share: a workgroup's rows and keys, loads, scores, and where results go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from singe.extension import EIGHT_BIT_BLOCK, WORDS_OF_A_BLOCK, Attention, Dim, Port, bool_, ceildiv, float32

from ...code.shader import Shader
from ...code.statements import Statements
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH

WEIGHT: Final = """fn weight_of(x: f32) -> f32 {
  // exp(x) of a number that is not positive; NaN stays.
  return select(exp(max(x, -110.0f)), x, is_nan(x));
}"""


def ports(a: Attention, partial: bool = False, joined: bool = False) -> list[Port]:
    """The ports: the inputs, the result, and the scratch of keys that are split, which is written or read."""
    found = (
        [Port(a.dtype), *[Port(a.held)] * 2]
        + ([] if a.mask_dtype is None else [Port(a.mask_dtype)])
        + [Port(a.dtype, True)]
    )
    return [*found, *[Port(float32, True)] * partial, *[Port(float32)] * joined]


def vectors(count: int) -> int:
    """How many vectors hold so many elements."""
    return -(-count // VECTOR_LENGTH)


def power(count: int) -> int:
    """The least power of two that is at least this."""
    return 1 << (count - 1).bit_length()


def quotient(sums: str, total: str) -> str:
    """Sums divided by their total, which is at least 1 for a row that sees a key, and otherwise 0."""
    return f"({sums} * (1.0f / max({total}, 1.0f)))"


def scratch(a: Attention, results: Dim) -> Dim:
    """Bytes of so many partial results: for each row and split the vectors of its sums, and one of its largest score and total."""
    return results * (16 * (vectors(a.width) + 1))


@dataclass(frozen=True)
class AttentionParts:
    """Writes these parts of a shader. splits: into how many parts the keys are split, each for a workgroup."""

    a: Attention
    shader: Shader
    splits: Dim

    @property
    def is_split(self) -> bool:
        return self.splits != 1

    @property
    def least(self) -> str:
        """The score of a row that has seen no key yet."""
        return self.shader.dialect.literal(float(np.finfo(np.float32).min), float32)

    @property
    def result(self) -> int:
        return 3 + (self.a.mask is not None)

    def begin(self, rows: int, block: int) -> tuple[Statements, Dim]:
        """Bind the place of a workgroup: the head of keys `point`, the first of its rows, and its keys, from `begin` to `end`
        in blocks. Returns the statements, and how many workgroups there are."""
        a, dim, out = self.a, self.shader.dim, Statements(self.shader)
        down = ceildiv(a.rows, rows)
        total = down * a.points * self.splits
        out.put("let number = i32(group.x + group.y * groups.x);")
        out.put(f"if (number >= {dim(total)}) {{ return; }}")
        place = "number"
        if self.is_split:
            out.put(f"let split = number % {dim(self.splits)};")
            out.put(f"let place = number / {dim(self.splits)};")
            place = "place"
        out.put(f"let point = {place} / {dim(down)};")
        out.put(f"let first = {place} % {dim(down)} * {rows}i;")
        out.put(f"let origin = point * {dim(a.room)};")
        out.put(f"let lines = point * {dim(a.rows)};")
        if self.is_split:
            share = ceildiv(ceildiv(a.keys, block), self.splits) * block
            out.put(f"let begin = split * {dim(share)};")
            out.put(f"let end = min(begin + {dim(share)}, {self._end(rows)});")
        else:
            out.put("let begin = 0i;")
            out.put(f"let end = {self._end(rows)};")
        self._put_functions()
        return out, total

    def _end(self, rows: int) -> str:
        """The keys that some row of the tile sees."""
        a, dim = self.a, self.shader.dim
        if not a.causal:
            return dim(a.keys)
        queries = dim(a.queries)
        last = f"min(first + {rows}i, {dim(a.rows)}) - 1i"
        same = f"first / {queries} == ({last}) / {queries}"
        return f"min({dim(a.keys)}, select({queries} - 1i, ({last}) % {queries}, {same}) + {dim(a.past)} + 1i)"

    def _put_functions(self) -> None:
        a, dim, shader = self.a, self.shader.dim, self.shader
        for name, port, width in (("q", 0, a.size), ("k", 1, a.size), ("v", 2, a.width)):
            self._put_load(name, port, width)
        limit = dim(a.keys)
        if a.causal:
            limit = f"min({limit}, row % {dim(a.queries)} + {dim(a.past)} + 1i)"
        shader.functions.append(f"fn limit_of(row: i32) -> i32 {{ return {limit}; }}")
        if a.mask is not None:
            shader.functions.append(f"fn mask_of(point: i32, row: i32) -> i32 {{ return {self._mask_row()}; }}")
        shader.functions.append(WEIGHT)
        out = Statements(shader)
        score = f"sum * {shader.dialect.literal(a.scale, float32)}"
        if a.cap:
            cap = shader.dialect.literal(a.cap, float32)
            score = f"tanh_f32({score} / {cap}) * {cap}"
        seen = "key < limit"
        if a.mask is not None:
            at = "mask" if a.mask[-1] == 0 else f"mask + min(key, {dim(a.keys)} - 1i)"
            element = shader.load(3, f"({at})")
            if a.mask_dtype is bool_:
                seen += f" && {element}"
            else:
                score += f" + {element}"
        out.put(f"return select(-inf(), {score}, {seen});")
        header = "fn score_of(sum: f32, key: i32, limit: i32, mask: i32) -> f32 {"
        shader.functions.append("\n".join((header, *out.lines, "}")))

    def _put_load(self, name: str, port: int, width: int) -> None:
        """The function that loads vector `at` of a line of q, k or v."""
        shader, out = self.shader, Statements(self.shader)
        if self.a.packed and name != "q":
            each, words = WORDS_OF_A_BLOCK - 1, width // EIGHT_BIT_BLOCK * WORDS_OF_A_BLOCK
            out.put(f"let block = line * {words}i + at / {each}i * {WORDS_OF_A_BLOCK}i;")
            word, scale = (shader.load(port, f"(block + {at})") for at in (f"at % {each}i", f"{each}i"))
            out.put(f"return vec4<f32>(four_bytes({word})) * bitcast<f32>({scale});")
        elif width % VECTOR_LENGTH == 0 and shader.has_vectors(port):
            out.put(f"return {shader.load_four(port, f'line * {width // VECTOR_LENGTH}i + at')};")
        else:
            out.put(f"let first = line * {width}i + at * {VECTOR_LENGTH}i;")
            each = [
                f"select(0.0f, {shader.load(port, f'(first + {i}i)')}, at * {VECTOR_LENGTH}i + {i}i < {width}i)"
                for i in range(VECTOR_LENGTH)
            ]
            out.put(f"return vec4<f32>({', '.join(each)});")
        shader.functions.append("\n".join((f"fn load_{name}(line: i32, at: i32) -> vec4<f32> {{", *out.lines, "}")))

    def _mask_row(self) -> str:
        """The first element of the mask for a row."""
        a, dim = self.a, self.shader.dim
        assert a.mask is not None
        *outer, head, query, _ = a.mask
        terms = []
        if head != 0:
            terms.append(f"(point % {dim(a.heads)} * {a.group}i + row / {dim(a.queries)}) * {dim(head)}")
        if query != 0:
            terms.append(f"row % {dim(a.queries)} * {dim(query)}")
        after: Dim = a.heads
        for d, step in reversed(list(zip(a.outer, outer, strict=True))):
            if step != 0:
                terms.append(f"point / {dim(after)} % {dim(d)} * {dim(step)}")
            after = after * d
        return " + ".join(terms) or "0i"

    def mask(self, row: str) -> str:
        return "0i" if self.a.mask is None else f"mask_of(point, {row})"

    def key(self, text: str) -> str:
        """The line of a key, also of one beyond the last."""
        return f"origin + min({text}, {self.shader.dim(self.a.keys)} - 1i)"

    def line(self, row: str) -> str:
        """The line of a query, also of one beyond the last."""
        return f"lines + min({row}, {self.shader.dim(self.a.rows)} - 1i)"

    def put_row(self, out: Statements, row: str, column: str, sums: str, totals: tuple[str, str], leads: str) -> None:
        """Store a vector of a row's sums, divided by the row's total; if the keys are split, as it is.

        column: the number of the vector, which may be beyond the last one. totals: the row's largest score and total.
        leads: the condition of who stores these too; empty for nobody."""
        if not self.is_split:
            self.put_result(out, f"lines + {row}", column, quotient(sums, totals[1]))
            return
        splits = self.shader.dim(self.splits)
        if isinstance(self.splits, int):
            self._put_partial(out, row, column, sums, totals, leads)
            return
        with out.scope(f"if ({splits} == 1i)") as whole:
            self.put_result(whole, f"lines + {row}", column, quotient(sums, totals[1]))
        with out.scope("else") as split:
            self._put_partial(split, row, column, sums, totals, leads)

    def _put_partial(
        self, out: Statements, row: str, column: str, sums: str, totals: tuple[str, str], leads: str
    ) -> None:
        shader, port, width = self.shader, self.result + 1, vectors(self.a.width)
        at = f"((lines + {row}) * {shader.dim(self.splits)} + split) * {VECTOR_LENGTH * (width + 1)}i"
        store = shader.store_vector(
            port, f"({at} + {column} * {VECTOR_LENGTH}i)", [f"{sums}.{p}" for p in VECTOR_COMPONENTS]
        )
        out.put(f"if ({column} < {width}i) {{ {store} }}")
        if leads:
            store = shader.store_vector(port, f"({at} + {VECTOR_LENGTH * width}i)", [*totals, "0.0f", "0.0f"])
            out.put(f"if ({leads}) {{ {store} }}")

    def put_result(self, out: Statements, line: str, column: str, value: str) -> None:
        """Store a vector of a line of the result."""
        width, shader, port = self.a.width, self.shader, self.result
        with out.scope("") as inner:
            inner.put(f"let y = {value};")
            if width % VECTOR_LENGTH == 0 and shader.stores_vectors(port):
                text = shader.store_vector(
                    port,
                    f"(({line}) * {width}i + ({column}) * {VECTOR_LENGTH}i)",
                    [f"y.{p}" for p in VECTOR_COMPONENTS],
                )
                inner.put(f"if ({column} < {width // VECTOR_LENGTH}i) {{ {text} }}")
                return
            for c, p in enumerate(VECTOR_COMPONENTS):
                text = shader.store(port, f"({line}) * {width}i + ({column}) * {VECTOR_LENGTH}i + {c}i", f"y.{p}")
                inner.put(f"if (({column}) * {VECTOR_LENGTH}i + {c}i < {width}i) {{ {text} }}")
