"""Values of models that are no tensors: trees with tensors at their leaves.

A tuple is a sequence, `Stack` one of equal elements whose length a run may find, None an optional that holds nothing, `Pairs`
a dict, and `Table` a list of dicts with the same keys. An optional that holds a value is that value. A Graph has only the
leaves, as separate inputs and outputs; element k of the sequence `x` is called "x.k".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ..dtypes import DType
from ..late_dataclass import dataclass
from ..shapes import Shape
from .node import Node


@dataclass(frozen=True)
class Pairs:
    """A dict: vectors of its keys and its values."""

    keys: Any
    values: Any


@dataclass(frozen=True)
class Table:
    """A list of dicts: each row of a matrix has the values for the keys."""

    keys: tuple[str | int, ...]
    rows: Any


@dataclass(frozen=True)
class Stack:
    """A sequence of tensors of one shape: element k is row k of a tensor."""

    rows: Any


Value: TypeAlias = "Node | tuple[Value, ...] | Stack | Pairs | Table | None"
"""A tree of Nodes."""


@dataclass(frozen=True)
class Part:
    """A leaf of an input: the name of its tensor, the element type, and the shape."""

    name: str
    dtype: DType
    shape: Shape


@dataclass(frozen=True)
class Kind:
    """What an input may be: a "tensor", a "sequence", an "optional" or a "map". `of`: what the last three hold. dtype: of a
    tensor's elements, or of a map's keys."""

    name: str
    dtype: DType | None = None
    of: Kind | None = None

    def __str__(self) -> str:
        if self.name == "tensor":
            return f"tensor({self.dtype})"
        return f"{self.name}({'' if self.dtype is None else f'{self.dtype}, '}{self.of})"


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)
    elif isinstance(tree, Pairs):
        yield tree.keys
        yield tree.values
    elif isinstance(tree, (Stack, Table)):
        yield tree.rows
    elif tree is not None:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with function(leaf) in place of each leaf, in order."""
    if isinstance(tree, tuple):
        return tuple(mapped(function, part) for part in tree)
    if isinstance(tree, Pairs):
        return Pairs(function(tree.keys), function(tree.values))
    if isinstance(tree, Stack):
        return Stack(function(tree.rows))
    if isinstance(tree, Table):
        return Table(tree.keys, function(tree.rows))
    return None if tree is None else function(tree)


def named(name: str, tree: Any) -> Any:
    """The tree with a name for each leaf."""
    if isinstance(tree, tuple):
        return tuple(named(f"{name}.{k}", part) for k, part in enumerate(tree))
    if isinstance(tree, Pairs):
        return Pairs(f"{name}.keys", f"{name}.values")
    if isinstance(tree, Stack):
        return Stack(name)
    if isinstance(tree, Table):
        return Table(tree.keys, name)
    return None if tree is None else name


def described(tree: Any) -> str:
    """A tree's kind, for people."""
    if isinstance(tree, tuple):
        return f"a sequence of {len(tree)}"
    if isinstance(tree, Stack):
        return f"a sequence of {tree.rows.shape[0]}"
    if isinstance(tree, (Pairs, Table)):
        return "a map" if isinstance(tree, Pairs) else "a sequence of maps"
    return "an optional that holds nothing" if tree is None else f"a tensor ({tree.dtype})"
