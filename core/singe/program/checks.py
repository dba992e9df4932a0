"""What must hold of a Program that was read from a file, before anything in it is used.

Every number that points somewhere points to something; every buffer fits the memory in which it lies; word_checks.py has
what holds of the words. singe-format.js and singe-plan.js in static/program check the same in pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ..dtypes import string, uint32
from ..errors import FormatError
from ..lazy_names import LateModule
from ..shapes import MAX_ELEMENTS, Size, evaluate, product, show, symbols
from .container import ALIGN
from .program import HOST, PLACES, Host, ProgramData
from .word_checks import check_sizes, check_words, fits

if TYPE_CHECKING:
    from . import host_checks
else:
    host_checks = LateModule("program.host_checks")

Need: TypeAlias = Callable[[bool, str], None]
"""FormatError with this text unless it holds."""


def check_program(program: ProgramData, name: str) -> None:
    """Check a Program and what it does at particular sizes; a FormatError begins with the name."""
    for number, part in enumerate(program.programs):
        sizes = program.specialised[number - 1].sizes if number else {}
        what = f"{name}, specialised for {sizes}" if number else name

        def need(ok: bool, text: str, what: str = what) -> None:
            if not ok:
                raise FormatError(f"{what}: {text}")

        _check_buffers(part, need)
        _check_ports(part, need)
        _check_states(part, need)
        if not number:  # those of the specialised parts are the same
            _check_ranges(part, need)
        _check_specialised(program, part, sizes, need)
        _check_room(part, need)
        _check_kernels(part, need)
        check_words(part, need)
        if part.target == HOST or any(isinstance(s, Host) for s in part.stops):
            host_checks.check_hosted(part, need)
        check_sizes(part, sizes, need)


def _check_specialised(p: ProgramData, part: ProgramData, sizes: Mapping[str, int], need: Need) -> None:
    """A part has the Program's own inputs, outputs and states, the inputs with numbers for these sizes."""
    own = (*p.inputs, *p.outputs, *(i for s in p.states for i in (s.buffer, s.initial) if i is not None))
    for i in own:
        b, found = p.buffers[i], part.buffers[i]
        shape = tuple(evaluate(d, sizes) for d in b.shape) if i in p.inputs else found.shape
        need(found == replace(b, shape=shape), f"buffer {i} is not {b.name!r} at these sizes")


def _check_buffers(p: ProgramData, need: Need) -> None:
    need(p.slots <= len(p.buffers), f"{p.slots} slots for {len(p.buffers)} buffers")
    ends = {"slot": p.slots, "input": len(p.inputs), "output": len(p.outputs), "state": len(p.states)}
    for k, b in enumerate(p.buffers):
        kind, at = b.place
        count = product(b.shape)
        taken = count * b.size
        need(
            all(isinstance(d, Size) or d >= 0 for d in b.shape),
            f"buffer {k} has a negative dimension: {show(b.shape)}",
        )
        need(
            isinstance(count, Size) or count <= MAX_ELEMENTS,
            f"buffer {k} has {count} elements, at most {MAX_ELEMENTS} are supported",
        )
        need(
            b.size in (b.dtype.size, b.dtype.wide.itemsize),
            f"buffer {k} holds {b.dtype} in elements of {b.size} bytes",
        )
        need(
            b.dtype is not string or kind in ("slot", "input", "output"),
            f"buffer {k} holds strings, which cannot be {kind}",
        )
        need(kind in PLACES, f"buffer {k} has the place {kind!r:.40}, expected one of {PLACES}")
        if kind == "weights":
            start = p.start_of(at)
            room = start + p.blocks[start].size
            need(
                isinstance(taken, int) and at % ALIGN == 0 and at + taken <= room,
                f"buffer {k} takes {taken} bytes at {at} of {room}",
            )
        else:
            need(at < ends[kind], f"buffer {k} lies in {kind} {at} of {ends[kind]}")


