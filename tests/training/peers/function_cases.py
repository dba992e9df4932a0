"""Calls that PyTorch and Singe are given alike; record_functions.py records PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RNG = np.random.default_rng(11)
A = RNG.normal(size=(3, 5)).astype(np.float32)
HOLES = np.where(RNG.random((3, 5)) < 0.4, np.nan, A).astype(np.float32)
WIDE = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 3.9, 4.0, 7.5, 30.0, -0.5, -3.3], np.float32)
SHARES = np.array([0.0, 0.1, -0.5, 0.9, -0.999, 0.99999], np.float32)
SQUARE = RNG.normal(size=(2, 3, 3)).astype(np.float32)
POSITIVE = np.stack([s @ s.T + np.eye(3, dtype=np.float32) for s in SQUARE])
I = RNG.integers(0, 4, (3, 7))
J = RNG.integers(1, 40, (3, 7))
RUNS = np.array([1, 1, 2, 2, 2, 3, 1, 1])
PICTURE = RNG.normal(size=(2, 8, 2, 3)).astype(np.float32)
MASK = RNG.random((3, 5)) < 0.5


@dataclass(frozen=True)
class Case:
    call: Callable[..., Any]
    given: Sequence[Any]


CASES: dict[str, Case] = {
    "lgamma": Case(lambda x: x.lgamma(), [WIDE]),
    "lgamma at its poles": Case(lambda x: x.lgamma(), [np.array([0.0, -1.0, np.inf, np.nan], np.float32)]),
    "digamma": Case(lambda x: x.digamma(), [WIDE]),
    "digamma at its poles": Case(lambda x: x.digamma(), [np.array([0.0, -1.0, np.inf, np.nan], np.float32)]),
    "erfinv": Case(lambda x: x.erfinv(), [SHARES]),
    "erfinv at its ends": Case(lambda x: x.erfinv(), [np.array([1.0, -1.0, 1.5, np.nan], np.float32)]),
    "gcd": Case(lambda x, y: x.gcd(y), [J, J[:, ::-1].copy()]),
    "lcm": Case(lambda x, y: x.lcm(y), [J, J[:, ::-1].copy()]),
    "logcumsumexp": Case(lambda x: x.logcumsumexp(1), [A * 60]),
    "logcumsumexp of rows": Case(lambda x: x.logcumsumexp(dim=0), [A]),
    "mode": Case(lambda x: tuple(x.mode(1)), [I]),
    "mode of columns": Case(lambda x: x.mode(dim=0, keepdim=True).values, [I]),
    "nanmedian": Case(lambda x: x.nanmedian(), [HOLES]),
    "nanmedian of rows": Case(lambda x: tuple(x.nanmedian(1)), [HOLES]),
    "nanquantile": Case(lambda x: x.nanquantile(0.3, dim=1), [HOLES]),
    "nanquantile of all": Case(lambda x: x.nanquantile(0.6), [HOLES]),
    "unique_consecutive": Case(lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), [RUNS]),
    "unique_consecutive rows": Case(lambda x: x.unique_consecutive(dim=0), [np.stack([RUNS[:4], RUNS[:4], RUNS[4:]])]),
    "slice_scatter": Case(lambda x, y: x.slice_scatter(y, 1, 1, 5, 2), [A, A[:, :2] + 9]),
    "select_scatter": Case(lambda x, y: x.select_scatter(y, 1, 2), [A, A[:, 0] + 9]),
    "index_put": Case(lambda x, i, j, y: x.index_put((i, j), y), [A, I[0, :3] % 3, np.array([0, 1, 4]), A[0, :3] + 9]),
    "index_put adds": Case(
        lambda x, i, y: x.index_put((i,), y, accumulate=True), [A, np.array([0, 0, 2]), np.ones((3, 5), np.float32)]
    ),
    "masked_scatter": Case(lambda x, m, y: x.masked_scatter(m, y), [A, MASK, A[::-1].copy()]),
    "addr": Case(lambda x, v, w: x.addr(v, w, beta=2, alpha=3), [A, A[:, 0].copy(), A[0]]),
    "matrix_power": Case(lambda x: x.matrix_power(3), [SQUARE]),
    "matrix_power 0": Case(lambda x: x.matrix_power(0), [SQUARE]),
    "matrix_power -2": Case(lambda x: x.matrix_power(-2), [POSITIVE]),
    "logdet": Case(lambda x: x.logdet(), [POSITIVE]),
    "diagflat": Case(lambda x: x.diagflat(1), [A[:, :2].copy()]),
    "hsplit": Case(lambda x: tuple(x.hsplit([2, 3])), [A]),
    "vsplit": Case(lambda x: tuple(x.vsplit(3)), [A]),
    "ger": Case(lambda x, y: x.ger(y), [A[0], A[:, 0].copy()]),
}
GRADIENTS = (
    "lgamma",
    "digamma",
    "erfinv",
    "logcumsumexp",
    "nanmedian",
    "slice_scatter",
    "masked_scatter",
    "addr",
    "matrix_power",
    "logdet",
)


def arguments(case: Case) -> list[np.ndarray]:
    """Copies, since PyTorch shares the memory of arrays."""
    return [np.array(a) for a in case.given]
