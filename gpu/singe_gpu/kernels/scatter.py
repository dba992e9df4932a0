"""Elements and slices folded into those at indices: `scatter_elements_reduce` and `scatter_nd_reduce`.

The result is seen as (outer, rows, inner), whose rows the indices name: for slices with one list of indices, for elements
with a list for each outer and inner. A workgroup owns a block of the rows of a list: it copies them from x, then goes
through the list, an index for each invocation at a time. Those that name its rows are marked in a mask, in whose order
their slices are folded: each invocation owns columns, and every n-th of the rows if these are short. So no two invocations
write the same element, and sums have the same bits as NumPy's.

Every index is read once by each of the workgroups of its list, WORKGROUPS_TO_FILL at most if the lists are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
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

from ..code.shader import Shader, Text
from ..code.statements import Statements
from ..code.variants import variants
from ..dialect import Dialect
from .nest import MAX_OPEN_WORKGROUPS

OPS: Final = frozenset(("scatter_elements_reduce", "scatter_nd_reduce"))
WORKGROUPS_TO_FILL: Final = 256
"""With this many workgroups, a device is busy."""
WORKGROUP_INVOCATIONS: Final = {True: 256, False: 64}
"""Whether lists are few ↦ the invocations of a workgroup, and the indices that are read at a time."""
MAX_FEW_LISTS: Final = 64
"""This many lists are few."""
ASSUMED_SLICE_WIDTH: Final = 64
"""The value assumed for an open width of slices."""
BITS_PER_MASK_WORD: Final = 32
"""Bits of a word of a mask."""
MASKS_IN_TURN: Final = 3
"""Masks in turn, so that one barrier is enough: while one is read, the next may be written, and the one after is cleared."""
_WRAP: Final = """fn row_of(index: i32, rows: i32) -> i32 {
  return clamp(select(index, index + rows, index < 0i), 0i, rows - 1i);
}"""
_LONG: Final = """fn near(index: vec2<u32>) -> i32 {
  let low = bitcast<i32>(index.x);
  let high = bitcast<i32>(index.y);
  return select(select(0x7fffffffi, -0x7fffffffi, high < 0i), low, high == low >> 31u);
}"""
"""The nearest i32 of an int64."""


def print_scatter(
    dialect: Dialect, op: str, attrs: Mapping[str, Any], inputs: Sequence[tuple[Shape, DType]]
) -> Printed:
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

    return variants(dialect, ports, write)


class _Scatter:
    """A shader while it is written."""

    def __init__(
        self, shader: Shader, shape: Shape, part: Shape, places: Shape, view: tuple[Dim, Dim, Dim], word: str
    ) -> None:
        self.shader, self.shape, self.part, self.places, self.word = shader, shape, part, places, word
        self.outer, self.rows, self.inner = view

    def text(self, axis: int | None) -> Text:
        dim, out = self.shader.dim, Statements(self.shader)
        lists, width = (1, self.inner) if axis is None else (self.outer * self.inner, 1)
        threads = WORKGROUP_INVOCATIONS[isinstance(lists, int) and lists <= MAX_FEW_LISTS]
        across = min(1 << max(width - 1, 0).bit_length() if isinstance(width, int) else ASSUMED_SLICE_WIDTH, threads)
        blocks = dim_min(self.rows, ceildiv(WORKGROUPS_TO_FILL, dim_max(lists, 1)))
        block = ceildiv(self.rows, dim_max(blocks, 1))
        self.shader.shared("rows", f"array<i32, {threads}>", MASKS_IN_TURN)
        self.shader.shared("marks", f"array<atomic<u32>, {threads // BITS_PER_MASK_WORD}>", MASKS_IN_TURN)
        out.put(f"let share = i32(lane) / {across}i;")
        with out.scope(f"for (var item = i32(group.x); item < {dim(lists * blocks)}; item += i32(groups.x))") as turn:
            turn.let("list", f"item / {self._by(blocks)}")
            turn.let("begin", f"item % {self._by(blocks)} * {dim(block)}")
            turn.let("end", f"min(begin + {dim(block)}, {dim(self.rows)})")
            inner = self._by(self.inner)
            turn.let(
                "first", "0i" if axis is None else f"list / {inner} * {dim(self.rows * self.inner)} + list % {inner}"
            )
            header = f"for (var row = begin + share; row < end; row += {threads // across}i)"
            with turn.scope(header) as rows, self._columns(rows, across, width) as copy:
                copy.put(self.shader.store(3, "to", self.shader.load(0, "to")))
            if axis is None:
                self._walk(
                    turn, threads, across, width, product(self.places[:-1]), self._place, "turn", dim(self.inner)
                )
            else:
                with self._part_of(turn, axis) as inside:
                    step = dim(product(self.part[axis + 1 :]))
                    at = f"origin + turn * {step}"
                    row = partial(self._row, at, self.rows)
                    self._walk(inside, threads, across, width, self.part[axis], row, at, "1i")
        return self.shader.text(out.lines, threads, dim_min(lists * blocks, MAX_OPEN_WORKGROUPS))

    def _by(self, divisor: Dim) -> str:
        """A divisor. Languages reject the constant zero even where nothing runs."""
        return self.shader.dim(1 if divisor == 0 else divisor)

    @contextmanager
    def _columns(self, out: Statements, across: int, width: Dim) -> Iterator[Statements]:
        """Go through the columns of `row` that the invocation owns; `to` is the place in the result."""
        header = f"for (var column = i32(lane) % {across}i; column < {self.shader.dim(width)}; column += {across}i)"
        with out.scope(header) as turn:
            turn.let("to", f"first + row * {self.shader.dim(self.inner)} + column")
            yield turn

    @contextmanager
    def _part_of(self, out: Statements, axis: int) -> Iterator[Statements]:
        """Where the part has this list; `origin` is its first element."""
        dim = self.shader.dim
        others = [k for k in range(len(self.shape)) if k != axis]
        at, inside, rest = "0i", "true", "list"
        for k in reversed(others):
            own = out.let(f"c{k}", f"{rest} % {self._by(self.shape[k])}" if k != others[0] else rest)
            rest = out.let(f"rest{k}", f"{rest} / {self._by(self.shape[k])}") if k != others[0] else rest
            at += f" + {own} * {dim(product(self.part[k + 1 :]))}"
            if self.part[k] != self.shape[k]:
                inside += f" && {own} < {dim(self.part[k])}"
        out.let("origin", at)
        with out.scope(f"if ({inside})") as found:
            yield found

    def _walk(
        self, out: Statements, threads: int, across: int, width: Dim, count: Dim, row: Callable[[], str], at: str, step: str
    ) -> None:  # fmt: skip
        """Go through a list of indices. row: the text of the row that index `turn` names; at: that of the place of its
        slice in the part, in steps of `step`."""
        shares, words = threads // across, threads // BITS_PER_MASK_WORD
        with out.scope(f"if (lane < {words}u)") as clear:
            for k in range(MASKS_IN_TURN):
                clear.put(f"atomicStore(&marks[{k}][lane], 0u);")
        out.put("workgroupBarrier();")
        out.put("var mask = 0u;")
        with out.scope(f"for (var base = 0i; base < {self.shader.dim(count)}; base += {threads}i)") as chunk:
            with chunk.scope(f"if (base + i32(lane) < {self.shader.dim(count)})") as some:
                some.let("turn", "base + i32(lane)")
                some.let("row", row())
                with some.scope("if (row >= begin && row < end)") as own:
                    own.put("rows[mask][lane] = row;")
                    own.put(
                        f"atomicOr(&marks[mask][lane / {BITS_PER_MASK_WORD}u], 1u << (lane % {BITS_PER_MASK_WORD}u));"
                    )
            chunk.put("workgroupBarrier();")
            chunk.put(
                f"if (lane < {words}u) {{ atomicStore(&marks[(mask + {MASKS_IN_TURN - 1}u) % {MASKS_IN_TURN}u][lane], 0u); }}"
            )
            with (
                chunk.scope(f"for (var word = 0u; word < {words}u; word++)") as word,
                word.scope("for (var left = atomicLoad(&marks[mask][word]); left != 0u; left &= left - 1u)") as found,
            ):
                found.let("mark", f"word * {BITS_PER_MASK_WORD}u + firstTrailingBit(left)")
                found.let("turn", "base + i32(mark)")
                found.let("row", "rows[mask][mark]")
                if shares > 1:
                    found.put(f"if ((row - begin) % {shares}i != share) {{ continue; }}")
                with self._columns(found, across, width) as own:
                    own.let("source", f"({at}) * {step} + column")
                    own.let("total", self.shader.load(3, "to"))
                    own.let("value", self.shader.load(1, "source"))
                    folded = self.shader.dialect.fold(self.word, self.shader.ports[3].dtype.compute, "total", "value")
                    own.put(self.shader.store(3, "to", folded))
            chunk.put(f"mask = (mask + 1u) % {MASKS_IN_TURN}u;")
        out.put("workgroupBarrier();")

    def _place(self) -> str:
        """The row that the list's index `turn` names, of several numbers."""
        rank = self.places[-1]
        assert isinstance(rank, int)
        rows = (
            f"{self._row(f'turn * {rank}i + {k}i', self.shape[k])} * {self.shader.dim(product(self.shape[k + 1 : rank]))}"
            for k in range(rank)
        )
        return " + ".join(rows) or "0i"

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
