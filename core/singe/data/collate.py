"""Items become a batch: the same structure, in which each array has a leading axis of items.

| in the items | in the batch |
|---|---|
| arrays and Tensors of one shape | an array (items, *shape) |
| NumPy scalars | an array of their dtype |
| bools, ints, floats | an array of bool, int64, float32 |
| tuples and lists | a tuple of batches, one for each place |
| dicts | a dict of batches |
| strings and anything else | a list |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ShapeError
from ..late_dataclass import dataclass
from ..tensors.tensor import Tensor


def collate(items: Sequence[Any]) -> Any:
    """The batch of some items."""
    if not items:
        raise InputError("collate: got no items, expected at least one")
    first = items[0]
    if isinstance(first, Tensor):
        return _stacked([x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in items])
    if isinstance(first, (np.ndarray, np.generic)):
        return _stacked([np.asarray(x) for x in items])
    if isinstance(first, (bool, int, float)):
        return _numbers(items)
    if isinstance(first, Mapping):
        if any(not isinstance(x, Mapping) or x.keys() != first.keys() for x in items):
            raise InputError(
                f"collate: the first item has the keys {list(first)}, and another item has not"
                "; expected the same keys in all: map the dataset, or give collate= a function"
            )
        return {key: collate([x[key] for x in items]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(not isinstance(x, (tuple, list)) or len(x) != len(first) for x in items):
            raise InputError(
                f"collate: the first item is a {type(first).__name__} of {len(first)}, and another item is not; "
                "PadCollate makes sequences of different lengths into arrays"
            )
        columns = [collate(column) for column in zip(*items, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    return list(items)


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    for place, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"collate: arrays of shapes {arrays[0].shape} and {array.shape} (places 0 and {place} of the batch); "
                "give them one shape, or pad them by PadCollate"
            )
    return np.stack(arrays)


def _numbers(items: Sequence[Any]) -> np.ndarray:
    kinds = {type(x) for x in items}
    if not all(issubclass(kind, (bool, int, float, np.generic)) for kind in kinds):
        names = sorted(kind.__name__ for kind in kinds)
        raise InputError(
            f"collate: numbers mixed with other values: {', '.join(names)}; expected fields of one kind in all "
            "items: map the dataset, or give collate= a function"
        )
    dtype = np.bool_ if kinds == {bool} else np.int64 if kinds <= {bool, int} else np.float32
    try:
        return np.array(items, dtype)
    except OverflowError:
        raise InputError(
            "collate: an int of an item does not fit into int64; expected smaller ones, or floats"
        ) from None


def _sequence(x: Any) -> np.ndarray:
    """The array of a sequence; Python's floats are float32, as elsewhere in batches."""
    if isinstance(x, Tensor):
        return x.numpy()
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == np.float64 and not isinstance(x, np.ndarray) else array


@dataclass(frozen=True)
class PadCollate:
    """A `collate` for sequences of different lengths, which are padded at their end to the longest of the batch.

    fields: the keys (in items that are dicts) or places (in tuples) of the sequences; None: the items are sequences.
    length: pad to this length instead; longer sequences are cut if `truncate`, else refused. value: of the padding.

    A batch also has masks, True where there is a value: `key + "_mask"` in a dict, at the end of a tuple in the order of
    `fields`, and (padded, mask) for items that are sequences. `mask.sum(1)` are the lengths; `~mask` is what attention
    takes as `key_padding_mask`.
    """

    fields: str | int | Sequence[str | int] | None = None
    length: int | None = None
    value: float = 0
    truncate: bool = False

    def __call__(self, items: Sequence[Any]) -> Any:
        if not items:
            raise InputError("PadCollate: got no items, expected at least one")
        if self.fields is None:
            return self._padded(items, "the items")
        names = [self.fields] if isinstance(self.fields, (str, int)) else list(self.fields)
        try:
            padded = {name: self._padded([x[name] for x in items], f"field {name!r}") for name in names}
        except (KeyError, IndexError, TypeError):
            raise InputError(
                f"PadCollate: the items have no field of {names}: {items[0]!r:.80}; name fields that they have"
            ) from None
        if isinstance(items[0], Mapping):
            rest = [{k: v for k, v in x.items() if k not in padded} for x in items]
            batch = collate(rest) if rest[0] else {}
            made = {k: padded[k][0] if k in padded else batch[k] for k in items[0]}
            return made | {f"{name}_mask": mask for name, (_, mask) in padded.items()}
        places = {name % len(items[0]): made for name, made in padded.items() if isinstance(name, int)}
        columns = [
            places[i][0] if i in places else collate(column) for i, column in enumerate(zip(*items, strict=True))
        ]
        return (*columns, *(mask for _, mask in padded.values()))

    def _padded(self, values: Sequence[Any], what: str) -> tuple[np.ndarray, np.ndarray]:
        arrays = [_sequence(x) for x in values]
        for array in arrays:
            if array.ndim == 0 or array.shape[1:] != arrays[0].shape[1:] or array.dtype == object:
                raise ShapeError(
                    f"PadCollate: {what}: got shapes {arrays[0].shape} and {array.shape}, expected sequences of numbers "
                    "that differ in their first axis only"
                )
        longest = max(map(len, arrays))
        length = longest if self.length is None else self.length
        if longest > length and not self.truncate:
            raise ShapeError(
                f"PadCollate: {what}: a sequence of {longest}, longer than {length}; truncate=True cuts it"
            )
        full = [array for array in arrays if len(array)] or arrays  # an empty list has no type of its own
        dtype = np.result_type(*full)
        if dtype == np.float64 and all(array.dtype != np.float64 for array in full):  # of ints and float32
            dtype = np.dtype(np.float32)
        with np.errstate(invalid="ignore"):
            exact = np.float64(self.value).astype(dtype) == self.value
        if dtype.kind in "biu" and not exact:
            raise InputError(f"PadCollate: {what}: got value={self.value!r}, expected one that {dtype} can hold")
        padded = np.full((len(arrays), length, *arrays[0].shape[1:]), self.value, dtype)
        mask = np.zeros((len(arrays), length), np.bool_)
        for i, array in enumerate(arrays):
            used = min(len(array), length)
            padded[i, :used], mask[i, :used] = array[:used], True
        return padded, mask


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    """A function of every leaf of a structure of tuples and dicts."""
    if isinstance(tree, dict):
        return {key: mapped(f, value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        made = [mapped(f, value) for value in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else tuple(made)
    return f(tree)
