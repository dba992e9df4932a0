"""The operators, elementwise functions and reductions of NamedTensor, made of the tables that make those of Tensor.

A member calls the method of Tensor of its name: elementwise ones with operands in one order of names, those along axes with axes in
place of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...ops import ROWS, Elementwise
from ..methods.attach import ALONG_AXIS, AS_WRITTEN, SPELLINGS, written
from ..methods.row_methods import names_of
from ..tensor import Tensor
from .alignment import aligned, axes_named, shown

REQUIRED: Final = Parameter.empty
ANNOTATIONS: Final = {
    "Axis": "Sequence[str] | str | None", "int": "str", "int | None": "str | None", "int | Tensor | np.ndarray | None": "str | None",
}  # fmt: skip
"""Types of axes ↦ those of names."""
BY_OTHERS: Final = ("__getitem__", "__matmul__")
"""Operators that do not go element by element."""


def attach(named_tensor: Any) -> None:
    """Give the class its members, but for those that it has."""
    for name, axis in _along():
        setattr(named_tensor, name, _along_names(named_tensor, name, axis))
    for name in _elementwise():
        if name not in vars(named_tensor):
            setattr(named_tensor, name, _of_elements(named_tensor, name))
    for name in AS_WRITTEN:
        for operator in (name, name.replace("__", "__r", 1)):
            if name not in BY_OTHERS and operator in vars(Tensor):
                setattr(named_tensor, operator, _of_elements(named_tensor, operator))
    named_tensor.__hash__ = object.__hash__  # as Tensor: == gives a tensor


def _elementwise() -> Iterator[str]:
    for row in ROWS.values():
        if isinstance(row, Elementwise):
            yield from (name for name in names_of(row) if name in vars(Tensor))


def _along() -> Iterator[tuple[str, Parameter]]:
    """The methods that go along axes, which are their first argument."""
    rows = {name for row in ROWS.values() if row.along for name in names_of(row)}
    for name in sorted(rows | ALONG_AXIS):
        parameters = [*signature(getattr(Tensor, name)).parameters.values()][1:]
        if parameters and parameters[0].name == "axis":
            yield name, parameters[0]


def _of_elements(named_tensor: Any, name: str) -> Any:
    member = getattr(Tensor, name)

    def function(self: Any, *operands: Any, **options: Any) -> Any:
        given = [*operands, *options.values()]
        others = [x for x in given if isinstance(x, named_tensor)]
        for x in given:
            if not isinstance(x, named_tensor) and (isinstance(x, (list, tuple)) or _axes_of(x)):
                raise InputError(
                    f"{written(name)}: got the names {shown(self.names)} and an operand without names, of {_axes_of(x) or 1} axes; "
                    "expected names or a number; sg.tensor(other).named(…) gives it some"
                )
        if not others:
            return _labelled(named_tensor, member(self.tensor, *operands, **options), self.names)
        names, tensors = aligned(written(name), [(x.names, x.tensor) for x in (self, *others)])
        first, *rest = tensors
        left = iter(rest)
        placed = [next(left) if isinstance(x, named_tensor) else x for x in given]
        values = dict(zip(options, placed[len(operands) :], strict=True))
        return _labelled(named_tensor, member(first, *placed[: len(operands)], **values), names)

    return _described(function, name, member)


def _axes_of(x: Any) -> int:
    return x.ndim if isinstance(x, (Tensor, np.ndarray)) else 0


def _along_names(named_tensor: Any, name: str, axis: Parameter) -> Callable[..., Any]:
    member = getattr(Tensor, name)
    several = axis.kind is axis.VAR_POSITIONAL
    folds = "keepdims" in signature(member).parameters

    def function(self: Any, *names: Any, **options: Any) -> Any:
        spelled = [key for key in options if SPELLINGS.get(key, key) == "axis"]
        if len(spelled) + (len(names) > 0) > 1 or (len(names) > 1 and not several):
            raise InputError(
                f"{name}: got the dimensions {names}, expected one name, or several in a tuple; pass other arguments by name"
            )
        chosen = options.pop(spelled[0]) if spelled else names if several else names[0] if names else None
        if isinstance(chosen, (tuple, list)) and not (several or _text(axis.annotation) == "Axis"):
            raise InputError(f"{name}: got the dimensions {shown(chosen)}, expected one of {shown(self.names)}")
        if chosen is None or (several and not chosen):
            if axis.default is not None:
                raise InputError(f"{name}: got no dimension, expected one of {shown(self.names)}")
            given, axes = (), range(len(self.names))
        else:
            axes = axes_named(name, chosen, self.names)
            given = axes if several else (axes if isinstance(chosen, (tuple, list)) else axes[0],)
        made = member(self.tensor, *given, **options)
        whole = not folds or options.get("keepdims", options.get("keepdim", False))
        return _labelled(named_tensor, made, [own for k, own in enumerate(self.names) if whole or k not in axes])

    return _described(function, name, member)


def _labelled(named_tensor: Any, made: Any, names: Sequence[str]) -> Any:
    """What a method gave, with names: a tensor, or a tuple of them."""
    if isinstance(made, Tensor):
        return named_tensor(made, names)
    if isinstance(made, tuple):
        return getattr(made, "_make", tuple)([named_tensor(x, names) for x in made])
    return made


def _described(function: Callable[..., Any], name: str, member: Any) -> Any:
    """The function with the name, the text and the parameters of Tensor's, of which those that are axes are names."""
    made: Any = function
    made.__name__, made.__qualname__, made.__doc__ = name, f"NamedTensor.{name}", member.__doc__
    own = signature(member)
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for p in [*own.parameters.values()][1:]:
        annotation = _text(p.annotation)
        if p.name == "axis":
            default = p.default if p.default in (None, REQUIRED) else REQUIRED
            kind = "str" if p.kind is p.VAR_POSITIONAL else ANNOTATIONS.get(annotation, annotation)
            parameters.append(p.replace(annotation=kind, default=default))
        else:
            kind = p.KEYWORD_ONLY if parameters[-1].name == "axis" or parameters[-1].kind is p.KEYWORD_ONLY else p.kind
            parameters.append(p.replace(annotation=annotation.replace("TensorLike", "NamedLike"), kind=kind))
    gives = {"Tensor": "NamedTensor", "bool": "bool"}.get(_text(own.return_annotation), "Any")
    made.__signature__ = Signature(parameters, return_annotation=gives)
    return made


def _text(annotation: Any) -> str:
    if annotation is Parameter.empty:
        return "Any"
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
