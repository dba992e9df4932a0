"""Debian's Chromium, as browser tests start it."""

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
"""Switches for WebGPU without a GPU. Workgroup memory, which SwiftShader would fill with zeros by an instruction for each
number, four fifths of its time for a kernel, keeps what was there: kernels are not to count on zeros."""


@contextmanager
def chromium(switches: Sequence[str] = WEBGPU) -> Iterator[Any]:
    """Playwright's Browser; a skip where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM} here")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", *switches])
        try:
            yield browser
        finally:
            browser.close()
