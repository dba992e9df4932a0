"""Methods that select or replace elements by indices and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import bool_
from ...errors import InputError, ShapeError
from ...ir.scalar import Number
from ...ops import ROWS
from ...runtime.debugging import origin_of_indices
from ...shapes import Dim, Shape, axis_of, plain, same_form, show
from ..calls import apply_row, has_sizes, traced
from ..flags import flag_range, flagging
from ..nodes import indexing, shaping
from ..nodes.shaping import unpacked
from ..numpy_fallback import values_on_host
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method

REDUCTIONS: Final = {
    "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min",
}  # fmt: skip
"""PyTorch's names of what combines elements that go to one place ↦ the row's."""
NEUTRAL: Final = {"sum": 0, "mean": 0, "prod": 1}
"""The reductions ↦ the element that changes nothing; in the others one of those that are combined changes nothing."""


@method
def __getitem__(x: Tensor, key: Any) -> Tensor:
    """Elements by integers, slices, None, ..., integer arrays and masks; see nodes/indexing.py."""
    x = traced(x) if has_sizes(key) else x
    places, arrays = _parsed(key, x.shape)
    _flag(x.shape, places, arrays)
    return apply(lambda b, n, *given: indexing.select(b, n, places, given), x, *arrays)


def _parsed(key: Any, shape: Shape) -> tuple[list[Any], list[Any]]:
    """A key without its arrays, and those. Beside other arrays, a mask is replaced by its coordinates."""
    items = list(key) if isinstance(key, tuple) else [key]
    several = sum(not isinstance(i, slice) and i is not None and i is not Ellipsis for i in items) > 1
    if several:
        _check_masks(items, shape)
    for at, item in reversed(list(enumerate(items))) if several else ():
        if isinstance(item, (bool, np.bool_)):
            continue
        if isinstance(item, Tensor) and item.dtype is bool_ and not item.device.trace_depth:
            items[at : at + 1] = np.nonzero(item.numpy())
        elif isinstance(item, (np.ndarray, list)) and np.asarray(item).dtype == np.bool_:
            items[at : at + 1] = np.nonzero(item)
    return indexing.without_arrays(tuple(items), Tensor, values_on_host)


def _check(name: str, x: Tensor, axis: int, index: TensorLike) -> None:
    """Refuse indices beyond an axis, if they are known."""
    where = f"{name}: axis {axis} of {show(x.shape)}"
    indexing.check_range(values_on_host(index), x.shape[axis], where)
    _flag_axis(index, x.shape[axis], where)


def _flag(shape: Shape, places: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Have what is traced tell of indices beyond an axis that only the device knows."""
    for axis, item in indexing.array_axes(shape, places) if flagging() else ():
        _flag_axis(arrays[item.number], shape[axis], f"index: axis {axis} of {show(shape)}")


def _flag_axis(index: Any, d: Dim, where: str) -> None:
    if flagging() and isinstance(index, Tensor) and isinstance(d, int):
        flag_range(index, -d, d - 1, f"{origin_of_indices(index._value).taken}{where}")


def _check_masks(items: Sequence[Any], shape: Shape) -> None:
    """Raise a ShapeError if a mask has another shape than the axes that it indexes; open sizes are not compared."""
    masks = [_mask_shape(item) for item in items]
    ranks = [
        len(mask) if mask is not None else int(item is not None and item is not Ellipsis)
        for item, mask in zip(items, masks, strict=True)
    ]
    axis = 0
    for item, mask, rank in zip(items, masks, ranks, strict=True):
        along = shape[axis : axis + rank]
        known = zip(mask or (), along, strict=False)
        if mask is not None and any(isinstance(m, int) and isinstance(d, int) and m != d for m, d in known):
            raise ShapeError(
                f"x[…]: a mask of shape {show(mask)} for axes of shape {show(along)} of {show(shape)}; expected equal shapes"
            )
        axis += len(shape) - sum(ranks) if item is Ellipsis else rank


def _mask_shape(item: Any) -> Shape | None:
    """The shape of a mask in a key; None for other items."""
    if isinstance(item, Tensor):
        return item.shape if item.dtype is bool_ else None
    if isinstance(item, (bool, np.bool_)):
        return ()
    if isinstance(item, (np.ndarray, list)):
        array = np.asarray(item)
        return array.shape if array.dtype == np.bool_ else None
    return None


