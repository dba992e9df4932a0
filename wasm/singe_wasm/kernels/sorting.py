"""Sorts along an axis of any length: `sort` and `top_k`. Merge sort, stable, NaN largest.

An element becomes an item: its key, an integer that is in the order of the elements (or, to sort downwards, in the
opposite one), and its index along the axis. A key of 32 bits is the upper half of an integer of 64 bits whose lower half
is the index; a key of 64 bits is followed by the index, 16 bytes in all. A pass merges neighbouring runs from one half of
a line's workspace into the other, without branches that depend on the elements.

Where few of a line's elements are wanted, its first ITEMS_HELD_PER_WANTED times as many are sorted. The rest of the line is then compared
with the last of those wanted so far, and the elements before it are gathered behind them; whenever the workspace is full,
and at the end, it is sorted again, and the items that are not wanted are dropped.

The lines along the axis are dealt to at most MAX_WORKSPACES workspaces, which the parts of a run divide among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from singe.extension import Dim, DType, Port, Shape, dim_min, product

from ..code import encode
from ..code.encode import Body, Function, integers
from ..code.simd import SPLAT, VALUE
from ..code.values import F32, F64, I32, I64, I32x4, minimum, select
from ..code.writer import Writer
from . import memory as elements
from .lower import Lowering, SizeParameters
from .thread_shares import divide

OPS: Final = frozenset(("sort", "top_k"))
MAX_WORKSPACES: Final = 8
"""The most workspaces of a sort: so many parts of a run can work at once."""
ITEMS_HELD_PER_WANTED: Final = 4
"""How many items a workspace holds for each one that is wanted."""
_VECTORS: Final = 4
"""Vectors of a line that are compared at once."""
_LEAST: Final = 1 << 63


@dataclass(frozen=True)
class Sort:
    """length: the elements of a line. stride: the distance between them, in elements. count: how many are written."""

    dtype: DType
    outer: Dim
    length: Dim
    stride: Dim
    count: Dim
    descending: bool

    @property
    def lines(self) -> Dim:
        return self.outer * self.stride

    @property
    def item(self) -> int:
        """Bytes of an item."""
        return 16 if self.dtype.compute.size == 8 else 8

    @property
    def held(self) -> Dim:
        """How many items are sorted at once."""
        return self.length if self.whole else dim_min(self.length, self.count * ITEMS_HELD_PER_WANTED)

    @property
    def whole(self) -> bool:
        """Whether all elements are wanted."""
        return self.count == self.length

    @property
    def half(self) -> Dim:
        """Bytes of a half of a workspace. Those gathered by one comparison may exceed what is held."""
        return (self.held + (0 if self.whole else 4 * _VECTORS)) * self.item

    @property
    def workspace(self) -> Dim:
        return self.half * 2

    @property
    def workspaces(self) -> Dim:
        return dim_min(self.lines, MAX_WORKSPACES)

    @property
    def scratch(self) -> Dim:
        return self.workspace * self.workspaces + self.item  # never 0


def schedule_sort(
    attrs: Mapping[str, Any], inputs: Sequence[tuple[Shape, DType]], results: Sequence[tuple[Shape, DType]]
) -> Sort:
    ((shape, dtype),) = inputs
    axis = attrs["axis"] % len(shape)
    outer, stride = product(shape[:axis]), product(shape[axis + 1 :])
    descending = attrs.get("largest", attrs.get("descending", False))
    return Sort(dtype, outer, shape[axis], stride, results[0][0][axis], descending)


def print_sort(sort: Sort, sizes: SizeParameters) -> Function:
    """The function, with the ports x, values, places and the scratch memory."""
    ports = (Port(sort.dtype), Port(sort.dtype, True), Port(sort.dtype, True))
    low = Lowering(ports, sizes, scratch=True)
    w = Writer(Body(integers(len(ports) + 1 + len(sizes) + 2)))
    x, values, places, scratch = (I32(number=k) for k in range(4))
    size = sort.dtype.size
    length, stride, count = low.size(sort.length), low.size(sort.stride), low.size(sort.count)
    step, half = w.i32(stride * size), w.i32(low.size(sort.half))
    held = w.i32(low.size(sort.held))
    workspaces, lines = low.size(sort.workspaces), low.size(sort.lines)
    first, last = divide(w, low, workspaces)
    turn, line = w.i32(), w.i32()
    with w.when(count > 0), w.loop(turn, last, start=first):
        one = w.i32(scratch + turn * low.size(sort.workspace))
        other = w.i32(one + half)
        w.set(line, turn)
        with w.repeat_while(line < lines):  # each workspace has a line, since there are no more of them than lines
            outer, inner = w.i32(line // stride), w.i32(line % stride)
            begin = w.i32(x + (outer * length * stride + inner) * size)
            _items(w, sort, begin, step, held, one)
            total = w.i32(held * sort.item)
            if sort.whole:
                _sort(w, sort, one, other, total)
            else:
                next_ = w.i32(held)
                wanted = w.i32(count * sort.item)
                with w.repeat_while(wanted < total):
                    _sort(w, sort, one, other, total)
                    end = w.i32(one + wanted)
                    _gather(w, sort, begin, step, length, next_, end, w.i32(one + held * sort.item))
                    w.set(total, end - one)
            out = w.i32((outer * count) * stride + inner)
            at, index, k = w.i32(one), w.i32(), w.i32()
            to, place = w.i32(values + out * size), w.i32(places + out * 8)
            with w.loop(k, count, start=0):
                w.set(index, at.load(8 if sort.item == 16 else 0))
                w.store(place, index.as_i64())
                _copy(w, sort.dtype, to, begin + index * step)
                w.add(at, sort.item)
                w.add(to, step)
                w.add(place, stride * 8)
            w.add(line, workspaces)
    return w.finish()


def _copy(w: Writer, dtype: DType, to: I32, source: I32) -> None:
    """Copy an element."""
    element = elements.ELEMENTS[dtype]
    to.push(w.body)
    source.push(w.body)
    w.body.add(encode.memory(element.load) + encode.memory(element.store))


def _items(w: Writer, sort: Sort, begin: I32, step: I32, length: I32, to: I32) -> None:
    """Write the items of a line."""
    with w.scope():
        at, into, k = w.i32(begin), w.i32(to), w.i32()
        with w.loop(k, length, start=0):
            _item(w, sort, at, k, into)
            w.add(at, step)
            w.add(into, sort.item)


def _item(w: Writer, sort: Sort, at: I32, index: I32, into: I32) -> None:
    """Write the item of an element."""
    with w.scope():
        key = w.i64(_key(w, sort.dtype, at))
        if sort.descending:
            w.set(key, key ^ -1)
        if sort.item == 16:
            w.store(into, key)
            w.store(into, index, 8)
        else:
            w.store(into, key << 32 | index.as_i64())


def _gather(w: Writer, sort: Sort, begin: I32, step: I32, length: I32, index: I32, into: I32, full: I32) -> None:
    """Append the items that come before the one that ends at `into`; from the element `index` on, to the line's end or
    until `full` is reached. The locals `index` and `into` move on."""
    with w.scope():
        at, last = w.i32(begin + index * step), w.local((into - sort.item).i64())

        def one() -> None:
            _item(w, sort, at, index, into)
            w.set(into, into + (into.i64() < last) * sort.item)
            w.add(at, step)
            w.add(index, 1)

        more = (index < length) & (into < full)
        if sort.dtype in elements.VECTOR_STORAGE and sort.stride == 1:
            place = (into - sort.item).load(0)
            bound = w.i32x4(I32x4((begin + place * step).push, elements.load(sort.dtype, 0), SPLAT[sort.dtype.compute]))
            most = 4 * _VECTORS
            again = (index + (most - 1) < length) & (into < full)
            with w.when(again), w.repeat_while(again):
                stays = I32x4.of(-1)
                for k in range(_VECTORS):
                    four = I32x4(at.push, elements.load_lanes(sort.dtype, 4 * k * sort.dtype.size))
                    stays = stays & four.with_(_stays(sort), bound)
                with w.when((stays ^ I32x4.of(-1)).some()):
                    end = w.i32(index + most)
                    with w.repeat_while(index < end):
                        one()
                    w.otherwise()
                    w.add(at, most * sort.dtype.size)
                    w.add(index, most)
        with w.when(more), w.repeat_while(more):
            one()


def _stays(sort: Sort) -> str:
    """The comparison of an element with a bound that finds it not before the bound; NaN may come before it."""
    kind = sort.dtype.compute
    order = "le" if sort.descending else "ge"
    if kind.is_float:
        return f"f32x4.{order}"
    return f"i32x4.{order}_{'s' if kind.kind == 'int' else 'u'}"


def _key(w: Writer, dtype: DType, at: I32) -> I64:
    """The key of the element at an address; of a type of at most 32 bits, it is that of an int32."""
    kind, load = VALUE[dtype.compute], (at.push, elements.load(dtype, 0))
    if kind == "i32":
        number = I32(*load)
        return number.as_i64() if dtype.kind == "int" or dtype.bits < 32 else (number ^ (-1 << 31)).as_i64()
    if kind == "i64":
        return I64(*load) if dtype.kind == "int" else I64(*load) ^ -_LEAST
    # A float's bits are in order but for negative ones, which are in the opposite order. Adding 0 makes −0 equal to 0.
    if kind == "f32":
        single = w.local(F32(*load))
        bits, largest, wrong = w.i64((single + 0.0).bits().as_i64()), (1 << 31) - 1, single.differs(single)
    else:
        double = w.local(F64(*load))
        bits, largest, wrong = w.i64((double + 0.0).bits()), (1 << 63) - 1, double.differs(double)
    return I64.of(largest).where(wrong, bits ^ ((bits >> 63) & largest))


def _sort(w: Writer, sort: Sort, source: I32, to: I32, total: I32) -> None:
    """Sort the items at `source`; the locals `source` and `to` are exchanged with each pass."""
    with w.scope():
        width = w.i32(sort.item)
        with w.when(width < total), w.repeat_while(width < total):
            left, end, out = w.i32(source), w.i32(source + total), w.i32(to)
            with w.repeat_while(left < end):
                middle = w.i32(end - left)
                w.set(middle, left + minimum(middle, width))
                right, stop = w.i32(middle), w.i32(end - middle)
                w.set(stop, middle + minimum(stop, width))
                _merge(w, sort, left, middle, right, stop, out)
                w.set(left, stop)
            w.set(left, source)
            w.set(source, to)
            w.set(to, left)
            w.set(width, width << 1)


def _merge(w: Writer, sort: Sort, left: I32, middle: I32, right: I32, stop: I32, out: I32) -> None:
    """Merge the runs from `left` to `middle` and from `right` to `stop` to `out`, which ends behind them."""
    again = (left < middle) & (right < stop)
    with w.when(again), w.repeat_while(again):
        later = w.i32(right.i64() < left.i64())
        chosen = w.i32(select(later, right, left))
        if sort.item == 16:
            w.store(out, chosen.i32x4())
        else:
            w.store(out, chosen.i64())
        by = w.i32(later * sort.item)
        w.add(right, by)
        w.set(left, left + sort.item - by)
        w.add(out, sort.item)
    for start, end in ((left, middle), (right, stop)):
        w.move(out, start, end - start)
        w.set(out, out + end - start)
