"""LSTM, GRU and RNN: the recurrent rows, with ONNX's names, defaults and layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....graph import Node
from ....ops import ROWS
from ....ops.products.recurrent import DIRECTIONS, OPTIONAL
from .._call import Call, adapter

PARAMETERS: Final[Mapping[str, Sequence[float]]] = {
    "affine": (1.0, 0.0), "elu": (1.0,), "hardsigmoid": (0.2, 0.5), "leakyrelu": (0.01,), "relu": (), "scaledtanh": (1.0, 1.0),
    "sigmoid": (), "softplus": (), "softsign": (), "tanh": (), "thresholdedrelu": (1.0,),
}  # fmt: skip
"""The activations, with the default values of their parameters."""
DEFAULT: Final = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""The default activations of a direction."""


def parameters(call: Call, name: str) -> Sequence[float]:
    """The default values of an activation's parameters."""
    if name not in PARAMETERS:
        raise call.fail(f"the activation {name!r} is unknown; expected one of {', '.join(PARAMETERS)}")
    return PARAMETERS[name]


def _activations(call: Call, directions: int) -> tuple[tuple[str, float, float], ...]:
    """Name and parameters of each activation. The file lists parameters only for activations that have them."""
    names = call.items("activations", str) or DEFAULT[call.op] * directions
    if len(names) != directions * len(DEFAULT[call.op]):
        raise call.fail(
            f"{len(names)} activations; expected {len(DEFAULT[call.op])} for each of {directions} directions"
        )
    given = [list(call.items(name, float) or ()) for name in ("activation_alpha", "activation_beta")]
    out = []
    for name in map(str.lower, names):
        defaults = parameters(call, name)
        alpha, beta, *_ = (*(own.pop(0) if own else v for own, v in zip(given, defaults, strict=False)), 0.0, 0.0)
        out.append((name, alpha, beta))
    return tuple(out)


def _swapped(call: Call, x: Node) -> Node:
    """x with its first two axes swapped."""
    return call.b.transpose(x, perm=(1, 0, 2))


@adapter("LSTM", "GRU", "RNN")
def _recurrent(call: Call) -> list[Node]:
    return recurrent(call)


def recurrent(call: Call, **more: bool) -> list[Node]:
    """`more`: options of the row that the ONNX op does not have."""
    b = call.b
    x, w, r = (call.x(i) for i in range(3))
    call.known_shape(r, "the shape of the recurrent weights")
    direction = call.attr("direction", "forward")
    if direction not in DIRECTIONS:
        raise call.fail(f"the direction is {direction!r}; expected one of {', '.join(DIRECTIONS)}")
    names = OPTIONAL if call.op == "LSTM" else OPTIONAL[:3]  # only LSTM has a cell
    given = {name: y for name, y in zip(names, call.inputs[3:], strict=False) if y is not None}
    batch_first = call.flag("layout")
    if batch_first:
        x = _swapped(call, x)
        given |= {name: _swapped(call, given[name]) for name in ("state", "cell") if name in given}
    options = {"LSTM": ("input_forget",), "GRU": ("linear_before_reset",), "RNN": ()}[call.op]
    steps, *last = b.apply(
        ROWS[call.op.lower()], x, w, r, *given.values(),
        given=tuple(given), direction=direction, clip=call.attr("clip", 0.0),
        activations=_activations(call, len(DIRECTIONS[direction])),
        **{name: call.flag(name) for name in options}, **more,
    )  # fmt: skip
    if batch_first:
        return [b.transpose(steps, perm=(2, 0, 1, 3)), *(_swapped(call, y) for y in last)]
    return [steps, *last]
