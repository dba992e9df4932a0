"""The recurrent rows lstm, gru and rnn, as ONNX defines them: one product for the whole sequence, then a loop over it.

Inputs: x (length, batch, features), the weights w of x and r of the state (directions, gates · hidden, …), then the
inputs of OPTIONAL that the attribute `given` names, in its order. Results: the states after all steps (length,
directions, batch, hidden), the last state (directions, batch, hidden), and for lstm the last cell.

activations: (name, alpha, beta) of each function of each direction; see ACTIVATIONS. direction: "forward", "reverse" (from
the end of each sequence) or "bidirectional". clip: inputs of activations are clipped to −clip … clip; 0: no limit. quantised, of
lstm: x, and at each step the state of the whole batch, are multiplied in 256 steps, as quantised networks do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ...dtypes import FLOATS, int64
from ...errors import ShapeError
from ...late_dataclass import dataclass
from ...shapes import Dim, same, show
from ..control import repeated
from ..kinds import Composite, as_dtype, constants_like, register
from .integers import in_steps

OPTIONAL: Final = ("bias", "lengths", "state", "cell", "peepholes", "projection")
"""bias (directions, 2 · gates · hidden): that of x, then that of the state. lengths (batch): of the sequences. state
and cell (directions, batch, hidden): their initial values. peepholes (directions, 3 · hidden): the weights with which
gates read the cell. projection (directions, shown, hidden): of lstm, by which the state is multiplied after each step; it
has the size `shown` then, in r, too."""
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction of a kind, whether it begins at the end of the sequence."""


def _affine(b: Any, x: Any, alpha: float, beta: float) -> Any:
    scale, shift = constants_like(b, x, alpha, beta)
    return b.add(b.mul(x, scale), shift)


def _scaled_tanh(b: Any, x: Any, alpha: float, beta: float) -> Any:
    outer, inner = constants_like(b, x, alpha, beta)
    return b.mul(b.tanh(b.mul(x, inner)), outer)


def _thresholded(b: Any, x: Any, alpha: float, _: float) -> Any:
    limit, zero = constants_like(b, x, alpha, 0)
    return b.where(b.greater(x, limit), x, zero)


ACTIVATIONS: Final[dict[str, Callable[[Any, Any, float, float], Any]]] = {
    "affine": _affine,
    "elu": lambda b, x, alpha, _: b.elu(x, alpha=alpha),
    "hardsigmoid": lambda b, x, alpha, beta: b.hard_sigmoid(x, alpha=alpha, beta=beta),
    "leakyrelu": lambda b, x, alpha, _: b.leaky_relu(x, alpha=alpha),
    "relu": lambda b, x, *_: b.relu(x),
    "scaledtanh": _scaled_tanh,
    "sigmoid": lambda b, x, *_: b.sigmoid(x),
    "softplus": lambda b, x, *_: b.softplus(x),
    "softsign": lambda b, x, *_: b.div(x, b.add(b.abs(x), b.const(1, x.dtype))),
    "tanh": lambda b, x, *_: b.tanh(x),
    "thresholdedrelu": _thresholded,
}
"""f(builder, x, alpha, beta) by name; functions without parameters ignore alpha and beta."""


@dataclass(frozen=True)
class _Cell:
    """One direction of the layer within a turn of the loop: its activations, its clip, and its parameters by name."""

    b: Any
    activations: Sequence[Callable[[Any], Any]]
    clip: float
    hidden: Dim
    parameters: dict[str, Any]

    def f(self, k: int, x: Any) -> Any:
        """Activation k of x, which is clipped first."""
        if self.clip:
            low, high = constants_like(self.b, x, -self.clip, self.clip)
            x = self.b.clip(x, low, high)
        return self.activations[k](x)

    def part(self, x: Any, first: int, count: int = 1) -> Any:
        """The part of x for the gates first … first + count − 1, along the last axis."""
        rank, h = len(x.shape), self.hidden
        starts, sizes = (*(0,) * (rank - 1), first * h), (*x.shape[:-1], count * h)
        return x if sizes == x.shape else self.b.slice(x, starts=starts, steps=(1,) * rank, sizes=sizes)

    def seen(self, gate: Any, cell: Any, k: int) -> Any:
        """A gate with peephole k times the cell added, if there are peepholes."""
        p = self.parameters.get("peepholes")
        return gate if p is None else self.b.add(gate, self.b.mul(self.part(p, k), cell))


def _rounded(b: Any, x: Any) -> Any:
    whole, step, zero = in_steps(b, x)
    return b.mul(b.sub(whole, zero), step)


