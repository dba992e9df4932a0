"""The template of attention: a workgroup computes some rows of a head of keys, going through the keys in blocks.

Invocation (x, y) has the rows y, y + down, … of the tile: their scores for the keys x, x + ACROSS, … of a block, their
largest scores and sums, and of their results the vectors x, x + ACROSS, …. A block of keys goes through workgroup memory,
at most CHUNK vectors of each at a time; then the weights exp(score − largest) do, in the same place if it is needed.
Queries and values are read where they are: those of a tile stay in the cache.

If there are few rows, as when a text grows word by word, the workgroup is cut into slices. Each goes through its own
blocks of keys, which are read where they are, and at the end the sums of the slices are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from singe.extension import Attention, Dim, Port, Printed, bool_, ceildiv, dim_min, float32

from ..shader import Shader, Text
from ..variants import for_all_sizes, variants
from ..wgsl import LARGEST, Statements, literal

ACROSS: Final = 8
"""The invocations that share rows."""
LINES: Final = 16
"""The invocations of a workgroup, divided by ACROSS."""
THREADS: Final = ACROSS * LINES
EACH: Final = 4
"""The keys of a block for which an invocation has scores."""
BLOCK: Final = ACROSS * EACH
"""The keys of a block."""
CHUNK: Final = 16
"""The most vectors of a key in workgroup memory."""
BUSY: Final = 128
"""With so many workgroups a device is busy: an invocation gets more rows only if as many workgroups remain."""
SIDE: Final = 4
_PARTS: Final = {1: ("",), 2: (".x", ".y"), 4: (".x", ".y", ".z", ".w")}
_LEAST: Final = literal(-LARGEST, float32)


@dataclass(frozen=True)
class Tile:
    """The rows of a workgroup: `down` invocations share keys, and each has `height` rows."""

    height: int
    down: int

    @property
    def rows(self) -> int:
        return self.height * self.down

    @property
    def slices(self) -> int:
        return LINES // self.down


FEW: Final = (Tile(1, 1), Tile(4, 1), Tile(4, 4))
"""Tiles for all rows of a head of keys."""
MANY: Final = (Tile(1, LINES), Tile(2, LINES), Tile(4, LINES))
"""Tiles for some of them."""


@lru_cache(maxsize=256)
def print_attention(a: Attention) -> Printed:
    """The function, with the ports of its inputs and of the result, for all sizes."""
    ports = [Port(a.dtype)] * 3 + ([] if a.mask_dtype is None else [Port(a.mask_dtype)]) + [Port(a.dtype, True)]
    return for_all_sizes(
        variants(ports, lambda shader, tile=tile: _Template(a, tile, shader).text(), when)
        for tile, when in chosen(a)
        if when != 0
    )


def chosen(a: Attention) -> list[tuple[Tile, Dim]]:
    """The tiles, each with a dimension that is 1 at the sizes for which it is chosen, otherwise 0: the smallest of FEW that
    has all rows, or the largest of MANY that leaves the device busy."""
    more = [dim_min(a.rows // (tile.rows + 1), 1) for tile in FEW]  # 1 if there are more rows
    found = [(tile, before - after) for tile, before, after in zip(FEW, (1, *more), more, strict=False)]
    busy = [1, *(dim_min(_tiles(a, tile) // BUSY, 1) for tile in MANY[1:]), 0]
    return [
        *found,
        *((tile, more[-1] * (fits - next_)) for tile, (fits, next_) in zip(MANY, pairwise(busy), strict=True)),
    ]


def _tiles(a: Attention, tile: Tile) -> Dim:
    return ceildiv(a.rows, tile.rows) * a.points


class _Template:
    """A shader while it is written."""

    def __init__(self, a: Attention, tile: Tile, shader: Shader) -> None:
        self.a, self.tile, self.shader = a, tile, shader
        height = tile.height
        self.rows = range(height)
        self.parts = _PARTS[height]
        self.kind = "f32" if height == 1 else f"vec{height}<f32>"
        self.steps = range(-(-a.width // (SIDE * ACROSS)))
        self.vectors = -(-a.size // SIDE)
        self.chunk = min(self.vectors, CHUNK)
        self.line = tile.down + (tile.down > 1)  # an odd number, so that neighbours are in different banks
        keys = BLOCK * tile.slices
        in_place = tile.slices == 1 and height == SIDE
        held = BLOCK * (self.chunk + 1) if tile.slices == 1 else THREADS
        shader.shared("held", "vec4<f32>", max(held, keys * self.line * in_place))
        self.weights = "held" if in_place else shader.shared("weights", self.kind, keys * self.line)
        self.tops = shader.shared("tops", self.kind, THREADS)

    def text(self) -> Text:
        a, dim, out = self.a, self.shader.dim, Statements(self.shader)
        for name, port, width in (("q", 0, a.size), ("k", 1, a.size), ("v", 2, a.width)):
            self._put_load(name, port, width)
        total = _tiles(a, self.tile)
        out.put("let number = i32(group.x + group.y * groups.x);")
        out.put(f"if (number >= {dim(total)}) {{ return; }}")
        down, sliced = dim(ceildiv(a.rows, self.tile.rows)), self.tile.slices > 1
        out.put(f"let point = number / {down};")
        out.put(f"let first = number % {down} * {self.tile.rows}i;")
        out.put(f"let x = i32(lane) % {ACROSS}i;")
        out.put(f"let line = i32(lane) / {ACROSS}i;")
        out.put(f"let y = {f'line % {self.tile.down}i' if sliced else 'line'};")
        out.put(f"let slice = {f'line / {self.tile.down}i * {BLOCK}i' if sliced else '0i'};")
        out.put(f"let origin = point * {dim(a.room)};")
        for i in self.rows:
            # Beyond the last row, the last one is computed again.
            out.put(f"let row{i} = min(first + y + {i * self.tile.down}i, {dim(a.rows)} - 1i);")
            out.put(f"let q{i} = point * {dim(a.rows)} + row{i};")
            if a.causal:
                out.put(f"let last{i} = row{i} % {dim(a.queries)} + {dim(a.past)};")
            if a.mask is not None:
                out.put(f"let mask{i} = {self._mask_row(i)};")
            for s in self.steps:
                out.put(f"var sum{i}_{s} = vec4<f32>();")
        out.put(f"var top = {self.kind}({_LEAST});")
        out.put(f"var total = {self.kind}();")
        out.put(f"let end = {self._end()};")
        with out.scope(f"for (var block = 0i; block < end; block += {BLOCK * self.tile.slices}i)") as turn:
            turn.put("let base = block + slice;")
            (self._scores_in_place if sliced else self._scores)(turn)
            self._weights(turn)
            self._values(turn)
        self._store(out)
        return self.shader.text(out.lines, THREADS, total)

    # --- parts ---

    def _put_load(self, name: str, port: int, width: int) -> None:
        """The function that loads vector `at` of a line of q, k or v."""
        shader, out = self.shader, Statements(self.shader)
        if width % SIDE == 0 and shader.has_vectors(port):
            out.put(f"return {shader.load_vector(port, f'(line * {width}i + at * {SIDE}i)')};")
        else:
            out.put(f"let first = line * {width}i + at * {SIDE}i;")
            each = [
                f"select(0.0f, {shader.load(port, f'(first + {i}i)')}, at * {SIDE}i + {i}i < {width}i)"
                for i in range(SIDE)
            ]
            out.put(f"return vec4<f32>({', '.join(each)});")
        shader.functions.append("\n".join((f"fn load_{name}(line: i32, at: i32) -> vec4<f32> {{", *out.lines, "}")))

    def _end(self) -> str:
        """The keys that some row of the tile sees."""
        a, dim = self.a, self.shader.dim
        if not a.causal:
            return dim(a.keys)
        queries = dim(a.queries)
        last = f"min(first + {self.tile.rows}i, {dim(a.rows)}) - 1i"
        same = f"first / {queries} == ({last}) / {queries}"
        return f"min({dim(a.keys)}, select({queries} - 1i, ({last}) % {queries}, {same}) + {dim(a.past)} + 1i)"

    def _mask_row(self, i: int) -> str:
        """The first element of the mask for a row."""
        a, dim = self.a, self.shader.dim
        assert a.mask is not None
        *outer, head, query, _ = a.mask
        terms = []
        if head != 0:
            terms.append(f"(point % {dim(a.heads)} * {a.group}i + row{i} / {dim(a.queries)}) * {dim(head)}")
        if query != 0:
            terms.append(f"row{i} % {dim(a.queries)} * {dim(query)}")
        after: Dim = a.heads
        for d, step in reversed(list(zip(a.outer, outer, strict=True))):
            if step != 0:
                terms.append(f"point / {dim(after)} % {dim(d)} * {dim(step)}")
            after = after * d
        return " + ".join(terms) or "0i"

    def _scores(self, out: Statements) -> None:
        """The scores of a block of keys: element c of score{i} is that of the key x + c · ACROSS."""
        keys = self.shader.dim(self.a.keys)
        for i in self.rows:
            out.put(f"var score{i} = vec4<f32>();")
        line, scope = self.chunk + 1, f"for (var start = 0i; start < {self.vectors}i; start += {self.chunk}i)"
        whole = self.vectors % self.chunk == 0
        with out.scope(scope) as part:
            count = f"{self.chunk}i" if whole else part.let("count", f"min({self.chunk}i, {self.vectors}i - start)")
            part.put("workgroupBarrier();")
            with part.scope(f"for (var at = i32(lane); at < {BLOCK}i * {count}; at += {THREADS}i)") as copy:
                copy.put(f"let key = at / {count};")
                copy.put(f"let place = at % {count};")
                copy.put(f"held[key * {line}i + place] = load_k(origin + min(base + key, {keys} - 1i), start + place);")
            part.put("workgroupBarrier();")
            with part.scope(f"for (var at = 0i; at < {count}; at++)") as step:
                keys = [f"held[(x + {c * ACROSS}i) * {line}i + at]" for c in range(EACH)]
                self._add_products(step, keys, "start + at")

    def _scores_in_place(self, out: Statements) -> None:
        """The same, with the keys read where they are; a barrier for the weights of the block before."""
        last = f"{self.shader.dim(self.a.keys)} - 1i"
        for i in self.rows:
            out.put(f"var score{i} = vec4<f32>();")
        for c in range(EACH):
            out.put(f"let from{c} = origin + min(base + x + {c * ACROSS}i, {last});")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var at = 0i; at < {self.vectors}i; at++)") as step:
            self._add_products(step, [f"load_k(from{c}, at)" for c in range(EACH)], "at")

    def _add_products(self, step: Statements, keys: Sequence[str], place: str) -> None:
        """Add the products of a vector of each key and the one at a place in each query to the scores."""
        for c, key in enumerate(keys):
            step.put(f"let key{c} = {key};")
        for i in self.rows:
            step.put(f"let query{i} = load_q(q{i}, {place});")
            dots = ", ".join(f"dot(query{i}, key{c})" for c in range(EACH))
            step.put(f"score{i} += vec4<f32>({dots});")

    def _weights(self, out: Statements) -> None:
        """From scores to weights, in workgroup memory; the sums so far are scaled down."""
        a, dim = self.a, self.shader.dim
        names = [[f"s{i}_{c}" for c in range(EACH)] for i in self.rows]
        for c in range(EACH):
            out.put(f"let at{c} = base + x + {c * ACROSS}i;")
            for i in self.rows:
                score = f"(score{i}.{'xyzw'[c]} * {literal(a.scale, float32)})"
                if a.cap:
                    cap = literal(a.cap, float32)
                    score = f"(tanh_f32({score} / {cap}) * {cap})"
                seen = f"at{c} < {dim(a.keys)}"
                if a.causal:
                    seen += f" && at{c} <= last{i}"
                if a.mask is not None:
                    step = a.mask[-1]
                    at = f"mask{i}" if step == 0 else f"mask{i} + min(at{c}, {dim(a.keys)} - 1i)"
                    element = self.shader.load(3, f"({at})")
                    if a.mask_dtype is bool_:
                        seen += f" && {element}"
                    else:
                        score = f"({score} + {element})"
                out.put(f"let {names[i][c]} = select(-inf(), {score}, {seen});")

        def folded(word: str) -> str:
            """The fold of each row over this invocation's keys."""
            each = []
            for row in names:
                text = row[0]
                for name in row[1:]:
                    text = f"{word}({text}, {name})" if word != "+" else f"{text} + {name}"
                each.append(text)
            return f"{self.kind}({', '.join(each)})"

        out.put(f"tops[lane] = {folded('max')};")
        out.put("workgroupBarrier();")
        out.put("var most = top;")
        with out.scope(f"for (var other = 0i; other < {ACROSS}i; other++)") as turn:
            turn.put(f"most = max(most, tops[line * {ACROSS}i + other]);")
        for i, part in zip(self.rows, self.parts, strict=True):
            out.put(f"let factor{i} = exp_f32(top{part} - most{part});")
            for name in names[i]:
                out.put(f"let e{name} = exp_f32({name} - most{part});")
        names = [[f"e{name}" for name in row] for row in names]
        factors = ", ".join(f"factor{i}" for i in self.rows)
        out.put(f"total = total * {self.kind}({factors}) + {folded('+')};")
        out.put("top = most;")
        for c in range(EACH):
            column = ", ".join(row[c] for row in names)
            out.put(f"{self.weights}[(slice + x + {c * ACROSS}i) * {self.line}i + y] = {self.kind}({column});")
        for i in self.rows:
            for s in self.steps:
                out.put(f"sum{i}_{s} *= factor{i};")
        out.put("workgroupBarrier();")

    def _values(self, out: Statements) -> None:
        """Add a block's values, times the weights."""
        with out.scope(f"for (var key = 0i; key < min({BLOCK}i, end - base); key++)") as turn:
            turn.put(f"let weight = {self.weights}[(slice + key) * {self.line}i + y];")
            for s in self.steps:
                # The columns beyond the last one of a short line are never stored.
                turn.put(f"let value{s} = load_v(origin + base + key, {self._vector(s)});")
                for i, part in zip(self.rows, self.parts, strict=True):
                    turn.put(f"sum{i}_{s} += weight{part} * value{s};")

    def _vector(self, step: int) -> str:
        count = -(-self.a.width // SIDE)
        text = f"x + {step * ACROSS}i"
        return text if (step + 1) * ACROSS <= count else f"min({text}, {count - 1}i)"

    def _store(self, out: Statements) -> None:
        """Add the sums of the invocations that share rows, and store the results."""
        sliced = self.tile.slices > 1
        if sliced:
            self._level(out)
        out.put("workgroupBarrier();")
        out.put("tops[lane] = total;")
        out.put("workgroupBarrier();")
        out.put(f"var whole = {self.kind}();")
        with out.scope(f"for (var other = 0i; other < {ACROSS * self.tile.slices}i; other++)") as turn:
            rows = f"(other / {ACROSS}i * {self.tile.down}i + y) * {ACROSS}i + other % {ACROSS}i"
            turn.put(f"whole += tops[{rows if sliced else f'line * {ACROSS}i + other'}];")
        for i, part in zip(self.rows, self.parts, strict=True):
            # The sum is at least 1 if a row sees any key.
            out.put(f"let share{i} = 1.0f / max(whole{part}, 1.0f);")
            if sliced:
                for s in self.steps:
                    self._add_slices(out, f"sum{i}_{s}")
            lead = "slice == 0i && " if sliced else ""
            with out.scope(f"if ({lead}first + y + {i * self.tile.down}i < {self.shader.dim(self.a.rows)})") as row:
                for s in self.steps:
                    row.put(f"let y{s} = sum{i}_{s} * share{i};")
                    self._put(row, i, s)

    def _level(self, out: Statements) -> None:
        """Scale the sums of the slices to the largest score of all."""
        out.put("workgroupBarrier();")
        out.put("tops[lane] = top;")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var other = 0i; other < {self.tile.slices}i; other++)") as turn:
            turn.put(f"top = max(top, tops[(other * {self.tile.down}i + y) * {ACROSS}i]);")
        for i, part in zip(self.rows, self.parts, strict=True):
            out.put(f"let level{i} = exp_f32(tops[lane]{part} - top{part});")
            for s in self.steps:
                out.put(f"sum{i}_{s} *= level{i};")
        out.put(f"total *= {self.kind}({', '.join(f'level{i}' for i in self.rows)});")

    def _add_slices(self, out: Statements, name: str) -> None:
        """Add a vector over the slices."""
        out.put("workgroupBarrier();")
        out.put(f"held[lane] = {name};")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var other = {self.tile.down}i; other < {LINES}i; other += {self.tile.down}i)") as turn:
            turn.put(f"{name} += held[(line + other) % {LINES}i * {ACROSS}i + x];")

    def _put(self, out: Statements, i: int, s: int) -> None:
        """Store vector s of a row."""
        width, shader = self.a.width, self.shader
        port = len(shader.ports) - 1
        column = f"(x + {s * ACROSS}i) * {SIDE}i"
        if width % SIDE == 0 and shader.stores_vectors(port):
            text = shader.store_vector(port, f"(q{i} * {width}i + {column})", [f"y{s}.{p}" for p in "xyzw"])
            out.put(text if (s + 1) * ACROSS * SIDE <= width else f"if ({column} < {width}i) {{ {text} }}")
            return
        for c, p in enumerate("xyzw"):
            text = shader.store(port, f"q{i} * {width}i + {column} + {c}i", f"y{s}.{p}")
            out.put(f"if ({column} + {c}i < {width}i) {{ {text} }}")
