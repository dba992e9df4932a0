"""Elements and slices folded into those at indices: `scatter_elements_reduce` and `scatter_nd_reduce`.

The result starts as a copy of x; then a loop folds the elements of the part into it one by one, in order, so that sums
have the same bits as NumPy's. One part of a run does all the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from singe.extension import DType, Port, Shape, product

from ..code.encode import Body, Function, integers
from ..code.simd import SCALAR, VALUE
from ..code.values import I32, I64
from ..code.writer import Writer
from . import memory as elements
from .lower import Lowering, SizeParameters
from .thread_shares import first_alone

OPS: Final = frozenset(("scatter_elements_reduce", "scatter_nd_reduce"))


def print_scatter(
    op: str, attrs: Mapping[str, Any], inputs: Sequence[tuple[Shape, DType]], sizes: SizeParameters
) -> Function:
    """The function, with the ports x, part, indices and the result."""
    (shape, dtype), (part, _), (places, index) = inputs
    ports = (Port(dtype), Port(dtype), Port(index), Port(dtype, True))
    low = Lowering(ports, sizes)
    w = Writer(Body(integers(len(ports) + len(sizes) + 2)))
    scatter = _ScatterLoops(w, low, shape, dtype, index, attrs["reduction"])
    with first_alone(w, low, True):
        w.move(scatter.to, I32(number=0), low.size(product(shape) * dtype.size))
        if op == "scatter_elements_reduce":
            scatter.elements(part, attrs["axis"] % len(shape))
        else:
            scatter.slices(places)
    return w.finish()


class _ScatterLoops:
    """A function while it is written; its locals `source` and `at` go through the part and the indices in order."""

    def __init__(self, w: Writer, low: Lowering, shape: Shape, dtype: DType, index: DType, word: str) -> None:
        self.w, self.low, self.shape, self.dtype, self.index, self.word = w, low, shape, dtype, index, word
        self.source, self.at, self.to = w.i32(I32(number=1)), w.i32(I32(number=2)), I32(number=3)

    def elements(self, part: Shape, axis: int) -> None:
        w, to = self.w, self.to
        with ExitStack() as loops:
            for k, d in enumerate(part):
                turn = w.i32()
                loops.enter_context(w.loop(turn, self.low.size(d), start=0))
                if k != axis:
                    to = w.i32(to + turn * self._step(k))
            self._fold(w.i32(to + self._place(0, axis) * self._step(axis)))
            w.add(self.at, self.index.size)

    def slices(self, places: Shape) -> None:
        w, axes = self.w, places[-1]
        assert isinstance(axes, int)
        turn, inner = w.i32(), w.i32()
        with w.loop(turn, self.low.size(product(places[:-1])), start=0):
            to = w.i32(self.to)
            for axis in range(axes):
                w.add(to, self._place(axis, axis) * self._step(axis))
            with w.loop(inner, self.low.size(product(self.shape[axes:])), start=0):
                self._fold(to)
                w.add(to, self.dtype.size)
            w.add(self.at, axes * self.index.size)

    def _step(self, axis: int) -> I32:
        """Bytes between neighbours along an axis of the result."""
        return self.low.size(product(self.shape[axis + 1 :]) * self.dtype.size)

    def _place(self, number: int, axis: int) -> I32:
        """The index at this distance from `at`, along an axis: negative ones count from the end, others are clipped."""
        load = (self.at.push, elements.load(self.index, number * self.index.size))
        wide = VALUE[self.index.compute] == "i64"
        place = self.w.i64(I64(*load) if wide else I32(*load).as_i64(self.index.kind == "int"))
        extent = self.low.size(self.shape[axis])
        self.w.set(place, (place + extent.as_i64()).where(place < 0, place))
        self.w.set(place, I64.of(0).where(place < 0, place))
        self.w.set(place, place.where(place < extent.as_i64(), (extent - 1).as_i64()))
        return place.as_i32()

    def _fold(self, to: I32) -> None:
        """Fold the next element of the part into the one at an address."""
        body, load = self.w.body, elements.load(self.dtype, 0)
        to.push(body)
        for at in (to, self.source):
            at.push(body)
            body.apply(load)
        body.apply(SCALAR[self.word][self.dtype.compute])
        body.apply(elements.store(self.dtype, 0))
        self.w.add(self.source, self.dtype.size)
