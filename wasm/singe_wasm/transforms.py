"""Winograd's transforms of six positions, for four outputs of windows of three weights, three of four or five of two, as functions that
generated code calls.

Each function transforms lines of vectors. Its parameters are (source, apart, step, to, gap, on, lines): the vectors of a
line are `apart` bytes apart, those of its result `gap` bytes; the next line is `step` bytes further, its result `on` bytes.
A square is transformed along one axis and then along the other. A result may overwrite its line.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from .code.encode import Body, Function, FunctionWriters, integers
from .code.values import F32
from .code.writer import Writer

Steps = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""Named sums of values times factors, in order; a sum may use earlier ones."""

TILE_OUTPUTS: Final = 4
"""Outputs of a tile along an axis, for a window of WINDOW_WEIGHTS."""
TILE_INPUTS: Final = 6
"""Its inputs, or positions."""
WINDOW_WEIGHTS: Final = 3
"""A window's weights; with one weight more, a tile has one output less, and with one less, one more."""

_A, _B = math.sqrt(0.5), math.sqrt(2)

# Transforms of one axis at the points 0, ±√½, ±√2 and infinity: at ±1 and ±2 the error is three to four times as large.

_INPUT: Final[Steps] = (
    ("even a", (("d4", 1), ("d2", -2.0))),
    ("odd a", (("d3", 1), ("d1", -2.0))),
    ("even b", (("d4", 1), ("d2", -0.5))),
    ("odd b", (("d3", 1), ("d1", -0.5))),
    ("t0", (("d0", 1), ("d4", 1), ("d2", -2.5))),
    ("t1", (("even a", 1), ("odd a", _A))),
    ("t2", (("even a", 1), ("odd a", -_A))),
    ("t3", (("even b", 1), ("odd b", _B))),
    ("t4", (("even b", 1), ("odd b", -_B))),
    ("t5", (("d1", 1), ("d5", 1), ("d3", -2.5))),
)
"""d0 … d5 to t0 … t5."""

_AT_POINTS: Final[Steps] = (
    ("t1", (("even a", 1), ("odd a", 1))),
    ("t2", (("even a", 1), ("odd a", -1))),
    ("t3", (("even b", 1), ("odd b", 1))),
    ("t4", (("even b", 1), ("odd b", -1))),
)
"""Of weights, at ±√½ and ±√2: even and odd powers, whose sums were taken before."""

_WEIGHT: Final[Steps] = (
    ("even a", (("d0", -2 / 3), ("d2", -1 / 3))),
    ("odd a", (("d1", -2 / 3 * _A),)),
    ("even b", (("d0", 1 / 6), ("d2", 1 / 3))),
    ("odd b", (("d1", _B / 6),)),
    ("t0", (("d0", 1),)),
    *_AT_POINTS,
    ("t5", (("d2", 1),)),
)
"""d0 … d2 to t0 … t5."""

_WEIGHT_OF_FOUR: Final[Steps] = (
    ("even a", (("d0", -2 / 3), ("d2", -1 / 3))),
    ("odd a", (("d1", -2 / 3 * _A), ("d3", -1 / 3 * _A))),
    ("even b", (("d0", 1 / 6), ("d2", 1 / 3))),
    ("odd b", (("d1", _B / 6), ("d3", _B / 3))),
    ("t0", (("d0", 1),)),
    *_AT_POINTS,
    ("t5", (("d3", 1),)),
)
"""d0 … d3 to t0 … t5."""

_WEIGHT_OF_TWO: Final[Steps] = (
    ("even a", (("d0", -2 / 3),)),
    ("odd a", (("d1", -2 / 3 * _A),)),
    ("even b", (("d0", 1 / 6),)),
    ("odd b", (("d1", _B / 6),)),
    ("t0", (("d0", 1),)),
    *_AT_POINTS,
    ("t5", (("d1", 1),)),
)
"""d0 and d1 to t0 … t5."""

