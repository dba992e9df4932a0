"""The Routine "conv" as a matrix product: rows are output positions, k runs over window and channels.

Where the window is one element, input rows are read in place. Where its elements along the last axis lie side by side,
they are read from the input's lines, or from copies of these with the padding around. Else the few rows of a tile are
gathered into a panel, in runs of neighbouring elements, zeros outside the input. Groups are products of their own.
Neighbouring axes of the output are one axis of rows wherever the epilogue's indices allow it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from singe.extension import (
    Dim,
    Expr,
    Kernel,
    Routine,
    Store,
    affine,
    ceildiv,
    collapse,
    float32,
    int32,
    loop_vars,
    product,
    scalar,
)

from ..encode import OPS, Function, get_local, i32, ops
from .gemm import Product, Rows, Runs, Tile, choose_tile, turns
from .lower import Lowering
from .nest import lane_cost
from .panels import Packer, RowsInPlace, in_place, panels
from .share import LARGEST, begin, choose, first_alone, loop
from .writer import Node, Writer

_ZERO: Final = scalar.const(0, int32)
LONG: Final = 64
"""Elements of a window from which one output of one channel pays as a product: gathering its rows then costs little."""


@dataclass(frozen=True)
class Plan:
    """A convolution as the template sees it: outer loops (the group last), then rows m, columns n, and k."""

    kernel: Kernel  # its ports, and a grid (…outer, m, n) with the epilogue in terms of it, the only stage
    facts: Any
    coordinates: tuple[Expr, ...]  # of an output position: n, …space
    space: tuple[Dim, ...]  # of the output
    group: Expr
    image: Expr | None  # where images are a loop of their own, since their lines are read
    packed: bool
    whole: Kernel  # as it was given
    spare: int = 0  # bytes at the end of scratch for another template's use

    @property
    def store(self) -> Store:
        last = self.kernel.stages[-1]
        assert isinstance(last, Store)
        return last

    @property
    def outer(self) -> list[tuple[Expr, Dim]]:
        """The loops outside the product. The group is the outermost one: weights are packed once."""
        images = [] if self.image is None else [(self.image, self.facts["x_shape"][0])]
        grid = zip(self.kernel.grid_vars[:-2], self.kernel.grid[:-2], strict=True)
        return [(self.group, self.facts["group"]), *grid, *images]

    @cached_property
    def extents(self) -> tuple[Dim, Dim, int]:
        return self.kernel.grid[-2], self.kernel.grid[-1], int(np.prod(self.facts["w_shape"][:-1]))

    @property
    def k(self) -> Expr:
        return scalar.var("k", int32, self.extents[2])

    @property
    def columns(self) -> int:
        return choose_tile(self.extents[0], self.extents[1], True).columns

    @cached_property
    def wide(self) -> bool:
        return lane_cost(self.kernel, [self.store], self.kernel.grid_vars[-1]) is not None

    @cached_property
    def padded(self) -> tuple[int, int]:
        """Lines of an image with its padding, and positions of one of them."""
        f = self.facts
        *lines, along = (
            (length, pad, (out - 1) * stride + (window - 1) * dilation + 1)
            for length, pad, out, stride, window, dilation in zip(
                f["x_shape"][1:-1], f["pads"], self.space, f["strides"], f["w_shape"], f["dilations"], strict=False
            )
        )
        return (lines[0][2] if lines else 1), max(along[0] + along[1], along[2])

    @property
    def pads(self) -> bool:
        """Whether lines are copied for their padding."""
        return (
            self.padded[0] > self.facts["x_shape"][1]
            or self.padded[1] > self.facts["x_shape"][-2]
            or any(self.facts["pads"])
        )

    @cached_property
    def in_place(self) -> Expr | None:
        """The load that reads a row at m and k where each output position reads the one input position in its place."""
        f = self.facts
        space = f["x_shape"][1:-1]
        if any(d != 1 for d in (*f["w_shape"][:-2], *f["strides"])) or any(f["pads"]) or space != self.space:
            return None
        place = affine.flatten(self.coordinates, (f["x_shape"][0], *space))
        load = scalar.load(f["x"], place * f["x_shape"][-1] + self.group * f["w_shape"][-2] + self.k, float32)
        return load if in_place(self.kernel, load, self.kernel.grid_vars[-2], self.k) else None


def plan(routine: Routine, constants: Collection[int]) -> Plan | None:
    """How the template does this convolution; None where it does not."""
    facts = routine.facts
    grid, store = routine.kernel.grid, routine.epilogue
    columns = grid[-1]
    fixed = (facts["x_shape"][-1], *facts["w_shape"], columns)
    if (
        not all(isinstance(d, int) and d > 0 for d in fixed)
        or store.inner
        or any(routine.ports[facts[p]].dtype is not float32 for p in "xw")
    ):
        return None
    group = facts["group"]
    assert isinstance(columns, int)
    if columns == group and (facts["x_shape"][-1] != 1 or np.prod(facts["w_shape"]) < LONG):
        return None
    packed = facts["w"] in constants and not any(
        e.word == "load" and e.value == facts["w"] for e in scalar.postorder([store.value])
    )
    number = scalar.var("group", int32, group)
    by_image = _by_image(routine)
    if by_image is not None:
        merged, image = by_image
        coordinates = (image, *_coordinates(merged, grid[1:-1]))
        made = Plan(
            _grouped(merged, group), facts, coordinates, tuple(grid[1:-1]), number, image, packed, routine.kernel
        )
        if not made.pads or 4 * math.prod(made.padded) * facts["x_shape"][-1] <= LARGEST:
            return made
    merged = collapse(replace(routine.kernel, inner=(), stages=(store,)), keep=1, least=2)
    coordinates = _coordinates(merged, grid[:-1])
    return Plan(_grouped(merged, group), facts, coordinates, tuple(grid[1:-1]), number, None, packed, routine.kernel)


def _by_image(routine: Routine) -> tuple[Kernel, Expr] | None:
    """The epilogue over (m, n) of one image, and the image's number, where rows can be read from lines."""
    facts, grid, old = routine.facts, routine.kernel.grid, routine.kernel.grid_vars
    window = facts["w_shape"][:-2]
    fixed = (*facts["x_shape"][1:], *grid[1:])
    if (
        len(window) > 2
        or {*window, *facts["strides"]} == {1}
        or facts["group"] != 1
        or facts["dilations"][-1] != 1
        or not all(isinstance(d, int) for d in fixed)
        or any(p < 0 for p in facts["pads"])
    ):
        return None
    image = scalar.var("image", int32, grid[0])
    swap = dict(zip(old, (image, *loop_vars("g", grid[1:])), strict=True))
    store = routine.epilogue
    stage = replace(store, index=affine.substitute(store.index, swap), value=affine.substitute(store.value, swap))
    merged = collapse(replace(routine.kernel, grid=grid[1:], inner=(), stages=(stage,)), keep=1, least=2)
    return (merged, image) if len(merged.grid) == 2 else None


