"""How a product reads its operands: A's rows through a Feed, B as panels.

InPlace    a plain load: rows are read in place.
Evaluated  any other expression: it is evaluated into a panel of a few rows, four k at a time if it can be vectorised.
Lines      a convolution whose window elements along the last axis are contiguous: rows are read from the input's lines,
           or from copies of the lines with padding.
Gathered   any other convolution: the window of each row is copied into a panel, in contiguous runs.

A panel of B holds `columns` columns for every k, [panel][k][columns]; the last panel is filled up with zeros. The lengths
and padding of a convolution's space axes may be open: borders and counts are then computed at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from singe.extension import (
    Contraction,
    Dim,
    Expr,
    Kernel,
    PackedPlaces,
    Reduce,
    affine,
    dim_max,
    float32,
    int32,
    scalar,
)
from singe.extension import product as dim_product

from ...code.values import I32, Int
from ...code.writer import Tree, Writer
from ..lanes import lane_cost
from ..lower import Lowering
from ..thread_shares import MAX_SCRATCH_BYTES, guess

if TYPE_CHECKING:
    from .contraction import Template

ZERO = scalar.const(0, int32)


@dataclass(frozen=True)
class Runs:
    """A row of A as `count` runs of `length` elements, `jump` bytes from the end of one to the next."""

    count: int
    length: int
    jump: Int


class Feed:
    """The source of A's rows. `bytes_of(rows)` is the scratch that it needs; `bound` gives the feed for a template."""

    in_place: ClassVar[bool] = True
    """Whether rows are read in place; otherwise `prepare` writes a panel for each block of rows."""
    step: int = 4
    """Bytes from one k to the next."""
    runs: Runs | None = None
    """The runs of k, if there is more than one."""
    job: Template

    def __init__(self, c: Contraction, facts: Mapping[str, Any]) -> None:
        self.c = c
        self.facts = facts

    def bytes_of(self, rows: int) -> Dim:
        return 0

    def bound(self, job: Template) -> Feed:
        """The feed for the function that a template writes."""
        made = copy(self)
        made.job = job
        made.declare()
        return made

    def declare(self) -> None:
        """Declare lowerings and locals."""

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        """The address of k = 0 of each row of the block at the present m, as (tree, constant offset)."""
        raise NotImplementedError

    def start(self, part: tuple[I32, I32] | None) -> None:
        """Write the data that all rows of a part need; part: locals with its range of rows (None: all rows)."""

    def prepare(self, rows: int) -> None:
        """Write the panel of the block at the present m."""


class InPlace(Feed):
    """See the module's docstring."""

    def __init__(self, c: Contraction, facts: Mapping[str, Any]) -> None:
        super().__init__(c, facts)
        step = affine.linear(c.a.args[0])[0].get(c.k, 0)
        assert isinstance(step, int)
        self.step = 4 * step

    @staticmethod
    def takes(c: Contraction) -> bool:
        """Whether a is a float32 load whose index is linear in m and k, k in fixed steps."""
        if c.a.word != "load" or c.kernel.ports[c.a.value].dtype is not float32:
            return False
        terms, _ = affine.linear(c.a.args[0])
        simple = all(t in (c.m, c.k) or not {c.m, c.k} & set(scalar.postorder([t])) for t in terms)
        step = terms.get(c.k, 0)
        return simple and isinstance(step, int) and 0 <= step < 1 << 20

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        c = self.c
        index = scalar.substitute(c.a.args[0], {c.k: ZERO} if c.k.word == "var" else {})
        return [self.job.low.address(c.a.value, index, ((c.m, i),) if i else ()) for i in range(rows)]


class _PanelFeed(Feed):
    """A panel of a few rows, [row][k], in scratch."""

    in_place = False

    def bytes_of(self, rows: int) -> Dim:
        return 4 * rows * self.c.depth

    def declare(self) -> None:
        self.row = self.job.w.i32()

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        low, start, k = self.job.low, self.job.feed_at, self.c.depth
        if isinstance(k, int):
            return [(low.scratch(start), 4 * k * i) for i in range(rows)]
        return [(low.scratch(start + k * (4 * i)), 0) for i in range(rows)]


