"""Rows that change no element, but what is done with a value."""

from __future__ import annotations

from ...dtypes import ALL, FLOATS
from .._row import Elementwise, register

register(
    Elementwise(name="stop_gradient", method=False, doc="the same elements, through which no gradient goes", body=lambda x: x,
                reference=lambda x: x, vjp=lambda b, g, inputs, y: [None], dtypes=ALL),
    Elementwise(name="recomputed", method=False, doc="the same elements as a value of its own, so that what is computed from it is not "
                "shared with what is computed from the original", body=lambda x: x, reference=lambda x: x, dtypes=FLOATS),
)  # fmt: skip
