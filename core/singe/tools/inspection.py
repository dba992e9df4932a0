"""Describes a model and its Programs as text, without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import SizeNeeded
from ..program.program import HOST, Bind, Check, Host, ProgramData, Specialised, State
from ..program.words import COPY, LOOP, UNLESS, WordGroup
from ..report import LEFT, RIGHT, fields, quantity, seconds, table
from ..runtime.devices import DEFAULT
from ..shapes import Dim, Size, bytes_text, dim_max, known, show, symbols

LONGEST_FORMULA: Final = 100
"""The longest formula to show, in characters."""
OTHER_SIZES: Final = "; for other sizes, give --input-shape"
"""What stands in the place of a longer one."""


def describe_program(device: str, program: ProgramData, kernels: bool) -> str:
    """Where the ops run, the kernels, the memory plan, the weights, and how long compiling took."""
    named = symbols([b.shape for b in program.buffers])
    at = dict.fromkeys(sorted(named | program.symbols), 1)
    work = [g for g in program.groups if g.head > COPY]
    hosted = Counter(s.op for s in program.stops if isinstance(s, Host))
    slots = program.slot_bytes(at)
    facts = [
        (device, f"program for {program.target}, compiled in {seconds(program.seconds)}"),
        ("ops", _where(device, program, len(work))),
        (
            "steps",
            f"{len(program.steps)}: {len(work)} dispatches of {len(program.kernels)} kernels, {_others(program)}",
        ),
        ("memory", f"{program.slots} slots, {bytes_text(sum(slots))}{_at(at)}{_formula(program)}"),
    ]
    if named - program.symbols:
        facts.append(("found in a run", ", ".join(sorted(named - program.symbols))))
    for own, part in zip(program.specialised, program.programs[1:], strict=True):
        steps = part.steps
        facts.append(
            (
                "specialised",
                f"{_sizes(own.sizes)}: {len(steps)} steps, {bytes_text(_own_weights(program, own))} of weights besides the shared ones",
            )
        )
    if "donated" in program.facts:
        facts.append(("donated", f"{_donated(program)}; {bytes_text(program.copied(at))} copied in a run"))
    if program.states:
        kept = sum(known(program.buffers[s.buffer].bytes, {}) for s in program.states)
        copied = program.copied(at)
        facts.append(("states", f"{bytes_text(kept)} a session, {bytes_text(copied)} copied in a run"))
    parts = [fields(facts), *([_states(program)] if program.states else ()), *_on_host(program), _weights(program)]
    if work:
        parts.append(_kernels(program, work, at, kernels))
    elif kernels and hosted:
        parts.append(table([("host op", LEFT), ("runs", RIGHT)], hosted.most_common()))
    return "\n\n".join(parts)


def _others(program: ProgramData) -> str:
    """What there is besides dispatches, by kind; kinds other than host ops and copies only if there are any."""
    heads, stops = Counter(g.head for g in program.groups), Counter(map(type, program.stops))
    first = [f"{stops[Host]} host", f"{heads[COPY]} copies"]
    rest = (
        (heads[UNLESS], "branches"),
        (heads[LOOP], "loops"),
        (stops[Bind], "sizes found"),
        (stops[Check], "checks of sizes"),
    )
    return ", ".join([*first, *(f"{count} {several}" for count, several in rest if count)])


def _where(device: str, program: ProgramData, dispatches: int) -> str:
    if program.target == HOST:
        return f"all by {'NumPy' if device == DEFAULT else device}, one by one"
    hosted = program.facts.get("host")
    there = f"on the device, fused into {dispatches} dispatches"
    return f"{there}, but for {', '.join(hosted)} on the host" if hosted else f"all {there}"


def _on_host(program: ProgramData) -> list[str]:
    """The ops that run on the host, and why."""
    rows = [(op, n, why) for op, counts in program.facts.get("host", {}).items() for why, n in counts.items()]
    return [table([("on the host", LEFT), ("count", RIGHT), ("because", LEFT)], rows)] if rows else []


def _at(sizes: dict[str, int]) -> str:
    return f" at {_sizes(sizes)}" if sizes else ""


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())


def _own_weights(program: ProgramData, own: Specialised) -> int:
    """The bytes of the weights that only these steps read."""
    shared = {b.place for b in program.buffers}
    return sum(
        {b.place: known(b.bytes, {}) for b in own.buffers if b.place[0] == "weights" and b.place not in shared}.values()
    )


def _formula(program: ProgramData) -> str:
    """The scratch memory as a formula of the open sizes, before each slot is rounded up."""
    if not program.symbols:
        return ""
    total: Dim = 0
    for slot in range(program.slots):
        try:
            total = total + _largest([b.bytes for b in program.buffers if b.place == ("slot", slot)])
        except SizeNeeded:  # the sum has more parts than an expression may have
            return OTHER_SIZES
        if len(str(total)) > LONGEST_FORMULA:
            return OTHER_SIZES
    return f"; in bytes {total}"


def _largest(dims: Sequence[Dim]) -> Dim:
    """The maximum of sizes as text, without sizes that are never larger than another one."""
    top: Dim = 0
    for d in dims:
        top = d if _never_below(d, top) else top if _never_below(top, d) else dim_max(top, d)
    return top


def _never_below(a: Dim, b: Dim) -> bool:
    """Whether a ≥ b can be proved: sizes are never negative, so neither is a sum of positive terms."""
    rest = a - b
    return all(value >= 0 for _, value in rest.terms) if isinstance(rest, Size) else rest >= 0


def _donated(program: ProgramData) -> str:
    """The outputs that use the memory of donated inputs."""
    given: Mapping[str, str | None] = program.facts["donated"]
    used = [f"{y} in the memory of {x}" for x, y in given.items() if y is not None]
    unused = ", ".join(x for x, y in given.items() if y is None)
    return "; ".join([*used, *([f"none in that of {unused}"] if unused else [])])


def _states(program: ProgramData) -> str:
    """The states, each with its bytes and its initial value."""
    kept = [(s, program.buffers[s.buffer]) for s in program.states]
    return table(
        [("state", LEFT), ("dtype", LEFT), ("shape", LEFT), ("begins as", LEFT), ("bytes", RIGHT)],
        [(s.name, b.dtype, show(b.shape), _beginning(s), bytes_text(known(b.bytes, {}))) for s, b in kept],
    )


def _beginning(state: State) -> str:
    """What a state begins as, in a word."""
    if state.initial is not None:
        return "given"
    return "zeros" if state.draws is None else "random"


def _weights(program: ProgramData) -> str:
    """Weights by dtype; a weight that several buffers share counts once."""
    held = {b.place[1]: b for p in program.programs for b in p.buffers if b.place[0] == "weights"}
    count: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for b in held.values():
        count[b.dtype.name] += 1
        total[b.dtype.name] += known(b.bytes, {})
    rows = [(name, count[name], bytes_text(size)) for name, size in total.most_common()]
    return table(
        [("weights", LEFT), ("count", RIGHT), ("bytes", RIGHT)],
        [*rows, ("together", sum(count.values()), bytes_text(program.weights.size))],
    )


def _kernels(program: ProgramData, work: Sequence[WordGroup], at: dict[str, int], each: bool) -> str:
    """The kernels and their work at these sizes: each one, or a row per kind."""
    uses = Counter(g.head for g in work)
    rows: dict[tuple[str, ...], list[int]] = {}
    for number, k in enumerate(program.kernels):
        row = rows.setdefault((k.label, k.kind) if each else (k.kind,), [0, 0, 0, 0])
        for column, value in enumerate(
            (1, uses[number], *(max(0, known(d, at)) * uses[number] for d in (k.flops, k.bytes)))
        ):
            row[column] += value
    ordered = sorted(rows.items(), key=lambda item: (-item[1][2], item[0]))
    names = [("kernel", LEFT), ("kind", LEFT)] if each else [("kind", LEFT)]
    columns = [*names, ("count", RIGHT), ("dispatches", RIGHT), ("work", RIGHT), ("moved", RIGHT)]
    return table(
        columns,
        [
            (*name, count, runs, quantity(flops, "FLOP"), bytes_text(moved))
            for name, (count, runs, flops, moved) in ordered
        ],
    )
