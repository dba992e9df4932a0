"""Triangles and diagonals of matrices, and windows of signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from ....dtypes import float32, float64, int32, int64
from ....graph import Node
from ....ops.movement.move import numbered
from ....ops.movement.triangle import diagonals, number_of_diagonal, triangle
from ....shapes import Size, show
from .._call import ADAPTERS, Call, adapter
from ..elementwise.basic import cast, dtype_of_code


@adapter("Trilu")
def _trilu(call: Call) -> Node:
    """A run may compute the number of the diagonal."""
    x, b, upper = call.x(), call.b, call.flag("upper", True)
    if call.maybe(1) is None:
        return triangle(b, x, b.const(0, int32), upper)
    known = call.known(1)
    if known is not None and not any(isinstance(d, Size) for d in known.ravel()):
        return triangle(b, x, b.const(number_of_diagonal(call.ints(1)[0]), int32), upper)
    limits = (b.const(number_of_diagonal(sign << 62), int64) for sign in (-1, 1))
    diagonal = b.clip(cast(call, b.reshape(call.x(1), shape=()), int64), *limits)
    return triangle(b, x, cast(call, diagonal, int32), upper)


@adapter("EyeLike")
def _eye_like(call: Call) -> Node:
    x, b = call.x(), call.b
    if len(x.shape) != 2:
        raise call.fail(f"got {show(x.shape)}, expected a matrix")
    code = call.attr("dtype", 0)
    ones = b.equal(diagonals(b, *x.shape), b.const(number_of_diagonal(call.attr("k", 0)), int32))
    return cast(call, ones, dtype_of_code(call, code) if code else x.dtype)


COSINES: Final = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""Windows ↦ the coefficients of cos(k · angle) for k = 0, 1, …, where the angle grows from 0 to a full turn."""


def _window(coefficients: Sequence[float], call: Call) -> Node:
    b, count = call.b, call.length(0)
    to = dtype_of_code(call, call.attr("output_datatype", 1))
    kind = float64 if to is float64 else float32
    turn = b.const(count if call.flag("periodic", True) else count - 1, int64)
    places = numbered(b, count, kind)
    part = b.div(places, cast(call, turn, kind))
    total = b.const(coefficients[0], kind)
    for k, factor in enumerate(coefficients[1:], 1):
        wave = b.cos(b.mul(part, b.const(2 * math.pi * k, kind)))
        total = b.add(total, b.mul(wave, b.const(factor, kind)))
    return cast(call, total, to)


ADAPTERS.update({op: partial(_window, coefficients) for op, coefficients in COSINES.items()})
