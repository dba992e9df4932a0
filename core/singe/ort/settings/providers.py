"""Execution providers of onnxruntime as devices of Singe.

A session takes the first provider of its list whose device opens. A table says which device a provider means; the provider
"SingeExecutionProvider" names one itself, as in `("SingeExecutionProvider", {"device": "wasm"})`. The variable SINGE_DEVICE names the
device of all others. What cannot be had is said once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...awaitables import IN_PAGE
from ...errors import DeviceError, InputError
from ...runtime.device import Device
from ...runtime.devices import DEFAULT, VARIABLE
from ...runtime.devices import device as open_device
from .warned import warn_once

CPU: Final = "CPUExecutionProvider"
OWN: Final = "SingeExecutionProvider"
_GPUS: Final = ("CUDAExecutionProvider", "WebGpuExecutionProvider")
"""The providers of GPUs that Singe has a device for; it has the first part of the provider's name."""
ALL: Final = (
    "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider", "DnnlExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider",
    "VSINPUExecutionProvider", "JsExecutionProvider", "CoreMLExecutionProvider", "ACLExecutionProvider", "DmlExecutionProvider",
    "RknpuExecutionProvider", "WebNNExecutionProvider", "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider",
    "AzureExecutionProvider", CPU, OWN,
)  # fmt: skip
"""The providers that onnxruntime knows, and Singe's own."""
_SLOW: Final = 'the device is "numpy", since the fastest CPU device must be awaited in a page: write await singe.device_async("cpu") before'
ProviderOptions = dict[str, Any]


class Provider(NamedTuple):
    """A provider that a session uses, its options, and the device that it means."""

    name: str
    options: ProviderOptions
    device: Device


def get_available_providers() -> list[str]:
    """The providers that a session can use here: that of the GPU that Singe would choose, if there is one, the CPU's, and Singe's own.
    Which GPU is here is found out by the first call, unless SINGE_DEVICE names a device."""
    best = open_device("auto").name.partition(":")[0]
    return [*(name for name in _GPUS if _kind(name) == best), CPU, OWN]


def _kind(provider: str) -> str:
    """The name of Singe's device for a provider of a GPU."""
    return provider.removesuffix("ExecutionProvider").lower()


def get_all_providers() -> list[str]:
    """The providers that have a name, whether they are here or not."""
    return list(ALL)


def get_device() -> str:
    """ "GPU" if there is one, otherwise "CPU"."""
    return "GPU" if set(get_available_providers()) & set(_GPUS) else "CPU"


def listed(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None, options: Sequence[Mapping[str, Any]] | None
) -> dict[str, ProviderOptions]:
    """The providers of a session's arguments in their order ↦ the options of each; those with unknown names are left out, and said."""
    if isinstance(providers, str):
        raise InputError(f"providers: got the name {providers!r:.80}, expected a list of names: [{providers!r:.80}]")
    given = list(providers or ())
    if options is not None and providers is not None and len(given) != len(options):
        raise InputError(
            f"provider_options: got {len(options)}, expected as many as providers, {len(given)}: one dict for each"
        )
    found: dict[str, ProviderOptions] = {}
    for place, one in enumerate(given):
        name, own = (
            (one, {}) if isinstance(one, str) else one if isinstance(one, tuple) and len(one) == 2 else (None, {})
        )
        if not isinstance(name, str) or not isinstance(own, Mapping):
            raise InputError(
                f"providers: got {one!r:.80}, expected a name, such as {CPU!r}, or a name and a dict of options, such as "
                f"({OWN!r}, {{'device': 'wasm'}})"
            )
        if name not in ALL:
            warn_once(f"there is no provider {name!r:.80}; get_available_providers() lists those that are here")
            continue
        own = dict(options[place]) if options and not own else dict(own)
        found.setdefault(name, own)
    return found


def chosen(providers: Mapping[str, ProviderOptions]) -> Provider:
    """The first of these providers whose device is here, with that device; the CPU if there is none."""
    for name, options in providers.items():
        found = _device(name, options)
        if found is not None:
            return Provider(name, options, found)
    found = _device(CPU, {})
    assert found is not None
    return Provider(CPU, {}, found)


def _device(name: str, options: ProviderOptions) -> Device | None:
    own = options.get("device") if name == OWN else None
    if own is not None:
        return open_device(own)
    if os.environ.get(VARIABLE):
        return open_device("auto")
    if name in (OWN, CPU):
        found = open_device("auto" if name == OWN else "cpu")
        if IN_PAGE and found.name == DEFAULT:
            warn_once(_SLOW)
        return found
    if name not in _GPUS:
        warn_once(f"Specified provider {name!r} is not here; the next of the list is used, and at last the CPU")
        return None
    number = options.get("device_id")
    try:
        return open_device(_kind(name) if number in (None, 0, "0") else f"{_kind(name)}:{number}")
    except DeviceError as e:
        warn_once(f"Specified provider {name!r} is not here: {e}; the next of the list is used, and at last the CPU")
        return None
