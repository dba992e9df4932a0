"""Rows that are products of matrices, or made of them: convolutions, quantised products, recurrent layers."""

from . import (  # noqa: F401 (each registers its rows)
    attention,
    blocks,
    blocks_int16,
    contract,
    distance,
    eight_bit_rows,
    einsum,
    elimination,
    fourier,
    integers,
    quantised,
    recurrent,
)
