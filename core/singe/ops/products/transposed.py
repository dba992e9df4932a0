"""The transpose of `conv_last`, composed of convolutions: the gradient of its input, and ONNX's ConvTranspose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...shapes import Dim, Shape, at_least

MAX_WASTE_RATIO: Final = 1.25
"""How many times more products one convolution may compute than one for each remainder would."""
MAX_CONVOLUTIONS: Final = 16
"""The most convolutions that are made of one."""


def conv_or_dot(b: Any, x: Any, w: Any, **facts: Any) -> Any:
    """conv_last, or a plain product if it computes the same (a 1 × 1 window, stride 1, no padding, one group)."""
    window = w.shape[:-2]
    plain = all(d == 1 for d in (*window, *facts["strides"], facts["group"])) and not any(
        (*facts["before"], *facts["after"])
    )
    return b.dot(x, b.reshape(w, shape=w.shape[-2:])) if plain else b.conv_last(x, w, **facts)


def _flip(b: Any, x: Any, axes: Sequence[int]) -> Any:
    starts = tuple(d - 1 if i in axes else 0 for i, d in enumerate(x.shape))
    return b.slice(x, starts=starts, steps=tuple(-1 if i in axes else 1 for i in range(len(x.shape))), sizes=x.shape)


def resized(b: Any, x: Any, axis: int, before: Dim, length: Dim) -> Any:
    """`length` elements of an axis, beginning at `before`; elements outside the axis are zero."""
    rank, d = len(x.shape), x.shape[axis]

    def along(value: Dim, other: Shape) -> Shape:
        return (*other[:axis], value, *other[axis + 1 :])

    zeros = (0,) * rank
    lo = -before if isinstance(before, int) and before < 0 else 0
    start = before + lo
    end = start + (length - lo)
    hi = end - d if not at_least(d - end, 0) else 0
    count = length - lo - hi
    if start != 0 or count != d:
        x = b.slice(x, starts=along(start, zeros), steps=(1,) * rank, sizes=along(count, x.shape))
    if lo or hi:
        x = b.pad(x, b.const(0, x.dtype), before=along(lo, zeros), after=along(hi, zeros), mode="constant")
    return x


def transposed_last(
    b: Any,
    x: Any,
    w: Any,
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    sizes: Shape,
    group: int,
) -> Any:
    """The transpose of conv_last: x (n, …space, channels), w (…window, channels, outputs per group) → (n, …sizes, outputs).

    Input i contributes to output Y = i·s + k. With Y = q·s + r and k = t·s + r this means i = q − t, which is an
    ordinary convolution for each remainder r. All of them are computed as one convolution with s times the output
    channels, whose window has zeros for the remainders with fewer places; a transpose and a reshape put its results in
    order. Where too many are zeros, there is a convolution for each remainder.
    """
    spaces = len(strides)
    axes = range(spaces)
    *window, channels, outputs = w.shape
    for i in axes:
        if dilations[i] > 1:  # fill the gaps of the dilated window with zeros
            w = b.reshape(w, shape=(*w.shape[: i + 1], 1, *w.shape[i + 1 :]))
            w = resized(b, w, i + 1, 0, dilations[i])
            w = b.reshape(w, shape=(*w.shape[:i], w.shape[i] * w.shape[i + 1], *w.shape[i + 2 :]))
            window[i] = dilations[i] * (window[i] - 1) + 1
            w = resized(b, w, i, 0, window[i])
    turns = [-(-k // s) for k, s in zip(window, strides, strict=True)]
    joint = math.prod(turns) * math.prod(strides)
    known = [d for d in sizes if isinstance(d, int)]
    closed = len(known) == spaces and all(isinstance(d, int) for d in (*before, *x.shape[1:-1]))
    if closed and math.prod(strides) <= MAX_CONVOLUTIONS and joint > MAX_WASTE_RATIO * math.prod(window):
        return _by_remainders(b, x, w, strides, before, known, group)
    for i in axes:
        w = resized(b, w, i, 0, turns[i] * strides[i])
    per_group = channels // group
    split = [d for t, s in zip(turns, strides, strict=True) for d in (t, s)]
    w = b.reshape(w, shape=(*split, group, per_group, outputs))
    w = _flip(b, w, [2 * i for i in axes])
    w = b.transpose(
        w, perm=(*(2 * i for i in axes), 2 * spaces + 1, 2 * spaces, *(2 * i + 1 for i in axes), 2 * spaces + 2)
    )
    phases = math.prod(strides)
    w = b.reshape(w, shape=(*turns, per_group, group * phases * outputs))
    reach = tuple(t - 1 for t in turns)
    low, high = reach, reach
    if phases == 1:  # one place for each output: padding leaves out those that are not wanted
        ends = [n + lo - d for n, lo, d in zip(sizes, before, x.shape[1:-1], strict=True)]
        fits = all(r >= lo for r, lo in zip(reach, before, strict=True)) and all(at_least(n, 1) for n in sizes)
        if fits and all(at_least(end, 0) for end in ends):
            low, high = tuple(r - lo for r, lo in zip(reach, before, strict=True)), tuple(ends)
            before = (0,) * spaces
    y = conv_or_dot(b, x, w, strides=(1,) * spaces, dilations=(1,) * spaces, before=low, after=high, group=group)
    places = y.shape[1:-1]
    y = b.reshape(y, shape=(y.shape[0], *places, group, *strides, outputs))
    y = b.transpose(y, perm=(0, *(p for i in axes for p in (1 + i, 2 + spaces + i)), 1 + spaces, 2 + 2 * spaces))
    y = b.reshape(y, shape=(y.shape[0], *(q * s for q, s in zip(places, strides, strict=True)), group * outputs))
    for i in axes:
        y = resized(b, y, i + 1, before[i], sizes[i])
    return y


def _by_remainders(
    b: Any, x: Any, w: Any, strides: Sequence[int], before: Sequence[int], sizes: Sequence[int], group: int
) -> Any:
    """`transposed_last` by a convolution for each remainder of the outputs' places by the strides."""
    spaces = len(strides)
    *window, channels, outputs = w.shape
    counts = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
    found = {}
    for point in np.ndindex(*strides):
        facts = zip(point, before, strides, window, x.shape[1:-1], counts, strict=True)
        axes = [_remainder(*f) for f in facts]
        if any(a.taps == 0 for a in axes):
            y = b.expand(b.const(0, x.dtype), shape=(x.shape[0], *counts, group * outputs))
        else:
            taps = b.slice(
                w, starts=(*(a.last for a in axes), 0, 0), steps=(*(-s for s in strides), 1, 1),
                sizes=(*(a.taps for a in axes), channels, outputs),
            )  # fmt: skip
            taps = b.reshape(taps, shape=(*taps.shape[:-2], group, channels // group, outputs))
            taps = b.transpose(taps, perm=(*range(spaces), spaces + 1, spaces, spaces + 2))
            taps = b.reshape(taps, shape=(*taps.shape[:-2], group * outputs))
            met = x
            for i, a in enumerate(axes):
                low, high = min(a.low, 0), min(a.high, 0)
                met = resized(b, met, i + 1, -low, x.shape[i + 1] + low + high) if low or high else met
            low, high = (tuple(max(d, 0) for d in sides) for sides in ([a.low for a in axes], [a.high for a in axes]))
            ones = (1,) * spaces
            y = conv_or_dot(b, met, taps, strides=ones, dilations=ones, before=low, after=high, group=group)
        found[point] = b.reshape(y, shape=(y.shape[0], *(d for n in counts for d in (n, 1)), y.shape[-1]))
    for i in reversed(range(spaces)):
        ahead = np.ndindex(*strides[:i])
        found = {p: b.concat(*(found[(*p, r)] for r in range(strides[i])), axis=2 + 2 * i) for p in ahead}
    y = found[()]
    y = b.reshape(y, shape=(y.shape[0], *(n * s for n, s in zip(counts, strides, strict=True)), y.shape[-1]))
    for i in range(spaces):
        y = resized(b, y, i + 1, 0, sizes[i])
    return y


class _Remainder(NamedTuple):
    """The convolution along an axis for the outputs of a remainder."""

    taps: int
    last: int  # the last place of the window that meets these outputs, which is first in the convolution
    low: int  # padding of the input; negative: elements left out
    high: int


def _remainder(number: int, before: int, stride: int, window: int, length: int, count: int) -> _Remainder:
    """number: of an output's place by the stride; length: of the input; count: of these outputs."""
    ahead, first = divmod(number + before, stride)
    taps = max(-(-(window - first) // stride), 0)
    return _Remainder(taps, first + (taps - 1) * stride, taps - 1 - ahead, count + ahead - length)
