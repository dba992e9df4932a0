"""Firefox without a window, driven by its own protocol, Marionette: JSON after its length, over a socket.

Contract: `firefox()` gives a Tab of a Firefox with empty storage, or skips the test and says why.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tabs import PATIENCE, Tab

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


class Marionette:
    """The driver of a Firefox that listens on a port."""

    def __init__(self, port: int) -> None:
        self._socket: Final = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._count = 0
        self._read()
        self.ask("NewSession", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})

    def ask(self, name: str, given: Mapping[str, Any]) -> Any:
        self._count += 1
        text = json.dumps([0, self._count, f"WebDriver:{name}", given]).encode()
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
                with closing(Marionette(_port(Path(folder), running))) as driver:
                    yield Tab(driver.ask)
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
