"""`x[key]` as rows: one slice, one reshape, and a gather where axes are indexed by arrays.

Keys may hold integers, slices with any step, None (a new axis), ... (all axes in between), integer arrays and masks of
bools, with NumPy's meaning. How many elements a mask selects depends on data: the result has a size that the run finds.

Negative indices count from the end. Integers, lists and arrays are checked here against the length of their axis, tensors
whose elements the host has where the op runs. Indices that only a device has follow its rule (ops/movement/indices.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import DType, bool_, dtype, int64
from ...errors import InputError, OutOfRange, ShapeError
from ...late_dataclass import dataclass
from ...ops import as_dtype
from ...ops.movement.move import amount, numbered
from ...shapes import Dim, Shape, Size, at_least, broadcast, ceildiv, dim_max, dim_min, product, same, same_form, show
from ...texts import with_article
from .promotion import PLAIN, as_type

SUPPORTED: Final = "integers, slices, None, ..., integer arrays and masks"


@dataclass(frozen=True)
class ArrayIndex:
    """The place of an array in a key: its number among the arrays; `array` if its values are known and can be checked."""

    number: int
    dtype: DType
    rank: int
    array: np.ndarray | None = None

    @property
    def is_mask(self) -> bool:
        return self.dtype is bool_


def without_arrays(key: Any, tensor: type, held: Callable[[Any], np.ndarray | None]) -> tuple[list[Any], list[Any]]:
    """The items of a key, with ArrayIndexes in place of arrays, lists, bools and tensors (of this class); and those.
    held: the elements of a tensor if the host has them."""
    items: list[Any] = []
    arrays: list[Any] = []
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, (np.ndarray, list, bool, np.bool_)):
            array = np.asarray(item, np.int64 if isinstance(item, list) and not item else None)
            if array.dtype.kind not in "biu":
                raise InputError(f"x[…]: got an array of {array.dtype}, expected integers or bools")
            known = None if array.dtype.kind == "b" else array
            items.append(ArrayIndex(len(arrays), dtype(array.dtype), array.ndim, known))
            arrays.append(array)
        elif isinstance(item, tensor):
            if not item.dtype.is_int and item.dtype is not bool_:  # pyright: ignore[reportAttributeAccessIssue]
                raise InputError(f"x[…]: got an array of {item.dtype}, expected integers or bools")  # pyright: ignore[reportAttributeAccessIssue]
            known = None if item.dtype is bool_ else held(item)  # pyright: ignore[reportAttributeAccessIssue]
            items.append(ArrayIndex(len(arrays), item.dtype, item.ndim, known))  # pyright: ignore[reportAttributeAccessIssue]
            arrays.append(item)
        else:
            items.append(item)
    return items, arrays


def select(b: Any, x: Any, items: Sequence[Any], key_parts: Sequence[Any]) -> Any:
    """The elements of a node that a key names; `key_parts` are the nodes of its arrays."""
    apart = _apart(items)
    items, arrays = _spread(x.shape, items), list(key_parts)
    lone = sum(isinstance(i, ArrayIndex) for i in items) == 1 and not apart
    if not lone:
        items, arrays = _integers_as_arrays(b, items, arrays)
    y, at = _sliced(b, x, items)
    if not at:
        return y
    if lone and at[0][1].is_mask:
        return _compressed(b, y, at[0][0], arrays[at[0][1].number], at[0][1].rank)
    if len(at) == 1:
        axis, item = at[0]
        return b.gather(y, arrays[item.number], axis=axis)
    return _gathered(b, y, [axis for axis, _ in at], [arrays[item.number] for _, item in at], apart)


def _apart(items: Sequence[Any]) -> bool:
    """Whether something lies between arrays and integers, so that NumPy moves their axes to the front."""
    known = [i for i, item in enumerate(items) if not (item is None or item is Ellipsis or isinstance(item, slice))]
    return bool(known) and known[-1] - known[0] + 1 != len(known)


def _integers_as_arrays(b: Any, items: Sequence[Any], arrays: list[Any]) -> tuple[list[Any], list[Any]]:
    """A key of several arrays with arrays in place of integers, and the coordinates of its masks in place of those."""
    out: list[Any] = []
    if not any(isinstance(item, ArrayIndex) for item in items):
        return list(items), arrays
    for item in items:
        if item is None or isinstance(item, slice):
            out.append(item)
        elif not isinstance(item, ArrayIndex):
            array = np.asarray(operator.index(item), np.int64)
            out.append(ArrayIndex(len(arrays), int64, 0, array))
            arrays.append(b.const(array, int64))
        elif item.is_mask:
            if item.rank == 0:
                raise InputError("x[…]: a single bool beside other arrays; index twice")
            found = b.nonzero(arrays[item.number])
            for k in range(item.rank):
                out.append(ArrayIndex(len(arrays), int64, 1))
                arrays.append(b.gather(found, b.const(k, int64), axis=0))
        else:
            out.append(item)
    return out, arrays


def _sliced(b: Any, x: Any, items: Sequence[Any]) -> tuple[Any, list[tuple[int, ArrayIndex]]]:
    """The node after all slices, integers and Nones of a key, and where its arrays index which axis."""
    shape = x.shape
    starts: list[Dim] = []
    steps: list[int] = []
    sizes: list[Dim] = []
    kept: list[Dim] = []
    at: list[tuple[int, ArrayIndex]] = []
    for item in items:
        if item is None or (isinstance(item, ArrayIndex) and item.is_mask and item.rank == 0):
            at += [(len(kept), item)] if item is not None else []
            kept.append(1)
            continue
        if isinstance(item, ArrayIndex):
            at.append((len(kept), item))
        for _ in range(item.rank if isinstance(item, ArrayIndex) and item.is_mask else 1):
            d = shape[len(starts)]
            where = f"x[…]: axis {len(starts)} of {show(shape)}"
            start, step, count = 0, 1, d
            if isinstance(item, ArrayIndex):
                check_range(item.array, d, where)
                kept.append(d)
            elif isinstance(item, slice):
                start, step, count = _slice(item, d, where)
                kept.append(count)
            else:
                start, count = _integer(item, d, where), 1
            starts.append(start)
            steps.append(step)
            sizes.append(count)
    whole = all(step == 1 for step in steps) and same_form(tuple(sizes), shape)
    y = x if whole else b.slice(x, starts=tuple(starts), steps=tuple(steps), sizes=tuple(sizes))
    return y if same_form(tuple(kept), y.shape) else b.reshape(y, shape=tuple(kept)), at


def array_axes(shape: Shape, items: Sequence[Any]) -> list[tuple[int, ArrayIndex]]:
    """The axes that arrays of integers index, of which the numbers are not known here."""
    found: list[tuple[int, ArrayIndex]] = []
    axis = 0
    for item in _spread(shape, items):
        if isinstance(item, ArrayIndex) and not item.is_mask and item.array is None:
            found.append((axis, item))
        axis += _axes_of(item)
    return found


def _spread(shape: Shape, key: Sequence[Any]) -> list[Any]:
    """The key with full slices in place of ... and for the missing axes."""
    dots = [i for i, item in enumerate(key) if item is Ellipsis]
    if len(dots) > 1:
        raise InputError("x[…]: got ... twice, expected it at most once")
    named = sum(_axes_of(item) for item in key)
    if named > len(shape):
        raise ShapeError(
            f"x[…]: {named} axes are indexed, {show(shape)} has {len(shape)}; give at most one index for each"
        )
    at = dots[0] if dots else len(key)
    rest = [slice(None)] * (len(shape) - named)
    return [*key[:at], *rest, *key[at + 1 :]]


def _axes_of(item: Any) -> int:
    """How many axes an item of a key indexes."""
    if item is None or item is Ellipsis:
        return 0
    return item.rank if isinstance(item, ArrayIndex) and item.is_mask else 1


def _compressed(b: Any, x: Any, axis: int, mask: Any, rank: int) -> Any:
    """The elements of x where a mask of its axes from `axis` on holds."""
    covered = x.shape[axis : axis + max(rank, 1)]
    text = f"x[…]: a mask {show(mask.shape)} over the axes {show(covered)}"
    if rank and not all(same(d, m, text) for d, m in zip(covered, mask.shape, strict=True)):
        raise ShapeError(f"{text}: expected equal shapes")
    count = product(covered)
    flat = b.reshape(x, shape=(*x.shape[:axis], count, *x.shape[axis + max(rank, 1) :]))
    return b.compress(flat, b.reshape(mask, shape=(count,)), axis=axis)


def _gathered(b: Any, x: Any, axes: Sequence[int], indices: Sequence[Any], to_front: bool) -> Any:
    """Elements of x by several arrays of indices, which broadcast, along several axes; theirs come first, or stay."""
    places = broadcast([i.shape for i in indices], "index")
    rest = [a for a in range(len(x.shape)) if a not in axes]
    front = b.transpose(x, perm=(*axes, *rest)) if list(axes) != list(range(len(axes))) else x
    columns = [b.reshape(b.expand(as_dtype(b, i, int64), shape=places), shape=(*places, 1)) for i in indices]
    y = b.gather_nd(front, b.concat(*columns, axis=len(places)), batch=0)
    others = front.shape[len(axes) :]
    if to_front or axes[0] == 0:
        return y
    n, first = len(places), axes[0]  # the new axes come where the indexed ones were
    return b.transpose(y, perm=(*range(n, n + first), *range(n), *range(n + first, n + len(others))))


# --- other ways to select and replace -------------------------------------------------------------------------------


def _places(b: Any, shape: Shape) -> Any:
    """The numbers of the places of a shape, in row-major order."""
    return b.reshape(numbered(b, product(shape), int64), shape=shape)


def gather_elements(b: Any, x: Any, index: Any, axis: int) -> Any:
    """For each index the element at it along an axis; its other coordinates are those of the index."""
    if len(index.shape) != len(x.shape):
        raise ShapeError(f"gather: indices {show(index.shape)} into {show(x.shape)}: expected as many axes")
    return b.gather_elements(x, index, axis=axis)


def rolled(b: Any, x: Any, shift: Dim, axis: int) -> Any:
    """x with its elements moved along an axis; those that leave at one end come back at the other."""
    d = x.shape[axis]
    places = b.sub(numbered(b, d, int64), amount(b, shift, int64))
    return b.gather(x, b.remainder(places, amount(b, d, int64)), axis=axis)


def filled(b: Any, x: Any, mask: Any, value: Any) -> Any:
    """x with a value where a mask holds."""
    return b.where(mask, as_type(b, value, x.dtype), x)


def scatter(b: Any, x: Any, index: Any, part: Any, axis: int, combined: str | None) -> Any:
    """x with elements of `part` at indices along an axis."""
    if isinstance(part, PLAIN):
        part = b.expand(as_type(b, part, x.dtype), shape=index.shape)
    elif part.shape != index.shape:
        part = b.slice(part, starts=(0,) * len(part.shape), steps=(1,) * len(part.shape), sizes=index.shape)
    part = as_type(b, part, x.dtype)
    if combined is None:
        return b.scatter_elements(x, part, index, axis=axis)
    return b.scatter_elements_reduce(x, part, index, axis=axis, reduction=combined)


def replaced(b: Any, x: Any, items: Sequence[Any], key_parts: Sequence[Any], value: Any, combined: str | None) -> Any:
    """x with the elements that a key names replaced by a value, which is broadcast, or combined with it."""
    places = select(b, _places(b, x.shape), items, key_parts)
    part = as_type(b, value, x.dtype)
    extra = len(part.shape) - len(places.shape)
    if extra > 0 and all(d == 1 for d in part.shape[:extra]):
        part = b.reshape(part, shape=part.shape[extra:])
    part = b.expand(part, shape=places.shape)
    total, count = product(x.shape), product(places.shape)
    flat, part, at = (b.reshape(n, shape=(c,)) for n, c in ((x, total), (part, count), (places, count)))
    return b.reshape(scatter(b, flat, at, part, 0, combined), shape=x.shape)


# --- one axis --------------------------------------------------------------------------------------------------------


def check_range(indices: np.ndarray | None, d: Dim, where: str) -> None:
    """Refuse indices beyond an axis of length d, if both are known."""
    if indices is not None and indices.size and isinstance(d, int):
        low, high = int(indices.min()), int(indices.max())
        if low < -d or high >= d:
            raise OutOfRange(f"{where}: got {low if low < -d else high}, expected from {-d} to {d - 1}")


def _integer(item: Any, d: Dim, where: str) -> Dim:
    if isinstance(item, (bool, np.bool_)):
        raise InputError(f"{where}: got a bool; supported are {SUPPORTED}")
    if isinstance(item, Size):
        return item  # that it is an index of the axis, the row requires
    try:
        i = operator.index(item)
    except TypeError:
        raise InputError(
            f"{where}: got {item!r:.80}, {with_article(type(item).__name__)}; supported are {SUPPORTED}"
        ) from None
    if isinstance(d, int) and not -d <= i < d:
        raise OutOfRange(f"{where}: got {i}, expected from {-d} to {d - 1}")
    return i if i >= 0 else d + i


def _slice(item: slice, d: Dim, where: str) -> tuple[Dim, int, Dim]:
    """A slice as (start, step, number of elements)."""
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise InputError(f"{where}: the step of a slice is 0, expected another number")
    if isinstance(d, int) and not isinstance(item.start, Size) and not isinstance(item.stop, Size):
        start, stop, step = item.indices(d)
        return start, step, len(range(start, stop, step))
    if step < 0:
        if item.start is not None or item.stop is not None:
            raise InputError(f"{where}: an open axis can be reversed only as a whole: write x[::{step}]")
        return d - 1, step, ceildiv(d, -step)
    start = _bound(item.start, 0, d)
    stop = _bound(item.stop, d, d)
    signed = [s for s in (item.start, item.stop) if isinstance(s, Size) and not at_least(s, 0)]
    count = (
        stop - start if signed else dim_max(stop - start, 0)
    )  # a negative count is refused: Python counts from the end
    return start, step, ceildiv(count, step)


def _bound(argument: Any, default: Dim, d: Dim) -> Dim:
    """The start or the end of a slice of an axis, of which one is a size."""
    if argument is None:
        return default
    if isinstance(argument, Size):
        return dim_min(argument, d)
    i = operator.index(argument)
    return dim_min(i, d) if i > 0 else i if i == 0 else dim_max(d + i, 0)
