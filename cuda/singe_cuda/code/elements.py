"""How CUDA stores element types in device memory: each as it is, as it lies in files and arrays. Narrow floats are their bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import (
    STORED,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from singe_gpu.dialect import Element


def _narrow(d: DType) -> Element:
    """An integer that takes one byte or two, of which its value may need fewer bits."""
    kind = f"{'i' if d.kind == 'int' else 'u'}{8 * d.size}"
    if d.bits == 8 * d.size:
        return Element(kind, "i32({0})", f"{kind}({{0}})")
    if d.kind == "int":
        return Element(kind, "i32({0})", f"{kind}(({{0}} << {32 - d.bits}u) >> {32 - d.bits}u)")
    return Element(kind, "i32({0})", f"{kind}({{0}} & {d.limits[1]}i)")


ELEMENTS: Final[Mapping[DType, Element]] = {
    bool_: Element("u8", "({0} != 0u)", "u8({0})"),
    **{d: _narrow(d) for d in (int8, uint8, int16, uint16, *STORED) if d.is_int},
    int32: Element("i32", four="{0}"),
    uint32: Element("u32", four="{0}"),
    int64: Element("vec2<u32>"),
    uint64: Element("vec2<u32>"),
    **{d: Element("u8", f"f32_of_{d}({{0}})", f"u8({d}_of_f32({{0}}))") for d in STORED if d.is_float},
    float16: Element("f16", "f32({0})", "f16({0})", "vec4<f32>({0})"),
    bfloat16: Element(
        "u16",
        "bitcast<f32>(u32({0}) << 16u)",
        "u16(bfloat16_of_f32({0}))",
        "bitcast<vec4<f32>>(vec4<u32>({0}) << vec4<u32>(16u))",
    ),
    float32: Element("f32", four="{0}"),
    float64: Element("f64"),
}
ROUNDINGS: Final = {d: e.load.format(e.store) for d, e in ELEMENTS.items() if d.is_float and d.bits < float32.bits}
"""Narrower float ↦ an f32 rounded to it."""
