"""Loads and stores of every element type: one value, four neighbours, or four at a distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import DType, bool_, float16, float32, int32, int64, uint8

from ..encode import Body, Spelling, i32x4, lane, memory, ops, v128
from ..simd import extract

_LOADS: Final[Mapping[DType, str]] = {
    bool_: "i32.load8_u", uint8: "i32.load8_u", int32: "i32.load", int64: "i64.load", float16: "i32.load16_u", float32: "f32.load",
}  # fmt: skip
_STORES: Final[Mapping[DType, str]] = {
    bool_: "i32.store8", uint8: "i32.store8", int32: "i32.store", int64: "i64.store", float16: "i32.store16", float32: "f32.store",
}  # fmt: skip
VECTOR_STORAGE: Final = (bool_, uint8, int32, float32)
"""Element types that are loaded and stored four at a time."""
_WIDEN: Final = ops("i16x8.extend_low_i8x16_u i32x4.extend_low_i16x8_u")
_NARROW: Final = v128(bytes((0, 4, 8, 12, *[255] * 12))) + ops("i8x16.swizzle")
_TRUE: Final = i32x4(0) + ops("i32x4.ne")


def load(stored: DType, offset: int) -> Spelling:
    """The element at the address on the stack, as its compute type."""
    code = memory(_LOADS[stored], offset)
    if stored is not float16:
        return code

    def spell(body: Body) -> None:
        body.add(code)
        body.call("half_to_float")

    return spell


def store(stored: DType, offset: int) -> Spelling:
    """Write the value on the stack at the address below it."""
    code = memory(_STORES[stored], offset)
    if stored is not float16:
        return code

    def spell(body: Body) -> None:
        body.call("float_to_half")
        body.add(code)

    return spell


def load_lanes(stored: DType, offset: int) -> bytes:
    """Four neighbouring elements."""
    if stored.size == 4:
        return memory("v128.load", offset)
    return memory("v128.load32_zero", offset) + _WIDEN + (_TRUE if stored is bool_ else b"")


def store_lanes(stored: DType, offset: int) -> bytes:
    """Write four neighbouring elements."""
    if stored.size == 4:
        return memory("v128.store", offset)
    return (
        (i32x4(1) + ops("v128.and") if stored is bool_ else b"")
        + _NARROW
        + memory("v128.store32_lane", offset)
        + b"\x00"
    )


def gather(stored: DType, offset: int, step: int) -> Spelling:
    """Four elements `step` bytes apart."""
    replace = "f32x4.replace_lane" if stored is float32 else "i32x4.replace_lane"

    def spell(body: Body) -> None:
        at = body.local("i32")
        body.set(at)
        body.add(i32x4(0))
        for number in range(4):
            body.get(at)
            body.add(memory(_LOADS[stored], offset + number * step) + lane(replace, number))
        body.free(at)
        body.add(_TRUE if stored is bool_ else b"")

    return spell


def scatter(stored: DType, offset: int, step: int) -> Spelling:
    """Write four elements `step` bytes apart."""

    def spell(body: Body) -> None:
        at, value = body.local("i32"), body.local("v128")
        body.set(value)
        body.set(at)
        for number in range(4):
            body.get(at, value)
            kind = bool_ if stored is bool_ else float32 if stored is float32 else int32
            body.add(extract(kind, number) + memory(_STORES[stored], offset + number * step))
        body.free(at, value)

    return spell
