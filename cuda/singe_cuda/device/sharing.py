"""Arrays of a card for other libraries, by DLPack: over the same memory, which is given back when the other library lets go of it; and
the arrays of other libraries on the same card, which are copied on the card.

The memory that another library had may still be in use on its stream when it lets go, so the card is waited for then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, Final

from singe.extension import DType, bfloat16, dtype
from singe_gpu.device.pool import GpuArray

KIND: Final = 2
"""DLPack's number of the memory of CUDA."""
CPU: Final = (1, 0)
LEGACY_STREAM: Final = 1
"""DLPack's number of the stream that all others wait for."""
_CODES: Final = {"int": 0, "uint": 1, "float": 2, "complex": 5, "bool": 6}
_NAME: Final = b"dltensor"
_USED: Final = b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p), ("kind", c_int32), ("number", c_int32), ("rank", c_int32), ("code", c_uint8), ("bits", c_uint8),
        ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("offset", c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    pass


_DELETER: Final = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_DESTRUCTOR: Final = ctypes.CFUNCTYPE(None, c_void_p)
_Managed._fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _DELETER))

_new: Any = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, _DESTRUCTOR)(("PyCapsule_New", ctypes.pythonapi))
_is: Any = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get: Any = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename: Any = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

_lent: Final[dict[int, tuple[Any, ...]]] = {}
"""What other libraries use: the address of its _Managed ↦ what must live as long."""


def _give_back(managed: Any) -> None:
    held = _lent.pop(ctypes.addressof(managed.contents), None)
    if held is not None:
        held[-1]()


def _forget(capsule: int) -> None:
    """Give back what no library took."""
    if _is(capsule, _NAME):
        _give_back(ctypes.cast(_get(capsule, _NAME), POINTER(_Managed)))


_DELETE: Final = _DELETER(_give_back)
_DESTROY: Final = _DESTRUCTOR(_forget)


class Shared:
    """An array with DLPack. wait: for the card."""

    def __init__(self, array: GpuArray, number: int, wait: Callable[[], None], host: Callable[[], Any]) -> None:
        self._array, self._number, self._wait, self._host = array, number, wait, host

    def __dlpack_device__(self) -> tuple[int, int]:
        return KIND, self._number

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:  # fmt: skip
        if dl_device == CPU:
            return self._host().__dlpack__()
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the memory of cuda:{self._number} is no memory of DLPack's device {dl_device}")
        code, bits = _numbers(self._array.dtype)
        shape = (c_int64 * len(self._array.shape))(*self._array.shape)
        piece = self._array.piece
        tensor = _Tensor(piece.buffer.address + piece.offset, KIND, self._number, len(shape), code, bits, 1, shape)
        managed = _Managed(tensor, None, _DELETE)
        self._wait()
        at = ctypes.addressof(managed)
        _lent[at] = (managed, shape, self._array, self._wait)
        return _new(at, _NAME, _DESTROY)


def _numbers(kind: DType) -> tuple[int, int]:
    """DLPack's code of a type, and its bits."""
    if kind is bfloat16:
        return 4, 16
    if kind.held or kind.kind not in _CODES:
        raise BufferError(f"elements of {kind} are not shared by DLPack: cast them before")
    return _CODES[kind.kind], 8 * kind.size


class Taken:
    """An array of another library, for as long as this lives: its address, shape and type."""

    def __init__(self, array: Any, number: int) -> None:
        if array.__dlpack_device__() != (KIND, number):
            raise BufferError(
                f"its memory is that of DLPack's device {array.__dlpack_device__()}, not of cuda:{number}"
            )
        self._capsule = array.__dlpack__(stream=LEGACY_STREAM)
        if not _is(id(self._capsule), _NAME):
            raise BufferError("it gave no capsule of DLPack")
        self._managed = ctypes.cast(_get(id(self._capsule), _NAME), POINTER(_Managed))
        _rename(self._capsule, _USED)
        found = self._managed.contents.tensor
        self.address: Final[int] = (found.data or 0) + found.offset
        self.shape: Final = tuple(found.shape[: found.rank])
        self.dtype: Final = _dtype(found.code, found.bits, found.lanes)
        self.contiguous: Final = not found.strides or _is_contiguous(self.shape, found.strides[: found.rank])

    def close(self) -> None:
        deleter = self._managed.contents.deleter
        if deleter:
            deleter(self._managed)


def _dtype(code: int, bits: int, lanes: int) -> DType:
    names = {number: name for name, number in _CODES.items()}
    if lanes == 1 and (code, bits) == (4, 16):
        return bfloat16
    if lanes != 1 or code not in names:
        raise BufferError(f"its elements are of DLPack's type {code} with {bits} bits and {lanes} lanes")
    return dtype("bool" if names[code] == "bool" else f"{names[code]}{bits}")


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True
