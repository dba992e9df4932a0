"""What is minimised, as one kind of function for training and evaluation: (model, *batch) ↦ (loss, what else it returns)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...errors import InputError
from ...graph import postorder
from ...nn import Module
from ...optim._gradients import beside
from ...runtime.device import Device
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor, value_on
from .batches import mapped, parameters_of, part_names

Loss: TypeAlias = "Module | Callable[..., Any]"
"""A Module that takes predictions and targets, or a function loss(model, *batch) of a tensor of one number, or of a pair of it
and a dict of tensors that a step gives, too."""
Objective: TypeAlias = Callable[..., tuple[Tensor, dict[str, Any]]]
PREDICTION: Final = "prediction"
TARGET: Final = "target"
"""What metrics compare, among what a loss returns."""
_LOSS: Final = "_loss"
"""The field of an objective that has the loss that was given."""


def checked_model(what: str, model: Any) -> Module:
    """The model, which must be a Module."""
    if not isinstance(model, Module):
        raise InputError(
            f"{what}: got the model {model!r:.80}, expected a Module, of which the parameters are trained; the order is "
            "(model, optimizer, loss), and sg.load_module makes a Module of an ONNX file"
        )
    return model


def checked_loss(loss: Any) -> Callable[..., Any]:
    """A loss that is a function."""
    if not callable(loss) or isinstance(loss, type):
        raise InputError(
            f"got the loss {loss!r:.80}, expected a layer, such as nn.MSELoss(), or a function loss(model, *batch); the order is "
            "(model, optimizer, loss)"
        )
    return loss


def objective(loss: Loss, predictions: bool) -> Objective:
    """The function of a loss. predictions: whether it returns those of a loss Module."""
    if isinstance(loss, Module):
        module = loss

        def by_module(model: Module, *batch: Any) -> tuple[Tensor, dict[str, Any]]:
            *inputs, target = batch
            if not inputs or any(isinstance(part, Mapping) for part in batch):
                raise InputError(
                    f"the loss {type(module).__name__} is called as loss(model(*inputs), target), with the last part of a batch as "
                    f"target, and a batch is {_shown(batch)}; expected a tuple of at least two arrays, which Dataset.map or a "
                    "Loader's transform makes; or give a function loss(model, *batch) in place of the layer"
                )
            prediction = model(*inputs)
            return module(prediction, _near(target, prediction)), {PREDICTION: prediction} if predictions else {}

        return _naming(by_module, module)
    function = checked_loss(loss)

    def by_function(model: Module, *batch: Any) -> tuple[Tensor, dict[str, Any]]:
        found = function(model, *batch)
        value, extras = found if isinstance(found, tuple) else (found, {})
        if not isinstance(value, Tensor) or not isinstance(extras, Mapping):
            raise InputError(
                f"the loss function returned {type(value).__name__} and {type(extras).__name__}, expected a Tensor of one "
                "number, or that and a dict"
            )
        return value, dict(extras)

    return _naming(by_function, function)


def _near(target: Any, prediction: Any) -> Any:
    """The target on the device of the prediction, which is another one where the model's parts are on several."""
    both = isinstance(target, Tensor) and isinstance(prediction, Tensor)
    return beside(target, prediction) if both else target


def _naming(objective: Objective, loss: Loss) -> Objective:
    """An objective that remembers the loss it is of, for `called_names`. What is exported takes its names from the objective."""
    setattr(objective, _LOSS, loss)
    return objective


def called_names(loss: Callable[..., Any], model: Module, count: int, taken: Collection[str]) -> list[str]:
    """What people call the parts of a batch, for errors: the parameters of their loss function behind the model; for a loss Module,
    those of the model's forward, and that of the loss's for the target. taken: names of something else."""
    given = getattr(loss, _LOSS, loss)
    if isinstance(given, Module):
        names = [*parameters_of(model.forward)[: count - 1], *parameters_of(given.forward)[1:2]]
    else:
        names = part_names(given, count)
    whole = len(names) == count == len({*names} - {*taken})
    return names if whole else [f"part {k} of the batch" for k in range(count)]


def check_reached(model: Module, loss: Tensor) -> None:
    """Refuse a loss that was traced of a model and depends on none of its parameters, so that a step would teach nothing."""
    parameters = list(model.parameters())
    on = parameters[0].device
    if on.trace_depth:
        own = {value_on(on, t) for t in parameters}
        reached = loss.device is on and not own.isdisjoint(postorder((loss._value,)))
    else:
        reached = loss.requires_grad
    if not reached:
        raise InputError(
            "the loss depends on no parameter of the step's model, which would learn nothing; expected a function that computes "
            "with the model that it is given, not with one from outside: lambda model, x, y: nn.MSELoss()(model(x), y)"
        )


def _shown(batch: Sequence[Any]) -> str:
    """What parts a batch has."""
    kinds = [
        f"a dict of {', '.join(map(repr, part))}" if isinstance(part, Mapping) else f"a {type(part).__name__}"
        for part in batch
    ]
    return " and ".join(kinds) if kinds else "empty"


class Evaluation:
    """An objective by a model that does not change meanwhile, in inference mode; the batches of a shape share one Program."""

    def __init__(self, objective: Objective, model: Module, on: Device) -> None:
        """on: the device of the model, or of its first part, which computes lazily."""
        self._objective = objective
        self._on = on
        self._model = model.eval()

    def __call__(self, *batch: Any) -> tuple[float, dict[str, Any]]:
        given = [mapped(lambda x: tensor(x, device=self._on) if isinstance(x, np.ndarray) else x, x) for x in batch]
        loss, extras = self._objective(self._model, *given)
        return float(loss.numpy()), {k: v.numpy() if isinstance(v, Tensor) else v for k, v in extras.items()}
