"""B as panels and A's rows in place: what matmul and convolution hand to the product.

A panel holds `columns` columns of B for every k, [panel][k][columns]; the last panel is filled up with zeros.
"""

from __future__ import annotations

import numpy as np

from singe.extension import Dim, Expr, Kernel, Reduce, affine, float32, scalar

from ..encode import OPS, get_local, i32, memory, ops
from .gemm import Rows
from .lower import Lowering
from .nest import lane_cost
from .writer import Node, Writer


def panels(matrix: np.ndarray, columns: int) -> np.ndarray:
    """A [k][n] matrix as [panel][k][columns], filled up with zeros."""
    k, n = matrix.shape
    count = -(-n // columns)
    padded = np.zeros((k, count * columns), np.float32)
    padded[:, :n] = matrix
    return np.ascontiguousarray(padded.reshape(k, count, columns).transpose(1, 0, 2))


def in_place(kernel: Kernel, a: Expr, m: Expr, k: Expr) -> bool:
    """Whether A can be read where it lies: a float32 load whose index is linear in m and k, k in fixed steps."""
    if a.word != "load" or kernel.ports[a.value].dtype is not float32:
        return False
    terms, _ = affine.linear(a.args[0])
    simple = all(t in (m, k) or not {m, k} & set(scalar.postorder([t])) for t in terms)
    step = terms.get(k, 0)
    return simple and isinstance(step, int) and 0 <= step < 1 << 20


class RowsInPlace(Rows):
    """Rows of a load for which `in_place` holds."""

    in_place = True

    def __init__(self, low: Lowering, a: Expr, m: Expr, k: Expr) -> None:
        self._low = low
        self._port = a.value
        self._m = m
        self._index = scalar.substitute(a.args[0], {k: scalar.const(0, k.dtype)} if k.word == "var" else {})
        step = affine.linear(a.args[0])[0].get(k, 0)
        assert isinstance(step, int)
        self.step = 4 * step

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        return [self._low.address(self._port, self._index, ((self._m, i),) if i else ()) for i in range(rows)]


class Packer:
    """Writes the code that packs B at run time."""

    def __init__(
        self, writer: Writer, low: Lowering, edge: Lowering, kernel: Kernel, b: Expr,
        coordinates: tuple[Expr, Expr], extents: tuple[Dim, Dim], columns: int,
    ) -> None:  # fmt: skip
        """low: lanes along n. edge: the same ports, scalar. coordinates, extents: of k and n."""
        self.writer = writer
        self.low = low
        self.edge = edge
        self.b = b
        self.row, self.column = coordinates
        self.k, self.n = low.dim_code(extents[0]), low.dim_code(extents[1])
        self.columns = columns
        self.wide = lane_cost(kernel, [Reduce("b", "add", b)], self.column) is not None

    def write(self, panels: Node, level: int) -> None:
        """All panels from that address on; `level` loops are open."""
        body, width = self.writer.body, self.columns
        at, n, k, column = (body.local("i32") for _ in range(4))
        self.low.variable(self.row, k, level + 2)
        self.edge.variable(self.row, k, level + 2)
        self.low.variable(self.column, n, level + 1)
        self.edge.variable(self.column, column, level + 3)
        self.writer.push(panels)
        body.set(at)
        body.add(i32(0))
        body.set(n)
        vectors = (
            [self.low.vector(self.b, ((self.column, 4 * j),) if j else ()) for j in range(width // 4)]
            if self.wide
            else []
        )
        with self.writer.loop(n, self.n, width):
            body.add(i32(0))
            body.set(k)
            if self.wide:
                body.get(n)
                body.add(self.n + i32(width) + ops("i32.sub i32.le_s"))
                with body.when():
                    with self.writer.scope(), self.writer.loop(k, self.k):
                        for j, node in enumerate(vectors):
                            body.get(at)
                            self.writer.push(node)
                            body.add(memory("v128.store", 16 * j))
                        body.increase(at, 4 * width)
                    body.otherwise()
                    self._edge(at, n, k, column)
            else:
                self._edge(at, n, k, column)
        body.free(at, n, k, column)
        self.low.forget()
        self.edge.forget()

    def _edge(self, at: int, n: int, k: int, column: int) -> None:
        """One panel, an element at a time, zeros beyond n."""
        body, writer = self.writer.body, self.writer
        stop = body.local("i32")
        body.get(n)
        body.add(i32(self.columns) + OPS["i32.add"])
        body.set(stop)
        with writer.loop(k, self.k):
            body.get(n)
            body.set(column)
            with writer.loop(column, get_local(stop), 1, True):
                body.get(at)
                body.add(i32(0) + memory("i32.store"))
                body.get(column)
                body.add(self.n + OPS["i32.lt_s"])
                with body.when(), writer.scope():
                    body.get(at)
                    writer.push(self.edge.scalar(self.b))
                    body.add(memory("f32.store"))
                body.increase(at, 4)
        body.free(stop)
