"""What is known of a Program's ops before it runs: which inputs each may overwrite, and which places nothing reads after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ... import shapes
from ...compiler.partition import beyond_arrays
from ...errors import DeviceError
from ...ir.arrays.adapter import ArrayAdapter
from ...late_dataclass import dataclass
from ...ops import Elementwise, Row, Update, View
from ...program.program import Host, Place, ProgramData
from ...program.words import COPY, ways
from ...shapes import Size
from ..host_steps import row_of
from .last_reads import last_reads


@dataclass
class PreparedOp:
    """A Host op: its row, the inputs that it may overwrite, the place whose array it may overwrite with its result, and the places that
    nothing reads afterwards. hosted: whether NumPy computes it, since the library cannot; in_place: whether its result takes the place
    of its first input; sizes: those that its attributes need."""

    at: int
    step: Host
    row: Row
    hosted: bool
    in_place: bool
    sizes: tuple[str, ...]
    spent: tuple[int, ...] = ()
    into: Place | None = None
    drops: tuple[Place, ...] = ()
    latest: tuple[tuple[int, ...], Mapping[str, Any]] | None = None

    def attrs(self, sizes: Mapping[str, int]) -> Mapping[str, Any]:
        """The attributes, which need sizes, with numbers in place of these; the latest result is cached."""
        key = tuple(sizes[s] for s in self.sizes)
        if self.latest is None or self.latest[0] != key:
            self.latest = key, {k: _fixed(v, sizes) for k, v in self.step.attrs.items()}
        return self.latest[1]


@dataclass
class PreparedOps:
    """ops: by the number of the group. drops: the places that a group other than an op is the last to read; dead: those that some way to a
    group leaves, and nothing reads from there. own: places whose arrays are overwritten. overwrites: whether a step updates an array in
    place: views of it must not share its memory."""

    ops: dict[int, PreparedOp] = field(default_factory=dict[int, PreparedOp])
    drops: dict[int, tuple[Place, ...]] = field(default_factory=dict[int, "tuple[Place, ...]"])
    dead: dict[int, tuple[Place, ...]] = field(default_factory=dict[int, "tuple[Place, ...]"])
    own: set[Place] = field(default_factory=set[Place])
    overwrites: bool = False


def prepare(program: ProgramData, places: Sequence[Place], name: str, xp: ArrayAdapter) -> PreparedOps:
    """The ops of a Program, whose buffers have these places. name: of the backend, for errors."""
    found = PreparedOps()
    if xp.in_place:
        found.own.update(places[s.buffer] for s in program.states)
    for k, group in enumerate(program.groups):
        step = group.stop
        if group.head >= 0:
            raise DeviceError(f"the backend {name!r} cannot call a kernel")
        if not isinstance(step, Host):
            continue
        row, into = row_of(step), places[step.outputs[0]]
        kinds = [program.buffers[i].dtype for i in (*step.inputs, *step.outputs)]
        hosted = bool(beyond_arrays(row, kinds, xp))
        in_place = bool(step.inputs) and places[step.inputs[0]] == into
        op = PreparedOp(group.at, step, row, hosted, in_place, tuple(sorted(shapes.symbols(step.dims))))
        found.ops[k] = op
        if xp.in_place and isinstance(row, Update) and in_place:
            found.own.add(into)
            found.overwrites = True
        if not xp.reuses or not isinstance(row, Elementwise):
            continue
        over = [number for number, i in enumerate(step.inputs) if places[i] == into]
        if len(over) == 1:
            op.spent = tuple(over)
            found.own.add(into)
        elif into[0] == "input":
            op.into = into
            found.own.add(into)
    _find_last_reads(program, places, xp, found)
    return found


def _find_last_reads(program: ProgramData, places: Sequence[Place], xp: ArrayAdapter, found: PreparedOps) -> None:
    """The values that each group is the last to read, and those that it may overwrite."""
    groups = program.groups
    slots = [
        tuple(frozenset(p for i in named if (p := places[i])[0] == "slot") for named in (g.reads, g.writes))
        for g in groups
    ]
    fresh = [not isinstance(found.ops[k].row, View) if k in found.ops else g.head != COPY for k, g in enumerate(groups)]
    for k, (last, alone, dead) in enumerate(last_reads(slots, fresh, ways(groups))):
        op, (_, writes) = found.ops.get(k), slots[k]
        if op is not None:
            op.drops = tuple(last)
            if xp.reuses:
                more = [j for j, i in enumerate(op.step.inputs) if places[i] in alone and j not in op.spent]
                op.spent = (*op.spent, *more)
        elif last - writes:
            found.drops[k] = tuple(last - writes)
        if dead:
            found.dead[k] = tuple(dead)


def closed(program: ProgramData, sizes: Mapping[str, int]) -> ProgramData:
    """A Program of ops and copies alone with these numbers in place of all its open sizes, which a run has checked."""
    return replace(
        program,
        buffers=tuple(replace(b, shape=numbers(b.shape, sizes)) for b in program.buffers),
        counts=numbers(program.counts, sizes),
        stops=tuple(
            replace(s, attrs={k: _fixed(v, sizes) for k, v in s.attrs.items()}) if isinstance(s, Host) else s
            for s in program.stops
        ),
        checks=(),
        bounds={},
    )


def numbers(shape: Sequence[Any], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with these sizes."""
    return tuple(shapes.known(d, sizes) for d in shape)


def _fixed(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_fixed(v, sizes) for v in value)
    return shapes.known(value, sizes) if isinstance(value, Size) else value