class Evaluated(_PanelFeed):
    """See the module's docstring."""

    def declare(self) -> None:
        super().declare()
        job = self.job
        self.along_k = job.lowering(self.c.k)
        self.k = job.w.i32()
        self.along_k.variable(self.c.m, self.row, job.depth + 2)
        self.along_k.variable(self.c.k, self.k, job.depth + 3)

    def prepare(self, rows: int) -> None:
        w, c, job = self.job.w, self.c, self.job
        wide = c.k.word == "var" and lane_cost(c.kernel, [Reduce("a", "add", c.a)], c.k) is not None
        value = self.along_k.scalar(c.a)
        values = self.along_k.vector(c.a) if wide else value
        count = job.low.size(c.depth)
        with w.scope():
            at, first = w.i32(w.value(job.low.scratch(job.feed_at))), job.product.row
            with w.loop(self.row, first + rows, start=first, sure=True, hoist=[value, values], level=job.depth + 2):
                if wide:
                    with w.loop(self.k, count & -4, 4, start=0):
                        w.put(at, values)
                        w.add(at, 16)
                with w.loop(self.k, count, start=None if wide else 0):
                    w.put(at, value)
                    w.add(at, 4)


class _WindowFeed(Feed):
    """The common part of the feeds of convolutions."""

    def position(self) -> tuple[Expr, tuple[Expr, ...]]:
        """The image and the output coordinates of the row m."""
        c, grid = self.c, self.facts["grid"]
        if len(c.batch) == 2:
            return c.batch_vars[1], affine.unflatten(c.m, grid[1:-1])
        image, *space = affine.unflatten(c.m, grid[:-1])
        return image, tuple(space)


