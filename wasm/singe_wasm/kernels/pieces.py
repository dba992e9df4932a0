"""A map whose last loop chooses between sources (concatenation, padding) as several maps, one for each stretch of it.

Where conditions compare the loop's variable with numbers, the loop is cut there: in a piece their answers are known, and
what is left loads neighbours, four lanes wide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from singe import affine, scalar
from singe._dtypes import int32
from singe._shape import Dim
from singe.kernel import Kernel, Store
from singe.scalar import Expr

from .nest import lane_cost

MOST: Final = 8
"""Pieces of a kernel: each is code of its own."""
_FOLDING: Final[Mapping[str, Callable[..., Expr]]] = {
    "select": scalar.select, "and": scalar.and_, "or": scalar.or_, "not": scalar.not_,
}  # fmt: skip


def pieces(kernel: Kernel) -> list[Kernel]:
    """The kernel cut along its last loop, if most of that takes four lanes then and could not before; else itself."""
    extent = kernel.grid[-1] if kernel.grid else 1
    store = kernel.stages[-1]
    if kernel.inner or len(kernel.stages) > 1 or not isinstance(store, Store) or not isinstance(extent, int):
        return [kernel]
    if extent < 8 or lane_cost(kernel, kernel.stages, kernel.grid_vars[-1]) is not None:
        return [kernel]
    inside = {c for c in _cuts(store.value, kernel.grid_vars[-1]) if 0 < c < extent}
    if not 0 < len(inside) < MOST:
        return [kernel]
    made = [_piece(kernel, a, b) for a, b in pairwise(sorted({0, *inside, extent}))]
    wide = [p.grid[-1] for p in made if lane_cost(p, p.stages, p.grid_vars[-1]) is not None]
    return made if 2 * sum(d for d in wide if isinstance(d, int) and d >= 4) >= extent else [kernel]


def _cuts(value: Expr, lane: Expr) -> set[int]:
    """Where comparisons of the variable with a number change their answer."""
    found: set[int] = set()
    for e in scalar.postorder([value]):
        if e.word in ("lt", "le") and e.args[0].dtype is int32:
            terms, constant = affine.linear(e.args[0] - e.args[1])
            if terms in ({lane: 1}, {lane: -1}) and isinstance(constant, int):
                # lane < -constant, or lane > constant
                up = terms[lane] == 1
                found.add((-constant if up else constant + 1) + (0 if e.word == "lt" else 1 if up else -1))
    return found


def _piece(kernel: Kernel, start: int, stop: int) -> Kernel:
    """The elements from start to stop of the last loop."""
    lane = kernel.grid_vars[-1]
    new = scalar.var(f"g{len(kernel.grid) - 1}", int32, stop - start) + start
    (store,) = kernel.stages
    assert isinstance(store, Store)
    index, value = scalar.fold([store.index, store.value], lambda e, args: _known(new if e is lane else e, args))
    return replace(kernel, grid=(*kernel.grid[:-1], stop - start), stages=(replace(store, index=index, value=value),))


def _known(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """The expression over new arguments, without comparisons that these decide."""
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
