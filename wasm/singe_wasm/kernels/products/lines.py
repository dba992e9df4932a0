"""Writes the function of a convolution along one axis that winograd.py scheduled, by the loops of tiles.py.

The tiles of an image are counted so that neighbours begin at neighbouring outputs: where weights are `dilation` apart, that many tiles lie
between each other.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from singe.extension import affine, float32, int32, scalar

from ...code.encode import Function
from ...code.values import I32, maximum, minimum
from ...levels import Level
from ...transforms import TILE_INPUTS
from ..lower import SizeParameters
from .tiles import WinogradTiles
from .winograd import COLUMNS, LineSchedule


def print_lines(s: LineSchedule, sizes: SizeParameters, level: Level) -> Function:
    """The function of a scheduled convolution."""
    return _Lines(s, sizes, level).function()


class _Lines(WinogradTiles[LineSchedule]):
    def __init__(self, s: LineSchedule, sizes: SizeParameters, level: Level) -> None:
        super().__init__(s, sizes, level)
        simple, size = self.w.simple, self.low.size
        self.length: Final = simple(size(s.facts["x_shape"][1]))
        self.across: Final = simple(size(s.routine.kernel.grid[1]))
        self.of_image: Final = simple(size(s.tiles_of_image))

    def start(self) -> None:
        # Inputs are inside if the first one is below this (unsigned compare).
        self.clear = self.w.simple(maximum(self.w.simple(self.length - (TILE_INPUTS - 1) * self.s.dilation), 0))

    def _first(self, tile: I32) -> I32:
        """The first output of a tile; its image is noted."""
        w, s = self.w, self.s
        w.set(self.image_at, tile // self.of_image)
        of_image = w.i32(tile % self.of_image)
        return of_image // s.dilation * s.reach + of_image % s.dilation

    def transform_inputs(self, first: I32, stop: I32) -> None:
        w, s, line = self.w, self.s, self.line
        zero = scalar.const(0, int32)
        image, offset = self.low.address(s.facts["x"], affine.flatten((self.image, zero, zero), s.facts["x_shape"]))
        with w.scope():
            tile, to = w.i32(), w.i32(self.scratch(self.inputs))
            with w.loop(tile, stop, start=first):
                at = w.i32(self._first(tile) - self.low.size(s.facts["pads"][0]))
                begin = w.i32(w.value(image) + offset)
                with w.loop(w.i32(), s.groups, start=0):
                    source, apart = w.i32(begin + at * line), w.i32(s.dilation * line)
                    with w.when(at.below(self.clear).zero):
                        self._copy_patch(at, source)
                        w.set(source, self.scratch(self.patch))
                        w.set(apart, line)
                    w.call("winograd_input", source, apart, 16, to, s.stride, 16, s.channels // 4)
                    w.add(to, line)
                    w.add(at, s.form.weights * s.dilation)

    def _copy_patch(self, first: I32, source: I32) -> None:
        """The inputs of a tile from the position `first` on, which would be at `source`, with zeros outside the input."""
        w, line, apart = self.w, self.line, self.s.dilation
        at, from_, to = w.i32(first), w.i32(source), w.i32(self.scratch(self.patch))
        with w.loop(w.i32(), TILE_INPUTS, start=0):
            with w.when(at.below(self.length)):
                w.call("copy_padded", to, 0, line, from_, line)
                w.otherwise()
                w.call("fill_zero", to, line)
            w.add(at, apart)
            w.add(from_, apart * line)
            w.add(to, line)

    def transform_weights(self, column: I32) -> None:
        w, s = self.w, self.s
        tap = 4 * s.channels * s.outputs
        source, offset = self.low.address(s.facts["w"], scalar.const(0, int32))
        whole = s.window // s.form.weights
        with w.scope():
            vector, to = w.i32(column), w.i32(self.scratch(self.weights))
            with w.loop(w.i32(), COLUMNS // 4, start=0):
                # A panel's vector behind the last column has the columns before it, whose sums are not stored.
                start, put = w.i32(w.value(source) + offset + minimum(vector, s.outputs - 4) * 4), w.i32(to)
                with w.loop(w.i32(), whole, start=0):
                    self._transform_group(start, tap, 4 * s.outputs, put)
                    w.add(start, s.form.weights * tap)
                    w.add(put, 4 * COLUMNS * s.channels)
                if s.groups > whole:
                    self._copy_group(start, s.window % s.form.weights)
                    self._transform_group(self.scratch(self.patch), 4 * self.line, 16, put)
                w.add(to, 16)
                w.add(vector, 4)

    def _transform_group(self, source: I32, tap: int, channel: int, to: I32) -> None:
        self.w.call(self.s.form.weight, source, tap, channel, to, self.s.panel, 4 * COLUMNS, self.s.channels)

    def _copy_group(self, source: I32, taps: int) -> None:
        """A group of fewer weights, [weight][channel] vectors, zeros where there are none."""
        w, s = self.w, self.s
        to, each = w.i32(self.scratch(self.patch)), 4 * self.line
        with w.loop(w.i32(), taps * s.channels, start=0):
            w.store(to, source.f32x4())
            w.add(to, 16)
            w.add(source, 4 * s.outputs)
        w.call("fill_zero", to, (s.form.weights - taps) * each)

    def outputs(self, tile: I32, stop: I32, column: I32) -> None:
        w, s, count = self.w, self.s, self.s.form.outputs
        vectors = COLUMNS // 4
        with w.scope():
            half = w.i32(self.scratch(self.half))
            position = 4 * COLUMNS * self.tile.rows
            w.call(s.form.output, self.scratch(self.sums), position, 16, half, 16, 16 * count, (stop - tile) * vectors)
            number, end = w.i32(), w.i32(column + COLUMNS)
            w.set(end, minimum(end, s.outputs))
            with w.loop(number, stop, start=tile, sure=True):
                w.set(self.x_at, self._first(number))
                with w.when(self.x_at < self.across):
                    at = w.i32(half)
                    with w.loop(self.channel_at, end, 4, start=column, sure=True):
                        self._store(at)
                        w.add(at, 16 * count)
                w.add(half, 16 * count * vectors)

    def _store(self, at: I32) -> None:
        """A tile's outputs, those that are inside."""
        w, s, store = self.w, self.s, self.store
        done = [w.f32x4(at.f32x4(16 * i)) for i in range(s.form.outputs)]
        shifts = [((self.x, s.dilation * i),) if i else () for i in range(s.form.outputs)]
        for local, shift in zip(done, shifts, strict=True):
            self.low.accumulator(scalar.var("a0", float32), local, 4, shift)
        self.low.forget()
        known = self.across.known
        surely = known is not None and known % s.reach == 0
        for i, shift in enumerate(shifts):
            tree = self.low.store(store.port, store.index, store.value, shift, 1)
            with w.when(self.x_at < self.across - s.dilation * i) if i and not surely else nullcontext():
                w.push(tree)
