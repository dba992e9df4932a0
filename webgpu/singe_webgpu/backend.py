"""Opens the backend "webgpu": the page's own WebGPU under Pyodide, wgpu-py elsewhere, imported only then."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from singe.extension import Backend, BackendFactory, MaybeAwaitable


def _open(**options: Any) -> MaybeAwaitable[Backend]:
    if sys.platform == "emscripten":
        from .device.browser import open_backend as make  # noqa: PLC0415
    else:
        from .device.native import WebGpuBackend as make  # noqa: PLC0415
    return make(**options)


def _list_choices() -> Sequence[str]:
    if sys.platform == "emscripten":
        return ()
    from .device.native import adapters  # noqa: PLC0415

    return tuple(map(str, range(len(adapters()))))


open_backend = BackendFactory(
    _open,
    target_name="wgsl",
    preference=30,
    pages=True,
    choices='the number of an adapter ("webgpu:1"), a part of its name ("webgpu:nvidia"), or low-power',
    list_choices=_list_choices,
)
