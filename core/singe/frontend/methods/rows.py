"""The rows of `singe.ops` as methods, and calls of rows with tensors, arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import int64
from ...errors import InputError, SingeError
from ...ops import ROWS, Composite, Elementwise, Region, Result, Row
from ..meet import PLAIN, as_type, common_type
from ..tensor import Tensor, TensorLike, apply
from .attach import alias

NO_METHODS: Final = (Region, Result)
"""Kinds of row for which a Tensor has no method: their inputs are graphs, or nodes of several results."""


def elementwise(row: Elementwise, operands: Sequence[TensorLike], **attrs: Any) -> Tensor:
    """An elementwise row over operands, which are first converted to their common dtype."""

    def build(b: Any, *given: Any) -> Any:
        takes = row.takes or ("T",) * len(given)
        kind = common_type([x for x, takes_it in zip(given, takes, strict=False) if takes_it == "T"])
        nodes = [
            as_type(b, x, kind) if k == "T" or isinstance(x, PLAIN) else x for x, k in zip(given, takes, strict=False)
        ]
        return b.apply(row, *nodes, *given[len(takes) :], **attrs)

    return apply(build, *map(operand, operands))


def operand(x: Any) -> Any:
    """The operand; a NumPy scalar as a Python number."""
    return x.item() if isinstance(x, np.generic) else x


def call_row(row: Row, operands: Sequence[TensorLike | None], **attrs: Any) -> Any:
    """Any row over operands; a tuple of tensors if it has several results. Numbers take the first operand's dtype, but
    for indices, which are int64."""
    if isinstance(row, Elementwise):
        return elementwise(row, [x for x in operands if x is not None], **attrs)

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


def declared(row: Row) -> list[Any]:
    """The parameters of a row: those of the function that declares it, without the builder. Attributes are keyword-only."""
    import inspect  # noqa: PLC0415 (errors and stubs may take their time, `import singe` may not)

    function = getattr(row, row.declared_by or next(f for f in ("body", "whole") if hasattr(row, f)))
    found = list(inspect.signature(function).parameters.values())[isinstance(row, Composite) :]
    if isinstance(row, (Elementwise, Composite)):
        return found
    inputs = ("Shaped", "Shaped | None", "np.ndarray", inspect.Parameter.empty)
    first = next((i for i, p in enumerate(found) if p.annotation not in inputs), len(found))
    return [
        p.replace(kind=p.KEYWORD_ONLY) if p.kind is p.POSITIONAL_OR_KEYWORD and i >= first else p
        for i, p in enumerate(found)
    ]


def _check_call(row: Row, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
    """Refuse inputs and attributes that the functions of a row do not take."""
    from inspect import Signature  # noqa: PLC0415

    parameters = declared(row)
    try:
        Signature(parameters).bind(*operands, **attrs)
    except TypeError as e:
        names = ", ".join(str(p).split(":")[0] for p in parameters)
        raise InputError(f"{row.name}({names}): {e}; pass what is no tensor by name") from None


# --- as methods ------------------------------------------------------------------------------------------------------


def row_method(row: Row) -> Any:
    """A row as a method."""

    def method(x: Tensor, *others: Any, **attrs: Any) -> Any:
        return call_row(row, (x, *others), **attrs)

    method.__name__ = row.name
    method.__qualname__ = f"Tensor.{row.name}"
    method.row = row  # pyright: ignore[reportFunctionMemberAccess]
    method.__doc__ = row.doc or f"{row.name} of each element"
    return method


def _method_of_row(x: Tensor, name: str) -> Callable[..., Any]:
    """The method of a row that was registered after this module was imported."""
    row = ROWS.get(name)
    if row is None or isinstance(row, NO_METHODS):
        raise AttributeError(f"a tensor has no method {name!r}{_closest(name)}", name=name, obj=x)
    return row_method(row).__get__(x)


def _names(x: Tensor) -> list[str]:
    return sorted({*object.__dir__(x), *(name for name, row in ROWS.items() if not isinstance(row, NO_METHODS))})


alias("__getattr__", _method_of_row)
alias("__dir__", _names)


def attach_rows() -> None:
    """Make every row a method of Tensor, unless a method of this name is written out."""
    for row in ROWS.values():
        if not isinstance(row, NO_METHODS) and not hasattr(Tensor, row.name):
            setattr(Tensor, row.name, row_method(row))


def _closest(name: str) -> str:
    if name.startswith("__"):  # Python's and NumPy's protocols often look these up
        return ""
    import difflib  # noqa: PLC0415 (an error may take its time, `import singe` may not)

    near = difflib.get_close_matches(name, [n for n in {*dir(Tensor), *ROWS} if not n.startswith("_")], 1)
    return f"; did you mean {near[0]!r}?" if near else ""
