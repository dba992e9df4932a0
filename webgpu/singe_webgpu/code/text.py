"""The text of a shader in WGSL: what it enables, bindings, workgroup memory, library, functions, and the entry point.

Group 0 binds one storage buffer for each port, in order; then, when the kernel uses sizes, a uniform of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from singe_gpu.dialect import ENTRY, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, ShaderParts

from .library import used_by

_ENABLES: Final = {
    SHADER_F16: "f16",
    SUBGROUPS: "subgroups",
    SUBGROUP_MATRIX: "chromium_experimental_subgroup_matrix",
}
_BUILTINS: Final = {
    SUBGROUPS: "@builtin(subgroup_invocation_id) member: u32, @builtin(subgroup_size) members: u32",
    SUBGROUP_MATRIX: "@builtin(subgroup_id) subgroup: u32",
}
_DECLARED: Final = re.compile(r"@binding\(\d+\) var<(storage, read_write|storage, read|uniform)>")


@lru_cache(maxsize=1024)
def bindings(code: str) -> tuple[str, ...]:
    """How a shader's text declares its bindings, in order: "storage, read", "storage, read_write" or "uniform"."""
    return tuple(_DECLARED.findall(code))


def join(parts: ShaderParts) -> str:
    """The whole text."""
    lines = [f"enable {name};" for word, name in _ENABLES.items() if word in parts.features]
    lines += [""] * bool(lines)
    for number, (element, written) in enumerate(parts.ports):
        access = "read_write" if written else "read"
        lines.append(f"@group(0) @binding({number}) var<storage, {access}> b{number}: array<{element}>;")
    if parts.size_vectors:
        kind = f"array<vec4<i32>, {parts.size_vectors}>"
        lines.append(f"@group(0) @binding({len(parts.ports)}) var<uniform> sizes: {kind};")
    lines += [f"var<workgroup> {name}: {kind};" for name, kind in parts.shared.items()]
    inside = "".join(f",\n        {text}" for word, text in _BUILTINS.items() if word in parts.features)
    main = [
        f"@compute @workgroup_size({parts.threads})",
        f"fn {ENTRY}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,",
        f"        @builtin(local_invocation_index) lane: u32{inside}) {{",
        *parts.body,
        "}",
    ]
    code = "\n\n".join((*parts.functions, "\n".join(main)))
    library = used_by(code)
    return "\n".join(lines) + "\n\n" + (library + "\n\n" if library else "") + code + "\n"
