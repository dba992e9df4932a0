"""The shapes, axes and sizes that arguments of Tensor methods mean."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from ...errors import InputError, ShapeError, SizeNeeded
from ...shapes import (
    Dim,
    Shape,
    Size,
    TracedSize,
    axes_of,
    axis_of,
    divides,
    floordiv,
    plain,
    product,
    same,
    show,
    symbols,
    whole,
)

Axis: TypeAlias = int | Sequence[int] | None


class _Called:
    """A number of elements that is called as PyTorch's method `size`: it gives the shape, or the length of an axis."""

    __slots__ = ()

    shape: Shape

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[axis_of(dim, len(self.shape), "size")]


class Count(_Called, int):
    """How many elements a tensor has."""

    shape: Shape


class OpenCount(_Called, TracedSize):
    """How many elements a tensor with an open axis has."""

    __slots__ = ("shape",)


def count_of(shape: Shape) -> Count:
    """How many elements a tensor of this shape has; while tracing, an OpenCount, which counts as a Count in types."""
    count = plain(product(shape))
    found: Any = OpenCount(count) if isinstance(count, Size) else Count(count)
    found.shape = shape
    return found


def unpacked(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, so that f(2, 3) and f((2, 3)) mean the same."""
    return tuple(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)) else arguments


def given_sizes(arguments: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Integers and sizes, given one by one or in a sequence."""
    sizes = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], Iterable) else arguments
    try:
        return tuple(d if isinstance(d, Size) else operator.index(d) for d in sizes)
    except TypeError:
        raise InputError(
            f"{what}: got {arguments!r:.80}, expected integers, as in {what}(2, 3) or {what}((2, 3))"
        ) from None


def made_shape(shape: Any, what: str) -> tuple[Any, ...]:
    """The shape of a new tensor: sizes of which none is negative."""
    sizes = given_sizes((shape,), what)
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise ShapeError(f"{what}: the shape is {show(sizes)}, expected no negative dimensions")
    return sizes


def chosen_axes(axis: Axis, rank: int, what: str) -> tuple[int, ...]:
    """The axes that an argument names; all, if it is None."""
    if axis is None:
        return tuple(range(rank))
    given: Any = [axis] if isinstance(axis, str) or not isinstance(axis, Iterable) else axis
    return axes_of(given, rank, what)


def inferred_shape(old: Shape, wanted: Sequence[Dim]) -> Shape:
    """The requested shape, with -1 replaced by a number or a Size."""
    old, wanted = plain(old), plain(tuple(wanted))
    if sum(d == -1 for d in wanted) > 1:
        raise ShapeError(f"reshape: {show(wanted)} has more than one -1; give at most one")
    if -1 not in wanted:
        return wanted
    rest, total = product(d for d in wanted if d != -1), product(old)
    if rest == 0 or not divides(total, rest):
        raise ShapeError(f"reshape: the {total} elements of {show(old)} cannot be divided into {show(wanted)}")
    return tuple(floordiv(total, rest) if d == -1 else d for d in wanted)


def flattened(shape: Shape, start: int, end: int) -> Shape:
    """The shape with the axes from start to end (inclusive) merged into one."""
    if not shape:
        return (1,)
    first, last = (axis_of(a, len(shape), "flatten") for a in (start, end))
    if first > last:
        raise ShapeError(
            f"flatten: from axis {first} to axis {last} of {show(shape)}: expected an end at or after the start"
        )
    return (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :])


def squeezed(shape: Shape, axis: Axis) -> Shape:
    """The shape without these axes, which have length 1; if None, without all of length 1."""
    ones = [i for i, d in enumerate(plain(shape)) if d == 1]
    axes = ones if axis is None else chosen_axes(axis, len(shape), "squeeze")
    long = [i for i in axes if i not in ones]
    if long:
        raise ShapeError(f"squeeze: axis {long[0]} of {show(shape)} has length {shape[long[0]]}, expected 1")
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def expanded(shape: Shape, wanted: Shape) -> Shape:
    """The requested shape, with -1 replaced by the dimension that is there."""
    old, wanted = (1,) * (len(wanted) - len(shape)) + shape, plain(tuple(wanted))
    return tuple(o if d == -1 else d for o, d in zip(old, wanted, strict=True)) if len(old) == len(wanted) else wanted


def pad_widths(width: int | Sequence[Any], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements are added before and after every axis: one number, (before, after) for each axis, or pairs of
    numbers in a flat sequence, which begins with the last axis."""
    if isinstance(width, (int, Size)):
        pairs = [(width, width)] * rank
    elif len(width) and all(isinstance(w, (int, Size)) for w in width) and len(width) % 2 == 0:
        last = [(width[i], width[i + 1]) for i in range(0, len(width), 2)]
        pairs = [(0, 0)] * (rank - len(last)) + last[::-1]
    else:
        pairs = list(width)
    if len(pairs) != rank or any(not isinstance(p, Sequence) or len(p) != 2 for p in pairs):
        raise ShapeError(
            f"pad: got {width!r}, expected one number, {rank} pairs (before, after), or up to {2 * rank} numbers from the last axis on"
        )
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def known_length(shape: Shape, axis: int, what: str, instead: str) -> int:
    """The length of an axis of which `what` needs the number; instead: the end of the error if it is open."""
    length = shape[axis]
    if isinstance(length, int):
        return length
    raise SizeNeeded(f"{what}: axis {axis} of {show(shape)} has no number until a run{instead}", symbols(length))


def split_slices(sizes: Dim | Sequence[Dim], shape: Shape, axis: int) -> list[slice]:
    """The pieces of an axis: of the given sizes, or all of one size, where the last may be smaller."""
    length = shape[axis]
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        sizes = whole(sizes, "split", "the size of the pieces")
    if isinstance(sizes, (int, Size)):
        length = known_length(
            shape, axis, "split", f", so that the number of pieces is open; use tensor_split(n, {axis}), which makes n pieces, or "
            f"split with the lengths, of which the last may be {length} - {sizes}",
        )  # fmt: skip
        size = operator.index(sizes)
        if size < 1:
            raise ShapeError(f"split: pieces of size {size}, expected at least 1")
        sizes = [min(size, length - start) for start in range(0, length, size)]
    ends = list(accumulate(sizes, initial=0))
    text = f"split: the sizes {show(sizes)} add up to {ends[-1]}, axis {axis} of {show(shape)} has {length}"
    if not same(ends[-1], length, text):
        raise ShapeError(text)
    return [slice(start, end) for start, end in pairwise(ends)]
