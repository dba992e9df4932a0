"""A finder that says clearly which modules of onnxruntime are not there (onnxruntime.tools, …), and has metadata for packages that look up
the version of the distribution onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
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
        if not fullname.startswith(f"{NAME}."):
            return None
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: here singe.ort stands in for onnxruntime, of which it has what runs models: "
            f"{', '.join(self._modules)}. What makes or changes models needs onnxruntime itself",
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
