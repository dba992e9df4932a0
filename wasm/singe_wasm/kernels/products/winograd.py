"""Convolution with fewer products, in steps of one, channels last: Winograd's F(4×4, 3×3), and F(4, 3), F(3, 4) or F(5, 2) along one axis.

Tiles of 4×4 outputs are computed from tiles of 6×6 inputs. After inputs and weights are transformed, each of the 36
positions is a separate matrix product (rows are tiles, k runs over the channels). Its results are transformed back, and
the epilogue is applied. Weights are not transformed in memory, where they would be four times as large; a panel of their
columns is transformed for each band of tiles, which costs little compared with the products.

Along one axis a tile has six positions. A longer window is cut into groups of two to four weights: k then runs over groups and channels. Of
a window with dilation, the outputs of a tile are as far apart as its weights.
This module decides when the method pays; tiles.py and lines.py write the functions, transforms.py has the transforms of a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from singe.extension import Dim, Routine, affine, ceildiv, float32

from ...transforms import TILE_INPUTS, TILE_OUTPUTS, WINDOW_WEIGHTS
from ..lanes import lane_cost
from ..thread_shares import MAX_SCRATCH_BYTES, guess
from .product import CACHE_BYTES, RELAXED, SIMD

COLUMNS: Final = RELAXED.columns
MIN_TILES_AT_ONCE: Final = 48
"""The fewest tiles that are transformed at once: a multiple of the heights of all register tiles."""
MIN_SAVING: Final = 1.25
"""The estimated saving of work for which the larger code and scratch pay."""


class LineForm(NamedTuple):
    """A transform along one axis: the weights of a group, the outputs of a tile, and the functions of transforms.py for these."""

    weights: int
    outputs: int
    weight: str
    output: str


LINE_FORMS: Final = (
    LineForm(WINDOW_WEIGHTS, TILE_OUTPUTS, "winograd_weight", "winograd_output"),
    LineForm(WINDOW_WEIGHTS + 1, TILE_OUTPUTS - 1, "winograd_weight_of_four", "winograd_output_of_three"),
    LineForm(WINDOW_WEIGHTS - 1, TILE_OUTPUTS + 1, "winograd_weight_of_two", "winograd_output_of_five"),
)


@dataclass(frozen=True)
class WinogradSchedule:
    """A convolution in the form that a template takes; its spatial sizes may be open."""

    routine: Routine
    facts: Any
    positions: ClassVar[int]
    """Of a tile."""

    @property
    def channels(self) -> int:
        return self.facts["x_shape"][-1]

    @property
    def outputs(self) -> int:
        return self.facts["w_shape"][-1]

    @property
    def images(self) -> Dim:
        return self.routine.kernel.grid[0]

    @property
    def depth(self) -> int:
        """The depth of a position's product."""
        return self.channels

    @property
    def tiles(self) -> Dim:
        """The number of tiles in all images."""
        raise NotImplementedError

    @property
    def gain(self) -> float:
        """The multiply-adds of a direct convolution, divided by the estimated work of this method in the same unit."""
        raise NotImplementedError

    @property
    def band(self) -> int:
        """The number of tiles whose inputs are transformed at once."""
        one = 4 * self.depth * self.positions
        return max(CACHE_BYTES // one // MIN_TILES_AT_ONCE * MIN_TILES_AT_ONCE, MIN_TILES_AT_ONCE)

    def work(self, for_weight: int, for_input: int, for_output: int) -> float:
        """Multiply-adds of the products and, as measured costs in the same unit, of the transforms: of an element of a panel of weights, of a
        channel of a tile, of an output of a tile."""
        tiles = guess(self.images, 1) * guess(self.tiles_of_image)
        bands = -(-tiles // self.band)
        products = 1.1 * self.positions * tiles * self.depth * self.outputs
        transforms = (
            for_weight * bands * self.depth * self.outputs
            + for_input * tiles * self.depth
            + for_output * tiles * self.outputs
        )
        return products + transforms

    @property
    def tiles_of_image(self) -> Dim:
        raise NotImplementedError

    # --- scratch, in bytes; strides are odd multiples of a cache line: otherwise positions would compete for few sets

    @property
    def panel(self) -> int:
        """The distance from one position's panel of weights to the next."""
        return _odd_lines(4 * self.depth * COLUMNS)

    @property
    def stride(self) -> int:
        """The distance from one position's inputs to the next."""
        most = self.band + 3 * RELAXED.rows // 2 - 1  # the last turn may be half as long again
        most = min(most, self.tiles) if isinstance(self.tiles, int) else most
        return _odd_lines(4 * self.depth * most)

    @property
    def small(self) -> tuple[int, int]:
        """The bytes of what is between transforms, and of a tile with its padding."""
        raise NotImplementedError

    @property
    def areas(self) -> tuple[int, ...]:
        """The ends of the areas of scratch: those of `small`, inputs, weights, sums."""
        rows = max(RELAXED.rows, SIMD.rows)
        parts = (*self.small, *(self.positions * x for x in (self.stride, self.panel, 4 * rows * COLUMNS)))
        return tuple(sum(parts[: i + 1]) for i in range(len(parts)))

    @property
    def scratch(self) -> int:
        return self.areas[-1]


@dataclass(frozen=True)
class SquareSchedule(WinogradSchedule):
    """A window of 3×3."""

    positions = TILE_INPUTS**2

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
    def tiles_of_image(self) -> Dim:
        return self.lines * self.along

    @property
    def tiles(self) -> Dim:
        return self.images * self.lines * self.along

    @property
    def gain(self) -> float:
        positions = map(guess, self.facts.get("positions", self.space))
        direct = WINDOW_WEIGHTS**2 * guess(self.images, 1) * math.prod(positions) * self.channels * self.outputs
        return direct / self.work(120, 200, 180)

    @property
    def small(self) -> tuple[int, int]:
        return 16 * self.positions, 4 * self.channels * self.positions


@dataclass(frozen=True)
class LineSchedule(WinogradSchedule):
    """A window along one axis."""

    form: LineForm
    positions = TILE_INPUTS

    @property
    def window(self) -> int:
        return self.facts["w_shape"][0]

    @property
    def dilation(self) -> int:
        return self.facts["dilations"][0]

    @property
    def groups(self) -> int:
        """The groups of weights of a window; the last may have fewer."""
        return -(-self.window // self.form.weights)

    @property
    def depth(self) -> int:
        return self.groups * self.channels

    @property
    def reach(self) -> int:
        """Outputs from the first of a tile to the first of the tile behind all that lie between its own."""
        return self.form.outputs * self.dilation

    @property
    def tiles_of_image(self) -> Dim:
        return ceildiv(self.routine.kernel.grid[1], self.reach) * self.dilation

    @property
    def tiles(self) -> Dim:
        return self.images * self.tiles_of_image

    @property
    def gain(self) -> float:
        positions = guess(self.images, 1) * guess(self.routine.kernel.grid[1])
        return self.window * positions * self.channels * self.outputs / self.work(14, 25, 25)

    @property
    def small(self) -> tuple[int, int]:
        block = max(RELAXED.rows, SIMD.rows) * COLUMNS
        return 4 * block * self.form.outputs, 4 * self.channels * max(TILE_INPUTS, 4 * self.form.weights)


def _odd_lines(count: int) -> int:
    return 64 * (-(-count // 64) | 1)


def schedule(routine: Routine) -> WinogradSchedule | None:
    """How a template computes this convolution; None if none can, or if that does not pay."""
    facts = routine.facts
    grid, store = routine.kernel.grid, routine.epilogue
    lengths = (*facts["x_shape"][1:-1], *grid[1:-1])
    fixed = (facts["x_shape"][-1], *facts["w_shape"], grid[-1], *(d for d in lengths if isinstance(d, int)))
    if (
        not all(isinstance(d, int) and d > 0 for d in fixed)
        or {*facts["strides"], facts["group"]} != {1}
        or facts["x_shape"][-1] % 4
        or grid[-1] % 4  # pyright: ignore[reportOperatorIssue]
        or any(routine.ports[facts[p]].dtype is not float32 for p in "xw")
        or store.inner
        or lane_cost(routine.kernel, [store], routine.kernel.grid_vars[-1]) is None
    ):
        return None
    forms = _squares(routine) if len(facts["dilations"]) == 2 else _lines(routine)
    best = max(forms, key=lambda form: form.gain, default=None)
    return best if best and best.gain >= MIN_SAVING and best.scratch <= MAX_SCRATCH_BYTES else None


def _squares(routine: Routine) -> Sequence[WinogradSchedule]:
    facts = routine.facts
    if (
        facts["w_shape"][:-2] != (WINDOW_WEIGHTS, WINDOW_WEIGHTS)
        or set(facts["dilations"]) != {1}
        or not all(affine.at_least(p, 0) and affine.at_least(2 - p, 0) for p in facts["pads"])
    ):
        return ()
    made = SquareSchedule(routine, facts)
    image, *_, channel = facts.get("windows", (1, 1, 1, 1))
    in_registers = (
        image == channel == 1
        and not any(TILE_OUTPUTS % w for w in made.window)
        and math.prod(made.window) <= TILE_OUTPUTS
    )
    return (made,) if in_registers else ()


def _lines(routine: Routine) -> Sequence[WinogradSchedule]:
    facts = routine.facts
    if len(facts["dilations"]) != 1 or "windows" in facts:
        return ()
    return [LineSchedule(routine, facts, form) for form in LINE_FORMS]
