"""Rows that are products of matrices, or made of them: convolutions, quantised products, recurrent layers."""

from . import attention, contract, quantised, recurrent  # noqa: F401 (each registers its rows)
