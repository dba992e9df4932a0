"""Functions of tensors and Modules whose tensors are on several devices: their arguments on devices that record what is computed, and
their results back on those of the caller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeGuard

from ..awaitables import resolve
from ..runtime.decorators import RecordedDevice, Recorder
from ..runtime.device import Device
from ..tensors.tensor import Tensor
from ._module import with_parts


class OnSeveral:
    """The tensors of a function on devices that record it, and those that it gives on the devices of its caller."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        """tensors: the function's; of one in a function that is recorded, what is computed becomes part of that."""
        outer = next((x.device.recorder for x in tensors if isinstance(x.device, RecordedDevice)), None)
        self._recorder: Final = Recorder(outer)
        self._placed: Final[
            dict[int, tuple[Tensor, Tensor]]
        ] = {}  # id of a value ↦ the tensor (keeps it in use), and its copy
        self._originals: Final[dict[int, Tensor]] = {}

    def around(self, device: Device) -> RecordedDevice:
        """The device that records what is computed on another."""
        return self._recorder.around(device)

    def placed(self, x: Tensor, watched: bool = False) -> Tensor:
        """A tensor on the device around its own; a second time it is the same. watched: for its gradient."""
        if id(x._value) not in self._placed:
            on = self.around(x.device)
            value = resolve(on.receive(x._value, x.device), "tensors of this device")
            made = Tensor(on, on.watched(value) if watched else value)
            self._placed[id(x._value)] = x, made
            self._originals[id(made._value)] = x
        return self._placed[id(x._value)][1]

    def copied(self, arguments: Any) -> Any:
        """Arguments with their tensors on these devices."""
        return with_parts(arguments, lambda x: self.placed(x) if isinstance(x, Tensor) else x, shared=True)

    def given_back(self, result: Any) -> Any:
        """A result with its tensors on the callers' devices; those that were placed are the originals. What is pending on a device
        is computed by one Program."""
        pending: dict[RecordedDevice, dict[int, Any]] = {}

        def seen(x: Any) -> Any:
            if isinstance(x, Tensor) and self._is_own(x.device) and id(x._value) not in self._originals:
                pending.setdefault(x.device, {})[id(x._value)] = x._value
            return x

        with_parts(result, seen)
        found = dict(self._originals)
        for on, values in pending.items():
            given = on.given_back([*values.values()])
            found |= {k: Tensor(on.given, value) for k, value in zip(values, given, strict=True)}
        return with_parts(result, lambda x: found.get(id(x._value), x) if isinstance(x, Tensor) else x, shared=True)

    def _is_own(self, device: Device) -> TypeGuard[RecordedDevice]:
        return isinstance(device, RecordedDevice) and device.recorder is self._recorder
