"""Where the largest element along an axis is."""

from __future__ import annotations

from functools import partial

from ....graph import Node
from .._call import ADAPTERS, Call, adapter
from .normalise import along_axis


def _place(row: str, call: Call) -> Node:
    x, b = call.x(), call.b
    axis = call.axis(0, len(x.shape))
    y = getattr(b, row)(x, axis=axis, last=call.flag("select_last_index"))
    return y if call.flag("keepdims", True) else b.reshape(y, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


ADAPTERS["ArgMax"] = partial(_place, "argmax")
ADAPTERS["ArgMin"] = partial(_place, "argmin")


@adapter("Hardmax")
def _hardmax(call: Call) -> Node:
    return along_axis(call, "hardmax")
