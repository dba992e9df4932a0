"""The rows of `singe.ops` as methods."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from ...errors import SingeError
from ...hints import suggest
from ...ops import ROWS, Elementwise, Row
from ..argument_errors import checked
from ..calls import apply_row, declared
from ..tensor import Tensor
from .attach import SPELLINGS, alias, let_name


def row_method(row: Row) -> Any:
    """A row as a method."""

    def method(x: Tensor, *others: Any, **attrs: Any) -> Any:
        own = [p.name for p in row.parameters] if attrs else ()
        named = {name if name in own else SPELLINGS.get(name, name): value for name, value in attrs.items()}
        if isinstance(row, Elementwise) and len(others) >= row.arity:  # as in x.leaky_relu(0.2)
            names = [p.name for p in row.parameters if p.kind is p.KEYWORD_ONLY]
            named = dict(zip(names, others[row.arity - 1 :], strict=False)) | named
            others = others[: row.arity - 1]
        try:
            return apply_row(row, (x, *others), **named)
        except SingeError as e:
            let_name(e, row.name)
            raise

    method.__name__ = row.name
    method.__qualname__ = f"Tensor.{row.name}"
    method.row = row  # pyright: ignore[reportFunctionMemberAccess]
    method.__doc__ = row.doc
    method.__signature__ = _signature(row)  # pyright: ignore[reportFunctionMemberAccess]
    return method


def _signature(row: Row) -> Signature:
    """The parameters of the method: inputs come by position, attributes by name."""
    first, *others = declared(row)
    if first.kind is first.VAR_POSITIONAL:
        others.insert(0, first)
    parameters = [Parameter("self", first.POSITIONAL_OR_KEYWORD)]
    for p in others:
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            kind = "Any"
        else:
            kind = "TensorLike" if p.default is p.empty or p.kind is p.VAR_POSITIONAL else "TensorLike | None"
        parameters.append(p.replace(annotation=kind))
    return Signature(parameters, return_annotation="Tensor" if isinstance(row, Elementwise) else "Any")


def _method_of_row(x: Tensor, name: str) -> Callable[..., Any]:
    """The method of a row that was registered after this module was imported."""
    row = ROWS.get(name)
    if row is None or not row.public:
        hint = suggest("Tensor", name) or _unchanged(name)
        raise AttributeError(f"a tensor has no method {name!r}{hint}", name=name, obj=x)
    return row_method(row).__get__(x)


def _names(x: Tensor) -> list[str]:
    return sorted({*object.__dir__(x), *(name for name, row in ROWS.items() if row.public)})


alias("__getattr__", _method_of_row)
alias("__dir__", _names)


def attach_rows() -> None:
    """Make rows methods of Tensor, unless a method of this name is written out."""
    for row in ROWS.values():
        if row.public and not hasattr(Tensor, row.name):
            setattr(Tensor, row.name, checked(row_method(row)))


def _unchanged(name: str) -> str:
    """What to write in place of a method of PyTorch that changes its tensor."""
    if name.startswith("_") or not name.endswith("_"):
        return ""
    other = name.rstrip("_")
    same = f"x = x.{other}(…), or " if hasattr(Tensor, other) else ""
    return f"; in its place: a tensor does not change: {same}x = x.at[key].set(value)"
