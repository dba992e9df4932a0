"""`install`: `import onnxruntime` finds singe.ort.

It enters the modules of singe.ort under onnxruntime's names, and a finder of the others (settings/finder.py).
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from ..errors import InputError
from .settings.stand_in import NAME

_HERE: Final = __name__.rpartition(".")[0]
_MODULES: Final = (
    "", ".backend", ".capi", ".capi._pybind_state", ".capi.onnxruntime_inference_collection", ".capi.onnxruntime_pybind11_state",
    ".capi.onnxruntime_validation", ".transformers", ".transformers.io_binding_helper",
)  # fmt: skip
"""The modules of onnxruntime that there are here."""


def install(force: bool = False) -> None:
    """Make `import onnxruntime` find singe.ort, in this process, where no onnxruntime is installed; with force=True also where one is.

    It must be called before onnxruntime is imported: `import singe.ort; singe.ort.install()`."""
    module = import_module(_HERE)
    present = sys.modules.get(NAME)
    if present is module:
        return
    if not force and (present is not None or find_spec(NAME) is not None):
        return
    if present is not None:
        file = getattr(present, "__file__", None)
        raise InputError(
            f"install: onnxruntime is imported already ({file}), and modules that did so keep it; call singe.ort.install(force=True) "
            "before anything imports onnxruntime"
        )
    from .settings.finder import StandIn  # noqa: PLC0415 (a session pays for no importlib.metadata)

    sys.modules.update({f"{NAME}{name}": import_module(f"{_HERE}{name}") for name in _MODULES})
    sys.meta_path.insert(0, StandIn([*(NAME + name for name in _MODULES)]))
