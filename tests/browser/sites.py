"""The site of demos/build.py for browser tests: built once for all workers, served as `singe serve` does."""

from __future__ import annotations

import fcntl
import http.server
import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from browsers import PATIENCE
from tiny_language import tiny_gguf

from singe.tools.serving.folder_server import Server

ROOT: Final = Path(__file__).parents[2]
SCREENSHOTS: Final = ROOT / "tests" / ".cache" / "screenshots"
TINY: Final = "tiny.gguf"
TASKS: Final = "detect", "cutout"
"""The pages of tasks that this site has with their models; test_site_tasks.py builds others by themselves."""


def folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """The folder that all workers of a run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let no other worker in during the block."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built_site(base: Path) -> Path:
    """The site, in a folder that all workers of a run share; the first worker builds it, with Python's files if they are available,
    and with a tiny language model."""
    base.mkdir(parents=True, exist_ok=True)
    site, log = base / "site", base / "site.log"
    with locked(base / "site.lock"):
        if not log.exists():
            has_gguf = find_spec("gguf") is not None
            language = ["--language", str(tiny_gguf(base / TINY))] if has_gguf else ["--without-language"]
            command = [sys.executable, str(ROOT / "demos" / "build.py"), "-o", str(site), *language, "--tasks", *TASKS]
            done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
            log.write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
    code, _, text = log.read_text().partition("\n")
    if code != "0":
        reason = text.strip().splitlines()[-1]
        if "could not be fetched" in reason:
            pytest.skip(f"no site: {reason}")
        pytest.fail(f"demos/build.py failed:\n{text}")
    return site


def language_of(site: Path) -> Path | None:
    """The language model of the site that tests share."""
    file = site.parent / TINY
    return file if file.exists() else None


def demos_script(name: str) -> ModuleType:
    """A script of demos/."""
    if str(ROOT / "demos") not in sys.path:
        sys.path.insert(0, str(ROOT / "demos"))
    return importlib.import_module(name)


def demos_build() -> ModuleType:
    """The script that builds the site."""
    return demos_script("build")


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    """A server that runs during the block."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder as `singe serve` serves it."""
    with serving(Server(folder, port=0)) as server:
        yield server.address


@contextmanager
def served_plainly(folder: Path, headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """A folder on a host that sends only these headers."""
    handler = partial(_Quiet, directory=str(folder), headers=headers or {})
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map: Final = {  # pyright: ignore[reportIncompatibleVariableOverride]
        **http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def __init__(self, *args: Any, headers: Mapping[str, str], **kwargs: Any) -> None:
        self.own_headers: Final = headers
        super().__init__(*args, **kwargs)

    def end_headers(self) -> None:
        for name, value in self.own_headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def until(page: Any, expression: str, seconds: float = PATIENCE) -> None:
    """Wait until an expression is true. Playwright's own function uses eval in the page,
    which a strict policy forbids."""
    from playwright.sync_api import Error  # noqa: PLC0415 (tests without it skip)

    found: Any = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := page.evaluate(expression):
                return
        except Error as e:  # the page went to another in the middle
            found = e
        page.wait_for_timeout(50)
    pytest.fail(f"after {seconds} s still {found}: {expression}")


@contextmanager
def front_page(browser: Any, address: str) -> Iterator[Any]:
    """The front page, whose console must have no errors at the end."""
    context = browser.new_context()
    page = context.new_page()
    console = Console(page)
    page.goto(address)
    page.wait_for_selector("#facts[aria-busy=false]")
    yield page
    assert console.complaints == [], console.complaints
    context.close()


class Console:
    """The errors of a page: of scripts, on the console, and violations of its policy. Whether the runner warns of a WebGPU in
    software depends on how long the kernels take to compile, and so on what else the machine does: that is no complaint."""

    def __init__(self, page: Any) -> None:
        self.complaints: list[str] = []
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        page.on("console", self._heard)
        self._page = page

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith("singe: WebGPU runs in software"):
            self.complaints.append(message.text)

    def wait_for(self, start: str, count: int, seconds: float = 10) -> None:
        """Waits until `count` complaints begin so, or until the seconds are over."""
        end = time.monotonic() + seconds
        while sum(c.startswith(start) for c in self.complaints) < count and time.monotonic() < end:
            self._page.wait_for_timeout(50)
