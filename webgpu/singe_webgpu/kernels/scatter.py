"""Elements and slices folded into those at indices: `scatter_elements_reduce` and `scatter_nd_reduce`.

The result is seen as (outer, rows, inner): the indices name rows. An invocation owns one column of the result, or a block
of one: it copies these elements from x, then walks all of the indices in order and folds the elements of the part that go
to its own rows. So no two invocations write the same element, and sums have the same bits as NumPy's.

Every index is read once for each block. There are as many blocks as give BUSY invocations, so this costs at most
max(BUSY, columns) · indices reads, most of which are shared by neighbouring invocations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from singe.extension import (
    Dim,
    DType,
    Port,
    Printed,
    Shape,
    ceildiv,
    dim_max,
    dim_min,
    int64,
    product,
    uint32,
    uint64,
)

from ..shader import Shader, Text
from ..variants import variants
from ..wgsl import Statements, fold_text
from .nest import MANY

OPS: Final = frozenset(("scatter_elements_reduce", "scatter_nd_reduce"))
BUSY: Final = 1 << 14
"""With this many invocations, a device is busy."""
THREADS: Final = 64
_WRAP: Final = """fn row_of(index: i32, rows: i32) -> i32 {
  return clamp(select(index, index + rows, index < 0i), 0i, rows - 1i);
}"""
_LONG: Final = """fn near(index: vec2<u32>) -> i32 {
  let low = bitcast<i32>(index.x);
  let high = bitcast<i32>(index.y);
  return select(select(0x7fffffffi, -0x7fffffffi, high < 0i), low, high == low >> 31u);
}"""
"""The nearest i32 of an int64."""


def print_scatter(op: str, attrs: Mapping[str, Any], inputs: Sequence[tuple[Shape, DType]]) -> Printed:
    """The function, with the ports x, part, indices and the result."""
    (shape, dtype), (part, _), (places, index) = inputs
    ports = (Port(dtype), Port(dtype), Port(index), Port(dtype, True))
    if op == "scatter_elements_reduce":
        axis = attrs["axis"] % len(shape)
        view = product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
    else:
        axis = None
        rank = places[-1]
        assert isinstance(rank, int)
        view = 1, product(shape[:rank]), product(shape[rank:])

    def write(shader: Shader) -> Text:
        return _Scatter(shader, shape, part, places, view, attrs["reduction"]).text(axis)

    return variants(ports, write)


class _Scatter:
    """A shader while it is written."""

    def __init__(
        self, shader: Shader, shape: Shape, part: Shape, places: Shape, view: tuple[Dim, Dim, Dim], word: str
    ) -> None:
        self.shader, self.shape, self.part, self.places, self.word = shader, shape, part, places, word
        self.outer, self.rows, self.inner = view

    def text(self, axis: int | None) -> Text:
        dim, out = self.shader.dim, Statements(self.shader)
        columns = self.outer * self.inner
        blocks = dim_min(self.rows, ceildiv(BUSY, dim_max(columns, 1)))
        block = ceildiv(self.rows, dim_max(blocks, 1))
        first, all_ = f"i32(group.x * {THREADS}u + lane)", f"i32(groups.x) * {THREADS}i"
        with out.scope(f"for (var point = {first}; point < {dim(columns * blocks)}; point += {all_})") as turn:
            turn.let("column", f"point % {self._by(columns)}")
            turn.let("begin", f"point / {self._by(columns)} * {dim(block)}")
            turn.let("end", f"min(begin + {dim(block)}, {dim(self.rows)})")
            turn.let(
                "first",
                f"column / {self._by(self.inner)} * {dim(self.rows * self.inner)} + column % {self._by(self.inner)}",
            )
            with turn.scope("for (var row = begin; row < end; row++)") as copy:
                copy.let("to", f"first + row * {dim(self.inner)}")
                copy.put(self.shader.store(3, "to", self.shader.load(0, "to")))
            if axis is None:
                self._slices(turn)
            else:
                self._elements(turn, axis)
        return self.shader.text(out.lines, THREADS, dim_min(ceildiv(columns * blocks, THREADS), MANY))

    def _by(self, divisor: Dim) -> str:
        """A divisor. WGSL rejects the constant zero even where nothing runs."""
        return self.shader.dim(1 if divisor == 0 else divisor)

    def _elements(self, out: Statements, axis: int) -> None:
        """Walk the indices of this column, if the part has it."""
        dim = self.shader.dim
        others = [k for k in range(len(self.shape)) if k != axis]
        at, inside, rest = "0i", "true", "column"
        for k in reversed(others):
            own = out.let(f"c{k}", f"{rest} % {self._by(self.shape[k])}" if k != others[0] else rest)
            rest = out.let(f"rest{k}", f"{rest} / {self._by(self.shape[k])}") if k != others[0] else rest
            at += f" + {own} * {dim(product(self.part[k + 1 :]))}"
            if self.part[k] != self.shape[k]:
                inside += f" && {own} < {dim(self.part[k])}"
        out.let("origin", at)
        with out.scope(f"if ({inside})") as column:
            count, step = dim(self.part[axis]), dim(product(self.part[axis + 1 :]))
            with column.scope(f"for (var turn = 0i; turn < {count}; turn++)") as turn:
                turn.let("source", f"origin + turn * {step}")
                self._fold(turn, self._row("source", self.rows))

    def _slices(self, out: Statements) -> None:
        """Walk all indices."""
        dim, rank = self.shader.dim, self.places[-1]
        assert isinstance(rank, int)
        with out.scope(f"for (var turn = 0i; turn < {dim(product(self.places[:-1]))}; turn++)") as turn:
            turn.let("source", f"turn * {dim(self.inner)} + column")
            rows = (
                f"{self._row(f'turn * {rank}i + {k}i', self.shape[k])} * {dim(product(self.shape[k + 1 : rank]))}"
                for k in range(rank)
            )
            self._fold(turn, " + ".join(rows))

    def _row(self, at: str, rows: Dim) -> str:
        """The index at this position: negative ones count from the end, others are clipped."""
        index, kind = self.shader.load(2, at), self.shader.ports[2].dtype.compute
        wanted = [_WRAP]
        if kind in (int64, uint64):
            index, wanted = f"near({index})", [_LONG, _WRAP]
        elif kind is uint32:
            index = f"i32(min({index}, 0x7fffffffu))"
        self.shader.functions += [f for f in wanted if f not in self.shader.functions]
        return f"row_of({index}, {self.shader.dim(rows)})"

    def _fold(self, out: Statements, row: str) -> None:
        """Fold the element `source` of the part into the one of this column in a row, if the invocation owns it."""
        out.let("row", row)
        with out.scope("if (row >= begin && row < end)") as own:
            own.let("to", f"first + row * {self.shader.dim(self.inner)}")
            own.let("total", self.shader.load(3, "to"))
            own.let("value", self.shader.load(1, "source"))
            folded = fold_text(self.word, self.shader.ports[3].dtype.compute, "total", "value")
            own.put(self.shader.store(3, "to", folded))
