"""Many short strings as one: an object for each would take 33 to 74 bytes beside its own, and a vocabulary has up to a million."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar, overload

T = TypeVar("T")


class MadeSequence(Sequence[T]):
    """A sequence whose elements are made each time they are asked for."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._places: Final = range(count)
        self._make: Final = make

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [*map(self._make, self._places[place])]
        return self._make(self._places[place])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other))  # noqa: B905

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return repr([*self])


def joined_strings(strings: Iterable[bytes]) -> MadeSequence[bytes]:
    """The strings, held as one."""
    starts, whole = array("Q", [0]), bytearray()
    for string in strings:
        whole += string
        starts.append(len(whole))
    held = bytes(whole)
    return MadeSequence(len(starts) - 1, lambda k: held[starts[k] : starts[k + 1]])
