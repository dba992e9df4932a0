"""A kernel's text in CUDA C++: kernel text respelled, its functions and `main` as methods of a struct, whose members are the ports,
the sizes and the arrays in workgroup memory; and the entry point, which makes the struct. The prelude stands before it when it is compiled."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from singe_gpu.code.narrow_floats import CONVERSIONS
from singe_gpu.dialect import INTEGER_MATRIX, PACKED_MATRIX, SUBGROUP_MATRIX, SUBGROUPS, ShaderParts

ENTRY_POINT: Final = "run"
"""The kernel's name for the driver: `main` is no name of a kernel in C++."""
STATIC_BYTES: Final = 48 << 10
"""The workgroup memory that a text may declare."""
_TYPE: Final = r"\w+(?:<(?:[^<>;]|<(?:[^<>;]|<[^<>;]*>)*>)*>)?"
_STEPS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bvar (\w+): ([^=;]+?)(?= =|;)", r"\2 \1"),
        (r"\bvar (\w+)", r"auto \1"),
        (r"\blet (\w+)", r"const auto \1"),
        (r"\b(0x[0-9a-fA-F]+|\d+)i\b", r"\1"),
        (r"\.(xy|zw)\b", r".\1()"),
        (r"\bround\(", "nearest("),  # C++ has another function of that name
    )
)
"""Patterns, each with what replaces it, in this order."""
_FUNCTION: Final = re.compile(rf"\bfn (\w+)\(([^{{]*)\)(?: -> ({_TYPE}))? {{")
_STRUCT: Final = re.compile(r"\bstruct (\w+) \{ ([^}]*) \}")
_NAMED: Final = re.compile(rf"(\w+): ({_TYPE})")
_BUFFERS: Final = re.compile(rf"__launch_bounds__\(\d+\) {ENTRY_POINT}\(([^)]*)\)")
_KINDS: Final = {"Read": "storage, read", "Written": "storage, read_write", "Sizes": "uniform"}
_MEMBERS: Final = {
    SUBGROUPS: "const u32 member = lane & 31, members = 32;",
    **dict.fromkeys((SUBGROUP_MATRIX, INTEGER_MATRIX, PACKED_MATRIX), "const u32 subgroup = lane >> 5;"),
}
"""Feature ↦ what it declares for `main`."""
_HELPERS: Final = {found[1]: text for text in CONVERSIONS if (found := re.match(r"fn (\w+)", text))}


@cache
def prelude(card: str = "nvidia.cuh") -> str:
    """What stands before a text. card: the file of what a vendor's cards have."""
    folder = files("singe_cuda.code")
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in ("prelude.cuh", card))


@lru_cache(maxsize=1024)
def bindings(code: str) -> tuple[str, ...]:
    """How a text declares its buffers, in order."""
    found = _BUFFERS.search(code)
    return tuple(_KINDS[part.split()[0]] for part in found[1].split(", ")) if found and found[1] else ()


def join(parts: ShaderParts) -> str:
    """The whole text, without the prelude."""
    members, buffers, made = [], [], []
    for number, (kind, written) in enumerate(parts.ports):
        access, name = "Written" if written else "Read", f"b{number}"
        members.append(f"{access}Port<{kind}> {name};")
        buffers.append(f"{access} {name}")
        made.append(f"{access}Port<{kind}>({name})")
    if parts.size_vectors:
        members.append("const vec4<i32> *sizes;")
        buffers.append("Sizes sizes")
        made.append("sizes.data")
    members += [f"{kind} &{name};" for name, kind in parts.shared.items()]
    made += list(parts.shared)
    shared = {name: _bytes(kind) for name, kind in parts.shared.items()}
    places = [f"__shared__ {kind} {name};" for name, kind in parts.shared.items()]
    if sum(shared.values()) > STATIC_BYTES:  # the rest is asked for at the launch
        places, at = [f"extern __shared__ __align__(1024) vec4<u32> workgroup[]; // {sum(shared.values())} bytes"], 0
        for name, kind in parts.shared.items():
            places.append(f"{kind} &{name} = *({kind} *)(workgroup + {at // 16});")
            at += shared[name]
    own = "\n\n".join((*parts.functions, "\n".join(parts.body)))
    helpers = [text for name, text in _HELPERS.items() if re.search(rf"\b{name}\b", own)]
    # The parameters of methods need structs before them.
    structs = [text for text in parts.functions if text.startswith("struct ")]
    functions = [text for text in (*helpers, *parts.functions) if text not in structs]
    lines = [
        *map(respelled, structs),
        "struct Kernel {",
        *members,
        *map(respelled, functions),
        "void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {",
        *(text for feature, text in _MEMBERS.items() if feature in parts.features),
        *map(respelled, parts.body),
        "}",
        "};",
        f'extern "C" __global__ void __launch_bounds__({parts.threads}) {ENTRY_POINT}({", ".join(buffers)}) {{',
        *places,
        f"Kernel kernel{{{', '.join(made)}}};",
        "kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);",
        "}",
    ]
    return "\n".join(lines) + "\n"


def threads(code: str) -> int:
    """The invocations of a workgroup of a text."""
    found = re.search(r"__launch_bounds__\((\d+)\)", code)
    assert found is not None
    return int(found[1])


def launch_bytes(code: str) -> int:
    """The bytes of workgroup memory that a launch of a text must ask for."""
    found = re.search(r"workgroup\[\]; // (\d+) bytes", code)
    return int(found[1]) if found else 0


def _bytes(kind: str) -> int:
    """The bytes of an array in workgroup memory, a multiple of 16."""
    found = re.fullmatch(r"array<(?:vec(\d)<(\w+)>|(.+)), (\d+)>", kind)
    assert found is not None, kind
    bytes_ = int(found[4]) * int(found[1] or 1) * {"f64": 8, "i64": 8, "u64": 8}.get(found[2] or found[3], 4)
    return -(-bytes_ // 16) * 16


def respelled(text: str) -> str:
    """Kernel text in C++."""
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return _STRUCT.sub(_struct, _FUNCTION.sub(_function, text))


def _function(found: re.Match[str]) -> str:
    parameters = _NAMED.sub(r"const \2 \1", found[2])
    return f"{found[3] or 'void'} {found[1]}({parameters}) {{"


def _struct(found: re.Match[str]) -> str:
    """A struct with a constructor, since kernel text makes one by a call."""
    fields = _NAMED.findall(found[2])
    members = " ".join(f"{kind} {name};" for name, kind in fields)
    parameters = ", ".join(f"{kind} {name}" for name, kind in fields)
    made = ", ".join(f"{name}({name})" for name, _ in fields)
    return f"struct {found[1]} {{ {members} {found[1]}({parameters}) : {made} {{}} }};"
