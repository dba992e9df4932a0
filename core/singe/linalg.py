"""Linear algebra under the names of torch.linalg, with PyTorch's parameters. Products run on the device; decompositions and
what needs one run in NumPy on the host."""

from __future__ import annotations

import math
import typing as _typing
from collections.abc import Sequence
from typing import Any, Final

from .array_api import linalg as _standard
from .array_api.linalg import cholesky, det, eigh, eigvalsh, inv, matmul, matrix_rank, pinv, qr, slogdet, svd, svdvals
from .errors import InputError, ShapeError
from .hints import no_attribute as _no_attribute
from .shapes import same_form, show
from .tensors.argument_errors import check_functions as _check_functions
from .tensors.functions.combining import chain_matmul
from .tensors.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "vander", "vecdot", "vector_norm",
]  # fmt: skip

_MATRICES: Final = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)
"""The orders of matrix norms."""

matrix_exp = Tensor.matrix_exp
matrix_power = Tensor.matrix_power


def cross(x: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis."""
    return _standard.cross(x, other, axis=dim)


def diagonal(x: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of every matrix that two axes make."""
    return x.diagonal(offset, dim1, dim2)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, of which the first and the last may be vectors."""
    return chain_matmul(*tensors)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element of a vector, one row for each; N: as many as elements, if none is given."""
    return x.vander(N, increasing=True)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of the products of elements along an axis; those of x are conjugated."""
    return _standard.vecdot(x, y, axis=dim)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution X of A @ X = B, or of X @ A = B with left=False. B is a vector, or a stack of them, if it has the shape
    of A without its last axis."""
    if not left:
        return _standard.solve(A.mT, B.mT).mT
    if B.ndim == 1 or same_form(B.shape, A.shape[:-1]):
        return _standard.solve(A, B.unsqueeze(-1)).squeeze(-1)
    return _standard.solve(A, B)


def norm(
    x: Tensor, ord: float | str | None = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of vectors along an axis, or of matrices along two. Without axes, that of the one vector or matrix; without
    axes and order, the root of the sum of all squares."""
    if ord is None:
        return x.norm(2, dim, keepdim, dtype)
    axes = tuple(range(x.ndim)) if dim is None else tuple(dim) if isinstance(dim, Sequence) else (dim,)
    if len(axes) == 1:
        return vector_norm(x, ord, axes, keepdim, dtype=dtype)
    if len(axes) == 2:
        return matrix_norm(x, ord, axes, keepdim, dtype=dtype)
    raise ShapeError(f"norm: got {len(axes)} axes of {show(x.shape)} and ord={ord!r}, expected one or two: pass dim=")


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors along axes (all, if none is given): the root of this order of the sum of powers."""
    if isinstance(ord, str):
        raise InputError(f"vector_norm: got ord={ord!r}, expected a number; matrix_norm takes 'fro' and 'nuc'")
    return x.norm(ord, dim, keepdim, dtype)


def matrix_norm(
    x: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of every matrix that two axes make: "fro" and "nuc", 2 and -2 of singular values, 1 and -1 of the sums of
    columns, ±inf of those of rows."""
    if ord not in _MATRICES:
        raise InputError(f"matrix_norm: got ord={ord!r}, expected one of {', '.join(map(repr, _MATRICES))}")
    if len(dim) != 2:
        raise InputError(f"matrix_norm: got dim={dim!r}, expected two axes")
    x = x if dtype is None else x.cast(dtype)
    found = _standard.matrix_norm(x.movedim(tuple(dim), (-2, -1)), ord=ord, keepdims=keepdim)
    return found.movedim((-2, -1), tuple(dim)) if keepdim else found


if not _typing.TYPE_CHECKING:  # which would take every name for one of this module

    def __getattr__(name: str) -> Any:
        raise _no_attribute(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)


_check_functions(globals())
