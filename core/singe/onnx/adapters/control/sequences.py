"""Sequences and optionals: a tuple of the importer's values, or a Stack; and None or the value itself.

The length of a tuple, and whether an optional holds something, are known while a model is imported. If sizes or values of
inputs decide them, these are asked for (SizeNeeded, ValueNeeded). A run may find the length of a Stack, whose elements have
one shape. A position may be found in a run if all elements have the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from ....dtypes import dtype
from ....graph import Node, Stack, Value
from ....graph.objects import described, mapped
from ....shapes import Dim, axis_of, show
from ...scope import Scope
from ...tensors import ELEMENTS
from .._call import Call, adapter, tensors_of
from ..movement.shapes import part
from ._values import are_equal, joined, nodes, stack
from .loops import scan

MAX_PARTS: Final = 1 << 13
"""The most elements of a list into which a tensor is split."""


def _sequence(call: Call, i: int = 0) -> tuple[Value, ...] | Stack:
    found = call.values[i] if i < len(call.values) else None
    if not isinstance(found, (tuple, Stack)):
        raise call.fail(f"input {i} is {'missing' if found is None else described(found)}; expected a sequence")
    return found


def _length(x: tuple[Value, ...] | Stack) -> Dim:
    return x.rows.shape[0] if isinstance(x, Stack) else len(x)


def _tensors(call: Call, sequence: tuple[Value, ...]) -> list[Node]:
    """The elements of a sequence of tensors: one at least, all of one type."""
    found = nodes(sequence)
    if not found or len(found) != len(sequence) or len({x.dtype for x in found}) > 1:
        raise call.fail(f"input 0 is {described(sequence)}; expected one tensor at least, and all of one type")
    return found


def _place(call: Call, i: int, length: Dim, end: Dim) -> Dim:
    """The position in input i, which must be known: `end` if it is omitted, and counted from the end if it is negative."""
    if call.maybe(i) is None:
        return end
    given, *more = call.ints(i) or (0,)
    if more:
        raise call.fail(f"input {i} has {1 + len(more)} numbers; expected one position")
    if isinstance(length, int) and isinstance(end, int) and not -length <= given <= end:
        raise call.fail(f"position {given} in a sequence of {length}")
    return given + length if given < 0 else given


@adapter("SequenceEmpty")
def _empty(call: Call) -> list[Value]:
    code = call.attr("dtype", 1)
    if code not in ELEMENTS:
        raise call.fail(f"element type {code} is none of ONNX's")
    dtype(ELEMENTS[code].name)
    return [()]


@adapter("SequenceConstruct", objects=True)
def _construct(call: Call) -> list[Value]:
    return [tuple(call.values)]


@adapter("SequenceLength", objects=True)
def _sequence_length(call: Call) -> Node:
    return call.b.const(_length(_sequence(call)))


@adapter("SequenceInsert", objects=True)
def _insert(call: Call) -> list[Value]:
    found = _sequence(call)
    at = _place(call, 2, _length(found), _length(found))
    if len(call.values) < 2 or call.values[1] is None:
        raise call.fail("input 1 is missing: the element")
    if isinstance(found, tuple):
        assert isinstance(at, int)
        return [(*found[:at], call.values[1], *found[at:])]
    x, rows = call.x(1), found.rows
    if (x.dtype, x.shape) != (rows.dtype, rows.shape[1:]):
        raise call.fail(f"{x!r} in a sequence whose elements are {rows.dtype} of shape {show(rows.shape[1:])}")
    return [
        _concatenated(call, _before(call, rows, at), call.b.reshape(x, shape=(1, *x.shape)), _behind(call, rows, at))
    ]


@adapter("SequenceErase", objects=True)
def _erase(call: Call) -> list[Value]:
    found = _sequence(call)
    length = _length(found)
    at = _place(call, 1, length, length - 1)
    if isinstance(found, Stack):
        return [_concatenated(call, _before(call, found.rows, at), _behind(call, found.rows, at + 1))]
    if not found:
        raise call.fail("the sequence is empty")
    assert isinstance(at, int)
    return [found[:at] + found[at + 1 :]]


def _before(call: Call, rows: Node, at: Dim) -> Node:
    return part(call.b, rows, 0, 0, at)


def _behind(call: Call, rows: Node, at: Dim) -> Node:
    return part(call.b, rows, 0, at, rows.shape[0] - at)


def _concatenated(call: Call, *rows: Node) -> Stack:
    some = [x for x in rows if x.shape[0] != 0]
    return Stack(some[0] if len(some) == 1 else call.b.concat(*(some or rows), axis=0))


@adapter("SequenceAt", objects=True)
def _at(call: Call) -> list[Value]:
    found = _sequence(call)
    if isinstance(found, tuple) and call.known(1) is None and are_equal(found):
        found = Stack(joined(call.b, nodes(found)))
    if isinstance(found, Stack):
        return [call.b.gather(found.rows, call.b.reshape(call.x(1), shape=()), axis=0)]
    at = _place(call, 1, len(found), len(found) - 1)
    assert isinstance(at, int)
    return [found[at]]


@adapter("ConcatFromSequence", objects=True)
def _concat_from_sequence(call: Call) -> Node:
    found, axis, b = _sequence(call), call.attr("axis", 0), call.b
    if isinstance(found, Stack):
        rows, rank = found.rows, len(found.rows.shape)
        at = axis_of(axis, rank if call.flag("new_axis") else rank - 1, call.op)
        order = [*range(1, at + 1), 0, *range(at + 1, rank)]
        moved = b.transpose(rows, perm=tuple(order))
        if call.flag("new_axis"):
            return moved
        shape = moved.shape
        return b.reshape(moved, shape=(*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
    tensors = _tensors(call, found)
    if call.flag("new_axis"):
        return joined(b, tensors, axis)
    axis = axis_of(axis, len(tensors[0].shape), call.op)
    return tensors[0] if len(tensors) == 1 else b.concat(*tensors, axis=axis)


@adapter("SplitToSequence")
def _split_to_sequence(call: Call) -> list[Value]:
    x, b = call.x(), call.b
    axis = call.axis(0, len(x.shape))
    split, kept = call.maybe(1), call.flag("keepdims", True)
    if split is None and not isinstance(x.shape[axis], int):
        shape = (x.shape[axis], *x.shape[:axis], *([1] if kept else []), *x.shape[axis + 1 :])
        order = (axis, *(i for i in range(len(x.shape)) if i != axis))
        return [Stack(b.reshape(b.transpose(x, perm=order), shape=shape))]
    length = call.number(x.shape[axis], f"the length of axis {axis}")
    if split is None or split.shape == ():
        (each,) = (1,) if split is None else call.ints(1)
        if each < 1 or length > each * MAX_PARTS:
            raise call.fail(f"a split of {length} into parts of {each}; at most {MAX_PARTS} parts are supported")
        lengths = tuple(min(each, length - at) for at in range(0, length, each))
    else:
        lengths = call.lengths(call.ints(1))
    if sum(d for d in lengths if isinstance(d, int)) != length:
        raise call.fail(f"the parts {show(lengths)} do not add up to axis {axis} of {show(x.shape)}")
    starts = accumulate((0, *lengths[:-1])) if lengths else ()
    parts = [part(b, x, axis, at, n) for at, n in zip(starts, lengths, strict=True)]
    if split is None and not kept:
        parts = [b.reshape(y, shape=(*x.shape[:axis], *x.shape[axis + 1 :])) for y in parts]
    return [tuple(parts)]


@adapter("SequenceMap", objects=True)
def _sequence_map(call: Call) -> list[Value]:
    """The body is imported for each element; inputs that are no sequences are the same for each. Over a Stack it becomes a
    loop."""
    body, first = call.subgraph("body"), _sequence(call)
    if any(isinstance(x, Stack) for x in call.values):
        return _mapped_rows(call)
    for k, x in enumerate(call.values):
        if isinstance(x, tuple) and len(x) != _length(first):
            raise call.fail(f"input {k} is {described(x)}, and input 0 {described(first)}; expected the same length")
    made = []
    for turn in range(call.number(_length(first), "the length")):
        given = [x[turn] if isinstance(x, tuple) else x for x in call.values]
        made.append(call.scope.within(None, f"{call.name}/{turn}").outputs(body, given))
    return [tuple(found[k] for found in made) for k in range(len(body.outputs))]


def _mapped_rows(call: Call) -> list[Value]:
    body = call.subgraph("body")
    stacks = {k: stack(call.b, x) if isinstance(x, tuple) else x for k, x in enumerate(call.values)}
    rows = {k: x.rows for k, x in stacks.items() if isinstance(x, Stack)}
    if None in stacks.values():
        raise call.fail("sequences whose lengths a run finds beside one whose elements are not equal")

    def element(scope: Scope, _: Sequence[Node], parts: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node]]:
        own = dict(zip(rows, parts, strict=True))
        given = [own.get(k) or mapped(scope.captured, x) for k, x in enumerate(call.values)]
        return (), tensors_of(scope.outputs(body, given))

    _, made = scan(call.scope, (), [(x, 0, False) for x in rows.values()], (), element, call.name)
    return [Stack(x) for x in made]


@adapter("Optional", objects=True)
def _optional(call: Call) -> list[Value]:
    return [call.values[0] if call.values else None]


@adapter("OptionalHasElement", objects=True)
def _has_element(call: Call) -> Node:
    return call.b.const(np.array(bool(call.values) and call.values[0] is not None))


@adapter("OptionalGetElement", objects=True)
def _get_element(call: Call) -> list[Value]:
    if not call.values or call.values[0] is None:
        raise call.fail("the optional holds nothing")
    return [call.values[0]]
