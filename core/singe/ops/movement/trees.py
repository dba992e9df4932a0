"""The row for decision trees: steps downwards in a table of tree nodes, for each example and each tree.

A tree node compares one feature with a threshold and names the two nodes below; a leaf names itself twice. So a forest is
one table, and any number of trees of one depth is one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import int32, int64
from ...errors import DTypeError, ShapeError
from ...ir import affine, scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, select
from ...shapes import Shape, show
from ..kinds import Read, Shaped, View, register


def _shape(at: Shaped, x: Shaped, *table: Shaped, steps: int) -> Shape:
    if not 4 <= len(table) <= 5:
        raise ShapeError(f"tree_steps: got {len(table)} vectors of the tree nodes, expected 4 or 5")
    feature, split, below, other = table[:4]
    if len(at.shape) != 2 or len(x.shape) != 2 or any(t.shape != feature.shape or len(t.shape) != 1 for t in table):
        raise ShapeError(
            f"tree_steps: got {', '.join(show(v.shape) for v in (at, x, *table))}; expected two matrices, and vectors of "
            "one length"
        )
    if at.shape[0] not in (1, x.shape[0]) or 0 in (x.shape[1], feature.shape[0]) or steps < 1:
        raise ShapeError(
            f"tree_steps: {steps} steps from {show(at.shape)} over {show(x.shape)} in {feature.shape[0]} nodes; expected a "
            "row for all examples or for each, and at least one step, feature and node"
        )
    if not x.dtype.is_float or split.dtype is not x.dtype or not all(t.dtype.is_int for t in (feature, below, other)):
        raise DTypeError(
            f"tree_steps: features {x.dtype}, thresholds {split.dtype}; expected one float type, else integers"
        )
    return x.shape[0], at.shape[1]


def _value(coords: Sequence[Expr], read: Read, at: Shaped, x: Shaped, *table: Shaped, steps: int) -> Expr:
    row, tree = coords
    count, width = table[0].shape[0], x.shape[1]
    here = read(0, (scalar.const(0, int32) if at.shape[0] == 1 else row, tree))
    for _ in range(steps):
        place = (affine.clamp(here, count),)
        feature = read(1, (row, affine.clamp(scalar.cast(read(2, place), int32), width)))
        goes = feature <= read(3, place)
        if len(table) == 5:
            goes = goes | (scalar.isnan(feature) & read(6, place))
        here = select(goes, scalar.cast(read(4, place), int32), scalar.cast(read(5, place), int32))
    return here


def _evaluate(xp: ArrayAdapter, at: Array, x: Array, *table: Array, steps: int) -> Array:
    rows, (feature, split, below, other) = xp.arange(x.shape[0], int64)[:, None], table[:4]
    here = xp.broadcast_to(at, (x.shape[0], at.shape[1]))
    for _ in range(steps):
        place = xp.cast(xp.clip(here, 0, feature.shape[0] - 1), int64)
        feature_at, split_at, below_at, other_at = (xp.take(t, place, axis=0) for t in (feature, split, below, other))
        value = xp.at(x, [rows, xp.clip(feature_at, 0, x.shape[1] - 1)])
        goes = value <= split_at
        if len(table) == 5:
            goes = goes | (xp.isnan(value) & xp.take(table[4], place, axis=0))
        here = xp.where(goes, xp.cast(below_at, int32), xp.cast(other_at, int32))
    return here


register(
    View(name="tree_steps", public=False, doc="steps downwards in decision trees. Inputs: where each example is in each tree; the "
         "features; the feature of each tree node, its threshold, the next node if the feature is at most that, the next "
         "node otherwise, and (if given) whether NaN goes where smaller features go",
         dtypes=(int32,), shape=_shape, value=_value, evaluate=_evaluate,
         index_inputs=(1, 2, 3, 4, 5, 6), work=lambda *inputs, steps: 8 * steps),
)  # fmt: skip
