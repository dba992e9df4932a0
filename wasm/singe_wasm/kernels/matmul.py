"""The Routine "matmul": packed panels, a tiled product, a fused prologue and epilogue.

B is packed when the code is printed where its contents are known, else into scratch before the product. A is read in
place where it is a plain load; any other expression is evaluated into a panel of a few rows. `plan` says whether the
template takes a kernel; what it does not take is printed as the loop nest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from singe.extension import (
    Dim,
    Expr,
    Kernel,
    Reduce,
    Store,
    affine,
    ceildiv,
    collapse,
    float32,
    matmul_operands,
    scalar,
)

from ..encode import OPS, Function, get_local, i32, memory
from .gemm import Product, Rows, Tile, choose_tile, turns
from .lower import Lowering
from .nest import lane_cost
from .panels import Packer, RowsInPlace, in_place, panels
from .share import begin, choose, first_alone, loop
from .writer import Node, Writer


@dataclass(frozen=True)
class Plan:
    """A matmul as the template sees it: batch loops, then m, n and k."""

    kernel: Kernel
    a: Expr
    b: Expr
    m: Expr
    n: Expr
    k: Expr
    extents: tuple[Dim, Dim, Dim]
    packed: bool  # B's port holds packed panels
    spare: int = 0  # bytes at the end of scratch for another template's use

    @property
    def batch(self) -> tuple[tuple[Expr, Dim], ...]:
        return tuple(zip(self.kernel.grid_vars[:-2], self.kernel.grid[:-2], strict=True))

    @property
    def store(self) -> Store:
        last = self.kernel.stages[-1]
        assert isinstance(last, Store)
        return last

    def columns(self) -> int:
        return choose_tile(self.extents[0], self.extents[1], True).columns


def plan(kernel: Kernel, constants: Collection[int]) -> Plan | None:
    """How the template does this kernel; None where it does not."""
    if len(kernel.stages) != 2 or not isinstance(kernel.stages[1], Store) or kernel.stages[1].inner:
        return None
    for form in (collapse(kernel, keep=1, least=2), kernel):
        made = _planned(form, constants)
        if made is not None:
            return made
    return None


def _planned(kernel: Kernel, constants: Collection[int]) -> Plan | None:
    operands = matmul_operands(kernel)
    first = kernel.stages[0]
    if (
        operands is None
        or kernel.grid[-1] == 1
        or not isinstance(first, Reduce)
        or first.word != "add"
        or first.value.dtype is not float32
    ):
        return None
    a, b = operands
    extents = (kernel.grid[-2], kernel.grid[-1], kernel.inner[0])
    m, n = kernel.grid_vars[-2:]
    made = Plan(kernel, a, b, m, n, kernel.inner_vars[0], extents, False)
    made = replace(made, packed=_can_pack(made, constants))
    if not made.packed and isinstance(extents[0], int) and extents[0] < 4:
        return None  # packing B would cost as much as the product
    return made


def _strides(e: Expr, *variables: Expr) -> tuple[tuple[int, ...], int] | None:
    """The steps of a plain float32 load along variables and its constant part, if there is nothing else and all is known."""
    if e.word != "load":
        return None
    terms, constant = affine.linear(e.args[0])
    steps = tuple(terms.get(v, 0) for v in variables)
    if (
        not isinstance(constant, int)
        or not all(isinstance(s, int) for s in steps)
        or not terms.keys() <= set(variables)
    ):
        return None
    return steps, constant  # pyright: ignore[reportReturnType]


def _can_pack(p: Plan, constants: Collection[int]) -> bool:
    b = p.b
    if b.word != "load" or b.value not in constants or p.kernel.ports[b.value].dtype is not float32:
        return False
    uses = [e for e in scalar.postorder(p.kernel.roots) if e.word == "load" and e.value == b.value]
    return uses == [b] and all(isinstance(d, int) for d in p.extents[1:]) and _strides(b, p.k, p.n) is not None


def pack(p: Plan, contents: np.ndarray) -> np.ndarray:
    """B's panels."""
    return panels(matrix(p, contents), p.columns())


def matrix(p: Plan, contents: np.ndarray) -> np.ndarray:
    """B as [k][n]."""
    steps = _strides(p.b, p.k, p.n)
    _, n, k = p.extents
    assert steps is not None
    assert isinstance(n, int)
    assert isinstance(k, int)
    (down, right), start = steps
    flat = np.ascontiguousarray(contents, np.float32).reshape(-1)
    return np.lib.stride_tricks.as_strided(flat[start:], (k, n), (4 * down, 4 * right), writeable=False)


# --- scratch ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Areas:
    """Where things lie in scratch, in bytes: the spilled tile at 0, A's panel, B's panels, the end."""

    a: Dim
    b: Dim
    end: Dim


def areas(p: Plan) -> Areas:
    """The same at both levels: for the higher of their tiles."""
    m, n, k = p.extents
    rows = max(choose_tile(m, n, level).rows for level in (False, True))
    spill = 4 * rows * p.columns() if not _wide(p) or not isinstance(n, int) or n % 4 else 0
    a = 0 if _in_place(p) else 4 * rows * k
    b = 0 if p.packed else ceildiv(n, p.columns()) * k * (4 * p.columns())
    return Areas(spill, spill + a, spill + a + b + p.spare)


