"""The template for many rows: a workgroup computes a tile of rows over blocks of keys, both products in tiles of registers.

Invocation (x, y) has the rows y, y + down, … of the tile. Of a block it has the scores of the keys x, x + across, …, and
of the results the vectors x, x + across, …. For each block:

1. Queries · keys. Both go through workgroup memory, `lines` vectors of each row and key at a time: line p of `left` has
   a vector of every row, that of `right` one of every key.
2. The scores become weights. The largest scores of a row are compared through `tops`.
3. Weights · values. These go through the same memory, `lines` lines at a time: line p of `left` has, for every row, the
   weights of four keys that the invocations with x = p computed, that of `right` the values of these keys.

What is written to workgroup memory next is loaded while the present lines are multiplied: `next0`, `next1`, …. The
invocations that write lines p, p + 1, … of one row at once would hit the same bank: so row y has place y ^ p of line p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from singe.extension import Attention

from ...code.shader import Shader, Text
from ...code.statements import Statements
from .parts import VECTOR_COMPONENTS, VECTOR_LENGTH, AttentionParts, vectors

WORKGROUP_BYTES: Final = 16384
"""The bytes of workgroup memory that every device has."""
MEMORY_BANKS: Final = 8
"""The vectors that workgroup memory reads or writes at once."""


class TileCopy(NamedTuple):
    """A vector that an invocation loads and later writes to a place in workgroup memory; `inside`: the condition of an
    invocation that does, empty for all."""

    load: str
    place: str
    inside: str


@dataclass(frozen=True)
class AttentionTile:
    """across × down invocations, powers of two, with `height` rows (2, 4 or 8) and `each` keys (4 or 8) each."""

    across: int
    down: int
    height: int
    each: int

    @property
    def threads(self) -> int:
        return self.across * self.down

    @property
    def rows(self) -> int:
        return self.down * self.height

    @property
    def block(self) -> int:
        return self.across * self.each

    def steps(self, width: int) -> int:
        """How many vectors of a row of results an invocation has."""
        return -(-vectors(width) // self.across)

    def depth(self, width: int) -> int:
        """How many vectors an invocation reads from a line of keys or of values, at most."""
        return max(self.each, VECTOR_LENGTH * self.steps(width))

    def lines(self, a: Attention) -> int:
        """The lines in workgroup memory: as many as there is room for, but not more than a key has vectors."""
        line = 16 * (self.rows + self.depth(a.width) * self.across)
        most = (WORKGROUP_BYTES - 4 * self.threads * self.height) // line
        count = self.across
        while count > most or (count > 4 and count // 2 >= vectors(a.size)):
            count //= 2
        return count


def print_tiles(parts: AttentionParts, tile: AttentionTile) -> Text:
    return _Tiles(parts, tile).text()


class _Tiles:
    """A shader while it is written."""

    def __init__(self, parts: AttentionParts, tile: AttentionTile) -> None:
        self.parts, self.tile, self.a = parts, tile, parts.a
        self.shader: Shader = parts.shader
        self.lines = tile.lines(self.a)
        assert self.lines > 0, tile
        self.rows, self.each = range(tile.height), range(tile.each)
        self.steps = range(tile.steps(self.a.width))
        self.depth = tile.depth(self.a.width)
        self.vectors = vectors(self.a.size)
        self.pack = min(tile.height, VECTOR_LENGTH)  # the largest scores and totals of so many rows are one vector
        self.kind = f"vec{self.pack}<f32>"
        self.groups = range(tile.height // self.pack)
        shader = self.shader
        shader.shared("left", f"array<array<vec4<f32>, {tile.down}>, {tile.height}>", self.lines)
        shader.shared("right", f"array<array<vec4<f32>, {tile.across}>, {self.depth}>", self.lines)
        shader.shared("tops", f"array<array<{self.kind}, {tile.down}>, {tile.across}>", len(self.groups))

    def text(self) -> Text:
        tile, parts = self.tile, self.parts
        out, total = parts.begin(tile.rows, tile.block)
        columns = len(self.steps) * tile.across
        out.put(f"let x = i32(lane % {tile.across}u);")
        out.put(f"let y = i32(lane / {tile.across}u);")
        out.put(f"let copy_at = i32(lane % {self.lines}u);")
        out.put(f"let copy_line = i32(lane / {self.lines}u);")
        out.put(f"let copy_column = i32(lane % {columns}u);")
        out.put(f"let copy_four = i32(lane / {columns}u);")
        for i in self.rows:
            out.put(f"let row{i} = first + y + {i * tile.down}i;")
            if self.a.causal:
                out.put(f"let limit{i} = limit_of({self._kept(i)});")
            if self.a.mask is not None:
                out.put(f"let mask{i} = {parts.mask(self._kept(i))};")
            for s in self.steps:
                out.put(f"var sum{i}_{s} = vec4<f32>();")
        if not self.a.causal:
            out.put("let limit = limit_of(0i);")
        for g in self.groups:
            out.put(f"var top{g} = {self.kind}({parts.least});")
            out.put(f"var total{g} = {self.kind}();")
        for t in range(max(len(self._operands("0i", "0i")), len(self._values(0, "0i")))):
            out.put(f"var next{t} = vec4<f32>();")
        self._fetch(out, self._operands("begin", "0i"))
        with out.scope(f"for (var base = begin; base < end; base += {tile.block}i)") as turn:
            self._scores(turn)
            self._weights(turn)
            self._sums(turn)
        self._store(out)
        return self.shader.text(out.lines, tile.threads, total)

    def _kept(self, i: int) -> str:
        """The number of a row, also of one beyond the last."""
        return f"min(row{i}, {self.shader.dim(self.a.rows)} - 1i)"

    def _spread(self, place: str, line: str, count: int) -> str:
        """The place in a line of `count` places."""
        most = min(count, MEMORY_BANKS)
        by = max(1, MEMORY_BANKS // self.lines)
        if most == 1:
            return place
        shift = line if by == 1 else f"({line}) * {by}i"
        if (self.lines - 1) * by >= most:
            shift = f"({shift}) % {most}i"
        return f"({place}) ^ ({shift})"

    # --- what goes through workgroup memory ---

    def _operands(self, base: str, start: str) -> list[TileCopy]:
        """What an invocation copies of queries and keys, from vector `start` on."""
        tile = self.tile
        found: list[TileCopy] = []
        apart = tile.threads // self.lines
        at = self._inside(f"{start} + copy_at")
        for side, array, length in ((tile.rows, "left", tile.down), (tile.block, "right", tile.across)):
            for t in range(-(-side // apart)):
                line = f"copy_line + {t * apart}i"
                if array == "left":
                    text = f"load_q({self.parts.line(f'first + {line}')}, {at})"
                else:
                    text = f"load_k({self.parts.key(f'{base} + {line}')}, {at})"
                if self.vectors % self.lines:
                    text = f"select(vec4<f32>(), {text}, {start} + copy_at < {self.vectors}i)"
                if apart >= length:
                    outer, inner = f"copy_line / {length}i + {t * apart // length}i", f"copy_line % {length}i"
                else:
                    outer, inner = f"{t * apart // length}i", f"copy_line + {t * apart % length}i"
                place = f"{array}[copy_at][{outer}][{self._spread(inner, 'copy_at', length)}]"
                inside = "" if (t + 1) * apart <= side else f"copy_line < {side - t * apart}i"
                found.append(TileCopy(text, place, inside))
        return found

    def _inside(self, at: str) -> str:
        return at if self.vectors % self.lines == 0 else f"min({at}, {self.vectors - 1}i)"

    def _values(self, j: int, part: str) -> list[TileCopy]:
        """The same for values: the lines from `part` on of the j-th vectors of four keys."""
        tile = self.tile
        found: list[TileCopy] = []
        across = len(self.steps) * tile.across
        last = vectors(self.a.width) - 1
        units = across * VECTOR_LENGTH * self.lines
        for t in range(-(-units // tile.threads)):
            if tile.threads % across == 0:  # the column is the same for all, and the line grows
                column, line = "copy_column", f"(copy_four + {t * (tile.threads // across)}i)"
            else:
                unit = f"(i32(lane) + {t * tile.threads}i)"
                column, line = f"({unit} % {across}i)", f"({unit} / {across}i)"
            key = f"base + {part} + {line} / {VECTOR_LENGTH}i + ({line} % {VECTOR_LENGTH}i + {j * VECTOR_LENGTH}i) * {tile.across}i"
            at = column if across == last + 1 else f"min({column}, {last}i)"
            text = f"select(vec4<f32>(), load_v({self.parts.key(key)}, {at}), {key} < end)"
            step = f"{line} % {VECTOR_LENGTH}i * {len(self.steps)}i + {column} / {tile.across}i"
            place = f"right[{line} / {VECTOR_LENGTH}i][{step}][{column} % {tile.across}i]"
            inside = "" if (t + 1) * tile.threads <= units else f"i32(lane) < {units - t * tile.threads}i"
            found.append(TileCopy(text, place, inside))
        return found

    def _fetch(self, out: Statements, copies: list[TileCopy]) -> None:
        for t, copy in enumerate(copies):
            out.put(f"next{t} = {copy.load};")

    def _write(self, out: Statements, copies: list[TileCopy]) -> None:
        for t, copy in enumerate(copies):
            write = f"{copy.place} = next{t};"
            out.put(f"if ({copy.inside}) {{ {write} }}" if copy.inside else write)

    # --- a block ---

    def _scores(self, out: Statements) -> None:
        for i in self.rows:
            for c in self.each:
                out.put(f"var s{i}_{c} = 0.0f;")
        with out.scope(f"for (var start = 0i; start < {self.vectors}i; start += {self.lines}i)") as part:
            self._write(part, self._operands("base", "start"))
            part.put("workgroupBarrier();")
            with part.scope(f"if (start + {self.lines}i < {self.vectors}i)") as more:
                self._fetch(more, self._operands("base", f"start + {self.lines}i"))
            with part.scope("else") as done:
                self._fetch(done, self._values(0, "0i"))
            with part.scope(f"for (var at = 0i; at < {self.lines}i; at++)") as step:
                step.put(f"let down = {self._spread('y', 'at', self.tile.down)};")
                step.put(f"let across = {self._spread('x', 'at', self.tile.across)};")
                for i in self.rows:
                    step.put(f"let query{i} = left[at][{i}i][down];")
                for c in self.each:
                    step.put(f"let key{c} = right[at][{c}i][across];")
                    for i in self.rows:
                        text = f"s{i}_{c}"
                        for p in VECTOR_COMPONENTS:
                            text = f"({text} + query{i}.{p} * key{c}.{p})"
                        step.put(f"s{i}_{c} = {text};")
            part.put("workgroupBarrier();")

    def _weights(self, out: Statements) -> None:
        tile = self.tile
        for c in self.each:
            out.put(f"let key{c} = base + x + {c * tile.across}i;")
            for i in self.rows:
                limit = f"limit{i}" if self.a.causal else "limit"
                mask = "0i" if self.a.mask is None else f"mask{i}"
                out.put(f"s{i}_{c} = score_of(s{i}_{c}, key{c}, {limit}, {mask});")
        for g in self.groups:
            out.put(f"tops[{g}i][x][y] = {self._folded(g, 'max')};")
            out.put(f"var most{g} = top{g};")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var other = 0i; other < {tile.across}i; other++)") as turn:
            for g in self.groups:
                turn.put(f"most{g} = max(most{g}, tops[{g}i][other][y]);")
        for i in self.rows:
            top, most = self._of("top", i), self._of("most", i)
            out.put(f"let factor{i} = weight_of({top} - {most});")
            for c in self.each:
                out.put(f"s{i}_{c} = weight_of(s{i}_{c} - {most});")
            for s in self.steps:
                out.put(f"sum{i}_{s} *= factor{i};")
        for g in self.groups:
            factors = ", ".join(f"factor{i}" for i in self._members(g))
            out.put(f"total{g} = total{g} * {self.kind}({factors}) + {self._folded(g, '+')};")
            out.put(f"top{g} = most{g};")

    def _members(self, g: int) -> range:
        return range(g * self.pack, (g + 1) * self.pack)

    def _of(self, name: str, i: int) -> str:
        """A row's part of the vectors with this name."""
        return f"{name}{i // self.pack}.{VECTOR_COMPONENTS[i % self.pack]}"

    def _folded(self, g: int, word: str) -> str:
        """The fold of each row over this invocation's keys."""
        found = []
        for i in self._members(g):
            text = f"s{i}_0"
            for c in self.each[1:]:
                text = f"max({text}, s{i}_{c})" if word == "max" else f"({text} + s{i}_{c})"
            found.append(text)
        return f"{self.kind}({', '.join(found)})"

    def _sums(self, out: Statements) -> None:
        """Add a block's values, times the weights: for each invocation's next four keys, `lines` invocations at a time."""
        tile, count = self.tile, self.tile.each // VECTOR_LENGTH
        for j in range(count):
            after = self._values(j + 1, "0i") if j + 1 < count else self._operands(f"base + {tile.block}i", "0i")
            with out.scope(f"for (var part = 0i; part < {tile.across}i; part += {self.lines}i)") as turn:
                with turn.scope(f"if (x >= part && x < part + {self.lines}i)") as own:
                    own.put(f"let down = {self._spread('y', '(x - part)', tile.down)};")
                    for i in self.rows:
                        four = ", ".join(f"s{i}_{j * VECTOR_LENGTH + c}" for c in range(VECTOR_LENGTH))
                        own.put(f"left[x - part][{i}i][down] = vec4<f32>({four});")
                self._write(turn, self._values(j, "part"))
                turn.put("workgroupBarrier();")
                with turn.scope(f"if (part + {self.lines}i < {tile.across}i)") as more:
                    self._fetch(more, self._values(j, f"part + {self.lines}i"))
                with turn.scope("else") as done:
                    self._fetch(done, after)
                with turn.scope(f"for (var at = 0i; at < {self.lines}i; at++)") as step:
                    step.put(f"let down = {self._spread('y', 'at', tile.down)};")
                    for i in self.rows:
                        step.put(f"let weight{i} = left[at][{i}i][down];")
                    for c, p in enumerate(VECTOR_COMPONENTS):
                        for s in self.steps:
                            step.put(f"let value{c}_{s} = right[at][{c * len(self.steps) + s}i][x];")
                            for i in self.rows:
                                step.put(f"sum{i}_{s} += weight{i}.{p} * value{c}_{s};")
                turn.put("workgroupBarrier();")

    def _store(self, out: Statements) -> None:
        tile = self.tile
        for g in self.groups:
            out.put(f"tops[{g}i][x][y] = total{g};")
            out.put(f"var whole{g} = {self.kind}();")
        out.put("workgroupBarrier();")
        with out.scope(f"for (var other = 0i; other < {tile.across}i; other++)") as turn:
            for g in self.groups:
                turn.put(f"whole{g} += tops[{g}i][other][y];")
        for i in self.rows:
            with out.scope(f"if (row{i} < {self.shader.dim(self.a.rows)})") as row:
                for s in self.steps:
                    told = self._of("top", i), self._of("whole", i)
                    self.parts.put_row(
                        row, f"row{i}", f"(x + {s * tile.across}i)", f"sum{i}_{s}", told, "x == 0i" * (s == 0)
                    )
