"""Applies a model's Graph to Tensors, so that it becomes part of a task's."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError
from ..graph import Graph
from ..graph.transform import specialise
from ..shapes import Size, show
from ..tensors.tensor import Tensor, home_of, value_on


def applied(graph: Graph, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """The outputs of a Graph, of Tensors, whose sizes those that it leaves open become."""
    if len(graph.inputs) != len(inputs) or not all(
        _fits(x.shape, given.shape) for x, given in zip(graph.inputs, inputs, strict=True)
    ):
        told = ", ".join(f"{x.name!r} {show(x.shape)}" for x in graph.inputs)
        raise InputError(
            f"task: a model takes {told or 'nothing'}, expected {', '.join(show(x.shape) for x in inputs)}"
        )
    pairs = (
        (d, n) for x, given in zip(graph.inputs, inputs, strict=True) for d, n in zip(x.shape, given.shape, strict=True)
    )
    sizes = {str(d): n for d, n in pairs if isinstance(d, Size)}
    home = home_of(inputs)
    outputs = home.run(specialise(graph, sizes) if sizes else graph, [value_on(home, x) for x in inputs])
    return {name: Tensor(home, x) for name, x in zip(graph.output_names, outputs, strict=True)}


def first_of(graph: Graph, x: Tensor) -> Tensor:
    """The first output of a Graph that has one input."""
    return next(iter(applied(graph, [x]).values()))


def _fits(own: Sequence[object], given: Sequence[object]) -> bool:
    """Whether sizes are those that a Graph has; open ones may be any."""
    return len(own) == len(given) and all(
        isinstance(d, Size) or isinstance(n, Size) or d == n for d, n in zip(own, given, strict=True)
    )
