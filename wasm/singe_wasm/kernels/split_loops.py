"""Splits a kernel whose loops are not the same all along into kernels of which each is.

A last loop that selects between sources (concatenation, padding) is cut where conditions that compare its variable with
constants (and inner loops of a few turns) change. Within a piece the conditions are known, so the remaining loads are
contiguous and can take four lanes; what a product stores is cut likewise along its columns. A loop that transposed.py takes in
blocks is cut after the last whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from singe.extension import Dim, Expr, Kernel, Store, affine, int32, scalar

from .lanes import choose_lane, lane_cost
from .transposed import BLOCKS, other_loop

MAX_PIECES: Final = 8
"""The most pieces of a kernel; each one is separate code."""
_FOLDING: Final[Mapping[str, Callable[..., Expr]]] = {
    "select": scalar.select, "and": scalar.and_, "or": scalar.or_, "not": scalar.not_,
}  # fmt: skip


def kernel_pieces(kernel: Kernel) -> list[Kernel]:
    """The kernels that together compute the kernel."""
    return [part for piece in _by_conditions(kernel) for part in _in_blocks(piece)]


def _in_blocks(kernel: Kernel) -> list[Kernel]:
    """The kernel cut where the whole blocks of its other loop end, if there are any."""
    variable = other_loop(kernel, choose_lane(kernel)[0])
    if variable is None:
        return [kernel]
    loop = kernel.grid_vars.index(variable)
    extent = kernel.grid[loop]
    assert isinstance(extent, int)
    whole = extent - extent % BLOCKS[-1]
    return [_piece(kernel, a, b, loop) for a, b in pairwise((0, whole, extent))] if whole < extent else [kernel]


def _by_conditions(kernel: Kernel) -> list[Kernel]:
    """The kernel cut along its last loop, if that makes most of the loop four lanes wide; otherwise the kernel itself."""
    extent = kernel.grid[-1] if kernel.grid else 1
    if not isinstance(extent, int) or extent < 8 or choose_lane(kernel)[0] is not None:
        return [kernel]
    inside = {c for c in _cuts(kernel.roots, kernel.grid_vars[-1], kernel.inner_vars) if 0 < c < extent}
    if not 0 < len(inside) < MAX_PIECES:
        return [kernel]
    made = [_piece(kernel, a, b) for a, b in pairwise(sorted({0, *inside, extent}))]
    wide = [p.grid[-1] for p in made if choose_lane(p) == (p.grid_vars[-1], False)]
    return made if 2 * sum(d for d in wide if isinstance(d, int)) >= extent else [kernel]


class ColumnPiece(NamedTuple):
    """The columns up to before `stop`, and their store."""

    stop: Dim
    store: Store


def _cuts(roots: Sequence[Expr], lane: Expr, inner: Sequence[Expr]) -> set[int]:
    """The values of a loop's variable at which comparisons become certainly true or certainly false."""
    found: set[int] = set()
    for e in scalar.postorder(roots):
        if e.word in ("lt", "le") and e.args[0].dtype is int32:
            gap, constant = affine.linear(e.args[0] - e.args[1])
            up = gap.get(lane, 0)
            terms = {atom: factor for atom, factor in gap.items() if atom is not lane}
            least, most = affine.bounds(affine.from_linear(terms, constant))
            if not isinstance(up, int) or up == 0 or not terms.keys() <= set(inner):
                continue
            for other in (least, most):  # up · lane + other < limit
                if isinstance(other, int):
                    limit = (e.word == "le") - other
                    found.add(-(-limit // up) if up > 0 else limit // up + 1)
    return found


def column_pieces(kernel: Kernel, store: Store, column: Expr, extent: Dim) -> list[ColumnPiece]:
    """The store, or those of the pieces in which the conditions on its column are known, if each takes four lanes; otherwise none."""
    if lane_cost(kernel, [store], column) is not None:
        return [ColumnPiece(extent, store)]
    if not isinstance(extent, int):
        return []
    inside = {c for c in _cuts([store.value], column, ()) if 0 < c < extent}
    if not 0 < len(inside) < MAX_PIECES:
        return []
    pieces: list[ColumnPiece] = []
    for start, stop in pairwise(sorted({0, *inside, extent})):
        within = scalar.var("piece", int32, stop - start)
        (value,) = scalar.fold(
            [store.value], lambda e, args, new=within + start: _known(new if e is column else e, args)
        )
        value = scalar.substitute(value, {within: column - start})
        pieces.append(ColumnPiece(stop, replace(store, value=value)))
    return pieces if all(lane_cost(kernel, [p.store], column) is not None for p in pieces) else []


def _piece(kernel: Kernel, start: int, stop: int, loop: int = -1) -> Kernel:
    """The elements from start to stop of a loop."""
    variable, grid = kernel.grid_vars[loop], list(kernel.grid)
    grid[loop] = stop - start
    new = scalar.var(f"g{loop % len(grid)}", int32, stop - start) + start
    roots = scalar.fold(kernel.roots, lambda e, args: _known(new if e is variable else e, args))
    return kernel.with_roots(roots, tuple(grid))


def _known(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """The expression over new arguments, with comparisons folded where the arguments' bounds decide them."""
    if not args:
        return e
    if e.word in ("lt", "le", "min", "max") and args[0].dtype is int32:
        low, high = affine.bounds(args[0] - args[1])
        if e.word in ("lt", "le"):
            last = -1 if e.word == "lt" else 0
            if high is not None and affine.at_least(last - high, 0):
                return scalar.const(True, e.dtype)
            if low is not None and affine.at_least(low, last + 1):
                return scalar.const(False, e.dtype)
        elif _negative(high) or _positive(low):
            return args[(e.word == "min") == _positive(low)]
    return _FOLDING[e.word](*args) if e.word in _FOLDING else scalar.make(e.word, args, e.dtype, e.value)


def _negative(high: Dim | None) -> bool:
    return high is not None and affine.at_least(-high, 0)


def _positive(low: Dim | None) -> bool:
    return low is not None and affine.at_least(low, 0)