def _coordinates(merged: Kernel, axes: Sequence[Dim]) -> tuple[Expr, ...]:
    """Each output axis in terms of the merged loops, which hold one or several neighbouring axes that are not 1."""
    out: list[Expr] = []
    waiting = [(v, d) for v, d in zip(merged.grid_vars[:-1], merged.grid[:-1], strict=True) if d != 1]
    run: list[Dim] = []
    for axis in axes:
        run.append(axis)
        if waiting and product(run) == waiting[0][1] and axis != 1:
            out += affine.unflatten(waiting.pop(0)[0], tuple(run))
            run = []
    return (*out, *[_ZERO for _ in run])


def _grouped(merged: Kernel, group: int) -> Kernel:
    """The epilogue over (…outer, m, n), n within one group."""
    grid = merged.grid
    old, columns = merged.grid_vars[-1], merged.grid[-1]
    assert isinstance(columns, int)
    new = scalar.var(f"g{len(grid) - 1}", int32, columns // group)
    swap = {old: scalar.var("group", int32, group) * (columns // group) + new}
    (store,) = merged.stages
    assert isinstance(store, Store)
    stage = replace(store, index=affine.substitute(store.index, swap), value=affine.substitute(store.value, swap))
    return replace(merged, grid=(*grid[:-1], columns // group), stages=(stage,))


def pack(p: Plan, contents: np.ndarray) -> np.ndarray:
    """The weights' panels, group by group."""
    _, n, k = p.extents
    matrix = np.ascontiguousarray(contents, np.float32).reshape(k, -1)
    return np.stack([panels(matrix[:, g * n : (g + 1) * n], p.columns) for g in range(p.facts["group"])])


@dataclass(frozen=True)
class Areas:
    """Where things lie in scratch, in bytes: the spilled tile at 0, the panel of rows, the weights' panels, the end."""

    rows: int
    weights: int
    end: int


def areas(p: Plan) -> Areas:
    m, n, k = p.extents
    assert isinstance(n, int)
    rows = max(choose_tile(m, n, level).rows for level in (False, True))
    spill = 0 if p.wide and n % 4 == 0 else 4 * rows * p.columns
    if p.image is not None:
        panel = 4 * math.prod(p.padded) * p.facts["x_shape"][-1] if p.pads else 0
    else:
        panel = 0 if p.in_place is not None else 4 * rows * k
    weights = 0 if p.packed else _panel_bytes(p)
    return Areas(spill, spill + panel, spill + panel + weights + p.spare)


def _panel_bytes(p: Plan) -> int:
    """Of one group."""
    _, n, k = p.extents
    count = ceildiv(n, p.columns) * k * 4 * p.columns
    assert isinstance(count, int)
    return count


def print_conv(p: Plan, sizes: Sequence[Dim], relaxed: bool) -> Function:
    """The function of a planned convolution."""
    return Template(p, sizes, relaxed).function()


class Template:
    """A convolution's function while it is written."""

    def __init__(self, p: Plan, sizes: Sequence[Dim], relaxed: bool) -> None:
        self.plan: Final = p
        self.areas: Final = areas(p)
        scratch = self.areas.end != 0
        self.body: Final = begin(p.whole, scratch, sizes)
        self.writer: Final = Writer(self.body)
        self.tile: Final[Tile] = choose_tile(p.extents[0], p.extents[1], relaxed)
        self.m, self.n = p.kernel.grid_vars[-2:]
        self.low, self.edge, self.gather = (
            Lowering(p.kernel.ports, sizes, scratch, lane) for lane in (self.n, None, None)
        )
        self.all = (self.low, self.edge, self.gather)

    def function(self) -> Function:
        p = self.plan
        facts = p.facts
        outputs = facts["w_shape"][-1]
        _, n, k = p.extents
        loops = p.outer
        depth = len(loops)
        shared = choose(
            [*(d for _, d in loops), *turns(p.extents, self.tile, p.in_place is not None or p.image is not None)]
        )
        with ExitStack() as stack:
            stack.enter_context(first_alone(self.body, self.low, shared is None))
            for level, (variable, extent) in enumerate(loops, 1):
                local = self.body.local("i32")
                for low in self.all:
                    low.variable(variable, local, level)
                stack.enter_context(loop(self.writer, self.low, local, extent, shared == level - 1))
                if level == 1 and not p.packed:
                    weights = scalar.load(facts["w"], p.k * outputs + p.group * n + self.n, float32)
                    packer = Packer(
                        self.writer, self.low, self.edge, p.kernel, weights, (p.k, self.n), (k, n), self.tile.columns
                    )
                    packer.write(self.low.scratch(self.areas.weights), 1)
            spill = self.low.scratch(0) if self.areas.rows else None
            product = Product(
                self.writer, self.low, self.edge, p.kernel, (self.m, self.n), p.extents, self.tile, depth, spill
            )
            rows = self.rows(product, depth)
            b = (
                self.low.address(facts["w"], p.group * (_panel_bytes(p) // 4))[0]
                if p.packed
                else self.low.scratch(self.areas.weights)
            )
            product.write(rows, b, None if shared is None or shared < depth else shared - depth)
        return self.body.finish()

    def rows(self, product: Product, depth: int) -> Rows:
        """Where A's rows come from, `depth` loops being open."""
        p = self.plan
        if p.in_place is not None:
            return RowsInPlace(self.low, p.in_place, self.m, p.k)
        if p.image is not None:
            return _Lines(self, depth)
        self.gather.variable(self.m, product.edge_locals[0], depth + 2)
        return _Gathered(self, product.m_local, product.edge_locals[0], depth + 2)


class _Lines(Rows):
    """Rows of lines: those of the input where there is no padding, else copies of what a part needs."""

    in_place = True
    step = 4

    def __init__(self, job: Template, level: int) -> None:
        self._job = job
        self._level = level
        p, facts = job.plan, job.plan.facts
        channels = facts["x_shape"][-1]
        lines, taps = facts["w_shape"][0], facts["w_shape"][-3]
        self._line = (p.padded[1] if p.pads else facts["x_shape"][-2]) * channels  # elements of it
        two = len(facts["w_shape"]) == 4
        self._stride, self._pad, self._dilation = (
            facts[f][0] if two else d for f, d in (("strides", 1), ("pads", 0), ("dilations", 1))
        )
        if two:
            self.runs = Runs(lines, taps * channels, 4 * (self._dilation * self._line - taps * channels))
        place = p.coordinates[-1] * (facts["strides"][-1] * channels)
        self._index = p.coordinates[1] * (self._stride * self._line) + place if two else place

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        job, p = self._job, self._job.plan
        port, index, start = len(p.kernel.ports), self._index, job.areas.rows
        if not p.pads:
            port, start = p.facts["x"], 0
            index = index + p.coordinates[0] * math.prod(p.facts["x_shape"][1:])
        places = [job.low.address(port, index, ((job.m, i),) if i else ()) for i in range(rows)]
        return [(node, offset + start) for node, offset in places]

    def start(self, part: tuple[int, int] | None) -> None:
        job, p = self._job, self._job.plan
        if not p.pads:
            return
        body, writer, facts = job.body, job.writer, p.facts
        width = p.space[-1]
        assert isinstance(width, int)
        line, stop, to = (body.local("i32") for _ in range(3))
        lines = facts["w_shape"][0] if len(p.space) == 2 else 1
        span = (lines - 1) * self._dilation + 1
        if part is None:
            body.add(i32(0))
            body.set(line)
            body.add(i32(p.padded[0]))
        else:
            body.add(get_local(part[0]) + i32(width) + ops("i32.div_s") + i32(self._stride) + ops("i32.mul"))
            body.set(line)
            body.add(get_local(part[1]) + i32(-1) + ops("i32.add") + i32(width) + ops("i32.div_s"))
            body.add(i32(self._stride) + ops("i32.mul") + i32(span) + ops("i32.add"))
        body.set(stop)
        number = scalar.var("line", int32, p.padded[0])
        job.edge.variable(number, line, self._level + 1)
        inside = () if len(p.space) == 1 else (number - self._pad,)
        zero = _ZERO
        source, offset = job.edge.address(
            facts["x"], affine.flatten((p.coordinates[0], *inside, zero, zero), facts["x_shape"])
        )
        with writer.loop(line, get_local(stop)):
            writer.push(job.low.scratch(job.areas.rows))
            body.get(line)
            body.add(i32(4 * self._line) + ops("i32.mul i32.add"))
            body.set(to)
            body.get(line)
            body.add(i32(self._pad) + ops("i32.sub") + i32(facts["x_shape"][1] if inside else 1) + ops("i32.lt_u"))
            with body.when():
                with writer.scope():
                    channels = 4 * facts["x_shape"][-1]
                    body.get(to)
                    body.add(i32(channels * facts["pads"][-1]) + i32(channels * facts["x_shape"][-2]))
                    writer.push(source)
                    body.add(i32(offset) + ops("i32.add") + i32(4 * self._line))
                    body.call("copy_padded")
                body.otherwise()
                body.get(to)
                body.add(i32(4 * self._line))
                body.call("fill_zero")
        body.free(line, stop, to)
        job.edge.forget()


class _Gathered(Rows):
    """A few rows as a panel [row][…window, channel], zeros where the window sticks out."""

    in_place = False
    step = 4

    def __init__(self, job: Template, first: int, row: int, level: int) -> None:
        self._job = job
        self._first = first
        self._row = row
        self._level = level
        facts = job.plan.facts
        # Taps side by side along the last axis are one run where channels are whole and nothing is skipped.
        self._whole = facts["group"] == 1 and facts["dilations"][-1] == 1
        window = facts["w_shape"][:-2]
        self._taps = [scalar.var(f"t{i}", int32, d) for i, d in enumerate(window)]
        self._locals = [job.body.local("i32") for _ in window]
        for i, (tap, local) in enumerate(zip(self._taps, self._locals, strict=True), 1):
            job.gather.variable(tap, local, level + i)

    def addresses(self, rows: int) -> list[tuple[Node, int]]:
        job = self._job
        return [(job.low.scratch(job.areas.rows), 4 * job.plan.extents[2] * i) for i in range(rows)]

    def prepare(self, rows: int) -> None:
        job = self._job
        body, writer = job.body, job.writer
        facts = job.plan.facts
        at, stop = body.local("i32"), body.local("i32")
        writer.push(job.low.scratch(job.areas.rows))
        body.set(at)
        body.get(self._first)
        body.set(self._row)
        body.get(self._row)
        body.add(i32(rows) + OPS["i32.add"])
        body.set(stop)
        window = facts["w_shape"][:-2]
        looped = len(window) - 1 if self._whole else len(window)
        inputs = self._inputs()
        run = 4 * facts["w_shape"][-2] * (window[-1] if self._whole else 1)
        with ExitStack() as stack:
            stack.enter_context(writer.loop(self._row, get_local(stop), 1, True))
            writer.hoist([job.gather.scalar(e) for e in job.plan.coordinates], self._level)
            for local, extent in zip(self._locals[:looped], window, strict=False):
                body.add(i32(0))
                body.set(local)
                stack.enter_context(writer.loop(local, i32(extent), 1, True))
            self._run(at, inputs, looped, run)
            body.increase(at, run)
        body.free(at, stop)

    def _inputs(self) -> list[Expr]:
        """The input coordinates of the present tap; along a whole run's axis, of its first."""
        f = self._job.plan.facts
        space = self._job.plan.coordinates[1:]
        taps = [*self._taps[:-1], _ZERO] if self._whole else self._taps
        return [
            c * s + t * d - p
            for c, s, t, d, p in zip(space, f["strides"], taps, f["dilations"], f["pads"], strict=True)
        ]

    def _run(self, at: int, inputs: Sequence[Expr], looped: int, run: int) -> None:
        """Copy the run that lies inside, fill the rest with zeros."""
        job = self._job
        body, writer, low = job.body, job.writer, job.gather
        facts = job.plan.facts
        lengths = facts["x_shape"][1:-1]
        channels = facts["w_shape"][-2]
        body.add(i32(1))
        for e, length in zip(inputs[:looped], lengths, strict=False):
            writer.push(low.scalar(e))
            body.add(low.dim_code(length) + OPS["i32.lt_u"] + OPS["i32.and"])
        with body.when():
            with writer.scope():
                start, count = _ZERO, scalar.const(run // 4, int32)
                last = inputs[-1]
                if self._whole:
                    window = facts["w_shape"][-3]
                    start = scalar.minimum(scalar.maximum(-last, 0), window)
                    end = scalar.maximum(scalar.minimum(scalar.size(lengths[-1]) - last, window), start)
                    last, start, count = last + start, start * channels, (end - start) * channels
                first = (job.plan.coordinates[0], *inputs[:-1], last, job.plan.group * channels)
                index = affine.flatten(first, facts["x_shape"])
                source, offset = low.address(facts["x"], index)
                for value in (at, start, count):
                    if isinstance(value, int):
                        body.get(value)
                    else:
                        writer.push(low.scalar(value * 4))
                writer.push(source)
                body.add(i32(offset) + OPS["i32.add"] + i32(run))
                body.call("copy_padded")
            body.otherwise()
            body.get(at)
            body.add(i32(run))
            body.call("fill_zero")
