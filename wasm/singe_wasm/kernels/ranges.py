"""Takes conditions on one inner loop's variable out of a fold, as the range of that loop.

A fold over a window at an edge gives its neutral element where the window is outside of the array. It is the same to
leave these turns out; the others need no condition then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from singe.extension import Dim, Expr, Kernel, Reduce, affine, bool_, identity, int32, scalar


@dataclass(frozen=True)
class LoopRange:
    """The turns of a loop from `start` to before `stop`."""

    start: Expr
    stop: Expr


Ranges: TypeAlias = Mapping[Expr, LoopRange]
"""By the variables of inner loops; the others run in full."""


def take_ranges(kernel: Kernel, lane: Expr | None) -> tuple[Kernel, Mapping[str, Ranges]]:
    """The kernel without such conditions, and the ranges for each of its folds, by name; they are the same in all lanes."""
    stages, found = [], {}
    for stage in kernel.stages:
        if isinstance(stage, Reduce):
            value, found[stage.name] = _taken(kernel, stage, lane)
            stage = replace(stage, value=value)
        stages.append(stage)
    return replace(kernel, stages=tuple(stages)), found


def _taken(kernel: Kernel, stage: Reduce, lane: Expr | None) -> tuple[Expr, Ranges]:
    value, neutral = stage.value, identity(stage.word, stage.value.dtype)
    if value.word != "select" or value.args[2] is not neutral:
        return value, {}
    extents = {v: d for v, d in zip(kernel.inner_vars, kernel.inner, strict=True) if v.word == "var" and v is not lane}
    ranges: dict[Expr, LoopRange] = {}
    rest = scalar.const(True, bool_)
    for condition in _conditions(value.args[0]):
        if not _limit(condition, extents, lane, ranges):
            rest = scalar.and_(rest, condition)
    return scalar.select(rest, value.args[1], neutral), ranges


def _conditions(e: Expr) -> Iterator[Expr]:
    """The conditions that must all hold."""
    for a in e.args if e.word == "and" else ():
        yield from _conditions(a)
    if e.word != "and":
        yield e


def _limit(condition: Expr, extents: Mapping[Expr, Dim], lane: Expr | None, ranges: dict[Expr, LoopRange]) -> bool:
    """Narrow a loop's range by the condition, if it is one on that loop alone."""
    if condition.word not in ("lt", "le") or condition.args[0].dtype is not int32:
        return False
    gap, constant = affine.linear(condition.args[0] - condition.args[1])
    among = [v for v in extents if v in gap]
    rest = affine.from_linear({atom: factor for atom, factor in gap.items() if atom not in among}, constant)
    if len(among) != 1 or gap[among[0]] not in (1, -1) or not _is_given(rest, extents, lane):
        return False
    loop, extra = among[0], int(condition.word == "le")  # ±loop + rest < extra
    extent = affine.from_linear({}, extents[loop])
    old = ranges.get(loop, LoopRange(scalar.const(0, int32), extent))
    if gap[loop] == 1:
        ranges[loop] = replace(old, stop=scalar.minimum(old.stop, extra - rest))
    else:
        ranges[loop] = replace(old, start=scalar.maximum(old.start, rest - (extra - 1)))
    return True


def _is_given(e: Expr, loops: Mapping[Expr, Dim], lane: Expr | None) -> bool:
    """Whether it is known before the inner loops, and the same in all lanes."""
    leaves: Sequence[Expr] = [x for x in scalar.postorder([e]) if x.word in ("var", "load")]
    return all(x.word == "var" and x.value[1] is not None and x is not lane and x not in loops for x in leaves)
