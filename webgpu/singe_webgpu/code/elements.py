"""How WGSL stores element types in device memory and loads their values: one row for each dtype that shaders compute.

WGSL has no elements of fewer than 32 bits except f16, so bool and integers of 2 to 16 bits take a word each: an i32 with
their sign, or a u32. Constant integers are packed; see shader.py. bfloat16 and narrower floats are stored as their bits.
float64 and complex numbers are not supported.
"""

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


def element_size(dtype: DType) -> int:
    """Bytes of one element in device memory: WGSL has no bytes, so elements of fewer than four bytes take four."""
    return dtype.wide.itemsize


def _narrow(d: DType) -> Element:
    if d.kind == "int":
        return Element("i32", store=f"(({{0}} << {32 - d.bits}u) >> {32 - d.bits}u)")
    return Element("u32", "bitcast<i32>({0})", f"(bitcast<u32>({{0}}) & {d.limits[1]}u)")


ELEMENTS: Final[Mapping[DType, Element]] = {
    bool_: Element("u32", "({0} != 0u)", "select(0u, 1u, {0})"),
    **{d: _narrow(d) for d in (int8, uint8, int16, uint16, *STORED) if d.is_int},
    int32: Element("i32", four="{0}"),
    uint32: Element("u32", four="{0}"),
    int64: Element("vec2<u32>"),
    uint64: Element("vec2<u32>"),
    **{d: Element("u32", f"f32_of_{d}({{0}})", f"{d}_of_f32({{0}})") for d in STORED if d.is_float},
    float16: Element("f16", "f32({0})", "f16({0})", "vec4<f32>({0})"),
    bfloat16: Element("u32", "bitcast<f32>({0} << 16u)", "bfloat16_of_f32({0})", "four_bfloats({0})"),
    float32: Element("f32", four="{0}"),
}


ROUNDINGS: Final = {
    float16: "f32_of_float16(half_bits({0}))",
    **{d: e.load.format(e.store) for d, e in ELEMENTS.items() if d.is_float and d not in (float16, float32)},
}
"""Narrower float → an f32 rounded to it, by its bits: WGSL leaves open how a conversion to f16 rounds."""
