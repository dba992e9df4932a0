"""What axe-core finds on the front page, the demos and a bundle's own page: nothing, wide and light, narrow and dark."""

from __future__ import annotations

from typing import Any

import pytest
from packages import axe, findings


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing(scheme: str, width: int, browser: Any, address: str) -> None:
    script = axe()
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, service_workers="block", reduced_motion="reduce"
    )
    page = context.new_page()
    for name in (
        "",
        "mnist/",
        "classify/",
        "detect/",
        "cutout/",
        "train/",
        "chat/",
        "write/",
        "tune/",
        "remote/",
        "mnist/model/",
    ):
        page.goto(address + name)
        page.wait_for_timeout(1000)
        assert findings(page, script) == [], name or "front"
    context.close()
