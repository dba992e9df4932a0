"""Convolution by a window of 3×3 in steps of one with fewer products: Winograd's F(4×4, 3×3), channels last.

Tiles of 4×4 outputs are computed from tiles of 6×6 inputs. After inputs and weights are transformed, each of the 36
positions is a separate matrix product (rows are tiles, k runs over the channels). Its results are transformed back, and
the epilogue is applied. Weights are not transformed in memory, where they would be four times as large; a panel of their
columns is transformed for each band of tiles, which costs little compared with the products.
This module decides when the method pays; tiles.py writes the function, transforms.py has the transforms of a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Dim, Routine, affine, ceildiv, float32

from ...transforms import TILE_INPUTS, TILE_OUTPUTS, WINDOW_WEIGHTS
from ..nest import lane_cost
from ..thread_shares import MAX_SCRATCH_BYTES, guess
from .product import CACHE_BYTES, RELAXED, SIMD

POSITIONS: Final = TILE_INPUTS**2
COLUMNS: Final = RELAXED.columns
MIN_TILES_AT_ONCE: Final = 48
"""The fewest tiles that are transformed at once: a multiple of the heights of all register tiles."""
MIN_SAVING: Final = 1.25
"""The estimated saving of work for which the larger code and scratch pay."""


@dataclass(frozen=True)
class WinogradSchedule:
    """A convolution in the form that the template takes; its spatial sizes may be open."""

    routine: Routine
    facts: Any

    @property
    def channels(self) -> int:
        return self.facts["x_shape"][-1]

    @property
    def outputs(self) -> int:
        return self.facts["w_shape"][-1]

    @property
    def window(self) -> tuple[int, int]:
        """The extents of the windows of the output that are pooled as they are stored."""
        return self.facts.get("windows", (1, 1, 1, 1))[1:-1]

    @property
    def stored(self) -> tuple[Dim, Dim]:
        """The rows and columns of positions that are stored."""
        _, down, along, _ = self.routine.kernel.grid
        return down, along

    @property
    def space(self) -> tuple[Dim, Dim]:
        """The spatial shape of the output before pooling."""
        return self.stored[0] * self.window[0], self.stored[1] * self.window[1]

    @property
    def along(self) -> Dim:
        """The number of tiles in a row."""
        return ceildiv(self.space[1], TILE_OUTPUTS)

    @property
    def lines(self) -> Dim:
        """The number of rows of tiles in an image."""
        return ceildiv(self.space[0], TILE_OUTPUTS)

    @property
    def images(self) -> Dim:
        return self.routine.kernel.grid[0]

    @property
    def tiles(self) -> Dim:
        """The number of tiles in all images."""
        return self.images * self.lines * self.along

    @property
    def band(self) -> int:
        """The number of tiles whose inputs are transformed at once."""
        return max(
            CACHE_BYTES // (4 * self.channels * POSITIONS) // MIN_TILES_AT_ONCE * MIN_TILES_AT_ONCE, MIN_TILES_AT_ONCE
        )

    @property
    def gain(self) -> float:
        """The multiply-adds of a direct convolution, divided by the estimated work of this method in the same unit."""
        channels, outputs, images = self.channels, self.outputs, guess(self.images, 1)
        tiles = images * guess(self.lines * self.along)
        bands = -(-tiles // self.band)
        products = 1.1 * POSITIONS * tiles * channels * outputs
        # Measured costs, in multiply-adds, per transformed element or per channel of a tile.
        transforms = 120 * bands * channels * outputs + 200 * tiles * channels + 180 * tiles * outputs
        positions = map(guess, self.facts.get("positions", self.space))
        return 9 * images * math.prod(positions) * channels * outputs / (products + transforms)

    # --- scratch, in bytes; strides are odd multiples of a cache line: otherwise positions would compete for few sets

    @property
    def panel(self) -> int:
        """The distance from one position's panel of weights to the next."""
        return _odd_lines(4 * self.channels * COLUMNS)

    @property
    def stride(self) -> int:
        """The distance from one position's inputs to the next."""
        most = self.band + 3 * RELAXED.rows // 2 - 1  # the last turn may be half as long again
        most = min(most, self.tiles) if isinstance(self.tiles, int) else most
        return _odd_lines(4 * self.channels * most)

    @property
    def areas(self) -> tuple[int, ...]:
        """The ends of the areas of scratch: half a transform, a tile with its padding, inputs, weights, sums."""
        rows = max(RELAXED.rows, SIMD.rows)
        parts = (16, 4 * self.channels, self.stride, self.panel, 4 * rows * COLUMNS)
        return tuple(POSITIONS * sum(parts[: i + 1]) for i in range(len(parts)))

    @property
    def scratch(self) -> int:
        return self.areas[-1]


def _odd_lines(count: int) -> int:
    return 64 * (-(-count // 64) | 1)


def schedule(routine: Routine) -> WinogradSchedule | None:
    """How the template computes this convolution; None if it cannot, or if that does not pay."""
    facts = routine.facts
    grid, store = routine.kernel.grid, routine.epilogue
    lengths = (*facts["x_shape"][1:-1], *grid[1:-1])
    fixed = (facts["x_shape"][-1], *facts["w_shape"], grid[-1], *(d for d in lengths if isinstance(d, int)))
    if (
        facts["w_shape"][:-2] != (WINDOW_WEIGHTS, WINDOW_WEIGHTS)
        or not all(isinstance(d, int) and d > 0 for d in fixed)
        or {*facts["strides"], *facts["dilations"], facts["group"]} != {1}
        or not all(affine.at_least(p, 0) and affine.at_least(2 - p, 0) for p in facts["pads"])
        or facts["x_shape"][-1] % 4
        or grid[-1] % 4  # pyright: ignore[reportOperatorIssue]
        or any(routine.ports[facts[p]].dtype is not float32 for p in "xw")
        or store.inner
        or lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-1]) is None
    ):
        return None
    made = WinogradSchedule(routine, facts)
    image, *_, channel = facts.get("windows", (1, 1, 1, 1))
    in_registers = (
        image == channel == 1
        and not any(TILE_OUTPUTS % w for w in made.window)
        and math.prod(made.window) <= TILE_OUTPUTS
    )
    return made if in_registers and made.gain >= MIN_SAVING and made.scratch <= MAX_SCRATCH_BYTES else None
