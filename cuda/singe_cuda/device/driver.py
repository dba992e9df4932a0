"""NVRTC and NVIDIA's driver by ctypes: the only file that names their functions. No toolkit of CUDA is needed.

NVRTC is found in the package of the extra `cuda`, else where the system has it. Each call's status becomes a DeviceError. HIP's
libraries have functions of the same meaning by other names: see hip.py.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass, field
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
_OUT_OF_MEMORY: Final = 2
_FATAL: Final = frozenset((46, 214, 219, 226, 700, 702, 715, 716, 717, 718, 719, 720, 999))
"""The driver's numbers of errors after which a context can do nothing more."""


@dataclass(frozen=True)
class Library:
    """A library. title: for people. prefix: of all its functions. files: where it may be, the best first. missing: what to say if it is
    nowhere. names: those of its functions that are not the prefix and the name here."""

    title: str
    prefix: str
    files: Sequence[str]
    missing: str
    names: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    """Of a compiler: what its functions call the code for a card."""

    def __hash__(self) -> int:
        return hash(self.title)

    def function(self, name: str) -> Any:
        return getattr(_loaded(self), self.prefix + self.names.get(name, name))


@cache
def _loaded(library: Library) -> ctypes.CDLL:
    for name in library.files:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(library.missing)


# --- NVRTC -----------------------------------------------------------------------------------------------------------------


def _packed() -> list[str]:
    spec = find_spec("nvidia")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    pattern = "nvrtc64_*.dll" if sys.platform == "win32" else "libnvrtc.so.*"
    return [str(p) for folder in folders for p in sorted(folder.glob(f"*/**/{pattern}")) if ".alt." not in p.name]


@cache
def nvrtc() -> Library:
    missing = "the compiler of kernels, NVRTC, is not here: pip install 'singe[cuda]'"
    return Library("NVRTC", "nvrtc", (*_packed(), *_NVRTC_NAMES), missing, code="CUBIN")


def version(compiler: Library) -> str:
    major, minor = c_int(), c_int()
    _compiled(compiler, "Version", byref(major), byref(minor))
    return f"{major.value}.{minor.value}"


@cache
def architectures() -> tuple[int, ...]:
    """The architectures for which NVRTC makes code, such as 90, in order."""
    count = c_int()
    _compiled(nvrtc(), "GetNumSupportedArchs", byref(count))
    found = (c_int * count.value)()
    _compiled(nvrtc(), "GetSupportedArchs", found)
    return tuple(sorted(found))


def _compiled(compiler: Library, name: str, *arguments: Any) -> None:
    status = compiler.function(name)(*arguments)
    if status:
        function = compiler.function("GetErrorString")
        function.restype = c_char_p
        raise DeviceError(f"{compiler.title}: {function(status).decode()}")


def compile_text(
    text: str, name: str, options: Sequence[str], binary: bool, compiler: Library | None = None
) -> tuple[bytes, str]:
    """A text as a binary for an architecture, or as PTX; and the compiler's warnings. DeviceError with its errors. compiler: NVRTC, if
    none is named."""
    by, program = compiler or nvrtc(), c_void_p()
    _compiled(by, "CreateProgram", byref(program), text.encode(), name.encode(), 0, None, None)
    try:
        given = (c_char_p * len(options))(*(o.encode() for o in options))
        status = by.function("CompileProgram")(program, len(options), given)
        log = _read(by, "ProgramLog", program).rstrip(b"\0").decode(errors="replace").strip()
        if status:
            raise DeviceError(f"CUDA C++ does not compile: {log}" if by is nvrtc() else f"HIP does not compile: {log}")
        return _read(by, by.code if binary else "PTX", program), log
    finally:
        by.function("DestroyProgram")(byref(program))


def _read(compiler: Library, what: str, program: c_void_p) -> bytes:
    size = c_size_t()
    _compiled(compiler, f"Get{what}Size", program, byref(size))
    room = ctypes.create_string_buffer(size.value)
    _compiled(compiler, f"Get{what}", program, room)
    return room.raw


# --- the driver --------------------------------------------------------------------------------------------------------------


CUDA_DRIVER: Final = Library(
    "CUDA",
    "cu",
    ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so"),
    'no NVIDIA driver is here (libcuda): install that of your GPU, or use another device: "webgpu" takes any GPU',
)


class Driver:
    """The driver's functions by their names without `cu`: `driver.call("StreamSynchronize", stream)`."""

    def __init__(self, library: Library = CUDA_DRIVER) -> None:
        self.library: Final = library
        self._functions: Final[dict[str, Any]] = {}
        self.call("Init", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; DeviceError with its name if it fails, DeviceLost if nothing works after that."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = self.library.function(name)
        status = function(*arguments)
        if status:
            self._fail(function.__name__, status)

    def _fail(self, name: str, status: int) -> None:
        said = c_char_p()
        self.library.function("GetErrorString")(status, byref(said))
        text = f"{self.library.title.lower()}: {name}: {(said.value or b'').decode() or f'error {status}'}"
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
