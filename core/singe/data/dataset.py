"""Datasets: sequences of items that are read when they are asked for, and datasets made of other datasets.

An item is an array, a number, a string, or a tuple or dict of these. A class of one's own gives `__len__` and
`__getitem__`, for indices from 0 to len − 1. Datasets are not changed after they are made; if a Loader has workers,
`__getitem__` is called by several threads.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

import numpy as np

from ..errors import InputError, OutOfRange
from ..tensors.tensor import Tensor
from .collate import collate, mapped
from .draws import permutation, with_replacement

Field: TypeAlias = "str | int | None"
"""The key or place of a part of an item; None: the whole item."""


class Dataset(ABC):
    """A sequence of items. Methods that return a Dataset copy nothing: it reads items of this one when it is asked."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> Any: ...

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self)} items"

    @staticmethod
    def of(values: Any) -> Dataset:
        """A Dataset of values in memory: of an array, its rows; of a tuple or a dict of arrays (or lists) of one length,
        tuples or dicts of rows; of a list or another sequence, its elements. A Dataset is returned as it is."""
        if isinstance(values, Dataset):
            return values
        if isinstance(values, (np.ndarray, tuple, dict)):
            return ArrayDataset(values)
        if hasattr(values, "__len__") and hasattr(values, "__getitem__") and not isinstance(values, (str, bytes)):
            return _Sequence(values)
        raise InputError(
            f"got {type(values).__name__}, expected a Dataset, a list, an array, or a tuple or dict of arrays; "
            "make a list of an iterator by list(…)"
        )

    # --- reading many items ------------------------------------------------------------------------------------------

    def items(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Some items. An error has a note that says which item raised it."""
        return [self._read(int(i)) for i in indices]

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        """Some items as a batch: `collate(self.items(indices))`. Override it where that can be had at once."""
        return collate(self.items(indices))

    def column(self, field: Field) -> Any:
        """A field of all items, as a batch; labels, mostly. Override it if it can be known without reading items."""
        return collate([_field(item, field) for item in self.items(range(len(self)))])

    def _read(self, index: int) -> Any:
        try:
            return self[index]
        except Exception as e:
            e.add_note(f"while reading item {index} of {self!r}")
            raise

    def _at(self, index: Any) -> int:
        """An index as one from 0: negative ones count from the end."""
        at = operator.index(index)
        if not -len(self) <= at < len(self):
            raise OutOfRange(f"got index {at}, and {self!r} has indices from 0 to {len(self) - 1}; give one of these")
        return at % len(self)

    # --- datasets made of this one -----------------------------------------------------------------------------------

    def map(self, f: Callable[[Any], Any]) -> Dataset:
        """The items f(item)."""
        return _Map(self, f)

    def select(self, indices: Sequence[int] | np.ndarray) -> Subset:
        """The items of these indices, in their order."""
        return Subset(self, indices)

    def partial(self, start: float = 0, stop: float | None = None) -> Subset:
        """The items from start to stop: indices as in slices, or, as floats, fractions: partial(0.0, 0.8)."""
        places = [_place(x, len(self)) for x in (start, len(self) if stop is None else stop)]
        return self.select(np.arange(len(self))[slice(*places)])

    def shuffle(self, seed: int | None = None) -> Subset:
        """All items in a random order, by default one of the sequence that `sg.manual_seed` begins. A Loader can shuffle anew in every epoch."""
        return self.select(permutation(len(self), seed))

    def sample(self, count: int, *, replacement: bool = False, seed: int | None = None) -> Subset:
        """`count` random items, by default of the sequence that `sg.manual_seed` begins; each at most once without replacement."""
        if replacement:
            if count and not len(self):
                raise InputError("sample: an empty dataset has no items, expected at least one")
            return self.select(with_replacement(count, len(self), seed))
        if not 0 <= count <= len(self):
            raise InputError(f"sample: got {count} items of {len(self)}; more than there are need replacement=True")
        return self.select(permutation(len(self), seed)[:count])

    def window(self, size: int, step: int = 1) -> Dataset:
        """Windows over the items: window i is the batch of the `size` items from i · step. The last ones are full, too."""
        if size < 1 or step < 1:
            raise InputError(f"window: got size {size} and step {step}, expected at least 1")
        return _Windows(self, size, step)

    def split(
        self, *parts: float, seed: int | None = None, stratify: Field | Sequence[Any] | np.ndarray = None
    ) -> tuple[Subset, ...]:
        """Parts without common items: counts as ints, or fractions as floats: train, valid = data.split(0.9, 0.1, seed=0).

        With a seed the parts are random, otherwise consecutive. stratify: a field (or an array with a value for each
        item) of which each part gets every value in the proportion of the whole, to two items; it needs a seed.
        """
        ends = np.cumsum(_counts(parts, len(self)))
        if seed is None:
            if stratify is not None:
                raise InputError("split: stratify needs a seed, as in split(0.9, 0.1, seed=0, stratify=1)")
            order = np.arange(len(self))
        else:
            order = permutation(len(self), seed)
            if stratify is not None:
                labels = self.column(stratify) if isinstance(stratify, (str, int)) else stratify
                order = _spread(order, labels)
        pieces = [order[end - count : end] for end, count in zip(ends, np.diff(ends, prepend=0), strict=True)]
        return tuple(self.select(piece) for piece in pieces)


def concat(*datasets: Any) -> Dataset:
    """The items of several datasets, one after the other."""
    return _Concat(tuple(map(Dataset.of, datasets)))


def zipped(*datasets: Any) -> Dataset:
    """Tuples of the items of several datasets of one length."""
    found = tuple(map(Dataset.of, datasets))
    if not found or len({len(d) for d in found}) > 1:
        raise InputError(f"zipped: got datasets of {[len(d) for d in found]} items, expected one length; see partial()")
    return _Zipped(found)


class ArrayDataset(Dataset):
    """Rows of arrays in memory (or mapped: np.load(…, mmap_mode="r")). columns: an array, or a tuple or dict, also nested,
    of arrays or lists of one length, which is that of the dataset."""

    def __init__(self, columns: Any) -> None:
        self.columns = columns = mapped(_as_column, columns)
        lengths: list[int] = []
        mapped(lambda column: lengths.append(len(column)), columns)
        if not lengths or len(set(lengths)) > 1:
            raise InputError(f"a dataset of arrays: got lengths {lengths}, expected arrays of one length")
        self._length = lengths[0]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        at = self._at(index)
        return mapped(lambda column: column[at], self.columns)

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        places = inside(indices, self)
        return mapped(
            lambda c: c[places] if isinstance(c, np.ndarray) else collate([c[i] for i in places]), self.columns
        )

    def column(self, field: Field) -> Any:
        return _field(self.columns, field)


class _Sequence(Dataset):
    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[self._at(index)]


class _Map(Dataset):
    def __init__(self, of: Dataset, f: Callable[[Any], Any]) -> None:
        self._of, self._f = of, f

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, index: int) -> Any:
        return self._f(self._of[self._at(index)])


class Subset(Dataset):
    """Some items of a dataset. dataset: that one, which is no Subset itself; indices: of the items in it."""

    def __init__(self, of: Dataset, indices: Sequence[int] | np.ndarray) -> None:
        found = inside(indices, of)
        if isinstance(of, Subset):
            of, found = of.dataset, of.indices[found]
        self.dataset: Final = of
        self.indices: Final = found

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[int(self.indices[self._at(index)])]

    def items(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        return self.dataset.items(self.indices[inside(indices, self)])

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        return self.dataset.batch(self.indices[inside(indices, self)])

    def column(self, field: Field) -> Any:
        whole = self.dataset.column(field)
        take = lambda c: c[self.indices] if isinstance(c, np.ndarray) else [c[i] for i in self.indices]
        return mapped(take, whole)


class _Windows(Dataset):
    def __init__(self, of: Dataset, size: int, step: int) -> None:
        self._of, self._size, self._step = of, size, step

    def __len__(self) -> int:
        return max(0, (len(self._of) - self._size) // self._step + 1)

    def __getitem__(self, index: int) -> Any:
        start = self._at(index) * self._step
        return self._of.batch(np.arange(start, start + self._size))


class _Concat(Dataset):
    def __init__(self, parts: tuple[Dataset, ...]) -> None:
        self._parts, self._ends = parts, np.cumsum([0, *map(len, parts)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Any:
        at = self._at(index)
        part = int(np.searchsorted(self._ends, at, "right")) - 1
        return self._parts[part][at - int(self._ends[part])]

    def column(self, field: Field) -> Any:
        found = [part.column(field) for part in self._parts]
        if all(isinstance(x, np.ndarray) for x in found):
            return np.concatenate(found)
        return [x for values in found for x in values]


class _Zipped(Dataset):
    def __init__(self, parts: tuple[Dataset, ...]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts[0])

    def __getitem__(self, index: int) -> Any:
        at = self._at(index)
        return tuple(part[at] for part in self._parts)

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        return tuple(part.batch(indices) for part in self._parts)


def inside(indices: Sequence[int] | np.ndarray, of: Dataset) -> np.ndarray:
    """Indices of a dataset's items as ones from 0: negative ones count from the end."""
    given = np.asarray(indices)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"got indices {indices!r:.80}, expected a list of integers")
    found = given.astype(np.int64)
    outside = found[(found < -len(of)) | (found >= len(of))]
    if outside.size:
        raise OutOfRange(f"got index {outside[0]}, and {of!r} has indices from 0 to {len(of) - 1}; give some of these")
    return found % max(len(of), 1)


