"""Opens the backends "cuda", kernels by NVRTC on an NVIDIA GPU, and "hip", kernels by HIPRTC on one of AMD."""

from __future__ import annotations

from typing import Final

from singe.extension import Backend, BackendFactory, DeviceError

TF32: Final = "tf32"


def _open(choice: str = "0") -> Backend:
    from .device.runtime import CudaBackend  # noqa: PLC0415

    precision, _, number = choice.rpartition(":")
    if not number.isdecimal() or precision not in ("", TF32):
        raise DeviceError(
            f"no device 'cuda:{choice}': expected the number of a card, as in 'cuda:0', or in 'cuda:{TF32}:0' for faster products of fewer digits"
        )
    return CudaBackend(int(number), tf32=precision == TF32)


def _list_choices() -> list[str]:
    from .device.driver import Driver  # noqa: PLC0415

    return [str(number) for number in range(Driver().number("DeviceGetCount"))]


open_backend = BackendFactory(
    _open, target_name="cuda", preference=40, choices="the number of a card, such as 0", list_choices=_list_choices
)


def _open_hip(choice: str = "0") -> Backend:
    from .device.hip import HipBackend  # noqa: PLC0415

    if not choice.isdecimal():
        raise DeviceError(f"no device 'hip:{choice}': expected the number of a card, as in 'hip:0'")
    return HipBackend(int(choice))


def _list_hip() -> list[str]:
    from .device.driver import Driver  # noqa: PLC0415
    from .device.hip import HIP_DRIVER  # noqa: PLC0415

    return [str(number) for number in range(Driver(HIP_DRIVER).number("DeviceGetCount"))]


open_hip = BackendFactory(
    _open_hip, target_name="hip", choices="the number of a card, such as 0", list_choices=_list_hip
)
"""Never chosen by "auto", since nothing has run on a card."""
