"""Targets and backends of installed packages, found through entry points and never imported by name.

Where packages are installed in folders, and Python's own finder alone finds them, their lists of entry points are read here: the import
of importlib.metadata takes 20 ms, a third of what a model needs whose Program is kept. It tells the rest: zipped packages, errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

from .errors import DeviceError
from .late_dataclass import dataclass
from .lazy_names import LateModule

if TYPE_CHECKING:
    from . import hints
else:
    hints = LateModule("hints")

LISTS: Final = (".dist-info", ".egg-info")
"""How the folders end that describe packages."""


@dataclass(frozen=True)
class Plugin:
    """An entry point: `module:attribute`, and the folder that describes its package."""

    name: str
    value: str
    folder: str

    def load(self) -> Any:
        module, _, attributes = self.value.partition("[")[0].partition(":")
        found: Any = import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            found = getattr(found, attribute)
        return found

    @property
    def dist(self) -> Any:
        """What is known of its package."""
        from importlib.metadata import Distribution  # noqa: PLC0415 (for errors)

        return Distribution.at(self.folder)


@cache
def plugins(group: str) -> Mapping[str, Any]:
    """The entry points of a group ("singe.targets", "singe.backends") by name."""
    if _are_in_folders():
        return {p.name: p for folder in _folders() for p in _of_group(group, folder)}
    from importlib.metadata import entry_points  # noqa: PLC0415 (see the module's docstring)

    return {e.name: e for e in entry_points(group=group)}


def version_of(package: str) -> str:
    """The version of an installed package; "" if it is not known."""
    folder = next(_folders(f"{package}-"), None) if _are_in_folders() else None
    if folder is not None and folder.endswith(LISTS[0]):
        return os.path.basename(folder)[: -len(LISTS[0])].partition("-")[2]
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (see the module's docstring)

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _are_in_folders() -> bool:
    others = [finder for finder in sys.meta_path if finder is not PathFinder]
    return not any(hasattr(finder, "find_distributions") for finder in others) and not any(
        map(os.path.isfile, sys.path)
    )


def _folders(start: str = "") -> Iterator[str]:
    """The folders on the path that describe packages, in order; of two of one package, the first. start: of their names."""
    found: set[str] = set()
    for place in dict.fromkeys(sys.path):
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in sorted(name for name in names if name.endswith(LISTS)):
            package = name.rpartition(".")[0].partition("-")[0].lower().replace(".", "_")
            if package not in found and f"{package}-".startswith(start):
                found.add(package)
                yield os.path.join(place, name)


def _of_group(group: str, folder: str) -> Iterator[Plugin]:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            raw = file.read()
    except OSError:  # it has none
        return
    lines = [line.strip() for line in raw.decode().splitlines()] if group.encode() in raw else []
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Plugin(name.strip(), value.strip(), folder)


def plugin_names(group: str) -> tuple[str, ...]:
    return tuple(sorted(plugins(group)))


def load_plugin(group: str, name: str, what: str) -> Any:
    """The object of an entry point; DeviceError if there is no such entry point, or it cannot be imported."""
    entry = plugins(group).get(name)
    if entry is None:
        there = ", ".join(plugin_names(group)) or "none (is singe installed, not only on the path?)"
        raise DeviceError(f"no {what} {name!r}; there are {there}{hints.suggest(what, name.partition(':')[0])}")
    try:
        return entry.load()
    except ImportError as e:
        raise missing(group, name, what, e) from e
    except Exception as e:  # modules of other packages may raise anything
        raise DeviceError(
            f"the {what} {name!r} of the package {package(entry)} cannot be loaded from {entry.value}: {line(e)}"
        ) from e


def check_plugin(plugin: Any, protocol: type, group: str, name: str, what: str) -> None:
    """Refuse what an entry point made if it lacks attributes or methods of a protocol."""
    wanted = [
        *protocol.__annotations__,
        *(n for n, v in vars(protocol).items() if (callable(v) or isinstance(v, property)) and not n.startswith("_")),
    ]
    lacking = [attribute for attribute in wanted if not hasattr(plugin, attribute)]
    if lacking:
        raise DeviceError(
            f"the {what} {name!r} of the package {package(plugins(group)[name])} is a {type(plugin).__name__} without "
            f"{', '.join(lacking)}; a {protocol.__name__} has them"
        )


def missing(group: str, name: str, what: str, e: ImportError) -> DeviceError:
    """The error of an entry point that needs a missing package. It names the extra or the package to install."""
    entry = plugins(group)[name]
    extras = (entry.dist.metadata.get_all("Provides-Extra") or ()) if entry.dist else ()
    wanted = f"'{package(entry)}[{name}]'" if name in extras else package(entry)
    return DeviceError(f"the {what} {name!r} needs a package that is not here: {e}; pip install {wanted}")


def package(entry: Any) -> str:
    """The package that an entry point comes from."""
    return entry.dist.name if entry.dist else "unknown"


def line(e: Exception) -> str:
    """An error on one line, with its type."""
    return f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
