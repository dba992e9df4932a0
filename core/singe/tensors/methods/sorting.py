"""Methods that sort, find and count elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ...dtypes import COMPLEX, bool_, float32, float64, int32, int64, uint8
from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...ops.movement.move import numbered
from ...shapes import MAX_ELEMENTS, Dim, axis_of, same_form, show, whole
from ..arithmetic import placed
from ..calls import apply_row
from ..nodes.promotion import plain_array
from ..nodes.shaping import known_length
from ..numpy_fallback import check_classes, numpy_fallback, on_device
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method


class Ordered(NamedTuple):
    """Elements in order, and the index of each along the axis."""

    values: Tensor
    indices: Tensor

    if not TYPE_CHECKING:  # which knows the fields
        __array_ufunc__ = None  # so that `array - pair` calls our operator, not NumPy's

        def __getattr__(self, name: str) -> Any:
            """The error for what only the values have."""
            hint = f"; {_PAIR}" if hasattr(Tensor, name) and not name.startswith("__") else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}", name=name, obj=self)


def _no_operand(pair: Ordered, *_: Any) -> Any:
    raise InputError(f"an operation got a pair in place of a tensor: {_PAIR}")


_PAIR: Final = (
    "the values and the indices are returned together; write .values, as in x.max(1).values (x.amax(1) and x.amin(1) give the "
    "values alone)"
)
_OPERATORS: Final = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul",
    "rmatmul", "lt", "le", "gt", "ge", "neg", "abs", "float", "int",
)  # fmt: skip
for _name in _OPERATORS:  # a tuple's own would repeat or compare the pair
    setattr(Ordered, f"__{_name}__", _no_operand)


@method
def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Ordered:
    """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
    at = axis_of(axis, x.ndim, "sort")
    if x.dtype is bool_:
        values, indices = x.cast(uint8).sort(at, descending)
        return Ordered(values.cast(bool_), indices)
    return Ordered(*apply_row(ROWS["sort"], (x,), axis=at, descending=descending))


@method
def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that put the elements in order along an axis."""
    return x.sort(axis, descending).indices


@method
def topk(x: Tensor, k: Dim, axis: int = -1, largest: bool = True, sorted: bool = True) -> Ordered:
    """The k largest (or smallest) elements along an axis, always in order, and their indices."""
    k = whole(k, "topk", "k")
    return Ordered(*apply_row(ROWS["top_k"], (x,), axis=axis_of(axis, x.ndim, "topk"), k=k, largest=largest))


alias("top_k", topk)


@method
def nonzero(x: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of all elements that are not zero, one row each. as_tuple: one vector for each axis."""
    if not x.ndim:  # a number has no coordinates; PyTorch's tuple is that of a vector
        found = x.reshape(1).nonzero()
        return (found[:, 0],) if as_tuple else found[:, :0]
    found = apply_row(ROWS["nonzero"], (x,))
    return found.unbind(0) if as_tuple else found.T


@method
def unique(
    x, ordered: bool = True, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, *,
    return_index: bool = False,
) -> Any:  # fmt: skip
    """The distinct elements (or slices along an axis), in order or as they come first. With more results, a tuple: the
    first index of each, the index of every element's value among them, how often each occurs."""
    if x.dtype is bool_:
        found = x.cast(uint8).unique(ordered, return_inverse, return_counts, axis, return_index=return_index)
        return (found[0].cast(bool_), *found[1:]) if isinstance(found, tuple) else found.cast(bool_)
    values, first, inverse, counts = apply_row(ROWS["unique"], (x,), axis=axis, ordered=ordered)
    inverse = inverse.reshape(x.shape) if axis is None else inverse
    asked = ((first, return_index), (inverse, return_inverse), (counts, return_counts))
    more = [result for result, wanted in asked if wanted]
    return (values, *more) if more else values


@method
def masked_select(x: Tensor, mask: Tensor | np.ndarray) -> Tensor:
    """The elements where a mask holds, as a vector."""
    return x[mask.broadcast_to(x.shape) if isinstance(mask, Tensor) else np.broadcast_to(mask, x.shape)]


