"""Initial weights: PyTorch's `torch.nn.init`, as functions that make a tensor of a shape.

    layer = layer.replace(weight=nn.init.kaiming_normal(layer.weight.shape, nonlinearity="relu", rng=rng))
    model = model.map_parameters(lambda path, t: nn.init.orthogonal(t.shape) if path.endswith("weight") else t)

rng: a generator that several calls share, a seed, or None for numbers of the sequence that `sg.manual_seed` begins. Weights
are (outputs, inputs, …window), as those of Linear and Conv.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError, ShapeError
from ..runtime.random_keys import Rng
from ..shapes import show, whole
from ..tensors.default_keys import host_generator
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor
from ..tracebacks import shorten_all

GAINS: Final = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4,
}  # fmt: skip
"""What keeps the variance of signals through layers with these activations; that of "leaky_relu" depends on its slope."""
_NEGLIGIBLE: Final = 40.0
"""Of exp(−x): in float32 nothing is drawn where the density is so much smaller than at its peak."""


def check_sizes(layer: object, **sizes: Any) -> None:
    """Refuse arguments of a layer that are no sizes; they are given by their names."""
    for name, given in sizes.items():
        if whole(given, type(layer).__name__, name) < 0:
            raise InputError(f"{type(layer).__name__}: {name} is {given}, expected an integer of at least 0")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor for weights before an activation; param: the negative slope of leaky_relu, by default 0.01."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise InputError(
            f"nn.init.calculate_gain: got {nonlinearity!r}, expected one of {', '.join(GAINS)}, leaky_relu"
        )
    return GAINS[nonlinearity]


# --- of any shape ----------------------------------------------------------------------------------------------------


def zeros(shape: Sequence[int]) -> Tensor:
    """Zeros."""
    return constant(shape, 0.0)


def ones(shape: Sequence[int]) -> Tensor:
    """Ones."""
    return constant(shape, 1.0)


def constant(shape: Sequence[int], val: float) -> Tensor:
    """One value everywhere."""
    return _made(np.full(tuple(shape), val))


def uniform(shape: Sequence[int], a: float = 0.0, b: float = 1.0, *, rng: Rng = None) -> Tensor:
    """Uniform from a to b."""
    return _uniform("uniform", shape, a, b, rng)


def normal(shape: Sequence[int], mean: float = 0.0, std: float = 1.0, *, rng: Rng = None) -> Tensor:
    """Normally distributed."""
    return _normal("normal", shape, mean, std, rng)


def trunc_normal(
    shape: Sequence[int], mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *, rng: Rng = None
) -> Tensor:
    """Normally distributed, and within a and b."""
    if not (a < b and std > 0):
        raise InputError(f"nn.init.trunc_normal: from {a} to {b}, std {std}; expected a < b, and a positive std")
    count = math.prod(shape)
    drawn = _within(_generator("trunc_normal", rng), (a - mean) / std, (b - mean) / std, count)
    return _made(np.clip(drawn * std + mean, a, b).reshape(tuple(shape)))


def _uniform(who: str, shape: Sequence[int], a: float, b: float, rng: Rng) -> Tensor:
    return _made(_generator(who, rng).uniform(a, b, tuple(shape)))


def _normal(who: str, shape: Sequence[int], mean: float, std: float, rng: Rng) -> Tensor:
    return _made(_generator(who, rng).standard_normal(tuple(shape), np.float32) * std + mean)


def _generator(who: str, rng: Rng) -> np.random.Generator:
    """The generator of a function of this file; who: its name, for errors."""
    return host_generator(rng, f"nn.init.{who}")


def _within(rng: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """`count` numbers of the standard normal distribution within limits: of what is drawn, those are kept that fit."""
    peak = min(max(0.0, low), high)
    low, high = (math.copysign(min(abs(x), math.hypot(peak, math.sqrt(2 * _NEGLIGIBLE))), x) for x in (low, high))
    usual = math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)) > 0.2  # else most of a normal draw is outside
    found, have = [np.empty(0)], 0
    while have < count:
        if usual:
            drawn = rng.standard_normal(count)
            drawn = drawn[(drawn >= low) & (drawn <= high)]
        else:
            drawn = rng.uniform(low, high, count)
            drawn = drawn[rng.uniform(size=count) < np.exp((peak**2 - drawn**2) / 2)]
        found.append(drawn)
        have += len(drawn)
    return np.concatenate(found)[:count]


# --- of weights: by their inputs and outputs -------------------------------------------------------------------------


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs each output of a weight has, and outputs each input."""
    return _fans("fans", shape)


