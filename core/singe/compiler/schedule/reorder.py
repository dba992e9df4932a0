"""The order of items for which fewer values are held at once: the last reader of a value runs as soon as it can.

Gradients of weights are results, so they would come last; until then, all that they are computed from would be held. An
item is moved ahead if it is the last one to read values that take more memory than those it makes; so is one that makes
as much or more, such as a transpose or a product of which parts are then summed, if it does so with the items that alone
read what it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)
MAX_ITEMS_MOVED: Final = 4
"""The most items that are moved ahead together."""


def release_memory_early(
    items: Sequence[Item],
    reads: Callable[[Item], Iterable[Value]],
    writes: Callable[[Item], Iterable[Value]],
    room: Callable[[Value], int],
) -> list[Item]:
    """The items in another order in which they can run. room: the bytes that a value takes until it has been read."""
    taken = {item: dict.fromkeys(reads(item)) for item in items}  # in order: that of a set would differ from run to run
    made = {item: list(writes(item)) for item in items}
    waiting: dict[Value, dict[Item, None]] = {}
    for item in items:
        for value in taken[item]:
            waiting.setdefault(value, {})[item] = None
    maker = {value: item for item, values in made.items() for value in values}
    inside = maker.keys()
    absent = set(inside)
    done: dict[Item, None] = {}

    def frees(item: Item) -> bool:
        """Whether the item can run, and frees memory: by itself, or with the next ones, if each alone reads what is made."""
        chain, ahead, read = {item: None}, set[Value](), set[Value]()
        while len(chain) <= MAX_ITEMS_MOVED:
            last = next(reversed(chain))
            if any(value in absent and value not in ahead for value in taken[last]):
                return False
            ahead.update(made[last])
            read.update(taken[last])
            held = {value for value in read | ahead if not waiting.get(value) or waiting[value].keys() - chain.keys()}
            if sum(map(room, read - ahead - held)) > sum(map(room, ahead & held)):
                return True
            readers = {x for value in ahead for x in waiting.get(value, ())} - chain.keys()
            if len(readers) != 1:
                return False
            chain[readers.pop()] = None
        return False

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
            # A value that more items wait for than can move together is not freed yet.
            touched = [*(v for v in taken[item] if v in inside and len(waiting[v]) <= MAX_ITEMS_MOVED), *made[item]]
            near = dict.fromkeys(x for value in touched for x in waiting.get(value, ()))
            near.update(dict.fromkeys(maker[value] for x in list(near) for value in taken[x] if value in absent))
            ready += [x for x in near if x not in done and frees(x)]
    return list(done)
