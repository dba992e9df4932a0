"""Rows that are products of matrices, or made of them: convolutions, quantised products, recurrent layers."""

from . import attention, blocks, contract, distance, einsum, elimination, fourier, integers, quantised, recurrent  # noqa: F401 (each registers its rows)
