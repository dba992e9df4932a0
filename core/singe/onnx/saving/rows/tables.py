"""Rows that look things up in tables: decision trees, strings among keys, and what a resampling reads where a run computes its scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dtypes import bool_, float32, int32, int64, string
from ....graph import Node
from ..block import Block
from ..rules import Rule

MAX_TREE_STEPS: Final = 64
"""The most steps that are written one after the other."""


def _tree_steps(w: Block, n: Node, at: str, x: str, *table: str) -> str:
    """Each step looks up the feature of every example in every tree, compares it, and goes to one of two nodes."""
    given = n.inputs
    split_kind = given[1].dtype.compute
    value_of = w.cast(x, given[1].dtype, split_kind)
    feature, below, other = (w.cast(table[k], given[2 + k].dtype, int64) for k in (0, 2, 3))
    split = w.cast(table[1], given[3].dtype, split_kind)
    missing = w.cast(table[4], given[6].dtype, bool_) if len(table) == 5 else ""
    here = w.node("Expand", w.cast(at, given[0].dtype, int64), w.shape(n.shape))
    for _ in range(n.attrs["steps"]):
        value = w.node("GatherElements", value_of, w.node("Gather", feature, here), axis=1)
        goes = w.compared("LessOrEqual", split_kind, value, w.node("Gather", split, here))
        if missing:
            absent = w.node("And", w.node("IsNaN", value), w.node("Gather", missing, here))
            goes = w.node("Or", goes, absent)
        here = w.node("Where", goes, w.node("Gather", below, here), w.node("Gather", other, here))
    return w.cast(here, int64, int32)


def _string_places(w: Block, n: Node, x: str) -> str:
    """The first of the keys that is equal; what stands behind them always counts as such."""
    rank = len(n.shape)
    alike = w.node("Equal", w.reshape(x, (*n.shape, 1)), w.const(list(n.attrs["keys"]), string))
    behind = w.node("Expand", w.const(1), w.shape((*n.shape, 1)))
    return w.node("ArgMax", w.node("Concat", w.cast(alike, bool_, int64), behind, axis=rank), axis=rank, keepdims=0)


def _resize_tables(w: Block, n: Node, wanted: str, roi: str) -> tuple[str, ...]:
    """A ramp of the axis's places, resampled as the axis is, tells what is read: the nearest place, or a place between two."""
    attrs, kind = n.attrs, n.inputs[0].dtype
    facts = {"coordinate_transformation_mode": attrs["coordinates"], "mode": attrs["mode"]}
    if attrs["mode"] == "nearest":
        facts["nearest_mode"] = attrs["nearest"]
    made: list[str] = []
    for k, axis in enumerate(attrs["axes"]):
        length = attrs["shape"][axis]
        ramp = w.cast(w.node("Range", w.const(0), w.scalar(length), w.const(1)), int64, float32)
        one = w.node("Gather", wanted, w.vector([k]), axis=0)
        sizes = ("", w.cast(one, kind, int64)) if kind.is_int else (w.cast(one, kind, float32), "")
        places = w.node("Resize", ramp, "", *sizes, **facts)
        outside = w.node("Less", places, w.const(0.0, float32))
        if attrs["mode"] == "nearest":
            index = w.node("Reshape", w.cast(places, float32, int64), w.vector([1, -1]))
            weights = w.node("Expand", w.const(1.0, float32), w.node("Shape", index))
        else:
            first = w.node("Floor", places)
            far = w.node("Sub", places, first)
            last = w.cast(w.scalar(length - 1), int64, float32)
            second = w.node("Min", w.node("Add", first, w.const(1.0, float32)), last)
            row = w.vector([1, -1])
            pair = (w.node("Reshape", p, row) for p in (first, second))
            index = w.cast(w.node("Concat", *pair, axis=0), float32, int64)
            near = w.node("Sub", w.const(1.0, float32), far)
            weights = w.node("Concat", *(w.node("Reshape", p, row) for p in (near, far)), axis=0)
        made += [index, weights, outside]
    return tuple(made)


def _resize_tables_takes(w: Block, n: Node) -> bool:
    attrs = n.attrs
    plain = not attrs.get("antialias") and not attrs.get("exclude_outside") and attrs["policy"] == "stretch"
    return plain and attrs["mode"] in ("nearest", "linear") and attrs["coordinates"] in COORDINATES


COORDINATES: Final = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""The transformations of places that every engine and opset has."""
RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "resize_tables": (Rule(_resize_tables, _resize_tables_takes),),
    "string_places": (Rule(_string_places, lambda w, n: w.takes("Equal", string)),),
    "tree_steps": (Rule(_tree_steps, lambda w, n: n.attrs["steps"] <= MAX_TREE_STEPS),),
}
