"""The measured rates by which the cuts of products are chosen on NVIDIA's cards: see singe_gpu/rates.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe_gpu.rates import MatrixCut, Rate

HALF_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 32, 64, 64, 4): Rate(1.16, 0.00604, 81.7),
    MatrixCut(128, 256, 32, 64, 64, 3): Rate(0.704, 0.0189, 22),
    MatrixCut(256, 128, 32, 64, 64, 3): Rate(0.781, 0.0206, 17.5),
    MatrixCut(128, 128, 32, 64, 64, 3): Rate(0.532, 0.00984, 17.6),
    MatrixCut(128, 128, 32, 64, 32, 3): Rate(0.551, 0.0103, 16.9),
    MatrixCut(128, 64, 32, 32, 32, 4): Rate(0.45, 0.00812, 9.8),
    MatrixCut(64, 64, 64, 32, 32, 3): Rate(0.802, 0.0102, 2.78),
    MatrixCut(64, 64, 32, 32, 32, 4): Rate(0.346, 0.00524, 6.12),
    MatrixCut(32, 64, 64, 16, 32, 3): Rate(0.502, 0.00739, 2.59),
    MatrixCut(32, 32, 64, 16, 16, 3): Rate(0.387, 0.00394, 4.81),
    MatrixCut(128, 256, 64, 16, 256, 4, wide=True): Rate(0.846, 0.0153, 15.9),
    MatrixCut(128, 128, 64, 16, 128, 4, wide=True): Rate(0.735, 0.0124, 9.35),
    MatrixCut(128, 128, 64, 16, 128, 3, wide=True): Rate(0.819, 0.0122, 9.19),
    MatrixCut(64, 128, 64, 16, 128, 4, wide=True): Rate(0.644, 0.00715, 8.44),
    MatrixCut(64, 64, 64, 16, 64, 4, wide=True): Rate(0.557, 0.00458, 6.29),
}
"""Fitted to 22 products of float16 on an H200: `gpu.py matrices --device cuda:0`."""
SINGLE_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 32, 64, 64): Rate(3.62, 0.0127, 10),
    MatrixCut(128, 128, 32, 64, 32): Rate(1.36, 0.0218, 5.32),
    MatrixCut(128, 64, 16, 64, 32, 4): Rate(0.495, 0.00662, 6.26),
    MatrixCut(64, 64, 32, 32, 32, 3): Rate(0.461, 0.00768, 2.03),
    MatrixCut(64, 64, 16, 32, 32, 4): Rate(0.251, 0.0038, 4.44),
    MatrixCut(32, 32, 64, 16, 16, 3): Rate(0.156, 0.00491, 1.33),
}
"""The same for products of float32, fitted to 14 of 75 million to 8.6 billion multiply-adds: `gpu.py matrices --device cuda:0 --kind float32`."""
INTEGER_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 64, 64, 32): Rate(1.89, 0.0087, 1.25),
    MatrixCut(64, 64, 64, 32, 32): Rate(0.695, 0.00385, 6.3),
    MatrixCut(32, 64, 64, 16, 32): Rate(0.838, 0.00203, 4.25),
    MatrixCut(32, 32, 64, 16, 16): Rate(0.892, 0.00143, 2.5),
}
"""The same for products of 8-bit integers, fitted to nine of 75 million to 69 billion multiply-adds on an H200."""
PACKED_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 32, 64, 32): Rate(0.727, 0.0139, 5.54),
    MatrixCut(64, 128, 32, 32, 32): Rate(0.485, 0.00949, 4.88),
    MatrixCut(64, 128, 64, 32, 32): Rate(0.805, 0.0148, 3.62),
    MatrixCut(64, 64, 64, 32, 32): Rate(0.422, 0.0102, 2.39),
    MatrixCut(64, 64, 128, 32, 32): Rate(0.93, 0.0196, 1.4),
    MatrixCut(32, 64, 192, 32, 32): Rate(0.659, 0.0122, 2.01),
    MatrixCut(32, 64, 256, 32, 32): Rate(0.978, 0.019, 1.12),
    MatrixCut(16, 64, 128, 16, 32): Rate(0.262, 0.00576, 0.9),
    MatrixCut(16, 64, 192, 16, 32): Rate(0.343, 0.00786, 2.16),
    MatrixCut(16, 64, 256, 16, 32): Rate(0.351, 0.0115, 1.05),
    MatrixCut(16, 64, 32, 16, 32): Rate(0.27, 0.00134, 2.42),
}
"""The same for products of floats by packed weights, whose depth is that of all slices of a workgroup; fitted to 35 of 4 bits, in blocks
of 32, on an H200: `gpu.py matrices --device cuda:0 --kind int4`."""
