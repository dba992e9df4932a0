"""wasmtime's library, called through its C interface.

The modules of the Python package wasmtime declare 600 functions and 300 types when they are imported, which takes 20 to 28 ms, as much as all
else that a Program needs that was compiled before. Declared here are the functions that native.py needs. Their declarations are those of the
versions in CHECKED; those of another version are compared with the package's own, and a difference is refused.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from weakref import finalize

from singe.extension import DeviceError, version_of

CHECKED: Final = frozenset({"50"})
"""Major versions of wasmtime whose declarations are known to be these."""
_ENDINGS: Final = (".so", ".dylib", ".dll")
"""How the names of libraries end."""
TYPES: Final[dict[str, Any]] = {
    "p": ctypes.c_void_p, "n": ctypes.c_size_t, "l": ctypes.c_uint64, "c": ctypes.c_uint8, "b": ctypes.c_bool,
}  # fmt: skip
"""A letter of FUNCTIONS ↦ the type; p is a pointer to anything."""
FUNCTIONS: Final = {
    "wasm_byte_vec_delete": " p",
    "wasm_config_new": "p ",
    "wasm_engine_delete": " p",
    "wasm_engine_new_with_config": "p p",
    "wasm_functype_delete": " p",
    "wasm_functype_params": "p p",
    "wasm_functype_results": "p p",
    "wasm_memorytype_delete": " p",
    "wasm_trap_delete": " p",
    "wasm_trap_message": " pp",
    "wasm_valtype_kind": "c p",
    "wasmtime_config_cranelift_opt_level_set": " pc",
    "wasmtime_config_epoch_interruption_set": " pb",
    "wasmtime_config_shared_memory_set": " pb",
    "wasmtime_config_wasm_relaxed_simd_set": " pb",
    "wasmtime_context_set_epoch_deadline": " pl",
    "wasmtime_engine_increment_epoch": " p",
    "wasmtime_error_delete": " p",
    "wasmtime_error_message": " pp",
    "wasmtime_func_call_unchecked": "p pppnp",
    "wasmtime_func_type": "p pp",
    "wasmtime_instance_export_get": "b pppnp",
    "wasmtime_instance_new": "p pppnpp",
    "wasmtime_memorytype_new": "p lblbbcp",
    "wasmtime_module_delete": " p",
    "wasmtime_module_deserialize": "p ppnp",
    "wasmtime_module_new": "p ppnp",
    "wasmtime_module_serialize": "p pp",
    "wasmtime_sharedmemory_data": "p p",
    "wasmtime_sharedmemory_data_size": "n p",
    "wasmtime_sharedmemory_delete": " p",
    "wasmtime_sharedmemory_grow": "p plp",
    "wasmtime_sharedmemory_new": "p ppp",
    "wasmtime_store_context": "p p",
    "wasmtime_store_delete": " p",
    "wasmtime_store_new": "p ppp",
}
"""A function ↦ the letters of its result, if it has one, and of its parameters."""
VALUE_BYTES: Final = 16
"""Bytes of an argument or result of a function."""
_VALUE_WORDS: Final = VALUE_BYTES // 4
_OPTIMISED: Final = 1  # WASMTIME_OPT_LEVEL_SPEED
_FUNCTION: Final = 0  # WASMTIME_EXTERN_FUNC
_SHARED_MEMORY: Final = 4  # WASMTIME_EXTERN_SHAREDMEMORY
_INT32: Final = 0  # WASM_I32
_PAGE_BITS: Final = 16
_MODULE_HEAD: Final = 8
"""The bytes of a module before its first section."""
_IMPORTS: Final = 2
"""The number of the section of imports."""
_MEMORY: Final = b"\x01\x03env\x06memory\x02"
"""One import, a memory; a byte of flags follows, and the pages that it has at least."""
_UNSHARED: Final = b"\x00"
_SHARED: Final = b"\x03"
_MOST_PAGES: Final = b"\x80\x80\x04"
"""65,536, the most that a shared memory may have."""


class Bytes(ctypes.Structure):
    """wasm_byte_vec_t, and the same of pointers."""

    _fields_ = (("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class WasmHandle(ctypes.Structure):
    """wasmtime_func_t, wasmtime_instance_t or a pointer to a memory: of at most 24 bytes, which only wasmtime reads."""

    _fields_ = (("words", ctypes.c_uint64 * 3),)


class Extern(ctypes.Structure):
    """wasmtime_extern_t: what a module exports or is given."""

    _fields_ = (("kind", ctypes.c_uint8), ("of", WasmHandle))


class WasmtimeError(Exception):
    """What wasmtime refuses, or the trap in which a function ended."""


@cache
def wasmtime_version() -> str:
    return version_of("wasmtime")


@cache
def library() -> Any:
    """The library, with its functions declared."""
    path, version = _path(), wasmtime_version()
    if version.partition(".")[0] not in CHECKED and (other := differences(import_module("wasmtime._bindings"))):
        raise DeviceError(
            f"wasm: wasmtime {version} has another C interface than Singe knows ({', '.join(other)}); install wasmtime "
            f"{' or '.join(sorted(CHECKED))}"
        )
    made = ctypes.CDLL(path)
    for name, letters in FUNCTIONS.items():
        result, _, parameters = letters.partition(" ")
        function = getattr(made, name)
        function.restype = TYPES[result] if result else None
        function.argtypes = [TYPES[p] for p in parameters]
    return made


@cache
def _madvise() -> Any:
    """The system's function, which only systems with advice on the size of pages are asked for."""
    made = ctypes.CDLL(None).madvise
    made.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return made


