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
    MatrixCut(128, 128, 32, 64, 64): Rate(0.655, 0.0327, 4.17),
    MatrixCut(128, 128, 32, 64, 32): Rate(0.566, 0.0332, 2.83),
    MatrixCut(128, 64, 16, 64, 32, 4): Rate(0.15, 0.00914, 3.79),
    MatrixCut(64, 64, 32, 32, 32, 3): Rate(0.276, 0.00931, 1.49),
    MatrixCut(64, 64, 16, 32, 32, 4): Rate(0.146, 0.00462, 3.13),
    MatrixCut(32, 32, 64, 16, 16, 3): Rate(0.166, 0.00594, 0.548),
}
"""The same for products of float32, fitted to 19: `gpu.py matrices --device cuda:0 --kind float32`."""
