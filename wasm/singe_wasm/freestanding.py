"""A freestanding module: a Program of known sizes as one WebAssembly module without imports, which any engine runs.

The module of the level "simd" gets a memory of its own with a fixed layout, in which data segments hold the words of the
Plan (driver.py) with addresses in place of buffers, the weights, the first values of states, and a text that describes
the module. All addresses are known when the module is written, so it needs no allocator. static/README.md, "The
freestanding module", documents its exports.

Weights may be in a second file, which the caller copies to the address `weights()`. The file ends with a mark, a part
of the hash of the weights, without which `run` refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from singe.extension import Check, DeviceError, Heap, Place, Plan, ProgramData, align, bytes_text, choose_variant

from .calls import NAME, function_number
from .code.encode import (
    OPS,
    Body,
    Function,
    i32,
    i64,
    integers,
    joined,
    memory,
    signature,
    text,
    unsigned_leb,
    vector,
    with_length,
)
from .executable import as_words

LEVEL: Final = "simd"
"""The module whose functions are taken: every engine with SIMD runs it."""
MARK: Final = 8
"""The bytes of the mark at the end of a file of weights."""
NO_WEIGHTS: Final = "the weights are missing, or are another module's"
ERRORS: Final = ("", NO_WEIGHTS)
"""The texts of what `run` returns. Behind them come those of the Program's checks, by the numbers of its stops."""
STOPPED: Final = 8
"""Where the number of a step for the caller is, in bytes from where the words stop."""
_PAGE: Final = 1 << 16
_MOST: Final = 1 << 32


def freestanding(program: ProgramData, facts: Mapping[str, Any], separate: bool) -> tuple[bytes, bytes]:
    """The module of a Program without open sizes, sizes found in mid-run and host steps, and its file of weights, which is
    empty if they are inside. facts: what the description says besides what is known here."""
    functions = [function_number(choose_variant(code, frozenset()).entry) for code in program.kernels]
    plan = Plan(program, {}, functions)
    starts, weights = _joined_blocks(program)
    mark = hashlib.sha256(weights).digest()[:MARK] if separate else b""
    file = weights + mark if separate else b""
    layout = _Layout()
    described = layout.add(_description(plan, facts, len(file)))
    first = layout.take(len(weights) + len(mark))
    if not separate:
        layout.put(first, weights)
    at: dict[Place, int] = {place: layout.take(plan.bytes(i)) for place, i in program.owners.items()}
    at |= {("slot", k): layout.take(count) for k, count in enumerate(program.slot_bytes({}))}

    def address(buffer: int) -> int:
        kind, number = plan.program.buffers[buffer].place
        if kind != "weights":
            return at[kind, number]
        start = program.start_of(number)
        return first + starts[start] + number - start

    reset = Body([])
    for state in program.states:
        here, count = address(state.buffer), plan.bytes(state.buffer)
        if state.initial is None:
            reset.add(i32(here) + i32(0) + i32(count) + OPS["memory.fill"])
        else:
            layout.put(here, program.view(program.buffers[state.initial]).tobytes())
            reset.add(i32(here) + i32(address(state.initial)) + i32(count) + OPS["memory.copy"])
    words = as_words(plan.words)
    for word in plan.named:
        words[word] = address(plan.words[word])
    begin = layout.add(_stored(words))
    added = {
        "metadata": _constant(described),
        "weights": _constant(first if separate else 0),
        "input": _chosen(layout, [address(i) for i in program.inputs]),
        "output": _chosen(layout, [address(i) for i in plan.program.outputs]),
        "reset": reset.finish(),
        "run": _run(begin, begin + words.nbytes, first + len(weights), mark),
    }
    binary = program.modules[LEVEL]
    assert isinstance(binary, bytes)
    return _extended(binary, added, layout), file


def _joined_blocks(program: ProgramData) -> tuple[Mapping[int, int], bytes]:
    """All weights, and where among them each block starts, by its start offset in the Program."""
    starts: dict[int, int] = {}
    parts: list[bytes] = []
    end = 0
    for start, block in program.blocks.items():
        starts[start] = end
        parts.append(block.tobytes().ljust(align(block.size), b"\0"))
        end += align(block.size)
    return starts, b"".join(parts)


def _stored(words: np.ndarray) -> bytes:
    return words.astype("<u4").tobytes()


class _Layout:
    """Places in a memory of fixed size, and the bytes with which it begins."""

    def __init__(self) -> None:
        self.end = 0
        self.segments: Final[dict[int, bytes]] = {}
        self.take: Final = Heap(self._grow).take

    def _grow(self, count: int) -> None:
        if count > _MOST:
            raise DeviceError(
                f"wasm: the module needs {bytes_text(count)} of memory or more, at most 4 GiB are possible"
            )
        self.end = count

    def put(self, address: int, data: bytes) -> None:
        """The bytes at an address when the module is instantiated."""
        if data.strip(b"\0"):
            self.segments[address] = data

    def add(self, data: bytes) -> int:
        """The address of these bytes."""
        address = self.take(len(data))
        self.put(address, data)
        return address


