"""Functions of several Tensors that are sums of products."""

from __future__ import annotations

from typing import Any

from .nodes.meet import as_type, common_type
from .tensor import Tensor, TensorLike, apply


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products of elements in the notation of NumPy, in the operands' common dtype: `einsum("ij,jk->ik", a, b)`."""

    def build(b: Any, *nodes: Any) -> Any:
        kind = common_type(nodes)
        return b.einsum(*(as_type(b, n, kind) for n in nodes), equation=equation)

    return apply(build, *operands)
