"""The installed backends, facts about them that need no device, and opening a device.

A package registers a backend by an entry point of the group `singe.backends`. The name of the entry point is the
backend's name. It loads a factory: the Backend's class, or a BackendFactory if opening a device imports an engine that
may be missing. A device's name is that of its backend, and for a backend with several devices what chooses one, after a colon:
"webgpu:1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..awaitables import MaybeAwaitable, map_result
from ..compiler.target import Target
from ..errors import DeviceError, SingeError
from ..late_dataclass import dataclass
from ..lazy_names import LateModule
from ..plugins import check_plugin, line, load_plugin, missing, package, plugin_names, plugins
from ..program.program import ProgramData
from .backend import Backend

if TYPE_CHECKING:
    from ..compiler import array_target
else:
    array_target = LateModule("compiler.array_target")

GROUP: Final = "singe.backends"
ELSEWHERE: Final = "remote"
"""The backend whose devices are those of servers, and have their addresses."""
Freestanding: TypeAlias = Callable[[ProgramData, Mapping[str, Any], bool], tuple[bytes, bytes]]
"""A Program, facts for its description, and whether the weights go into a file of their own ↦ a module, and that file."""


@dataclass(frozen=True)
class BackendFactory:
    """Opens a device, and has the facts known without opening one. A class with these attributes is a factory too.

    target_name: the target whose Programs the backend runs ("host": Programs of host steps, which need no target; "": that of the
    device that is opened).
    preference: "auto" takes the backend of the highest preference that opens and is not emulated in software; 0: never.
    pages: whether singe.js runs Programs of the target too, under the backend's name. freestanding: makes a module that any
    engine runs of a Program (tools/export/freestanding.py says of which); None: the target has no such form. choices: what may
    follow the name after a colon, for people; `open` takes it as `choice`. "": the backend has one device. list_choices: a choice
    for each of its devices that is here. cpu: "cpu" takes the backend of the highest preference of those that have it.
    library: the module whose import, when a device is opened, takes seconds; devices are listed without it. "": there is none.
    """

    open: Callable[..., MaybeAwaitable[Backend]]
    target_name: str
    preference: int = 0
    pages: bool = False
    freestanding: Freestanding | None = None
    choices: str = ""
    list_choices: Callable[[], Sequence[str]] | None = None
    cpu: bool = False
    library: str = ""

    def __call__(self, **options: Any) -> MaybeAwaitable[Backend]:
        return self.open(**options)


def backend_names() -> tuple[str, ...]:
    """The installed backends that have a device on this machine."""
    return tuple(name for name in plugin_names(GROUP) if name != ELSEWHERE)


def backend_factory(name: str) -> BackendFactory:
    """The factory of an installed backend, of which a device may be named; DeviceError if it is missing or broken."""
    name = name.partition(":")[0]
    found = load_plugin(GROUP, name, "backend")
    target = getattr(found, "target_name", None)
    if not callable(found) or not isinstance(target, str):
        raise DeviceError(
            f"the backend {name!r} of {_package(name)} is {found!r:.80}, expected a class or a BackendFactory whose attribute "
            "target_name says which programs it runs"
        )
    if isinstance(found, BackendFactory):
        return found
    make: Callable[..., Any] = found
    known = ("preference", "pages", "freestanding", "choices", "list_choices", "cpu", "library")
    facts = {name: getattr(found, name) for name in known if hasattr(found, name)}
    return BackendFactory(make, target, **facts)


def factories() -> dict[str, BackendFactory]:
    """The installed backends that can be loaded, the most preferred first."""
    found: dict[str, BackendFactory] = {}
    for name in backend_names():
        try:
            found[name] = backend_factory(name)
        except DeviceError:
            continue  # asking for it by name raises the error
    return dict(sorted(found.items(), key=lambda item: -item[1].preference))


def backends_for(target: str) -> tuple[str, ...]:
    """The backends that run Programs of a target, the most preferred first."""
    return tuple(name for name, factory in factories().items() if factory.target_name == target)


def addresses(name: str) -> tuple[str, ...]:
    """Names that open the devices of a backend that are here; its own name alone if it cannot list them."""
    listed = backend_factory(name).list_choices
    try:
        choices = () if listed is None else listed()
    except Exception:  # engines of other packages may raise anything; opening the backend says why
        choices = ()
    return tuple(f"{name}:{choice}" for choice in choices) or (name,)


def open_backend(address: str, **options: Any) -> MaybeAwaitable[Backend]:
    """A new device with this name; DeviceError says why there is none."""
    factory = backend_factory(address)
    name, colon, choice = address.partition(":")
    if colon:
        if not factory.choices:
            raise DeviceError(f"no device {address!r}: the backend {name!r} has one device; write {name!r}")
        if not choice:
            raise DeviceError(f"no device {address!r}: expected after the colon {factory.choices}")
        options["choice"] = choice
    try:
        made = factory(**options)
    except SingeError:
        raise
    except ImportError as e:
        raise missing(GROUP, name, "backend", e) from e
    except Exception as e:  # engines of other packages may raise anything
        raise DeviceError(f"the backend {name!r} of {_package(name)} cannot open a device: {line(e)}") from e

    def checked(backend: Backend) -> Backend:
        check_plugin(backend, Backend, GROUP, name, "backend")
        target = target_of(backend)
        check_plugin(target, Target, GROUP, name, "target of the backend")
        runs = target.name
        if factory.target_name and runs != factory.target_name:
            raise DeviceError(
                f"the backend {name!r} of {_package(name)} runs programs for {runs!r}, and its factory says {factory.target_name!r}"
            )
        return backend

    return map_result(made, checked)


def target_of(backend: Backend) -> Target:
    return backend.target or array_target.ARRAYS


def _package(name: str) -> str:
    return f"the package {package(plugins(GROUP)[name])}"
