"""Functions of several Tensors: joined, broadcast, combined; and the indices of triangles."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, SupportsIndex

import numpy as np

from ...dtypes import DType, dtype, int64, promote
from ...errors import InputError, ShapeError
from ...runtime.device import Device
from ...shapes import Dim, axis_of, broadcast, product, same_form, show, whole
from ..argument_errors import check_functions
from ..methods.attach import accept_torch_names
from ..methods.special import areas
from ..nodes.promotion import KINDS, as_type, common_type
from ..nodes.shaping import Axis, given_sizes, unpacked
from ..tensor import Tensor, TensorLike, apply
from .creation import concat, meshgrid, tensor


def atleast_1d(*tensors: Any) -> Any:
    """The tensor, or a number as a vector; of several, or a list of them, a tuple."""
    return _each(lambda x: _with_axes(x, 1), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensor with leading axes of length 1 until it has two; of several, or a list of them, a tuple."""
    return _each(lambda x: _with_axes(x, 2), tensors)


def atleast_3d(*tensors: Any) -> Any:
    """The tensor with axes of length 1 until it has three: a vector of n gets (1, n, 1), a matrix (m, n, 1); of several, or
    a list of them, a tuple."""
    return _each(_space, tensors)


def _each(function: Callable[[Any], Tensor], arguments: tuple[Any, ...]) -> Any:
    several = len(arguments) != 1 or isinstance(arguments[0], (tuple, list))
    return tuple(map(function, unpacked(arguments))) if several else function(arguments[0])


def _space(x: TensorLike) -> Tensor:
    y = _with_axes(x, 2)
    return y.unsqueeze(-1) if y.ndim < 3 else y


def _with_axes(x: TensorLike, least: int) -> Tensor:
    y = x if isinstance(x, Tensor) else tensor(x)
    return y.reshape((1,) * (least - y.ndim) + tuple(y.shape)) if y.ndim < least else y


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 1; vectors are columns."""
    return concat([x if x.ndim > 1 else x.reshape(-1, 1) for x in tensors], 1)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 2, of three axes at least."""
    return concat([_space(x) for x in tensors], 2)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[Dim, ...]:
    """The shape to which arrays of these shapes broadcast."""
    return broadcast([given_sizes((s,), "broadcast_shapes") for s in shapes], "broadcast_shapes")


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, each repeated to the shape to which all broadcast."""
    shape = broadcast([x.shape for x in tensors], "broadcast_tensors")
    return tuple(x.broadcast_to(shape) for x in tensors)


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix that has the given matrices on its diagonal; vectors are rows."""
    blocks = [_with_axes(x, 2) for x in tensors]
    if not blocks or any(x.ndim != 2 for x in blocks):
        raise InputError(f"block_diag: got {', '.join(show(x.shape) for x in tensors) or 'nothing'}, expected matrices")
    width = sum(x.shape[1] for x in blocks)
    rows, start = [], 0
    for x in blocks:
        rows.append(x.pad((start, width - start - x.shape[1])))
        start += x.shape[1]
    return concat(rows, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of an element of each vector, one row each."""
    if len(tensors) == 1:
        return tensors[0]
    return concat([x.reshape(-1, 1) for x in meshgrid(*tensors)], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order, one row each; with_replacement: one may be chosen again."""
    if x.ndim != 1 or not isinstance(x.shape[0], int) or r < 1:
        raise ShapeError(
            f"combinations: got {show(x.shape)} and r={r}, expected a vector of known length and r above 0"
        )
    chosen = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(
        range(x.shape[0]), r
    )
    return x.take(np.array(list(chosen), np.int64).reshape(-1, r))


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices."""
    return reduce(operator.matmul, unpacked(matrices))


def tensordot(x: Tensor, y: Tensor, dims: int | tuple[Axis, Axis] = 2) -> Tensor:
    """Sums of products over the last `dims` axes of x and the first of y, or over the given axes of both."""
    if isinstance(dims, SupportsIndex):
        dims = operator.index(dims)
        if not 0 <= dims <= min(x.ndim, y.ndim):
            raise ShapeError(
                f"tensordot: {dims} axes of {show(x.shape)} and {show(y.shape)}, which have fewer; expected at most as many as each has"
            )
        dims = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    named: Any = ([axes] if isinstance(axes, SupportsIndex) else axes for axes in dims)
    own, others = ([axis_of(a, z.ndim, "tensordot") for a in axes] for axes, z in zip(named, (x, y), strict=True))
    if not same_form(tuple(x.shape[a] for a in own), tuple(y.shape[a] for a in others)):
        raise ShapeError(
            f"tensordot: the axes {own} of {show(x.shape)} and {others} of {show(y.shape)}, expected as many, of the same lengths"
        )
    kept, rest = [a for a in range(x.ndim) if a not in own], [a for a in range(y.ndim) if a not in others]
    rows, columns = [x.shape[a] for a in kept], [y.shape[a] for a in rest]
    depth = product([x.shape[a] for a in own])
    left = x.permute((*kept, *own)).reshape(product(rows), depth)
    right = y.permute((*others, *rest)).reshape(depth, product(columns))
    return (left @ right).reshape((*rows, *columns))


@accept_torch_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral along an axis of lines through points: at the places x, or at distances dx."""
    return areas(y, x, dx, axis).sum(-1)


trapz = trapezoid


@accept_torch_names
def std_mean(x: Tensor, axis: Any = None, correction: int = 1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    return x.std(axis, correction=correction, keepdims=keepdims), x.mean(axis, keepdims)


@accept_torch_names
def var_mean(x: Tensor, axis: Any = None, correction: int = 1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    return x.var(axis, correction=correction, keepdims=keepdims), x.mean(axis, keepdims)


def tril_indices(row: int, col: int, offset: int = 0, *, device: str | Device | None = None) -> Tensor:
    """The rows and columns of the elements on and below a diagonal of a row × col matrix."""
    return tensor(np.stack(np.tril_indices(*_corners(row, col, offset, "tril_indices"))), int64, device)


def triu_indices(row: int, col: int, offset: int = 0, *, device: str | Device | None = None) -> Tensor:
    """The rows and columns of the elements on and above a diagonal of a row × col matrix."""
    return tensor(np.stack(np.triu_indices(*_corners(row, col, offset, "triu_indices"))), int64, device)


def _corners(row: int, col: int, offset: int, what: str) -> tuple[int, int, int]:
    return whole(row, what, "row"), whole(offset, what, "offset"), whole(col, what, "col")


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, along each axis of a shape, of indices into the flat tensor."""
    found, rest = [], indices
    for size in reversed(given_sizes((shape,), "unravel_index")):
        found.append(rest.remainder(size))
        rest = rest.floor_divide(size)
    return tuple(found[::-1])


def result_type(tensor1: TensorLike, tensor2: TensorLike) -> DType:
    """The dtype of what is computed of two tensors or numbers (docs/tensors.md)."""
    return common_type((tensor1, tensor2))


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype that holds the elements of both."""
    return promote(dtype(type1), dtype(type2))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a cast keeps the kind of number: not from complex to real, from floats to integers, or from numbers to bools."""
    start, end = (KINDS[dtype(given).kind] for given in (from_, to))
    return start <= end


def is_tensor(x: Any) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products of elements in the notation of NumPy, in the operands' common dtype: `einsum("ij,jk->ik", a, b)`."""

    def build(b: Any, *nodes: Any) -> Any:
        kind = common_type(nodes)
        return b.einsum(*(as_type(b, n, kind) for n in nodes), equation=equation)

    return apply(build, *operands)


check_functions(globals())
