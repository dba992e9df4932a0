"""The sum over all paths through a chain of states, in logarithms: what alignments of sequences are summed by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...dtypes import float32, float64, int64
from ...errors import ShapeError
from ...shapes import same, show
from ..control import repeated
from ..kinds import Composite, register

IMPOSSIBLE: Final = -1e30
"""The logarithm that stands for no path: finite, so that differences of two of them are numbers."""


def _check(first: Any, steps: Sequence[Any]) -> None:
    for x in steps:
        text = f"path_sums: {show(first.shape)} at first and steps of {show(x.shape)}"
        if len(first.shape) != 2 or len(x.shape) != 3:
            raise ShapeError(f"{text}: expected (batch, states) and (steps, batch, states)")
        if not all(same(a, b, text) for a, b in zip(x.shape, (steps[0].shape[0], *first.shape), strict=True)):
            raise ShapeError(f"{text}: expected the same batch, states and steps everywhere")
    if not steps:
        raise ShapeError("path_sums: got no steps, expected logarithms of weights for each jump")


def _jumped(b: Any, x: Any, jump: int, back: bool = False) -> Any:
    """The values of the states `jump` places before each one along the last axis (or behind it)."""
    if jump == 0:
        return x
    rank = len(x.shape)
    before = tuple(jump * (axis == rank - 1) for axis in range(rank))
    none, starts = (0,) * rank, before if back else (0,) * rank
    fill = b.const(0 if back else IMPOSSIBLE, x.dtype)
    wide = b.pad(x, fill, before=none if back else before, after=before if back else none, mode="constant")
    return b.slice(wide, starts=starts, steps=(1,) * rank, sizes=x.shape)


def _weighed(b: Any, parts: Sequence[Any]) -> tuple[list[Any], Any, Any]:
    """Exponentials of the parts over that of the largest one, element by element; their sum; the largest part."""
    most = parts[0]
    for x in parts[1:]:
        most = b.maximum(most, x)
    each = [b.exp(b.sub(x, most)) for x in parts]
    total = each[0]
    for x in each[1:]:
        total = b.add(total, x)
    return each, total, most


def _sum(b: Any, parts: Sequence[Any]) -> Any:
    """The logarithm of the sum of exponentials, element by element."""
    _, total, most = _weighed(b, parts)
    return b.maximum(b.add(most, b.log(total)), b.const(IMPOSSIBLE, most.dtype))


def _path_sums(b: Any, first: Any, *steps: Any) -> Any:
    _check(first, steps)
    batch, states = first.shape
    count = steps[0].shape[0]
    distinct = list(dict.fromkeys(steps))

    def turn(before: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        at, found, sums = before
        here = {x: b.gather(inner, at, axis=0) for x, inner in zip(distinct, captured, strict=True)}
        sums = _sum(b, [b.add(_jumped(b, sums, jump), here[x]) for jump, x in enumerate(steps)])
        return [b.add(at, b.const(1, int64)), _written(b, found, sums, at), sums]

    room = b.expand(b.const(0, first.dtype), shape=(count, batch, states))
    return repeated(b, count, [b.const(0, int64), room, first], distinct, turn)[1]


def _written(b: Any, room: Any, part: Any, at: Any) -> Any:
    """The room with a part at one step."""
    zero = b.const(0, int64)
    return b.update_slice(room, b.reshape(part, shape=(1, *room.shape[1:])), at, zero, zero)


def _path_sums_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """The gradient goes back along each jump by the share that the jump has in the sum of its state."""
    first, *steps = inputs
    count, batch, states = y.shape
    start = b.reshape(first, shape=(1, batch, states))
    before = b.slice(b.concat(start, y, axis=0), starts=(0, 0, 0), steps=(1, 1, 1), sizes=y.shape)
    # The shares of the jumps that end in a state sum to 1, whatever was rounded in their sum: no gradient is lost on the way.
    each, total, _ = _weighed(b, [b.add(_jumped(b, before, jump), x) for jump, x in enumerate(steps)])
    shares = [b.div(x, total) for x in each]

    def turn(carried: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        at, found, behind = carried
        own, *inner = captured
        here = b.add(b.gather(own, at, axis=0), behind)
        parts = [_jumped(b, b.mul(here, b.gather(x, at, axis=0)), jump, back=True) for jump, x in enumerate(inner)]
        behind = parts[0]
        for x in parts[1:]:
            behind = b.add(behind, x)
        return [b.sub(at, b.const(1, int64)), _written(b, found, here, at), behind]

    zero = b.const(0, first.dtype)
    room, none = b.expand(zero, shape=y.shape), b.expand(zero, shape=first.shape)
    last = b.const(count - 1, int64)
    _, reached, by_first = repeated(b, count, [last, room, none], [g, *shares], turn)
    return [by_first, *(b.mul(reached, share) for share in shares)]


register(
    Composite(name="path_sums", public=False,
              doc="the logarithms of the sums over all paths to each state (batch, states), after each step. Inputs: logarithms at "
              "first; those of the weights of each step (steps, batch, states), by which a state is reached from itself, then from the one before "
              "it, then from the one before that, …",
              lower=_path_sums, vjp=_path_sums_vjp, dtypes=(float32, float64), tolerance=64, floor=1e-5),
)  # fmt: skip