@method
def __setitem__(x: Tensor, key: Any, value: Any) -> None:
    raise InputError("a tensor does not change; make one that differs: x = x.at[key].set(value)")


@method
def __iter__(x: Tensor) -> Iterator[Tensor]:
    return (x[i] for i in range(len(x)))


# along an axis


@method
def take(x: Tensor, index: Tensor | np.ndarray | Sequence[int], axis: int | None = None) -> Tensor:
    """The slices along an axis at the given indices; without an axis, the elements of the flat tensor."""
    if axis is None:
        return x.flatten().take(index, 0)
    at = axis_of(axis, x.ndim, "take")
    return x[(slice(None),) * at + (index if isinstance(index, (Tensor, np.ndarray)) else list(index),)]


@method
def index_select(x: Tensor, axis: int, index: Tensor | np.ndarray | Sequence[int]) -> Tensor:
    """The slices along an axis at the given indices."""
    return x.take(index, axis)


@method
def gather(x: Tensor, axis: int, index: TensorLike) -> Tensor:
    """For each index the element at it along an axis; its other coordinates are those of the index."""
    if not isinstance(index, (Tensor, np.ndarray, list, tuple)):
        raise InputError(
            f"gather: got the index {index!r:.80}, expected a tensor of integers; x.select(dim, i) takes one"
        )
    at = axis_of(axis, x.ndim, "gather")
    _check("gather", x, at, index)
    return apply(lambda b, n, i: indexing.gather_elements(b, n, i, at), x, index)


@method
def take_along_dim(x: Tensor, index: TensorLike, axis: int | None = None) -> Tensor:
    """Like gather; the other axes broadcast. Without an axis, the elements of the flat tensor at flat indices."""
    places = index if isinstance(index, Tensor) else Tensor(x.device, x.device.upload(np.asarray(index)))
    if axis is None:
        return x.flatten().take_along_dim(places.flatten(), 0)
    at = axis_of(axis, x.ndim, "take_along_dim")
    if places.ndim != x.ndim:
        raise ShapeError(f"take_along_dim: indices {show(places.shape)} into {show(x.shape)}: expected as many axes")

    def wide(shape: Any, other: Any) -> list[Any]:
        return [
            d if i == at else o if d == 1 else d
            for i, (d, o) in enumerate(zip(plain(shape), plain(other), strict=True))
        ]

    known = places.device.integers(places._value)  # what is broadcast is the device's
    indexing.check_range(known, x.shape[at], f"take_along_dim: axis {at} of {show(x.shape)}")
    index_shape, shape = wide(places.shape, x.shape), wide(x.shape, places.shape)
    return x.broadcast_to(shape).gather(at, places.broadcast_to(index_shape))


