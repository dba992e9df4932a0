"""The Program: the compiled artifact, plain data that any runner can execute and that can be written to disk.

static/README.md documents the format, word for word what `save` writes. A Program names its buffers; a runner gives
each one memory (weights at an offset, scratch in a slot, inputs and outputs owned by the caller) and walks the steps.

Slots are how memory is planned: a slot is a piece of scratch that several buffers share, one after the other. Slots
never overlap, so a runner may give each its own GPU buffer (WebGPU forbids one buffer read and written in a dispatch)
or lay them out in one memory; a slot's bytes are the largest of its buffers', evaluated when the sizes are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from . import _shape
from ._dtypes import DType, bool_, uint8
from ._errors import DeviceError, FormatError, InputError, ShapeError
from ._shape import Dim, Shape, Size, product, symbols
from .container import ALIGN, align, checking, count, cut, decode_attr, element_type, encode_attr, read, write
from .container import PROGRAM as FORMAT

PLACES: Final = ("weights", "slot", "input", "output")
WIDENED: Final = (bool_, uint8)
"""What may lie in device memory as uint32s."""


def aligned(count: int) -> np.ndarray:
    """So many bytes, zeros, at an address that is a multiple of ALIGN."""
    room = np.zeros(count + ALIGN, np.uint8)
    start = -room.__array_interface__["data"][0] % ALIGN
    return room[start : start + count]


def stored_type(kind: DType, size: int) -> np.dtype[Any]:
    """The NumPy type of an element that takes `size` bytes in device memory: its own, or a wider one; see WIDENED."""
    return kind.numpy if size == kind.size else np.dtype(np.uint32)


@dataclass(frozen=True)
class Buffer:
    """A buffer: `size` is the bytes of one element in device memory, `place` where it lies.

    place is ("weights", byte offset), ("slot", number), ("input", number) or ("output", number).
    """

    name: str
    dtype: DType
    shape: Shape
    size: int
    place: tuple[str, int]

    @property
    def bytes(self) -> Dim:
        return product(self.shape) * self.size


@dataclass(frozen=True)
class Variant:
    """One tuning of a kernel: the entry to call and what it requires of the device (all of `requires`).

    groups: workgroups of a dispatch in x, y, z for a GPU; a runner whose limit x exceeds spreads x over x and y
    (the kernel takes its number as x + y · count of x).
    """

    entry: str
    requires: tuple[str, ...] = ()
    groups: tuple[Dim, Dim, Dim] = (1, 1, 1)


@dataclass(frozen=True)
class Code:
    """A kernel of a Program: variants in order of preference, and the sizes handed to it as int32, in order.

    label is for people; flops and bytes count floating-point operations and bytes moved, as dimensions. workspace:
    whether the last port is one, of which every part of a run that is shared among threads needs its own.
    """

    label: str
    kind: str
    ports: int
    sizes: tuple[Dim, ...]
    variants: tuple[Variant, ...]
    flops: Dim = 0
    bytes: Dim = 0
    workspace: bool = False


@dataclass(frozen=True)
class Dispatch:
    """Run kernel number `kernel` over buffers, one for each port, in order."""

    kernel: int
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class Copy:
    """Copy all of one buffer to another."""

    source: int
    target: int


@dataclass(frozen=True)
class Host:
    """Run an op on the host over whole arrays (every step of the numpy backend; ops of data-dependent shape elsewhere)."""

    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class If:
    """Run one branch, by a bool buffer's first element."""

    condition: int
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True)
class Loop:
    """Run the body while the bool buffer `condition` holds, at most `limit` (an int64 buffer) times; no limit where None."""

    condition: int
    limit: int | None
    body: tuple[Step, ...]


Step: TypeAlias = "Dispatch | Copy | Host | If | Loop"


def choose_variant(code: Code, features: frozenset[str]) -> Variant:
    """The first variant that the device can run."""
    for v in code.variants:
        if features.issuperset(v.requires):
            return v
    wanted = " or ".join(", ".join(v.requires) for v in code.variants)
    raise DeviceError(
        f"kernel {code.label!r} requires {wanted}, which this device lacks; compile the model for it again"
    )


