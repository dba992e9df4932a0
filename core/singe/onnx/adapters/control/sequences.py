"""Sequences and optionals: a tuple of the importer's values, and None or the value itself.

Their lengths, and whether an optional holds something, are known while a model is imported. If sizes or values of inputs
decide them, these are asked for (SizeNeeded, ValueNeeded). A position may be found in a run if all elements have the same
shape.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ....dtypes import dtype
from ....graph import Node, Value
from ....graph.objects import described
from ....shapes import axis_of, show
from ...tensors import ELEMENTS, MAX_FOLDED
from .._call import Call, adapter
from ..movement.shapes import slice_axes
from .control import subgraph


def _sequence(call: Call, i: int = 0) -> tuple[Value, ...]:
    found = call.values[i] if i < len(call.values) else None
    if not isinstance(found, tuple):
        raise call.fail(f"input {i} is {'missing' if found is None else described(found)}; expected a sequence")
    return found


def _tensors(call: Call) -> list[Node]:
    """The elements of a sequence of tensors: one at least, all of one type."""
    found = [x for x in _sequence(call) if isinstance(x, Node)]
    if not found or len(found) != len(_sequence(call)) or len({x.dtype for x in found}) > 1:
        raise call.fail(f"input 0 is {described(_sequence(call))}; expected one tensor at least, and all of one type")
    return found


def _place(call: Call, i: int, length: int, most: int) -> int:
    """The position in input i, which must be known: at most `most`, and counted from the end if it is negative."""
    (given,) = call.ints(i) or (0,)
    if not -length <= given <= most:
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
def _length(call: Call) -> Node:
    return call.b.const(np.array(len(_sequence(call)), np.int64))


@adapter("SequenceInsert", objects=True)
def _insert(call: Call) -> list[Value]:
    found = _sequence(call)
    at = len(found) if call.maybe(2) is None else _place(call, 2, len(found), len(found))
    return [(*found[:at], call.values[1], *found[at:])]


@adapter("SequenceErase", objects=True)
def _erase(call: Call) -> list[Value]:
    found = _sequence(call)
    at = len(found) - 1 if call.maybe(1) is None else _place(call, 1, len(found), len(found) - 1)
    if not found:
        raise call.fail("the sequence is empty")
    return [found[:at] + found[at + 1 :]]


@adapter("SequenceAt", objects=True)
def _at(call: Call) -> list[Value]:
    found = _sequence(call)
    known = call.known(1)
    if known is None and all(isinstance(x, Node) for x in found):
        tensors = _tensors(call)
        if all(x.shape == tensors[0].shape for x in tensors):
            position = call.b.reshape(call.x(1), shape=())
            return [call.b.gather(_stacked(call, tensors, 0), position, axis=0)]
    return [found[_place(call, 1, len(found), len(found) - 1)]]


def _stacked(call: Call, tensors: list[Node], axis: int) -> Node:
    """Tensors of one shape along a new axis."""
    shape = tensors[0].shape
    at = axis_of(axis, len(shape) + 1, call.op)
    parts = [call.b.reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:])) for x in tensors]
    return parts[0] if len(parts) == 1 else call.b.concat(*parts, axis=at)


@adapter("ConcatFromSequence", objects=True)
def _concat_from_sequence(call: Call) -> Node:
    tensors, axis = _tensors(call), call.attr("axis", 0)
    if call.flag("new_axis"):
        return _stacked(call, tensors, axis)
    axis = axis_of(axis, len(tensors[0].shape), call.op)
    return tensors[0] if len(tensors) == 1 else call.b.concat(*tensors, axis=axis)


@adapter("SplitToSequence")
def _split_to_sequence(call: Call) -> list[Value]:
    x, b = call.x(), call.b
    axis = call.axis(0, len(x.shape))
    length = call.number(x.shape[axis], f"the length of axis {axis}")
    split = call.maybe(1)
    if split is None:
        lengths = (1,) * min(length, MAX_FOLDED + 1)
    elif split.shape == ():
        (each,) = call.ints(1)
        if each < 1:
            raise call.fail(f"a split into parts of {each}")
        lengths = tuple(min(each, length - at) for at in range(0, length, each))
    else:
        lengths = call.lengths(call.ints(1))
    if sum(d for d in lengths if isinstance(d, int)) != length:
        raise call.fail(f"the parts {show(lengths)} do not add up to axis {axis} of {show(x.shape)}")
    starts = accumulate((0, *lengths[:-1])) if lengths else ()
    parts = [slice_axes(call, x, {axis: (at, 1, n)}) for at, n in zip(starts, lengths, strict=True)]
    if split is None and not call.flag("keepdims", True):
        parts = [b.reshape(y, shape=(*x.shape[:axis], *x.shape[axis + 1 :])) for y in parts]
    return [tuple(parts)]


@adapter("SequenceMap", objects=True)
def _sequence_map(call: Call) -> list[Value]:
    """The body is imported for each element; inputs that are no sequences are the same for each."""
    body, first = subgraph(call, "body"), _sequence(call)
    for k, x in enumerate(call.values):
        if isinstance(x, tuple) and len(x) != len(first):
            raise call.fail(f"input {k} is {described(x)}, and input 0 {described(first)}; expected the same length")
    made = []
    for turn in range(len(first)):
        given = [x[turn] if isinstance(x, tuple) else x for x in call.values]
        made.append(call.scope.within(None).outputs(body, given))
    return [tuple(found[k] for found in made) for k in range(len(body.outputs))]


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
