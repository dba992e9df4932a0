"""The last reader of a value runs as soon as it can, if it then frees more memory than it takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from singe.compiler.schedule.reorder import release_memory_early

Items = Mapping[str, tuple[Sequence[str], str]]


def order(items: Items, room: Mapping[str, int]) -> list[str]:
    """items: name ↦ (what it reads, what it makes). room: bytes, 8 where none are given."""
    return release_memory_early(list(items), lambda i: items[i][0], lambda i: [items[i][1]], lambda v: room.get(v, 8))


BACKWARD: Items = {
    "forward 1": (["x"], "a"), "forward 2": (["a"], "b"), "loss": (["b"], "gb"), "back 2": (["gb"], "ga"),
    "back 1": (["ga"], "gx"), "weight 1": (["ga", "x"], "w1"), "weight 2": (["gb", "a"], "w2"),
}  # fmt: skip


def test_gradients_of_weights_are_computed_when_what_they_read_is_needed_by_nothing_else() -> None:
    found = order(BACKWARD, {"x": 0, "w1": 0, "w2": 0})
    assert found.index("weight 2") == found.index("loss") + 1  # the last to read "a"
    assert sorted(found) == sorted(BACKWARD)


def test_items_stay_where_they_are_if_they_free_nothing() -> None:
    assert order(BACKWARD, {"x": 0, "w1": 100, "w2": 100}) == list(BACKWARD)


def test_an_item_waits_for_all_that_it_reads() -> None:
    items: Items = {"p": ([], "a"), "q": (["a"], "b"), "r": ([], "c"), "s": (["a", "b", "c"], "d")}
    found = order(items, {"d": 1})
    assert found.index("s") == 3


def test_what_frees_as_much_as_it_makes_runs_ahead_with_a_reader_that_frees_memory() -> None:
    items = dict(BACKWARD)
    del items["weight 2"]
    found = order({**items, "turned": (["a"], "t"), "weight 2": (["gb", "t"], "w2")}, {"x": 0, "w1": 0, "w2": 0})
    assert found[found.index("loss") + 1 :][:2] == ["turned", "weight 2"]
    found = order({**items, "turned": (["a"], "t"), "weight 2": (["gb", "t"], "w2")}, {"x": 0, "w1": 0, "w2": 100})
    assert found[-2:] == ["turned", "weight 2"]


def test_many_readers_of_one_value_take_little_time() -> None:
    """In 2,000 items that all read one value, each reader is not looked at again after each other one."""
    items: dict[str, tuple[Sequence[str], str]] = {"first": ([], "x"), "0": (["x"], "v0")}
    items |= {str(k): (["x", f"v{k - 1}"], f"v{k}") for k in range(1, 2000)}
    start = time.process_time()
    assert order(items, {}) == list(items)
    assert time.process_time() - start < 1


@dataclass(frozen=True)
class Hashed:
    """A value with the hash that it is given, as that of a node depends on its address."""

    name: str
    number: int

    def __hash__(self) -> int:
        return self.number


def test_the_order_does_not_depend_on_hashes() -> None:
    items: Items = {
        "p": ([], "a"), "q": ([], "b"), "loss": (["a", "b"], "g"),
        "weight a": (["a", "g"], "w1"), "more": (["g"], "h"), "weight b": (["b", "g"], "w2"),
    }  # fmt: skip
    found: set[tuple[str, ...]] = set()
    for numbers in permutations(range(4)):
        values = {name: Hashed(name, number) for name, number in zip("abgh", numbers, strict=True)}
        values |= {name: Hashed(name, 9) for name in ("w1", "w2")}
        made = release_memory_early(
            list(items),
            lambda i, v=values: [v[x] for x in items[i][0]],
            lambda i, v=values: [v[items[i][1]]],
            lambda v: 0 if v.name in ("w1", "w2") else 8,
        )
        found.add(tuple(made))
    assert len(found) == 1
