"""What axe-core finds on the front page, the demos and a bundle's own page: nothing, in light and dark, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest
from packages import axe, findings


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, browser: Any, address: str) -> None:
    script = axe()
    for width in (1280, 360):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, service_workers="block"
        )
        page = context.new_page()
        for name in ("", "mnist/", "classify/", "train/", "mnist/model/"):
            page.goto(address + name)
            page.wait_for_timeout(1000)
            assert findings(page, script) == [], f"{name or 'front'}, {width}"
        context.close()
