"""The order of items for which fewer values are held at once: the last reader of a value runs as soon as it can.

Gradients of weights are results, so they would come last; until then, all that they are computed from would be held. An
item is moved ahead if it is the last one to read values that take more memory than those it makes; one that frees as much
as it makes, such as a transpose, with its only reader if both together free memory.
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
    maker = {value: item for item, values in made.items() for value in values}
    inside = maker.keys()
    absent = set(inside)
    done: dict[Item, None] = {}

    def frees(item: Item, before: Item | None = None) -> bool:
        """Whether the item can run, once the item `before` has, and frees memory then."""
        ahead = () if before is None else made[before]
        if any(value in absent and value not in ahead for value in taken[item]):
            return False
        spent = sum(room(value) for value in taken[item] if len(waiting[value]) == 1)
        gain = spent - sum(room(value) for value in made[item])
        if gain == 0 and before is None:
            readers = {x for value in made[item] for x in waiting.get(value, ())}
            return len(readers) == 1 and frees(readers.pop(), item)
        return gain > 0

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
            near = dict.fromkeys(x for value in touched for x in waiting.get(value, ()))
            near.update(dict.fromkeys(maker[value] for x in list(near) for value in taken[x] & absent))
            ready += [x for x in near if x not in done and frees(x)]
    return list(done)
