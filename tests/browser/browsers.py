"""Debian's Chromium, with the switches of browser tests."""

from __future__ import annotations

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
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", *switches])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def plain(browser: Any, *switches: str) -> Iterator[Any]:
    """Another Chromium, without the switches for WebGPU."""
    other = browser.browser_type.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", *switches])
    try:
        yield other
    finally:
        other.close()
