"""`singe.linalg` and `singe.fft` take what torch.linalg and torch.fft take, and give what NumPy gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import fft, linalg

RANDOM = np.random.default_rng(5)
A = RANDOM.standard_normal((2, 3, 3), dtype=np.float32)
B = RANDOM.standard_normal((2, 3, 4), dtype=np.float32)
Z = RANDOM.standard_normal((2, 4, 5), dtype=np.float32)
SYMMETRIC = A @ A.swapaxes(1, 2) + np.eye(3, dtype=np.float32)
FIRST = A[..., 0]
a, b, z, symmetric = map(sg.tensor, (A, B, Z, SYMMETRIC))


def agree(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-4, atol=2e-5)


def test_the_functions_of_matrices_are_numpys() -> None:
    for name in ("det", "inv", "pinv", "eigvalsh", "cholesky", "matrix_rank"):
        of, array = (symmetric, SYMMETRIC) if name in ("eigvalsh", "cholesky") else (a, A)
        agree(getattr(linalg, name)(of), getattr(np.linalg, name)(array))
    agree(linalg.svdvals(b), np.linalg.svd(B, compute_uv=False))
    agree(linalg.matrix_power(a, 3), A @ A @ A)
    agree(linalg.multi_dot([a[0], b[0], z[0]]), A[0] @ B[0] @ Z[0])
    agree(linalg.cross(a, a.roll(1, 0)), np.cross(A, A[::-1]))
    agree(linalg.cross(a, a.roll(1, 0), dim=1), np.cross(A, A[::-1], axis=1))
    agree(linalg.vecdot(a, a, dim=1), (A * A).sum(1))
    agree(linalg.diagonal(b, offset=1, dim1=0), np.diagonal(B, 1, 0, 2))
    agree(linalg.vander(a[0, 0], N=4), np.vander(A[0, 0], 4, increasing=True))
    agree(linalg.matrix_exp(a * 0), np.broadcast_to(np.eye(3), A.shape))


def test_decompositions_have_pytorchs_fields() -> None:
    q, r = linalg.qr(b)
    agree(q @ r, B)
    assert linalg.qr(b.mT, mode="complete").Q.shape == (2, 4, 4)
    with pytest.raises(sg.InputError, match=r"expected 'reduced' or 'complete'; qr\(x\).R"):
        linalg.qr(b, mode="r")
    u, s, vh = linalg.svd(b, full_matrices=False)
    agree(u * s.unsqueeze(1) @ vh, B)
    found = linalg.eigh(symmetric)
    agree(found.eigenvectors * found.eigenvalues.unsqueeze(1) @ found.eigenvectors.mT, SYMMETRIC)
    assert linalg.slogdet(a).sign.numpy().tolist() == np.sign(np.linalg.det(A)).tolist()


def test_solve_takes_matrices_vectors_and_stacks_of_them_on_either_side() -> None:
    agree(linalg.solve(a, b), np.linalg.solve(A, B))
    agree(linalg.solve(a[0], a[0, 0]), np.linalg.solve(A[0], A[0, 0]))
    agree(linalg.solve(a, sg.tensor(FIRST)), np.linalg.solve(A, FIRST[..., None])[..., 0])
    agree(linalg.solve(a, b.mT, left=False) @ a, B.swapaxes(1, 2))


@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_are_of_vectors_or_of_matrices(keepdim: bool) -> None:
    for order in (0, 1, 2, 3, math.inf, -math.inf):
        agree(linalg.vector_norm(z, order, 1, keepdim), np.linalg.norm(Z, order, 1, keepdim))
        agree(linalg.norm(z, order, 1, keepdim), np.linalg.norm(Z, order, 1, keepdim))
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        for dim in ((-2, -1), (0, 1), (2, 0)):
            want = np.linalg.norm(Z, order, dim, keepdim)  # pyright: ignore
            agree(linalg.matrix_norm(z, order, dim, keepdim), want)
            agree(linalg.norm(z, order, dim, keepdim), want)
    agree(z.norm("nuc", (0, 2), keepdim), np.linalg.norm(Z, "nuc", (0, 2), keepdim))
    agree(linalg.norm(z), np.sqrt((Z * Z).sum()))
    agree(linalg.norm(z[0], 1), np.linalg.norm(Z[0], 1))
    agree(linalg.norm(z, dim=2), np.linalg.norm(Z, axis=2))


def test_orders_and_axes_that_a_norm_has_not_are_refused() -> None:
    with pytest.raises(sg.ShapeError, match=r"got 3 axes .* pass dim="):
        linalg.norm(z, 1)
    with pytest.raises(sg.InputError, match="got ord=3, expected one of 'fro'"):
        linalg.matrix_norm(z, 3)
    with pytest.raises(sg.InputError, match=r"got dim=\(1,\), expected two axes"):
        linalg.matrix_norm(z, dim=(1,))
    with pytest.raises(sg.ShapeError, match="got p='nuc' over 3 axes"):
        z.norm("nuc")
    with pytest.raises(sg.InputError, match="matrix_norm takes"):
        linalg.vector_norm(z, "fro")


def test_transforms_are_numpys_along_the_axes_that_dim_names() -> None:
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        agree(getattr(fft, name)(z), getattr(np.fft, name)(Z))
        agree(getattr(fft, name)(z, 3, dim=1, norm="ortho"), getattr(np.fft, name)(Z, 3, 1, "ortho"))
    for name in ("fft", "ifft", "rfft", "irfft"):
        agree(getattr(fft, f"{name}2")(z), getattr(np.fft, f"{name}2")(Z))
        agree(getattr(fft, f"{name}n")(z), getattr(np.fft, f"{name}n")(Z))
        agree(getattr(fft, f"{name}n")(z, dim=(0, 2)), getattr(np.fft, f"{name}n")(Z, axes=(0, 2)))
    agree(fft.fft(sg.tensor([1, 2, 3])), np.fft.fft([1, 2, 3]))
    agree(fft.fftfreq(5, 0.5), np.fft.fftfreq(5, 0.5))
    agree(fft.rfftfreq(5), np.fft.rfftfreq(5))
    agree(fft.ifftshift(fft.fftshift(z, dim=1), 1), Z)
    agree(fft.fftshift(z), np.fft.fftshift(Z))
