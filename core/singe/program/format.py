"""The file format of a Program: what `write_program` writes, and `read_program` checks before anything is used.

static/README.md documents it field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import shapes
from ..dtypes import string
from ..errors import FormatError, InputError
from ..shapes import Dim, Size, evaluate, symbols
from .block import alone
from .container import (
    ALIGN,
    align,
    bytes_at,
    checking,
    count,
    decode_attr,
    decode_dim,
    dtype_named,
    encode_attr,
    encode_dim,
    read,
    write,
)
from .container import PROGRAM as FORMAT
from .program import (
    PLACES,
    Bind,
    Buffer,
    Check,
    Code,
    Copy,
    Dispatch,
    Host,
    If,
    Loop,
    ProgramData,
    Specialised,
    State,
    Step,
    Variant,
)

T = TypeVar("T")


def write_program(program: ProgramData, path: str | Path) -> None:
    """Write a Program to one file."""
    Path(path).write_bytes(to_bytes(program))


def read_program(path: str | Path) -> ProgramData:
    """Read what `write_program` wrote; a file that is not one raises FormatError."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise InputError(f"cannot read the program {path}: {e.strerror}") from e
    return from_bytes(data, str(path))


def header(program: ProgramData) -> dict[str, Any]:
    """The Program without its bytes, as JSON data."""
    return {
        "format": FORMAT,
        "target": program.target,
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "slots": program.slots,
        "buffers": _buffers_data(program.buffers),
        "kernels": [
            {
                "label": k.label,
                "kind": k.kind,
                "ports": k.ports,
                "sizes": [encode_dim(d) for d in k.sizes],
                "variants": [
                    {"entry": v.entry, "requires": list(v.requires), "groups": [encode_dim(d) for d in v.groups]}
                    for v in k.variants
                ],
                "flops": encode_dim(k.flops),
                "bytes": encode_dim(k.bytes),
                "workspace": k.workspace,
            }
            for k in program.kernels
        ],
        "steps": [_step_data(s) for s in program.steps],
        "states": [{"name": s.name, "buffer": s.buffer, "initial": s.initial} for s in program.states],
        "checks": _checks_data(program.checks),
        "bounds": dict(program.bounds),
        "specialised": [
            {
                "sizes": dict(s.sizes),
                "slots": s.slots,
                "buffers": _buffers_data(s.buffers),
                "steps": [_step_data(x) for x in s.steps],
                "checks": _checks_data(s.checks),
            }
            for s in program.specialised
        ],
        "facts": dict(program.facts),
    }


def _buffers_data(buffers: Sequence[Buffer]) -> list[dict[str, Any]]:
    return [
        {
            "name": b.name,
            "dtype": b.dtype.name,
            "shape": [encode_dim(d) for d in b.shape],
            "size": b.size,
            "place": list(b.place),
        }
        for b in buffers
    ]


def _checks_data(checks: Sequence[tuple[Dim, str]]) -> list[dict[str, Any]]:
    return [{"dim": encode_dim(d), "text": text} for d, text in checks]


def to_bytes(program: ProgramData) -> bytes:
    """The bytes of the file."""
    program = alone(program)
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


def from_bytes(data: bytes, name: str = "program") -> ProgramData:
    """Read a program file; everything in it is checked before use."""
    head, block = read(data, name, FORMAT)
    with checking(name):
        return _decode(head, block, name)


def _decode(head: Any, block: memoryview, name: str) -> ProgramData:
    weights = np.frombuffer(bytes_at(block, head["blocks"]["weights"], "weights"), np.uint8)
    modules = {k: bytes(bytes_at(block, m["at"], f"module {k}")) for k, m in head["modules"].items()}
    program = ProgramData(
        target=str(head["target"]),
        inputs=tuple(map(count, head["inputs"])),
        outputs=tuple(map(count, head["outputs"])),
        buffers=_buffers(head["buffers"]),
        slots=count(head["slots"]),
        kernels=tuple(
            Code(
                str(k["label"]),
                str(k["kind"]),
                count(k["ports"]),
                tuple(decode_dim(d) for d in k["sizes"]),
                tuple(map(_variant, k["variants"])),
                decode_dim(k["flops"]),
                decode_dim(k["bytes"]),
                bool(k["workspace"]),
            )
            for k in head["kernels"]
        ),
        steps=tuple(_step(s, 0) for s in head["steps"]),
        modules={k: m.decode() if head["modules"][k]["kind"] == "text" else m for k, m in modules.items()},
        weights=weights,
        checks=_checks(head["checks"]),
        bounds=_sizes(head["bounds"]),
        specialised=tuple(
            Specialised(
                _sizes(s["sizes"]),
                count(s["slots"]),
                _buffers(s["buffers"]),
                tuple(_step(x, 0) for x in s["steps"]),
                _checks(s["checks"]),
            )
            for s in head["specialised"]
        ),
        facts=dict(head["facts"]),
        states=tuple(State(str(s["name"]), count(s["buffer"]), _maybe(count, s["initial"])) for s in head["states"]),
    )
    for number, part in enumerate(program.programs):
        _check(part, name if not number else f"{name}, specialised for {program.specialised[number - 1].sizes}")
    _check_specialised(program, name)
    return program


def _buffers(data: Any) -> tuple[Buffer, ...]:
    return tuple(
        Buffer(
            str(b["name"]),
            dtype_named(b["dtype"]),
            tuple(decode_dim(d) for d in b["shape"]),
            count(b["size"]),
            (str(b["place"][0]), count(b["place"][1])),
        )
        for b in data
    )


