"""What is done with gradients before an update: clipping, averaging. Gradients are a dict of tensors by path, or Gradients."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..dtypes import float32
from ..errors import InputError
from ..ops import ROWS
from ..runtime.device import Device
from ..tensors.calls import apply_row
from ..tensors.functions.creation import where
from ..tensors.tensor import Tensor

G = TypeVar("G")
"""Gradients, or a dict of path ↦ gradient."""


def global_norm(grads: Any, norm_type: float = 2.0) -> Tensor:
    """The norm of all gradients as one vector: a float32 scalar. norm_type=math.inf: the largest absolute value."""
    if not len(grads):
        raise InputError("global_norm: got no gradients, expected those that backward or sg.grad gave")
    if not norm_type > 0:
        raise InputError(f"global_norm: got norm_type={norm_type!r}, expected a positive number or math.inf")
    places: dict[Any, list[Tensor]] = {}
    for g in grads.values():
        places.setdefault(g.device, []).append(g.detach().cast(float32))
    first, *others = (_joint_norm(values, norm_type) for values in places.values())
    return _joint_norm([first, *(x.to(first.device) for x in others)], norm_type) if others else first


def _joint_norm(values: Sequence[Tensor], norm_type: float) -> Tensor:
    if norm_type == math.inf:
        return functools.reduce(_larger, (g.abs().amax() for g in values))
    if norm_type == 2:
        return apply_row(ROWS["joint_norm"], values)
    return functools.reduce(operator.add, ((g.abs() ** norm_type).sum() for g in values)) ** (1 / norm_type)


def clip_norm(grads: G, max_norm: float, norm_type: float = 2.0) -> G:
    """The gradients, scaled down together if their norm is over max_norm; as torch.nn.utils.clip_grad_norm_ does it."""
    factor = (max_norm / (global_norm(grads, norm_type) + 1e-6)).clamp(max=1.0)
    near = beside_each(factor)
    return mapped(grads, lambda g: (g * near(g)).cast(g.dtype))


def clip_value(grads: G, clip_value: float) -> G:
    """The gradients, each element within ±clip_value; as torch.nn.utils.clip_grad_value_ does it."""
    return mapped(grads, lambda g: g.clamp(-clip_value, clip_value))


def mean(several: Sequence[G]) -> G:
    """The average of the gradients of several batches, all of the same parameters."""
    if not several:
        raise InputError("mean: got no gradients, expected a list of those that backward or sg.grad gave")
    return mapped(several[0], lambda *same: functools.reduce(operator.add, same) / len(same), *several[1:])


def mapped(grads: Any, function: Callable[..., Tensor], *others: Any) -> Any:
    """Gradients of the same kind, with function(g, those of the others) in place of each."""
    if not isinstance(grads, Mapping):
        return grads.map(function, *others)
    for other in others:
        if other.keys() != grads.keys():
            raise InputError(
                f"gradients of different parameters: {sorted(grads)} and {sorted(other)}; expected those of one model, or of copies of it"
            )
    return {name: function(g, *(other[name] for other in others)) for name, g in grads.items()}


def gradient_of(grads: Any, path: str, parameter: Tensor) -> Tensor | None:
    """The gradient of a parameter, if there is one: of this tensor, or else of that in its place in a copy of the module."""
    return grads.get(path) if isinstance(grads, Mapping) else grads.get(parameter, grads.get(path))


def beside(number: Tensor, x: Tensor) -> Tensor:
    """A number on the device of a tensor: the parts of a model may be on several."""
    traced = number.device.trace_depth or x.device.trace_depth
    return number if traced else number.to(x.device)


def beside_each(number: Tensor) -> Callable[[Tensor], Tensor]:
    """For each tensor the number beside it, which is moved to each device once."""
    places: dict[Device, Tensor] = {}

    def near(x: Tensor) -> Tensor:
        if x.device not in places:
            places[x.device] = beside(number, x)
        return places[x.device]

    return near


def _larger(x: Tensor, y: Tensor) -> Tensor:
    return where(x > y, x, y)
