"""What must hold of the ops that a Program from a file leaves to the host, and of the values that they read.

An op's row accepts the step's inputs and attributes, and gives results as its outputs are declared. In a Program that is
all host steps, each place holds a value of the declared shape and type wherever a step reads it: its runner keeps arrays,
not bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Signature
from typing import Any, Final, TypeAlias

from ..ops import Elementwise, Opaque, Region, Result, Row, find_row, without_sizes
from ..shapes import Dim, Shape, Size, at_least, deferring, product, show
from .program import HOST, Buffer, Copy, Host, Loop, Place, ProgramData, Step, walk

Need: TypeAlias = Callable[[bool, str], None]
"""FormatError with this text unless it holds."""


def check_hosted(p: ProgramData, need: Need) -> None:
    if p.target == HOST:
        for i, b in enumerate(p.buffers):
            own = b.dtype.size
            need(b.size == own, f"buffer {i} has elements of {b.size} bytes; those of {b.dtype} have {own}")
    for s in walk(p.steps):
        if isinstance(s, Host):
            _check_op(p, s, need)
    if p.target == HOST:
        _KnownValues(p, need).check()


def finds_sizes(s: Host) -> bool:
    """Whether the dimensions of a step's results may depend on data."""
    row = _row(s)
    return row is None or isinstance(row, Opaque)


def _row(s: Host) -> Row | None:
    """The row of a step's op. A Program may be read without the package that has it; a backend refuses to run it."""
    try:
        return find_row(s.op)
    except KeyError:
        return None


def _check_op(p: ProgramData, s: Host, need: Need) -> None:
    row = _row(s)
    if row is None:
        return
    need(not isinstance(row, Region | Result), f"a step runs {s.op!r} on the host, which only a graph has")
    inputs, outputs = [p.buffers[i] for i in s.inputs], [p.buffers[i] for i in s.outputs]
    what = f"a step runs {s.op!r} over {', '.join(map(_show, inputs))}"
    try:
        if not isinstance(row, Elementwise):  # which says itself what it takes
            Signature(row.parameters).bind(*inputs, **without_sizes(s.attrs))
        with deferring():
            results = list(row.infer_results(inputs, s.attrs))
        fits = len(results) == len(outputs) and all(map(_agree, results, outputs))
    except Exception as e:  # rows expect attributes of the right type, and these come from a file
        need(False, f"{what}, which is wrong: {e}")
        return
    need(fits, f"{what}, which does not give {', '.join(map(_show, outputs))}")


def _show(b: Buffer) -> str:
    return f"{b.dtype}{show(b.shape)}"


def _agree(result: tuple[Sequence[Dim | None], Any], b: Buffer) -> bool:
    shape, kind = result
    return kind is b.dtype and _same_shape(shape, b.shape)


def _same_shape(a: Sequence[Dim | None], b: Shape) -> bool:
    """Whether two shapes may be equal, as far as no sizes are known."""
    return len(a) == len(b) and all(d is None or not _differ(d, e) for d, e in zip(a, b, strict=True))


def _differ(a: Dim, b: Dim) -> bool:
    """Whether two dimensions differ at all sizes, as far as that can be proved."""
    gap = a - b
    return gap != 0 and (not isinstance(gap, Size) or at_least(gap, 1) or at_least(-gap, 1))


KEPT: Final = -1
Held: TypeAlias = Mapping[Place, frozenset[int | None]]
"""A place ↦ the buffers of which one was written there last; None among them: perhaps nothing was. As the effect of some
steps, KEPT among them: perhaps what was there before."""


class _KnownValues:
    """Which buffers each place may hold as the steps run."""

    def __init__(self, p: ProgramData, need: Need) -> None:
        self._p: Final = p
        self._need: Final = need
        self._effects: Final[dict[int, Held]] = {}  # by the identity of a body, which the program holds

    def check(self) -> None:
        p = self._p
        first = (*p.inputs, *(s.buffer for s in p.states))
        held = {p.buffers[i].place: frozenset[int | None]((i,)) for i in first}
        self._read(p.steps, held)
        held = _after(held, self._effect(p.steps))
        for number, i in enumerate(p.outputs):
            self._fits(i, held, f"output {number}")

    def _fits(self, i: int, held: Held, what: str) -> None:
        b = self._p.buffers[i]
        if b.place[0] == "weights":
            return
        for k in held.get(b.place, (None,)):
            if k is None:
                self._need(False, f"{what} is buffer {i}, which no step wrote before")
                return
            own = self._p.buffers[k]
            self._need(
                own.dtype is b.dtype
                and (_same_shape(own.shape, b.shape) or product(own.shape) == product(b.shape) == 1),
                f"{what} is buffer {i}, {_show(b)}, where buffer {k}, {_show(own)}, was written",
            )

    def _read(self, steps: Sequence[Step], held: Held) -> None:
        """Check what steps read that begin with these values."""
        for s in steps:
            if isinstance(s, Loop):  # a later turn begins with what an earlier one wrote
                held = _either(held, _after(held, self._effect(s.body)))
            what = f"what {s.op!r} reads" if isinstance(s, Host) else f"what a {type(s).__name__} step reads"
            for i in s.reads:
                self._fits(i, held, what)
            if isinstance(s, Copy):
                source = self._p.buffers[s.source]
                self._need(
                    source.dtype is self._p.buffers[s.target].dtype,
                    f"a step copies buffer {s.source} of {source.dtype} to buffer {s.target} of another type",
                )
            for body in s.bodies:
                self._read(body, held)
            held = _after(held, self._effect((s,)))

    def _effect(self, steps: Sequence[Step]) -> Held:
        if id(steps) in self._effects:
            return self._effects[id(steps)]
        held: Held = {}
        for s in steps:
            if s.bodies:
                ends = [self._effect(body) for body in s.bodies]
                made = _either(*ends, *([{}] if isinstance(s, Loop) else []), absent=KEPT)
            else:
                made = {self._p.buffers[i].place: frozenset[int | None]((i,)) for i in s.writes}
            held = _after(held, made, absent=KEPT)
        if len(steps) != 1:
            self._effects[id(steps)] = held
        return held


def _either(*held: Held, absent: int | None = None) -> Held:
    """What places hold that hold what one of these says."""
    places = {place for h in held for place in h}
    return {place: frozenset(k for h in held for k in h.get(place, (absent,))) for place in places}


def _after(held: Held, effect: Held, absent: int | None = None) -> Held:
    """What places hold after steps of this effect."""
    changed = {
        place: (made - {KEPT}) | held.get(place, frozenset((absent,))) if KEPT in made else made
        for place, made in effect.items()
    }
    return {**held, **changed}
