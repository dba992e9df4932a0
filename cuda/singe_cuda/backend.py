"""Opens the backend "cuda": kernels by NVRTC on an NVIDIA GPU."""

from __future__ import annotations

from singe.extension import Backend, BackendFactory, DeviceError


def _open(choice: str = "0") -> Backend:
    from .device.runtime import CudaBackend  # noqa: PLC0415

    if not choice.isdecimal():
        raise DeviceError(f"no device 'cuda:{choice}': expected the number of a card, as in 'cuda:0'")
    return CudaBackend(int(choice))


def _list_choices() -> list[str]:
    from .device.driver import Driver  # noqa: PLC0415

    return [str(number) for number in range(Driver().number("DeviceGetCount"))]


open_backend = BackendFactory(
    _open, target_name="cuda", preference=40, choices="the number of a card, such as 0", list_choices=_list_choices
)
