"""A tab of a browser as Debian has it, driven by WebDriver's commands.

Contract: `Tab` has as much of Playwright's Page as tests of several browsers use, over the driver of a browser: a function
that takes the name of a command and what it is given, and returns what the browser answered. Playwright's own Firefox and
WebKit are changed ones, which tests take by SINGE_BROWSER; these are the ones that people have.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

PATIENCE: Final = 60
"""Seconds."""
CALLED: Final = """
const script = document.createElement("script");
script.type = "module";
script.textContent = `
  document.documentElement.dataset.done = JSON.stringify(
    await (${arguments[0]})(${arguments[1]}).then((value) => ({ value }), (error) => ({ error: [String(error), error.stack].join(" at ") })),
  );`;
delete document.documentElement.dataset.done;
document.head.append(script);
script.remove();
"""

Driver: TypeAlias = Callable[[str, Mapping[str, Any]], Any]


class Tab:
    """The one tab of a browser."""

    def __init__(self, ask: Driver) -> None:
        self.ask: Final = ask

    def goto(self, url: str) -> None:
        self.ask("Navigate", {"url": url})

    def execute(self, script: str, *given: Any) -> Any:
        """The result of a script of WebDriver, which `return`s it; no policy of the page forbids it."""
        return self.ask("ExecuteScript", {"script": script, "args": list(given)})["value"]

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """The value of an expression, once it is true."""
        end = time.monotonic() + seconds
        while not (found := self.execute(f"return {expression};")):
            assert time.monotonic() < end, f"after {seconds} s still {found}: {expression}"
            time.sleep(0.05)
        return found

    def evaluate(self, function: str, given: Any) -> Any:
        """The result of an async function in a module of the page, which must allow scripts in it."""
        self.execute(CALLED, function, json.dumps(given))
        done = json.loads(self.until("document.documentElement.dataset.done"))
        assert "error" not in done, done["error"]
        return done["value"]

    def draw(self, item: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line with the mouse; the points lie on the item, from 0 to 1."""
        self.execute("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' });", item)
        box = self.execute("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON();", item)
        places = [(round(box["x"] + x * box["width"]), round(box["y"] + y * box["height"])) for x, y in points]
        first, *moves = [{"type": "pointerMove", "duration": 20, "x": x, "y": y} for x, y in places]
        actions = [first, {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0}]
        self.ask("PerformActions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})
