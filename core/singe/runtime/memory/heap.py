"""A heap over a memory that can grow, or over a page of it: addresses aligned for every buffer, freed blocks joined and used again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ...program.container import ALIGN, align


class Heap:
    """`grow(bytes)` makes the memory at least that long, or raises, which leaves the heap as it was. Addresses begin at `start`."""

    def __init__(self, grow: Callable[[int], object], start: int = ALIGN) -> None:
        self._grow = grow
        self.end = start
        """Beyond it nothing is used."""
        self.untouched = start
        """Beyond it nothing ever was used."""
        self._free: list[tuple[int, int]] = []  # (address, bytes), sorted, never adjacent
        self.used = 0

    def take(self, count: int) -> int:
        """The address of that many bytes."""
        count = align(max(count, 1))
        for i, (address, size) in enumerate(self._free):
            if size >= count:
                self._free[i : i + 1] = [(address + count, size - count)] if size > count else []
                self.used += count
                return address
        address = self.end
        self._grow(address + count)
        self.end += count
        self.untouched = max(self.untouched, self.end)
        self.used += count
        return address

    def give(self, address: int, count: int) -> None:
        """Free what `take(count)` answered."""
        size = align(max(count, 1))
        self.used -= size
        i = bisect_left(self._free, (address, 0))
        if i < len(self._free) and address + size == self._free[i][0]:
            size += self._free.pop(i)[1]
        if i and sum(self._free[i - 1]) == address:
            i -= 1
            before, length = self._free.pop(i)
            address, size = before, length + size
        if address + size == self.end:
            self.end = address
        else:
            self._free.insert(i, (address, size))
