"""A random Graph that is being drawn: its nodes, facts about them, and its inputs; draws.py has the steps that draw.

A value is exact if it is computed only from small whole numbers by moving, adding and multiplying. Comparisons,
sorting, and conversion to integers are drawn only over exact values, since one bit may change their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np

from singe.dtypes import FLOATS, NUMBERS, STORED, DType, bool_
from singe.errors import DTypeError, ShapeError, SizeNeeded
from singe.graph import Builder, Node
from singe.ir.arrays import convert
from singe.shapes import Dim, Size, at_least, evaluate, product, size, symbols

LARGEST: Final = 1500
"""The most elements of a tensor when every size is 3: graphs are many, not large."""
WHOLE: Final = {"float64": 2.0**53, "float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}
"""The largest n such that a float type holds all whole numbers up to n. All storage-only floats hold those up to 8."""
MOST: Final = {"float16": 500.0, "bfloat16": 100.0}
"""The largest absolute values that are drawn in float16 and bfloat16; 2000 for other floats."""


@dataclass
class Sketch:
    """A graph that is being drawn: its nodes, which of them are exact, and their bounds. kinds:
    the dtypes it may have."""

    rng: np.random.Generator
    kinds: Sequence[DType]
    b: Builder = field(default_factory=Builder)
    depth: int = 0
    nodes: list[Node] = field(default_factory=list)
    exact: set[Node] = field(default_factory=set)
    bound: dict[Node, float] = field(default_factory=dict)  # the largest absolute value
    names: Iterator[int] = field(default_factory=count)

    def inner(self) -> Sketch:
        """A sketch of a region of this graph."""
        return Sketch(self.rng, self.kinds, self.b, self.depth + 1, names=self.names)

    def own_size(self) -> Dim:
        """A size with a new name."""
        return size(f"own{next(self.names)}")

    def add(self, n: Node, exact: bool, bound: float) -> None:
        if n.dtype is bool_:
            exact, bound = True, 1
        elif n.dtype.is_int:
            exact, bound = True, min(bound, float(2 ** (n.dtype.bits - (n.dtype.kind == "int"))))
        elif bound > min(MOST.get(n.dtype.name, 2000.0), 8 if n.dtype in STORED else 2000):
            return
        if n.dtype not in self.kinds or elements(n) > LARGEST or len(n.shape) > 5 or n in self.bound:
            return
        self.nodes.append(n)
        self.bound[n] = bound
        if exact:
            self.exact.add(n)

    def pick(self, where: Callable[[Node], bool] = lambda n: True) -> Node | None:
        """A random node that fits; recent nodes are chosen more often."""
        fit = [n for n in self.nodes if where(n)]
        return fit[-1 - int(len(fit) * self.rng.random() ** 2)] if fit else None

    def partner(self, x: Node) -> Node | None:
        """A node of the same dtype that broadcasts with x."""
        return self.pick(
            lambda n: (
                n.dtype is x.dtype
                and len(n.shape) <= len(x.shape)
                and all(d in (1, e) for d, e in zip(n.shape[::-1], x.shape[::-1], strict=False))
            )
        )

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def whole(self, low: int, high: int) -> int:
        """A random integer from low to high, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def kind(self, *among: DType) -> DType:
        """One of these dtypes that the graph may have."""
        return self.one_of(*(k for k in among if k in self.kinds))

    def grow(self, steps: Sequence[Step], many: int) -> None:
        """Draw this many steps. Steps that the rows refuse are skipped."""
        for _ in range(many):
            try:
                self.one_of(*steps)(self)
            except (ShapeError, DTypeError, SizeNeeded):
                continue


Step = Callable[[Sketch], None]
"""Draws one node or a few, or none if no node fits."""


def elements(n: Node) -> int:
    return int(evaluate(product(n.shape), dict.fromkeys(symbols(n.shape), 3)))  # pyright: ignore[reportArgumentType]


def by_name(b: Builder, row: str, *inputs: Node, **attrs: Any) -> Node:
    return getattr(b, row)(*inputs, **attrs)


def is_float(n: Node) -> bool:
    return n.dtype in FLOATS


def is_number(n: Node) -> bool:
    return n.dtype in NUMBERS


def axis_in(s: Sketch, x: Node) -> int:
    return int(s.rng.integers(len(x.shape)))


def open_sizes(s: Sketch) -> list[Dim]:
    """The sizes that occur as dimensions of the nodes."""
    return list(dict.fromkeys(d for n in s.nodes for d in n.shape if isinstance(d, Size)))


def filled(x: Node, axis: int) -> bool:
    """Whether an axis has at least one element at every size."""
    return at_least(x.shape[axis], 1)


def numbers(shape: Sequence[Dim]) -> bool:
    return all(isinstance(d, int) for d in shape)


def drawn_input(s: Sketch, name: str, kind: DType, fixed: bool = False) -> Node:
    """An input of a random shape; some of its lengths are open, unless it is fixed."""
    lengths = tuple(int(d) for d in s.one_of((3,), (4, 6), (2, 5, 4), (4, 3, 6), (), (3, 4, 4)))
    lead = () if s.chance(0.1) else (s.one_of(1, 2) if fixed or s.chance(0.3) else size("N"),)
    if lengths and not fixed and s.chance(0.25):
        at = s.whole(0, len(lengths) - 1)
        lengths = (*lengths[:at], size("M"), *lengths[at + 1 :])
    x = s.b.input(name, (*lead, *lengths), kind)
    s.add(x, True, 1 if kind is bool_ else 7 if kind in STORED else 4)
    return x


def values_for(x: Node, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    """Small whole numbers of an input's dtype."""
    shape = [int(evaluate(d, sizes)) for d in x.shape]  # pyright: ignore[reportArgumentType]
    whole = rng.integers(0 if x.dtype.kind in ("uint", "bool") else -4, 2 if x.dtype is bool_ else 5, shape)
    return convert(whole.astype(x.dtype.compute.numpy), x.dtype.numpy)
