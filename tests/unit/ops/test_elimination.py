"""Determinants and inverses of matrices that are eliminated in a loop, and of singular ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, few, run_model

from singe.dtypes import float32
from singe.graph import Builder, Graph, gradient
from singe.shapes import size

N = size("N")


def _run(device: str, row: str, x: np.ndarray, shape: Any) -> np.ndarray:
    b = Builder()
    node = b.input("x", shape, float32)
    return run_model(device, Graph((node,), (getattr(b, row)(node),), ("y",)), [x])[0]


@pytest.fixture
def matrices() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 3, 9, 9)).astype(np.float32)


@RUNNERS
@few(2, "shape", [(2, 3, 9, 9), (2, N, 9, 9), (2, 3, N, N)], ids=str)
def test_large_matrices_need_a_loop(shape: Any, matrices: np.ndarray, device_name: str) -> None:
    wide = matrices.astype(np.float64)
    np.testing.assert_allclose(_run(device_name, "det", matrices, shape), np.linalg.det(wide), rtol=1e-3)
    np.testing.assert_allclose(_run(device_name, "inverse", matrices, shape), np.linalg.inv(wide), atol=2e-3)


@RUNNERS
def test_gradients_need_no_gradient_of_the_loop(matrices: np.ndarray, device_name: str) -> None:
    b, x = Builder(), matrices[0, 0]
    node = b.input("x", x.shape, float32)
    (dx,) = gradient(Graph((node,), (b.det(node),), ("y",)), b, [b.const(1.0)], [node])
    (got,) = run_model(device_name, Graph((node,), (dx,), ("dx",)), [x])
    wide = x.astype(np.float64)
    wanted = np.linalg.det(wide) * np.linalg.inv(wide).T
    np.testing.assert_allclose(got, wanted, atol=1e-3 * np.abs(wanted).max())


@RUNNERS
@pytest.mark.parametrize("count", [2, 5, 9])
def test_the_determinant_of_a_singular_matrix_is_zero(count: int, device_name: str) -> None:
    x = np.zeros((count, count), np.float32)
    x[0, -1] = 3
    assert _run(device_name, "det", x, x.shape) == 0