@method
def split(x: Tensor, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    at = axis_of(axis, x.ndim, "split")
    return tuple(x[(slice(None),) * at + (part,)] for part in shaping.split_slices(sizes, x.shape, at))


alias("split_with_sizes", split)

# replaced elements


@method
def masked_fill(x: Tensor, mask: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with a value where a mask holds."""
    return apply(indexing.filled, x, mask, value)


@method
def scatter(
    x: Tensor, axis: int, index: TensorLike, src: TensorLike | None = None, reduce: str | None = None, *,
    value: Number | None = None,
) -> Tensor:  # fmt: skip
    """The tensor with the elements of `src` (or one value) at indices along an axis; where an index has an element,
    its other coordinates are those of the index. reduce: "add" or "multiply", to combine them with what is there."""
    src = value if src is None else src
    if src is None:
        raise InputError("scatter: got no elements, expected src= or value=")
    at = axis_of(axis, x.ndim, "scatter")
    _check("scatter", x, at, index)
    combined = None if reduce is None else _reduction(reduce)
    return apply(lambda b, n, i, s: indexing.scatter(b, n, i, s, at, combined), x, index, src)


@method
def scatter_add(x: Tensor, axis: int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with the elements of `src` added to those at indices along an axis."""
    return x.scatter(axis, index, src, "add")


@method
def scatter_reduce(
    x: Tensor, axis: int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with the elements of `src` combined with those at indices along an axis: sum, prod, amax, amin or mean.
    include_self: whether the elements that are there count, too."""
    if not include_self:
        x = x.scatter(axis, index, NEUTRAL.get(reduce, src))
    if reduce != "mean":
        return x.scatter(axis, index, src, reduce)
    counts = x.new_ones(x.shape).scatter(axis, index, 1 if include_self else 0).scatter(axis, index, 1, "sum")
    return x.scatter(axis, index, src, "sum").div(counts, rounding_mode=None if x.dtype.is_float else "floor")


@method
def index_add(x: Tensor, axis: int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
    """The tensor with slices, times alpha, added to those at indices along an axis."""
    source = source if alpha == 1 else source * alpha
    return x.at[(slice(None),) * axis_of(axis, x.ndim, "index_add") + (index,)].add(source)


@method
def index_copy(x: Tensor, axis: int, index: TensorLike, source: TensorLike) -> Tensor:
    """The tensor with the slices at indices along an axis replaced."""
    return x.at[(slice(None),) * axis_of(axis, x.ndim, "index_copy") + (index,)].set(source)


@method
def index_fill(x: Tensor, axis: int, index: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with one value in the slices at indices along an axis."""
    return x.at[(slice(None),) * axis_of(axis, x.ndim, "index_fill") + (index,)].set(value)


@method
def update_slice(x: Tensor, part: TensorLike, *starts: Any) -> Tensor:
    """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

    The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
    return apply_row(ROWS["update_slice"], (x, part, *unpacked(starts)))


def _reduction(name: str) -> str:
    if name not in REDUCTIONS:
        raise InputError(f"scatter: the reduction is {name!r}, expected one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[name]


class At:
    """The places of a tensor that a key names, as in `x.at[1:, mask].set(0)`: each method gives a tensor that differs
    from x there."""

    __slots__ = ("_key", "_tensor")

    def __init__(self, x: Tensor, key: Any) -> None:
        self._tensor = x
        self._key = key

    def get(self) -> Tensor:
        return self._tensor[self._key]

    def set(self, value: TensorLike) -> Tensor:
        """x with these elements replaced. Where a key names a place twice, one of the values is there."""
        return self._updated(value, None)

    def add(self, value: TensorLike) -> Tensor:
        """x with a value added; where a key names a place twice, both."""
        return self._updated(value, "add")

    def multiply(self, value: TensorLike) -> Tensor:
        return self._updated(value, "mul")

    def divide(self, value: TensorLike) -> Tensor:
        """x with elements divided by a value; where a key names a place twice, by both."""
        return self._by_product(lambda x, y: x / y, value)

    def power(self, value: TensorLike) -> Tensor:
        """x with elements raised to a power; where a key names a place twice, to the product of both."""
        return self._by_product(lambda x, y: x**y, value)

    def _by_product(self, function: Callable[[Tensor, Tensor], Tensor], value: TensorLike) -> Tensor:
        """x with f(element, the product of the values for its place)."""
        x, key = self._tensor, self._key
        factors = x.new_ones(x.shape, dtype=(x.new_ones(()) * value).dtype).at[key].multiply(value)
        named = x.new_zeros(x.shape, dtype=bool_).at[key].set(True)
        return function(x, factors).cast(x.dtype).where(named, x)

    def min(self, value: TensorLike) -> Tensor:
        return self._updated(value, "min")

    def max(self, value: TensorLike) -> Tensor:
        return self._updated(value, "max")

    def _updated(self, value: TensorLike, combined: str | None) -> Tensor:
        x, key = self._tensor, self._key
        if (
            combined is None
            and isinstance(key, Tensor)
            and key.dtype is bool_
            and same_form(key.shape, x.shape)
            and np.ndim(value) == 0
        ):
            return x.masked_fill(key, value)
        places, arrays = _parsed(key, x.shape)
        _flag(x.shape, places, arrays)
        return apply(lambda b, n, v, *given: indexing.replaced(b, n, places, given, v, combined), x, value, *arrays)


class Places:
    """What `x.at` is: indexed by a key, it gives At."""

    __slots__ = ("_tensor",)

    def __init__(self, x: Tensor) -> None:
        self._tensor = x

    def __getitem__(self, key: Any) -> At:
        return At(self._tensor, key)


@method
@property
def at(x: Tensor) -> Places:
    """Elements replaced by keys, as in `x.at[0, ::2].set(1)` or `x.at[index].add(y)`; x itself does not change."""
    return Places(x)