def _fans(who: str, shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2:
        raise ShapeError(
            f"nn.init.{who}: got {show(tuple(shape))}, expected the shape of a weight of two axes or more, (outputs, inputs, …)"
        )
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def xavier_uniform(shape: Sequence[int], gain: float = 1.0, *, rng: Rng = None) -> Tensor:
    """Uniform within ±gain · √(6 / (inputs + outputs)); Glorot's."""
    bound = gain * math.sqrt(6 / max(sum(_fans("xavier_uniform", shape)), 1))
    return _uniform("xavier_uniform", shape, -bound, bound, rng)


def xavier_normal(shape: Sequence[int], gain: float = 1.0, *, rng: Rng = None) -> Tensor:
    """Normal with the standard deviation gain · √(2 / (inputs + outputs)); Glorot's."""
    std = gain * math.sqrt(2 / max(sum(_fans("xavier_normal", shape)), 1))
    return _normal("xavier_normal", shape, 0.0, std, rng)


def kaiming_uniform(
    shape: Sequence[int], a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, rng: Rng = None
) -> Tensor:
    """Uniform within ±gain · √(3 / inputs), with mode "fan_out" / outputs; a: the slope of leaky_relu. He's."""
    bound = math.sqrt(3) * _kaiming_std("kaiming_uniform", shape, a, mode, nonlinearity)
    return _uniform("kaiming_uniform", shape, -bound, bound, rng)


def kaiming_normal(
    shape: Sequence[int], a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, rng: Rng = None
) -> Tensor:
    """Normal with the standard deviation gain / √inputs, with mode "fan_out" / √outputs; a: the slope of leaky_relu. He's."""
    std = _kaiming_std("kaiming_normal", shape, a, mode, nonlinearity)
    return _normal("kaiming_normal", shape, 0.0, std, rng)


def _kaiming_std(who: str, shape: Sequence[int], a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise InputError(f"nn.init.{who}: mode is {mode!r}, expected 'fan_in' or 'fan_out'")
    fan = _fans(who, shape)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def by_inputs(shape: Sequence[int], inputs: int, *, rng: Rng = None) -> Tensor:
    """Uniform within ±1 / √inputs: PyTorch's default for weights and biases of Linear and Conv."""
    bound = inputs**-0.5 if inputs else 0.0
    return _uniform("by_inputs", shape, -bound, bound, rng)


# --- of weights: as matrices -----------------------------------------------------------------------------------------


def eye(shape: Sequence[int]) -> Tensor:
    """Ones on the diagonal of a matrix: what goes in comes out."""
    if len(shape) != 2:
        raise ShapeError(f"nn.init.eye: got {show(tuple(shape))}, expected two axes")
    return _made(np.eye(shape[0], shape[1]))


def dirac(shape: Sequence[int], groups: int = 1) -> Tensor:
    """The weight of a convolution that gives its input, as far as there are channels, in each group."""
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            f"nn.init.dirac: got {show(tuple(shape))} for {groups} groups, expected 3 to 5 axes, and outputs for each group"
        )
    weight, outputs = np.zeros(tuple(shape)), shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for k in range(min(outputs, shape[1])):
            weight[(group * outputs + k, k, *centre)] = 1
    return _made(weight)


def orthogonal(shape: Sequence[int], gain: float = 1.0, *, rng: Rng = None) -> Tensor:
    """A matrix of rows (outputs) that are orthogonal, or where there are more of them, columns, of the length `gain`."""
    _fans("orthogonal", shape)
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = _generator("orthogonal", rng).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q = q * np.where(np.diag(r) < 0, -1, 1)  # which makes all such matrices equally likely
    return _made(gain * (q.T if rows < columns else q).reshape(tuple(shape)))


def sparse(shape: Sequence[int], sparsity: float, std: float = 0.01, *, rng: Rng = None) -> Tensor:
    """A normally distributed matrix, in each column of which a share of the elements is zero."""
    if len(shape) != 2 or not 0 <= sparsity <= 1:
        raise InputError(f"nn.init.sparse: got {show(tuple(shape))} and {sparsity}, expected two axes and a share")
    rng = _generator("sparse", rng)
    drawn = rng.standard_normal(tuple(shape)) * std
    for column in range(shape[1]):
        drawn[rng.permutation(shape[0])[: math.ceil(sparsity * shape[0])], column] = 0
    return _made(drawn)


def _made(array: np.ndarray) -> Tensor:
    return tensor(array.astype(np.float32))


shorten_all(globals())
