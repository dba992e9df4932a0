"""The rows that keep a triangle of each matrix: of the last two axes."""

from __future__ import annotations

from typing import Any

from ...dtypes import COMPLEX, NUMBERS, bool_, int32
from ...errors import ShapeError
from ...shapes import Dim, show
from ..kinds import Composite, register
from .move import numbered_along


def diagonals(b: Any, rows: Dim, columns: Dim) -> Any:
    """A matrix of the numbers of its diagonals, as int32: 0 on the main one, and more to the right of it."""
    row, column = (numbered_along(b, (rows, columns), axis) for axis in (0, 1))
    return b.sub(column, row)


def triangle(b: Any, x: Any, diagonal: Any, upper: bool) -> Any:
    """Each matrix with zeros below (upper) or above a diagonal, whose number is an int32 scalar of the graph."""
    if len(x.shape) < 2:
        raise ShapeError(f"{'triu' if upper else 'tril'}: got {show(x.shape)}, expected at least two axes")
    places = diagonals(b, x.shape[-2], x.shape[-1])
    kept = b.greater_equal(places, diagonal) if upper else b.less_equal(places, diagonal)
    return b.where(kept, x, b.const(0, x.dtype))


def number_of_diagonal(diagonal: int) -> int:
    """The number of a diagonal within int32. Diagonals so far out miss every matrix."""
    return min(max(diagonal, -(1 << 30)), 1 << 30)


def _tril(b: Any, x: Any, *, diagonal: int = 0) -> Any:
    return triangle(b, x, b.const(number_of_diagonal(diagonal), int32), upper=False)


def _triu(b: Any, x: Any, *, diagonal: int = 0) -> Any:
    return triangle(b, x, b.const(number_of_diagonal(diagonal), int32), upper=True)


register(
    Composite(name="tril", doc="each matrix with zeros above a diagonal (1: the one above the main diagonal)", lower=_tril,
              dtypes=(bool_, *NUMBERS, *COMPLEX)),
    Composite(name="triu", doc="each matrix with zeros below a diagonal (1: the one above the main diagonal)", lower=_triu,
              dtypes=(bool_, *NUMBERS, *COMPLEX)),
)  # fmt: skip
