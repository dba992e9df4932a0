"""What the namespace can do: `__array_namespace_info__`."""

from __future__ import annotations

from typing import Any

from ..dtypes import DTYPES, DType, complex64, float32, int64
from ..runtime.device import Device
from ..runtime.devices import device_or_default
from ..runtime.devices import devices as find_devices
from ._types import NAMES, isdtype


class Info:
    """The standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        return device_or_default()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        return {"real floating": float32, "complex floating": complex64, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        return {name: DTYPES[name] for name in NAMES if kind is None or isdtype(name, kind)}

    def devices(self) -> list[Device]:
        return [found for found in find_devices().values() if isinstance(found, Device)]


def __array_namespace_info__() -> Info:
    return Info()
