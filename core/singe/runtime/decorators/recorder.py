"""Recorder: the devices on which a function is differentiated, or is run lazily, whose tensors are on several.

Each device that takes part has a RecordedDevice around it. What the function moves to a device goes to the RecordedDevice around that, so
that the function may name the devices that its caller knows. Its tensors from elsewhere are taken over where they are on the same
device; others are refused, as nothing moves by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...awaitables import resolve
from ..device import Device
from .autodiff import Autodiff, RecordedValue
from .fusion import Fusion

NO_WAIT: Final = "a function whose tensors stay on one device"


class Recorder:
    """Makes the RecordedDevices, one around each device. outer: that of the function in which this one is called, if it has one."""

    def __init__(self, outer: Recorder | None = None) -> None:
        self._outer: Final = outer
        self.precedence: Final[int] = 1 if outer is None else outer.precedence + 1
        self._devices: Final[dict[Device, RecordedDevice]] = {}

    def around(self, device: Device) -> RecordedDevice:
        """The RecordedDevice around a device, or around another decorator of the same."""
        found = self._devices.get(device.eager)
        if found is None:
            given = device if self._outer is None else self._outer.around(device)
            found = self._devices[device.eager] = RecordedDevice(given, self)
        return found


class RecordedDevice(Autodiff):
    """An Autodiff around a lazy device."""

    def __init__(self, given: Device, recorder: Recorder) -> None:
        super().__init__(Fusion(given) if given.eager is given else given)
        self.given: Final = given
        self.recorder: Final = recorder
        self.precedence = recorder.precedence

    @property
    def label(self) -> str:
        return self.given.label

    @property
    def written(self) -> str:
        return self.given.written

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_given, (self.given,)

    def destination(self, target: Device) -> Device:
        return self.recorder.around(target)

    def import_value(self, value: Any, source: Device) -> RecordedValue:
        if source.eager is self.eager:
            return resolve(self.receive(value, source), NO_WAIT)
        return super().import_value(value, source)

    def given_back(self, values: Sequence[RecordedValue]) -> list[Any]:
        """Values as those of the device that was given; what is pending is computed together."""
        held = [v.held for v in values]
        return self.inner.computed(held) if isinstance(self.inner, Fusion) and self.inner is not self.given else held


def _as_given(device: Device) -> Device:
    """The function that unpickling calls: the function whose tensors are recorded has ended."""
    return device
