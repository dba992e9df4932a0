"""What is minimised, as one kind of function for training and evaluation: (model, *batch) ↦ (loss, what else it tells)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..errors import InputError
from ..frontend.creation import tensor
from ..frontend.tensor import Tensor
from ..nn import Module
from ..runtime.decorators import Fusion
from ..runtime.device import Device
from .tallies import PREDICTION

Loss: TypeAlias = "Module | Callable[..., Any]"
"""A Module that takes predictions and targets, or a function loss(model, *batch) of a number, or (a number, dict)."""
Objective: TypeAlias = Callable[..., tuple[Tensor, dict[str, Any]]]


def objective(loss: Loss, predictions: bool) -> Objective:
    """The function of a loss. predictions: whether those of a loss Module are told."""
    if isinstance(loss, Module):
        module = loss

        def by_module(model: Module, *batch: Any) -> tuple[Tensor, dict[str, Any]]:
            *inputs, target = batch
            prediction = model(*inputs)
            return module(prediction, target), {PREDICTION: prediction} if predictions else {}

        return by_module
    function = loss

    def by_function(model: Module, *batch: Any) -> tuple[Tensor, dict[str, Any]]:
        found = function(model, *batch)
        value, told = found if isinstance(found, tuple) else (found, {})
        if not isinstance(value, Tensor) or not isinstance(told, Mapping):
            raise InputError(
                f"the loss function returned {type(value).__name__} and {type(told).__name__}, expected a Tensor of one "
                "number, or that and a dict"
            )
        return value, dict(told)

    return by_function


class Evaluation:
    """An objective by a model that does not change meanwhile, in inference mode; the batches of a shape share one Program."""

    def __init__(self, objective: Objective, model: Callable[[Fusion], Module], device: Device) -> None:
        """model: gives the model on a device around this one."""
        self._objective = objective
        self._on = Fusion(device.eager)
        self._model = model(self._on).eval()

    def __call__(self, *batch: Any) -> tuple[float, dict[str, Any]]:
        loss, told = self._objective(
            self._model, *(tensor(x, device=self._on) if isinstance(x, np.ndarray) else x for x in batch)
        )
        return float(loss.numpy()), {k: v.numpy() if isinstance(v, Tensor) else v for k, v in told.items()}
