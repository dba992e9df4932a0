"""IOBinding: inputs and outputs of a session bound to memory before a run.

A run takes the inputs that lie on its device as they are, and copies others there; outputs that are bound to that device stay on it.
Addresses are of this process's memory: one on another device is refused, with what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import outward, own
from ..errors import SingeError
from ..runtime.device import Device
from .descriptions import element_of
from .errors import ValueKindError
from .placed import PlacedTensor, device_of
from .values import OrtDevice, OrtValue, memory_at

if TYPE_CHECKING:
    from .options import RunOptions
    from .session import InferenceSession


class IOBinding:
    """Inputs and outputs of a session, bound to memory; see `InferenceSession.io_binding`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | Device | None] = {}
        """Where the outputs go: into a value, to a device, or, with None, into this process's memory."""
        self._found: list[OrtValue] = []

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an input to an array, whose elements are read by each run."""
        self._known(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            raise ValueKindError(
                f"Unable to create OrtValue from the given python object: input {name!r}: got a {type(arr_on_cpu).__name__}, expected an array"
            )
        self._inputs[name] = OrtValue._of(arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Bind an input to memory at an address."""
        self._known(name)
        self._inputs[name] = OrtValue._of(
            _at(name, OrtDevice.make(device_type, device_id), element_type, shape, buffer_ptr)
        )

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to an OrtValue."""
        self._known(name)
        self._inputs[name] = ortvalue

    def bind_output(
        self, name: str, device_type: str | OrtDevice = "cpu", device_id: int = 0, element_type: Any = None,
        shape: Sequence[int] | None = None, buffer_ptr: int | None = None,
    ) -> None:  # fmt: skip
        """Ask for an output on a device; with an address, it is written there."""
        place = device_type if isinstance(device_type, OrtDevice) else OrtDevice.make(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = device_of(place.name, place.device_id())
        else:
            self._outputs[name] = OrtValue._of(_at(name, place, element_type, shape or (), buffer_ptr))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Ask for an output, which is written into an OrtValue."""
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Wait for copies of inputs: runs do."""

    def synchronize_outputs(self) -> None:
        """Wait for outputs: runs do."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the latest run, in the order in which they were bound."""
        return list(self._found)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """`get_outputs`."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the latest run as arrays."""
        return [value.numpy() if value.is_tensor() else value._value for value in self._found]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._outputs.clear()
        self._found = []

    def _known(self, name: str) -> None:
        names = self._session._specs
        if name not in names:
            raise ValueKindError(
                f"Failed to find NodeArg with name: {name} in the inputs, which are {', '.join(names) or 'none'}"
            )

    def _run(self, run_options: RunOptions | None) -> None:
        """Run, and write the outputs to where they are bound."""
        if not self._outputs:
            raise ValueKindError("Error in execution: At least one output should be requested: bind_output(name)")
        on = self._session.device
        places = {name: _place_of(bound) for name, bound in self._outputs.items()}
        kept = [name for name, place in places.items() if place is on]
        try:
            values = self._session._run(self._inputs, list(places), run_options, kept)
        except SingeError as e:
            raise ValueKindError(f"Error in execution: {e}") from e
        found = {name: _moved(values[name], place) for name, place in places.items()}
        self._found = [
            _written(name, bound, found[name]) if isinstance(bound, OrtValue) else OrtValue._of(found[name])
            for name, bound in self._outputs.items()
        ]


def _place_of(bound: OrtValue | Device | None) -> Device | None:
    """The device to which an output goes; None: this process's memory."""
    if not isinstance(bound, OrtValue):
        return bound
    return bound._value.device if isinstance(bound._value, PlacedTensor) else None


def _moved(value: Any, place: Device | None) -> Any:
    """An output where it is wanted."""
    return PlacedTensor.of(own(value), place) if place is not None and isinstance(value, np.ndarray) else value


def _at(name: str, on: OrtDevice, element_type: Any, shape: Sequence[int], address: int) -> np.ndarray:
    """The memory at an address of this process as an array."""
    if on.device_type():
        raise ValueKindError(
            f"{name!r}: got an address on {on.name}, expected one of this process's memory: bind an array, or an OrtValue of "
            "OrtValue.from_dlpack(tensor.cpu())"
        )
    if element_type is None:
        raise ValueKindError(f"{name!r}: got an address without element_type, expected a type such as numpy.float32")
    return outward(memory_at(address, shape, element_of(element_type)))


def _written(name: str, bound: OrtValue, value: Any) -> OrtValue:
    """The OrtValue to which an output is bound, with the output in it."""
    held, tensors = bound._value, (np.ndarray, PlacedTensor)
    if not isinstance(held, tensors) or not isinstance(value, tensors):
        bound._value = value
        return bound
    if bound.element_type() != (found := OrtValue._of(value)).element_type():
        raise ValueKindError(
            f"Error in execution: Unexpected output data type. Actual: {bound.data_type()}, expected: {found.data_type()} for {name!r}"
        )
    if held.shape != value.shape:
        raise ValueKindError(
            f"Error in execution: the output {name!r} has the shape {value.shape}, and is bound to memory of the shape {held.shape}"
        )
    if isinstance(held, PlacedTensor):
        bound._value = value
    else:
        held[...] = value
    return bound
