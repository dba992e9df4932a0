"""Composites for which a target has a function, a user wrote a shader, or NumPy has one call: there they are one step, elsewhere
they are lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph import Builder, Node, evaluate_node, postorder
from ..ops import Composite, Opaque, Row
from .host import lacking
from .target import Target


def own_kernels(target: Target | None) -> Callable[[Node], Row | None]:
    """The function that gives the row with which a composite stays whole, if the target has a function for it."""

    def whole(n: Node) -> Row | None:
        row = n.row
        if not isinstance(row, Composite):
            return None
        if target is None:
            return None if row.whole is None else _opaque(row)
        if lacking(n, target):
            return None
        if row.wgsl is None and not row.function:
            return None
        given = tuple((x.shape, x.dtype) for x in n.inputs)
        return None if target.print_opaque(n.op, n.attrs, given, n.results) is None else _opaque(row)

    return whole


@lru_cache(maxsize=256)
def _opaque(row: Composite) -> Opaque:
    """The opaque form of a composite. Constants are folded through the rows to which the composite is lowered."""

    def shapes(*inputs: Node, **attrs: Any) -> Sequence[Any]:
        b = Builder()
        return b.node(row, *(b.input("", x.shape, x.dtype) for x in inputs), **attrs).results

    def computed(*arrays: np.ndarray, **attrs: Any) -> Any:
        b = Builder()
        made = b.node(row, *map(b.const, arrays), **attrs)
        values: dict[Node, Any] = {}
        for n in postorder(made.lowered, lambda n: n.lowered or n.inputs):
            if n.lowered:
                values[n] = values[n.lowered[0]] if len(n.results) == 1 else tuple(values[x] for x in n.lowered)
            else:
                values[n] = n.value if n.value is not None else evaluate_node(n, [values[x] for x in n.inputs])
        found = tuple(values[x] for x in made.lowered)
        return found[0] if len(found) == 1 else found

    return Opaque(name=row.name, doc=row.doc, shapes=shapes, whole=row.whole or computed, wgsl=row.wgsl)
