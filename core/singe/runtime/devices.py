"""The functions that open devices. A backend's device is opened once and shared."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from ..awaitables import MaybeAwaitable, finished, map_result, resolve, resolve_async
from ..errors import DeviceError, InputError
from ..garbage import collector_resting
from ..late_dataclass import dataclass
from ..plugins import version_of
from .backend import Backend
from .device import Device
from .eager import EagerDevice
from .memory.settings import Memory
from .registry import BackendFactory, addresses, backend_factory, backend_names, backends_for, factories, open_backend

NOT_INSTALLED: Final = (
    "no backend is installed, as where Singe's files are on the path without its package: pip install it"
)
DEFAULT: Final = "numpy"
"""The backend in this package, which is always available."""
VARIABLE: Final = "SINGE_DEVICE"
"""The variable of the environment that names the device where none is named, and that of "auto"."""
CHOSEN: Final[Mapping[str, Callable[[BackendFactory], object]]] = {
    "auto": lambda factory: factory.preference,
    "cpu": lambda factory: factory.cpu,
}
"""The names that let Singe choose ↦ among which backends: it takes the most preferred that opens."""

SLOW: Final = '%s runs in software here (%s): right, but slow, about 1 GFLOP/s; device="wasm" or "numpy" is faster'

_opening: Final = threading.Lock()
_told: Final[set[str]] = set()
"""The devices that were asked for by name."""
_devices: Final[dict[str, EagerDevice]] = {}


@collector_resting()
def _opened(name: str) -> MaybeAwaitable[Device]:
    """The only device with this name; another one after it was lost. Callers that wait for it at the same time get the same
    device, and so do those who ask for it by another of its names: "torch" may be "torch:cpu"."""

    def kept(backend: Backend) -> Device:
        own = backend.name if backend.name.partition(":")[0] == name.partition(":")[0] else name
        found = _devices.get(own)
        if found is None or found.lost:
            found = _devices[own] = EagerDevice(backend)
        else:
            backend.dispose()
        return _devices.setdefault(name, found)

    with _opening:
        if name in _devices and _devices[name].lost:
            del _devices[name]
        return _devices[name] if name in _devices else map_result(open_backend(name), kept)


def shared_device(name: str) -> EagerDevice | None:
    """The device with this name, if it is open."""
    found = _devices.get(name)
    return None if found is None or found.lost else found


def _opened_now(name: str) -> Device:
    return resolve(_opened(name), f'await singe.device_async("{name}")')


def device(name: str | Device = "auto") -> Device:
    """The device with this name, opened once and shared: two names of one device give the same object.

    "numpy", "wasm", "webgpu": that of a backend; "webgpu:1", "webgpu:nvidia": one of its devices. "auto": the one that the
    variable SINGE_DEVICE names, otherwise the most preferred one here. "cpu": the fastest here that is the CPU."""
    return name.first if isinstance(name, Device) else finished(_chosen(name, _opened_now))


def device_or_default(name: str | Device | None = None) -> Device:
    """A device; where none is named, that of the variable SINGE_DEVICE, otherwise "numpy"."""
    if name or os.environ.get(VARIABLE):
        return device(name or "auto")
    return _devices.get(DEFAULT) or device(DEFAULT)


async def device_async(name: str | Device = "auto") -> Device:
    """`device` for a page, where opening a device may have to be awaited."""
    return await _chosen(name, _opened)


async def _chosen(name: str | Device, opened: Callable[[str], MaybeAwaitable[Device]]) -> Device:
    if isinstance(name, Device):
        return name.first
    if not isinstance(name, str):
        raise InputError(f"device: got {name!r:.80}, expected a name, such as 'numpy' or 'auto', or a Device")
    named = os.environ.get(VARIABLE, "") if name == "auto" else ""
    if named and named != "auto":
        try:
            return await _chosen(named, opened)
        except DeviceError as e:
            raise DeviceError(f"{VARIABLE} names the device {named!r}: {e}") from e
    among = CHOSEN.get(name)
    if among is None:
        found = await resolve_async(opened(name))
        if name not in _told and (facts := found.describe()).get("software"):
            import logging  # noqa: PLC0415 (it takes 3 ms)

            logging.getLogger("singe").warning(SLOW, name, facts["adapter"])
        _told.add(name)
        return found
    reasons: list[str] = []
    for candidate in (name for name, factory in factories().items() if among(factory)):
        try:
            found = await resolve_async(opened(candidate))
        except DeviceError as e:
            reasons.append(f"{candidate}: {e}")
            continue
        if not found.describe().get("software"):
            return found
        reasons.append(f"{candidate}: a software adapter")
    raise DeviceError("no device: " + ("; ".join(reasons) or NOT_INSTALLED))


def separate(names: Sequence[str | Device]) -> list[Device]:
    """Devices that can work at the same time: a name that comes again is another device of its backend."""
    found: list[Device] = []
    for name in names:
        one = device(name)
        if one in found:
            if isinstance(name, Device):
                raise DeviceError(f"{name!r} comes twice; give its name, which opens another device of its backend")
            backend = resolve(open_backend(one.name), "with each device once")
            one = EagerDevice(backend)
        found.append(one)
    return found


def device_for(target: str) -> Device:
    """The device that runs Programs of a target: that of SINGE_DEVICE if it does, otherwise the most preferred one here."""
    reasons: list[str] = []
    names = backends_for(target)
    named = os.environ.get(VARIABLE, "")
    for name in (named, *names) if named.partition(":")[0] in names else names:
        try:
            return _opened_now(name)
        except DeviceError as e:
            reasons.append(f"{name}: {e}")
    known = ", ".join(sorted({factory.target_name for factory in factories().values()}))
    raise DeviceError(
        f"no device runs programs for {target!r}: "
        + (
            "; ".join(reasons)
            or f"the installed backends run those for {known}; compile the model again for one of them"
        )
    )


@dataclass(frozen=True)
class Unopened:
    """A backend whose library is installed and was not needed yet: to import it takes seconds. `sg.device(name)` opens its device."""

    name: str
    library: str
    """The library, with its version if that is known."""


def devices() -> dict[str, Device | Unopened | DeviceError]:
    """All devices here by name, and for each installed backend that has none why: "webgpu", "webgpu:1". Of PyTorch, JAX and CuPy
    an Unopened, until something is on their devices."""
    found: dict[str, Device | Unopened | DeviceError] = {}
    for backend in backend_names():
        if (unopened := _unopened(backend)) is not None:
            found[backend] = unopened
            continue
        try:
            names = addresses(backend)
        except DeviceError as e:
            found[backend] = e
            continue
        for name in names:
            try:
                one = _opened_now(name)
            except DeviceError as e:
                found[name] = e
            else:
                found[one.name if one.name.partition(":")[0] == backend else name] = one
    return found


def _unopened(backend: str) -> Unopened | None:
    """What is known of a backend without the import of its library, if that is installed and not imported."""
    try:
        library = backend_factory(backend).library
    except DeviceError:
        return None
    if not library or library in sys.modules or find_spec(library) is None:
        return None
    return Unopened(
        backend, f"{library} {version_of(library)}".strip()
    )  # CuPy's package is called after the CUDA that it is for


def Numpy() -> Device:
    """The device "numpy": whole arrays on the CPU; always available."""
    return device(DEFAULT)


def Wasm(memory: Memory | None = None, threads: int | None = None) -> Device:
    """The device "wasm": WebAssembly SIMD kernels on the CPU.

    memory: how much memory the device takes from now on; its arrays are always slices of one memory. threads: how many share a run that
    takes more than about a millisecond, from now on; by default as many as the process may use cores, and at most 8."""
    found = _configured("wasm", memory)
    if threads is not None:
        found.use_threads(threads)
    return found


def WebGpu(choice: int | str | None = None, memory: Memory | None = None) -> Device:
    """The device "webgpu": WGSL kernels on a GPU, natively through wgpu or a browser's own.

    choice: the number of an adapter, a part of its name ("nvidia"), or "low-power"; the first, which is the faster of two, is
    that of "webgpu". memory: how the device takes memory from now on."""
    return _configured("webgpu" if choice is None else f"webgpu:{choice}", memory)


def Cuda(choice: int = 0, memory: Memory | None = None, tf32: bool = False) -> Device:
    """The device "cuda:0": CUDA kernels on an NVIDIA GPU, compiled when they are first needed; it needs the driver and the extra `cuda`.

    choice: the number of the card. memory: how the device takes memory from now on. tf32: large products of float32 take their operands
    with 11 binary digits, as TF32, and so a third of the work: the device "cuda:tf32:0", beside the other one on the same card."""
    return _configured(f"cuda:{'tf32:' * tf32}{choice}", memory)


def Hip(choice: int = 0, memory: Memory | None = None) -> Device:
    """The device "hip:0": the kernels of `cuda` on an AMD GPU, by ROCm's driver and its compiler HIPRTC. Nothing has run on a card yet.

    choice: the number of the card. memory: how the device takes memory from now on."""
    return _configured(f"hip:{choice}", memory)


def _configured(name: str, memory: Memory | None) -> Device:
    """The one device of a name. memory: how it takes memory from now on; None: as before."""
    if memory is not None and not isinstance(memory, Memory):
        raise InputError(
            f'memory: got {memory!r:.80}, expected a Memory, as in memory=sg.Memory("exact", limit="2 GiB")'
        )
    found = device(name)
    if memory is not None:
        found.configure(memory)
    return found


def Torch(choice: str = "") -> Device:
    """The device "torch": PyTorch's tensors, on `choice`, such as "cpu" or "cuda:0", or on the best of its devices."""
    return device(f"torch:{choice}" if choice else "torch")


def Jax(number: int | None = None) -> Device:
    """The device "jax": JAX's arrays, on one of its devices."""
    return device("jax" if number is None else f"jax:{number}")


def CuPy(number: int = 0) -> Device:
    """The device "cupy": CuPy's arrays, on a GPU."""
    return device(f"cupy:{number}")


def in_words(name: str, facts: Mapping[str, Any]) -> str:
    """A device and what it describes itself as: "wasm (wasmtime 50.0.1)"."""
    what = ", ".join(str(facts[k]) for k in ("adapter", "engine") if k in facts) or ", ".join(
        f"{k} {v}" for k, v in facts.items()
    )
    return f"{name} ({what})" if what else name
