"""How a CUDA device runs lists of commands again and again, as far as that needs no card."""

from __future__ import annotations

import gc
from collections import Counter
from ctypes import c_void_p
from types import SimpleNamespace
from typing import Any

import pytest
from numpy.random import default_rng

from singe_cuda.device.graphs import TIMED_LAUNCHES, Graphs, Recorded
from singe_cuda.device.waits import Access, waits_of
from singe_gpu.device.memory import Launch


def test_commands_wait_for_what_they_read_and_for_readers_of_what_they_write() -> None:
    commands = [
        [Access(0, 8, True)],
        [Access(0, 8, False), Access(8, 16, True)],
        [Access(4, 8, False), Access(16, 24, True)],  # beside the last one: both only read
        [Access(8, 24, False), Access(24, 32, True)],
        [Access(0, 4, True)],  # after the one that reads it
        [Access(24, 32, False), Access(2, 3, False)],
        [],
    ]
    assert [sorted(waits) for waits in waits_of(commands)] == [[], [0], [0], [1, 2], [1], [3, 4], []]


def test_any_order_that_keeps_the_waits_gives_the_same_bytes() -> None:
    rng = default_rng(0)
    places = [sorted(rng.choice(24, 2, replace=False).tolist()) for _ in range(120)]
    ranges = [Access(first, end, k % 3 == 2) for k, (first, end) in enumerate(places)]
    commands = [ranges[3 * k : 3 * k + 3] for k in range(40)]
    waits = waits_of(commands)

    def run(order: list[int]) -> list[int]:
        memory = list(range(24))
        for k in order:
            left, right, (first, end, _) = commands[k]
            value = hash((k, tuple(memory[left.first : left.end]), tuple(memory[right.first : right.end])))
            memory[first:end] = [value] * (end - first)
        return memory

    expected = run(list(range(40)))
    orders = set()
    for seed in range(5):
        rng, left, order = default_rng(seed), set(range(40)), []
        while left:
            ready = [k for k in sorted(left) if not left.intersection(waits[k])]
            order.append(int(rng.choice(ready)))
            left.remove(order[-1])
        assert run(order) == expected
        orders.add(tuple(order))
    assert len(orders) > 1


class FakeDriver:
    """Notes calls; graphs and events are numbers, and a launch of a graph takes as long as `times` says."""

    def __init__(self, times: list[float]) -> None:
        self.calls: Counter[str] = Counter()
        self.launched: list[int] = []
        self._times = times
        self._made = 0
        self._nodes = 0

    def __call__(self, name: str, *arguments: Any) -> None:
        self.calls[name] += 1
        if name in ("EventCreate", "GraphInstantiateWithFlags"):
            self._made += 1
            arguments[0]._obj.value = self._made
        elif name == "GraphLaunch":
            self.launched.append(arguments[0].value)
        elif name == "EventElapsedTime":
            arguments[0]._obj.value = self._times[self.calls[name] % len(self._times) - 1]


def launches(*places: tuple[int, int]) -> Recorded:
    """Commands that read one address and write another."""
    return Recorded(
        Launch(
            SimpleNamespace(written=(False, True)),
            SimpleNamespace(ports=[SimpleNamespace(data=place, bytes=1) for place in pair]),
            (1, 1, 1),
        )
        for pair in places
    )


@pytest.mark.parametrize("faster", [0, 1])
def test_of_two_graphs_the_faster_is_kept(faster: int) -> None:
    driver, sent = FakeDriver([2.0 - (faster == 0), 2.0 - (faster == 1)]), list[Any]()
    graphs, commands = (
        Graphs(driver, lambda command, _: sent.append(command), c_void_p()),
        launches((0, 1), (0, 2), (1, 3)),
    )
    for _ in range(TIMED_LAUNCHES + 4):
        graphs.submit(commands)
    assert sent == [*commands] * 3  # once themselves, and once for each graph
    first, second, *_ = driver.launched
    assert driver.launched[:TIMED_LAUNCHES] == [first, second] * (TIMED_LAUNCHES // 2)
    assert set(driver.launched[TIMED_LAUNCHES:]) == {(first, second)[faster]}
    gc.collect()
    assert driver.calls["GraphExecDestroy"] == 1
    assert driver.calls["EventDestroy_v2"] == driver.calls["EventCreate"] == 2 * TIMED_LAUNCHES


def test_commands_that_all_wait_for_the_last_one_are_one_graph() -> None:
    driver = FakeDriver([1.0])
    graphs, commands = Graphs(driver, lambda *_: None, c_void_p()), launches((0, 1), (1, 2), (2, 3))
    for _ in range(3):
        graphs.submit(commands)
    assert driver.calls["GraphInstantiateWithFlags"] == 1
    assert driver.calls["EventCreate"] == 0
