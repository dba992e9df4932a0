"""Opens the backend "wasm": the page's own engine under Pyodide, wasmtime elsewhere, imported only then."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from singe.extension import Backend, BackendFactory, MaybeAwaitable, ProgramData


def _open(**options: Any) -> MaybeAwaitable[Backend]:
    if sys.platform == "emscripten":
        from .browser import open_backend as make  # noqa: PLC0415
    else:
        from .native import WasmBackend as make  # noqa: PLC0415
    return make(**options)


def _freestanding(program: ProgramData, facts: Mapping[str, Any], separate: bool) -> tuple[bytes, bytes]:
    from .freestanding import freestanding as make  # noqa: PLC0415

    return make(program, facts, separate)


open_backend = BackendFactory(
    _open, target_name="wasm", preference=20, pages=True, freestanding=_freestanding, cpu=True
)