@dataclass(frozen=True)
class Program:
    """See the module's docstring. `modules` is the target's code by name: WGSL text or a WebAssembly module's bytes."""

    target: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    slots: int
    kernels: tuple[Code, ...]
    steps: tuple[Step, ...]
    modules: Mapping[str, str | bytes]
    weights: np.ndarray  # uint8, one block; buffers placed in it start at multiples of ALIGN
    facts: Mapping[str, Any] = field(default_factory=dict)  # for people: op counts, what was fused
    seconds: float = field(
        default=0.0, compare=False
    )  # how long it took to compile; not saved, so that equal models give equal files

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the dimensions that a run decides."""
        return symbols([self.buffers[i].shape for i in self.inputs])

    def sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """The symbolic sizes that the shapes of the inputs decide; every mismatch is an error that names the input."""
        found: dict[str, int] = {}
        wanted = [self.buffers[i] for i in self.inputs]
        missing = [b.name for b in wanted if b.name not in shapes]
        unknown = [n for n in shapes if n not in {b.name for b in wanted}]
        if missing or unknown:
            takes = ", ".join(b.name for b in wanted) or "none"
            raise InputError(
                f"inputs: missing {missing or 'none'}, unknown {unknown or 'none'}; this program takes {takes}"
            )
        for b in wanted:
            shape = shapes[b.name]
            if len(shape) != len(b.shape):
                raise ShapeError(f"input {b.name!r}: got shape {shape}, expected {_shape.show(b.shape)}")
            for given, d in zip(shape, b.shape, strict=True):
                if isinstance(d, Size) and d == _shape.size(str(d)) and found.setdefault(str(d), given) != given:
                    raise ShapeError(
                        f"input {b.name!r}: got shape {shape}, but {d} is {found[str(d)]} in another input"
                    )
        for b in wanted:
            if tuple(_shape.evaluate(d, found) for d in b.shape) != shapes[b.name]:
                raise ShapeError(f"input {b.name!r}: got shape {shapes[b.name]}, expected {_shape.show(b.shape)}")
        return found

    def bound(self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[DType]) -> dict[str, int]:
        """The same for inputs in order, of these dtypes."""
        wanted = [self.buffers[i] for i in self.inputs]
        if len(shapes) != len(wanted):
            raise InputError(f"the program takes {len(wanted)} inputs, got {len(shapes)}")
        for kind, b in zip(kinds, wanted, strict=True):
            if kind is not b.dtype:
                raise InputError(f"input {b.name!r}: got {kind}, expected {b.dtype}")
        return self.sizes({b.name: shape for b, shape in zip(wanted, shapes, strict=True)})

    def slot_bytes(self, sizes: Mapping[str, int]) -> list[int]:
        """How many bytes each slot takes at these sizes, aligned."""
        out = [0] * self.slots
        for b in self.buffers:
            if b.place[0] == "slot":
                out[b.place[1]] = max(out[b.place[1]], align(_shape.known(b.bytes, sizes)))
        return out

    def peak(self, sizes: Mapping[str, int]) -> int:
        """Bytes of scratch at these sizes."""
        return sum(self.slot_bytes(sizes))

    def view(self, buffer: Buffer) -> np.ndarray:
        """The bytes of a buffer that lies in the weights."""
        return self.weights[buffer.place[1] : buffer.place[1] + _shape.known(buffer.bytes, {})]

    def save(self, path: str | Path) -> None:
        """Write the Program to one file."""
        Path(path).write_bytes(to_bytes(self))

    @staticmethod
    def load(path: str | Path) -> Program:
        """Read what `save` wrote; a file that is not one raises FormatError."""
        try:
            data = Path(path).read_bytes()
        except OSError as e:
            raise InputError(f"cannot read the program {path}: {e.strerror}") from e
        return from_bytes(data, str(path))


# --- the format ------------------------------------------------------------------------------------------------------


def header(program: Program) -> dict[str, Any]:
    """The Program without its bytes, as JSON data."""
    return {
        "format": FORMAT,
        "target": program.target,
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "slots": program.slots,
        "buffers": [
            {
                "name": b.name,
                "dtype": b.dtype.name,
                "shape": [_shape.encode(d) for d in b.shape],
                "size": b.size,
                "place": list(b.place),
            }
            for b in program.buffers
        ],
        "kernels": [
            {
                "label": k.label,
                "kind": k.kind,
                "ports": k.ports,
                "sizes": [_shape.encode(d) for d in k.sizes],
                "variants": [
                    {"entry": v.entry, "requires": list(v.requires), "groups": [_shape.encode(d) for d in v.groups]}
                    for v in k.variants
                ],
                "flops": _shape.encode(k.flops),
                "bytes": _shape.encode(k.bytes),
                "workspace": k.workspace,
            }
            for k in program.kernels
        ],
        "steps": [_step_data(s) for s in program.steps],
        "facts": dict(program.facts),
    }


def to_bytes(program: Program) -> bytes:
    """The file that `save` writes."""
    head = header(program)
    block = bytearray(program.weights.tobytes())
    blocks: dict[str, Any] = {"weights": [0, len(block)]}
    modules: dict[str, Any] = {}
    for name, code in program.modules.items():
        raw = code.encode() if isinstance(code, str) else code
        block.extend(bytes(align(len(block)) - len(block)))
        modules[name] = {"kind": "text" if isinstance(code, str) else "bytes", "at": [len(block), len(raw)]}
        block.extend(raw)
    return write(head | {"blocks": blocks, "modules": modules}, block)


def from_bytes(data: bytes, name: str = "program") -> Program:
    """Read a program file; everything in it is checked before use."""
    head, block = read(data, name, FORMAT)
    with checking(name):
        return _decode(head, block, name)


def _decode(head: Any, block: memoryview, name: str) -> Program:
    weights = np.frombuffer(cut(block, head["blocks"]["weights"], "weights"), np.uint8)
    modules = {k: bytes(cut(block, m["at"], f"module {k}")) for k, m in head["modules"].items()}
    buffers = tuple(
        Buffer(
            str(b["name"]),
            element_type(b["dtype"]),
            tuple(_shape.decode(d) for d in b["shape"]),
            count(b["size"]),
            (str(b["place"][0]), count(b["place"][1])),
        )
        for b in head["buffers"]
    )
    program = Program(
        target=str(head["target"]),
        inputs=tuple(map(count, head["inputs"])),
        outputs=tuple(map(count, head["outputs"])),
        buffers=buffers,
        slots=count(head["slots"]),
        kernels=tuple(
            Code(
                str(k["label"]),
                str(k["kind"]),
                count(k["ports"]),
                tuple(_shape.decode(d) for d in k["sizes"]),
                tuple(map(_variant, k["variants"])),
                _shape.decode(k["flops"]),
                _shape.decode(k["bytes"]),
                bool(k["workspace"]),
            )
            for k in head["kernels"]
        ),
        steps=tuple(_step(s, 0) for s in head["steps"]),
        modules={k: m.decode() if head["modules"][k]["kind"] == "text" else m for k, m in modules.items()},
        weights=weights,
        facts=dict(head["facts"]),
    )
    _check(program, name)
    return program


def _variant(data: Any) -> Variant:
    x, y, z = (_shape.decode(d) for d in data["groups"])
    return Variant(str(data["entry"]), tuple(map(str, data["requires"])), (x, y, z))


def _check(p: Program, name: str) -> None:
    """Every number that points somewhere points somewhere."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise FormatError(f"{name}: {what}")

    need(p.slots <= len(p.buffers), f"{p.slots} slots for {len(p.buffers)} buffers")
    for k, b in enumerate(p.buffers):
        kind, at = b.place
        need(
            all(isinstance(d, Size) or d >= 0 for d in b.shape),
            f"buffer {k} has a negative dimension: {_shape.show(b.shape)}",
        )
        need(
            b.size == b.dtype.size or (b.size == 4 and b.dtype in WIDENED),
            f"buffer {k} holds {b.dtype} in elements of {b.size} bytes",
        )
        need(kind in PLACES, f"buffer {k} has the place {kind!r}, expected one of {PLACES}")
        need(kind != "slot" or at < p.slots, f"buffer {k} lies in slot {at} of {p.slots}")
        need(kind != "input" or at < len(p.inputs), f"buffer {k} is input {at} of {len(p.inputs)}")
        need(kind != "output" or at < len(p.outputs), f"buffer {k} is output {at} of {len(p.outputs)}")
        if kind == "weights":
            taken = b.bytes
            need(
                isinstance(taken, int) and at % ALIGN == 0 and at + taken <= p.weights.size,
                f"buffer {k} takes {taken} bytes at {at} of {p.weights.size}",
            )
    for i in (*p.inputs, *p.outputs):
        need(i < len(p.buffers), f"an input or output is buffer {i} of {len(p.buffers)}")
    for number, i in enumerate(p.inputs):
        need(
            p.buffers[i].place == ("input", number), f"input {number} is buffer {i}, which lies in {p.buffers[i].place}"
        )
    for k in p.kernels:
        need(
            bool(k.variants) and all(len(v.groups) == 3 for v in k.variants),
            f"kernel {k.label!r} has no complete variant",
        )
        for v in k.variants:
            need(
                v.entry.partition(":")[0] in p.modules,
                f"kernel {k.label!r} is in the module {v.entry!r}, which is not there",
            )

    def walk(steps: tuple[Step, ...]) -> None:
        for s in steps:
            if isinstance(s, Dispatch):
                need(s.kernel < len(p.kernels), f"a step runs kernel {s.kernel} of {len(p.kernels)}")
                ports = p.kernels[s.kernel].ports
                need(
                    len(s.buffers) == ports,
                    f"a step gives {len(s.buffers)} buffers to kernel {s.kernel}, which takes {ports}",
                )
            for i in _named(s):
                need(i < len(p.buffers), f"a step names buffer {i} of {len(p.buffers)}")
            if isinstance(s, If):
                walk(s.then)
                walk(s.otherwise)
            elif isinstance(s, Loop):
                walk(s.body)

    walk(p.steps)