def _path() -> str:
    """Where the package wasmtime has its library, which is that of this machine."""
    found = find_spec("wasmtime")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'wasmtime'", name="wasmtime")
    folder = found.submodule_search_locations[0]
    with os.scandir(folder) as inside:
        places = [place.path for place in inside if place.is_dir()]
    paths = [os.path.join(place, name) for place in places for name in os.listdir(place) if "wasmtime." in name]
    libraries = [path for path in paths if path.endswith(_ENDINGS)]
    if len(libraries) != 1:
        raise DeviceError(
            f"wasm: the package wasmtime in {folder} has {len(libraries)} libraries, expected one; install it again"
        )
    return libraries[0]


def differences(bindings: Any, functions: Mapping[str, str] = FUNCTIONS) -> list[str]:
    """The names that the package's own bindings declare otherwise than this file, or not at all."""
    sizes = {
        "wasm_byte_vec_t": ctypes.sizeof(Bytes),
        "wasm_valtype_vec_t": ctypes.sizeof(Bytes),
        "wasmtime_extern_t": ctypes.sizeof(Extern),
        "wasmtime_val_raw_t": VALUE_BYTES,
    }
    within = ("wasmtime_func_t", "wasmtime_instance_t")
    own: dict[str, Any] = {name: getattr(bindings, name, ctypes.c_uint8) for name in (*sizes, *within)}
    found = [name for name, size in sizes.items() if ctypes.sizeof(own[name]) != size]
    found += [name for name in within if ctypes.sizeof(own[name]) not in (16, 24)]
    extern = own["wasmtime_extern_t"]
    if [getattr(extern, part, None) and getattr(extern, part).offset for part in ("kind", "of")] != [0, 8]:
        found.append("wasmtime_extern_t")
    for name, letters in functions.items():
        result, _, parameters = letters.partition(" ")
        function = getattr(bindings, f"_{name}", None)
        declared = None if function is None else [*map(_form, (function.restype, *function.argtypes))]
        if declared != [_form(TYPES[result] if result else None), *(_form(TYPES[p]) for p in parameters)]:
            found.append(name)
    return found


def _form(kind: Any) -> str:
    """What matters of a type to who calls a function with it."""
    code = "" if kind is None else getattr(kind, "_type_", "P")
    if not isinstance(code, str) or hasattr(kind, "_flags_"):  # a POINTER, a function
        return "P"
    return code


def _check(error: int | None) -> None:
    """Raise what a function answers that may fail."""
    if error:
        lib = library()
        try:
            raise WasmtimeError(_text(lib.wasmtime_error_message, error))
        finally:
            lib.wasmtime_error_delete(error)


def _check_trap(trap: ctypes.c_void_p) -> None:
    if trap.value:
        lib = library()
        try:
            raise WasmtimeError(_text(lib.wasm_trap_message, trap).rstrip("\0"))
        finally:
            lib.wasm_trap_delete(trap)


def _text(function: Any, of: Any) -> str:
    message = Bytes()
    function(of, ctypes.byref(message))
    return _taken(message).decode(errors="replace")


