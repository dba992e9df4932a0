"""WebAssembly's binary format: an assembler for function bodies, and modules made of them.

OPS maps instruction names to their bytes; `ops("f32.abs f32.neg")` joins a few. A Body collects instructions, locals
and patches: the bytes that linking decides, which are the numbers of called functions and whether a multiply-add is one
relaxed instruction or two. A Function is a finished Body: frozen, comparable by value. `module` links Functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

Type: TypeAlias = Literal["i32", "i64", "f32", "f64", "v128"]
Spelling: TypeAlias = "bytes | Callable[[Body], None]"
"""Code that turns the arguments on the stack into the result: instructions, or a function that writes them."""

TYPES: Final[Mapping[Type, bytes]] = {"i32": b"\x7f", "i64": b"\x7e", "f32": b"\x7d", "f64": b"\x7c", "v128": b"\x7b"}


@lru_cache(maxsize=8192)
def unsigned_leb(value: int) -> bytes:
    """LEB128 of a number ≥ 0."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=8192)
def signed_leb(value: int) -> bytes:
    """LEB128 of a signed number."""
    out = bytearray()
    while not -0x40 <= value <= 0x3F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


def _numbered(first: int, names: str) -> dict[str, int]:
    """Names with consecutive opcodes; "-" skips one."""
    return {name: first + i for i, name in enumerate(names.split()) if name != "-"}


_PLAIN: Final = {
    "unreachable": 0x00, "return": 0x0F, "drop": 0x1A, "select": 0x1B,
    **_numbered(0x28, "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u"),
    **_numbered(0x36, "i32.store i64.store f32.store f64.store i32.store8 i32.store16"),
    **_numbered(0x45, "i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u"),
    **_numbered(0x50, "i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u"),
    **_numbered(0x5B, "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"),
    **_numbered(0x67, "i32.clz i32.ctz i32.popcnt i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u"),
    **_numbered(0x71, "i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr"),
    **_numbered(0x79, "i64.clz i64.ctz i64.popcnt i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u"),
    **_numbered(0x83, "i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr"),
    **_numbered(0x8B, "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"),
    **_numbered(0x92, "f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"),
    **_numbered(0x99, "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"),
    **_numbered(0xA0, "f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"),
    "i32.wrap_i64": 0xA7, "i64.extend_i32_s": 0xAC, "i64.extend_i32_u": 0xAD,
    **_numbered(0xB2, "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64"),
    **_numbered(0xB7, "f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32"),
    "i32.reinterpret_f32": 0xBC, "i64.reinterpret_f64": 0xBD, "f32.reinterpret_i32": 0xBE, "f64.reinterpret_i64": 0xBF,
}  # fmt: skip
_SATURATING: Final = _numbered(
    0, " ".join(f"{i}.trunc_sat_{f}_{s}" for i in ("i32", "i64") for f in ("f32", "f64") for s in "su")
)
_SIMD: Final = {
    "v128.load": 0, "v128.load8x8_s": 1, "v128.load16x4_s": 3, "v128.load16x4_u": 4,
    "v128.load32_splat": 9, "v128.load64_splat": 10, "v128.store": 11, "i8x16.shuffle": 13, "i8x16.swizzle": 14,
    "i32x4.splat": 17, "f32x4.splat": 19, "f64x2.splat": 20,
    "i32x4.extract_lane": 27, "i32x4.replace_lane": 28, "f32x4.extract_lane": 31, "f32x4.replace_lane": 32,
    **_numbered(55, "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u"),
    **_numbered(65, "f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge"),
    **_numbered(77, "v128.not v128.and v128.andnot v128.or v128.xor v128.bitselect v128.any_true"),
    "v128.load32_lane": 86, **_numbered(88, "v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane v128.load32_zero"),
    "f32x4.demote_f64x2_zero": 94, "f64x2.promote_low_f32x4": 95,
    "i8x16.narrow_i16x8_u": 102, "i8x16.min_u": 119, "i16x8.narrow_i32x4_s": 133, "i16x8.min_s": 150, "i16x8.max_s": 152,
    **_numbered(103, "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"),
    **_numbered(135, "i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u"),
    **_numbered(167, "i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u"),
    "i16x8.shr_u": 141, "i16x8.add": 142, "f64x2.nearest": 148, "i32x4.abs": 160, "i32x4.neg": 161,
    **_numbered(171, "i32x4.shl i32x4.shr_s i32x4.shr_u i32x4.add"), "i32x4.sub": 177,
    **_numbered(181, "i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u i32x4.dot_i16x8_s"),
    **_numbered(224, "f32x4.abs f32x4.neg - f32x4.sqrt f32x4.add f32x4.sub f32x4.mul f32x4.div f32x4.min f32x4.max f32x4.pmin f32x4.pmax"),
    **_numbered(236, "f64x2.abs f64x2.neg - f64x2.sqrt f64x2.add f64x2.sub f64x2.mul f64x2.div"),
    **_numbered(248, "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u"),
    "i32x4.trunc_sat_f64x2_s_zero": 252, "f32x4.relaxed_madd": 261,
    "i16x8.relaxed_dot_i8x16_i7x16_s": 274, "i32x4.relaxed_dot_i8x16_i7x16_add_s": 275,
}  # fmt: skip

