"""The cuts of products, and the measured rates by which one is chosen: a dialect names its tables.

kernels/products/cut_choice.py says what the times of a Rate are, gemm.py and matrix.py beside it what kernels make of cuts. The tables here are those of WGSL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

VECTOR_LENGTH: Final = 4
SUBGROUP_LANES: Final = 32
"""The invocations of a subgroup, as SUBGROUP_MATRIX says."""


@dataclass(frozen=True)
class Tile:
    """A cut by tiles: the tile of a workgroup and the part of it that one invocation holds, in elements.

    All are powers of two; the invocation's sides are multiples of 4, since it works on vectors. With `slices` > 1, that
    many teams of the workgroup each sum over a part of the depth, for products too small to fill a device otherwise.
    The innermost loop is unrolled `unroll` times; if that covers the tile's depth there is no loop.
    """

    rows: int
    columns: int
    depth: int
    thread_rows: int = 4
    thread_columns: int = 4
    slices: int = 1
    unroll: int = 4

    def __str__(self) -> str:
        sliced = f"×{self.slices}" if self.slices > 1 else ""
        return f"{self.rows}×{self.columns}×{self.depth}{sliced} by {self.thread_rows}×{self.thread_columns}"

    @property
    def team(self) -> int:
        """How many invocations compute the tile together."""
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    @property
    def threads(self) -> int:
        return self.team * self.slices

    @property
    def reach(self) -> int:
        """How much of the depth a workgroup covers in one turn."""
        return self.depth * self.slices

    @property
    def shared_bytes(self) -> int:
        """Bytes of workgroup memory; every device has 16 KiB."""
        return 4 * self.slices * self.depth * (self.rows + self.columns)


@dataclass(frozen=True)
class Thin:
    """A cut for a small product: a workgroup's tile, of which each invocation has all rows, and slices of the depth."""

    rows: int
    columns: int
    slices: int

    def __str__(self) -> str:
        return f"thin {self.rows}×{self.columns}×{self.slices}"

    @property
    def vectors(self) -> int:
        """Vectors in a row of the tile."""
        return self.columns // VECTOR_LENGTH

    @property
    def threads(self) -> int:
        return self.vectors * self.slices

    @property
    def reach(self) -> int:
        return self.slices * VECTOR_LENGTH

    @property
    def shared_bytes(self) -> int:
        return 16 * self.rows * self.threads


@dataclass(frozen=True)
class MatrixCut:
    """A cut by subgroup matrices: the tiles of a workgroup and of a subgroup, in elements.

    A turn of the loop covers `parts` parts of `depth`: an even number of them, or as many as lie in workgroup memory where they
    are copied ahead. `wide`: groups of four subgroups multiply straight from workgroup memory, so that a subgroup has all columns of
    16 rows, and a part is 64 deep.
    """

    rows: int
    columns: int
    depth: int
    sub_rows: int
    sub_columns: int
    parts: int = 2
    wide: bool = False

    def __str__(self) -> str:
        wide = ", wide" if self.wide else ""
        return (
            f"{self.rows}×{self.columns}×{self.depth} by {self.sub_rows}×{self.sub_columns}, {self.parts} a turn{wide}"
        )

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


Cut: TypeAlias = "Tile | Thin | None"
"""How a product is computed without matrices; None: by the plain kernel."""
RATES: Final[Mapping[Cut, Rate]] = {
    Tile(128, 128, 16, 16, 8, unroll=16): Rate(3.73, 0.00962, 12.6),
    Tile(128, 64, 16, 8, 8, unroll=16): Rate(2.69, 0.00548, 10.9),
    Tile(64, 64, 16, 8, unroll=16): Rate(2.37, 0.00385, 7.88),
    Tile(128, 32, 16, 8, unroll=16): Rate(2.06, 0.00395, 10.5),
    Tile(64, 32, 16, 8, unroll=16): Rate(2.01, 0.00205, 10.8),
    Tile(256, 16, 8, 8, unroll=8): Rate(1.54, 0.00278, 15.8),
    Tile(64, 16, 16): Rate(2.24, 0.00177, 8.05),
    Tile(16, 64, 16): Rate(2.69, 0.00178, 5.17),
    Tile(16, 32, 16, slices=4): Rate(5.34, 0.00516, 2.23),
    Thin(1, 8, 128): Rate(15.2, 0.0072, 0.201),
    Thin(1, 16, 64): Rate(8.44, 0.00324, 1.05),
    Thin(1, 32, 32): Rate(5.38, 0.00216, 1.85),
    Thin(4, 16, 64): Rate(5.68, 0.00929, 2.29),
    Thin(4, 16, 32): Rate(4.22, 0.00269, 3.14),
    Thin(4, 64, 16): Rate(2.48, 0.00456, 5.39),
    Thin(8, 32, 8): Rate(2.04, 0.00176, 7.81),
    None: Rate(0.0898, 3.1e-05, 174),
}  # fmt: skip
"""Fitted to 286 products on an NVIDIA H200, through Vulkan: `tests/bench/gpu.py tune`."""
MATRIX_RATES: Final[Mapping[MatrixCut, Rate]] = {
    MatrixCut(64, 256, 16, 64, 64, 4): Rate(1.38, 0.00595, 3.11),
    MatrixCut(128, 128, 16, 64, 64): Rate(1.37, 0.00671, 2.52),
    MatrixCut(64, 128, 16, 32, 64, 4): Rate(0.892, 0.00481, 2.24),
    MatrixCut(64, 64, 32, 32, 32): Rate(0.878, 0.00652, 3.76),
    MatrixCut(32, 64, 64, 16, 32): Rate(0.786, 0.01, 2.58),
    MatrixCut(32, 32, 32, 16, 16): Rate(0.578, 0.00337, 3.21),
}
"""Fitted to 18 products in Chromium on an H200: `tests/bench/gpu.py matrices`."""
