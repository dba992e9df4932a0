"""The backend "wasm" of wherever this runs: a page's own engine under Pyodide, wasmtime elsewhere."""

from __future__ import annotations

import sys

if sys.platform == "emscripten":
    from .browser import open_backend
else:
    from .native import WasmBackend as open_backend

__all__ = ["open_backend"]