def _as_column(values: Any) -> Any:
    if isinstance(values, list):
        return values
    found = values.numpy() if isinstance(values, Tensor) else np.asarray(values)
    if not found.ndim:
        raise InputError(f"a dataset of arrays: got {values!r:.60}, expected arrays or lists of one length")
    return found


def _field(item: Any, field: Field) -> Any:
    if field is None:
        return item
    try:
        if not isinstance(item, (tuple, list, Mapping)):
            raise KeyError
        return item[field]  # pyright: ignore[reportArgumentType, reportCallIssue]
    except (KeyError, IndexError, TypeError):
        fields = list(item) if isinstance(item, Mapping) else f"a {type(item).__name__}"
        raise InputError(f"got the field {field!r}, and the items are {fields}; name one of these") from None


def _place(x: float, length: int) -> int:
    if isinstance(x, float):
        if not 0 <= x <= 1:
            raise InputError(f"partial: got the fraction {x}, expected one from 0.0 to 1.0; indices are ints")
        return round(x * length)
    return operator.index(x)


def _counts(parts: Sequence[float], length: int) -> list[int]:
    """How many items each part has: fractions are rounded such that their sum is."""
    if not parts or any(
        isinstance(p, bool) or not isinstance(p, (int, float, np.integer)) or not p >= 0 for p in parts
    ):
        raise InputError(f"split: got {parts!r:.80}, expected counts as ints, or fractions as floats")
    if not any(isinstance(p, float) for p in parts):
        counts = [int(p) for p in parts]
    elif math.fsum(parts) > 1 + 1e-9:
        raise InputError(f"split: the fractions {parts} are together {math.fsum(parts):g}, expected at most 1")
    else:
        exact = [p * length for p in parts]
        counts = [math.floor(x + 1e-9) for x in exact]
        rest = min(round(math.fsum(exact)), length) - sum(counts)
        for i in sorted(range(len(parts)), key=lambda i: counts[i] - exact[i])[:rest]:
            counts[i] += 1
    if sum(counts) > length:
        raise InputError(
            f"split: the parts {parts} have {sum(counts)} items together, and there are {length}; give fewer, or fractions as floats"
        )
    return counts


def _spread(order: np.ndarray, labels: Any) -> np.ndarray:
    """The same items in an order whose first n have, for every n, each label in its proportion, rounded up or down.

    The k-th of c items of a label is placed between k · length / c and (k + 1) · length / c, that whose end is nearest first.
    """
    values = np.asarray(labels)
    if values.shape != order.shape:
        raise InputError(f"split: stratify has shape {values.shape}, expected one value for each of {len(order)} items")
    shuffled = values[order]
    _, label, count = np.unique(shuffled, return_inverse=True, return_counts=True)
    grouped = np.argsort(label, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[grouped] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    starts = rank * len(order) // count[label]
    ends = (-(-(rank + 1) * len(order) // count[label])).tolist()
    waiting = np.argsort(-starts, kind="stable").tolist()
    started: list[tuple[int, int]] = []
    places: list[int] = []
    for place in range(len(order)):
        while waiting and starts[waiting[-1]] <= place:
            item = waiting.pop()
            heappush(started, (ends[item], item))
        places.append(heappop(started)[1])
    return order[places]
