"""The matmul and conv Routines in one form: out[batch, m, n] = epilogue(Σ over k of a[batch, m, k] · b[batch, k, n]).

A convolution is a product whose rows are the places of the output, whose columns are the outputs of a group, whose depth
is the window times the channels of a group, and whose batch is the groups. Its operands are the expressions that the
kernel holds, over loops put together anew: padding, prologues and epilogues come along by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from singe import affine, scalar
from singe._dtypes import float32, int32
from singe._shape import Dim, Shape, product
from singe.kernel import Kernel, Reduce, Routine, Store, collapse, matmul_operands
from singe.scalar import Expr

_ANY: Final = 2
"""An extent for `flatten` to take one coordinate by: what is left of it is the joining of splits."""


@dataclass(frozen=True)
class Contraction:
    """See the module's docstring; `a`, `b` and `store` are over batch_vars and the variables m, n and k."""

    kernel: Kernel
    batch: Shape
    rows: Dim
    columns: Dim
    depth: Dim
    a: Expr
    b: Expr
    store: Store
    a_deep: bool  # whether neighbours in k are neighbours in memory
    b_deep: bool

    @property
    def batch_vars(self) -> tuple[Expr, ...]:
        return tuple(scalar.var(f"t{i}", int32, d) for i, d in enumerate(self.batch))

    @property
    def m(self) -> Expr:
        return scalar.var("m", int32, self.rows)

    @property
    def n(self) -> Expr:
        return scalar.var("n", int32, self.columns)

    @property
    def k(self) -> Expr:
        return scalar.var("k", int32, self.depth)

    @property
    def accumulator(self) -> Expr:
        first = self.kernel.stages[0]
        assert isinstance(first, Reduce)
        return first.accumulator


def contraction(routine: Routine) -> Contraction | None:
    """The Routine as a product; None where it is none that the templates take (or where they do not pay off)."""
    stages = routine.kernel.stages
    if len(stages) != 2 or not isinstance(stages[0], Reduce) or not isinstance(stages[1], Store) or stages[1].inner:
        return None
    value = stages[0].value
    if stages[0].word != "add" or value.word != "mul" or value.dtype not in (float32, int32):
        return None
    return _matmul(routine.kernel) if routine.kind == "matmul" else _conv(routine) if routine.kind == "conv" else None


def _walks(e: Expr, inner: tuple[Expr, ...]) -> bool:
    """Whether the operand walks memory step by step with the last inner loop that turns."""
    last = next((v for v in reversed(inner) if v.word == "var"), None)
    loads = [x for x in scalar.postorder([e]) if x.word == "load"]
    return last is not None and any(affine.linear(x.args[0])[0].get(last) == 1 for x in loads)


def _matmul(kernel: Kernel) -> Contraction | None:
    if matmul_operands(kernel) is None:
        return None
    # Where b is the same for the whole batch, the batch is more rows: collapse merges them.
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
    return _over(shell, swap)


def _widest(kernel: Kernel) -> Kernel:
    """The kernel with its batch loops merged, into the rows where that can be."""
    merged = collapse(kernel, keep=1)
    if len(merged.grid) == 2 and matmul_operands(merged) is not None:
        return merged
    return collapse(kernel, keep=2)


def _conv(routine: Routine) -> Contraction | None:
    kernel, group = routine.kernel, routine.facts["group"]
    outputs = kernel.grid[-1]
    if not isinstance(outputs, int) or outputs == group or outputs == 1:
        return None  # one output to a group: the plain nest reads as little and computes no zeros
    places = kernel.grid_vars[:-1]
    x, w = _operands(kernel, places)
    columns = outputs // group
    o = kernel.grid_vars[-1]
    collapsed = collapse(kernel, keep=1)
    if len(collapsed.grid) == 2 and group == 1:
        # A window of one place: the places are rows as they are.
        kernel, places, o = collapsed, collapsed.grid_vars[:-1], collapsed.grid_vars[-1]
        x, w = _operands(kernel, places)
    shell = _shell(kernel, (group,), product(kernel.grid[:-1]), columns, (x, w))
    (t,) = shell.batch_vars
    swap = _unflattened(shell.m, places, kernel.grid[:-1]) | _unflattened(shell.k, kernel.inner_vars, kernel.inner)
    swap[o] = t * columns + shell.n
    return _over(shell, swap)


def _operands(kernel: Kernel, places: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    """The operands of a convolution: what is read at places, and the weights."""
    first = kernel.stages[0]
    assert isinstance(first, Reduce)
    left, right = first.value.args
    moving = {v for v in places if v.word == "var"}
    return (right, left) if moving & set(scalar.postorder([right])) else (left, right)


def _unflattened(flat: Expr, names: tuple[Expr, ...], extents: Shape) -> dict[Expr, Expr]:
    coordinates = affine.unflatten(flat, extents)
    return {v: c for v, c in zip(names, coordinates, strict=True) if v.word == "var"}


def _shell(kernel: Kernel, batch: Shape, rows: Dim, columns: Dim, operands: tuple[Expr, Expr]) -> Contraction:
    """The contraction with its expressions still over the kernel's loops."""
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


def _over(shell: Contraction, swap: Mapping[Expr, Expr]) -> Contraction | None:
    """The contraction with its expressions over the new variables."""
    swap = {k: v for k, v in swap.items() if k.word != "const"}
    index, value = shell.store.index, shell.store.value
    a, b, index, value = (_rewritten(e, swap) for e in (shell.a, shell.b, index, value))
    if _uses(a, shell.n) or _uses(b, shell.m):
        return None
    return replace(shell, a=a, b=b, store=replace(shell.store, index=_joined(index), value=value))


def _rewritten(e: Expr, swap: Mapping[Expr, Expr]) -> Expr:
    """The expression with loops replaced, and each index put together again where it was only taken apart."""

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