def _wide(p: Plan) -> bool:
    return lane_cost(p.kernel, [p.store], p.n) is not None


def _in_place(p: Plan) -> bool:
    return in_place(p.kernel, p.a, p.m, p.k)


# --- the function ----------------------------------------------------------------------------------------------------


def print_matmul(p: Plan, sizes: Sequence[Dim], relaxed: bool) -> Function:
    """The function of a planned matmul."""
    return Template(p, sizes, relaxed).function()


class Template:
    """A matmul's function while it is written."""

    def __init__(self, p: Plan, sizes: Sequence[Dim], relaxed: bool) -> None:
        self.plan: Final = p
        self.areas: Final = areas(p)
        scratch = self.areas.end != 0
        self.body: Final = begin(p.kernel, scratch, sizes)
        self.writer: Final = Writer(self.body)
        self.tile: Final[Tile] = choose_tile(p.extents[0], p.extents[1], relaxed)
        self.low, self.edge, self.along_k = (
            Lowering(p.kernel.ports, sizes, scratch, lane) for lane in (p.n, None, p.k)
        )
        self.all = (self.low, self.edge, self.along_k)

    def function(self) -> Function:
        p = self.plan
        outside = p.batch
        packer = Packer(
            self.writer, self.low, self.edge, p.kernel, p.b, (p.k, p.n), (p.extents[2], p.extents[1]), self.tile.columns
        )
        once = not p.packed and not any(v in self.low.leaves(p.b) for v, _ in outside)
        depth = len(outside)
        shared = choose([*(d for _, d in outside), *turns(p.extents, self.tile, _in_place(p))])
        with ExitStack() as stack:
            stack.enter_context(first_alone(self.body, self.low, shared is None))
            if once:
                packer.write(self.low.scratch(self.areas.b), 0)
            for level, (variable, extent) in enumerate(outside, 1):
                local = self.body.local("i32")
                for low in self.all:
                    low.variable(variable, local, level)
                stack.enter_context(loop(self.writer, self.low, local, extent, shared == level - 1))
            if not p.packed and not once:
                packer.write(self.low.scratch(self.areas.b), depth)
            spill = self.low.scratch(0) if self.areas.a else None
            product = Product(
                self.writer, self.low, self.edge, p.kernel, (p.m, p.n), p.extents, self.tile, depth, spill
            )
            rows = self.rows(product, depth)
            b = self.low.pointer(p.b.value) if p.packed else self.low.scratch(self.areas.b)
            product.write(rows, b, None if shared is None or shared < depth else shared - depth)
        return self.body.finish()

    def rows(self, product: Product, depth: int) -> Rows:
        """Where A's rows come from, `depth` loops being open."""
        p = self.plan
        self.along_k.variable(p.m, product.edge_locals[0], depth + 2)
        if _in_place(p):
            return RowsInPlace(self.low, p.a, p.m, p.k)
        return _Panel(self, product.m_local, product.edge_locals[0], depth + 1)


class _Panel(Rows):
    """A few rows of A, evaluated into scratch row by row, four k at a time where the expression allows it."""

    in_place = False
    step = 4

    def __init__(self, job: Template, first: int, row: int, level: int) -> None:
        self._job = job
        self._first = first
        self._row = row
        self._level = level
        self._k = job.body.local("i32")
        job.along_k.variable(job.plan.k, self._k, level + 2)

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        k = self._job.plan.extents[2]
        low, start = self._job.low, self._job.areas.a
        if isinstance(k, int):
            return [(low.scratch(start), 4 * k * i) for i in range(rows)]
        return [(low.scratch(start + k * (4 * i)), 0) for i in range(rows)]

    def prepare(self, rows: int) -> None:
        job, p = self._job, self._job.plan
        body, writer = job.body, job.writer
        wide = p.k.word == "var" and lane_cost(p.kernel, [Reduce("a", "add", p.a)], p.k) is not None
        at, stop = body.local("i32"), body.local("i32")
        writer.push(job.low.scratch(job.areas.a))
        body.set(at)
        body.get(self._first)
        body.set(self._row)
        body.get(self._row)
        body.add(i32(rows) + OPS["i32.add"])
        body.set(stop)
        value = job.along_k.scalar(p.a)
        values = job.along_k.vector(p.a) if wide else value
        count = job.low.dim_code(p.extents[2])
        with writer.loop(self._row, get_local(stop), 1, True, [value, values], self._level + 1):
            body.add(i32(0))
            body.set(self._k)
            for node, store, limit, step in (
                (values, "v128.store", count + i32(-4) + OPS["i32.and"], 4),
                (value, "f32.store", count, 1),
            ):
                if step == 4 and not wide:
                    continue
                with writer.loop(self._k, limit, step):
                    body.get(at)
                    writer.push(node)
                    body.add(memory(store))
                    body.increase(at, 4 * step)
        body.free(at, stop)
