"""Conditions that sizes decide, as dimensions that a run can check; and the errors of an If whose branches do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ..errors import ImportFailure, SizeNeeded
from ..graph import Builder, Node
from ..shapes import Dim, Size, dim_max, dim_min, product
from .model import OnnxGraph

Comparison: TypeAlias = "tuple[Callable[[Dim, Dim], Dim], str, str]"
COMPARISONS: Final[Mapping[str, Comparison]] = {
    "equal": (lambda a, b: dim_min(a - b, b - a), "must be", "must not be"),
    "less": (lambda a, b: b - a - 1, "must be less than", "must be at least"),
    "less_equal": (lambda a, b: b - a, "must be at most", "must be greater than"),
    "greater": (lambda a, b: a - b - 1, "must be greater than", "must be at most"),
    "greater_equal": (lambda a, b: a - b, "must be at least", "must be less than"),
}
"""Rows that compare integers: a dimension that is at least 0 where they hold, and how to require that they do or do not."""


class Undecided(Exception):
    """The branches of an If do not fit what is around it both, and sizes decide which one is taken.

    branches: where the condition holds, and where not; dim: at least 0 where it holds, and only there; requirement: that
    it must hold, or must not, for people; needed: what to raise where the choice cannot be made before a run.
    """

    def __init__(
        self, branches: tuple[OnnxGraph, OnnxGraph], dim: Dim, requirement: Callable[[bool], str], needed: SizeNeeded
    ) -> None:
        super().__init__(str(needed))
        self.branches, self.dim, self.requirement, self.needed = branches, dim, requirement, needed


class NeitherFits(ImportFailure):
    """What follows an If can be imported with neither branch, while these sizes are open."""

    def __init__(self, message: str, sizes: frozenset[str]) -> None:
        super().__init__(message)
        self.sizes = sizes


class Ambiguous(SizeNeeded):
    """All that follows in a graph fits either branch of an If in it."""


def at_least_zero(b: Builder, condition: Node) -> Dim | None:
    """A dimension that is at least 0 where the condition, one bool, holds, and only there; None if sizes do not decide it."""
    parts = condition.inputs
    if condition.op == "reshape":
        return at_least_zero(b, parts[0])
    if condition.op in COMPARISONS:
        sides = [one_size(b, x) for x in parts]
        return None if None in sides else COMPARISONS[condition.op][0](*sides)  # pyright: ignore[reportArgumentType]
    if condition.op in ("logical_not", "logical_and", "logical_or"):
        found = [at_least_zero(b, x) for x in parts]
        first = found[0]
        if first is None or None in found:
            return None
        if condition.op == "logical_not":
            return -first - 1
        return (dim_min if condition.op == "logical_and" else dim_max)(first, found[1])  # pyright: ignore[reportArgumentType]
    holds = known_flag(b, condition)
    return None if holds is None else int(holds) - 1


def known_flag(b: Builder, condition: Node) -> bool | None:
    """Whether a condition holds; None if only a run, or a size, decides it."""
    known = b.value_of(condition)
    return None if known is None or known.dtype == object or known.size != 1 else bool(known.reshape(-1)[0])


def requirement(b: Builder, condition: Node, holds: bool) -> str:
    """That the condition must hold, or must not, for people."""
    while condition.op in ("reshape", "logical_not"):
        holds ^= condition.op == "logical_not"
        condition = condition.inputs[0]
    if condition.op not in COMPARISONS:
        return f"its condition must be {str(holds).lower()}"
    a, c = (one_size(b, x) for x in condition.inputs)
    return f"{a} {COMPARISONS[condition.op][1 if holds else 2]} {c}"


def one_size(b: Builder, x: Node) -> Dim | None:
    """The only element of an integer node, a number or of sizes; None where it is neither."""
    value = b.value_of(x) if x.dtype.is_int and product(x.shape) == 1 else None
    if value is None:
        return None
    found = value.reshape(-1)[0]
    return found if isinstance(found, Size) else int(found)
