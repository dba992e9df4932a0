"""Kernel and Routine: what a code generator prints.

A Kernel is one fused loop nest over buffers, in scalar words. Its grid loops are independent of each other (a GPU gives
each to an invocation or a workgroup, a CPU vectorises the last); for every point of the grid its stages run in order:

  Reduce  folds a value over all inner loops into a named accumulator, which later stages may use;
  Scan    folds a value along the one inner loop, in order; later stages of that loop see the result of each step;
  Store   writes a value to a buffer: once for a grid point, or for each point of the inner loops.

Loop variables are named g0, g1, … (grid) and r0, r1, … (inner), accumulators a0, a1, …. Loads and stores name a buffer
by its position in `ports`, inputs first, and an element by its flat index, which is always within bounds. No two ports
share memory; a port that is both loaded and written works in place, element by element: at each point, Stores that follow
each other write only when all of their values are computed.

A Routine is a Kernel for which a target may have a tuned template. It has the Kernel, which defines it completely, a
kind, which names the template, and the facts that the template needs. Without a template, the target prints the Kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from ..dtypes import DType, int32
from ..late_dataclass import dataclass
from ..shapes import Dim, Shape, Size, evaluate, product, show
from . import affine, scalar
from .scalar import Expr

IDENTITY: Final[Mapping[str, Any]] = {
    "add": lambda d: 0,
    "mul": lambda d: 1,
    "max": lambda d: -np.inf if d.is_float else d.limits[0],
    "min": lambda d: np.inf if d.is_float else d.limits[1],
}
"""The words that a Reduce or Scan may fold with, and the value from which each fold starts."""


def identity(word: str, dtype: DType) -> Expr:
    """The value from which a fold with the word starts."""
    return scalar.const(IDENTITY[word](dtype), dtype)


@dataclass(frozen=True)
class Port:
    """A buffer as a kernel sees it: the type of its elements in memory, and whether the kernel writes it."""

    dtype: DType
    written: bool = False


@dataclass(frozen=True)
class _Fold:
    name: str
    word: str
    value: Expr

    @property
    def accumulator(self) -> Expr:
        return scalar.var(self.name, self.value.dtype)


@dataclass(frozen=True)
class Reduce(_Fold):
    """Fold `value` over the inner loops with a word of IDENTITY; later stages see the result as `accumulator`.

    The target chooses the order of the fold, and how often intermediate results are rounded.
    """


@dataclass(frozen=True)
class Scan(_Fold):
    """Fold `value` with a word of IDENTITY along the inner loop, in order. Inner stores see the fold so far, including
    this turn's value, as `accumulator`. A kernel with a Scan has one inner loop, which runs once, and no Reduce."""


@dataclass(frozen=True)
class Store:
    """Write `value` (of the port's compute type) at flat `index`:
    once for each grid point, or, if `inner`, for each point of the inner loops."""

    port: int
    index: Expr
    value: Expr
    inner: bool = False


Stage: TypeAlias = "Reduce | Scan | Store"


