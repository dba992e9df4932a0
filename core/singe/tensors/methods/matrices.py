"""Methods of matrices, and of stacks of them. Decompositions run in NumPy on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...dtypes import COMPLEX, float64
from ...errors import DTypeError, InputError, ShapeError
from ...ir.scalar import Number
from ...shapes import same_form, show, whole
from ..nodes.shaping import known_length
from ..numpy_fallback import numpy_fallback
from ..tensor import Tensor, TensorLike
from .attach import alias, method
from .elementwise import weighted

_TERMS: Final = 18
"""Of the series of matrix_exp, for matrices of norm 1/2: their rest is below float64's precision."""


# --- products --------------------------------------------------------------------------------------------------------


@method
def addr(x: Tensor, vec1: TensorLike, vec2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · the products of each element of a vector with each of another."""
    y = vec2.new_tensor(vec1).outer(vec2) if not isinstance(vec1, Tensor) else vec1.outer(vec2)
    return weighted(x, beta) + y * alpha


@method
def matrix_power(x: Tensor, n: int) -> Tensor:
    """Every matrix of a stack times itself, n factors; of the inverse, if n is negative."""
    if x.ndim < 2 or not same_form(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"matrix_power: got {show(x.shape)}, expected square matrices")
    square = x if n >= 0 else x.inverse()
    found: Tensor | None = None
    for bit in reversed(f"{abs(n):b}"):
        if bit == "1":
            found = square if found is None else found @ square
        square = square @ square
    return _unit(x) if found is None else found


def _unit(x: Tensor) -> Tensor:
    """Unit matrices of a stack's shape."""
    return x.new_ones(x.shape).tril().triu()


@method
def logdet(x: Tensor) -> Tensor:
    """The logarithm of the determinant of every matrix."""
    return x.det().log()


@method
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements on a diagonal."""
    return x.flatten().diag(offset)


@method
def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · the sum of the products of two stacks of matrices."""
    return weighted(x, beta) + (batch1 @ batch2).sum(0) * alpha


@method
@property
def mH(x: Tensor) -> Tensor:
    """Every matrix of a stack transposed, and its elements conjugated."""
    return x.mT.conj() if x.dtype in COMPLEX else x.mT


@method
@property
def H(x: Tensor) -> Tensor:
    """A matrix transposed, and its elements conjugated."""
    if x.ndim not in (0, 2):
        raise ShapeError(f"H: got {show(x.shape)}, expected a matrix; for several use mH")
    return x.mH if x.ndim else x.conj()


@method
def adjoint(x: Tensor) -> Tensor:
    """`mH`, called."""
    return x.mH


@method
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, N of them (as many as elements, if none is given), one row for each."""
    if x.ndim != 1:
        raise ShapeError(f"vander: got {show(x.shape)}, expected a vector")
    count = known_length(x.shape, 0, "vander", "; give N") if N is None else whole(N, "vander", "N")
    if count < 0:
        raise InputError(f"vander: got {count} columns, expected a number of 0 or more")
    exponents = list(range(count) if increasing else range(count)[::-1])
    return x.unsqueeze(1).pow(x.new_tensor(exponents, x.dtype))


alias("ger", Tensor.outer)


# --- decompositions --------------------------------------------------------------------------------------------------


def _decomposed(what: str, function: Callable[..., Any], x: Tensor, **options: Any) -> Any:
    if not x.dtype.is_float and x.dtype not in COMPLEX:
        raise DTypeError(f"{what}: got {x.dtype}, expected a floating-point dtype; cast it first")
    if x.ndim < 2:
        raise ShapeError(f"{what}: got {show(x.shape)}, expected matrices")
    return numpy_fallback(what, function, x, **options)


@method
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular matrix whose product with its transpose is x; upper: its transpose."""
    lower = _decomposed("cholesky", np.linalg.cholesky, x)
    return lower.mH if upper else lower


@method
def qr(x: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """Q, of orthogonal columns, and R, triangular, whose product is x; some: Q has no more columns than x."""
    return tuple(_decomposed("qr", np.linalg.qr, x, mode="reduced" if some else "complete"))


@method
def svd(x: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V, of x = U · diag(S) · V.H; without compute_uv, zeros in place of U and V."""
    u, s, v = _decomposed("svd", np.linalg.svd, x, full_matrices=not some)
    return (u, s, v.mH) if compute_uv else (u.new_zeros(u.shape), s, v.mH.new_zeros(v.mH.shape))


@method
def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant of every matrix, and the logarithm of its absolute value."""
    return tuple(_decomposed("slogdet", np.linalg.slogdet, x))


@method
def pinverse(x: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse (Moore's and Penrose's) of every matrix; singular values up to rcond · the largest count as 0."""
    return _decomposed("pinverse", np.linalg.pinv, x, rcond=rcond)


@method
def matrix_exp(x: Tensor) -> Tensor:
    """The exponential of every square matrix."""
    if not same_form(x.shape[-1:], x.shape[-2:-1]):
        raise ShapeError(f"matrix_exp: got {show(x.shape)}, expected square matrices")
    return _decomposed("matrix_exp", _exponential, x)


def _exponential(matrices: np.ndarray) -> np.ndarray:
    """exp(x) = exp(x / 2ⁿ)^(2ⁿ), of the series for the small matrix."""
    x = matrices.astype(np.complex128 if matrices.dtype.kind == "c" else float64.numpy)
    norm = float(np.abs(x).sum(-2).max(initial=0))
    if not math.isfinite(norm):
        return np.full_like(matrices, np.nan)
    halvings = max(0, math.ceil(math.log2(norm)) + 1) if norm else 0
    small = x / 2**halvings
    term = total = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for k in range(1, _TERMS):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total.astype(matrices.dtype)
