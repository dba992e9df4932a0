"""Debian's Chromium, with the switches of browser tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

CHROMIUM: Final = Path("/usr/bin/chromium")
WEBGPU: Final = (
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-unsafe-swiftshader",
    "--enable-dawn-features=disable_workgroup_init",
)
"""Switches for WebGPU without a GPU. Workgroup memory is not cleared: SwiftShader would clear it with an instruction
for each number, four fifths of a kernel's time. Kernels must not rely on zeros there."""


@contextmanager
def chromium(switches: Sequence[str] = WEBGPU) -> Iterator[Any]:
    """Playwright's Browser; the test is skipped if there is none."""
    api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM} here")
    with api.sync_playwright() as playwright:
        browser = _launched(playwright.chromium, switches)
        try:
            yield browser
        finally:
            browser.close()


PATIENCE: Final = 240.0
"""Seconds: Python in a page, and WebGPU in software, start slowly on a busy machine."""


class Kept:
    """A Browser that many modules of tests use in turn."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)

    @contextmanager
    def turn(self) -> Iterator[Any]:
        """The Browser, started anew if it ended; its pages are closed at the end. Between turns Playwright's event loop
        is not this thread's, since tests that call `asyncio.run` would be refused."""
        asyncio._set_running_loop(self._loop)
        if not self._browser.is_connected():
            self._browser = _launched(self._browser.browser_type, WEBGPU)
        try:
            yield self._browser
        finally:
            for context in self._browser.contexts:
                context.close()
            asyncio._set_running_loop(None)

    def end(self) -> None:
        """Give Playwright its event loop for the last time."""
        asyncio._set_running_loop(self._loop)


def _launched(kind: Any, switches: Sequence[str]) -> Any:
    browser = kind.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", *switches])
    browser.on("context", lambda context: context.set_default_timeout(1000 * PATIENCE))
    return browser


@contextmanager
def plain(browser: Any, *switches: str) -> Iterator[Any]:
    """Another Chromium, without the switches for WebGPU."""
    other = _launched(browser.browser_type, switches)
    try:
        yield other
    finally:
        other.close()