OPS: Final[Mapping[str, bytes]] = (
    {name: bytes([code]) for name, code in _PLAIN.items()}
    | {name: b"\xfc" + unsigned_leb(code) for name, code in _SATURATING.items()}
    | {name: b"\xfd" + unsigned_leb(code) for name, code in _SIMD.items()}
    | {"select.v128": b"\x1c\x01" + TYPES["v128"], "memory.copy": b"\xfc\x0a\x00\x00", "memory.fill": b"\xfc\x0b\x00"}
)
"""Instructions that only use the stack, and the opcodes of those that also take a memory offset or a lane."""

_ATOMICS: Final = {
    "memory.atomic.notify": (0x00, 2), "memory.atomic.wait32": (0x01, 2), "memory.atomic.wait64": (0x02, 3),
    "i32.atomic.load": (0x10, 2), "i64.atomic.load": (0x11, 3), "i32.atomic.store": (0x17, 2), "i64.atomic.store": (0x18, 3),
    "i32.atomic.rmw.add": (0x1E, 2), "i32.atomic.rmw.sub": (0x25, 2), "i64.atomic.rmw.cmpxchg": (0x49, 3),
}  # fmt: skip
"""Instructions on words that threads share: the opcode, and the alignment that it must name."""


@lru_cache(maxsize=1024)
def ops(names: str) -> bytes:
    """A few instructions after each other."""
    return b"".join(OPS[n] for n in names.split())


@lru_cache(maxsize=8192)
def memory(name: str, offset: int = 0) -> bytes:
    """A load or store at a constant offset from the address on the stack (no promise on alignment)."""
    return OPS[name] + b"\x00" + unsigned_leb(offset)


def atomic(name: str, offset: int = 0) -> bytes:
    """An instruction of _ATOMICS at a constant offset from the address on the stack."""
    code, alignment = _ATOMICS[name]
    return bytes([0xFE, code, alignment]) + unsigned_leb(offset)


@lru_cache(maxsize=1024)
def get_local(number: int) -> bytes:
    """Push a local."""
    return b"\x20" + unsigned_leb(number)


@lru_cache(maxsize=1024)
def set_local(number: int) -> bytes:
    """Pop a local."""
    return b"\x21" + unsigned_leb(number)


def lane(name: str, number: int) -> bytes:
    """An extract_lane or replace_lane."""
    return OPS[name] + bytes([number])


@lru_cache(maxsize=8192)
def i32(value: int) -> bytes:
    return b"\x41" + signed_leb((value + (1 << 31)) % (1 << 32) - (1 << 31))


def i64(value: int) -> bytes:
    return b"\x42" + signed_leb((value + (1 << 63)) % (1 << 64) - (1 << 63))


def f32(value: float) -> bytes:
    return b"\x43" + struct.pack("<f", value)


def f64(value: float) -> bytes:
    return b"\x44" + struct.pack("<d", value)


def v128(lanes: bytes) -> bytes:
    """A constant vector of 16 bytes."""
    return b"\xfd\x0c" + lanes


def f32x4(value: float) -> bytes:
    return v128(struct.pack("<4f", *[value] * 4))


def i32x4(*lanes: int) -> bytes:
    """A constant vector of four integers, or of one four times."""
    values = lanes * 4 if len(lanes) == 1 else lanes
    return v128(struct.pack("<4i", *((v + (1 << 31)) % (1 << 32) - (1 << 31) for v in values)))


def shuffle(*lanes: int) -> bytes:
    """Four of the eight 32-bit lanes of two vectors."""
    return OPS["i8x16.shuffle"] + bytes(4 * n + b for n in lanes for b in range(4))


@dataclass(frozen=True)
class Signature:
    params: tuple[Type, ...]
    results: tuple[Type, ...] = ()


class Patch(NamedTuple):
    """Bytes of a body, from `start` to `stop`, that linking may replace: a call (by name) or a multiply-add's start."""

    start: int
    stop: int
    call: str | None = None
    relaxed: bytes = b""


