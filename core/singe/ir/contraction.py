"""The matmul and conv Routines in one form: out[batch, m, n] = epilogue(Σ over k of a[batch, m, k] · b[batch, k, n]).

A convolution is a product: its rows are the positions of the output, its columns the output channels of one group, its
depth the window times the input channels of one group, and its batch the groups. With `images`, the batch is the groups
times the images, and the rows are the positions of one image. Operands and epilogue are the kernel's own expressions,
rewritten over the new loops, so padding, prologues and epilogues need no extra work.

If the kernel also pools its output, each window of positions becomes `window` neighbouring rows, which the store folds
into one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Final

from ..dtypes import float32, int32
from ..late_dataclass import dataclass
from ..shapes import Dim, Shape, product
from . import affine, scalar
from .kernel import Kernel, Reduce, Routine, Store, collapse, loop_vars, matmul_operands
from .scalar import Expr

_ANY: Final = 2
"""Any extent above 1. Given one coordinate with such an extent, `flatten` only joins splits."""


@dataclass(frozen=True)
class Contraction:
    """See the module's docstring. `a`, `b` and `store` use the variables batch_vars, m, n and k."""

    kernel: Kernel
    batch: Shape
    rows: Dim
    columns: Dim
    depth: Dim
    a: Expr
    b: Expr
    store: Store
    a_deep: bool  # whether elements of a that are adjacent in k are adjacent in memory
    b_deep: bool
    window: int = 1  # how many neighbouring rows are folded into one; the variable m of the store counts folded rows

    @cached_property
    def batch_vars(self) -> tuple[Expr, ...]:
        return tuple(scalar.var(f"t{i}", int32, d) for i, d in enumerate(self.batch))

    @cached_property
    def m(self) -> Expr:
        return scalar.var("m", int32, self.rows)

    @cached_property
    def n(self) -> Expr:
        return scalar.var("n", int32, self.columns)

    @cached_property
    def k(self) -> Expr:
        return scalar.var("k", int32, self.depth)

    @cached_property
    def places(self) -> Dim:
        """How many rows are stored, after folding."""
        return product(self.kernel.grid[:-1]) if self.window > 1 else self.rows

    @cached_property
    def place(self) -> Expr:
        """The variable m of the store."""
        return scalar.var("m", int32, self.places)

    @cached_property
    def accumulators(self) -> tuple[Expr, ...]:
        """One accumulator for each of the rows that the store folds."""
        return tuple(s.accumulator for s in self.kernel.stages if isinstance(s, Reduce))


def contraction(routine: Routine, images: bool = False) -> Contraction | None:
    """The Routine as a product; None if it does not have this form."""
    *sums, store = routine.kernel.stages
    if len(sums) != prod(routine.facts.get("windows", ())) or not isinstance(store, Store) or store.inner:
        return None
    first = sums[0]
    if not isinstance(first, Reduce) or first.word != "add":
        return None
    if first.value.word != "mul" or first.value.dtype not in (float32, int32):
        return None
    if routine.kind in ("matmul", "matmul_blocks", "matmul_integers"):
        return _matmul(routine.kernel)
    return _conv(routine, images) if routine.kind in ("conv", "conv_integers") else None


def _walks(e: Expr, inner: tuple[Expr, ...]) -> bool:
    """Whether the operand reads contiguous elements along the last inner loop that has more than one turn: along all of it, or along
    pieces of it, as those of attention's heads."""
    last = next((v for v in reversed(inner) if v.word == "var"), None)
    steps = [affine.linear(x.args[0])[0].items() for x in scalar.postorder([e]) if x.word == "load"]
    return any(n == 1 and (v is last or (v.word == "rem" and v.args[0] is last)) for terms in steps for v, n in terms)


def _matmul(kernel: Kernel) -> Contraction | None:
    if matmul_operands(kernel) is None:
        return None
    # If b is the same for the whole batch, the batch only adds rows: collapse merges it into them.
    if len(kernel.grid) > 2 and 1 not in kernel.grid[-2:]:
        kernel = _widest(kernel)
    operands = matmul_operands(kernel)
    if operands is None:
        return None
    *batch, rows, columns = list(kernel.grid)
    *_, m, n = list(kernel.grid_vars)
    shell = _shell(kernel, tuple(batch), rows, columns, operands)
    swap = {m: shell.m, n: shell.n, kernel.inner_vars[0]: shell.k}
    swap |= dict(zip(kernel.grid_vars[:-2], shell.batch_vars, strict=True))
    return _over(shell, swap, swap)


