"""WebKitGTK in a display without a screen, driven by WebDriver: JSON over HTTP.

Contract: `webkit(environment)` gives a Tab of a WebKit with empty storage, or skips the test and says why. WebKitWebDriver starts
WebKitGTK's own small browser, MiniBrowser, in a session that keeps nothing on disk.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import pytest
from tabs import PATIENCE, Tab

PROGRAMS: Final = {"WebKitWebDriver": "webkit2gtk-driver", "Xvfb": "xvfb"}
"""A program ↦ Debian's package of it."""
PATHS: Final = {"Navigate": "url", "ExecuteScript": "execute/sync", "PerformActions": "actions"}
"""A command ↦ its path below the session's."""


class WebDriver:
    """The driver of the browser that a WebKitWebDriver on a port starts: one session."""

    def __init__(self, port: int) -> None:
        self._port: Final = port
        self._session = ""
        self._session = self._request("POST", "", {"capabilities": {}})["sessionId"]

    def ask(self, name: str, given: Mapping[str, Any]) -> Any:
        return {"value": self._request("POST", f"/{PATHS[name]}", given)}

    def _request(self, method: str, path: str, given: Mapping[str, Any]) -> Any:
        start = f"/session/{self._session}" if self._session else "/session"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request(method, start + path, json.dumps(given), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        assert answer.status == http.client.OK, f"{method} {start}{path}: {value}"
        return value

    def close(self) -> None:
        """End the session, and with it the browser."""
        self._request("DELETE", "", {})


@contextmanager
def webkit(environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[Tab]:
    """A WebKit with empty storage, with these variables besides; the test is skipped if there is none."""
    missing = {name: package for name, package in PROGRAMS.items() if shutil.which(name) is None}
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on the path: apt install {' '.join(missing.values())}")
    with _display() as display:
        port = _free_port()
        command = ["WebKitWebDriver", "--host=127.0.0.1", f"--port={port}"]
        given = {**os.environ, "DISPLAY": display, "GDK_BACKEND": "x11", **environment}
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=given, stdout=quiet, stderr=quiet) as running:
            try:
                _wait_for(port, running)
                driver = WebDriver(port)
                try:
                    yield Tab(driver.ask)
                finally:
                    driver.close()
            finally:
                running.terminate()


@contextmanager
def _display() -> Iterator[str]:
    """The name of an X display that nobody sees: the first free one."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-nolisten", "tcp", "-screen", "0", "1280x1024x24"]
    with subprocess.Popen(command, pass_fds=(write,), stderr=subprocess.DEVNULL) as running:
        try:
            os.close(write)
            with os.fdopen(read) as told:
                number = told.readline().strip()
            assert number, f"Xvfb did not start: exit status {running.wait(PATIENCE)}"
            yield f":{number}"
        finally:
            running.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError(f"WebKitWebDriver did not start: exit status {running.poll()}")
