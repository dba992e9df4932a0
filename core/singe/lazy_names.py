"""Names that come with the module that defines them, when they are first used: so what names them is imported at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .garbage import collector_resting


def by_name(defined: Mapping[str, str]) -> dict[str, str]:
    """A module ↦ the names that it defines, separated by spaces; for each name, its module."""
    return {name: module for module, names in defined.items() for name in names.split()}


@collector_resting()
def resolved(module: str, name: str) -> Any:
    """What a module of singe calls so: an attribute of it, or a module in it."""
    found = import_module(f"singe.{module}")
    return getattr(found, name) if hasattr(found, name) else import_module(f"singe.{module}.{name}")


class LateModule:
    """A module of singe that is imported once something of it is used; whoever names it tells its type under TYPE_CHECKING.

    if TYPE_CHECKING:
        from ..compiler import compile as compiling
    else:
        compiling = LateModule("compiler.compile")
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(f"singe.{self._module}"), name)
        setattr(self, name, found)
        return found
