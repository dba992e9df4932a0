"""Values and devices by onnxruntime's names: OrtValue, OrtDevice, OrtMemoryInfo.

An OrtValue holds its elements in this process's memory, as an array that `numpy()` shares, or on a device of Singe, where a session on
that device takes them without a copy. One that is asked for on a device that is not here is in memory, and a warning says so once.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..dtypes import DType, dtype, outward, own, string
from ..errors import DTypeError, InputError
from ..late_dataclass import dataclass
from ..runtime.registry import backend_names
from .descriptions import CODES, element_of, tensor_type
from .errors import ValueKindError
from .placed import PlacedTensor, device_of
from .settings.enums import OrtAllocatorType, OrtDeviceVendorId, OrtMemType

_TYPES: Final = {
    "cpu": (0, OrtDeviceVendorId.NONE),
    "cuda": (1, OrtDeviceVendorId.NVIDIA),
    "gpu": (1, OrtDeviceVendorId.NONE),
    "webgpu": (1, OrtDeviceVendorId.NONE),
    "dml": (1, OrtDeviceVendorId.MICROSOFT),
    "npu": (3, OrtDeviceVendorId.NONE),
    "cann": (3, OrtDeviceVendorId.HUAWEI),
}
"""onnxruntime's names of devices ↦ their number and their vendor; those of Singe's other devices are names, too."""


class OrtDevice:
    """A device's type and number: `OrtDevice.make("cuda", 0)`, or, as onnxruntime's inner class is called,
    `OrtDevice(OrtDevice.cuda(), OrtDevice.default_memory(), 0)`."""

    def __init__(self, name: str, memory: int = 0, device_id: int = 0, vendor_id: int = -1) -> None:
        """memory: of the kinds of onnxruntime, Singe's devices have the default one."""
        known = dict.fromkeys((*_TYPES, *backend_names()))
        if not isinstance(name, str) or name.lower() not in known:
            raise InputError(f"Unsupported device type: {name!r:.40}; expected one of {', '.join(known)}")
        self.name: Final = name.lower()
        self._id = int(device_id)
        self._type, vendor = _TYPES.get(self.name, _TYPES["cpu"])
        self._vendor = int(vendor) if vendor_id < 0 else vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """A device by its name: "cpu", "cuda", "webgpu"."""
        return OrtDevice(ort_device_name, 0, device_id, vendor_id)

    @staticmethod
    def cpu() -> str:
        """What makes a device of this process's memory."""
        return "cpu"

    @staticmethod
    def cuda() -> str:
        """What makes a device of a GPU of CUDA."""
        return "cuda"

    @staticmethod
    def webgpu() -> str:
        """What makes a device of a GPU of WebGPU."""
        return "webgpu"

    @staticmethod
    def dml() -> str:
        """What makes a device of DirectML, which Singe lacks."""
        return "dml"

    @staticmethod
    def default_memory() -> int:
        """The kind of a device's memory: 0, the default."""
        return 0

    def device_id(self) -> int:
        """Its number among devices of its type."""
        return self._id

    def device_type(self) -> int:
        """The number of its type: 0 is the CPU."""
        return self._type

    def device_vendor_id(self) -> int:
        """The PCI number of its vendor."""
        return self._vendor

    def device_mem_type(self) -> int:
        """The kind of its memory: 0, the default."""
        return 0


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Where memory lies."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType


