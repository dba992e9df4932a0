"""A finder that says clearly which modules of onnxruntime are not there (onnxruntime.tools, …), and has metadata for packages that look up
the version of the distribution onnxruntime."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from os import PathLike
from types import ModuleType
from typing import Any, Final

from .stand_in import METADATA, NAME


class StandIn(MetaPathFinder):
    """Finds the metadata of the distribution onnxruntime, and refuses its modules that are not here."""

    def __init__(self, modules: Sequence[str]) -> None:
        """modules: those that are here."""
        self._modules: Final = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{NAME}.") or _is_asked():
            return None
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: here singe.ort stands in for onnxruntime, of which it has what runs models: "
            f"{', '.join(self._modules)}. What makes or changes models needs onnxruntime itself",
            name=fullname,
        )

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """The distribution, for those who look for it or for all."""
        return [_Metadata()] if context is None or context.name in (None, NAME) else []


def _is_asked() -> bool:
    """Whether `importlib.util.find_spec` asks, which says None of a module that there is not. The error of an import says what to do."""
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") in _SEARCHES:
        if frame.f_code is find_spec.__code__:
            return True
        frame = frame.f_back
    return False


_SEARCHES: Final = (__name__, "importlib._bootstrap", "importlib.util")
"""The modules of the functions between a search for a module and its finders."""


class _Metadata(Distribution):
    """The metadata of a distribution whose interface is here."""

    def read_text(self, filename: str | PathLike[str]) -> str | None:
        return METADATA if str(filename) == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        return path
