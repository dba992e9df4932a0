"""What `make test` and `make full` keep of large products, and what a run of several workers shows."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from case_rules import covering, every, one_device, sparing
from full import MOVED, NIGHTLY
from progress import Progress, weight

TESTS = Path(__file__).parents[2]


class Item(SimpleNamespace):
    """As much of a case as rules look at."""

    def get_closest_marker(self, name: str) -> str | None:
        return self.marks.get(name)


def product(where: str = "tests/training/test_x.py::test_y", **axes: Any) -> list[Any]:
    cases = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    return [
        Item(nodeid=f"{where}[{k}]", callspec=SimpleNamespace(params=case), marks={}) for k, case in enumerate(cases)
    ]


def pairs(items: list[Any]) -> set[Any]:
    return {pair for item in items for pair in itertools.combinations(item.callspec.params.items(), 2)}


def test_every_pair_stays_in_few_cases() -> None:
    items = product(row="abcdefgh", kind=range(5), device=("numpy", "wasm", "webgpu"))
    kept = [items[k] for k in covering(2)(items)]
    assert pairs(kept) == pairs(items)
    assert len(kept) < 1.3 * 8 * 5


def test_whatever_has_a_device_stays_on_one_and_all_devices_are_in_use() -> None:
    items = product(name=range(40), device=("numpy", "wasm", "webgpu"))
    kept = [items[k].callspec.params for k in one_device(items)]
    assert [case["name"] for case in kept] == list(range(40))
    assert {case["device"] for case in kept} == {"numpy", "wasm", "webgpu"}
    assert sum(case["device"] == "webgpu" for case in kept) == 3


@pytest.mark.parametrize("count", [1, 3, 50])
def test_some_case_stays_on_each_kind_of_device(count: int) -> None:
    items = product(name=range(7), device=("numpy", "webgpu"))
    kept = {items[k].callspec.params["device"] for k in every(count)(items)}
    assert kept == {"numpy", "webgpu"}


def test_few_cases_on_a_dear_device_stay_beside_all_others() -> None:
    items = product(name=range(9), device=("numpy", "webgpu"))
    kept = [items[k].callspec.params["device"] for k in sparing(3)(items)]
    assert (kept.count("numpy"), kept.count("webgpu")) == (9, 3)
    assert list(sparing(3)(items[::2])) == list(range(9))


def test_what_quick_runs_stays() -> None:
    items = product("tests/unit/test_x.py::test_y", row="abcd", kind="efgh")
    assert set(covering(2)(items)) == set(range(16))


def test_every_row_names_tests_that_exist() -> None:
    for name in (*MOVED, *NIGHTLY):
        file, _, test = name.partition("::")
        assert f"\ndef {test}" in (TESTS / file).read_text("utf-8") if test else (TESTS / file).is_file(), name


def test_a_line_says_what_is_done_and_what_time_is_left() -> None:
    written: list[str] = []
    terminal = SimpleNamespace(
        ensure_newline=lambda: None, write=lambda text, flush: written.append(text) if flush else None, isatty=False
    )
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: terminal))
    shown = Progress(config)
    ids = [f"tests/unit/test_x.py::test_{k}" for k in range(4)]
    shown.pytest_xdist_node_collection_finished(ids)
    shown.pytest_xdist_node_collection_finished(ids)
    shown.pytest_runtest_logfinish(ids[0])
    report: Any = SimpleNamespace(failed=True, nodeid=ids[1])
    shown.pytest_runtest_logreport(report)
    assert shown.line(shown._begun + 60) == "1 of 4 tests, 1 failed, 1:00 gone, about 3:00 left"
    assert written == ["4 tests\n", f"FAILED {ids[1]}\n"]
    assert weight("tests/browser/test_z.py::test") > weight(ids[0])
