"""Targets and backends of installed packages, found through entry points and never imported by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from .errors import DeviceError
from .hints import suggest


@cache
def plugins(group: str) -> Mapping[str, Any]:
    """The entry points of a group ("singe.targets", "singe.backends") by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (a third of the time that `import singe` may take)

    return {e.name: e for e in entry_points(group=group)}


def plugin_names(group: str) -> tuple[str, ...]:
    return tuple(sorted(plugins(group)))


def load_plugin(group: str, name: str, what: str) -> Any:
    """The object of an entry point; DeviceError if there is no such entry point, or it cannot be imported."""
    entry = plugins(group).get(name)
    if entry is None:
        there = ", ".join(plugin_names(group)) or "none (is singe installed, not only on the path?)"
        raise DeviceError(f"no {what} {name!r}; there are {there}{suggest(what, name.partition(':')[0])}")
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