def _lstm_turn(c: _Cell, x: Any, h: Any, cell: Any, *, input_forget: bool, quantised: bool) -> tuple[Any, ...]:
    b = c.b
    z = b.add(x, b.matmul(_rounded(b, h) if quantised else h, c.parameters["r"]))
    i = c.f(0, c.seen(c.part(z, 0), cell, 0))
    forget = b.sub(b.const(1, i.dtype), i) if input_forget else c.f(0, c.seen(c.part(z, 2), cell, 2))
    cell = b.add(b.mul(forget, cell), b.mul(i, c.f(1, c.part(z, 3))))
    o = c.f(0, c.seen(c.part(z, 1), cell, 1))
    state = b.mul(o, c.activations[2](cell))
    return b.matmul(state, c.parameters["projection"]) if "projection" in c.parameters else state, cell


def _gru_turn(c: _Cell, x: Any, h: Any, *, linear_before_reset: bool) -> tuple[Any, ...]:
    b, r = c.b, c.parameters["r"]
    if linear_before_reset:
        z = b.matmul(h, r)
        if "rb" in c.parameters:
            z = b.add(z, c.parameters["rb"])
        update, reset = (c.f(0, b.add(c.part(x, k), c.part(z, k))) for k in (0, 1))
        new = c.f(1, b.add(c.part(x, 2), b.mul(reset, c.part(z, 2))))
    else:
        z = b.matmul(h, c.part(r, 0, 2))
        update, reset = (c.f(0, b.add(c.part(x, k), c.part(z, k))) for k in (0, 1))
        new = c.f(1, b.add(c.part(x, 2), b.matmul(b.mul(reset, h), c.part(r, 2))))
    return (b.add(b.mul(b.sub(b.const(1, h.dtype), update), new), b.mul(update, h)),)


def _rnn_turn(c: _Cell, x: Any, h: Any) -> tuple[Any, ...]:
    return (c.f(0, c.b.add(x, c.b.matmul(h, c.parameters["r"]))),)


@dataclass(frozen=True)
class _Recurrence:
    """The kind of a recurrent row: how many gates and activations it has, how many values it carries from step to step
    (state, cell), and the function of one step."""

    gates: int
    functions: int
    carried: int
    turn: Callable[..., tuple[Any, ...]]


LSTM: Final = _Recurrence(4, 3, 2, _lstm_turn)
GRU: Final = _Recurrence(3, 2, 1, _gru_turn)
RNN: Final = _Recurrence(1, 1, 1, _rnn_turn)


Activations: TypeAlias = Sequence[tuple[str, float, float]]
"""For each direction and gate: a function's name, alpha and beta."""


def _lower(
    kind: _Recurrence, b: Any, inputs: Sequence[Any], given: Sequence[str], activations: Activations, direction: str,
    clip: float, **options: bool,
) -> tuple[Any, ...]:  # fmt: skip
    x, w, r, *rest = inputs
    named = dict(zip(given, rest, strict=True))
    ways = DIRECTIONS[direction]
    _check(kind, x, w, r, named, len(ways), len(activations))
    found = []
    for d, backward in enumerate(ways):
        own = [_bound(b, *f) for f in activations[d * kind.functions : (d + 1) * kind.functions]]
        found.append(_direction(kind, b, x, w, r, named, d, backward, own, clip, options))
    if len(found) == 1:
        return found[0]
    return tuple(b.concat(*parts, axis=1 if k == 0 else 0) for k, parts in enumerate(zip(*found, strict=True)))


def _bound(b: Any, name: str, alpha: float, beta: float) -> Callable[[Any], Any]:
    return lambda x: ACTIVATIONS[name](b, x, alpha, beta)


def _check(kind: _Recurrence, x: Any, w: Any, r: Any, named: dict[str, Any], directions: int, functions: int) -> None:
    if len(x.shape) != 3 or len(w.shape) != 3 or len(r.shape) != 3:
        raise ShapeError(
            f"a recurrent op takes three axes each: x {show(x.shape)}, w {show(w.shape)}, r {show(r.shape)}"
        )
    hidden, shown, batch = _hidden(r, named), r.shape[2], x.shape[1]
    rows = kind.gates * hidden
    wanted = {
        "w": (directions, rows, x.shape[2]), "r": (directions, rows, shown), "bias": (directions, 2 * rows), "lengths": (batch,),
        "state": (directions, batch, shown), "cell": (directions, batch, hidden), "peepholes": (directions, 3 * hidden),
        "projection": (directions, shown, hidden),
    }  # fmt: skip
    for name, value in {"w": w, "r": r, **named}.items():
        fits = len(value.shape) == len(wanted[name])
        if not fits or not all(
            same(d, e, f"recurrent: {name}") for d, e in zip(value.shape, wanted[name], strict=True)
        ):
            raise ShapeError(
                f"recurrent: {name} is {show(value.shape)}, expected {show(wanted[name])} for x {show(x.shape)}"
            )
    if functions != directions * kind.functions:
        raise ShapeError(
            f"recurrent: {functions} activations, expected {kind.functions} for each of {directions} directions"
        )


def _hidden(r: Any, named: dict[str, Any]) -> Dim:
    """The size of a gate: that of the state, unless this is projected."""
    return named["projection"].shape[-1] if "projection" in named else r.shape[2]


