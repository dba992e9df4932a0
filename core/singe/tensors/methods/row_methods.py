"""The rows of `singe.ops` as methods and operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, Final

from ...dtypes import COMPLEX, INTS, bool_, float32, int64
from ...errors import SingeError
from ...hints import suggest
from ...ops import ROWS, Elementwise, Row
from ...shapes import axis_of
from ..argument_errors import checked
from ..arithmetic import compute
from ..calls import apply_row, declared
from ..nodes.shaping import Axis, chosen_axes
from ..numpy_fallback import numpy_fallback
from ..tensor import Tensor, TensorLike
from .attach import SPELLINGS, accept_torch_names, alias, let_name, of_numbers, takes
from .folds import folded

SUM_TYPES: Final = {bool_: int64, **{d: int64 for d in INTS if d.bits < 64}}
"""The dtype in which integers are summed and multiplied, as in NumPy and PyTorch."""


def function_of(row: Elementwise) -> Callable[..., Tensor]:
    """The method of a row whose operands are promoted."""

    def one(x: Tensor) -> Tensor:
        return compute(row.name, x)

    def two(x: Tensor, other: TensorLike) -> Tensor:
        return compute(row.name, x, other)

    function = two if row.arity == 2 else one
    function.__name__, function.__qualname__ = row.name, f"Tensor.{row.name}"
    function.__doc__ = row.doc
    return function


def operator_of(row: Elementwise, name: str, reflected: bool = False) -> Callable[..., Any]:
    """The operator, the method of this name, of a row."""

    def one(x: Tensor) -> Tensor:
        return compute(row.name, x)

    def two(x: Tensor, other: Any) -> Tensor:
        if not takes(name, other):
            return NotImplemented
        return compute(row.name, other, x) if reflected else compute(row.name, x, other)

    method = two if row.arity == 2 else one
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    return method


def axes_function_of(row: Row) -> Callable[..., Tensor]:
    """The method of a row that folds axes."""
    name = names_of(row)[0]

    def over(x: Tensor, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
        elements, axes = _promoted(x, row, dtype), chosen_axes(axis, x.ndim, name)
        return folded(elements, row.name, axes, keepdims, {"axes": axes})

    return over


def axis_function_of(row: Row) -> Callable[..., Tensor]:
    """The method of a row that goes along an axis."""
    name = names_of(row)[0]
    default = next(p.default for p in row.parameters if p.name == "axis")
    required = default is Parameter.empty

    def along(x: Tensor, axis: int = -1, dtype: Any = None) -> Tensor:
        elements = _promoted(x, row, dtype)
        at = axis_of(axis, x.ndim, name) if required else axis  # None is the default, where there is one
        if row.complex and elements.dtype in COMPLEX:
            return numpy_fallback(name, row.numpy, elements, axis=at)
        return apply_row(row, (elements,), axis=at)

    along.__defaults__ = (None,) if required else (default, None)
    return along


def _promoted(x: Tensor, row: Row, dtype: Any) -> Tensor:
    """The elements that a row folds."""
    y = x if dtype is None else x.cast(dtype)
    if row.promote == "float":
        return y if y.dtype.is_float else y.cast(float32)
    return y.cast(SUM_TYPES.get(y.dtype, y.dtype)) if row.promote == "sum" and dtype is None else y


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


def names_of(row: Row) -> Sequence[str]:
    """The names of a row's method."""
    return (row.name, *row.also) if row.public else row.also


def method_of(row: Row) -> Any:
    """The method of a row, which refuses what is given in place of Tensors."""
    if row.along:
        function = axes_function_of(row) if row.along == "axes" else axis_function_of(row)
        function.__name__, function.__doc__ = names_of(row)[0], row.doc
        function.__qualname__ = f"Tensor.{function.__name__}"
        return of_numbers(accept_torch_names(function))
    if isinstance(row, Elementwise) and row.promote:
        return accept_torch_names(function_of(row))
    return checked(row_method(row))


def _method_of_row(x: Tensor, name: str) -> Callable[..., Any]:
    """The method of a row that was registered after this module was imported."""
    rows = () if name.startswith("_") else ROWS.values()  # NumPy asks for such names in each of its calls
    row = next((row for row in rows if name in names_of(row)), None)
    if row is None:
        hint = suggest("Tensor", name) or _unchanged(name)
        raise AttributeError(f"a tensor has no method {name!r}{hint}", name=name, obj=x)
    return method_of(row).__get__(x)


def _names(x: Tensor) -> list[str]:
    return sorted({*object.__dir__(x), *(name for row in ROWS.values() for name in names_of(row))})


alias("__getattr__", _method_of_row)
alias("__dir__", _names)


def attach_rows() -> None:
    """Make rows methods and operators of Tensor, unless a method of this name is written out."""
    for row in ROWS.values():
        for name in names_of(row):
            if name not in vars(Tensor):
                setattr(Tensor, name, method_of(row))
        if isinstance(row, Elementwise) and row.operator:
            alias(f"__{row.operator}__", operator_of(row, f"__{row.operator}__"))
            if row.arity == 2 and row.result_type != "bool":
                alias(f"__r{row.operator}__", operator_of(row, f"__r{row.operator}__", reflected=True))


def _unchanged(name: str) -> str:
    """What to write in place of a method of PyTorch that changes its tensor."""
    if name.startswith("_") or not name.endswith("_"):
        return ""
    other = name.rstrip("_")
    same = f"x = x.{other}(…), or " if hasattr(Tensor, other) else ""
    return f"; in its place: a tensor does not change: {same}x = x.at[key].set(value)"
