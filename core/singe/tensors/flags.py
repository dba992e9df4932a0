"""Flags: what a function that is traced finds out of range while it runs, as one number that it can give beside its results.

Indices and classes that the host has are refused there (../compiler/index_ranges.py). Of others, in a `collecting` block, ops note
whether one is out of range.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..compiler.index_ranges import passes_on
from ..graph import Node
from .tensor import Tensor, apply, value_on
from .tracing import Lifting, Tracer, present_tracer


class Flags:
    """code: 0, or the number of a text, counted from 1, of which the indices are out of range; None if there is none to be."""

    def __init__(self, on: Tracer | None, texts: list[str]) -> None:
        self.on: Final = on
        self._texts: Final = texts
        self.code: Tensor | None = None

    def add(self, wrong: Tensor, text: str) -> None:
        """Note a condition: one bool."""
        if text not in self._texts:
            self._texts.append(text)
        number = self._texts.index(text) + 1
        one = apply(lambda b, w: b.where(w, b.const(float(number)), b.const(0.0)), wrong)
        self.code = one if self.code is None else apply(lambda b, u, v: b.maximum(u, v), self.code, one)


_FLAGS: Final[ContextVar[Flags | None]] = ContextVar("flags", default=None)


def flagging() -> bool:
    """Whether ops note what is out of range."""
    return _FLAGS.get() is not None


@contextmanager
def collecting(texts: list[str]) -> Iterator[Flags]:
    """A context in which the function that is being traced collects flags; of one that is not traced, there are none. texts: get
    what the code's numbers mean."""
    on = present_tracer()
    flags = Flags(on, texts)
    if on is None:
        yield flags
        return
    token = _FLAGS.set(flags)
    try:
        yield flags
    finally:
        _FLAGS.reset(token)


def flag_range(index: Tensor, least: int, most: int, text: str, ignored: int | None = None) -> None:
    """Note whether integers that the device computes are out of a range; the text is of the error."""
    flags = _FLAGS.get()
    on = index.device
    if (
        flags is None
        or not isinstance(on, Tracer)
        or (flags.on is not None and on.trace_depth > flags.on.trace_depth)
        or _is_given(on, value_on(on, index))
    ):
        return  # what a trace within this one computes stays there
    low, high = index.dtype.limits  # a bound beyond them holds of all
    outside = [index < least] if low < least else []
    if most < high:
        outside.append(index >= most + 1)
    if not outside:
        return
    wrong = functools.reduce(operator.or_, outside)
    if ignored is not None and low <= ignored <= high:
        wrong = wrong & (index != ignored)
    beside = "" if ignored is None else f", or {ignored} for places that do not count"
    flags.add(wrong.any(), f"{text}: what the device computed is out of range, expected from {least} to {most}{beside}")


def _is_given(on: Tracer, node: Node) -> bool:
    """Whether the host has the elements: those of a constant, or of an input that is used as compiler/index_ranges.py allows."""
    sliced = False
    while True:
        if node.is_const:
            return True
        if node.is_input:
            outer = None
            if isinstance(on, Lifting):
                outer = next((x for x, n in on.lifted.items() if n is node), None)
            if outer is None or not isinstance(outer.device, Tracer):
                return True
            on, node = outer.device, value_on(outer.device, outer)
            continue
        if not passes_on(node) or (sliced and node.op != "cast"):
            return False
        sliced = sliced or node.op == "slice"
        node = node.inputs[0]