def _checks(data: Any) -> tuple[tuple[Dim, str], ...]:
    return tuple((decode_dim(c["dim"]), str(c["text"])) for c in data)


def _sizes(data: Any) -> dict[str, int]:
    return {str(name): count(n) for name, n in data.items()}


def _check_specialised(p: ProgramData, name: str) -> None:
    """Specialised steps must have the Program's inputs, outputs and states, the inputs with numbers for sizes."""
    own = (*p.inputs, *p.outputs, *(i for s in p.states for i in (s.buffer, s.initial) if i is not None))
    for s in p.specialised:
        for i in own:
            b, found = p.buffers[i], s.buffers[i]
            shape = tuple(evaluate(d, s.sizes) for d in b.shape) if i in p.inputs else found.shape
            if found != replace(b, shape=shape):
                raise FormatError(f"{name}: specialised for {s.sizes}, buffer {i} is not {b.name!r} at these sizes")


def _maybe(read: Callable[[Any], T], data: Any) -> T | None:
    return None if data is None else read(data)


def _variant(data: Any) -> Variant:
    x, y, z = (decode_dim(d) for d in data["groups"])
    return Variant(str(data["entry"]), tuple(map(str, data["requires"])), (x, y, z))


def _check(p: ProgramData, name: str) -> None:
    """Refuse a Program with an index or offset out of range, or with buffers that do not fit their use."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise FormatError(f"{name}: {what}")

    need(p.slots <= len(p.buffers), f"{p.slots} slots for {len(p.buffers)} buffers")
    for k, b in enumerate(p.buffers):
        kind, at = b.place
        need(
            all(isinstance(d, Size) or d >= 0 for d in b.shape),
            f"buffer {k} has a negative dimension: {shapes.show(b.shape)}",
        )
        need(
            b.size in (b.dtype.size, b.dtype.wide.itemsize),
            f"buffer {k} holds {b.dtype} in elements of {b.size} bytes",
        )
        need(
            b.dtype is not string or kind in ("slot", "input", "output"),
            f"buffer {k} holds strings, which cannot be {kind}",
        )
        need(kind in PLACES, f"buffer {k} has the place {kind!r}, expected one of {PLACES}")
        need(kind != "slot" or at < p.slots, f"buffer {k} lies in slot {at} of {p.slots}")
        need(kind != "input" or at < len(p.inputs), f"buffer {k} is input {at} of {len(p.inputs)}")
        need(kind != "output" or at < len(p.outputs), f"buffer {k} is output {at} of {len(p.outputs)}")
        need(kind != "state" or at < len(p.states), f"buffer {k} is state {at} of {len(p.states)}")
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
    for number, j in p.donated.items():
        own, given = p.buffers[p.outputs[number]], p.buffers[p.inputs[j]]
        need(
            (own.dtype, own.shape, own.size) == (given.dtype, given.shape, given.size),
            f"output {number} lies in input {j}, which has another shape or type",
        )
    need(len({*p.donated.values()}) == len(p.donated), "two outputs lie in the same input")
    for number, state in enumerate(p.states):
        need(state.buffer < len(p.buffers), f"state {state.name!r} is buffer {state.buffer} of {len(p.buffers)}")
        own = p.buffers[state.buffer]
        need(
            own.place == ("state", number) and not symbols(own.shape),
            f"state {state.name!r} is buffer {state.buffer}, {shapes.show(own.shape)} in {own.place}; "
            f"expected one of fixed shape in ('state', {number})",
        )
        if state.initial is not None:
            need(
                state.initial < len(p.buffers),
                f"state {state.name!r} starts as buffer {state.initial} of {len(p.buffers)}",
            )
            first = p.buffers[state.initial]
            need(
                (first.place[0], first.dtype, first.shape, first.size) == ("weights", own.dtype, own.shape, own.size),
                f"state {state.name!r} starts as buffer {state.initial}, expected a weight of its own shape and type",
            )
    for k in p.kernels:
        need(
            bool(k.variants) and all(len(v.groups) == 3 for v in k.variants),
            f"kernel {k.label!r} has no complete variant",
        )
        for v in k.variants:
            need(
                v.entry.partition(":")[0] in p.modules,
                f"kernel {k.label!r} is in the module {v.entry!r}, which is missing",
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
    named = None if isinstance(s, Check) else s.buffer if isinstance(s, Bind) else s.condition
    return () if named is None else (named,)


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
    if isinstance(s, Bind):
        return {
            "do": "bind",
            "size": s.size,
            "buffer": s.buffer,
            "dim": None if s.dim is None else encode_dim(s.dim),
        }
    if isinstance(s, Check):
        return {"do": "check", "dim": encode_dim(s.dim), "text": s.text}
    return {
        "do": "loop",
        "count": None if s.count is None else encode_dim(s.count),
        "condition": s.condition,
        "body": [_step_data(x) for x in s.body],
    }


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
            _maybe(decode_dim, data["count"]),
            _maybe(count, data["condition"]),
            tuple(_step(s, depth + 1) for s in data["body"]),
        )
    if kind == "bind":
        if (data["buffer"] is None) == (data["dim"] is None):
            raise ValueError(f"a step binds {data['size']!r:.40}: expected either a buffer or a dimension")
        return Bind(str(data["size"]), _maybe(count, data["buffer"]), _maybe(decode_dim, data["dim"]))
    if kind == "check":
        return Check(decode_dim(data["dim"]), str(data["text"]))
    raise ValueError(f"unknown step {kind!r}, expected dispatch, copy, host, if, loop, bind or check")
