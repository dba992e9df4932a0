"""Elements that lie on a device of Singe, for OrtValues that are asked for there and for outputs that stay there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..dtypes import DType, outward
from ..errors import DeviceError
from ..runtime.device import Device, DeviceValue
from ..runtime.devices import device as open_device
from ..runtime.registry import backend_names
from .settings.warned import warn_once


class PlacedTensor:
    """A tensor's elements on a device, as a session on that device takes and gives them."""

    __slots__ = ("device", "value")

    def __init__(self, device: Device, value: DeviceValue) -> None:
        self.device: Final = device
        self.value: Final = value

    @staticmethod
    def of(array: np.ndarray, device: Device) -> PlacedTensor:
        """A copy of an array's elements on a device."""
        return PlacedTensor(device, device.upload(array))

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.value.dtype

    def array(self) -> np.ndarray:
        """A copy of the elements in this process's memory."""
        return outward(self.device.download(self.value))

    def exported(self) -> Any:
        """An object with DLPack over the elements, or over a copy of them."""
        return self.device.exported(self.value)


def device_of(name: str, number: int) -> Device | None:
    """The device that one of onnxruntime's names of devices means; None where that is this process's memory. A device that is not here
    is said once, and what was asked for there is in this process's memory."""
    if name == "cpu":
        return None
    if name not in backend_names():
        warn_once(f"Singe has no device {name!r}: what is asked for there is held in this process's memory")
        return None
    try:
        return open_device(f"{name}:{number}" if number else name)
    except DeviceError as e:
        warn_once(f"the device {name!r} is not here: {e}; what is asked for there is held in this process's memory")
        return None
