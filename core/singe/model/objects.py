"""Lists, dicts and None as inputs and results of models: `parted` takes them apart, `whole` puts them together.

A list is a sequence, None an optional that holds nothing, a dict a map; see graph/objects.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dtypes import DType, outward
from ..errors import InputError
from ..graph import Kind, Pairs, Part, Stack, Table
from ..shapes import size
from .arguments import TensorSpec, as_array


def parted(name: str, value: Any, kind: Kind) -> tuple[Any, dict[str, np.ndarray]]:
    """The tree of Parts of an argument, in which each length is open, and its tensors by name."""
    arrays: dict[str, np.ndarray] = {}

    def part(name: str, value: Any, dtype: DType | None) -> Part:
        assert dtype is not None
        arrays[name] = array = outward(as_array(value, TensorSpec(name, dtype, None)))
        return Part(name, dtype, tuple(size(f"{name}.{axis}") for axis in range(array.ndim)))

    def tree(name: str, value: Any, kind: Kind) -> Any:
        of = kind.of
        if kind.name == "tensor" or of is None:
            return part(name, value, kind.dtype)
        if kind.name == "optional":
            return None if value is None else tree(name, value, of)
        if kind.name == "map":
            if not isinstance(value, Mapping):
                raise InputError(f"input {name!r}: got {value!r:.60}, expected a dict: {kind}")
            return Pairs(
                part(f"{name}.keys", list(value), kind.dtype), part(f"{name}.values", list(value.values()), of.dtype)
            )
        if not isinstance(value, (list, tuple)):
            raise InputError(f"input {name!r}: got {value!r:.60}, expected a list: {kind}")
        return tuple(tree(f"{name}.{k}", x, of) for k, x in enumerate(value))

    return tree(name, value, kind), arrays


def whole(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A result, from the tree of its tensors' names."""
    if isinstance(tree, tuple):
        return [whole(part, arrays) for part in tree]
    if isinstance(tree, Stack):
        rows = arrays[tree.rows]
        return [rows[k, ...] for k in range(len(rows))]
    if isinstance(tree, Pairs):
        keys, values = (outward(arrays[name]).tolist() for name in (tree.keys, tree.values))
        return dict(zip(keys, values, strict=True))
    if isinstance(tree, Table):
        return [dict(zip(tree.keys, row, strict=True)) for row in arrays[tree.rows].tolist()]
    return None if tree is None else arrays[tree]
