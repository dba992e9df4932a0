"""Opens the backend "webgpu": the page's own WebGPU under Pyodide, wgpu-py elsewhere."""

from __future__ import annotations

import sys

if sys.platform == "emscripten":
    from .browser import open_backend
else:
    from .native import WebGpuBackend as open_backend

__all__ = ["open_backend"]
