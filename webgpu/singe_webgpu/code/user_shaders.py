"""The shader that a user wrote for an op, with its bindings declared: one dispatch.

The bindings are in the order of the ports: the inputs, the results, then the sizes. The elements are those of the table
ELEMENTS. A float16 is stored in different ways with and without `shader-f16`, so shaders for it are not taken.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from singe.extension import CompileError, DType, Printed, Row, Shape, Size, Variant, Wgsl, find_row, float16
from singe_gpu.dialect import ENTRY

from .elements import ELEMENTS

_MAIN: Final = re.compile(rf"@compute\b[^;{{}}]*\bfn\s+{ENTRY}\s*\(")
_BOUND: Final = re.compile(r"@(?:group|binding)\b")


class _Input(NamedTuple):
    shape: Shape
    dtype: DType


def print_own(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[tuple[Shape, DType]],
    results: Sequence[tuple[Shape, DType]],
    most: int,
) -> Printed | None:
    """The own shader of an op, with at most `most` buffers; None if there is none for these inputs and attributes."""
    row = find_row(op)
    if row.wgsl is None or any(kind is float16 for _, kind in (*inputs, *results)):
        return None
    names = _names(row, len(inputs))
    if names is None or len(inputs) + len(results) > most:
        return None
    written = row.wgsl(*(_Input(*x) for x in inputs), **attrs)
    if written is None:
        return None
    _check(op, written)
    out = ["out"] if len(results) == 1 else [f"out{k}" for k in range(len(results))]
    ports = [(name, "read", kind) for name, (_, kind) in zip(names, inputs, strict=True)]
    ports += [(name, "read_write", kind) for name, (_, kind) in zip(out, results, strict=True)]
    lines = [
        f"@group(0) @binding({k}) var<storage, {access}> {name}: array<{ELEMENTS[kind].type}>;"
        for k, (name, access, kind) in enumerate(ports)
    ]
    if written.sizes:
        lines.append(f"struct Sizes {{ {', '.join(f'{name}: i32' for name in written.sizes)} }}")
        lines.append(f"@group(0) @binding({len(ports)}) var<uniform> sizes: Sizes;")
    x, y, z = (*written.groups, 1, 1, 1)[:3]
    code = "\n".join((*lines, "", written.code.strip(), ""))
    return Printed((code,), (Variant(ENTRY, (), (x, y, z)),), tuple(written.sizes.values()))


def _names(row: Row, count: int) -> list[str] | None:
    """The names of the inputs: the first parameters of the function that gives the shader. None if inputs are left out."""
    assert row.wgsl is not None
    parameters = inspect.signature(row.wgsl).parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < count or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise CompileError(f"{row.name}: the function for its shader must name each of the {count} inputs")
    if any(p.default is p.empty for p in places[count:]):
        return None
    return [p.name for p in places[:count]]


def _check(op: str, written: Any) -> None:
    """Refuse what is no shader of this form."""
    if not isinstance(written, Wgsl):
        raise CompileError(f"{op}: the function for its shader returned {written!r:.80}, expected a Wgsl or None")
    if _BOUND.search(written.code):
        raise CompileError(f"{op}: its shader declares bindings; leave them out: Singe declares them before the code")
    if not _MAIN.search(written.code):
        raise CompileError(f"{op}: its shader has no entry point `@compute @workgroup_size(…) fn {ENTRY}(…)`")
    if not 1 <= len(written.groups) <= 3:
        raise CompileError(f"{op}: {len(written.groups)} numbers of workgroups, expected 1 to 3: x, y and z")
    for d in (*written.groups, *written.sizes.values()):
        if isinstance(d, bool) or not isinstance(d, (int, Size)):
            raise CompileError(
                f"{op}: its shader has {d!r:.80} as a size or a number of workgroups, expected a dimension"
            )
    for name in written.sizes:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise CompileError(f"{op}: its shader has a size called {name!r}, expected a name of letters and digits")
