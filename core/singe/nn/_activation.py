"""Layers without weights: a list of classes, each with a function and the default values of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..errors import InputError
from ..frontend.tensor import Tensor
from ._module import Module


class Activation(Module):
    """A layer that applies a function to a tensor and a few numbers. The numbers are the layer's fields:
    `class LeakyReLU(Activation, call=lambda x, negative_slope: …, negative_slope=0.01)`."""

    _call: ClassVar[Callable[..., Tensor]]
    _defaults: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, call: Callable[..., Tensor], **defaults: Any) -> None:
        super().__init_subclass__()
        cls._call = staticmethod(call)
        cls._defaults = defaults

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._defaults, values, strict=False)) | named
        if len(values) > len(self._defaults) or given.keys() - self._defaults.keys():
            raise InputError(
                f"{type(self).__name__} takes {', '.join(self._defaults) or 'no arguments'}; got {values} {named}"
            )
        for name, default in self._defaults.items():
            setattr(self, name, given.get(name, default))

    def forward(self, x: Tensor) -> Tensor:
        return self._call(x, **self.fields())


class Identity(Activation, call=lambda x: x):
    """x."""


class Flatten(Activation, call=lambda x, start_dim, end_dim: x.flatten(start_dim, end_dim), start_dim=1, end_dim=-1):
    """Merges axes into one: by default all axes except the first, the batch."""


class ReLU(Activation, call=lambda x: x.relu()):
    """max(x, 0)."""


class ReLU6(Activation, call=lambda x: x.clip(0, 6)):
    """max(x, 0), at most 6."""


class LeakyReLU(Activation, call=lambda x, negative_slope: x.leaky_relu(alpha=negative_slope), negative_slope=0.01):
    """x if x ≥ 0, otherwise negative_slope · x."""


class ELU(Activation, call=lambda x, alpha: x.elu(alpha=alpha), alpha=1.0):
    """x if x ≥ 0, otherwise alpha · (eˣ − 1)."""


class Sigmoid(Activation, call=lambda x: x.sigmoid()):
    """1 / (1 + e⁻ˣ)."""


class HardSigmoid(Activation, call=lambda x: x.hard_sigmoid(alpha=1 / 6, beta=0.5)):
    """x / 6 + 1/2, clipped to 0 … 1."""


class Tanh(Activation, call=lambda x: x.tanh()):
    """The hyperbolic tangent."""


class SiLU(Activation, call=lambda x: x.silu()):
    """x · sigmoid(x)."""


class HardSwish(Activation, call=lambda x: x * x.hard_sigmoid(alpha=1 / 6, beta=0.5)):
    """x · hard_sigmoid(x)."""


class GELU(Activation, call=lambda x: x.gelu()):
    """x · Φ(x), where Φ is the normal distribution."""


class Softplus(Activation, call=lambda x: x.softplus()):
    """log(1 + eˣ)."""


class Softmax(Activation, call=lambda x, dim: x.softmax(dim), dim=-1):
    """Exponentials that sum to 1 along an axis."""


class LogSoftmax(Activation, call=lambda x, dim: x.log_softmax(dim), dim=-1):
    """The logarithm of softmax."""