def _direction(
    kind: _Recurrence, b: Any, x: Any, w: Any, r: Any, named: dict[str, Any], d: int, backward: bool,
    activations: Sequence[Callable[[Any], Any]], clip: float, options: dict[str, bool],
) -> tuple[Any, ...]:  # fmt: skip
    if options.get("quantised"):
        x = _rounded(b, x)
    length, batch, features = x.shape
    hidden, rows, shown = _hidden(r, named), r.shape[1], r.shape[2]

    def own(y: Any) -> Any:
        """The part of a parameter that belongs to this direction."""
        sizes = (1, *y.shape[1:])
        rank = len(sizes)
        one = y if y.shape[0] == 1 else b.slice(y, starts=(d, *(0,) * (rank - 1)), steps=(1,) * rank, sizes=sizes)
        return b.reshape(one, shape=y.shape[1:])

    projected = b.matmul(b.reshape(x, shape=(length * batch, features)), b.transpose(own(w), perm=(1, 0)))
    parameters = {"r": b.transpose(own(r), perm=(1, 0))}
    if "bias" in named:
        bias = b.reshape(own(named["bias"]), shape=(2, rows))
        of_x, of_state = (b.slice(bias, starts=(k, 0), steps=(1, 1), sizes=(1, rows)) for k in (0, 1))
        if options.get("linear_before_reset"):
            projected, parameters["rb"] = b.add(projected, of_x), of_state
        else:
            projected = b.add(projected, b.add(of_x, of_state))
    if "peepholes" in named:
        parameters["peepholes"] = b.reshape(own(named["peepholes"]), shape=(1, 3 * hidden))
    if "lengths" in named:
        lengths = named["lengths"]
        parameters["lengths"] = b.reshape(as_dtype(b, lengths, int64), shape=(batch, 1))
    parameters["x"] = b.reshape(projected, shape=(length, batch, rows))
    if "projection" in named:
        parameters["projection"] = b.transpose(own(named["projection"]), perm=(1, 0))
    zero = b.const(0, x.dtype)
    widths = {"state": shown, "cell": hidden}
    first = [
        b.reshape(own(named[name]), shape=(batch, width)) if name in named else b.expand(zero, shape=(batch, width))
        for name, width in list(widths.items())[: kind.carried]
    ]

    def turn(before: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        number, steps, *states = before
        inner = dict(zip(parameters, captured, strict=True))
        at = b.sub(b.const(length - 1), number) if backward else number
        cell = _Cell(b, activations, clip, hidden, inner)
        after = kind.turn(cell, b.gather(inner["x"], at, axis=0), *states, **options)
        output = after[0]
        if "lengths" in inner:  # steps beyond a sequence's end do not change its state, and their outputs are zero
            within = b.less(at, inner["lengths"])
            after = tuple(b.where(within, new, old) for new, old in zip(after, states, strict=True))
            output = b.where(within, output, zero)
        part = b.reshape(output, shape=(1, batch, shown))
        return [b.add(number, b.const(1)), b.update_slice(steps, part, at, b.const(0), b.const(0)), *after]

    room = b.expand(zero, shape=(length, batch, shown))
    _, steps, *last = repeated(b, length, [b.const(0), room, *first], list(parameters.values()), turn)
    return (
        b.reshape(steps, shape=(length, 1, batch, shown)),
        *(b.reshape(state, shape=(1, *state.shape)) for state in last),
    )


def _lstm(
    b: Any, x: Any, w: Any, r: Any, *rest: Any, activations: Activations, given: Sequence[str] = (), direction: str = "forward",
    clip: float = 0.0, input_forget: bool = False, quantised: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    options = {"input_forget": input_forget, "quantised": quantised}
    return _lower(LSTM, b, (x, w, r, *rest), given, activations, direction, clip, **options)


def _gru(
    b: Any, x: Any, w: Any, r: Any, *rest: Any, activations: Activations, given: Sequence[str] = (), direction: str = "forward",
    clip: float = 0.0, linear_before_reset: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    return _lower(
        GRU, b, (x, w, r, *rest), given, activations, direction, clip, linear_before_reset=linear_before_reset
    )


def _rnn(
    b: Any, x: Any, w: Any, r: Any, *rest: Any, activations: Activations, given: Sequence[str] = (), direction: str = "forward",
    clip: float = 0.0,
) -> tuple[Any, ...]:  # fmt: skip
    return _lower(RNN, b, (x, w, r, *rest), given, activations, direction, clip)


register(
    Composite(name="lstm", doc="a recurrent layer with a cell: gates input, output, forget, cell", dtypes=FLOATS, lower=_lstm,
              tolerance=64, floor=1e-5),
    Composite(name="gru", doc="a recurrent layer: gates update, reset, new", dtypes=FLOATS, lower=_gru,
              tolerance=64, floor=1e-5),
    Composite(name="rnn", doc="a recurrent layer without gates", dtypes=FLOATS, lower=_rnn,
              tolerance=64, floor=1e-5),
)  # fmt: skip