_SUMS: Final[Steps] = (
    ("sum a", (("d1", 1), ("d2", 1))),
    ("gap a", (("d1", 1), ("d2", -1))),
    ("sum b", (("d3", 1), ("d4", 1))),
    ("gap b", (("d3", 1), ("d4", -1))),
)
_SUM_OF_ALL, _GAPS, _SUMS_OF_SQUARES, _GAPS_OF_CUBES, _SUMS_OF_FOURTHS = (
    (("d0", 1), ("sum a", 1), ("sum b", 1)),
    (("gap a", _A), ("gap b", _B)),
    (("sum a", 0.5), ("sum b", 2.0)),
    (("gap a", _A / 2), ("gap b", 2 * _B)),
    (("sum a", 0.25), ("sum b", 4.0)),
)
"""Of the products at the points, times powers of these: what outputs are."""
_AT_INFINITY: Final = ("d5", 1)

_OUTPUT: Final[Steps] = (
    *_SUMS,
    ("t0", _SUM_OF_ALL),
    ("t1", _GAPS),
    ("t2", _SUMS_OF_SQUARES),
    ("t3", (_AT_INFINITY, *_GAPS_OF_CUBES)),
)
"""d0 … d5 to t0 … t3."""

_OUTPUT_OF_THREE: Final[Steps] = (
    *_SUMS,
    ("t0", _SUM_OF_ALL),
    ("t1", _GAPS),
    ("t2", (_AT_INFINITY, *_SUMS_OF_SQUARES)),
)
"""d0 … d5 to t0 … t2."""

_OUTPUT_OF_FIVE: Final[Steps] = (
    *_SUMS,
    ("t0", _SUM_OF_ALL),
    ("t1", _GAPS),
    ("t2", _SUMS_OF_SQUARES),
    ("t3", _GAPS_OF_CUBES),
    ("t4", (_AT_INFINITY, *_SUMS_OF_FOURTHS)),
)
"""d0 … d5 to t0 … t4."""


def _lines(steps: Steps, count: int) -> Function:
    """The transform of lines of `count` vectors; see the module's docstring."""
    w = Writer(Body(integers(7)))
    source, apart, step, to, gap, on, lines = w.parameters()
    at, turn = w.i32(), w.i32()
    values = {f"d{i}": w.f32x4() for i in range(count)}
    used = sorted({f for _, terms in steps for _, f in terms if abs(f) != 1})
    factors = {f: w.local(F32.of(f).splat()) for f in used}
    with w.loop(turn, lines, start=0, sure=True):
        w.set(at, source)
        for i in range(count):
            w.set(values[f"d{i}"], at.f32x4())
            w.add(at, apart)
        for target, ((first, scale), *terms) in steps:
            into = w.f32x4(values[first] if scale == 1 else values[first] * factors[scale])
            for name, factor in terms:
                if abs(factor) != 1:
                    w.multiply_add(into, values[name], factors[factor])
                else:
                    w.set(into, into + values[name] if factor == 1 else into - values[name])
            values[target] = into
        w.set(at, to)
        for target, _ in steps:
            if target[0] == "t":
                w.store(at, values[target])
                w.add(at, gap)
        w.add(source, step)
        w.add(to, on)
    return w.finish()


TRANSFORMS: Final[FunctionWriters] = {
    "winograd_input": partial(_lines, _INPUT, TILE_INPUTS),
    "winograd_weight": partial(_lines, _WEIGHT, WINDOW_WEIGHTS),
    "winograd_output": partial(_lines, _OUTPUT, TILE_INPUTS),
    "winograd_weight_of_four": partial(_lines, _WEIGHT_OF_FOUR, WINDOW_WEIGHTS + 1),
    "winograd_output_of_three": partial(_lines, _OUTPUT_OF_THREE, TILE_INPUTS),
    "winograd_weight_of_two": partial(_lines, _WEIGHT_OF_TWO, WINDOW_WEIGHTS - 1),
    "winograd_output_of_five": partial(_lines, _OUTPUT_OF_FIVE, TILE_INPUTS),
}