@dataclass(frozen=True)
class Kernel:
    """One loop nest; see the module's docstring."""

    ports: tuple[Port, ...]
    grid: Shape
    inner: Shape
    stages: tuple[Stage, ...]
    name: str = field(default="kernel", compare=False)

    @property
    def grid_vars(self) -> tuple[Expr, ...]:
        return loop_vars("g", self.grid)

    @property
    def inner_vars(self) -> tuple[Expr, ...]:
        return loop_vars("r", self.inner)

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All expressions in the stages."""
        return tuple(e for s in self.stages for e in ((s.index, s.value) if isinstance(s, Store) else (s.value,)))

    def with_roots(self, roots: Iterable[Expr], grid: Shape) -> Kernel:
        """The kernel over another grid, with its `roots` replaced by these."""
        after = iter(roots)
        stages = tuple(
            replace(s, index=next(after), value=next(after)) if isinstance(s, Store) else replace(s, value=next(after))
            for s in self.stages
        )
        return replace(self, grid=grid, stages=stages)

    def at(self, sizes: Mapping[str, Dim]) -> Kernel:
        """The kernel with these dimensions in place of open sizes."""

        def step(e: Expr, args: tuple[Expr, ...]) -> Expr:
            if e.word == "size":
                return scalar.size(evaluate(e.value, sizes))
            if e.word == "var" and e.value[1] is not None:
                return scalar.var(e.value[0], e.dtype, evaluate(e.value[1], sizes))
            return e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)

        kernel = self.with_roots(scalar.fold(self.roots, step), tuple(evaluate(d, sizes) for d in self.grid))
        return replace(kernel, inner=tuple(evaluate(d, sizes) for d in self.inner))

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """The open sizes that the kernel uses, in the order in which a dispatch passes them as int32."""
        used = [d for d in (*self.grid, *self.inner) if isinstance(d, Size)]
        used += [e.value for e in scalar.postorder(self.roots) if e.word == "size"]
        return tuple(dict.fromkeys(used))

    @cached_property
    def replaceable(self) -> Mapping[int, tuple[int, ...]]:
        """Each port written ↦ the inputs whose memory it may take: their elements are read only at the point that writes
        in their place."""
        if not all(isinstance(s, Store) for s in self.stages):
            return {s.port: () for s in self.stages if isinstance(s, Store)}
        indices: dict[int, set[Expr]] = {}
        for e in scalar.postorder(self.roots):
            if e.word == "load" and not self.ports[e.value].written:
                indices.setdefault(e.value, set()).add(e.args[0])
        return {
            s.port: tuple(
                number
                for number in sorted(indices)
                if self.ports[number].dtype is self.ports[s.port].dtype and indices[number] == {s.index}
            )
            for s in self.stages
            if isinstance(s, Store)
        }

    def in_place(self, number: int, written: int) -> Kernel:
        """The kernel with input `number` (one of `replaceable[written]`) read from the memory of a port that it writes:
        one port fewer."""
        shift = {k: k - (k > number) for k in range(len(self.ports))}
        shift[number] = shift[written]
        ports = tuple(p for k, p in enumerate(self.ports) if k != number)
        return self.renumbered(shift, ports)

    def renumbered(self, numbers: Mapping[int, int], ports: tuple[Port, ...]) -> Kernel:
        """The kernel over other ports: each has a new number."""

        def step(e: Expr, args: tuple[Expr, ...]) -> Expr:
            """Loads are renumbered within the indices of other loads too."""
            if e.word == "load":
                return scalar.load(numbers[e.value], args[0], self.ports[e.value].dtype)
            return e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)

        made = self.with_roots(scalar.fold(self.roots, step), self.grid)
        stages = tuple(replace(s, port=numbers[s.port]) if isinstance(s, Store) else s for s in made.stages)
        return replace(made, ports=ports, stages=stages)

    @property
    def points(self) -> Dim:
        """How many grid points there are."""
        return product(self.grid)

    def __str__(self) -> str:
        """The kernel as text, for people: a loop nest."""
        lines = [f"{self.name}: for g in {show(self.grid)}" + (f", r in {show(self.inner)}" if self.inner else "")]
        for s in self.stages:
            if isinstance(s, (Reduce, Scan)):
                lines.append(f"  {s.name} = {s.word} {'over' if isinstance(s, Reduce) else 'along'} r of {s.value}")
            else:
                lines.append(f"  {'for r: ' if s.inner else ''}b{s.port}[{s.index}] = {s.value}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Routine:
    """A Kernel with a template's name and facts; ROUTINES says what each kind guarantees."""

    kind: str
    kernel: Kernel
    facts: Mapping[str, Any] = field(compare=False, default_factory=dict)

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.kernel.ports

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def epilogue(self) -> Store:
        """The one Store: its value uses the accumulator a0 and loads of other ports at grid coordinates."""
        last = self.kernel.stages[-1]
        assert isinstance(last, Store)
        return last


