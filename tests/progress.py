"""How far a run of several workers is: tests done of all, failures so far, and the time that is left.

In a terminal it is one line that changes; elsewhere, as in CI, a line every half minute. A test that fails is named at once.
Without workers pytest's own dots tell enough.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any, Final

import pytest

SECONDS: Final = {
    "browser": 2.0,
    "conformance": 0.06,
    "docs": 1.0,
    "release": 1.0,
    "structure": 0.5,
    "training": 0.2,
    "unit": 0.09,
}
"""What a test of each folder takes on average, beside one of the others: measured on one machine, the ratios hold elsewhere."""
TERMINAL, PLAIN = 1.0, 30.0
"""Seconds between two lines."""
KNOWN: Final = 0.01
"""The part of all tests from which the time of the others is estimated."""


def weight(nodeid: str) -> float:
    return SECONDS.get(nodeid.removeprefix("tests/").partition("/")[0], 0.1)


def spelled(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"


class Progress:
    """What the controller of the workers shows instead of dots."""

    def __init__(self, config: pytest.Config) -> None:
        self._config: Final = config
        self._total = self._done = self._failed = 0
        self._all = self._past = 0.0
        self._begun = self._told = time.monotonic()

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Counted as ever, without a letter for each."""
        category, *_ = yield
        return category, "", ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._total:
            self._total, self._all = len(ids), sum(map(weight, ids))
            self._begun = time.monotonic()
            self._say(f"{self._total:,} tests")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._say(f"FAILED {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._done += 1
        self._past += weight(nodeid)
        alive = self._terminal.isatty
        if time.monotonic() - self._told >= (TERMINAL if alive else PLAIN):
            self._told = time.monotonic()
            if alive:
                self._terminal.rewrite(self.line(self._told), erase=True)
            else:
                self._say(self.line(self._told))

    def _say(self, line: str) -> None:
        """Write a line at once: output that goes to a file is otherwise kept until there is much of it."""
        self._terminal.ensure_newline()
        self._terminal.write(f"{line}\n", flush=True)

    def line(self, now: float) -> str:
        """How far the tests are at a time."""
        gone = now - self._begun
        left = spelled(gone * max(self._all - self._past, 0) / self._past)
        told = f"about {left} left" if self._past >= KNOWN * self._all else "the time left is not known yet"
        failed = f"{self._failed} failed" if self._failed else "none failed"
        return f"{self._done:,} of {self._total:,} tests, {failed}, {spelled(gone)} gone, {told}"

    def pytest_sessionfinish(self) -> None:
        self._terminal.ensure_newline()