class InputLines(_WindowFeed):
    """See the module's docstring. The rows of its contraction are the positions of one image."""

    def __init__(self, c: Contraction, facts: Mapping[str, Any]) -> None:
        super().__init__(c, facts)
        f = facts
        self.channels: int = f["x_shape"][-1]
        axes = zip(
            f["x_shape"][1:-1], f["pads"], f["grid"][1:-1], f["strides"], f["w_shape"], f["dilations"], strict=False
        )
        reach = [
            (length, pad, (out - 1) * stride + (window - 1) * dilation + 1)
            for length, pad, out, stride, window, dilation in axes
        ]
        *lines, (length, pad, last) = reach
        self.two = bool(lines)
        self.lines: Dim = lines[0][2] if lines else 1  # of an image with its padding, and
        # positions of a line: of what is read, and of the whole input, which is copied.
        self.copies = any(f["pads"]) or not all(affine.at_least(inside - end, 0) for inside, _, end in reach)
        self.positions: Dim = dim_max(length + pad, last) if self.copies else length
        self.stride, self.pad, self.dilation = (
            f[name][0] if self.two else default for name, default in (("strides", 1), ("pads", 0), ("dilations", 1))
        )
        self.span: int = ((f["w_shape"][0] if self.two else 1) - 1) * self.dilation + 1
        self.line: Dim = self.positions * self.channels  # elements

    @staticmethod
    def takes(facts: Mapping[str, Any]) -> bool:
        window = facts["w_shape"][:-2]
        return (
            len(window) <= 2
            and {*window, *facts["strides"]} != {1}
            and facts["group"] == 1
            and facts["dilations"][-1] == 1
            and all(affine.at_least(p, 0) for p in facts["pads"])
        )

    @property
    def affordable(self) -> bool:
        return not self.copies or guess(self.lines * self.line * 4) <= MAX_SCRATCH_BYTES

    def bytes_of(self, rows: int) -> Dim:
        return self.lines * self.line * 4 if self.copies else 0

    def declare(self) -> None:
        if self.two:
            run = self.facts["w_shape"][1] * self.channels
            jump = self.job.low.size(self.line) * (4 * self.dilation) - 4 * run
            self.runs = Runs(self.facts["w_shape"][0], run, jump)

    def addresses(self, rows: int) -> list[tuple[Tree, int]]:
        job, f, c = self.job, self.facts, self.c
        image, space = self.position()
        index = space[-1] * (f["strides"][-1] * self.channels)
        if self.two:
            index = space[0] * scalar.size(self.line * self.stride) + index
        port, start = len(c.kernel.ports), 0
        if not self.copies:
            port = f["x"]
            index = index + image * scalar.size(dim_product(f["x_shape"][1:]))
        elif isinstance(job.feed_at, int):
            start = job.feed_at
        else:
            index = index + scalar.size(job.feed_at // 4)
        places = [job.low.address(port, index, ((c.m, i),) if i else ()) for i in range(rows)]
        return [(tree, offset + start) for tree, offset in places]

    def start(self, part: tuple[I32, I32] | None) -> None:
        if not self.copies:
            return
        job, f, w = self.job, self.facts, self.job.w
        width = job.low.size(f["grid"][-2])
        with w.scope():
            line, stop = w.i32(0), w.i32(job.low.size(self.lines))
            if part is not None:
                w.set(stop, 0)
                with w.when(part[0] < part[1]):
                    w.set(line, part[0] // width * self.stride)
                    w.set(stop, (part[1] - 1) // width * self.stride + self.span)
            number = scalar.var("line", int32, self.lines)
            job.edge.variable(number, line, job.depth + 1)
            inside = (number - scalar.size(self.pad),) if self.two else ()
            image, _ = self.position()
            source, offset = job.edge.address(f["x"], affine.flatten((image, *inside, ZERO, ZERO), f["x_shape"]))
            size, each = w.simple(job.low.size(self.line) * 4), 4 * self.channels
            before, length = (job.low.size(d) * each for d in (f["pads"][-1], f["x_shape"][-2]))
            with w.loop(line, stop):
                to = w.i32(w.value(job.low.scratch(job.feed_at)) + line * size)
                with w.when((line - job.low.size(self.pad)).below(job.low.size(f["x_shape"][1] if self.two else 1))):
                    w.call("copy_padded", to, before, length, w.value(source) + offset, size)
                    w.otherwise()
                    w.call("fill_zero", to, size)
        job.edge.forget()


class Gathered(_WindowFeed, _PanelFeed):
    """See the module's docstring. A panel's row is [window][channel], zeros where the window is outside the input."""

    def declare(self) -> None:
        super().declare()
        job, window = self.job, self.facts["w_shape"][:-2]
        # Neighbouring window elements along the last axis are one run where channels are whole and nothing is skipped.
        self.whole = self.facts["group"] == 1 and self.facts["dilations"][-1] == 1
        self.gather = job.lowering(None)
        self.taps = [scalar.var(f"tap{i}", int32, d) for i, d in enumerate(window)]
        self.locals = [job.w.i32() for _ in window]
        self.gather.variable(self.c.m, self.row, job.depth + 2)
        for i, (tap, local) in enumerate(zip(self.taps, self.locals, strict=True), 3):
            self.gather.variable(tap, local, job.depth + i)

    def prepare(self, rows: int) -> None:
        w, job, f = self.job.w, self.job, self.facts
        window = f["w_shape"][:-2]
        looped = len(window) - 1 if self.whole else len(window)
        run = 4 * f["w_shape"][-2] * (window[-1] if self.whole else 1)
        image, space = self.position()
        with w.scope(), ExitStack() as stack:
            at, first = w.i32(w.value(job.low.scratch(job.feed_at))), job.product.row
            stack.enter_context(w.loop(self.row, first + rows, start=first, sure=True))
            w.hoist([self.gather.scalar(e) for e in (image, *space)], job.depth + 2)
            for local, extent in zip(self.locals[:looped], window, strict=False):
                stack.enter_context(w.loop(local, extent, start=0))
            taps = [*self.taps[:-1], ZERO] if self.whole else self.taps
            inputs = [
                c * s + t * d - scalar.size(p)
                for c, s, t, d, p in zip(space, f["strides"], taps, f["dilations"], f["pads"], strict=True)
            ]
            self._run(at, image, inputs, looped, run)
            w.add(at, run)

    def _run(self, at: I32, image: Expr, inputs: Sequence[Expr], looped: int, run: int) -> None:
        """Copy the part of a run that is inside the input, and fill the rest with zeros."""
        w, f, low = self.job.w, self.facts, self.gather
        lengths, channels = f["x_shape"][1:-1], f["w_shape"][-2]
        inside = I32.of(1)
        for e, length in zip(inputs[:looped], lengths, strict=False):
            inside = inside & w.value(low.scalar(e)).below(low.size(length))
        with w.when(inside):
            start, count, last = ZERO, scalar.const(run // 4, int32), inputs[-1]
            if self.whole:
                start = scalar.minimum(scalar.maximum(-last, 0), f["w_shape"][-3])
                end = scalar.maximum(scalar.minimum(scalar.size(lengths[-1]) - last, f["w_shape"][-3]), start)
                last, start, count = last + start, start * channels, (end - start) * channels
            group = self.c.batch_vars[0]
            index = affine.flatten((image, *inputs[:-1], last, group * channels), f["x_shape"])
            source, offset = low.address(f["x"], index)
            before, bytes_ = (w.value(low.scalar(e * 4)) for e in (start, count))
            w.call("copy_padded", at, before, bytes_, w.value(source) + offset, run)
            w.otherwise()
            w.call("fill_zero", at, run)


# --- B ---------------------------------------------------------------------------------------------------------------


def panels(matrix: np.ndarray, columns: int) -> np.ndarray:
    """A [k][n] matrix as [panel][k][columns], filled up with zeros."""
    k, n = matrix.shape
    count = -(-n // columns)
    out = np.empty((count, k, columns), matrix.dtype)
    whole, rest = divmod(n, columns)
    out[:whole] = matrix[:, : whole * columns].reshape(k, whole, columns).transpose(1, 0, 2)
    if rest:
        out[whole] = 0
        out[whole, :, :rest] = matrix[:, whole * columns :]
    return out


def places_in_panels(rows: int, across: int, columns: int, transposed: bool = False) -> PackedPlaces:
    """Where `panels` puts the elements of a [rows][across] matrix, or of its transpose."""

    def place(index: Expr) -> Expr:
        if transposed:
            n, k = affine.unflatten(index, (across, rows))
        else:
            k, n = affine.unflatten(index, (rows, across))
        panel, column = affine.index_div(n, columns), affine.index_rem(n, columns)
        return affine.flatten((panel, k, column), (-(-across // columns), rows, columns))

    return PackedPlaces(rows * across, place)


class PanelWriter:
    """Writes the code that packs B at run time."""

    def __init__(self, w: Writer, low: Lowering, edge: Lowering, c: Contraction, columns: int) -> None:
        """low: lanes along n. edge: the same ports, scalar."""
        self.w, self.low, self.edge, self.c, self.columns = w, low, edge, c, columns
        kernel: Kernel = c.kernel
        self.wide = lane_cost(kernel, [Reduce("b", "add", c.b)], c.n) is not None

    def write(self, to: Tree, level: int) -> None:
        """All panels from that address on; `level` loops are open."""
        w, c, width = self.w, self.c, self.columns
        with w.scope():
            at, n, k, column = w.i32(w.value(to)), w.i32(), w.i32(), w.i32()
            self.low.variable(c.k, k, level + 2)
            self.edge.variable(c.k, k, level + 2)
            self.low.variable(c.n, n, level + 1)
            self.edge.variable(c.n, column, level + 3)
            with w.loop(n, self.low.size(c.columns), width, start=0):
                if self.wide:
                    vectors = [self.low.vector(c.b, ((c.n, 4 * j),) if j else ()) for j in range(width // 4)]
                    with w.when(n <= self.low.size(c.columns) - width):
                        with w.loop(k, self.low.size(c.depth), start=0):
                            for j, tree in enumerate(vectors):
                                w.put(at, tree, 16 * j)
                            w.add(at, 4 * width)
                        w.otherwise()
                        self._edge(at, n, k, column)
                else:
                    self._edge(at, n, k, column)
        self.low.forget()
        self.edge.forget()

    def _edge(self, at: I32, n: I32, k: I32, column: I32) -> None:
        """One panel, an element at a time, zeros beyond n."""
        w, c = self.w, self.c
        with w.loop(k, self.low.size(c.depth), start=0), w.loop(column, n + self.columns, start=n, sure=True):
            w.store(at, I32.of(0))
            with w.when(column < self.low.size(c.columns)):
                w.put(at, self.edge.scalar(c.b))
            w.add(at, 4)
