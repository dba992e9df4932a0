"""NVRTC and NVIDIA's driver by ctypes: the only file that names their functions. No toolkit of CUDA is needed.

NVRTC is found in the package of the extra `cuda`, else where the system has it. Each call's status becomes a DeviceError.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from singe.extension import DeviceError, DeviceLost

LOST: Final = "the device is lost, with all that it held; start the process again"
_NVRTC_NAMES: Final = (
    ("nvrtc64_130_0.dll", "nvrtc64_120_0.dll")
    if sys.platform == "win32"
    else ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
)
_DRIVER_NAMES: Final = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
_OUT_OF_MEMORY: Final = 2
_FATAL: Final = frozenset((46, 214, 219, 226, 700, 702, 715, 716, 717, 718, 719, 720, 999))
"""The driver's numbers of errors after which a context can do nothing more."""


def _loaded(names: Sequence[str]) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


# --- NVRTC -----------------------------------------------------------------------------------------------------------------


@cache
def _nvrtc() -> ctypes.CDLL:
    spec = find_spec("nvidia")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    pattern = "nvrtc64_*.dll" if sys.platform == "win32" else "libnvrtc.so.*"
    packed = [str(p) for folder in folders for p in sorted(folder.glob(f"*/**/{pattern}")) if ".alt." not in p.name]
    found = _loaded((*packed, *_NVRTC_NAMES))
    if found is None:
        raise DeviceError("the compiler of kernels, NVRTC, is not here: pip install 'singe[cuda]'")
    return found


def nvrtc_version() -> str:
    major, minor = c_int(), c_int()
    _compiled(_nvrtc().nvrtcVersion(byref(major), byref(minor)))
    return f"{major.value}.{minor.value}"


@cache
def architectures() -> tuple[int, ...]:
    """The architectures for which NVRTC makes code, such as 90, in order."""
    count = c_int()
    _compiled(_nvrtc().nvrtcGetNumSupportedArchs(byref(count)))
    found = (c_int * count.value)()
    _compiled(_nvrtc().nvrtcGetSupportedArchs(found))
    return tuple(sorted(found))


def _compiled(status: int) -> None:
    if status:
        function = _nvrtc().nvrtcGetErrorString
        function.restype = c_char_p
        raise DeviceError(f"NVRTC: {function(status).decode()}")


def compile_text(text: str, name: str, options: Sequence[str], binary: bool) -> tuple[bytes, str]:
    """A text as a binary for an architecture, or as PTX; and the compiler's warnings. DeviceError with its errors."""
    lib, program = _nvrtc(), c_void_p()
    _compiled(lib.nvrtcCreateProgram(byref(program), text.encode(), name.encode(), 0, None, None))
    try:
        given = (c_char_p * len(options))(*(o.encode() for o in options))
        status = lib.nvrtcCompileProgram(program, len(options), given)
        log = (
            _read(lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog, program)
            .rstrip(b"\0")
            .decode(errors="replace")
            .strip()
        )
        if status:
            raise DeviceError(f"CUDA C++ does not compile: {log}")
        kind = "CUBIN" if binary else "PTX"
        return _read(getattr(lib, f"nvrtcGet{kind}Size"), getattr(lib, f"nvrtcGet{kind}"), program), log
    finally:
        lib.nvrtcDestroyProgram(byref(program))


def _read(size_of: Any, read: Any, program: c_void_p) -> bytes:
    size = c_size_t()
    _compiled(size_of(program, byref(size)))
    room = ctypes.create_string_buffer(size.value)
    _compiled(read(program, room))
    return room.raw


# --- the driver --------------------------------------------------------------------------------------------------------------


class Driver:
    """The driver's functions by their names without `cu`: `driver.call("StreamSynchronize", stream)`."""

    def __init__(self) -> None:
        found = _loaded(_DRIVER_NAMES)
        if found is None:
            raise DeviceError(
                'no NVIDIA driver is here (libcuda): install that of your GPU, or use another device: "webgpu" takes any GPU'
            )
        self._lib: Final = found
        self._functions: Final[dict[str, Any]] = {}
        self.call("Init", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; DeviceError with its name if it fails, DeviceLost if nothing works after that."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._lib, f"cu{name}")
        status = function(*arguments)
        if status:
            self._fail(name, status)

    def _fail(self, name: str, status: int) -> None:
        said = c_char_p()
        self._lib.cuGetErrorString(status, byref(said))
        text = f"cuda: cu{name}: {(said.value or b'').decode() or f'error {status}'}"
        if status in _FATAL:
            raise DeviceLost(f"{text}; {LOST}")
        raise DeviceError(
            f"{text}; free memory, or give smaller inputs or batches" if status == _OUT_OF_MEMORY else text
        )

    def number(self, name: str, *arguments: Any, kind: Any = c_int) -> int:
        """What a function writes to its first argument."""
        found = kind()
        self.call(name, byref(found), *arguments)
        return int(found.value or 0)