def _check_ports(p: ProgramData, need: Need) -> None:
    for i in (*p.inputs, *p.outputs):
        need(i < len(p.buffers), f"an input or output is buffer {i} of {len(p.buffers)}")
    for number, i in enumerate(p.inputs):
        need(
            p.buffers[i].place == ("input", number), f"input {number} is buffer {i}, which lies in {p.buffers[i].place}"
        )
    for number, i in enumerate(p.outputs):
        place = p.buffers[i].place
        need(
            place == ("output", number) or place[0] == "input", f"output {number} is buffer {i}, which lies in {place}"
        )
    names = [p.buffers[i].name for i in p.inputs]
    need(len({*names}) == len(names), f"two inputs have one name: {', '.join(names):.200}")
    for number, j in p.donated.items():
        own, given = p.buffers[p.outputs[number]], p.buffers[p.inputs[j]]
        need(
            (own.dtype, own.shape, own.size) == (given.dtype, given.shape, given.size),
            f"output {number} lies in input {j}, which has another shape or type",
        )
    need(len({*p.donated.values()}) == len(p.donated), "two outputs lie in the same input")


def _check_states(p: ProgramData, need: Need) -> None:
    for number, state in enumerate(p.states):
        need(state.buffer < len(p.buffers), f"state {state.name!r} is buffer {state.buffer} of {len(p.buffers)}")
        own = p.buffers[state.buffer]
        need(
            own.place == ("state", number) and not symbols(own.shape),
            f"state {state.name!r} is buffer {state.buffer}, {show(own.shape)} in {own.place}; "
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
        need(
            state.draws is None or (own.dtype is uint32 and own.shape == (2,)),
            f"state {state.name!r} is {own.dtype} {show(own.shape)}, expected two uint32 numbers, as it is a sequence of keys",
        )
    names = [s.name for s in p.states]
    need(len({*names}) == len(names), f"two states have one name: {', '.join(names):.200}")


def _check_ranges(p: ProgramData, need: Need) -> None:
    for k, r in enumerate(p.ranges):
        need(r.input < len(p.inputs), f"range {k} is of input {r.input} of {len(p.inputs)}")
        own = p.buffers[p.inputs[r.input]]
        need(own.dtype.numpy.kind in "iuf", f"range {k} is of {own.name!r:.40}, which is {own.dtype}, expected numbers")
        part = r.part or ()
        need(
            r.part is None or len(part) == len(own.shape), f"range {k} has {len(part)} axes, expected {len(own.shape)}"
        )
        need(all(step != 0 for _, step, _ in part), f"range {k} takes steps of 0")
        need(r.sizes <= p.symbols, f"range {k} depends on sizes that no input gives")


def _check_room(p: ProgramData, need: Need) -> None:
    """Check that no buffer is larger than its input, output or state; if that depends on sizes, the run checks it."""
    for k, b in enumerate(p.buffers):
        kind, at = b.place
        if kind in ("weights", "slot"):
            continue
        need(
            b.place in p.owners, f"buffer {k} lies in output {at}, which has no memory of its own: it lies in an input"
        )
        owner = p.buffers[p.owners[b.place]]
        need(
            (b.dtype is string) == (owner.dtype is string),
            f"buffer {k} of {b.dtype} lies in {kind} {at}, which is of {owner.dtype}",
        )
        need(fits(b.bytes, owner.bytes), f"buffer {k} takes {b.bytes} bytes in {kind} {at}, which has {owner.bytes}")


def _check_kernels(p: ProgramData, need: Need) -> None:
    for k in p.kernels:
        need(
            bool(k.variants) and all(len(v.groups) == 3 for v in k.variants),
            f"kernel {k.label!r:.80} has no complete variant",
        )
        for v in k.variants:
            need(
                v.entry.partition(":")[0] in p.modules,
                f"kernel {k.label!r:.80} is in the module {v.entry!r:.80}, which is missing",
            )