ROUTINES: Final = {
    "matmul": "grid (…batch, m, n), inner (k,). Stage 0 adds mul(a, b); a depends on batch, m and k, b on batch, n and k. "
    "facts: none. matmul_operands() finds a and b. Either may be any expression (a prologue); a plain load is the common case.",
    "conv": "grid (n, …space, o), inner (…window, c). Stage 0 adds mul(x, w) with x read channels-last (zero outside). "
    "facts: x, w: ports of the plain operands; x_shape (n, …space, channels); w_shape (…window, c, o); strides, dilations, "
    "pads (at the beginning of each axis); group. Input channel of (o, c) is (o // (o_total // group)) · c_per_group + c. "
    "With a pooling of the output, the grid counts windows, and there is one Reduce (a0, a1, …) for each place of a window, "
    "the last axis fastest. facts then also has windows: the extent of a window along each axis of the grid; positions: the "
    "spatial shape of the convolution's output, of which some places may be in no window; value: the summand at the place "
    "p0, p1, … of a window.",
    "matmul_int8": "grid and inner as in matmul. Stages 0 and 1 find the largest element a0 and the least element a1 of x over "
    "k; stage 2 adds mul(q(x, a0, a1), add(w, −128)) in int32, where w is a plain load of uint8. The store's value uses a0, "
    "a1 and a2 only in mul(cast(a2), step_of(a0, a1)), as ops/products/quantised.py makes it. facts: none.",
    "conv_int8": "as matmul_int8, with the grid, the inner loops and the facts of conv; group is 1.",
    "matmul_integers": "grid and inner as in matmul. Stage 0 adds mul(cast(x), w) in int32, where x is float32, a whole number, "
    "those of a sum within 255 of each other and of 0, and w is a plain load of int8. facts: none.",
    "matmul_blocks": "as matmul, with b = mul(sub(cast(q), zero), scale): q is and(shr(w, rem(k, 32 / bits) · bits), 2^bits − 1), where "
    "w is a load of int32 at div(k, 32 / bits) and n; scale is a load at div(k, block) and n, and so is zero, or a constant. facts: "
    "bits, block.",
    "matmul_blocks_with_rows": "grid (1, n), inner (k,). The stages before the last two are a Reduce each, which depend on k alone; then come "
    "those of matmul_blocks, where a is any expression of k and of the folds before, but has no loads that depend on n. facts: bits, block.",
    "matmul_blocks_int16": "grid, inner and facts as in matmul_blocks. Stage 0 finds the largest magnitude a0 of x over k; stage 1 adds "
    "mul(q(x, a0), b) with b as in matmul_blocks. The store's value uses a0 and a1 only in mul(a1, wide_step_of(a0)), as "
    "ops/products/blocks_int16.py makes it. facts: as in matmul_blocks; and in_bytes, true, if eight bits of q count.",
    "conv_integers": "as matmul_integers, with the grid, the inner loops and the facts of conv; group is 1.",
}
"""What each kind of Routine guarantees. The last stage is the only Store, outside the inner loops. The stages before it
are the Reduce a0 (or, in the float kinds, one Reduce for each place of a window); in the int8 kinds they are
three Reduces, in the int16 kind two, in the kind with rows any number."""


def matmul_operands(kernel: Kernel) -> tuple[Expr, Expr] | None:
    """The operands (a, b) of a matmul's stage 0, or None if the kernel does not have this form."""
    first = kernel.stages[0]
    if len(kernel.grid) < 2 or len(kernel.inner) != 1 or not isinstance(first, Reduce) or first.value.word != "mul":
        return None
    m, n = kernel.grid_vars[-2:]
    x, y = (set(scalar.postorder([e])) for e in first.value.args)
    for a, b in ((x, y), (y, x)):
        if (n not in a or n.word == "const") and (m not in b or m.word == "const"):
            left, right = first.value.args
            return (left, right) if a is x else (right, left)
    return None


