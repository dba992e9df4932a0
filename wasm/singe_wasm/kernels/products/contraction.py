"""The Routines "matmul" and "conv" as a Contraction with a schedule: a feed, panels of B and a register tile.

`schedule` says how the template computes a Routine, or returns None; the Routine is then printed as its loop nest. If the
contents of B are known, B is packed at compile time, otherwise into scratch before the product.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as combinations
from typing import Any, Final

import numpy as np

from singe.extension import (
    Contraction,
    Dim,
    Expr,
    PackedPlaces,
    Reduce,
    Routine,
    affine,
    ceildiv,
    contraction,
    float32,
    scalar,
)

from ...code.encode import Function
from ...code.writer import Writer
from ...levels import Level
from ..lanes import lane_cost
from ..lower import Lowering, SizeParameters
from ..thread_shares import begin, choose_loop, first_alone, loop
from .feeds import Evaluated, Feed, Gathered, InPlace, InputLines, PanelWriter, panels, places_in_panels
from .product import Product, RegisterTile, choose_tile, panels_across

MIN_WINDOW_FOR_PRODUCT: Final = 64
"""The fewest elements of a window for which a convolution of one channel to one output is computed as a product: then
gathering its rows costs little."""


@dataclass(frozen=True)
class ProductSchedule:
    """How a Contraction is computed, and its layout of scratch in bytes: a spilled tile, the feed's memory, B's panels."""

    c: Contraction
    feed: Feed
    packed: bool  # B's port holds packed panels
    spare: int = 0  # bytes at the end of scratch for a template that extends this one
    as_open: bool = False  # panels are as wide as for an open number of rows

    def tile(self, relaxed: bool) -> RegisterTile:
        return choose_tile(self.c.rows, self.c.columns, relaxed, self.as_open)

    @cached_property
    def columns(self) -> int:
        return self.tile(True).columns

    @cached_property
    def wide(self) -> bool:
        """Whether the epilogue can be vectorised."""
        return lane_cost(self.c.kernel, [self.c.store], self.c.n) is not None

    @cached_property
    def feed_at(self) -> int:
        n = self.c.columns
        return 0 if self.wide and isinstance(n, int) and n % 4 == 0 else 4 * self._rows * self.columns

    @cached_property
    def panels_at(self) -> Dim:
        return self.feed_at + self.feed.bytes_of(self._rows)

    @cached_property
    def scratch(self) -> Dim:
        return self.panels_at + (0 if self.packed else self.panel_bytes) + self.spare

    @cached_property
    def panel_bytes(self) -> Dim:
        """Bytes of the panels of one matrix."""
        return ceildiv(self.c.columns, self.columns) * self.c.depth * (4 * self.columns)

    @cached_property
    def _rows(self) -> int:
        """The rows of the taller tile of the two SIMD levels, which have the same scratch."""
        return max(self.tile(relaxed).rows for relaxed in (False, True))

    @cached_property
    def b_batch(self) -> tuple[tuple[Expr, int], ...]:
        """The batch variables that B depends on, with their extents."""
        leaves = set(scalar.postorder([self.c.b]))
        pairs = zip(self.c.batch_vars, self.c.batch, strict=True)
        return tuple((v, d) for v, d in pairs if v in leaves and v.word == "var")  # pyright: ignore[reportReturnType]

    def matrices(self, contents: np.ndarray) -> list[np.ndarray]:
        """B as [k][n] for each point of the batch that it depends on."""
        c = self.c
        terms, start = affine.linear(c.b.args[0])
        n, k = c.columns, c.depth
        assert isinstance(n, int)
        assert isinstance(k, int)
        assert isinstance(start, int)
        steps: list[Any] = [terms.get(v, 0) for v in (c.k, c.n)]
        flat = np.ascontiguousarray(contents).reshape(-1)
        strides = [flat.itemsize * s for s in steps]
        out = []
        for point in combinations(*(range(d) for _, d in self.b_batch)):
            first: Any = start + sum(i * terms[v] for i, (v, _) in zip(point, self.b_batch, strict=True))  # pyright: ignore[reportArgumentType]
            out.append(np.lib.stride_tricks.as_strided(flat[first:], (k, n), strides, writeable=False))
        return out

    def pack(self, contents: np.ndarray) -> np.ndarray:
        """B's panels; none if B has a batch of no matrices."""
        if 0 in contents.shape:
            return np.zeros(0, np.float32)
        made = [panels(m, self.columns) for m in self.matrices(contents.astype(np.float32, copy=False))]
        return np.stack(made) if self.b_batch else made[0]

    @property
    def places(self) -> PackedPlaces | None:
        """Where the panels of B have its elements; None if B is not one whole matrix, or the transpose of one."""
        c, (terms, start) = self.c, affine.linear(self.c.b.args[0])
        steps = terms.get(c.k, 0), terms.get(c.n, 0)
        kept = c.kernel.ports[c.b.value].dtype is float32
        if not kept or self.b_batch or start != 0 or not isinstance(c.depth, int) or not isinstance(c.columns, int):
            return None
        transposed = steps == (1, c.depth)
        if not transposed and steps != (c.columns, 1):
            return None
        return places_in_panels(c.depth, c.columns, self.columns, transposed)

    def begin(self, sizes: SizeParameters) -> Writer:
        """The function of the Contraction, empty."""
        return begin(self.c.kernel, self.scratch != 0, sizes)

    @property
    def sharing(self) -> ProductSchedule | None:
        """The schedule over weights that are packed as for an open number of rows; None where these are."""
        other = replace(self, as_open=True)
        return other if self.packed and other.columns != self.columns else None


