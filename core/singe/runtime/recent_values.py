"""A cache of the most recently used values, for values that are expensive to make."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """A cache of at most `most` values by their keys; iterating gives the values. The least recently used value is
    removed first, and passed to `drop`."""

    def __init__(self, most: int, drop: Callable[[V], object] = lambda value: None) -> None:
        self._most: Final = most
        self._drop: Final = drop
        self._kept: Final[OrderedDict[Hashable, V]] = OrderedDict()

    def at(self, key: Hashable, make: Callable[[], V], anew: bool = False) -> V:
        """The value of a key, made if it is missing or if `anew`. If `make` fails, the cache is unchanged."""
        if anew or key not in self._kept:
            value = make()
            if key in self._kept:
                self._drop(self._kept.pop(key))
            elif len(self._kept) >= self._most:
                self._drop(self._kept.popitem(last=False)[1])
            self._kept[key] = value
        self._kept.move_to_end(key)
        return self._kept[key]

    def get(self, key: Hashable) -> V | None:
        """The value of that key, or None."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def __iter__(self) -> Iterator[V]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        while self._kept:
            self._drop(self._kept.popitem()[1])
