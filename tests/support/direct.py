"""The meaning of a Graph: it is evaluated node by node as it was built, without rewriting, fusion or a Program.

    outputs, states = evaluate(graph, arrays, states)

A row with a reference is evaluated by it, floats in float64, and rounded once to the node's dtype. A row without one
is evaluated by its function of whole arrays, a composite by its lowering. Sizes come from the arrays and the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rows.references import REFERENCES

from singe.dtypes import bool_, widened
from singe.graph import Graph, Node
from singe.ir.arrays import convert
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops import Region, Result
from singe.shapes import Shape, Size, known

Arrays = Sequence[np.ndarray]
OWN_MEANING = ("cast",)
"""Rows whose references work only with NumPy's own types."""


def evaluate(graph: Graph, arrays: Arrays, states: Arrays = ()) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The outputs, and the next values of the states."""
    found = _Run(graph, [*arrays, *states], {}).roots()
    return found[: len(graph.outputs)], found[len(graph.outputs) :]


class _Run:
    """A run of one graph over arrays for its leaves. sizes: those that are known outside of the graph."""

    def __init__(self, graph: Graph, given: Arrays, sizes: Mapping[str, int]) -> None:
        self.graph = graph
        self.sizes = dict(sizes)
        self.values: dict[Node, Any] = {}
        for x, array in zip(graph.leaves, given, strict=True):
            assert array.dtype == x.dtype.numpy, f"{x!r} is given {array.dtype}"
            self._meet(x.shape, array.shape)
            self.values[x] = array

    def roots(self) -> list[np.ndarray]:
        told: dict[Node, list[str]] = {}
        for name, n in self.graph.own_size_nodes.items():
            told.setdefault(n, []).append(name)
        for n in self.graph.nodes:
            value = self._value(n)
            for name in told.get(n, ()):
                self.sizes[name] = _told(n, value, name)
            for (shape, kind), array in zip(n.results, value if isinstance(value, tuple) else (value,), strict=True):
                assert array.dtype == kind.numpy, f"{n!r} became {array.dtype}"
                self._meet(shape, array.shape)
        return [self.values[n] for n in self.graph.roots]

    def _meet(self, shape: Shape, lengths: Sequence[int]) -> None:
        """Check that an array's lengths agree with a shape; sizes that are not known yet are taken from the lengths."""
        assert len(shape) == len(lengths), f"{shape} and {lengths}"
        for d, length in zip(shape, lengths, strict=True):
            if isinstance(d, Size) and str(d) not in self.sizes and d.terms == (((str(d),), 1),):
                self.sizes[str(d)] = length
            assert known(d, self.sizes) == length, f"{d} of {shape} is {length}"

    def _value(self, n: Node) -> Any:
        if n not in self.values:
            self.values[n] = self._computed(n)
        return self.values[n]

    def _computed(self, n: Node) -> Any:
        if n.value is not None:
            return n.value if n.value.dtype != object else self._sized(n)
        assert n.row is not None
        attrs = {k: self._number(v) for k, v in n.attrs.items()}
        if isinstance(n.row, Result):
            return self._value(n.lowered[0]) if n.lowered else self._value(n.inputs[0])[n.attrs["index"]]
        given = [self._value(x) for x in n.inputs]
        if isinstance(n.row, Region):
            found = tuple(self._if(*given, **attrs) if n.op == "if" else self._loop(*given, **attrs))
            return found if len(n.results) > 1 else found[0]
        if n.op in REFERENCES and n.op not in OWN_MEANING:
            wide = [widened(a).astype(np.float64) if x.dtype.is_float else widened(a) if x.dtype.held else a
                    for x, a in zip(n.inputs, given, strict=True)]  # fmt: skip
            with np.errstate(all="ignore"):
                return convert(np.asarray(REFERENCES[n.op](*wide, **attrs)), n.dtype.numpy)
        if n.lowered:
            found = tuple(self._value(x) for x in n.lowered)
            return found if len(n.results) > 1 else found[0]
        with np.errstate(all="ignore"):
            return n.row.run(NUMPY_ARRAYS, given, attrs)

    def _number(self, value: Any) -> Any:
        """An attribute with its sizes replaced by numbers."""
        if isinstance(value, tuple):
            return tuple(map(self._number, value))
        return known(value, self.sizes) if isinstance(value, Size) else value

    def _sized(self, n: Node) -> np.ndarray:
        assert n.value is not None
        numbers = [known(d, self.sizes) for d in n.value.ravel().tolist()]
        return np.array(numbers, np.int64).astype(n.dtype.numpy).reshape(n.value.shape)

    def _if(self, condition: np.ndarray, *captures: np.ndarray, then: Graph, otherwise: Graph, **_: Any) -> Arrays:
        return _Run(then if condition.reshape(-1)[0] else otherwise, captures, self.sizes).roots()

    def _loop(
        self, *given: np.ndarray, body: Graph, carried: int, conditional: bool, count: int | None = None, **_: Any
    ) -> Arrays:
        again = bool(given[0].reshape(-1)[0]) if conditional else True
        values, captures = list(given[conditional:][:carried]), given[conditional:][carried:]
        turn = 0
        while again and (count is None or turn < count):
            told, *values = _Run(body, [*values, *captures], self.sizes).roots()
            assert told.dtype == bool_.numpy
            again, turn = bool(told.reshape(-1)[0]) if conditional else True, turn + 1
        return values


def _told(n: Node, value: Any, name: str) -> int:
    """The size with this name, which is the value of the node or a dimension of one of its results."""
    names = n.attrs.get("found", ())
    if name not in names:
        return int(value.reshape(-1)[0])
    lengths = [d for array in (value if isinstance(value, tuple) else (value,)) for d in array.shape]
    return lengths[names.index(name)]
