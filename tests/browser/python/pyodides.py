"""Python under Pyodide for tests: in node, in a page and in a module worker of Chromium, each loaded once.

All three receive pyodide_checks.py, run its functions, and return JSON.
"""

from __future__ import annotations

import http.server
import importlib.util
import json
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from bundles import MODELS, ROOT
from sites import folder_of_run, locked

HERE: Final = Path(__file__).parent
STRICT: Final = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'"
"""A policy that allows only the site's own files as scripts."""

PAGE: Final = b"""<!doctype html><meta charset="utf-8"><title>Pyodide</title><link rel="icon" href="data:,">"""
HOST: Final = """
import { start } from "/python/start.js";
const progress = [];
const begun = start({ onProgress: (p) => progress.push(p) });
export const ready = begun.then(() => progress);
export async function run(code, plain) {
  const { pyodide } = await begun;
  try {
    return { value: (plain ? pyodide.runPython(code) : await pyodide.runPythonAsync(code)) ?? null };
  } catch ({ message }) {
    return { error: message };
  }
}
if (typeof WorkerGlobalScope === "function") {
  onmessage = async ({ data: { code, plain } }) => postMessage(code ? await run(code, plain) : await ready);
}
"""
IN_PAGE: Final = """async ({ code, plain }) => {
  const { ready, run } = await import("/host.js");
  return code ? run(code, plain) : ready;
}"""
IN_WORKER: Final = """(given) => {
  globalThis.worker ??= new Worker("/host.js", { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message || "the worker did not start"));
    worker.postMessage(given);
  });
}"""


class Failed(Exception):
    """An error that Python in the page raised."""


class Died(Exception):
    """The process of a tab ended, perhaps for lack of memory; the next request opens another tab."""


class Host:
    """Python in a host: `ask` sends { code, plain } and returns { value } or { error }; `functions` are sent first. If a tab
    dies, another is sent what this one had learnt, and asked again."""

    def __init__(
        self, name: str, ask: Callable[[dict[str, Any]], dict[str, Any]], models: str, functions: str | None = None
    ) -> None:
        self.name = name
        self.models = models
        self._ask = ask
        self._learnt: list[str] = []
        self.learn("import json")
        self.learn((HERE / "pyodide_checks.py").read_text("utf-8") if functions is None else functions)

    def learn(self, code: str) -> None:
        """Run a script whose functions are called later."""
        self.python(code)
        if code not in self._learnt:
            self._learnt.append(code)

    def python(self, code: str, plain: bool = False) -> Any:
        """The value of a script's last expression. plain: use Pyodide's call that cannot wait."""
        try:
            return self._once(code, plain)
        except Died:
            warnings.warn(
                f"{code[:80]}: the tab died, another is asked", stacklevel=2
            )  # shown, though the test may pass
            for known in self._learnt:
                self._once(known)
            return self._once(code, plain)

    def _once(self, code: str, plain: bool = False) -> Any:
        answer = self._ask({"code": code, "plain": plain})
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["value"]

    def call(self, function: str, *args: Any, plain: bool = False) -> Any:
        """The result of a function that was learnt."""
        wait = "" if plain else "await "
        return json.loads(self.python(f"json.dumps({wait}{function}(*json.loads({json.dumps(args)!r})))", plain))


@cache
def setup() -> ModuleType:
    """The script wasm/pyodide/setup.py as a module."""
    spec = importlib.util.spec_from_file_location("pyodide_setup", ROOT / "wasm" / "pyodide" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def assembled(factory: pytest.TempPathFactory, version: str | None = None) -> Path:
    """A folder with Pyodide and Singe; the test is skipped, with the reason, if it cannot be made."""
    made = setup()
    folder = factory.mktemp("pyodide") / "python"
    try:
        made.assemble(folder, _wheel(folder_of_run(factory)), version or made.VERSION, say=lambda _: None)
    except made.SetupError as e:
        pytest.skip(str(e))
    return folder


def _wheel(base: Path) -> Path:
    """Singe's wheel, which the first worker builds."""
    with locked(base / "wheel.lock"):
        return next(base.glob("singe-*.whl"), None) or setup().build_wheel(base, lambda _: None)


# --- in node ----------------------------------------------------------------------------------------------------------


@contextmanager
def in_node(folder: Path) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """A function that sends requests to Python in node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not here")
    models = [str(MODELS)] if MODELS.is_dir() else []
    command = [node, str(HERE / "pyodide_node.mjs"), str(folder), *models]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answer() -> dict[str, Any]:
            line = process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]
            if not line:
                raise Failed(f"node ended with {process.wait()}")
            return json.loads(line)

        def ask(given: dict[str, Any]) -> dict[str, Any]:
            process.stdin.write(json.dumps(given) + "\n")  # pyright: ignore[reportOptionalMemberAccess]
            return answer()

        answer()
        yield ask
        process.stdin.close()


# --- in Chromium ------------------------------------------------------------------------------------------------------


class Tab:
    """A page of a Playwright Browser that runs scripts and returns their results."""

    def __init__(self, browser: Any, address: str, script: str) -> None:
        self._browser = browser
        self._address = address
        self._script = script
        self._page: Any = None

    def ask(self, given: dict[str, Any]) -> dict[str, Any]:
        if self._page is None:
            self._page = self._browser.new_page()
            self._page.goto(self._address)
        try:
            return self._page.evaluate(self._script, given)
        except Exception as e:
            if "Target crashed" not in str(e):
                raise
            self._page.close()
            self._page = None
            raise Died(str(e)) from e

    def crash(self) -> None:
        """End the tab's process, as a lack of memory does."""
        with suppress(Exception):  # nobody is there to answer
            self._page.goto("chrome://crash")


class _Handler(http.server.BaseHTTPRequestHandler):
    """A site with the assembled folder at /python/, the shared models at /models/, scripts beside that folder at /scripts/, a page at /, a
    strict one at /strict."""

    protocol_version = "HTTP/1.1"
    types: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}

    def __init__(self, *args: Any, folder: Path, **kwargs: Any) -> None:
        self.folders = {"python": folder, "models": MODELS, "scripts": folder.parent / "scripts"}
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        root, _, name = self.path.strip("/").partition("/")
        file = self.folders.get(root, Path()) / name
        if root in ("", "strict"):
            self._send(PAGE, "text/html")
        elif self.path == "/host.js":
            self._send(HOST.encode(), "text/javascript")
        elif root in self.folders and "/" not in name and file.is_file():
            self._send(file.read_bytes(), self.types.get(file.suffix, "application/octet-stream"))
        else:
            self._send(b"not here", "text/plain", 404)

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/strict":
            self.send_header("Content-Security-Policy", STRICT)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """The address of the site."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, folder=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
