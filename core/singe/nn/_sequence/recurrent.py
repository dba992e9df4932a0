"""Recurrent layers and cells, with the names and the order of gates of PyTorch."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...runtime.random_keys import Rng, one_generator
from ...shapes import same_form, show
from ...tensors.calls import apply_row
from ...tensors.functions.creation import concat, stack, zeros
from ...tensors.tensor import Tensor
from .._dropout import Dropout
from .._module import Module
from ..init import check_sizes, uniform

GATES: Final = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""For each row, where PyTorch has the gates that the row takes in ONNX's order."""


class _Recurrent(Module):
    """Layers of a recurrent row, one or two directions each, over (length, batch, features); with batch_first (batch,
    length, features). The batch may be left out.

    The weights of layer k are weight_ih_lk and weight_hh_lk (gates · hidden, …), bias_ih_lk and bias_hh_lk, and if states
    are projected weight_hr_lk; those of the second direction end with _reverse. The result is (outputs of the last layer,
    last states).
    """

    _row: ClassVar[str]
    _states: ClassVar[int] = 1

    def __init_subclass__(cls, row: str | None = None, states: int = 1, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if row is not None:
            cls._row, cls._states = row, states

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        check_sizes(self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if proj_size and (self._row != "lstm" or not 0 < proj_size < hidden_size):
            raise InputError(
                f"{type(self).__name__}: proj_size is {proj_size}, expected 0, or for LSTM a number below hidden_size ({hidden_size})"
            )
        rng = one_generator(rng)
        self.input_size, self.hidden_size, self.num_layers, self.proj_size = (
            input_size,
            hidden_size,
            num_layers,
            proj_size,
        )
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        rows, bound = len(GATES[self._row]) * hidden_size, hidden_size**-0.5
        for layer in range(num_layers):
            shown = proj_size or hidden_size
            inputs = input_size if layer == 0 else shown * len(self._ends())
            for end in self._ends():
                shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, shown)}
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", uniform(shape, -bound, bound, rng=rng))
        self.between = Dropout(dropout)

    def _ends(self) -> tuple[str, ...]:
        """What the names of each direction's weights end with."""
        return ("", "_reverse") if self.bidirectional else ("",)

    def _functions(self) -> tuple[str, ...]:
        raise NotImplementedError

    def forward(self, x: Tensor, state: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """state: the first states (layers · directions, batch, hidden), for LSTM a pair with the cells; by default zeros.
        lengths: of the sequences of the batch, int64; outputs beyond them are zero."""
        alone = x.ndim == 2
        given = () if state is None else (state,) if self._states == 1 else tuple(state)
        if x.ndim not in (2, 3) or not same_form(x.shape[-1], self.input_size) or len(given) not in (0, self._states):
            raise ShapeError(
                f"{type(self).__name__}: got {show(x.shape)} and {len(given)} states, expected (…, {self.input_size}) "
                f"with 2 or 3 axes, and {self._states} states or none"
            )
        if alone:
            x, given = x.unsqueeze(1), tuple(s.unsqueeze(1) for s in given)
        elif self.batch_first:
            x = x.transpose(1, 0, 2)
        last: list[tuple[Tensor, ...]] = []
        ways = len(self._ends())
        for layer in range(self.num_layers):
            own = tuple(s[layer * ways : (layer + 1) * ways] for s in given)
            x, *states = self._layer(x, layer, own, lengths)
            last.append(tuple(states))
            if layer + 1 < self.num_layers:
                x = self.between(x)
        ends = tuple(s[0] if self.num_layers == 1 else concat(s, 0) for s in zip(*last, strict=True))
        if alone:
            x, ends = x.squeeze(1), tuple(s.squeeze(1) for s in ends)
        elif self.batch_first:
            x = x.transpose(1, 0, 2)
        return x, ends[0] if self._states == 1 else ends

    def _layer(self, x: Tensor, layer: int, states: tuple[Tensor, ...], lengths: Tensor | None) -> tuple[Tensor, ...]:
        kinds = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ()))
        parts = {k: stack([self._ordered(getattr(self, f"{k}_l{layer}{end}")) for end in self._ends()]) for k in kinds}
        operands: list[Tensor] = [x, parts["weight_ih"], parts["weight_hh"]]
        given: list[str] = []
        if self.bias:
            given.append("bias")
            operands.append(concat([parts["bias_ih"], parts["bias_hh"]], 1))
        if self.proj_size:
            given.append("projection")
            operands.append(stack([getattr(self, f"weight_hr_l{layer}{end}") for end in self._ends()]))
        if lengths is not None:
            given.append("lengths")
            operands.append(lengths)
        for name, state in zip(("state", "cell"), states, strict=False):
            given.append(name)
            operands.append(state)
        options = {"linear_before_reset": True} if self._row == "gru" else {}
        steps, *last = apply_row(
            ROWS[self._row], operands, given=tuple(given), direction="bidirectional" if self.bidirectional else "forward",
            activations=tuple((f, 0.0, 0.0) for f in self._functions()) * len(self._ends()), clip=0.0, **options,
        )  # fmt: skip
        length, ends, batch, size = steps.shape
        return steps.transpose(0, 2, 1, 3).reshape(length, batch, ends * size), *last

    def _ordered(self, x: Tensor) -> Tensor:
        """A parameter with its gates in ONNX's order."""
        gates = GATES[self._row]
        if len(gates) == 1:
            return x
        return x.reshape(len(gates), self.hidden_size, *x.shape[1:]).take(list(gates), 0).reshape(*x.shape)


