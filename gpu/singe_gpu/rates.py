"""The cuts of products on subgroup matrices, and the measured rates by which one is chosen: a dialect names its table.

kernels/cut_choice.py says what the times of a Rate are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SUBGROUP_LANES: Final = 32
"""The invocations of a subgroup, as SUBGROUP_MATRIX says."""


@dataclass(frozen=True)
class MatrixCut:
    """A cut by subgroup matrices: the tiles of a workgroup and of a subgroup, in elements.

    A turn of the loop covers `parts` parts of `depth`: an even number of them, or as many as lie in workgroup memory where they
    are copied ahead.
    """

    rows: int
    columns: int
    depth: int
    sub_rows: int
    sub_columns: int
    parts: int = 2

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.depth} by {self.sub_rows}×{self.sub_columns}, {self.parts} a turn"

    @property
    def subgroups(self) -> int:
        return self.rows // self.sub_rows * (self.columns // self.sub_columns)

    @property
    def threads(self) -> int:
        return self.subgroups * SUBGROUP_LANES


@dataclass(frozen=True)
class Rate:
    """The fitted times of a cut, in microseconds."""

    alone: float
    full: float
    ends: float

    def cost(self, turns: int, workgroups: int) -> float:
        return (turns + self.ends) * (self.alone + workgroups * self.full)


MATRIX_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(64, 256, 16, 64, 64, 4): Rate(1.38, 0.00595, 3.11),
    MatrixCut(128, 128, 16, 64, 64): Rate(1.37, 0.00671, 2.52),
    MatrixCut(64, 128, 16, 32, 64, 4): Rate(0.892, 0.00481, 2.24),
    MatrixCut(64, 64, 32, 32, 32): Rate(0.878, 0.00652, 3.76),
    MatrixCut(32, 64, 64, 16, 32): Rate(0.786, 0.01, 2.58),
    MatrixCut(32, 32, 32, 16, 16): Rate(0.578, 0.00337, 3.21),
}
"""Fitted to 18 products in Chromium on an H200: `tests/bench/gpu.py matrices`."""
AHEAD_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 32, 64, 64, 4): Rate(0.453, 0.00845, 43.5),
    MatrixCut(128, 256, 32, 64, 64, 3): Rate(0.537, 0.0169, 47.7),
    MatrixCut(256, 128, 32, 64, 64, 3): Rate(0.662, 0.0184, 41),
    MatrixCut(128, 128, 32, 64, 64, 3): Rate(0.417, 0.00855, 45),
    MatrixCut(128, 128, 32, 64, 32, 3): Rate(0.452, 0.00897, 42.2),
    MatrixCut(128, 64, 32, 32, 32, 4): Rate(0.447, 0.00737, 24.9),
    MatrixCut(64, 64, 64, 32, 32, 3): Rate(0.751, 0.00881, 11.2),
    MatrixCut(64, 64, 32, 32, 32, 4): Rate(0.391, 0.00459, 21.5),
    MatrixCut(32, 64, 64, 16, 32, 3): Rate(0.669, 0.0065, 9.86),
    MatrixCut(32, 32, 64, 16, 16, 3): Rate(0.552, 0.00456, 10.5),
}
"""For a language that copies ahead, fitted to 18 products of CUDA on an H200: `gpu.py matrices --device cuda:0`."""
SINGLE_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(128, 128, 32, 64, 64): Rate(0.655, 0.0327, 4.17),
    MatrixCut(128, 128, 32, 64, 32): Rate(0.566, 0.0332, 2.83),
    MatrixCut(128, 64, 16, 64, 32, 4): Rate(0.15, 0.00914, 3.79),
    MatrixCut(64, 64, 32, 32, 32, 3): Rate(0.276, 0.00931, 1.49),
    MatrixCut(64, 64, 16, 32, 32, 4): Rate(0.146, 0.00462, 3.13),
    MatrixCut(32, 32, 64, 16, 16, 3): Rate(0.166, 0.00594, 0.548),
}
"""The same for products of float32, fitted to 19 of CUDA: `gpu.py matrices --device cuda:0 --kind float32`."""
