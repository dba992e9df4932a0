"""Remainders, and operations on bits."""

from __future__ import annotations

from ....graph import Node
from .._call import Call, adapter
from .basic import dtype_of_code


@adapter("BitShift")
def _bit_shift(call: Call) -> Node:
    direction = call.attr("direction", "")
    rows = {"LEFT": call.b.bitwise_left_shift, "RIGHT": call.b.bitwise_right_shift}
    if direction not in rows:
        raise call.fail(f"direction is {direction!r}; expected LEFT or RIGHT")
    return rows[direction](call.x(), call.x(1))


@adapter("Mod")
def _mod(call: Call) -> Node:
    return (call.b.fmod if call.flag("fmod") else call.b.remainder)(call.x(), call.x(1))


@adapter("BitCast")
def _bit_cast(call: Call) -> Node:
    return call.b.bit_cast(call.x(), to=dtype_of_code(call, call.attr("to", 0)))