@dataclass(frozen=True)
class Function:
    """A finished body."""

    signature: Signature
    locals: tuple[Type, ...]
    code: bytes
    patches: tuple[Patch, ...]

    @property
    def calls(self) -> tuple[str, ...]:
        """The functions that it calls, each once."""
        return tuple(dict.fromkeys(p.call for p in self.patches if p.call is not None))

    def linked(self, numbers: Mapping[str, int], relaxed: bool) -> bytes:
        """The entry of the code section."""
        parts = [_local_runs(self.locals)]
        at = 0
        for p in self.patches:
            if p.call is None and not relaxed:
                continue
            parts += (self.code[at : p.start], p.relaxed if p.call is None else b"\x10" + unsigned_leb(numbers[p.call]))
            at = p.stop
        parts += (self.code[at:], b"\x0b")
        return with_length(b"".join(parts))


@lru_cache(maxsize=1024)
def _vector_multiply_add(into: int) -> tuple[bytes, bytes]:
    """The instructions that round twice, and those of relaxed SIMD."""
    get, put = get_local(into), set_local(into)
    return OPS["f32x4.mul"] + get + OPS["f32x4.add"] + put, get + OPS["f32x4.relaxed_madd"] + put


def integers(count: int) -> list[Type]:
    """That many i32 parameters: addresses and sizes."""
    return ["i32" for _ in range(count)]


class Body:
    """An assembler for one function: instructions, locals, and loops as context managers."""

    def __init__(self, params: Sequence[Type], results: Sequence[Type] = ()) -> None:
        self.signature: Final = Signature(tuple(params), tuple(results))
        self._code = bytearray()
        self._locals: list[Type] = []
        self._free: Final[dict[Type, list[int]]] = {kind: [] for kind in TYPES}
        self._patches: list[Patch] = []
        self._just_set: int | None = None  # the local of the last `set`, and
        self._set_end = 0  # where the code ended after it

    def finish(self) -> Function:
        return Function(self.signature, tuple(self._locals), bytes(self._code), tuple(self._patches))

    def local(self, kind: Type) -> int:
        """A local to write before it is read."""
        free = self._free[kind]
        if free:
            return free.pop()
        self._locals.append(kind)
        return len(self.signature.params) + len(self._locals) - 1

    def free(self, *numbers: int) -> None:
        """Give locals back for reuse."""
        first = len(self.signature.params)
        for n in numbers:
            self._free[self._locals[n - first]].append(n)

    def add(self, code: bytes) -> None:
        self._code += code

    def op(self, *names: str) -> None:
        for name in names:
            self._code += OPS[name]

    def apply(self, spelling: Spelling) -> None:
        if isinstance(spelling, bytes):
            self._code += spelling
        else:
            spelling(self)

    def get(self, *numbers: int) -> None:
        for n in numbers:
            if self._just_set == n and self._set_end == len(self._code):  # set and get: tee
                self._code[len(self._code) - len(unsigned_leb(n)) - 1] = 0x22
                self._just_set = None
            else:
                self._code += get_local(n)

    def set(self, number: int) -> None:
        self._code += set_local(number)
        self._just_set, self._set_end = number, len(self._code)

    def tee(self, number: int) -> None:
        self._code += b"\x22" + unsigned_leb(number)

    def call(self, name: str) -> None:
        start = len(self._code)
        self._code += b"\x10"
        self._patches.append(Patch(start, start + 1, call=name))

    def multiply_add(self, into: int, vector: bool = True) -> None:
        """into += a · b, for a, b on the stack; rounded once if the linked level has relaxed SIMD, also for scalars."""
        start = len(self._code)
        if vector:
            plain, relaxed = _vector_multiply_add(into)
            self._code += plain
        else:
            get, put = get_local(into), set_local(into)
            self._code += OPS["f32.mul"] + get + OPS["f32.add"] + put
            # Only vectors have an instruction that rounds once; using it for scalars too gives every path the same sum.
            splat, b = OPS["f32x4.splat"], self.local("f32")
            operands = set_local(b) + splat + get_local(b) + splat + get + splat
            relaxed = operands + OPS["f32x4.relaxed_madd"] + lane("f32x4.extract_lane", 0) + put
            self.free(b)
        self._patches.append(Patch(start, len(self._code), relaxed=relaxed))

    def multiply_then_add(self, vector: bool = True) -> None:
        """a · b + c of three values on the stack; rounded once if the linked level has relaxed SIMD, also for scalars."""
        kind, prefix = ("v128", "f32x4") if vector else ("f32", "f32")
        start, c = len(self._code), self.local(kind)
        self._code += set_local(c) + OPS[f"{prefix}.mul"] + get_local(c) + OPS[f"{prefix}.add"]
        relaxed = OPS["f32x4.relaxed_madd"]
        if not vector:
            splat, b = OPS["f32x4.splat"], self.local("f32")
            operands = set_local(c) + set_local(b) + splat + get_local(b) + splat + get_local(c) + splat
            relaxed = operands + relaxed + lane("f32x4.extract_lane", 0)
            self.free(b)
        self.free(c)
        self._patches.append(Patch(start, len(self._code), relaxed=relaxed))

    def increase(self, local: int, by: int) -> None:
        """local += by."""
        self.get(local)
        self._code += i32(by) + OPS["i32.add"]
        self.set(local)

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block, which `exit_if` leaves."""
        self._code += b"\x02\x40"
        yield
        self._code += b"\x0b"

    def exit_if(self) -> None:
        self._code += b"\x0d\x00"

    @contextmanager
    def repeat(self) -> Iterator[None]:
        """A loop that runs again as long as the i32 that its body leaves on the stack is not 0."""
        self._code += b"\x03\x40"
        yield
        self._code += b"\x0d\x00\x0b"

    @contextmanager
    def when(self) -> Iterator[None]:
        """Code that runs if the i32 on the stack is not 0."""
        self._code += b"\x04\x40"
        yield
        self._code += b"\x0b"

    def otherwise(self) -> None:
        """The start of the other branch of `when`."""
        self._code += b"\x05"

    @contextmanager
    def count(self, local: int, limit: Spelling, step: int = 1, sure: bool = False) -> Iterator[None]:
        """A loop while local < limit (code that pushes it), from the local's value; sure: it runs at least once."""
        if not sure:
            self._code += b"\x02\x40"
            self.get(local)
            self.apply(limit)
            self._code += OPS["i32.ge_s"] + b"\x0d\x00"
        with self.repeat():
            yield
            self.increase(local, step)
            self.get(local)
            self.apply(limit)
            self._code += OPS["i32.lt_s"]
        if not sure:
            self._code += b"\x0b"


