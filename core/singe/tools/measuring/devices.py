"""The devices of this machine, measured: how fast each computes and moves data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ...errors import DeviceError
from ...late_dataclass import dataclass
from ...runtime.device import Device
from ...runtime.devices import Unopened, devices, in_words
from ...runtime.devices import device as open_device
from .bench import describe_peaks, machine, peaks, peaks_data


@dataclass
class MeasuredDevices:
    """What was measured of each device, or why it is not here; printed, it is a table."""

    found: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The same as data of JSON."""
        facts = {k: {"absent": str(p)} if isinstance(p, DeviceError) else peaks_data(p) for k, p in self.found.items()}
        return {"machine": machine(), "devices": facts}

    def __str__(self) -> str:
        return describe_peaks(self.found, self.lines)


def measured_devices(name: str | None, tell: Callable[[str], Any]) -> MeasuredDevices:
    """One device, or all. tell: gets what is being done."""
    made = MeasuredDevices()
    for called, one in ({name: open_device(name)} if name else worth_measuring()).items():
        if isinstance(one, DeviceError):
            made.found[called] = one
        else:
            made.found[one.name] = peaks(one, tell)
            made.lines[one.name] = in_words(one.name, one.describe())
    return made


def worth_measuring() -> dict[str, Device | DeviceError]:
    """All devices but what runs in software beside another of its backend, as Mesa's adapter beside a GPU."""
    there = {name: _opened(one) if isinstance(one, Unopened) else one for name, one in devices().items()}
    return {
        name: one
        for name, one in there.items()
        if isinstance(one, DeviceError) or ":" not in name or not one.describe().get("software")
    }


def _opened(one: Unopened) -> Device | DeviceError:
    try:
        return open_device(one.name)
    except DeviceError as e:
        return e
