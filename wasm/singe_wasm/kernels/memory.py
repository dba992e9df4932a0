"""Loads and stores of every element type: one value, four neighbours, or four at a distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

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

from ..code.encode import Body, Spelling, i32, i32x4, lane, memory, ops, shuffle, v128
from ..code.simd import extract


def _call(name: str) -> Spelling:
    return lambda body: body.call(name)


class ElementAccess(NamedTuple):
    """How an element type is stored: instructions to load and store it, and code that converts to its value and back.

    Where the type can be loaded and stored four at a time, four loads four neighbours as bytes or words, and lanes
    widens them to 32 bits each.
    """

    load: str
    store: str
    widen: Spelling = b""
    narrow: Spelling = b""
    four: str = ""
    lanes: bytes = b""


_BYTES_U: Final = ops("i16x8.extend_low_i8x16_u i32x4.extend_low_i16x8_u")
_BYTES_S: Final = ops("i16x8.extend_low_i8x16_s i32x4.extend_low_i16x8_s")
_TRUE: Final = i32x4(0) + ops("i32x4.ne")
_UPPER: Final = i32(16) + ops("i32.shl f32.reinterpret_i32")


def _byte(d: DType) -> ElementAccess:
    """An integer of at most 8 bits."""
    load, lanes = ("i32.load8_s", _BYTES_S) if d.kind == "int" else ("i32.load8_u", _BYTES_U)
    return ElementAccess(load, "i32.store8", four="v128.load32_zero", lanes=lanes)


ELEMENTS: Final[Mapping[DType, ElementAccess]] = {
    bool_: ElementAccess("i32.load8_u", "i32.store8", four="v128.load32_zero", lanes=_BYTES_U + _TRUE),
    **{d: _byte(d) for d in (int8, uint8, *STORED) if d.is_int},
    int16: ElementAccess("i32.load16_s", "i32.store16", four="v128.load16x4_s"),
    uint16: ElementAccess("i32.load16_u", "i32.store16", four="v128.load16x4_u"),
    int32: ElementAccess("i32.load", "i32.store", four="v128.load"),
    uint32: ElementAccess("i32.load", "i32.store", four="v128.load"),
    int64: ElementAccess("i64.load", "i64.store"),
    uint64: ElementAccess("i64.load", "i64.store"),
    **{
        d: ElementAccess("i32.load8_u", "i32.store8", _call(f"{d}_to_float"), _call(f"float_to_{d}"))
        for d in STORED if d.is_float
    },
    float16: ElementAccess("i32.load16_u", "i32.store16", _call("half_to_float"), _call("float_to_half")),
    bfloat16: ElementAccess("i32.load16_u", "i32.store16", _UPPER, _call("float_to_bfloat16")),
    float32: ElementAccess("f32.load", "f32.store", four="v128.load"),
    float64: ElementAccess("f64.load", "f64.store"),
}  # fmt: skip
"""One row for each dtype that the target computes."""
_NARROW: Final = {
    1: (v128(bytes((0, 4, 8, 12, *[255] * 12))) + ops("i8x16.swizzle"), "v128.store32_lane"),
    2: (v128(bytes((0, 1, 4, 5, 8, 9, 12, 13, *[255] * 8))) + ops("i8x16.swizzle"), "v128.store64_lane"),
}
"""Bytes of an element ↦ instructions that pack the low bytes of four lanes, and store them."""
SIGN_OF_BYTES: Final = {int8: "s", uint8: "u"}
"""Element types of one byte that lanes take as they are ↦ how their sign is spelled."""
VECTOR_STORAGE: Final = frozenset(d for d, e in ELEMENTS.items() if e.four)
"""Element types that are loaded and stored four at a time."""


def load(stored: DType, offset: int) -> Spelling:
    """The element at the address on the stack, as its compute type."""
    element = ELEMENTS[stored]
    code = memory(element.load, offset)
    if isinstance(element.widen, bytes):
        return code + element.widen

    def spell(body: Body) -> None:
        body.add(code)
        body.apply(element.widen)

    return spell


def store(stored: DType, offset: int) -> Spelling:
    """Write the value on the stack at the address below it."""
    element = ELEMENTS[stored]
    code = memory(element.store, offset)
    if isinstance(element.narrow, bytes):
        return element.narrow + code

    def spell(body: Body) -> None:
        body.apply(element.narrow)
        body.add(code)

    return spell


def load_lanes(stored: DType, offset: int) -> bytes:
    """Four neighbouring elements."""
    element = ELEMENTS[stored]
    return memory(element.four, offset) + element.lanes


def store_lanes(stored: DType, offset: int) -> bytes:
    """Write four neighbouring elements."""
    if stored.size == 4:
        return memory("v128.store", offset)
    narrow, op = _NARROW[stored.size]
    return (i32x4(1) + ops("v128.and") if stored is bool_ else b"") + narrow + memory(op, offset) + b"\x00"


def is_near(stored: DType, step: int) -> bool:
    """Whether four elements at this distance are read by two loads."""
    return step == 1 or (stored.size == 4 and step in (2, 3))


def gather(stored: DType, offset: int, step: int) -> Spelling:
    """Four elements, each `step` elements after the one before it."""
    if is_near(stored, step):
        # Two of them are in the four neighbours from the first on, the others in those to the last.
        last = 3 * (step - 1)

        def spell_near(body: Body) -> None:
            at = body.local("i32")
            body.tee(at)
            body.add(memory("v128.load", offset))
            body.get(at)
            body.add(memory("v128.load", offset + last * stored.size) + shuffle(0, step, 7 - step, 7))
            body.free(at)

        return spell_near
    step *= stored.size

    def spell(body: Body) -> None:
        at = body.local("i32")
        body.set(at)
        _fill_lanes(body, stored, lambda _: body.get(at), lambda number: offset + number * step)
        body.free(at)

    return spell


def look_up(stored: DType) -> Spelling:
    """Four elements: of each its place is on the stack, in a lane, counted from the address below."""

    def spell(body: Body) -> None:
        at, places = body.local("i32"), body.local("v128")

        def address(number: int) -> None:
            body.get(at, places)
            body.add(extract(int32, number) + ops("i32.add"))

        body.add(i32(stored.size.bit_length() - 1) + ops("i32x4.shl"))
        body.set(places)
        body.set(at)
        _fill_lanes(body, stored, address, lambda _: 0)
        body.free(at, places)

    return spell


def _fill_lanes(body: Body, stored: DType, address: Callable[[int], None], offset: Callable[[int], int]) -> None:
    """Load each lane's element by itself: from the address that `address` pushes, and an offset."""
    replace = "f32x4.replace_lane" if stored is float32 else "i32x4.replace_lane"
    body.add(i32x4(0))
    for number in range(4):
        address(number)
        body.add(memory(ELEMENTS[stored].load, offset(number)) + lane(replace, number))
    body.add(_TRUE if stored is bool_ else b"")


def scatter(stored: DType, offset: int, step: int) -> Spelling:
    """Write four elements `step` bytes apart."""

    def spell(body: Body) -> None:
        at, value = body.local("i32"), body.local("v128")
        body.set(value)
        body.set(at)
        for number in range(4):
            body.get(at, value)
            body.add(extract(stored.compute, number) + memory(ELEMENTS[stored].store, offset + number * step))
        body.free(at, value)

    return spell
