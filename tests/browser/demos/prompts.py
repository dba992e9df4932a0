"""Drives the Python prompt of the front page like a user."""

from __future__ import annotations

from typing import Any, Final

from sites import until

STATE: Final = "document.querySelector('#python-status').dataset.state"


class Prompt:
    """The Python prompt of a page, started."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.click("#python-start")
        self.rest()
        self.greeting = self.log()

    def rest(self) -> None:
        until(self.page, f"['ready', 'error', 'unsupported'].includes({STATE})")
        assert self.page.get_attribute("#python-status", "data-state") == "ready", self.page.inner_text(
            "#python-status"
        )

    def empty(self) -> None:
        """Take away what was said and typed, in a page as it was at first."""
        self.rest()
        self.page.set_viewport_size({"width": 1280, "height": 720})
        self.page.fill("#python-input", "")
        self.page.evaluate("document.querySelector('#python-log').replaceChildren()")

    def log(self) -> str:
        return self.page.evaluate("document.querySelector('#python-log').textContent")

    def ask(self, source: str) -> str:
        """The answer to a complete source."""
        before = len(self.log())
        self.page.fill("#python-input", source)
        self.page.click("#python-run")
        until(self.page, f"document.querySelector('#python-log').textContent.length > {before}")
        self.rest()
        shown = "".join(f"{'...' if k else '>>>'} {line}\n" for k, line in enumerate(source.split("\n")))
        said = self.log()[before:]
        assert said.startswith(shown)
        return said.removeprefix(shown)
