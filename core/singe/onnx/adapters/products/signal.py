"""Signals: DFT, STFT, MelWeightMatrix."""

from __future__ import annotations

from ....graph import Node
from ....shapes import Dim, axis_of, show
from .._call import Call, adapter
from ..elementwise.basic import cast, dtype_of_code


@adapter("DFT")
def _dft(call: Call) -> Node:
    """The axis is an attribute before version 20, and may be an input since."""
    x = call.x()
    length: Dim | None = None if call.maybe(1) is None else call.length(1)
    axis = call.attr("axis", 1) if call.version < 20 else -2 if call.maybe(2) is None else _number(call, 2)
    axis = axis_of(axis, len(x.shape), "DFT")
    return call.b.dft(x, axis=axis, length=length, inverse=call.flag("inverse"), onesided=call.flag("onesided"))


def _number(call: Call, i: int) -> int:
    found = call.ints(i)
    if len(found) != 1:
        raise call.fail(f"input {i} has {len(found)} elements, expected one number")
    return found[0]


@adapter("STFT")
def _stft(call: Call) -> Node:
    x, window = call.x(), call.maybe(2)
    if len(x.shape) == 2:  # PyTorch's exporter leaves out the axis of the parts of a real signal
        x = call.b.reshape(x, shape=(*x.shape, 1))
    if len(x.shape) != 3 or (window is not None and len(window.shape) != 1):
        raise call.fail(f"the signal is {show(x.shape)}; expected (batch, numbers, parts), and a vector as its window")
    length = call.length(3) if call.maybe(3) is not None else x.shape[1] if window is None else window.shape[0]
    return call.b.stft(x, window, length=length, step=call.length(1), onesided=call.flag("onesided", True))


@adapter("MelWeightMatrix")
def _mel_weight_matrix(call: Call) -> Node:
    found = call.b.mel_weight_matrix(*(call.x(i) for i in range(5)))
    return cast(call, found, dtype_of_code(call, call.attr("output_datatype", 1)))
