"""Convolutions over NumPy's arrays, in parts that stay in the cache."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...ir.arrays import convert
from ...ir.arrays.numpy import NUMPY_ARRAYS

OUTPUTS_AT_ONCE: Final = 1 << 16
"""How many output elements of a depthwise convolution are computed at a time: few enough to stay in the cache."""


def conv_last(
    x: np.ndarray,
    w: np.ndarray,
    strides: Any,
    dilations: Any,
    before: Any,
    after: Any,
    group: int,
) -> np.ndarray:
    kind = x.dtype
    x, w = NUMPY_ARRAYS.wide(x), NUMPY_ARRAYS.wide(w)
    if any(before) or any(after):
        x = np.pad(x, [(0, 0), *zip(before, after, strict=True), (0, 0)])
    *window, per_group, outputs = w.shape
    spaces = len(window)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(window, dilations, strict=True))
    if any(d < r for d, r in zip(x.shape[1:-1], reach, strict=True)):  # no window fits: the output is empty
        places = (max(0, (d - r) // s + 1) for d, r, s in zip(x.shape[1:-1], reach, strides, strict=True))
        return np.empty((x.shape[0], *places, outputs), kind)
    every = sliding_window_view(x, reach, axis=tuple(range(1, spaces + 1)))
    # (n, …space, channels, …window)
    patches = every[
        (slice(None), *(slice(None, None, s) for s in strides), slice(None), *(slice(None, None, d) for d in dilations))
    ]
    if per_group == 1 and outputs == group:
        out = _depthwise(patches, w.reshape(*window, outputs), spaces)
    else:
        rows = patches.shape[: spaces + 1]
        order = (*range(spaces + 1), *range(spaces + 2, 2 * spaces + 2), spaces + 1)
        columns = patches.transpose(order)  # (n, …space, …window, channels)
        points, depth = math.prod(rows), math.prod(window) * per_group
        if group == 1:
            out = _in_parts(columns, w.reshape(depth, outputs), spaces)
        else:
            split = columns.reshape(*columns.shape[:-1], group, per_group)
            stack = np.moveaxis(split, -2, 0).reshape(group, points, depth)
            weights = np.moveaxis(w.reshape(*window, per_group, group, outputs // group), -2, 0).reshape(
                group, depth, outputs // group
            )
            out = np.moveaxis(stack @ weights, 0, 1)
        out = out.reshape(*rows, outputs)
    return convert(out, kind)


WINDOW_ELEMENTS_AT_ONCE: Final = 1 << 18
"""How many elements of windows are gathered at a time: few enough to stay in the cache."""


def _in_parts(columns: np.ndarray, w: np.ndarray, spaces: int) -> np.ndarray:
    """Windows (n, …space, …window, channels) times (window elements, outputs), some images or rows of one at a time."""
    rows = columns.shape[: spaces + 1]
    out = np.zeros((*rows, w.shape[-1]), np.result_type(columns, w))
    if not out.size or not w.size:
        return out
    line = math.prod(rows[2:]) * w.shape[0]
    images = max(WINDOW_ELEMENTS_AT_ONCE // (line * rows[1]), 1)
    lines = rows[1] if images > 1 else min(max(WINDOW_ELEMENTS_AT_ONCE // line, 1), rows[1])
    gathered = np.empty((min(images, rows[0]), lines, *columns.shape[2:]), columns.dtype)
    for n in range(0, rows[0], images):
        for at in range(0, rows[1], lines):
            part = columns[n : n + images, at : at + lines]
            here = gathered[: part.shape[0], : part.shape[1]]
            np.copyto(here, part)
            place = (slice(n, n + images), slice(at, at + lines))
            out[place] = (here.reshape(-1, w.shape[0]) @ w).reshape(*part.shape[: spaces + 1], -1)
    return out


def _depthwise(patches: np.ndarray, w: np.ndarray, spaces: int) -> np.ndarray:
    """A depthwise convolution: for each block of rows, one whole-array multiply-add per place of the window."""
    rows = patches.shape[: spaces + 1]
    out = np.empty((*rows, w.shape[-1]), np.result_type(patches, w))
    flat_rows = rows[1] if spaces else 1
    step = max(1, OUTPUTS_AT_ONCE * flat_rows // max(1, out[:1].size))
    for n in range(rows[0]):
        for at in range(0, flat_rows, step):
            here = out[n, at : at + step]
            part = np.empty_like(here)
            for number, tap in enumerate(np.ndindex(w.shape[:-1])):
                source = patches[(n, slice(at, at + step), ..., *tap)]
                if number == 0:
                    np.multiply(source, w[tap], out=here)
                else:
                    np.multiply(source, w[tap], out=part)
                    np.add(here, part, out=here)
    return out
