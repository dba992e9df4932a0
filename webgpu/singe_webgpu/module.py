"""One WGSL module: bindings, sizes and functions around the body of `main`.

Group 0 binds one storage buffer for each port, in order; then, when the kernel uses sizes, a uniform of them as int32.
The text depends on the kernel and on the declared features alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from singe._dtypes import DType, bool_, float16, float32, int32, int64, uint8
from singe._shape import Dim
from singe.backend import Printed
from singe.kernel import Port
from singe.program import Variant

from .library import used_by

SHADER_F16: Final = "shader-f16"
SUBGROUPS: Final = "subgroups"
ENTRY: Final = "main"

_LOADS: Final = {bool_: "({0} != 0u)", uint8: "bitcast<i32>({0})", float16: "f32({0})"}
_STORES: Final = {bool_: "select(0u, 1u, {0})", uint8: "(bitcast<u32>({0}) & 255u)", float16: "f16({0})"}
_VECTORS: Final = (float16, int32, float32)
"""What can be read four at a time."""
_STORAGE: Final = {bool_: "u32", uint8: "u32", int32: "i32", int64: "vec2<u32>", float16: "f16", float32: "f32"}


def stored_as(dtype: DType, features: frozenset[str]) -> DType:
    """The element type in device memory: float16 is float32 where shaders have no f16."""
    return float32 if dtype is float16 and SHADER_F16 not in features else dtype


def element_size(dtype: DType, features: frozenset[str]) -> int:
    """Bytes of one element in device memory: WGSL has no bytes, so bool and uint8 take four."""
    return max(4, dtype.size) if stored_as(dtype, features) is not float16 else 2


_DECLARED: Final = re.compile(r"@binding\(\d+\) var<(storage, read_write|storage, read|uniform)>")


@lru_cache(maxsize=1024)
def bindings(code: str) -> tuple[str, ...]:
    """How a module's text declares its bindings, in order: "storage, read", "storage, read_write" or "uniform"."""
    return tuple(_DECLARED.findall(code))


class Module:
    """A module under construction; `text` closes it."""

    def __init__(self, ports: Sequence[Port], features: frozenset[str], sizes: list[Dim] | None = None) -> None:
        self.ports = ports
        self.stored = [stored_as(p.dtype, features) for p in ports]
        self.sizes: list[Dim] = [] if sizes is None else sizes  # the variants of a kernel share theirs
        self.subgroups = False
        self.workgroup: dict[str, str] = {}
        self.vectors: set[int] = set()  # the ports that are bound as vectors of four elements
        self.functions: list[str] = []
        self._fresh = 0

    def fresh(self) -> str:
        """A new name for a value."""
        self._fresh += 1
        return f"v{self._fresh}"

    def dim(self, dim: Dim) -> str:
        """A dimension as an i32: a literal, or an element of the uniform."""
        if isinstance(dim, int):
            return f"{dim}i"
        if dim not in self.sizes:
            self.sizes.append(dim)
        at = self.sizes.index(dim)
        return f"sizes[{at // 4}].{'xyzw'[at % 4]}"

    def load(self, port: int, index: str) -> str:
        """The element of a port, as its compute type."""
        return _LOADS.get(self.stored[port], "{0}").format(f"b{port}[{index}]")

    def has_vectors(self, port: int) -> bool:
        """Whether a port that nothing writes may be read four elements at a time."""
        return self.stored_vectors(port) and not self.ports[port].written

    def stored_vectors(self, port: int) -> bool:
        """Whether four elements of a port are a vector that can be read."""
        return self.stored[port] in _VECTORS

    def stores_vectors(self, port: int) -> bool:
        """Whether four elements of a port can be written as a vector."""
        return self.stored[port] is not int64

    def load_vector(self, port: int, index: str) -> str:
        """Four elements of a port from an index that is a multiple of four; the port is read so everywhere, then."""
        self.vectors.add(port)
        text = f"b{port}[{index} / 4i]"
        return f"vec4<f32>({text})" if self.stored[port] is float16 else text

    def store(self, port: int, index: str, value: str) -> str:
        """The statement that writes an element of a port."""
        return f"b{port}[{index}] = {_STORES.get(self.stored[port], '{0}').format(value)};"

    def store_vector(self, port: int, index: str, values: Sequence[str]) -> str:
        """The statement that writes four elements of a port from an index that is a multiple of four; see load_vector."""
        self.vectors.add(port)
        stored = self.stored[port]
        parts = ", ".join(_STORES.get(stored, "{0}").format(value) for value in values)
        return f"b{port}[{index} / 4i] = vec4<{_STORAGE[stored]}>({parts});"

    def shared(self, name: str, element: str, count: int) -> str:
        """An array in workgroup memory."""
        self.workgroup[name] = f"var<workgroup> {name}: array<{element}, {count}>;"
        return name

    def printed(self, body: Sequence[str], threads: int, groups: Dim, other: Printed | None = None) -> Printed:
        """The module whose entry point has this body, for so many workgroups of so many invocations.

        other: what this one is preferred to; it requires less.
        """
        needs = {SHADER_F16: float16 in self.stored, SUBGROUPS: self.subgroups}
        variant = Variant(ENTRY, tuple(name for name, needed in needs.items() if needed), (groups, 1, 1))
        codes, variants = (other.code, other.variants) if other else ((), ())
        return Printed((self._text(body, threads), *codes), (variant, *variants), tuple(self.sizes))

    def _text(self, body: Sequence[str], threads: int) -> str:
        enabled = {"f16": float16 in self.stored, "subgroups": self.subgroups}
        lines = [f"enable {name};\n" for name, needed in enabled.items() if needed]
        inside = ",\n        @builtin(subgroup_invocation_id) member: u32, @builtin(subgroup_size) members: u32"
        for number, (port, stored) in enumerate(zip(self.ports, self.stored, strict=True)):
            access = "read_write" if port.written else "read"
            element = _STORAGE[stored]
            if number in self.vectors:
                element = f"vec4<{element}>"
            lines.append(f"@group(0) @binding({number}) var<storage, {access}> b{number}: array<{element}>;")
        if self.sizes:
            count = -(-len(self.sizes) // 4)
            lines.append(f"@group(0) @binding({len(self.ports)}) var<uniform> sizes: array<vec4<i32>, {count}>;")
        lines += self.workgroup.values()
        main = [
            f"@compute @workgroup_size({threads})",
            f"fn {ENTRY}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,",
            f"        @builtin(local_invocation_index) lane: u32{inside if self.subgroups else ''}) {{",
            *body,
            "}",
        ]
        code = "\n\n".join((*self.functions, "\n".join(main)))
        library = used_by(code)
        return "\n".join(lines) + "\n\n" + (library + "\n\n" if library else "") + code + "\n"