def _description(plan: Plan, facts: Mapping[str, Any], weights: int) -> bytes:
    """JSON in UTF-8, and a zero byte. weights: the bytes of their file."""

    def described(numbers: Sequence[int]) -> list[dict[str, Any]]:
        buffers = [(i, plan.program.buffers[i]) for i in numbers]
        return [
            {"name": b.name, "dtype": b.dtype.name, "shape": plan.shape(i), "bytes": plan.bytes(i)} for i, b in buffers
        ]

    data = {
        **facts,
        "inputs": described(plan.program.inputs),
        "outputs": described(plan.program.outputs),
        "states": [s.name for s in plan.program.states],
        "weights": weights,
        "errors": [*ERRORS, *(s.text for s in plan.program.stops if isinstance(s, Check))],
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\0"


# --- functions --------------------------------------------------------------------------------------------------------


def _constant(value: int) -> Function:
    body = Body([], ["i32"])
    body.add(i32(value))
    return body.finish()


def _chosen(layout: _Layout, addresses: Sequence[int]) -> Function:
    """(k): the k-th address, or 0 if there is none."""
    table = layout.add(_stored(as_words(addresses)))
    body = Body(integers(1), ["i32"])
    body.get(0)
    body.add(i32(len(addresses)) + OPS["i32.lt_u"])
    with body.when():
        body.get(0)
        body.add(i32(2) + OPS["i32.shl"] + memory("i32.load", table) + OPS["return"])
    body.add(i32(0))
    return body.finish()


def _run(start: int, end: int, marked: int, mark: bytes) -> Function:
    """Run the words from `start` to `end`, if the mark is in memory; the result is the number of an error."""
    body = Body([], ["i32"])
    if mark:
        body.add(i32(marked) + memory("i64.load") + i64(int.from_bytes(mark, "little")) + OPS["i64.ne"])
        with body.when():
            body.add(i32(ERRORS.index(NO_WEIGHTS)) + OPS["return"])
    body.add(i32(start) + i32(end))
    body.call(NAME)
    at = body.local("i32")
    body.set(at)
    body.get(at)
    body.add(i32(end) + OPS["i32.ne"])
    with body.when():  # at a check that does not hold: no other step is for a caller
        body.get(at)
        body.add(memory("i32.load", STOPPED) + i32(len(ERRORS)) + OPS["i32.add"] + OPS["return"])
    body.add(i32(0))
    return body.finish()


# --- the module -------------------------------------------------------------------------------------------------------


def _extended(binary: bytes, added: Mapping[str, Function], layout: _Layout) -> bytes:
    """A module of encode.module with these functions as its exports, besides its memory, which is inside and initialised."""
    old = _sections(binary)
    driver, _ = _read(old[7], old[7].index(text(NAME) + b"\0") + len(text(NAME)) + 1)
    types, kind = _longer(old[1], [signature(f.signature) for f in added.values()])
    kinds, number = _longer(old[3], [unsigned_leb(kind + k) for k in range(len(added))])
    bodies, _ = _longer(old[10], [f.linked({NAME: driver}, False) for f in added.values()])
    pages = unsigned_leb(-(-layout.end // _PAGE))
    exports = [text(name) + b"\x00" + unsigned_leb(k) for k, name in enumerate(added, number)]
    segments = [b"\x00" + i32(at) + b"\x0b" + with_length(data) for at, data in sorted(layout.segments.items())]
    return joined({
        1: types,
        3: kinds,
        5: vector([b"\x01" + pages + pages]),
        7: vector([text("memory") + b"\x02\x00", *exports]),
        10: bodies,
        11: vector(segments),
    })  # fmt: skip


def _sections(binary: bytes) -> dict[int, bytes]:
    """The sections of a module by number."""
    found: dict[int, bytes] = {}
    at = 8
    while at < len(binary):
        count, start = _read(binary, at + 1)
        found[binary[at]] = binary[start : start + count]
        at = start + count
    return found


def _longer(section: bytes, items: Sequence[bytes]) -> tuple[bytes, int]:
    """A vector with more items at its end, and the number of the first of them."""
    count, start = _read(section, 0)
    return unsigned_leb(count + len(items)) + section[start:] + b"".join(items), count


def _read(data: bytes, at: int) -> tuple[int, int]:
    """The LEB128 number at a position, and where it ends."""
    value = shift = 0
    while data[at] > 0x7F:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1
