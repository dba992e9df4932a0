"""Rows that change no element, but what is done with a value."""

from __future__ import annotations

from ...dtypes import ALL, FLOATS
from ..kinds import Elementwise, View, register

register(
    Elementwise(name="stop_gradient", public=False, doc="the same elements, through which no gradient goes", body=lambda x: x,
                vjp=lambda b, g, inputs, y: [None], dtypes=ALL),
    View(name="recomputed", public=False, doc="the first input's elements as a value of its own, so that what is computed from it is not "
         "shared with what is computed from the original, and comes after the second input",
         shape=lambda x, after: x.shape, value=lambda c, read, x, after: read(0, c), evaluate=lambda xp, x, after: x, shares=True,
         vjp=lambda b, g, inputs, y: [g, None], dtypes=FLOATS, index_inputs=(1,)),
)  # fmt: skip
