"""Firefox without a window, driven by its own protocol, Marionette: JSON after its length, over a socket.

Contract: `firefox()` gives a Tab, which has as much of Playwright's Page as tests of several browsers use. Playwright's own
Firefox is a changed one, which tests take by SINGE_BROWSER; this is the one that people have.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

PROGRAMS: Final = ("firefox-esr", "firefox")
PREFERENCES: Final = """
user_pref("marionette.port", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
"""
PATIENCE: Final = 60
"""Seconds."""
CALLED: Final = """
const script = document.createElement("script");
script.type = "module";
script.textContent = `
  document.documentElement.dataset.done = JSON.stringify(
    await (${arguments[0]})(${arguments[1]}).then((value) => ({ value }), (error) => ({ error: String(error.stack ?? error) })),
  );`;
delete document.documentElement.dataset.done;
document.head.append(script);
script.remove();
"""


class Tab:
    """The one tab of a Firefox."""

    def __init__(self, port: int) -> None:
        self._socket: Final = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._count = 0
        self._read()
        self.ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})

    def ask(self, name: str, given: dict[str, Any]) -> Any:
        self._count += 1
        text = json.dumps([0, self._count, name, given]).encode()
        self._socket.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, found = self._read()
        assert number == self._count
        assert error is None, f"{name}: {error}"
        return found

    def _read(self) -> Any:
        head = b""
        while not head.endswith(b":"):
            head += self._some(1)
        count, text = int(head[:-1]), b""
        while len(text) < count:
            text += self._some(count - len(text))
        return json.loads(text)

    def _some(self, most: int) -> bytes:
        data = self._socket.recv(most)
        assert data, "Firefox ended"
        return data

    def goto(self, url: str) -> None:
        self.ask("WebDriver:Navigate", {"url": url})

    def execute(self, script: str, *given: Any) -> Any:
        """The result of a script of Marionette, which `return`s it; no policy of the page forbids it."""
        return self.ask("WebDriver:ExecuteScript", {"script": script, "args": list(given)})["value"]

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
        self.ask("WebDriver:PerformActions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def close(self) -> None:
        self._socket.close()


@contextmanager
def firefox() -> Iterator[Tab]:
    """A Firefox with empty storage; the test is skipped if there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no {' and no '.join(PROGRAMS)} on the path: apt install firefox-esr")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "user.js").write_text(PREFERENCES)
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                tab = Tab(_port(Path(folder), running))
                try:
                    yield tab
                finally:
                    tab.close()
            finally:
                running.terminate()


def _port(folder: Path, running: subprocess.Popen[bytes]) -> int:
    """The port on which Marionette listens, which it writes into the profile."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        file = folder / "MarionetteActivePort"
        if file.exists() and (text := file.read_text().strip()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError(f"Firefox did not start: exit status {running.poll()}")
