"""Opens the backend "wasm": the page's own engine under Pyodide, wasmtime elsewhere, imported only then."""

from __future__ import annotations

import sys
from typing import Any

from singe.extension import Backend, BackendFactory, Later


def _open(**options: Any) -> Later[Backend]:
    if sys.platform == "emscripten":
        from .browser import open_backend as make  # noqa: PLC0415
    else:
        from .native import WasmBackend as make  # noqa: PLC0415
    return make(**options)


open_backend = BackendFactory(_open, target_name="wasm", preference=20, pages=True)
