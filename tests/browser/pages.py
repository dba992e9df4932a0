"""Runs singe.js in pages of Chromium, from the working tree over loopback, and in node."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import ROOT, STATIC

HEADERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-store",
}
CORES: Final = len(os.sched_getaffinity(0))
"""That browsers and node may use here."""
SEVERAL: Final = 2 if CORES > 1 else 1
"""How many threads a model has that asks for two: on one core there are none beside the first."""
several_cores: Final = pytest.mark.skipif(CORES < 2, reason="one core: there are no threads")
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src blob:; base-uri 'none'"
)
"""A strict policy for a page, which allows what Singe needs."""
SCRIPT: Final = """async (given) => {
  const { load } = await import("/static/singe.js");
  const { answer, failure, pack, unpack } = await import("/tests/browser/harness.js");
  BODY
}"""
NODE: Final = """
const { load, SingeError } = await import(RUNNER);
const { answer, failure, unpack, pack } = await import(HARNESS);
let text = "";
for await (const part of process.stdin) text += part;
const given = JSON.parse(text);
const main = async () => { BODY };
process.stdout.write(JSON.stringify(await main()));
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the working tree, and bundles at /bundles/; also at /slow/, where responses never end."""

    def __init__(self, *args: Any, server: Served, **kwargs: Any) -> None:
        self.served = server
        types = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
        self.extensions_map = {**self.extensions_map, **types}
        super().__init__(*args, directory=str(ROOT), **kwargs)

    def translate_path(self, path: str) -> str:
        for prefix in ("/bundles/", "/slow/"):
            if path.startswith(prefix):
                return str(self.served.root / path.partition("?")[0].removeprefix(prefix))
        return super().translate_path(path)

    def do_GET(self) -> None:
        self.served.asked.append(self.path)
        if self.path in self.served.pages:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(self.served.pages[self.path][0].encode())
        elif self.path.startswith("/slow/") and self.path.endswith(".bin"):
            self.send_response(200)
            self.send_header("Content-Length", str(Path(self.translate_path(self.path)).stat().st_size))
            self.end_headers()
            self.wfile.write(bytes(100))
            self.wfile.flush()
            time.sleep(30)
        elif self.served.breaks and self.path.endswith(".bin"):
            self._half()
        else:
            with suppress(ConnectionError):  # a page that gives up closes its connections
                super().do_GET()

    def _half(self) -> None:
        """Half of what was asked for of a file, whose end was promised; all of the rest, if the server gives parts."""
        data = Path(self.translate_path(self.path)).read_bytes()
        wanted = self.headers.get("Range", "") if self.served.breaks == "ranges" else ""
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:] if wanted else data[: len(data) // 2])
        self.close_connection = True

    def end_headers(self) -> None:
        own = self.served.pages[self.path][1] if self.path in self.served.pages else {}
        for name, value in {**HEADERS, **self.served.headers, **own}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        pass


class Served:
    """A server of bundles: the requests that it got, headers of all answers, and pages of its own, each with headers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []
        self.breaks = ""  # "ranges" or "whole": .bin files break off in the middle, and go on where a Range is asked for, or do not
        self.pages: dict[str, tuple[str, dict[str, str]]] = {"/": ("<!doctype html><title>singe</title>", {})}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, server=self))
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def files(self) -> list[str]:
        """The files of bundles, except manifests, that were requested since the last call."""
        found = [path for path in self.asked if path.startswith("/bundles/") and not path.endswith("model.json")]
        self.asked.clear()
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Page:
    """A page of Chromium, and its server."""

    def __init__(self, page: Any, server: Served) -> None:
        self.page, self.server, self.root, self.asked = page, server, server.root, server.asked

    def run(self, body: str, **given: Any) -> Any:
        """The result of a script, which is the body of an async function with its arguments in `given`."""
        return self.page.evaluate(SCRIPT.replace("BODY", body), given)

    def failed(self, body: str, **given: Any) -> dict[str, str]:
        return self.run(f"return failure(async () => {{ {body} }});", **given)


@contextmanager
def open_page(browser: Any, root: Path) -> Iterator[Page]:
    """A page with empty storage; `root` is the folder of the bundles."""
    server, page = Served(root), browser.new_page()
    try:
        page.goto(server.address)
        yield Page(page, server)
    finally:
        page.close()
        server.close()


@contextmanager
def stopped_by(stop: Callable[[str], None]) -> Iterator[str]:
    """An address: a page that fetches it has called `stop` with a reason."""

    class Stopper(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stop("it is late")
            self.send_response(200)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stopper) as waiting:
        threading.Thread(target=waiting.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{waiting.server_port}/"
        waiting.shutdown()


def phases(progress: list[dict[str, Any]]) -> list[str]:
    """What onProgress was told, one phase after the other."""
    found = [p["phase"] for p in progress]
    return [phase for k, phase in enumerate(found) if k == 0 or found[k - 1] != phase]


def node(body: str, *, runner: str = "", cwd: Path | None = None, arguments: tuple[str, ...] = (), **given: Any) -> Any:
    """The result of a script in node, which is the body of an async function with its arguments in `given`."""
    if shutil.which("node") is None:
        pytest.skip("no node here")
    script = NODE.replace("BODY", body).replace("RUNNER", json.dumps(runner or (STATIC / "singe.js").as_uri()))
    script = script.replace("HARNESS", json.dumps((Path(__file__).parent / "harness.js").as_uri()))
    done = subprocess.run(
        ["node", "--no-warnings", *arguments, "--input-type=module", "-e", script],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Runs:
    """Runs scripts where a name says: "node", node with "threads", or a device in a page ("wasm", "webgpu"), whose words may begin
    with "worker". In a script, `open(name)` loads a bundle; the test's fixture `chromium` is the page."""

    def __init__(self, request: pytest.FixtureRequest, where: str, root: Path) -> None:
        self.request, self.where, self.root = request, where, root

    def __call__(self, body: str, **given: Any) -> Any:
        *worker, device = self.where.split()
        if device in ("node", "threads"):
            options = {"device": "wasm", "threads": 1 if device == "node" else 2}
            base = self.root.as_uri() + "/"
            run = node
        else:
            options = {"device": device, "worker": bool(worker)}
            base = "/bundles/"
            run = self.request.getfixturevalue("chromium").run
        opening = "const open = (name, more) => load(given.base + name + '/', { ...given.options, ...more });"
        return run(opening + body, base=base, options=options, **given)
