"""What must hold of a Program that was read from a file, before anything in it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..dtypes import string
from ..errors import FormatError
from ..shapes import Size, evaluate, show, symbols
from .container import ALIGN
from .program import PLACES, Bind, Dispatch, ProgramData, Step, walk

DEEPEST: Final = 32
"""How deep steps may be nested."""


def check_program(program: ProgramData, name: str) -> None:
    """FormatError, which begins with the name, unless all of it holds, for what is specialised too."""
    for number, part in enumerate(program.programs):
        _check(part, name if not number else f"{name}, specialised for {program.specialised[number - 1].sizes}")
    _check_specialised(program, name)


def _check_specialised(p: ProgramData, name: str) -> None:
    """What is specialised has the Program's own inputs, outputs and states, the inputs with numbers for sizes."""
    own = (*p.inputs, *p.outputs, *(i for s in p.states for i in (s.buffer, s.initial) if i is not None))
    for s in p.specialised:
        for i in own:
            b, found = p.buffers[i], s.buffers[i]
            shape = tuple(evaluate(d, s.sizes) for d in b.shape) if i in p.inputs else found.shape
            if found != replace(b, shape=shape):
                raise FormatError(f"{name}: specialised for {s.sizes}, buffer {i} is not {b.name!r} at these sizes")


def _check(p: ProgramData, name: str) -> None:
    """Every number that points somewhere points somewhere."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise FormatError(f"{name}: {what}")

    need(p.slots <= len(p.buffers), f"{p.slots} slots for {len(p.buffers)} buffers")
    for k, b in enumerate(p.buffers):
        kind, at = b.place
        need(
            all(isinstance(d, Size) or d >= 0 for d in b.shape),
            f"buffer {k} has a negative dimension: {show(b.shape)}",
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
            f"output {number} lies in input {j}, expected one of the shape and type of that",
        )
    need(len({*p.donated.values()}) == len(p.donated), "two outputs lie in the same input")
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

    for s in walk(p.steps):
        if isinstance(s, Dispatch):
            need(s.kernel < len(p.kernels), f"a step runs kernel {s.kernel} of {len(p.kernels)}")
            ports = p.kernels[s.kernel].ports
            need(
                len(s.buffers) == ports,
                f"a step gives {len(s.buffers)} buffers to kernel {s.kernel}, which takes {ports}",
            )
        if isinstance(s, Bind):
            need(
                (s.buffer is None) != (s.dim is None),
                f"a step binds {s.size!r:.40} to a buffer and to a dimension, or to neither",
            )
        for i in (*s.reads, *s.writes):
            need(i < len(p.buffers), f"a step names buffer {i} of {len(p.buffers)}")
    need(_depth(p.steps) <= DEEPEST, f"steps are nested more than {DEEPEST} deep")


def _depth(steps: Sequence[Step]) -> int:
    """How deep the innermost steps lie in others."""
    return max((1 + _depth(body) for s in steps for body in s.bodies), default=0)