@method
def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the index that each element is along a new last axis, 0 elsewhere. num_classes: the length of the axis; by
    default the largest element and one."""
    if not x.dtype.is_int:
        raise InputError(f"one_hot: got {x.dtype}, expected integers")
    given = whole(num_classes, "one_hot", "num_classes")
    count = given if given >= 0 else int(x.max()) + 1
    check_classes(x, count, "one_hot")

    def build(b: Any, n: Any) -> Any:
        classes = numbered(b, count, int64)
        return b.cast(b.equal(b.cast(n, to=int64), classes), to=int64)

    return apply(build, x.unsqueeze(-1))


@method
def kthvalue(x: Tensor, k: int, axis: int = -1, keepdims: bool = False) -> Ordered:
    """The k-th smallest element along an axis (1: the smallest), and its index."""
    at, k = axis_of(axis, x.ndim, "kthvalue"), whole(k, "kthvalue", "k")
    length = x.shape[at]
    if k < 1 or (isinstance(length, int) and k > length):
        raise InputError(f"kthvalue: got {k}, expected from 1 to {length}, the length of axis {at} of {show(x.shape)}")
    found = x.sort(at)
    return Ordered(*(y.narrow(at, k - 1, 1) if keepdims else y.select(at, k - 1) for y in found))


def counted(x: Tensor, axis: int, what: str) -> int:
    """The length of an axis, among whose elements one is chosen by their number."""
    instead = f"; use nan{what}, which takes open axes and leaves NaN out, or give the dimension a number"
    length = known_length(x.shape, axis, what, instead)
    if not length:
        raise ShapeError(f"{what}: axis {axis} of {show(x.shape)} has no elements, expected some")
    return length


@method
def median(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
    if axis is None:
        return (
            x.flatten().median(0).values
            if not (x.dtype.is_float and same_form(x.size, 0))
            else x.new_full((), math.nan)
        )
    at = axis_of(axis, x.ndim, "median")
    length = counted(x, at, "median")
    found = x.kthvalue((length + 1) // 2, at, keepdims)
    if not x.dtype.is_float:
        return found
    last = x.kthvalue(length, at, keepdims)  # NaN, if there is one
    return Ordered(*(wrong.where(last.values.isnan(), y) for wrong, y in zip(last, found, strict=True)))


def _counted(values: np.ndarray, *weights: np.ndarray, minlength: int) -> np.ndarray:
    for found in (values.min(), values.max()) if values.size else ():
        if not 0 <= found < MAX_ELEMENTS:
            raise InputError(f"bincount: got the element {found}, expected integers from 0 to {MAX_ELEMENTS - 1}")
    return np.bincount(values.astype(np.int64), *weights, minlength=minlength)


@method
def bincount(x: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on is an element; with weights, the sum of those beside it."""
    if x.ndim != 1 or not x.dtype.is_int:
        raise InputError(f"bincount: got {x.dtype}{show(x.shape)}, expected a vector of integers")
    if whole(minlength, "bincount", "minlength") < 0:
        raise InputError(f"bincount: minlength is {minlength}, expected 0 or more")
    if weights is None:
        return numpy_fallback("bincount", _counted, x, minlength=minlength)
    beside = weights if isinstance(weights, (Tensor, np.ndarray)) else np.asarray(weights, np.float32)
    beside = placed(x, beside)[1]
    if not same_form(beside.shape, x.shape):
        raise ShapeError(
            f"bincount: got weights of {show(beside.shape)}, expected {show(x.shape)}, one for each element"
        )
    sums = numpy_fallback("bincount", _counted, x, beside, minlength=minlength)
    return sums.cast(float32 if beside.dtype is float32 else float64)


@method
def searchsorted(
    x: Tensor, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None
) -> Tensor:
    """The indices in a vector in order at which values would be inserted to keep the order: before elements that are equal,
    or with right=True (or side="right") behind them. Of vectors along the last axis, those of the values at the same place."""
    if side not in (None, "left", "right"):
        raise InputError(f"searchsorted: side is {side!r}, expected 'left' or 'right'")
    given = _beside(x, values)
    place = _inserted(x, given, right or side == "right")
    return place.cast(int32) if out_int32 else place


def _inserted(x: Tensor, values: Tensor, right: bool) -> Tensor:
    if x.ndim > 1:
        if not same_form(x.shape[:-1], values.shape[:-1]):
            raise ShapeError(
                f"searchsorted: values {show(values.shape)} in {show(x.shape)}: expected the same leading axes"
            )
        less = x.unsqueeze(-2) <= values.unsqueeze(-1) if right else x.unsqueeze(-2) < values.unsqueeze(-1)
        return less.sum(-1)
    count = x.shape[0] if x.ndim == 1 else None
    if not isinstance(count, int) or x.dtype in COMPLEX:
        return numpy_fallback("searchsorted", np.searchsorted, x, values, side="right" if right else "left")
    place = values.cast(bool_).cast(int64) * 0
    last = values.isnan() if values.dtype.is_float else None  # NaN is the largest
    for power in reversed(range(count.bit_length())):
        further = place + (1 << power)
        element = x[(further - 1).clip(0, count - 1)]
        goes = element <= values if right else element < values
        if last is not None:
            goes = goes | (last if right else last & element.isnan().logical_not())
        place = further.where(goes & (further <= count), place)
    return place


@method
def bucketize(
    x: Tensor, boundaries: Tensor | np.ndarray | Sequence[float], *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of the interval between boundaries in order that each element lies in."""
    return _beside(x, boundaries).searchsorted(x, out_int32=out_int32, right=right)


def _beside(x: Tensor, values: Any) -> Tensor:
    """What is compared with elements, on their device; numbers beside floats have their dtype."""
    if isinstance(values, Tensor):
        return values
    kind = x.dtype if x.dtype.is_float and not isinstance(values, np.ndarray) else None
    return on_device(plain_array(values, kind), x.device, kind)


@method
def isin(
    elements: Tensor, test_elements: TensorLike, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:  # fmt: skip
    """Whether each element is one of the others; invert: whether it is none of them."""
    others = placed(elements, test_elements)[1]
    others = others.reshape(-1) if isinstance(others, Tensor) else elements.new_tensor([others])
    found = (elements.unsqueeze(-1) == others).any(-1)
    return found.logical_not() if invert else found


@method
def msort(x: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return x.sort(0).values


alias("argwhere", nonzero)