def _taken(given: Bytes) -> bytes:
    """Bytes that wasmtime has allocated."""
    try:
        return ctypes.string_at(given.data, given.size) if given.size else b""
    finally:
        library().wasm_byte_vec_delete(ctypes.byref(given))


def for_shared_memory(binary: bytes) -> bytes:
    """A module of a Program, which imports an unshared memory, as it links to one that threads share. Other modules stay as they are."""
    at = _MODULE_HEAD
    while at + 1 < len(binary):
        kind, (size, start) = binary[at], _number(binary, at + 1)
        end = start + size
        limits = start + len(_MEMORY)
        if kind == _IMPORTS and binary[start : limits + 1] == _MEMORY + _UNSHARED:
            made = _MEMORY + _SHARED + binary[limits + 1 : end] + _MOST_PAGES
            return binary[: at + 1] + bytes([len(made)]) + made + binary[end:]
        at = end
    return binary


def _number(binary: bytes, at: int) -> tuple[int, int]:
    """A LEB128 of at most 32 bits, and where it ends."""
    value = 0
    for k, byte in enumerate(binary[at : at + 5]):
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return value, at + k + 1
    return value, len(binary)


def _owned(owner: object, delete: Any, pointer: Any) -> None:
    """Have wasmtime free what it allocated once its object is gone; what is there at the end of the process goes with it."""
    finalize(owner, delete, pointer).atexit = False


class WasmEngine:
    """A compiler of modules. is_stoppable: their code looks for an epoch in each loop."""

    def __init__(self, is_stoppable: bool) -> None:
        lib = library()
        config = lib.wasm_config_new()
        lib.wasmtime_config_wasm_relaxed_simd_set(config, True)
        lib.wasmtime_config_cranelift_opt_level_set(config, _OPTIMISED)
        lib.wasmtime_config_epoch_interruption_set(config, is_stoppable)
        lib.wasmtime_config_shared_memory_set(config, True)
        self.pointer: Final = lib.wasm_engine_new_with_config(config)
        _owned(self, lib.wasm_engine_delete, self.pointer)

    def increment_epoch(self) -> None:
        library().wasmtime_engine_increment_epoch(self.pointer)