def schedule(routine: Routine, constants: Collection[int]) -> ProductSchedule | None:
    """How the template computes the Routine; None if it cannot, or if the loop nest is as fast."""
    first = routine.kernel.stages[0]
    if "windows" in routine.facts or not isinstance(first, Reduce) or first.value.dtype is not float32:
        return None
    c = contraction(routine)
    if c is None or (c.columns == 1 and routine.kind == "matmul"):
        return None
    if routine.kind == "matmul":
        packed = _can_pack(c, constants)
        if not packed and isinstance(c.rows, int) and c.rows < 4:
            return None  # packing B would cost as much as the product
        feed = InPlace(c, {}) if InPlace.takes(c) else Evaluated(c, {})
        return ProductSchedule(c, feed, packed)
    return _conv(routine, c, constants)


def _conv(routine: Routine, c: Contraction, constants: Collection[int]) -> ProductSchedule | None:
    facts = {**routine.facts, "grid": routine.kernel.grid}
    fixed = (facts["x_shape"][-1], *facts["w_shape"], c.columns)
    if not all(isinstance(d, int) and d > 0 for d in fixed):
        return None
    if c.columns == 1 and (facts["x_shape"][-1] != 1 or np.prod(facts["w_shape"]) < MIN_WINDOW_FOR_PRODUCT):
        return None
    if any(routine.ports[facts[p]].dtype is not float32 for p in "xw"):
        return ProductSchedule(c, Evaluated(c, facts), packed=False)
    feed: Feed | None = None
    lines = InputLines.takes(facts) and not InPlace.takes(c)
    if lines or _split(c):
        by_image = contraction(routine, images=True)
        assert by_image is not None
        if lines:
            feed = InputLines(by_image, facts)
            feed = feed if feed.affordable else None
        if _split(c) and not _split(by_image):
            c = by_image
    if feed is None:
        feed = InPlace(c, facts) if InPlace.takes(c) else Gathered(c, facts)
    return ProductSchedule(feed.c, feed, _can_pack(feed.c, constants))


