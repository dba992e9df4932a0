"""The states of a step of training: their names, and the weights among them by the paths of the model."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Final

from ...dtypes import DType, bfloat16, float16
from ...nn import Module
from ...optim._gradients import beside
from ...runtime.device import Device
from ...tensors.functions.creation import concat, stack, where
from ...tensors.tensor import Tensor

MODEL: Final = "model."
OPTIMIZER: Final = "optimizer."
SCALE: Final = "scale"
"""With float16: the number by which the loss is multiplied, and for how many steps no gradient has overflowed."""
PRECISIONS: Final[Mapping[str, DType | None]] = {"float32": None, "float16": float16, "bfloat16": bfloat16}
"""How a model may compute ↦ the type that takes the place of float32 in it."""
FIRST_SCALE: Final = 2.0**16
SMALL: Final = 1 << 13
"""Gradients of at most so many elements are looked at together: to start a kernel for each would take longer."""
GROWTH: Final = 2000
"""After so many steps without an overflow the scale is doubled."""


def state_names(model: Module) -> dict[str, str]:
    """Each path of a tensor in the model ↦ the name of its state: a shared tensor has several paths and one state."""
    first: dict[int, str] = {}
    return {path: first.setdefault(id(t._value), path) for path, t in model.state_dict().items()}


def by_name(model: Module, names: Mapping[str, str]) -> dict[str, Tensor]:
    return {names[path]: t for path, t in model.state_dict().items()}


def with_buffers(model: Module, other: Module) -> Module:
    """The model with the buffers of another one of the same structure, in its own types."""
    parameters = {path for path, _ in model.named_parameters()}
    new = {path: t for path, t in other.state_dict().items() if path not in parameters}
    return model.with_state(new, strict=False) if new else model


def all_finite(grads: Iterable[Tensor]) -> Tensor:
    """Whether all gradients are finite: one bool."""
    places: dict[tuple[Device, DType], list[Tensor]] = {}
    for g in grads:
        places.setdefault((g.device, g.dtype), []).append(g)
    found = list[Tensor]()
    for some in places.values():
        small = [g.reshape(-1) for g in some if g.size <= SMALL]
        joint = [concat(small)] if small else []
        found += [g.isfinite().all() for g in (*joint, *(g for g in some if g.size > SMALL))]
    return functools.reduce(lambda x, y: x & beside(y, x), found)


def next_scale(scale: Tensor, finite: Tensor) -> Tensor:
    """Half of the scale after an overflow, and twice as much after GROWTH steps without one."""
    value, count = scale[0], scale[1] + 1
    grown = count >= GROWTH
    value = where(finite, where(grown, value * 2, value), value / 2)
    count = where(finite, where(grown, 0.0, count), 0.0)
    return stack([value, count])
