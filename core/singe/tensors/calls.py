"""Rows called with tensors, arrays and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, ValuesView
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from ..dtypes import int64
from ..errors import InputError, SingeError
from ..ops import Composite, Elementwise, Row
from ..shapes import Size
from .nodes.promotion import PLAIN, as_type, common_type
from .tensor import Tensor, TensorLike, apply, value_on


def elementwise(row: Elementwise, operands: Sequence[TensorLike], **attrs: Any) -> Tensor:
    """An elementwise row over operands, which are first converted to their common dtype."""

    def build(b: Any, *argument_nodes: Any) -> Any:
        takes = row.argument_types or ("T",) * len(argument_nodes)
        kind = common_type([x for x, takes_it in zip(argument_nodes, takes, strict=False) if takes_it == "T"])
        nodes = [
            as_type(b, x, kind) if k == "T" or isinstance(x, PLAIN) else x
            for x, k in zip(argument_nodes, takes, strict=False)
        ]
        return b.apply(row, *nodes, *argument_nodes[len(takes) :], **attrs)

    return apply(build, *[x if isinstance(x, Tensor) else operand(x) for x in operands])


def operand(x: Any) -> Any:
    """The operand; a NumPy scalar as a Python number."""
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, (str, bytes, dict)):
        raise InputError(f"an operand is {x!r:.80}, expected a Tensor, an array or a number")
    return x


def apply_row(row: Row, operands: Sequence[TensorLike | None], **attrs: Any) -> Any:
    """Any row over operands; a tuple of tensors if it has several results. Numbers take the first operand's dtype, but
    for indices, which are int64."""
    if isinstance(row, Elementwise):
        return elementwise(row, [x for x in operands if x is not None], **attrs)

    if has_sizes(attrs.values()):
        operands = [traced(operands[0]), *operands[1:]]

    def build(b: Any, first: Any, *rest: Any) -> Any:
        kinds = [int64 if row.is_index(k) and not isinstance(x, float) else first.dtype for k, x in enumerate(rest, 1)]
        nodes = [as_type(b, x, kind) if isinstance(x, PLAIN) else x for x, kind in zip(rest, kinds, strict=True)]
        return b.apply(row, first, *nodes, **attrs)

    try:
        return apply(build, *map(operand, operands))
    except TypeError as e:
        if not isinstance(e, SingeError):
            _check_call(row, operands, attrs)
        raise


def has_sizes(argument: Any) -> bool:
    """Whether a Size is among arguments: in sequences and slices, too."""
    if isinstance(argument, (tuple, list, ValuesView)):
        return any(map(has_sizes, argument))
    return isinstance(argument, Size) or (isinstance(argument, slice) and has_sizes((argument.start, argument.stop)))


def traced(x: Any) -> Any:
    """A tensor of a device as one of the function that is being traced, to which the sizes belong."""
    from .tracing import tracer  # noqa: PLC0415 (it is there where sizes are)

    on = tracer()
    return Tensor(on, value_on(on, x)) if isinstance(x, Tensor) and not x.device.trace_depth else x


def declared(row: Row) -> list[Any]:
    """The parameters of a row; attributes are keyword-only."""
    found = list(row.parameters)
    if isinstance(row, (Elementwise, Composite)):
        return found
    inputs = ("Shaped", "Shaped | None", "np.ndarray", Parameter.empty)
    first = next((i for i, p in enumerate(found) if p.annotation not in inputs), len(found))
    return [
        p.replace(kind=p.KEYWORD_ONLY) if p.kind is p.POSITIONAL_OR_KEYWORD and i >= first else p
        for i, p in enumerate(found)
    ]


def _check_call(row: Row, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
    """Refuse inputs and attributes that the functions of a row do not take."""
    parameters = declared(row)
    try:
        Signature(parameters).bind(*operands, **attrs)
    except TypeError as e:
        names = ", ".join(str(p).split(":")[0] for p in parameters)
        raise InputError(f"{row.name}({names}): {e}; pass what is no tensor by name") from None
