"""How a row is written: the kinds of entries of the tables in rows/.

A row's name ↦ the Rules for it, of which the first that takes a node writes it. Where none does, a composite is written as the nodes
that it is lowered to, and an elementwise row as the words of its body; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np

from ...dtypes import DType
from ...graph import Node
from ...late_dataclass import dataclass
from ...ops import Elementwise
from .block import Block

Names: TypeAlias = "str | tuple[str, ...]"


@dataclass(frozen=True)
class Rule:
    """write: (block, node, the names of what it reads) ↦ the names of its values. takes: whether the rule writes a node. reads: the
    nodes that must be written before; where a rule writes several nodes as one op, those below all of them."""

    write: Callable[..., Names]
    takes: Callable[[Block, Node], bool] = field(default=lambda w, n: True)
    reads: Callable[[Node], Sequence[Node]] = field(default=lambda n: n.inputs)


def kind_taken(op: str) -> Callable[[Block, Node], bool]:
    """Whether an op takes the type of a node's first input, or its compute type."""
    return lambda w, n: w.carrier(op, n.inputs[0].dtype) is not None


def are_exact(n: Node, kind: DType) -> bool:
    """Whether the numbers among a node's attributes are as exact in a file, which has them as float32, as in a type."""
    defaults = n.row.defaults if isinstance(n.row, Elementwise) else {}
    numbers = [v for v in {**defaults, **n.attrs}.values() if isinstance(v, float)]
    return kind.bits <= 32 or all(v != v or float(np.float32(v)) == v for v in numbers)
