"""Activations and other layers without weights: a list of classes, each with a function and the default values of its
arguments. PReLU has a weight; RReLU draws numbers in training (see _dropout.py).

PyTorch's argument `inplace` is accepted and has no effect: tensors are immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, ClassVar

from ..errors import InputError
from ..tensors.functions.creation import full
from ..tensors.tensor import Tensor
from ._module import Module


class Activation(Module):
    """A layer that applies a function to a tensor and a few numbers. The numbers are the layer's fields:
    `class LeakyReLU(Activation, call=lambda x, negative_slope: …, negative_slope=0.01)`."""

    _call: ClassVar[Callable[..., Tensor]]
    _defaults: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, call: Callable[..., Tensor] | None = None, **defaults: Any) -> None:
        super().__init_subclass__()
        if call is not None:
            cls._call = staticmethod(call)
            cls._defaults = defaults

    def __init__(self, *values: Any, inplace: bool = False, **named: Any) -> None:
        given = dict(zip(self._defaults, values, strict=False)) | named
        if len(values) > len(self._defaults) or given.keys() - self._defaults.keys():
            raise InputError(
                f"{type(self).__name__} takes {', '.join(self._defaults) or 'no arguments'}; got {values} {named}"
            )
        for name, default in self._defaults.items():
            setattr(self, name, given.get(name, default))

    @classmethod
    def _arguments(cls) -> list[Parameter]:
        declared = super()._arguments()
        if cls.__init__ is not Activation.__init__:
            return declared
        numbers = [
            Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in cls._defaults.items()
        ]
        return [*numbers, *(p for p in declared if p.kind is Parameter.KEYWORD_ONLY)]

    def forward(self, x: Tensor) -> Tensor:
        return self._call(x, **self.fields())


class Identity(Activation, call=lambda x: x):
    """x."""


class Flatten(Activation, call=lambda x, start_dim, end_dim: x.flatten(start_dim, end_dim), start_dim=1, end_dim=-1):
    """Merges axes into one: by default all axes except the first, the batch."""


class ReLU(Activation, call=lambda x: x.relu()):
    """max(x, 0)."""


class ReLU6(Activation, call=lambda x: x.relu6()):
    """max(x, 0), at most 6."""


class LeakyReLU(Activation, call=lambda x, negative_slope: x.leaky_relu(alpha=negative_slope), negative_slope=0.01):
    """x if x ≥ 0, otherwise negative_slope · x."""


class ELU(Activation, call=lambda x, alpha: x.elu(alpha=alpha), alpha=1.0):
    """x if x ≥ 0, otherwise alpha · (eˣ − 1)."""


class CELU(Activation, call=lambda x, alpha: x.celu(alpha=alpha), alpha=1.0):
    """x if x ≥ 0, otherwise alpha · (exp(x / alpha) − 1)."""


class SELU(Activation, call=lambda x: x.selu()):
    """A scaled ELU whose outputs keep mean 0 and variance 1."""


class Sigmoid(Activation, call=lambda x: x.sigmoid()):
    """1 / (1 + e⁻ˣ)."""


class LogSigmoid(Activation, call=lambda x: x.logsigmoid()):
    """The logarithm of sigmoid."""


class Hardsigmoid(Activation, call=lambda x: x.hardsigmoid()):
    """x / 6 + 1/2, clipped to 0 … 1."""


class Tanh(Activation, call=lambda x: x.tanh()):
    """The hyperbolic tangent."""


class Hardtanh(Activation, call=lambda x, min_val, max_val: x.hardtanh(min_val, max_val), min_val=-1.0, max_val=1.0):
    """x, clipped to min_val … max_val."""


class Tanhshrink(Activation, call=lambda x: x.tanhshrink()):
    """x − tanh(x)."""


class SiLU(Activation, call=lambda x: x.silu()):
    """x · sigmoid(x)."""


class Hardswish(Activation, call=lambda x: x.hardswish()):
    """x · Hardsigmoid(x)."""


class Mish(Activation, call=lambda x: x.mish()):
    """x · tanh(softplus(x))."""


class GELU(Activation, call=lambda x, approximate: x.gelu(approximate), approximate="none"):
    """x · Φ(x), where Φ is the normal distribution; approximate="tanh" computes it by tanh."""


class Softplus(Activation, call=lambda x, beta, threshold: x.softplus(beta, threshold), beta=1.0, threshold=20.0):
    """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold."""


class Softsign(Activation, call=lambda x: x.softsign()):
    """x / (1 + |x|)."""


class Hardshrink(Activation, call=lambda x, lambd: x.hardshrink(lambd), lambd=0.5):
    """x, but 0 in −lambd … lambd."""


class Softshrink(Activation, call=lambda x, lambd: x.softshrink(lambd), lambd=0.5):
    """x moved towards 0 by lambd, and 0 in −lambd … lambd."""


class Threshold(Activation, call=lambda x, threshold, value: x.threshold(threshold, value), threshold=0.0, value=0.0):
    """x above the threshold, otherwise value."""


class GLU(Activation, call=lambda x, dim: x.glu(dim), dim=-1):
    """The first half of an axis, times the sigmoid of the second half."""


class Softmax(Activation, call=lambda x, dim: x.softmax(dim), dim=-1):
    """Exponentials that sum to 1 along an axis."""


class Softmax2d(Activation, call=lambda x: x.softmax(-3)):
    """Softmax over the channels of (…, channels, height, width)."""


class Softmin(Activation, call=lambda x, dim: x.softmin(dim), dim=-1):
    """The softmax of −x."""


class LogSoftmax(Activation, call=lambda x, dim: x.log_softmax(dim), dim=-1):
    """The logarithm of softmax."""


class PReLU(Module):
    """x if x ≥ 0, otherwise weight · x: with one weight, or one for each channel (axis 1)."""

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self.weight = full((num_parameters,), float(init))

    def forward(self, x: Tensor) -> Tensor:
        return x.prelu(self.weight)
