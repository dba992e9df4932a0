"""What the ops of this folder share: conditions, equal elements as rows of one tensor, values for people."""

from __future__ import annotations

from collections.abc import Sequence

from ....dtypes import DType, string, strings
from ....graph import Builder, Node, Stack, Value, postorder, symbols_of
from ....shapes import Shape, axis_of, product, show
from .._call import Call


def scalar(call: Call, x: Node, what: str) -> Node:
    if product(x.shape) != 1:
        raise call.fail(f"{what} has the shape {show(x.shape)}; expected one element")
    return x if x.shape == () else call.b.reshape(x, shape=())


def kind_of(x: Node) -> str:
    """A tensor's type, for people."""
    return f"{x.dtype} of shape {show(x.shape)}"


def symbols_below(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset().union(*(symbols_of(n) for n in postorder(nodes)))


def nodes(values: Sequence[Value]) -> list[Node]:
    return [x for x in values if isinstance(x, Node)]


def blank(b: Builder, kind: DType, shape: Shape) -> Node:
    """A tensor of zeros, or of empty strings."""
    return b.expand(b.const(strings("") if kind is string else 0, kind), shape=shape)


def are_equal(elements: Sequence[Value]) -> bool:
    """Whether these are tensors of one type and shape, and one at least."""
    found = nodes(elements)
    return len(found) == len(elements) and len({(x.dtype, x.shape) for x in found}) == 1


def joined(b: Builder, tensors: Sequence[Node], axis: int = 0) -> Node:
    """Tensors of one shape along a new axis."""
    shape = tensors[0].shape
    at = axis_of(axis, len(shape) + 1, "a sequence's tensors")
    parts = [b.reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:])) for x in tensors]
    return parts[0] if len(parts) == 1 else b.concat(*parts, axis=at)


def stack(b: Builder, sequence: Sequence[Value]) -> Stack | None:
    """A sequence whose elements are equal as rows of one tensor; None if they are not, or there is none."""
    return Stack(joined(b, nodes(sequence))) if are_equal(sequence) else None
