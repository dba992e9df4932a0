"""The template for few rows, as when a text grows word by word: each invocation has all rows, and the keys are read once.

Of a block, the invocations first multiply the queries by parts of keys: `lanes` neighbours have the parts of a key. Then
each weighs vectors of some of the block's values, and at the end the sums are added over the invocations that have the
same vector. A block's values are loaded before its weights are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...code.shader import Shader, Text
from ...code.statements import Statements
from .parts import VECTOR_LENGTH, AttentionParts, power, vectors


@dataclass(frozen=True)
class Few:
    """`threads` invocations have all `rows`; a block has `block` keys, each read by `lanes` invocations."""

    rows: int
    threads: int = 128
    block: int = 64
    lanes: int = 8


def print_few(parts: AttentionParts, few: Few) -> Text:
    return _FewRows(parts, few).text()


class _FewRows:
    """A shader while it is written."""

    def __init__(self, parts: AttentionParts, few: Few) -> None:
        self.parts, self.few, self.a = parts, few, parts.a
        self.shader: Shader = parts.shader
        self.rows = range(few.rows)
        self.pieces = range(-(-vectors(self.a.size) // few.lanes))
        self.lines = few.threads // few.lanes  # invocations with the same part of a key
        self.each = range(few.block // self.lines)
        self.width = max(2, power(vectors(self.a.width)))
        self.sharing = few.threads // self.width  # invocations with the same vector of the result
        self.keys = range(few.block // self.sharing)
        shader = self.shader
        shader.shared("pieces", f"array<f32, {few.lanes + 1}>", few.rows * few.block)
        shader.shared("scores", f"array<vec4<f32>, {few.block // VECTOR_LENGTH}>", few.rows)
        shader.shared("held", "vec4<f32>", few.threads)
        shader.shared("totals", f"array<f32, {few.threads}>", few.rows)

    def text(self) -> Text:
        few, parts, last = self.few, self.parts, vectors(self.a.size) - 1
        out, total = parts.begin(few.rows, few.block)
        out.put(f"let x = i32(lane) % {few.lanes}i;")
        out.put(f"let y = i32(lane) / {few.lanes}i;")
        out.put(f"let column = i32(lane) % {self.width}i;")
        out.put(f"let line = i32(lane) / {self.width}i;")
        for i in self.rows:
            for j in self.pieces:
                at = f"x + {j * few.lanes}i"
                line = parts.line(f"first + {i}i")
                out.put(f"let query{i}_{j} = {self._masked(f'load_q({line}, min({at}, {last}i))', at)};")
            out.put(f"var top{i} = {parts.least};")
            out.put(f"var total{i} = 0.0f;")
            out.put(f"var sum{i} = vec4<f32>();")
        with out.scope(f"for (var base = begin; base < end; base += {few.block}i)") as turn:
            self._scores(turn)
            self._sums(turn)
        self._store(out)
        return self.shader.text(out.lines, few.threads, total)

    def _masked(self, text: str, at: str) -> str:
        whole = vectors(self.a.size) % self.few.lanes == 0
        return text if whole else f"select(vec4<f32>(), {text}, {at} < {vectors(self.a.size)}i)"

    def _scores(self, out: Statements) -> None:
        few, parts = self.few, self.parts
        last, wide = vectors(self.a.size) - 1, vectors(self.a.width) - 1
        for c in self.each:
            out.put(f"let from{c} = {parts.key(f'base + y + {c * self.lines}i')};")
            for j in self.pieces:
                at = f"x + {j * few.lanes}i"
                at = at if (last + 1) % few.lanes == 0 else f"min({at}, {last}i)"
                out.put(f"let key{c}_{j} = load_k(from{c}, {at});")
        for c in self.keys:
            key = f"base + line + {c * self.sharing}i"
            text = f"load_v({parts.key(key)}, min(column, {wide}i))"
            out.put(f"let value{c} = select(vec4<f32>(), {text}, {key} < end);")
        for c in self.each:
            for i in self.rows:
                sums = " + ".join(f"dot(query{i}_{j}, key{c}_{j})" for j in self.pieces)
                out.put(f"pieces[{i * few.block}i + y + {c * self.lines}i][x] = {sums};")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var at = i32(lane); at < {few.rows * few.block}i; at += {few.threads}i)") as turn:
            turn.put(f"let key = at % {few.block}i;")
            turn.put(f"let own = at / {few.block}i;")
            turn.put(f"let row = min(first + own, {self.shader.dim(self.a.rows)} - 1i);")
            turn.put("var score = 0.0f;")
            for lane in range(few.lanes):
                turn.put(f"score += pieces[at][{lane}i];")
            turn.put(f"score = score_of(score, base + key, limit_of(row), {parts.mask('row')});")
            turn.put(f"scores[own][key / {VECTOR_LENGTH}i][key % {VECTOR_LENGTH}i] = score;")
        out.put("workgroupBarrier();")

    def _sums(self, out: Statements) -> None:
        for i in self.rows:
            out.put(f"var most{i} = top{i};")
        with out.scope(f"for (var at = 0i; at < {self.few.block // VECTOR_LENGTH}i; at++)") as turn:
            for i in self.rows:
                turn.put(f"let four{i} = scores[{i}i][at];")
                turn.put(f"most{i} = max(most{i}, max(max(four{i}.x, four{i}.y), max(four{i}.z, four{i}.w)));")
        for i in self.rows:
            out.put(f"let factor{i} = weight_of(top{i} - most{i});")
            out.put(f"top{i} = most{i};")
            out.put(f"total{i} *= factor{i};")
            out.put(f"sum{i} *= factor{i};")
        for c in self.keys:
            out.put(f"let key{c} = line + {c * self.sharing}i;")
            for i in self.rows:
                out.put(
                    f"let weight{i}_{c} = weight_of(scores[{i}i][key{c} / {VECTOR_LENGTH}i][key{c} % {VECTOR_LENGTH}i] - most{i});"
                )
                out.put(f"total{i} += weight{i}_{c};")
                out.put(f"sum{i} += weight{i}_{c} * value{c};")

    def _store(self, out: Statements) -> None:
        for i in self.rows:
            out.put(f"totals[{i}i][lane] = total{i};")
        for i in self.rows:
            out.put("workgroupBarrier();")
            out.put(f"held[lane] = sum{i};")
            out.put("workgroupBarrier();")
            with out.scope(f"if (line == 0i && first + {i}i < {self.shader.dim(self.a.rows)})") as own:
                with own.scope(
                    f"for (var other = lane + {self.width}u; other < {self.few.threads}u; other += {self.width}u)"
                ) as turn:
                    turn.put(f"sum{i} += held[other];")
                    turn.put(f"total{i} += totals[{i}i][other];")
                self.parts.put_row(
                    own, f"(first + {i}i)", "column", f"sum{i}", (f"top{i}", f"total{i}"), "column == 0i"
                )
