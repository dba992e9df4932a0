"""The order of items for which fewer values are held at once: the last reader of a value runs as soon as it can.

Gradients of weights are results, so they would come last; until then, all that they are computed from would be held. An
item is moved ahead if it is the last one to read values that take more memory than those it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)


def early(
    items: Sequence[Item],
    reads: Callable[[Item], Iterable[Value]],
    writes: Callable[[Item], Iterable[Value]],
    room: Callable[[Value], int],
) -> list[Item]:
    """The items in another order in which they can run. room: the bytes that a value takes until it has been read."""
    taken = {item: set(reads(item)) for item in items}
    made = {item: list(writes(item)) for item in items}
    waiting: dict[Value, dict[Item, None]] = {}
    for item in items:
        for value in taken[item]:
            waiting.setdefault(value, {})[item] = None
    inside = {value for values in made.values() for value in values}
    absent = set(inside)
    done: dict[Item, None] = {}

    def frees(item: Item) -> bool:
        if not taken[item].isdisjoint(absent):
            return False
        spent = sum(room(value) for value in taken[item] if len(waiting[value]) == 1)
        return spent > sum(room(value) for value in made[item])

    for first in items:
        ready = [] if first in done else [first]
        while ready:
            item = ready.pop()
            if item in done:
                continue
            done[item] = None
            absent.difference_update(made[item])
            for value in taken[item]:
                del waiting[value][item]
            touched = [*(taken[item] & inside), *made[item]]
            ready += [x for value in touched for x in waiting.get(value, ()) if x not in done and frees(x)]
    return list(done)