def _widest(kernel: Kernel) -> Kernel:
    """The kernel with its batch loops merged: into the rows if possible, otherwise with each other."""
    merged = collapse(kernel, keep=1)
    if len(merged.grid) == 2 and matmul_operands(merged) is not None:
        return merged
    return collapse(kernel, keep=2)


def _conv(routine: Routine, images: bool) -> Contraction | None:
    kernel, group, windows = routine.kernel, routine.facts["group"], routine.facts.get("windows", ())[:-1]
    outputs = kernel.grid[-1]
    if not isinstance(outputs, int):
        return None
    columns = outputs // group
    if group == 1 and not windows and not images:
        collapsed = collapse(kernel, keep=1)
        if len(collapsed.grid) == 2:
            kernel = collapsed  # a 1 × 1 filter: the merged positions are the rows
    first = kernel.stages[0]
    assert isinstance(first, Reduce)
    *positions, o = kernel.grid_vars
    extents = kernel.grid[:-1]
    operands = _operands(routine.facts["value"] if windows else first.value, positions)
    outer = (group, extents[0]) if images else (group,)
    rows = extents[1:] if images else extents
    shell = _shell(kernel, outer, product((*rows, *windows)), columns, operands)
    shell = replace(shell, window=prod(windows))
    fixed = {o: shell.batch_vars[0] * columns + shell.n}
    if images:
        fixed[positions.pop(0)] = shell.batch_vars[1]
    stored = fixed | _unflattened(shell.place, positions, rows)
    swap = fixed | _unflattened(shell.k, kernel.inner_vars, kernel.inner)
    swap |= _unflattened(shell.m, (*positions, *loop_vars("p", windows)), (*rows, *windows))
    return _over(shell, swap, stored)


def _operands(value: Expr, positions: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The operands of a convolution: first the input, which depends on the positions, then the weights."""
    left, right = value.args
    moving = {v for v in positions if v.word == "var"}
    return (right, left) if moving & set(scalar.postorder([right])) else (left, right)


def _unflattened(flat: Expr, names: Sequence[Expr], extents: Shape) -> dict[Expr, Expr]:
    coordinates = affine.unflatten(flat, extents)
    return {v: c for v, c in zip(names, coordinates, strict=True) if v.word == "var"}


def _shell(kernel: Kernel, batch: Shape, rows: Dim, columns: Dim, operands: tuple[Expr, Expr]) -> Contraction:
    """The contraction, its expressions still over the kernel's loops."""
    last = kernel.stages[-1]
    assert isinstance(last, Store)
    a, b = operands
    return Contraction(
        kernel,
        batch,
        rows,
        columns,
        product(kernel.inner),
        a,
        b,
        last,
        _walks(a, kernel.inner_vars),
        _walks(b, kernel.inner_vars),
    )


def _over(shell: Contraction, swap: Mapping[Expr, Expr], stored: Mapping[Expr, Expr]) -> Contraction | None:
    """The contraction, its operands rewritten by `swap` and its store by `stored`; None if the result is not a product."""
    swap, stored = ({k: v for k, v in x.items() if k.word != "const"} for x in (swap, stored))
    a, b = (_rewritten(e, swap) for e in (shell.a, shell.b))
    index, value = (_rewritten(e, stored) for e in (shell.store.index, shell.store.value))
    if _uses(a, shell.n) or _uses(b, shell.m):
        return None
    return replace(shell, a=a, b=b, store=replace(shell.store, index=_joined(index), value=value))


def _rewritten(e: Expr, swap: Mapping[Expr, Expr]) -> Expr:
    """The expression with loop variables replaced, and with the splits in each load's index undone."""

    def step(x: Expr, args: tuple[Expr, ...]) -> Expr:
        if x.word == "load":
            args = (_joined(args[0]),)
        return x if args == x.args else scalar.make(x.word, args, x.dtype, x.value)

    return scalar.fold([affine.substitute(e, swap)], step)[0]


def _joined(index: Expr) -> Expr:
    """An index with its splits undone: c·a·(x // a) + c·(x % a) is c·x."""
    return affine.flatten((index,), (_ANY,))


def _uses(e: Expr, variable: Expr) -> bool:
    return variable.word == "var" and variable in set(scalar.postorder([e]))
