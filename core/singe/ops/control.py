"""The rows that own graphs: `if` and `loop`; and `result`, one value of a node that has several.

if    inputs (condition, *captures); attributes `then` and `otherwise`, graphs over the captures whose outputs are the
      node's results. A dimension in which the branches differ is known once one of them has run.
loop  inputs (condition if `conditional`, *initial values, *captures); attributes `carried`, how many values are carried
      from turn to turn; `count`, the largest number of turns (None: no limit); `body`, a graph over the carried values
      and the captures with outputs (whether to go on, *carried values). Without `conditional` the first output is
      ignored. Results: the carried values after the last turn, or the initial values if there was no turn. A dimension
      of a carried value that changes from turn to turn is a Size that the body defines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import bool_
from ..errors import DTypeError, ShapeError
from ..shapes import Dim, Shape, repeating, show, symbols
from .kinds import ROWS, Region, Result, Results, Shaped, register


def _condition(what: str, x: Shaped) -> None:
    if x.dtype is not bool_ or any(d != 1 for d in x.shape):
        raise DTypeError(f"{what}: the condition is {x.dtype} of shape {show(x.shape)}, expected one bool")


def _takes(what: str, graph: Any, inputs: Sequence[Shaped]) -> None:
    if len(graph.inputs) != len(inputs):
        raise ShapeError(f"{what}: the region takes {len(graph.inputs)} values, got {len(inputs)}")
    for k, (x, given) in enumerate(zip(graph.inputs, inputs, strict=True)):
        if x.dtype is not given.dtype or len(x.shape) != len(given.shape):
            raise ShapeError(
                f"{what}: value {k} of the region is {x.dtype} of shape {show(x.shape)}, "
                f"got {given.dtype} of shape {show(given.shape)}"
            )


def _if(condition: Shaped, *captures: Shaped, then: Any, otherwise: Any) -> Results:
    _condition("if", condition)
    for branch in (then, otherwise):
        _takes("if", branch, captures)
    if len(then.outputs) != len(otherwise.outputs):
        raise ShapeError(f"if: one branch gives {len(then.outputs)} values, the other {len(otherwise.outputs)}")
    inner = then.own_size_nodes.keys() | otherwise.own_size_nodes.keys()
    results = []
    for k, (a, b) in enumerate(zip(then.outputs, otherwise.outputs, strict=True)):
        if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
            raise ShapeError(
                f"if: value {k} is {a.dtype} of shape {show(a.shape)} in one branch, {b.dtype} of shape {show(b.shape)} in the other"
            )
        shape = [d if d == e and not symbols(d) & inner else None for d, e in zip(a.shape, b.shape, strict=True)]
        results.append((shape, a.dtype))
    return results


def open_dimensions(initial: Shape, before: Shape, after: Shape) -> list[int]:
    """The axes of a carried value whose length may change between turns; the body has a Size of its own for each."""
    return [i for i, (d, e, f) in enumerate(zip(initial, before, after, strict=True)) if not d == e == f]


def _loop(*inputs: Shaped, body: Any, carried: int, conditional: bool, count: Dim | None = None) -> Results:
    if conditional:
        _condition("loop", inputs[0])
        inputs = inputs[1:]
    if len(body.outputs) != carried + 1 or carried > len(inputs):
        raise ShapeError(f"loop: {carried} values are carried, the body gives {len(body.outputs) - 1} and a condition")
    if count is None and not conditional:
        raise ShapeError("loop: needs a number of turns or a condition to end")
    _condition("loop", body.outputs[0])
    _takes("loop", body, inputs)
    results = []
    for k in range(carried):
        first, before, after = inputs[k], body.inputs[k], body.outputs[k + 1]
        if after.dtype is not before.dtype or len(after.shape) != len(before.shape):
            raise ShapeError(
                f"loop: carried value {k} is {before.dtype} of shape {show(before.shape)} before a turn, "
                f"{after.dtype} of shape {show(after.shape)} after it"
            )
        changing = open_dimensions(first.shape, before.shape, after.shape)
        for axis in changing:
            if len(symbols(before.shape[axis])) != 1 or symbols(before.shape[axis]) & symbols(first.shape):
                raise ShapeError(
                    f"loop: axis {axis} of carried value {k} is {first.shape[axis]} at first and {after.shape[axis]} after "
                    "a turn: the body must take it as a size of its own"
                )
        results.append(([None if i in changing else d for i, d in enumerate(first.shape)], first.dtype))
    return results


def repeated(
    b: Any, count: Dim, initial: Sequence[Any], captures: Sequence[Any], turn: Callable[..., Sequence[Any]]
) -> tuple[Any, ...]:
    """A loop of `count` turns over `initial`; turn(carried values, captured values) gives the next carried values."""
    before = [b.input("carried", x.shape, x.dtype) for x in initial]
    inner = [b.input("captured", x.shape, x.dtype) for x in captures]
    with repeating(count):
        body = b.graph((*before, *inner), (b.const(True), *turn(before, inner)))
    made = b.node(ROWS["loop"], *initial, *captures, body=body, carried=len(initial), conditional=False, count=count)
    return b.results_of(made)


register(
    Result(name="result", doc="one of the results of a node that has several"),
    Region(name="if", doc="the results of one of two graphs, chosen by a condition", results=_if),
    Region(
        name="loop",
        doc="a graph run repeatedly; each turn starts from the values that the last one gave",
        results=_loop,
    ),
)