def loop_vars(prefix: str, extents: Shape) -> tuple[Expr, ...]:
    """The variables of a loop nest; for a loop of one turn the constant 0."""
    return tuple(scalar.var(f"{prefix}{i}", int32, extent) for i, extent in enumerate(extents))


def collapse(kernel: Kernel, keep: int = 0, least: int = 0) -> Kernel:
    """The kernel with adjacent grid loops merged where every index steps through them as through one loop.

    Two loops merge if all expressions use them only as outer · extent + inner. Loops of one turn are removed. The last
    `keep` loops are unchanged; if fewer than `least` loops remain, loops of one turn are added in front.
    """
    last = len(kernel.grid) - keep
    order = [i for i, d in enumerate(kernel.grid) if d != 1 or i >= last]
    missing = max(0, least - len(order))
    names = {kernel.grid_vars[i]: at + missing for at, i in enumerate(order) if kernel.grid[i] != 1}
    kernel = _renamed(kernel, [*[1] * missing, *(kernel.grid[i] for i in order)], names)
    i = len(kernel.grid) - 2 - keep
    while i >= 0 and len(kernel.grid) > least:
        kernel = _merge(kernel, i) or kernel
        i -= 1
    return kernel


def _renamed(kernel: Kernel, grid: Sequence[Dim], positions: Mapping[Expr, int]) -> Kernel:
    new = {v: scalar.var(f"g{i}", int32, grid[i]) for v, i in positions.items()}
    return _rebuilt(kernel, tuple(grid), {k: v for k, v in new.items() if k is not v})


def _rebuilt(kernel: Kernel, grid: Shape, swap: Mapping[Expr, Expr]) -> Kernel:
    roots = (scalar.substitute(e, swap) for e in kernel.roots) if swap else kernel.roots
    return kernel.with_roots(roots, grid)


def _merge(kernel: Kernel, i: int) -> Kernel | None:
    outer, inner = kernel.grid_vars[i], kernel.grid_vars[i + 1]
    extent = kernel.grid[i + 1]
    one = scalar.var("merged", int32, kernel.grid[i] * extent)

    def step(e: Expr, args: tuple[Expr | None, ...]) -> Expr | None:
        """The expression over the merged loop; None if it cannot be expressed."""
        if e.dtype is int32 and e.word in ("add", "mul", "sub", "var"):
            terms, constant = affine.linear(e)
            a, b = terms.get(outer, 0), terms.get(inner, 0)
            if a == 0 and b == 0:
                return e if e not in (outer, inner) and not _uses(e, outer, inner) else _through(e, args)
            if a == b * extent:
                rest = {k: v for k, v in terms.items() if k not in (outer, inner)}
                if any(_uses(k, outer, inner) for k in rest):
                    return None
                # The merged loop takes the place of the outer one, so that the largest steps stay first.
                items = [(one, b) if k is outer else (k, v) for k, v in terms.items() if k is not inner]
                return affine.from_linear(dict(items), constant)
            return None
        return _through(e, args)

    def _through(e: Expr, args: tuple[Expr | None, ...]) -> Expr | None:
        if e in (outer, inner) or None in args:
            return None
        return e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)  # pyright: ignore[reportArgumentType]

    # A sum may be mergeable although its parts are not. So parts may give None; a sum is judged by all of its terms.
    roots = scalar.fold(kernel.roots, step)
    if any(r is None for r in roots):
        return None
    grid = (*kernel.grid[:i], kernel.grid[i] * extent, *kernel.grid[i + 2 :])
    names = {
        v: scalar.var(f"g{k - 1}", int32, kernel.grid[k])
        for k, v in enumerate(kernel.grid_vars)
        if k > i + 1 and v.word == "var"
    }
    names[one] = scalar.var(f"g{i}", int32, grid[i])
    return _rebuilt(kernel.with_roots(roots, grid), grid, names)  # pyright: ignore[reportArgumentType]


def _uses(e: Expr, *leaves: Expr) -> bool:
    below = set(scalar.postorder([e]))
    return any(v in below for v in leaves)