class WasmModule:
    """Machine code."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self.pointer: Final = pointer
        _owned(self, library().wasmtime_module_delete, pointer)

    @staticmethod
    def compiled(engine: WasmEngine, binary: bytes) -> WasmModule:
        made = ctypes.c_void_p()
        _check(library().wasmtime_module_new(engine.pointer, binary, len(binary), ctypes.byref(made)))
        return WasmModule(made)

    @staticmethod
    def deserialized(engine: WasmEngine, code: bytes) -> WasmModule:
        """What `serialize` gave, if wasmtime takes it, which checks that it was made by its own version, for this processor and for this
        configuration."""
        made = ctypes.c_void_p()
        _check(library().wasmtime_module_deserialize(engine.pointer, code, len(code), ctypes.byref(made)))
        return WasmModule(made)

    def serialize(self) -> bytes:
        made = Bytes()
        _check(library().wasmtime_module_serialize(self.pointer, ctypes.byref(made)))
        return _taken(made)


class LinearMemory:
    """A memory that modules in several stores share, and so threads."""

    def __init__(self, engine: WasmEngine, pages: int, most: int) -> None:
        """most: pages of the memory."""
        lib, kind, made = library(), ctypes.c_void_p(), ctypes.c_void_p()
        _check(lib.wasmtime_memorytype_new(pages, True, most, False, True, _PAGE_BITS, ctypes.byref(kind)))
        try:
            _check(lib.wasmtime_sharedmemory_new(engine.pointer, kind, ctypes.byref(made)))
        finally:
            lib.wasm_memorytype_delete(kind)
        self.pointer: Final = made
        _owned(self, lib.wasmtime_sharedmemory_delete, made)
        self.data: Final[int] = lib.wasmtime_sharedmemory_data(made)
        """A pointer to the memory, which stays where it is."""
        self._advise(0, most << _PAGE_BITS, "MADV_HUGEPAGE")

    def in_small_pages(self, address: int, count: int) -> None:
        """Ask the system for its smallest pages, for memory of which a part is used: others are of 2 MB, where it has some, so that memory
        is there sooner that is touched for the first time."""
        self._advise(address, count, "MADV_NOHUGEPAGE")

    def _advise(self, address: int, count: int, name: str) -> None:
        advice = getattr(mmap, name, None)
        if advice is not None:
            before = address % mmap.PAGESIZE
            _madvise()(self.data + address - before, before + count, advice)

    @property
    def size(self) -> int:
        """Bytes of the memory."""
        return library().wasmtime_sharedmemory_data_size(self.pointer)

    def grow(self, pages: int) -> None:
        before = ctypes.c_uint64()
        _check(library().wasmtime_sharedmemory_grow(self.pointer, pages, ctypes.byref(before)))


class WasmStore:
    """What one thread at a time may use, with all that is instantiated in it."""

    def __init__(self, engine: WasmEngine) -> None:
        lib = library()
        pointer = lib.wasmtime_store_new(engine.pointer, None, None)
        _owned(self, lib.wasmtime_store_delete, pointer)
        self.context: Final = lib.wasmtime_store_context(pointer)

    def set_epoch_deadline(self, epochs: int) -> None:
        """Have functions end in a trap after so many epochs."""
        library().wasmtime_context_set_epoch_deadline(self.context, epochs)


class WasmInstance:
    """A module in a store of its own, and the memory that it is given. deadline: the epochs after which its functions end in a trap."""

    def __init__(
        self, engine: WasmEngine, memory: LinearMemory, module: WasmModule, deadline: int | None = None
    ) -> None:
        self.memory: Final = memory
        self.store: Final = WasmStore(engine)
        if deadline is not None:
            self.store.set_epoch_deadline(deadline)
        self._handle: Final = WasmHandle()
        self._functions: Final[dict[str, WasmFunction | None]] = {}
        given, trap = Extern(_SHARED_MEMORY), ctypes.c_void_p()
        given.of.words[0] = memory.pointer.value
        _check(
            library().wasmtime_instance_new(
                self.store.context,
                module.pointer,
                ctypes.byref(given),
                1,
                ctypes.byref(self._handle),
                ctypes.byref(trap),
            )
        )
        _check_trap(trap)

    def function(self, name: str) -> WasmFunction | None:
        """A function that it exports, if that takes int32 and answers nothing or an int32."""
        if name not in self._functions:
            self._functions[name] = self._found(name)
        return self._functions[name]

    def _found(self, name: str) -> WasmFunction | None:
        lib, found, raw = library(), Extern(), name.encode()
        given = ctypes.byref(self._handle)
        if not lib.wasmtime_instance_export_get(self.store.context, given, raw, len(raw), ctypes.byref(found)):
            return None
        if found.kind != _FUNCTION:
            return None
        kind = lib.wasmtime_func_type(self.store.context, ctypes.byref(found.of))
        try:
            parameters, results = _kinds(lib.wasm_functype_params(kind)), _kinds(lib.wasm_functype_results(kind))
        finally:
            lib.wasm_functype_delete(kind)
        if any(kind != _INT32 for kind in (*parameters, *results)) or len(results) > 1:
            return None
        return WasmFunction(self.store, found.of, len(parameters), bool(results))


def _kinds(types: int) -> list[int]:
    """The kind of each type of a wasm_valtype_vec_t."""
    given = Bytes.from_address(types)
    each = (ctypes.c_void_p * given.size).from_address(given.data) if given.size else ()
    return [library().wasm_valtype_kind(kind) for kind in each]


class WasmFunction:
    """A function of so many int32, which answers an int32 or nothing."""

    def __init__(self, store: WasmStore, handle: WasmHandle, count: int, answers: bool) -> None:
        self.count: Final = count
        self.store: Final = store
        self._handle: Final = handle
        self._answers: Final = answers

    def __call__(self, *arguments: int) -> int | None:
        if len(arguments) != self.count:  # the library does not look
            raise WasmtimeError(f"a function takes {self.count} arguments, got {len(arguments)}")
        values, trap = (ctypes.c_int32 * (_VALUE_WORDS * max(len(arguments), 1)))(), ctypes.c_void_p()
        values[::_VALUE_WORDS] = arguments or (0,)
        count = max(len(arguments), int(self._answers))
        _check(
            library().wasmtime_func_call_unchecked(
                self.store.context, ctypes.byref(self._handle), ctypes.byref(values), count, ctypes.byref(trap)
            )
        )
        _check_trap(trap)
        return values[0] if self._answers else None
