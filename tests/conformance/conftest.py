"""Prints how many of ONNX's node cases pass on each device, at the end of a run, also under pytest-xdist."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

NODES = "test_onnx_nodes.py::test_node["
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            _, found, name = report.nodeid.partition(NODES)
            if found:
                counts.setdefault(name.partition("-")[0], Counter())[outcome] += 1
    if not counts:
        return
    terminalreporter.section("ONNX node cases")
    total = len(import_module("onnx_cases").every_case())
    for device, count in counts.items():
        others = ", ".join(f"{n} {outcome}" for outcome, n in count.items() if outcome != "passed")
        terminalreporter.write_line(
            f"{device}: {count['passed']} passed of {count.total()} selected of all {total:,}{f' ({others})' if others else ''}"
        )
