"""Batches: each part of one is an array, a Tensor, a Module, or a dict of these, as a Loader makes it of a table's rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType, float32
from ...errors import DTypeError, InputError, ShapeError
from ...nn import Module
from ...nn._module import CONTAINERS, everything_in, joined, tensors_in, with_parts
from ...tensors.tensor import Tensor


def fields_of(batch: Any) -> tuple[Any, ...]:
    """A batch of a Loader as the arguments of a loss function behind the model; a dict is one of them."""
    fields = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    if not fields or not hasattr(fields[0], "__len__"):
        raise InputError(f"a batch is {batch!r:.60}, expected an array, a dict of arrays, or a tuple of these")
    return fields


def arrays_in(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, array) of a part that is an array, or of each array in it."""
    if isinstance(part, Module):
        for at, t, _ in tensors_in(part):
            yield joined(path, at), t.numpy()
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield from arrays_in(value, joined(path, str(key)))
    else:
        array = part.numpy() if isinstance(part, Tensor) else np.asarray(part)
        if getattr(array, "dtype", np.dtype(object)).kind in "OUS":
            raise DTypeError(
                f"the batch's part {path!r} is {part!r:.60}, expected an array of numbers; Dataset.map or a Loader's transform "
                "makes numbers of it, or leaves it out"
            )
        yield path, array


def arrays_of(batch: Iterable[Any]) -> list[Any]:
    """All arrays of a batch, in order."""
    return [array for k, part in enumerate(batch) for _, array in arrays_in(part, f"{k}")]


def mapped(rule: Callable[[Any], Any], part: Any) -> Any:
    """rule(part), or a dict with the rule's result in place of each array and Module in it."""
    return {key: mapped(rule, value) for key, value in part.items()} if isinstance(part, Mapping) else rule(part)


def filled(part: Any, tensors: Iterator[Tensor]) -> Any:
    """A part with the next of some tensors in place of each of its arrays."""
    if isinstance(part, Module):
        return with_parts(part, lambda x: next(tensors) if isinstance(x, Tensor) else x)
    return mapped(lambda x: filled(x, tensors) if isinstance(x, Module) else next(tensors), part)


def formed(part: Any) -> Module | None:
    """What a trace keeps of a part: a copy of a Module, which stays as it is when the Module's lists and dicts change."""
    return with_parts(part, lambda x: x, shared=True) if isinstance(part, Module) else None


def modules_in(parts: Mapping[Any, Any], path: str = "") -> Iterator[tuple[str, Module]]:
    """(what a user writes for it, Module) of each Module among named parts and in dicts of them."""
    for name, part in parts.items():
        at = f"{path}[{name!r}]" if path else str(name)
        if isinstance(part, Module):
            yield at, part
        elif isinstance(part, Mapping):
            yield from modules_in(part, at)


def computing_in(kind: DType | None, part: Any) -> Any:
    """A part with a type in place of float32; without one as it is."""
    if kind is None:
        return part
    return mapped(lambda x: x.cast(kind) if isinstance(x, Module) or x.dtype is float32 else x, part)


def form(part: Any) -> Any:
    """What parts of a batch have in common that a Program can take: shapes, types, and all of a Module but its numbers."""
    if isinstance(part, Module):
        return tuple((path, _kind(x)) for path, x, _ in everything_in(part))
    if isinstance(part, Mapping):
        return tuple((key, form(value)) for key, value in part.items())
    return np.shape(part), part.dtype.numpy if isinstance(part, Tensor) else np.asarray(part).dtype


def _kind(x: Any) -> Any:
    match x:
        case Tensor():
            return form(x)
        case np.ndarray():
            return x.shape, x.dtype, x.tobytes()
        case _ if isinstance(x, CONTAINERS):
            return type(x)
        case _:
            return type(x), x if isinstance(x, Hashable) else repr(x)


def rows_in(part: Any) -> Iterator[Any]:
    """The arrays of a part that are no Module's, as they are: those that have a row for each item."""
    if isinstance(part, Mapping):
        for value in part.values():
            yield from rows_in(value)
    elif not isinstance(part, Module):
        yield part


def items_of(batch: Sequence[Any]) -> int:
    """How many items a batch has: the length of its first array."""
    for part in batch:
        for array in rows_in(part):
            if np.ndim(array):
                return len(array)
    raise ShapeError("a batch needs an array with a row for each item")


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters of a function that it takes by position; none, if it does not tell them."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def part_names(loss: Callable[..., Any], count: int) -> list[str]:
    """Names for the parts of a batch: those of the loss function's parameters behind the model, if it names them."""
    named = parameters_of(loss)
    return named[1 : count + 1] if len(named) > count else [f"x{k}" for k in range(count)]
