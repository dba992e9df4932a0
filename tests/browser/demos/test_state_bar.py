"""The line with a page's state, which stays at the bottom of the window, hides no control that a user moves to."""

from __future__ import annotations

from typing import Any, Final

import pytest
from desk import desk

PAGES: Final = ("mnist", "classify", "train", "write", "tune", "remote")
FITTED: Final = ("mnist", "classify")
"""Pages whose sheet or picture leaves room for the buttons under it."""
WINDOWS: Final = ((1280, 800), (1366, 768), (390, 844))
CONTROLS: Final = "main :is(button, select, input, textarea, a[href], canvas[tabindex])"
BUTTONS: Final = ".desk > :first-child button"
HIDDEN: Final = """(controls, block) => controls.filter((control) => control.checkVisibility()).flatMap((control) => {
  if (block) control.scrollIntoView({ block, behavior: "instant" });
  const { x, y, width, height } = control.getBoundingClientRect();
  const top = document.elementFromPoint(x + width / 2, y + height / 2);
  const reached = control.contains(top) || top?.closest("label")?.control === control;
  return reached ? [] : [`${control.id || control.dataset.testid} is under ${top?.outerHTML.slice(0, 80)}`];
})"""


@pytest.mark.parametrize("name", PAGES)
def test_a_control_that_is_in_sight_can_be_pressed(browser: Any, address: str, name: str) -> None:
    with desk(browser, f"{address}{name}/") as found:
        controls, buttons = found.page.locator(CONTROLS), found.page.locator(BUTTONS)
        assert controls.count() > 3
        for width, height in WINDOWS:
            found.page.set_viewport_size({"width": width, "height": height})
            found.page.evaluate("scrollTo(0, 0)")
            if name in FITTED:
                assert buttons.evaluate_all(HIDDEN, None) == [], "at first sight"
            for block in ("nearest", "start", "end"):
                assert controls.evaluate_all(HIDDEN, block) == [], (width, height, block)
