"""The standard's extension for linear algebra. Products run on the device; decompositions and what needs one run in
NumPy on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import bool_
from ..dtypes import dtype as dtype_of
from ..errors import DTypeError, InputError
from ..tensors.argument_errors import check_functions
from ..tensors.functions import combining
from ..tensors.numpy_fallback import numpy_fallback
from ..tensors.tensor import Tensor
from ._folds import _sum_type
from ._types import result_type


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The two factors of a QR decomposition."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# products


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors."""
    _check_numbers("matmul", x1, x2)
    kind = result_type(x1, x2)
    if kind.kind == "complex":
        return numpy_fallback("matmul", np.matmul, x1.cast(kind), x2.cast(kind))
    return x1.cast(kind).matmul(x2.cast(kind))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Every matrix of the last two axes transposed."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The products of elements, summed over the last axes of x1 and the first of x2, or over the axes named for each."""
    _check_numbers("tensordot", x1, x2)
    kind = result_type(x1, x2)
    if kind.kind == "complex":
        return numpy_fallback("tensordot", np.tensordot, x1.cast(kind), x2.cast(kind), axes=axes)
    return combining.tensordot(x1.cast(kind), x2.cast(kind), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of the products of elements along an axis; those of x1 are conjugated."""
    _check_numbers("vecdot", x1, x2)
    kind = result_type(x1, x2)
    return (x1.cast(kind).conj() * x2.cast(kind)).sum(axis, dtype=kind)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another."""
    return x1.outer(x2)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis."""
    kind = result_type(x1, x2)
    return x1.cast(kind).cross(x2.cast(kind), axis)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices to a whole power."""
    return numpy_fallback("matrix_power", np.linalg.matrix_power, x, n)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of every matrix of the last two axes."""
    return x.diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of every matrix of the last two axes."""
    kind = _sum_type(x, dtype)
    return x.diagonal(offset, -2, -1).sum(-1, dtype=kind)


def _check_numbers(what: str, *tensor: Tensor) -> None:
    for x in tensor:
        if x.dtype is bool_:
            raise DTypeError(f"{what}: got bools, expected numbers; cast them first")


# norms


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of vectors along axes."""
    return x.norm(ord, axis, keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of every matrix of the last two axes."""
    if ord == "fro":
        return x.norm(2, (-2, -1), keepdims)
    return numpy_fallback("matrix_norm", np.linalg.norm, x, ord=ord, axis=(-2, -1), keepdims=keepdims)


# decompositions


def _decomposed(what: str, function: Callable[..., Any], x: Tensor, **options: Any) -> Any:
    _check_floating(what, x)
    return numpy_fallback(what, function, x, **options)


def _check_floating(what: str, x: Tensor) -> None:
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"{what}: got {x.dtype}, expected a floating-point dtype; cast it first")


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular matrix whose product with its conjugate transpose is x."""
    lower = _decomposed("cholesky", np.linalg.cholesky, x)
    return lower.mT.conj() if upper else lower


def det(x: Tensor, /) -> Tensor:
    """The determinant of every matrix."""
    return _decomposed("det", np.linalg.det, x)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues, in ascending order, and the eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*_decomposed("eigh", np.linalg.eigh, x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    return _decomposed("eigvalsh", np.linalg.eigvalsh, x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of every matrix."""
    return _decomposed("inv", np.linalg.inv, x)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values of each matrix are larger than rtol times the largest one."""

    def found(array: np.ndarray) -> Any:
        size = np.linalg.svd(array, compute_uv=False)
        least = max(array.shape[-2:]) * np.finfo(array.dtype).eps if rtol is None else np.asarray(_elements(rtol))
        limit = size.max(-1, keepdims=True, initial=0) * np.asarray(least)[..., None]
        return np.asarray((size > limit).sum(-1), np.int64)

    return _decomposed("matrix_rank", found, x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverse of every matrix."""
    least = max(x.shape[-2:]) * np.finfo(dtype_of(x.dtype).numpy).eps if rtol is None else _elements(rtol)
    return _decomposed("pinv", np.linalg.pinv, x, rcond=least)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Matrices Q of orthonormal columns and upper triangular R with Q @ R = x."""
    if mode not in ("reduced", "complete"):
        raise InputError(f"qr: got mode={mode!r}, expected 'reduced' or 'complete'; qr(x).R is R alone")
    return QRResult(*_decomposed("qr", np.linalg.qr, x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of every determinant, and the logarithm of its absolute value."""
    return SlogdetResult(*_decomposed("slogdet", np.linalg.slogdet, x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution y of x1 @ y = x2."""

    def found(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b)

    _check_floating("solve", x1)
    return numpy_fallback("solve", found, x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Matrices U and Vh and singular values S, in descending order, with U @ diag(S) @ Vh = x."""
    return SVDResult(*_decomposed("svd", np.linalg.svd, x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of every matrix, in descending order."""
    return _decomposed("svdvals", np.linalg.svd, x, compute_uv=False)


def _elements(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


check_functions(globals())