class RNN(_Recurrent, row="rnn"):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        _check_nonlinearity(nonlinearity)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, rng=rng
        )
        self.nonlinearity = nonlinearity

    def _functions(self) -> tuple[str, ...]:
        return (self.nonlinearity,)


class LSTM(_Recurrent, row="lstm", states=2):
    """A recurrent layer with a cell; the last states are a pair (states, cells). proj_size: to which states are projected."""

    def _functions(self) -> tuple[str, ...]:
        return ("sigmoid", "tanh", "tanh")


class GRU(_Recurrent, row="gru"):
    """A recurrent layer with the gates reset, update and new."""

    def _functions(self) -> tuple[str, ...]:
        return ("sigmoid", "tanh")


def _check_nonlinearity(name: str) -> None:
    if name not in ("tanh", "relu"):
        raise InputError(f"nonlinearity is {name!r}, expected 'tanh' or 'relu'")


class _CellModule(Module):
    """One step of a recurrent layer: x (batch, features) and the state (batch, hidden), or both without the batch."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def _set(self, gates: int, input_size: int, hidden_size: int, bias: bool, rng: Rng) -> None:
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        rng, bound, rows = one_generator(rng), hidden_size**-0.5, gates * hidden_size
        self.hidden_size = hidden_size
        self.weight_ih = uniform((rows, input_size), -bound, bound, rng=rng)
        self.weight_hh = uniform((rows, hidden_size), -bound, bound, rng=rng)
        self.bias_ih = uniform((rows,), -bound, bound, rng=rng) if bias else None
        self.bias_hh = uniform((rows,), -bound, bound, rng=rng) if bias else None

    def _gates(self, x: Tensor, h: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """What x and what the state contribute to each gate."""
        sums = x.linear(self.weight_ih, self.bias_ih), h.linear(self.weight_hh, self.bias_hh)
        return tuple(y.split(self.hidden_size, -1) for y in sums)  # pyright: ignore[reportReturnType]

    def _zeros(self, x: Tensor) -> Tensor:
        return zeros((*x.shape[:-1], self.hidden_size), x.dtype, x.device)


class RNNCell(_CellModule):
    """One step of an RNN."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *, rng: Rng = None
    ) -> None:
        _check_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity
        self._set(1, input_size, hidden_size, bias, rng)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        ((a,), (b,)) = self._gates(x, self._zeros(x) if h is None else h)
        return (a + b).tanh() if self.nonlinearity == "tanh" else (a + b).relu()


class LSTMCell(_CellModule):
    """One step of an LSTM: the result is (state, cell)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, rng: Rng = None) -> None:
        self._set(4, input_size, hidden_size, bias, rng)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, cell = (self._zeros(x), self._zeros(x)) if state is None else state
        take, forget, new, out = (a + b for a, b in zip(*self._gates(x, h), strict=True))
        cell = forget.sigmoid() * cell + take.sigmoid() * new.tanh()
        return out.sigmoid() * cell.tanh(), cell


class GRUCell(_CellModule):
    """One step of a GRU."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, rng: Rng = None) -> None:
        self._set(3, input_size, hidden_size, bias, rng)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        h = self._zeros(x) if h is None else h
        (r, z, n), (hr, hz, hn) = self._gates(x, h)
        reset, update = (r + hr).sigmoid(), (z + hz).sigmoid()
        new = (n + reset * hn).tanh()
        return (1 - update) * new + update * h
