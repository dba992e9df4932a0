"""onnxruntime-web in headless Chromium, driven from Python: the peer of the wasm and webgpu backends.

The package is fetched from npm into tests/.cache once. A page loads a model and runs it when asked, so that a race can
take turns: ours, theirs, ours, theirs.
"""

from __future__ import annotations

import base64
import http.server
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
from playwright.sync_api import sync_playwright

VERSION: Final = "1.30.0"
CACHE: Final = Path(__file__).parents[1] / ".cache" / "ort-web"
CHROMIUM: Final = "/usr/bin/chromium"
FLAGS: Final = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
PAGE: Final = """<!doctype html><meta charset=utf-8><script type=module>
const ort = await import('/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs');
ort.env.wasm.wasmPaths = '/node_modules/onnxruntime-web/dist/';
const types = {float32: Float32Array, int64: BigInt64Array, int32: Int32Array};
window.open_ = async (threads, inputs) => {
  ort.env.wasm.numThreads = threads;
  window.session = await ort.InferenceSession.create('/model.onnx', {executionProviders: ['wasm']});
  window.feeds = {};
  for (const [name, dtype, shape, text] of inputs) {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    feeds[name] = new ort.Tensor(dtype, new types[dtype](bytes.buffer), shape);
  }
};
window.once = async () => { const t = performance.now(); await session.run(feeds); return performance.now() - t; };
window.ready = true;
</script>"""


def package() -> Path:
    """The folder in which onnxruntime-web is installed."""
    if not (CACHE / "node_modules" / "onnxruntime-web").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"onnxruntime-web {VERSION} is being installed from npm, once …", file=sys.stderr, flush=True)
        subprocess.run(
            [
                "npm",
                "install",
                "--prefix",
                str(CACHE),
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                f"onnxruntime-web@{VERSION}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return CACHE


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the package, the page and one model, isolated so that threads are available."""

    def __init__(self, *args: Any, model: Path, **kwargs: Any) -> None:
        self.model = model
        self.extensions_map = {**self.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}
        super().__init__(*args, directory=str(package()), **kwargs)

    def do_GET(self) -> None:
        body = PAGE.encode() if self.path == "/" else self.model.read_bytes() if self.path == "/model.onnx" else None
        if body is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class OrtWeb:
    """A page with one model loaded; `once()` runs it and gives milliseconds."""

    def __init__(self, model: Path, inputs: dict[str, np.ndarray], threads: int = 1) -> None:
        package()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, model=model))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        self._page = self._browser.new_page()
        self._page.goto(f"http://127.0.0.1:{self._server.server_port}/")
        self._page.wait_for_function("window.ready === true")
        given = [
            [name, str(a.dtype), list(a.shape), base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()]
            for name, a in inputs.items()
        ]
        self._page.evaluate("([threads, inputs]) => open_(threads, inputs)", [threads, given])

    def once(self) -> float:
        return float(self._page.evaluate("() => once()"))

    def __enter__(self) -> OrtWeb:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.close()
        self._playwright.stop()
        self._server.shutdown()