def _split(c: Contraction) -> bool:
    """Whether the epilogue divides the row index: then each row's address needs a division."""
    roots = [c.store.index, c.store.value]
    return any(e.word in ("div", "rem") and c.m in scalar.postorder([e]) for e in scalar.postorder(roots))


def _can_pack(c: Contraction, constants: Collection[int]) -> bool:
    """Whether B is a load of a constant that nothing else reads, at an index linear in k, n and the batch."""
    b = c.b
    if b.word != "load" or b.value not in constants or c.kernel.ports[b.value].dtype is not float32:
        return False
    if any(e.word == "load" and e.value == b.value for e in scalar.postorder([c.a, c.store.index, c.store.value])):
        return False
    terms, constant = affine.linear(b.args[0])
    extents = dict(zip(c.batch_vars, c.batch, strict=True))
    known = (constant, c.columns, c.depth, *terms.values(), *(extents.get(v, 1) for v in terms))
    return all(isinstance(d, int) for d in known) and terms.keys() <= {c.k, c.n, *c.batch_vars}


def print_contraction(s: ProductSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled Contraction."""
    return Template(s, sizes, level).function()


class Template:
    """The function of a Contraction under construction."""

    def __init__(self, s: ProductSchedule, sizes: SizeParameters, level: Level, w: Writer | None = None) -> None:
        self.s: Final = s
        self.c: Final = s.c
        self.feed_at: Final = s.feed_at
        self.level: Final = level
        self.depth: Final = len(s.c.batch)
        self.w: Final = s.begin(sizes) if w is None else w
        self._sizes: Final = sizes
        self._lowerings: Final[list[Lowering]] = []
        self.low: Final = self.lowering(s.c.n)
        self.edge: Final = self.lowering(None)
        self.product: Final = self.make_product()
        self.feed: Final = self.make_feed()

    def lowering(self, lane: Expr | None) -> Lowering:
        """A Lowering that knows the batch variables."""
        made = Lowering(self.c.kernel.ports, self._sizes, self.s.scratch != 0, lane)
        self._lowerings.append(made)
        return made

    def make_product(self) -> Product:
        spill = self.low.scratch(0) if self.feed_at else None
        tile = self.s.tile(self.level.relaxed)
        across = panels_across(self.c, tile)
        return Product(self.w, self.low, self.edge, self.c, tile, self.depth, spill, across, fours=self.level.fours)

    def make_feed(self) -> Feed:
        return self.s.feed.bound(self)

    def function(self) -> Function:
        self.write()
        return self.w.finish()

    def write(self) -> None:
        """The function's code."""
        s, c, w = self.s, self.c, self.w
        batch = list(zip(c.batch_vars, c.batch, strict=True))
        shared = choose_loop([*c.batch, *self.product.turns(self.feed.in_place)], equal=2 if self.feed.in_place else 0)
        b_vars = [v for v, _ in s.b_batch]
        pack_at = max((level for level, (v, _) in enumerate(batch, 1) if v in b_vars), default=0)
        with ExitStack() as stack:
            stack.enter_context(first_alone(w, self.low, shared is None))
            for level in range(self.depth + 1):
                if level:
                    variable, extent = batch[level - 1]
                    local = w.i32()
                    for low in self._lowerings:
                        low.variable(variable, local, level)
                    stack.enter_context(loop(w, self.low, local, extent, shared == level - 1))
                if level == pack_at and not s.packed:
                    PanelWriter(w, self.low, self.edge, c, s.columns).write(self.low.scratch(s.panels_at), level)
            b = self.low.scratch(s.panels_at)
            if s.packed:
                index = affine.flatten(b_vars, tuple(d for _, d in s.b_batch)) * self.matrix_elements()
                b = self.low.address(c.b.value, index)[0]
            self.product.write(self.feed, b, None if shared is None or shared < self.depth else shared - self.depth)

    def matrix_elements(self) -> int:
        """Elements of one packed matrix."""
        count = self.s.panel_bytes
        assert isinstance(count, int)
        return count // 4
