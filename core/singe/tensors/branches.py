"""A branch of a traced function: in each run one of two functions runs, as a condition says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..ops import ROWS
from .tensor import Tensor, apply
from .tracing import within

Branch: TypeAlias = Callable[..., Sequence[Tensor]]


def branch(condition: Tensor, then: Branch, otherwise: Branch, values: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of then(*values) where the condition, one bool, holds, and of otherwise(*values) elsewhere. They take no other
    Tensor of the trace, and give as many results of the same shapes and types."""

    def build(b: Any, condition: Any, *nodes: Any) -> Any:
        inner = [b.input("captured", x.shape, x.dtype) for x in nodes]
        graphs = {name: b.graph(inner, within(b, f, inner)) for name, f in (("then", then), ("otherwise", otherwise))}
        return b.results_of(b.node(ROWS["if"], condition, *nodes, **graphs))

    made = apply(build, condition, *values)
    return made if isinstance(made, tuple) else (made,)
