"""The interface for packages that extend Singe: all names that a code generator or a device needs.

These names change only with the version of Singe and a line in CHANGELOG.md; every other module of `singe` that its
`__init__` does not list is private. An extension provides

  a Target   (entry-point group `singe.targets`): Kernels and Routines in, text or bytes out. It needs no device.
  a Backend  (entry-point group `singe.backends`): holds arrays and runs Programs; its attribute `target` is the Target
             whose Programs it runs, an ArrayTarget if it calls ops with arrays. The entry point names a BackendFactory, which
             has the facts that need no open device, or a class with a BackendFactory's attributes.
  a Device   that wraps another, as Fusion does: a Decorator. It needs no entry point.

The names are in the order in which they are needed: errors, element types, dimensions; expressions and index arithmetic
(`scalar`, `affine`), Kernel and Routine; the parts of a Program; the protocols; helpers for pages.
"""

from typing import Any as _Any

from ..lazy_names import by_name as _by_name
from ..lazy_names import resolved as _resolved

_DEFINED = {
    "awaitables": "MaybeAwaitable map_result resolve_async",
    "compiler.array_target": "ArrayTarget",
    "compiler.partition": "beyond_scripts",
    "compiler.target": "Execution PackedPlaces Packer Printed Target",
    "dtypes": (
        "DTYPES LEAST_NORMAL STORED Coding DType bfloat16 bool_ dtype float16 float32 float64 int8 int16 int32 int64 "
        "outward string uint8 uint16 uint32 uint64"
    ),
    "errors": "CompileError DeviceError DeviceLost FormatError InputError ShapeError",
    "files": "in_parts",
    "files.folder": "cache_folder is_off",
    "files.kept": "entry_key keep_entry recall_entry",
    "files.urls": "js_errors",
    "ir": "affine scalar",
    "ir.attention": "EIGHT_BIT_BLOCK WORDS_OF_A_BLOCK Attention attention",
    "ir.contraction": "Contraction contraction",
    "ir.kernel": "Kernel Port Reduce Routine Scan Stage Store collapse identity",
    "ir.scalar": "WORD_COSTS Expr",
    "ops": "Row Wgsl find_row",
    "ops.products.blocks_int16": "BYTE_PART BYTE_TOP_STEPS GROUP WIDE_PART WIDE_TOP wide_step_of",
    "ops.products.quantised": "LARGEST OFFSET PART TOP step_of",
    "plugins": "version_of",
    "program": "words",
    "program.block": "alone",
    "program.container": "ALIGN align",
    "program.elements": "aligned from_stored stored_type to_stored",
    "program.format": "header",
    "program.plan": "Found Plan",
    "program.program": "Buffer Check Code Place ProgramData Variant choose_variant",
    "runtime.backend": "Backend Executable HostArray Span Timeline",
    "runtime.decorators": "Decorator",
    "runtime.device": "Device",
    "runtime.donated_inputs": "check_donated writable",
    "runtime.host_steps": "run_host_step",
    "runtime.memory.heap": "Heap",
    "runtime.memory.settings": "Memory limit_reached",
    "runtime.memory.usage": "MemoryKind MemoryLedger MemoryUse",
    "runtime.page": "device_error scripts",
    "runtime.recent_values": "Recent",
    "runtime.registry": "BackendFactory",
    "shapes": (
        "Dim Shape Size bytes_text ceildiv dim_max dim_min divides evaluate guessed known product show size symbols"
    ),
    "time_limits": "stopped_by time_limit",
}  # fmt: skip
"""A module of singe ↦ the names that it defines of those; it is imported when one of them is first used."""
_MODULES = _by_name(_DEFINED)

__all__: list[str] = []
__all__ += list(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> _Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _resolved(_MODULES[name], name)
    return found