class OrtValue:
    """A value of a model: a tensor, a list of them, a dict, or None, an optional that holds nothing."""

    def __init__(self, ortvalue: OrtValue) -> None:
        if not isinstance(ortvalue, OrtValue):
            raise InputError(
                f"OrtValue: got {ortvalue!r:.80}, expected an OrtValue; OrtValue.ortvalue_from_numpy(array) makes one of an array"
            )
        self._value: Any = ortvalue._value

    @classmethod
    def _of(cls, value: Any) -> OrtValue:
        """The OrtValue that holds this array (of a type of callers), PlacedTensor, list, dict or None."""
        made = cls.__new__(cls)
        made._value = value
        return made

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """An OrtValue over the memory of an array, or on a device with a copy of it."""
        if not isinstance(numpy_obj, np.ndarray) or dtype_of(numpy_obj) is None:
            given = numpy_obj.dtype if isinstance(numpy_obj, np.ndarray) else type(numpy_obj).__name__
            raise ValueKindError(f"ortvalue_from_numpy: got {given}, expected an array of numbers")
        return cls._on(
            device_type if isinstance(device_type, OrtDevice) else OrtDevice.make(device_type, device_id, vendor_id),
            np.ascontiguousarray(numpy_obj) if numpy_obj.ndim else numpy_obj,
        )

    @classmethod
    def _on(cls, place: OrtDevice, array: np.ndarray) -> OrtValue:
        """The OrtValue of an array on a device."""
        device = device_of(place.name, place.device_id())
        return cls._of(array if device is None else PlacedTensor.of(own(array), device))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """An OrtValue over the memory of an array, whose bits are elements of this type."""
        kind = element_of(onnx_element_type)
        if not isinstance(data, np.ndarray) or data.dtype.itemsize != kind.size:
            raise ValueKindError(
                f"ortvalue_from_numpy_with_onnx_type: got {getattr(data, 'dtype', type(data).__name__)}, expected an array with elements of "
                f"{kind.size} bytes, for {kind}"
            )
        return cls._of(outward(np.ascontiguousarray(data).view(kind.numpy)))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:  # fmt: skip
        """An OrtValue of zeros."""
        kind = element_of(element_type)
        place = OrtDevice.make(device_type if memory_info is None else memory_info.name, device_id, vendor_id)
        return cls._on(place, outward(np.zeros(tuple(shape), kind.numpy)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """An OrtValue over the memory of what implements DLPack, or of a capsule."""
        if not hasattr(data, "__dlpack__"):
            if type(data).__name__ != "PyCapsule":
                raise DTypeError(f"from_dlpack: got {data!r:.80}, expected an object with __dlpack__, or a capsule")
            data = _Capsule(data)
        return cls._of(np.from_dlpack(data))

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def _tensor(self, what: str) -> np.ndarray | PlacedTensor:
        if not isinstance(self._value, (np.ndarray, PlacedTensor)):
            raise ValueKindError(
                f"{what}: the OrtValue holds a {type(self._value).__name__}, expected a tensor; ask is_tensor() before"
            )
        return self._value

    def numpy(self) -> np.ndarray:
        """The tensor as an array over the same memory; of one on a device, a copy."""
        found = self._tensor("numpy")
        return found.array() if isinstance(found, PlacedTensor) else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy) if copy else np.asarray(self.numpy(), dtype=dtype)

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        value = self._tensor("__dlpack__")
        return value.exported().__dlpack__(stream=stream) if isinstance(value, PlacedTensor) else value.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        value = self._tensor("__dlpack_device__")
        return value.exported().__dlpack_device__() if isinstance(value, PlacedTensor) else (1, 0)

    def data_ptr(self) -> int:
        """The address of the first element."""
        value = self._tensor("data_ptr")
        if isinstance(value, PlacedTensor):
            raise ValueKindError(
                f"data_ptr: the elements are on {value.device.name}, which tells no address; from_dlpack of another library takes the "
                "OrtValue, and numpy() copies it"
            )
        return value.ctypes.data

    def device_name(self) -> str:
        """Where the elements are: "cpu", "cuda", or another device of Singe."""
        return self._value.device.name.partition(":")[0] if isinstance(self._value, PlacedTensor) else "cpu"

    def shape(self) -> list[int]:
        """The tensor's shape."""
        return list(self._tensor("shape").shape)

    def data_type(self) -> str:
        """The type, as `tensor(float)`."""
        if isinstance(self._value, list):
            return f"seq({tensor_type(_kind(self._value[0]).name) if self._value else 'tensor(float)'})"
        return tensor_type(_kind(self._tensor("data_type")).name)

    def element_type(self) -> int:
        """ONNX's number of the type of its elements."""
        return CODES[_kind(self._tensor("element_type")).name]

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape()) * _kind(self._tensor("tensor_size_in_bytes")).size

    def has_value(self) -> bool:
        """Whether it holds something: False for an optional that holds nothing."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._value, (np.ndarray, PlacedTensor))

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor: never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._value, list)

    def update_inplace(self, data: np.ndarray | OrtValue) -> None:
        """Write the elements of an array, or of another OrtValue, into its memory."""
        given = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(given, np.ndarray):
            raise DTypeError(f"update_inplace: got a {type(data).__name__}, expected an array or an OrtValue")
        held = self._tensor("update_inplace")
        if given.size != math.prod(held.shape):
            raise ValueKindError(
                f"update_inplace: got {given.size} elements of shape {given.shape}, expected {math.prod(held.shape)}, of shape {held.shape}"
            )
        if _kind(given) is not _kind(held):
            raise ValueKindError(f"update_inplace: got elements of {given.dtype}, expected {_kind(held)}")
        if isinstance(held, PlacedTensor):
            self._value = PlacedTensor.of(own(given).reshape(held.shape), held.device)
            return
        if not held.flags.writeable:
            raise ValueKindError(
                "update_inplace: the OrtValue is over memory that cannot be written; make it of a copy"
            )
        held[...] = given.reshape(held.shape)


class _Capsule:
    """A DLPack capsule as an object that gives it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def dtype_of(array: np.ndarray) -> DType | None:
    """The element type of an array of a caller; None if it is of objects, strings or of a type that ONNX lacks."""
    try:
        found = dtype(own(array).dtype)
    except DTypeError:
        return None
    return None if found is string else found


def _kind(held: np.ndarray | PlacedTensor) -> DType:
    return held.dtype if isinstance(held, PlacedTensor) else dtype_of(held) or string


def memory_at(address: int, shape: Sequence[int], kind: DType) -> np.ndarray:
    """The memory at an address of this process as an array; the caller says that it is there, and stays."""
    bytes_there = (ctypes.c_uint8 * (math.prod(shape) * kind.size)).from_address(address)
    return np.frombuffer(memoryview(bytes_there), np.uint8).view(kind.numpy).reshape(tuple(shape))


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copy the elements of each value into the one at the same place of another list."""
    if len(src) != len(dst):
        raise ValueKindError(f"copy_tensors: got {len(src)} sources and {len(dst)} destinations, expected as many")
    for a, b in zip(src, dst, strict=True):
        b.update_inplace(a)