def _named(s: Step) -> tuple[int, ...]:
    if isinstance(s, Dispatch):
        return s.buffers
    if isinstance(s, Copy):
        return s.source, s.target
    if isinstance(s, Host):
        return *s.inputs, *s.outputs
    return (s.condition,) if isinstance(s, If) or s.limit is None else (s.condition, s.limit)


def _step_data(s: Step) -> dict[str, Any]:
    if isinstance(s, Dispatch):
        return {"do": "dispatch", "kernel": s.kernel, "buffers": list(s.buffers)}
    if isinstance(s, Copy):
        return {"do": "copy", "source": s.source, "target": s.target}
    if isinstance(s, Host):
        return {
            "do": "host",
            "op": s.op,
            "attrs": {k: encode_attr(v) for k, v in s.attrs.items()},
            "inputs": list(s.inputs),
            "outputs": list(s.outputs),
        }
    if isinstance(s, If):
        return {
            "do": "if",
            "condition": s.condition,
            "then": [_step_data(x) for x in s.then],
            "else": [_step_data(x) for x in s.otherwise],
        }
    return {"do": "loop", "condition": s.condition, "limit": s.limit, "body": [_step_data(x) for x in s.body]}


def _step(data: Any, depth: int) -> Step:
    if depth > 32:
        raise ValueError("steps are nested more than 32 deep")
    kind = data["do"]
    if kind == "dispatch":
        return Dispatch(count(data["kernel"]), tuple(map(count, data["buffers"])))
    if kind == "copy":
        return Copy(count(data["source"]), count(data["target"]))
    if kind == "host":
        return Host(
            str(data["op"]),
            {k: decode_attr(v) for k, v in data["attrs"].items()},
            tuple(map(count, data["inputs"])),
            tuple(map(count, data["outputs"])),
        )
    if kind == "if":
        return If(
            count(data["condition"]),
            tuple(_step(s, depth + 1) for s in data["then"]),
            tuple(_step(s, depth + 1) for s in data["else"]),
        )
    if kind == "loop":
        return Loop(
            count(data["condition"]),
            None if data["limit"] is None else count(data["limit"]),
            tuple(_step(s, depth + 1) for s in data["body"]),
        )
    raise ValueError(f"a step does {kind!r}, expected dispatch, copy, host, if or loop")
