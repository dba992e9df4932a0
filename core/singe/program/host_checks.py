"""What must hold of the ops that a Program from a file leaves to the host, and of the values that they read.

An op's row accepts the stop's inputs and attributes, and gives results as its outputs are declared. In a Program whose ops
are all on the host, each place holds a value of the declared shape and type wherever it is read: its runner keeps arrays,
not bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Signature
from typing import Any, Final, TypeAlias

from ..graph import Builder, leaf
from ..ir.arrays.numpy import NUMPY_ARRAYS
from ..ops import Composite, Elementwise, Opaque, Region, Result, Row, find_row, without_sizes
from ..shapes import Dim, Shape, Size, at_least, deferring, product, show
from .program import HOST, Buffer, Host, Place, ProgramData
from .words import COPY, settle, ways

Need: TypeAlias = Callable[[bool, str], None]
"""FormatError with this text unless it holds."""


def check_hosted(p: ProgramData, need: Need) -> None:
    if p.target == HOST:
        for i, b in enumerate(p.buffers):
            own = b.dtype.size
            need(b.size == own, f"buffer {i} has elements of {b.size} bytes; those of {b.dtype} have {own}")
    for s in p.stops:
        if isinstance(s, Host):
            _check_op(p, s, need)
    if p.target == HOST:
        _check_values(p, need)


def finds_sizes(s: Host) -> bool:
    """Whether the dimensions of a stop's results may depend on data."""
    row = _row(s)
    return row is None or isinstance(row, Opaque)


def _row(s: Host) -> Row | None:
    """The row of a stop's op. A Program may be read without the package that has it; a backend refuses to run it."""
    try:
        return find_row(s.op)
    except KeyError:
        return None


def _check_op(p: ProgramData, s: Host, need: Need) -> None:
    row = _row(s)
    if row is None:
        return
    whole = isinstance(row, Composite) and row.name in NUMPY_ARRAYS.native
    need(
        not isinstance(row, Region | Result | Composite) or whole,
        f"a stop runs {s.op!r} on the host, which only a graph has",
    )
    inputs, outputs = [p.buffers[i] for i in s.inputs], [p.buffers[i] for i in s.outputs]
    what = f"a stop runs {s.op!r} over {', '.join(map(_show, inputs))}"
    try:
        if not isinstance(row, Elementwise):  # which says itself what it takes
            Signature(row.parameters).bind(*inputs, **without_sizes(s.attrs))
        with deferring():
            results = _results(row, inputs, s.attrs)
        fits = len(results) == len(outputs) and all(map(_agree, results, outputs))
    except Exception as e:  # rows expect attributes of the right type, and these come from a file
        need(False, f"{what}, which is wrong: {e}")
        return
    need(fits, f"{what}, which does not give {', '.join(map(_show, outputs))}")


def _results(row: Row, inputs: Sequence[Buffer], attrs: Mapping[str, Any]) -> list[tuple[Sequence[Dim | None], Any]]:
    """Shapes and types that a row gives; a composite's are those of what it is lowered to."""
    if not isinstance(row, Composite):
        return list(row.infer_results(inputs, attrs))
    nodes = [leaf(b.shape, b.dtype, f"x{k}") for k, b in enumerate(inputs)]
    return list(Builder().node(row, *nodes, **attrs).results)


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


Held: TypeAlias = Mapping[Place, frozenset[int | None]]
"""A place ↦ the buffers of which one was written there last; None among them: perhaps nothing was."""
_NOTHING: Final[frozenset[int | None]] = frozenset((None,))


def _check_values(p: ProgramData, need: Need) -> None:
    """Check that what is read was written before, with the shape and type that are read."""
    groups = p.groups

    def after(k: int, held: Held) -> Held:
        return {**held, **{p.buffers[i].place: frozenset((i,)) for i in groups[k].writes}}

    def either(a: Held, b: Held) -> Held:
        return {place: a.get(place, _NOTHING) | b.get(place, _NOTHING) for place in a.keys() | b.keys()}

    def check(i: int, held: Held, what: str) -> None:
        b = p.buffers[i]
        if b.place[0] == "weights":
            return
        for k in held.get(b.place, _NOTHING):
            if k is None:
                need(False, f"{what} is buffer {i}, which nothing wrote before")
                return
            own = p.buffers[k]
            need(
                own.dtype is b.dtype
                and (_same_shape(own.shape, b.shape) or product(own.shape) == product(b.shape) == 1),
                f"{what} is buffer {i}, {_show(b)}, where buffer {k}, {_show(own)}, was written",
            )

    first: Held = {p.buffers[i].place: frozenset((i,)) for i in (*p.inputs, *(s.buffer for s in p.states))}
    reached = settle(ways(groups), first, after, either)
    for g, held in zip(groups, reached, strict=False):
        what = f"what {g.stop.op!r} reads" if isinstance(g.stop, Host) else f"what the group at word {g.at} reads"
        for i in g.reads:
            check(i, held or {}, what)
        if g.head == COPY:
            source, target = p.buffers[g.reads[0]], p.buffers[g.writes[0]]
            need(
                source.dtype is target.dtype,
                f"a copy moves buffer {g.reads[0]} of {source.dtype} to buffer {g.writes[0]} of another type",
            )
    last = next(reached) or {}
    for number, i in enumerate(p.outputs):
        check(i, last, f"output {number}")
