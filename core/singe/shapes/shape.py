"""Shapes: tuples of dimensions; how they broadcast, and what their axes are."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ..errors import InputError, ShapeError, SizeNeeded
from .checks import deferred, require, same
from .sizes import Dim, Size, at_least, dim_min, plain, symbols

Shape: TypeAlias = tuple[Dim, ...]
MAX_ELEMENTS: Final = 2**31 - 1
"""The most elements that a tensor may have, and so the largest size: kernels count in int32."""
MAX_RANK: Final = 32
"""The most axes of a tensor in a file."""


def product(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = total * d
    return total


def broadcast(shapes: Sequence[Shape], what: str = "broadcast") -> Shape:
    """The common shape by NumPy's rule. Open dimensions are taken to be longer than 1 where they may be, and so must equal
    the others; those that are `at_most_one` serve all the others."""
    rank = max(map(len, shapes), default=0)
    out: list[Dim] = []
    for axis in range(rank):
        dims = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(dims) > 1:
            text = f"{what}: the shapes {', '.join(map(show, shapes))} do not broadcast: axis {axis} is {' and '.join(map(str, sorted(dims, key=str)))}"
            long = {d for d in dims if not at_most_one(d)} or dims
            first, *others = sorted(long, key=lambda d: (isinstance(d, Size), str(d)))
            if not all(same(first, d, text) for d in others) or not all(_serves(d, first, text) for d in dims - long):
                raise ShapeError(text)
            dims = {first}
        out.append(dims.pop() if dims else 1)
    return tuple(out)


@lru_cache(maxsize=1 << 14)
def at_most_one(dim: Dim) -> bool:
    """Whether a dimension is 1, or open and never more than 1, as the length of x[:1]: an axis of which a broadcast reads
    element 0 only."""
    return plain(dim) == 1 or (isinstance(dim, Size) and at_least(1 - dim, 0))


def _serves(short: Dim, long: Dim, text: str) -> bool:
    """Whether a dimension that is `at_most_one` broadcasts to another: it is 1, or nothing is wanted of it."""
    gap = short - dim_min(long, 1)
    if isinstance(gap, int) or at_least(gap, 0) or at_least(-gap, 1):
        return at_least(gap, 0)
    if not deferred():
        raise SizeNeeded(f"{text}: whether {short} is 1 depends on the run", symbols(gap))
    require(gap, text)
    return True


def whole(argument: Any, what: str, name: str) -> Any:
    """An argument of this name that is an integer or a size; what: the function that takes it."""
    if isinstance(argument, (int, Size)):
        return argument
    try:
        return operator.index(argument)
    except TypeError:
        raise InputError(f"{what}: {name} is {argument!r:.80}, expected an integer") from None


def number(argument: Any, what: str, name: str) -> float:
    """An argument of this name that is a real number; what: the function that takes it."""
    try:
        return float(argument)
    except (TypeError, ValueError, OverflowError):
        shown = f"an integer of {argument.bit_length()} bits" if isinstance(argument, int) else f"{argument!r:.80}"
        raise InputError(f"{what}: {name} is {shown}, expected a number") from None


def axis_of(axis: int, rank: int, what: str) -> int:
    """A possibly negative axis as an index below rank."""
    if axis.__class__ is not int:
        axis = whole(axis, what, "the axis")
    if not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis {axis} is out of range for rank {rank}; give one from {-rank} to {rank - 1}")
    return axis % rank


def axes_of(axes: Iterable[int], rank: int, what: str) -> tuple[int, ...]:
    """Axes as sorted indices, each once."""
    found = [axis_of(a, rank, what) for a in axes]
    if len(set(found)) != len(found):
        raise ShapeError(f"{what}: the axes {tuple(axes)} name one axis twice")
    return tuple(sorted(found))


@lru_cache(maxsize=4096)
def strides(shape: Shape) -> Shape:
    """Row-major strides in elements."""
    out: list[Dim] = []
    step: Dim = 1
    for d in reversed(plain(shape)):
        out.append(step)
        step = step * d
    return tuple(reversed(out))


def show(shape: Sequence[Dim]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def bytes_text(count: int) -> str:
    """A number of bytes for people: 18.6 MB."""
    if count < 1000:
        return f"{count} B"
    power = min(4, int(math.log10(count) // 3))
    return f"{count / 1000**power:.1f} {'kMGT'[power - 1]}B"
