"""Chooses the cut of a matrix product: the one with the shortest estimated time, from measured rates.

A workgroup sums over the depth in turns, each of `depth` · `slices` of the cut. The estimated time is

    (turns + ends) · (alone + workgroups · full)

where `alone` is the time of a turn on an idle device, `full` the time that each workgroup adds when there are many, and
`ends` the work before the first turn and after the last, counted in turns. `tests/bench/gpu.py tune` times products on
a device and fits RATES; only ratios matter. If the device is available, tune.py measures instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias, TypeVar

from singe.extension import Contraction, Routine, ShapeError, collapse, contraction, float32, known, product

from ...code.shader import Shader, Text
from ...dialect import INTEGER_MATRIX, PACKED_DOTS, PACKED_MATRIX, SUBGROUP_MATRIX, WIDE_MATRIX, Dialect
from ...rates import Cut, MatrixCut, Rate, Tile
from ..nest import print_kernel
from . import packed_matrix
from .gemm import print_contraction
from .integer_matrix import print_integer_matrix
from .integers import print_integers
from .matrix import elements, fitting, print_matrix
from .operands import quads_of
from .packed import PackedProduct, packed_product

AnyCut = TypeVar("AnyCut", bound="Cut | MatrixCut")
Sizes: TypeAlias = Mapping[str, int]
"""Numbers for the open sizes of a product."""


LEAST_MULTIPLY_ADDS_OF_SINGLES: Final = 9 << 23
"""With fewer, products of float32 on subgroup matrices take longer than without them: on an H200, those of 2²⁶ 14.7 µs in place of 13.0, those
of 1.2 · 2²⁶ 12.4 in place of 14.7."""
WINDOWS: Final = (2, 4)
"""The sizes of pooling windows that can be folded while storing: an invocation has four rows."""


def has_template(dialect: Dialect, routine: Routine) -> bool:
    """Whether a template can pool windows of the output, if the Routine does. Subgroup matrices cannot, but in half precision they save
    more time than a separate pooling costs."""
    windows = routine.facts.get("windows")
    if windows is None:
        return True
    found = product_of(routine)
    in_step = windows[-1] == 1 and prod(windows) in WINDOWS
    if found is None or not in_step:
        return False
    kind = elements(dialect, replace(found, window=1))
    return kind is None or kind is float32


def product_of(routine: Routine) -> Contraction | None:
    """The Routine as a product, except a convolution with one output per group, where the plain nest reads as little."""
    found = contraction(routine)
    return None if found is not None and routine.kind.startswith("conv") and found.columns == 1 else found


def ranked(dialect: Dialect, routine: Routine, c: Contraction, sizes: Sizes) -> list[Cut]:
    """The possible cuts at these sizes, the best estimate first."""
    costs_of = costs(c, dialect.rates, sizes)
    return sorted(possible(dialect, routine, c), key=costs_of.__getitem__)


def possible(dialect: Dialect, routine: Routine, c: Contraction) -> list[Cut]:
    """The cuts that suit a Routine."""
    quads = {"a", "b"} <= quads_of(Shader(dialect, c.kernel.ports), c)
    return [cut for cut in dialect.rates if _suits(routine, c, cut, quads)]


def _on_matrices(dialect: Dialect, c: Contraction, sizes: Sizes, wide: bool) -> MatrixCut:
    """The cut for subgroup matrices with the lowest estimated cost, among wide ones or only among others."""
    kind = elements(dialect, c)
    assert kind is not None
    costs_of = costs(c, dialect.matrices.rates[kind], sizes)
    return min((cut for cut in fitting(dialect, c, costs_of) if wide or not cut.wide), key=costs_of.__getitem__)


def _on_packed_matrices(dialect: Dialect, p: PackedProduct, sizes: Sizes) -> MatrixCut:
    """The cut for products with packed weights on subgroup matrices with the lowest estimated cost."""
    costs_of = costs(p.c, dialect.matrices.packed, sizes)
    return min((cut for cut in costs_of if packed_matrix.fits(p, cut)), key=costs_of.__getitem__)


def _gains(dialect: Dialect, c: Contraction, sizes: Sizes) -> bool:
    """Whether subgroup matrices are faster: in half precision they always are."""
    kind = elements(dialect, c)
    return kind is not None and (kind is not float32 or prod(extents(c, sizes)) >= LEAST_MULTIPLY_ADDS_OF_SINGLES)


def costs(c: Contraction, rates: Mapping[AnyCut, Rate], sizes: Sizes) -> dict[AnyCut, float]:
    """The estimated time of each cut."""
    there = extents(c, sizes)
    return {cut: rate.cost(*work(cut, *there)) for cut, rate in rates.items()}


def extents(c: Contraction, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
    """How many products there are at these sizes, and the rows, columns and depth of each; zeros at sizes too short for a
    run."""
    with suppress(ShapeError):  # nothing is left that a dimension could be divided by
        return known(product(c.batch), sizes), known(c.rows, sizes), known(c.columns, sizes), known(c.depth, sizes)
    return 0, 0, 0, 0


def work(cut: Cut | MatrixCut, batch: int, rows: int, columns: int, depth: int) -> tuple[int, int]:
    """A workgroup's turns, and how many workgroups there are."""
    if cut is None:
        return depth, -(-batch * rows * columns // 64)
    reach = cut.depth if isinstance(cut, MatrixCut) else cut.reach
    return -(-depth // reach), batch * -(-rows // cut.rows) * -(-columns // cut.columns)


def _suits(routine: Routine, c: Contraction, cut: Cut, quads: bool) -> bool:
    # Tiles do not suit a single column. There are no rates for sums that one invocation computes alone.
    if c.columns == 1 or cut is None:
        return cut is None and (c.columns == 1 or routine.kind.startswith("matmul"))
    if cut.rows % c.window:
        return False
    # Many loads of single elements in an invocation would make the text slow to compile.
    return isinstance(cut, Tile) or cut.rows == 1 or quads


def print_at(routine: Routine, c: Contraction, cut: Cut, sizes: Sizes, shader: Shader) -> Text:
    """A product in this cut; or on subgroup matrices, in one that suits the sizes."""
    if INTEGER_MATRIX in shader.features:
        costs_of = costs(c, shader.dialect.matrices.integers, sizes)
        return print_integer_matrix(c, min(costs_of, key=costs_of.__getitem__), shader)
    if SUBGROUP_MATRIX in shader.features:
        return print_matrix(c, _on_matrices(shader.dialect, c, sizes, WIDE_MATRIX in shader.features), shader)
    if shader.dialect.matrices.packed:
        packed = packed_product(shader.dialect, routine)
        if packed is not None and packed_matrix.takes(packed):
            if PACKED_MATRIX in shader.features:
                return packed_matrix.print_packed_matrix(
                    packed, _on_packed_matrices(shader.dialect, packed, sizes), shader
                )
            shader.wanted_features.add(PACKED_MATRIX)
    if routine.kind.endswith("_integers") and isinstance(cut, Tile):
        if PACKED_DOTS in shader.features:
            return print_integers(c, shader)
        shader.wanted_features |= {PACKED_DOTS, INTEGER_MATRIX}
    if cut is not None and _gains(shader.dialect, c, sizes):
        shader.wanted_features.add(SUBGROUP_MATRIX)
        if _on_matrices(shader.dialect, c, sizes, wide=True).wide:
            shader.wanted_features.add(WIDE_MATRIX)
    return print_cut(routine, c, cut, shader)


def print_cut(routine: Routine, c: Contraction, cut: Cut, shader: Shader) -> Text:
    """A product in a given cut, without subgroup matrices."""
    return print_kernel(collapse(routine.kernel), shader) if cut is None else print_contraction(c, cut, shader)
