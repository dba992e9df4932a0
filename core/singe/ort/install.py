"""`install`: `import onnxruntime` finds singe.ort.

It enters the modules of singe.ort under onnxruntime's names, a finder that says clearly what is not there (onnxruntime.tools, …), and
metadata, for packages that look up the version of the distribution onnxruntime.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from os import PathLike
from types import ModuleType
from typing import Any, Final

from ..errors import InputError
from .settings.stand_in import METADATA, NAME

_HERE: Final = __name__.rpartition(".")[0]
_MODULES: Final = (
    "", ".backend", ".capi", ".capi._pybind_state", ".capi.onnxruntime_inference_collection", ".capi.onnxruntime_pybind11_state",
    ".capi.onnxruntime_validation",
)  # fmt: skip
"""The modules of onnxruntime that there are here."""


class StandIn(MetaPathFinder):
    """Finds the metadata of the distribution onnxruntime, and refuses its modules that are not here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{NAME}."):
            return None
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: here singe.ort stands in for onnxruntime, of which it has what runs models: "
            f"{', '.join(NAME + name for name in _MODULES)}. What makes or changes models needs onnxruntime itself",
            name=fullname,
        )

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """The distribution, for those who look for it or for all."""
        return [_Metadata()] if context is None or context.name in (None, NAME) else []


class _Metadata(Distribution):
    """The metadata of a distribution whose interface is here."""

    def read_text(self, filename: str | PathLike[str]) -> str | None:
        return METADATA if str(filename) == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        return path


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
    sys.modules.update({f"{NAME}{name}": import_module(f"{_HERE}{name}") for name in _MODULES})
    sys.meta_path.insert(0, StandIn())
