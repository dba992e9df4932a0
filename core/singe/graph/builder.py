"""The Builder makes nodes. Nodes with equal row, inputs and attributes are interned, so each computation has one node.

A small integer constant may hold Sizes (an object array), so that shape arithmetic on symbolic dimensions is plain
constant folding. The node of a Composite also has the nodes that it is lowered to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from ..dtypes import FLOATS, DType, contents, dtype, holds_strings, int64, own, string, strings
from ..errors import CompileError, ShapeError, SizeNeeded
from ..ir.arrays import convert
from ..ir.scalar import exact
from ..ops import (
    ROWS,
    SIZES,
    Composite,
    Elementwise,
    Nest,
    Opaque,
    Region,
    Result,
    Row,
    Running,
    Update,
    elementwise_vjp,
    narrow,
    without_sizes,
)
from ..shapes import Dim, Size, plain, product, repetitions, size, symbols
from .graph import Graph
from .node import Node, attribute_symbols, evaluate_node, leaf, postorder

WHOLE: Final = (Nest, Opaque, Update, Running)
"""Kinds of row that cannot compute with Sizes."""
INTERNED_BYTES: Final = 4096
"""Constants up to this size are interned by content; larger ones by identity."""


class Builder:
    """Makes nodes. Every row is a method: `b.exp(x)`, `b.transpose(x, perm=(1, 0))`."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}
        self._values: dict[Node, Any] = {}
        self._taken: set[str] = set()  # names of sizes
        self.size_nodes: dict[str, Node] = {}
        """Sizes found in mid-run ↦ the nodes that give them; see Graph.bound."""

    def input(self, name: str, shape: Sequence[Any], kind: DType) -> Node:
        self._taken |= symbols(shape)
        return leaf(plain(tuple(shape)), kind, name)

    def const(self, value: Any, kind: DType | None = None) -> Node:
        """A constant from a number, a Size, or an array; numbers default to float32, int64, bool or complex64."""
        if isinstance(value, Size):
            array = np.empty((), object)
            array[()] = value.plain
        elif isinstance(value, np.ndarray):
            array = value
        else:
            array = np.asarray(value)
            natural = {"f": np.float32, "b": np.bool_, "c": np.complex64, "i": np.int64, "u": np.int64}
            array = array.astype(natural.get(array.dtype.kind, array.dtype)) if kind is None else array
        if holds_strings(array) or (kind is string and array.dtype == object):
            array = strings(array)
        if array.dtype == object:
            array = narrow(array, np.dtype(np.int64))
        if array.dtype == object:
            return self._intern(
                ("symbols", kind, array.shape, tuple(array.ravel())),
                lambda: leaf(array.shape, kind or int64, value=array),
            )
        array = own(array)
        if kind is not None:
            array = convert(array, kind.numpy)
        kind = dtype(array.dtype)
        key = ("const", kind, array.shape, contents(array)) if array.nbytes <= INTERNED_BYTES else ("const", id(array))
        return self._intern(key, lambda: leaf(array.shape, kind, value=array))

    def shape_of(self, x: Node) -> Node:
        """The shape as an int64 vector, symbolic dimensions included."""
        array = np.empty(len(x.shape), object)
        array[:] = x.shape
        return self.const(array)

    def size_of(self, x: Node) -> Dim:
        """The only element of an integer node as a dimension: known now, or a Size that a run finds."""
        if not x.dtype.is_int or product(x.shape) != 1:
            raise ShapeError(f"{x!r} cannot be a size: expected one integer")
        known = self.value_of(x)
        if known is not None:
            found = known.reshape(-1)[0]
            return found if isinstance(found, Size) else int(found)
        for name, node in self.size_nodes.items():
            if node is x:
                return size(name)
        name = self.fresh("size")
        self.size_nodes[name] = x
        return size(name)

    def bind(self, found: Mapping[str, Node]) -> None:
        """Sizes that nodes of this Builder find in a run, by names that a graph has given them."""
        self.size_nodes = {**found, **self.size_nodes}
        self._taken.update(found)

    def fresh(self, op: str) -> str:
        """A name for a size that no input gives."""
        number = 0
        while (name := f"{op}.{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def graph(self, inputs: Sequence[Node], outputs: Sequence[Node], checks: Mapping[Dim, str] | None = None) -> Graph:
        """A region over nodes of this Builder. The sizes that depend only on its inputs are bound within it."""
        own = set(inputs)
        bound = {s: n for s, n in self.size_nodes.items() if all(x in own for x in postorder([n]) if x.is_input)}
        return Graph(tuple(inputs), tuple(outputs), ("",) * len(outputs), bound, checks=checks or {})

    def apply(self, row: Row, *inputs: Node | None, **attrs: Any) -> Any:
        """The value of a row over inputs: a node, or a tuple of nodes if the row has several results."""
        n = self.node(row, *inputs, **attrs)
        return n if len(n.results) == 1 else self.results_of(n)

    def results_of(self, n: Node) -> tuple[Node, ...]:
        """The values of a node, each as a node of its own."""
        return (n,) if len(n.results) == 1 else tuple(self.node(_RESULT, n, index=k) for k in range(len(n.results)))

    def node(self, row: Row, *inputs: Node | None, **attrs: Any) -> Node:
        """The node of a row over inputs, however many results it has; equal nodes are the same object."""
        attrs = {k: _frozen(v) for k, v in attrs.items() if v is not None}
        given = tuple(x for x in inputs if x is not None)
        key = _key(row, inputs, attrs)
        found = self._nodes.get(key)
        if found is None:
            if isinstance(row, Composite):
                row.check_dtypes(given[:1])
                lowered = row.lower(self, *inputs, **attrs)
                lowered = lowered if isinstance(lowered, tuple) else (lowered,)
                found = Node(row, given, attrs, tuple((x.shape, x.dtype) for x in lowered), lowered=lowered)
            elif isinstance(row, Result):
                results = (row.infer(given, attrs),)
                found = Node(
                    row,
                    given,
                    attrs,
                    results,
                    lowered=tuple(given[0].lowered[k] for k in (attrs["index"],) if given[0].lowered),
                )
            else:
                found = self._plain(row, given, attrs)
            self._nodes[key] = found
        return found

    def again(self, n: Node, inputs: tuple[Node, ...]) -> Node:
        """The node of a node's row and attributes over other inputs. Over inputs of the same shapes and types it has the same results."""
        row = n.row
        assert row is not None
        if isinstance(row, (Composite, Result, Region)) or SIZES in n.attrs:
            return self.node(row, *inputs, **n.attrs)
        key = _key(row, inputs, n.attrs)
        found = self._nodes.get(key)
        if found is None:
            same = all(x is y or x.results == y.results for x, y in zip(inputs, n.inputs, strict=True))
            found = Node(row, inputs, n.attrs, n.results) if same else self._plain(row, inputs, dict(n.attrs))
            self._nodes[key] = found
        return found

    def _plain(self, row: Row, arguments: tuple[Node, ...], attrs: dict[str, Any]) -> Node:
        """A node of any other row. Dimensions that only a run can find get names."""
        results = row.infer_results(arguments, attrs)
        names = attrs.get(SIZES, ())
        if not names and all(d is not None for shape, _ in results for d in shape):
            return Node(row, arguments, attrs, tuple((tuple(shape), kind) for shape, kind in results))  # pyright: ignore[reportArgumentType]
        # A dimension keeps its name even after its number becomes known: other nodes use the name.
        dims = [d for shape, _ in results for d in shape]
        names = names or tuple(self.fresh(row.name) if d is None else "" for d in dims)
        attrs[SIZES] = names
        whole = iter(size(name) if name else d for name, d in zip(names, dims, strict=True))
        n = Node(row, arguments, attrs, tuple((tuple(next(whole) for _ in shape), kind) for shape, kind in results))  # pyright: ignore[reportArgumentType]
        self.size_nodes.update((name, n) for name in names if name)
        self._nodes[_key(row, arguments, attrs)] = n
        return n

    def _intern(self, key: Any, make: Callable[[], Node]) -> Node:
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = make()
        return found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        row = ROWS.get(name)
        if row is None:
            raise AttributeError(f"there is no op named {name!r}")
        return lambda *inputs, **attrs: self.apply(row, *inputs, **attrs)

    @property
    def count(self) -> int:
        """How many nodes were made."""
        return len(self._nodes)

    def made_since(self, count: int) -> list[Node]:
        """The nodes that were made since there were so many."""
        return [*islice(reversed(self._nodes.values()), len(self._nodes) - count)]

    def value_of(self, x: Node) -> np.ndarray | None:
        """The value of a node that depends only on constants (which may hold Sizes); None if only a run can find it, or if it
        takes results of more than MAX_VALUE_ELEMENTS elements."""
        return x.value if x.value is not None else self._value_of(x)

    def _value_of(self, x: Node) -> Any:
        """Like `value_of`, but also a tuple of arrays for a node of several results."""
        values = self._values

        def unknown(m: Node) -> tuple[Node, ...]:
            return () if m in values else m.lowered or m.inputs

        if x not in values:
            # First, without computing anything, what only a run can find: the constants beside it are not needed.
            for n in postorder([x], unknown):
                if n.is_input or (
                    n.op not in _DECIDES and any(values.get(m, n) is None for m in n.lowered or n.inputs)
                ):
                    values[n] = None
            for n in postorder([x], unknown):
                if n not in values:
                    values[n] = n.value if n.is_const else self._evaluate(n)
        return values[x]

    def _evaluate(self, n: Node) -> Any:
        if n.lowered:
            found = tuple(self._values[x] for x in n.lowered)
            return None if any(v is None for v in found) else found[0] if len(n.results) == 1 else found
        values = [self._values[x] for x in n.inputs]
        if n.op in _DECIDES and any(
            v is not None and v.shape == n.shape and (v == _DECIDES[n.op]).all() for v in values
        ):
            return np.full(n.shape, _DECIDES[n.op])
        counts = [product(shape) for shape, _ in n.results]
        if any(isinstance(count, int) and count > MAX_VALUE_ELEMENTS for count in counts):
            return None
        if isinstance(n.row, Region) or any(v is None for v in values) or attribute_symbols(n):
            return None
        if isinstance(n.row, WHOLE) and any(v.dtype == object for v in values):
            fold = _FOLDS.get(n.op)
            return (
                None if fold is None else fold.reduce(values[0], tuple(n.attrs["axes"]), keepdims=True).reshape(n.shape)
            )
        try:
            return evaluate_node(n, values)
        except SizeNeeded:
            return None

    def vjp(self, y: Node, x: Node, g: Node) -> Node:
        """The gradient of x, an input of y, from the gradient g of y."""
        return self.gradients(y, g)[y.inputs.index(x)] or self.expand(self.const(0, x.dtype), shape=x.shape)

    def gradients(self, y: Node, g: Any) -> Sequence[Node | None]:
        """The gradients of a node's inputs, from its own gradient g (a sequence if it has several results)."""
        row = y.row
        if not any(x.dtype in FLOATS for x in y.inputs):
            return [None] * len(y.inputs)
        if row is not None and not row.no_gradient:
            if row.vjp is not None:
                return row.vjp(self, g, y.inputs, y, **without_sizes(y.attrs))
            if isinstance(row, Elementwise):
                return elementwise_vjp(self, row, g, y.inputs, y.attrs)
        why = row.no_gradient if row is not None and row.no_gradient else "its row gives none"
        raise CompileError(f"{y.op} has no gradient: {why}; where its input counts as a constant, detach it")


_DECIDES: Final = {"logical_and": False, "logical_or": True}
"""An op ↦ the operand that decides its result, whatever the other is."""
_FOLDS: Final = {"reduce_prod": np.multiply, "reduce_sum": np.add}
"""An op that folds axes ↦ what it does with two elements, which may be Sizes."""
MAX_VALUE_ELEMENTS: Final = 1 << 20
"""The most elements of a result that is computed to find a value."""
_RESULT: Final = ROWS["result"]


def _key(row: Row, inputs: tuple[Node | None, ...], attrs: Mapping[str, Any]) -> Any:
    return row.name, inputs, exact(tuple(sorted(attrs.items()))) if attrs else (), repetitions()


def _frozen(value: Any) -> Any:
    if value.__class__ is int:
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, Size):
        return value.plain
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_)) else value