FunctionWriters: TypeAlias = Mapping[str, Callable[[], Function]]
"""Names of functions ↦ what writes each."""


class FunctionLibrary(Mapping[str, Function]):
    """Functions by name, each written when it is first asked for."""

    def __init__(self, writers: FunctionWriters) -> None:
        self._writers: Final = writers
        self._written: Final[dict[str, Function]] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._written:
            self._written[name] = self._writers[name]()
        return self._written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)

    def __len__(self) -> int:
        return len(self._writers)


# --- modules ---------------------------------------------------------------------------------------------------------


def with_length(content: bytes) -> bytes:
    return unsigned_leb(len(content)) + content


def vector(items: Sequence[bytes]) -> bytes:
    return unsigned_leb(len(items)) + b"".join(items)


def text(name: str) -> bytes:
    return with_length(name.encode())


def _local_runs(kinds: tuple[Type, ...]) -> bytes:
    runs: list[tuple[int, Type]] = []
    for kind in kinds:
        if runs and runs[-1][1] == kind:
            runs[-1] = (runs[-1][0] + 1, kind)
        else:
            runs.append((1, kind))
    return vector([unsigned_leb(count) + TYPES[kind] for count, kind in runs])


def signature(s: Signature) -> bytes:
    return b"\x60" + vector([TYPES[t] for t in s.params]) + vector([TYPES[t] for t in s.results])


def module(exports: Mapping[str, Function], library: Mapping[str, Function], relaxed: bool) -> bytes:
    """A module that imports env.memory and exports functions; other functions that they call come from the library."""
    called: dict[str, Function] = {}
    waiting = [name for f in exports.values() for name in f.calls if name not in exports]
    while waiting:
        name = waiting.pop()
        if name not in called:
            called[name] = library[name]
            waiting += library[name].calls
    functions = [*called.values(), *exports.values()]
    numbers = {name: i for i, name in enumerate((*called, *exports))}
    signatures = list(dict.fromkeys(f.signature for f in functions))
    exported = [text(name) + b"\x00" + unsigned_leb(numbers[name]) for name in exports]
    sections = {
        1: vector([signature(s) for s in signatures]),
        2: vector([text("env") + text("memory") + b"\x02\x00\x00"]),
        3: vector([unsigned_leb(signatures.index(f.signature)) for f in functions]),
        7: vector(exported),
        10: vector([f.linked(numbers, relaxed) for f in functions]),
    }
    return joined(sections)


def joined(sections: Mapping[int, bytes]) -> bytes:
    """A module of sections by number, which are in the order of the format."""
    return b"\0asm\x01\0\0\0" + b"".join(bytes([number]) + with_length(content) for number, content in sections.items())
