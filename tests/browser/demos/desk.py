"""Drives a demo page in Chromium like a user: choose a backend, wait for a state, read figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sites import SCREENSHOTS, Console

LOOKS: Final = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
}
"""Kinds of users: Playwright's options of a context."""


class Desk:
    """The page of a demo, and the errors on its console."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console = Console(page)

    def item(self, name: str) -> Any:
        return self.page.get_by_test_id(name)

    def value(self, name: str) -> str:
        return self.item(name).get_attribute("data-value")

    def await_state(self, *states: str) -> None:
        wanted = ", ".join(f"[data-state={state}]" for state in states)
        self.page.locator(f"[data-testid=status]:is({wanted})").wait_for()

    def ready(self) -> None:
        """Wait until the page has done everything it was asked to; an error on the page fails the test."""
        self.await_state("ready", "error", "unsupported")
        # A camera's next picture may be on its way again.
        state = self.item("status").get_attribute("data-state")
        assert state not in ("error", "unsupported"), self.item("status").inner_text()

    def choose(self, backend: str, through_python: bool = False) -> None:
        self.item("backend").select_option(backend)
        if backend != "numpy":
            self.item("python").set_checked(through_python)
        self.ready()

    def screenshot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def fits(self) -> bool:
        """Whether nothing overflows the page horizontally."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def small_targets(self) -> list[str]:
        """Controls smaller than 44 pixels, which fingers miss."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("main button, main select, main label.button, main label.check")]
              .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 43.5).map((e) => e.outerHTML)"""
        )


@contextmanager
def desk(browser: Any, url: str, script: str = "", **options: Any) -> Iterator[Desk]:
    """A page that is ready, in a separate context, without the service worker (the tests of the site check that)."""
    context = browser.new_context(**{"service_workers": "block", **LOOKS["light"], **options})
    try:
        if script:
            context.add_init_script(script)
        found = Desk(context.new_page())
        found.page.goto(url)
        found.await_state("ready", "idle", "error", "unsupported")
        yield found
    finally:
        context.close()
