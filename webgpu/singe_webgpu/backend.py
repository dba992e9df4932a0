"""Opens the backend "webgpu": the page's own WebGPU under Pyodide, wgpu-py elsewhere, imported only then."""

from __future__ import annotations

import sys
from typing import Any

from singe.extension import Backend, BackendFactory, MaybeAwaitable


def _open(**options: Any) -> MaybeAwaitable[Backend]:
    if sys.platform == "emscripten":
        from .device.browser import open_backend as make  # noqa: PLC0415
    else:
        from .device.native import WebGpuBackend as make  # noqa: PLC0415
    return make(**options)


open_backend = BackendFactory(_open, target_name="wgsl", preference=30, pages=True)
