"""Rules that choose which cases of a test stay in `make test`, or in `make full`: the rows of full.py use them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias
from zlib import crc32

import pytest

Items: TypeAlias = Sequence[pytest.Item]
Rule: TypeAlias = Callable[[Items], Iterable[int]]
"""The cases of a test ↦ the numbers of those that stay in `make test`."""
DEAR: Final = ("webgpu", "WEBGPU", "fusion-webgpu", "worker webgpu")
"""Devices whose driver, without a GPU, takes long to compile each shader: of cases that are equally good, others stay."""
SHADERS: Final = 16
"""Of the cases that are tested on one device in turn, every so many are tested on a DEAR one."""
DEVICE: Final = ("device", "device_name", "on")
"""How tests call the parameter that is a device."""


def given(item: pytest.Item) -> Mapping[str, Any]:
    """The parameters of a case, those of fixtures included."""
    return getattr(item, "callspec").params if hasattr(item, "callspec") else {}  # noqa: B009


def _key(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, type(None))) else id(value)


def is_dear(item: pytest.Item) -> bool:
    return any(isinstance(value, str) and value in DEAR for value in given(item).values())


def stays(item: pytest.Item) -> bool:
    return item.nodeid.startswith("tests/unit/") and item.get_closest_marker("slow") is None


def _dearness(item: pytest.Item) -> tuple[Any, ...]:
    """The order in which equally good cases are chosen: plain devices first, little first, otherwise evenly spread."""
    much = sum(len(value) for value in given(item).values() if isinstance(value, list))
    return is_dear(item), much, crc32(item.nodeid.encode())


def covering(together: int, *axes: str) -> Rule:
    """So few cases that each value of these parameters (of all, if none is named) is in one of them, or each pair of values
    of two of them: `together` is 1 or 2."""

    def chosen(items: Items) -> list[int]:
        held = []
        for item in items:
            values = [(name, _key(value)) for name, value in given(item).items() if not axes or name in axes]
            held.append(set(combinations(sorted(values, key=lambda pair: pair[0]), together)))
        found = [k for k, item in enumerate(items) if stays(item)]
        done = set().union(*(held[k] for k in found))
        left = [(-len(held[k] - done), *_dearness(item), k) for k, item in enumerate(items)]
        heapq.heapify(left)
        while left:
            gain, *order, k = heapq.heappop(left)
            now = -len(held[k] - done)
            if now == gain < 0:
                found.append(k)
                done |= held[k]
            elif now < 0:  # others took some of what it had
                heapq.heappush(left, (now, *order, k))
        return found

    return chosen


def every(count: int) -> Rule:
    """Each so-manieth case, from another one on in each test; of those on DEAR devices each so-manieth by itself."""

    def chosen(items: Items) -> list[int]:
        first = crc32(items[0].nodeid.partition("[")[0].encode()) if items else 0
        parts = (
            [k for k, item in enumerate(items) if not is_dear(item)],
            [k for k, item in enumerate(items) if is_dear(item)],
        )
        return [k for part in parts if part for k in part[first % min(count, len(part)) :: count]]

    return chosen


def one_device(items: Items) -> list[int]:
    """Whatever the cases are besides their device is tested on one device: on the next one each time, seldom on a DEAR one."""
    rest: dict[Any, list[int]] = {}
    for k, item in enumerate(items):
        others = tuple((name, _key(value)) for name, value in given(item).items() if name not in DEVICE)
        rest.setdefault(others, []).append(k)
    found = []
    for number, cases in enumerate(rest.values()):
        more = [k for k in cases if not stays(items[k])]
        dear, plain = ([k for k in more if is_dear(items[k]) == kind] for kind in (True, False))
        among = dear if dear and (number % SHADERS == 0 or not plain) else plain
        if among:
            found.append(among[number % len(among)])
    return found


def plain(rule: Rule) -> Rule:
    """What a rule chooses among cases on other devices than DEAR ones, beside those that `make quick` runs."""

    def chosen(items: Items) -> list[int]:
        among = [k for k, item in enumerate(items) if stays(item) or not is_dear(item)]
        return [among[k] for k in rule([items[k] for k in among])]

    return chosen


def sparing(count: int) -> Rule:
    """All cases on other devices than DEAR ones, and each so-manieth of those on them."""

    def chosen(items: Items) -> list[int]:
        among = [k for k, item in enumerate(items) if is_dear(item)]
        held = {among[k] for k in every(count)([items[k] for k in among])}
        return [k for k, item in enumerate(items) if k in held or not is_dear(item)]

    return chosen


def some(count: int, rule: Rule) -> Rule:
    """Each so-manieth of the cases that a rule chooses, beside those that `make quick` runs."""

    def chosen(items: Items) -> list[int]:
        found = list(rule(items))
        return [k for k in found if stays(items[k])] + [found[i] for i in every(count)([items[k] for k in found])]

    return chosen


def only(**values: Any) -> Rule:
    """The cases with these values of their parameters."""
    return lambda items: [k for k, item in enumerate(items) if values.items() <= given(item).items()]


def none(because: str) -> Rule:
    """No case stays: `because` names what tests the property in `make test`."""
    assert because
    return lambda items: ()
