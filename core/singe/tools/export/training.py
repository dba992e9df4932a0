"""`singe export --train`: an ONNX model as two bundles, one of a step of training, one that reads with the weights it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ... import nn
from ...errors import InputError
from ...model.files import load_module
from ...model.model import Model
from ...nn import Module
from ...onnx.module import OnnxModule
from ...optim import AdamW
from ...shapes import Size
from ...tensors.tensor import Tensor
from ...train.steps.step import TrainStep
from .bundle import Bundle, export

CLASSES: Final = "cross-entropy"
LOSSES: Final[Mapping[str, type[Module]]] = {
    CLASSES: nn.CrossEntropyLoss, "bce": nn.BCEWithLogitsLoss, "huber": nn.HuberLoss, "l1": nn.L1Loss, "mse": nn.MSELoss,
}  # fmt: skip
"""What --train names ↦ the loss of the first output and a target: for classes their numbers, else numbers of the output's shape."""
STEP: Final = "step"
READ: Final = "read"
"""The folders of the two bundles."""
_LEAST: Final = 1e-12
"""What a probability is at least, of which the logarithm is taken."""


def export_training(
    path: str | Path, folder: str | Path, loss: str, *, batch: int = 16, lr: float = 1e-3, learn: Sequence[str] = (),
    input_shapes: Mapping[str, Sequence[int | str]] | None = None, targets: Sequence[str] | None = None, force: bool = False,
    readable: bool = False,
) -> dict[str, Bundle]:  # fmt: skip
    """Write folder/step, whose `model.step({ …inputs, target })` gives the loss and the prediction and changes the weights, and
    folder/read, the model for any number of items with the weights as states of the same names.

    batch: the items of a step. lr: the learning rate, of AdamW. learn: patterns of the weights that are learned; all, if
    there is none.
    """
    if loss not in LOSSES:
        raise InputError(f"export: got the loss {loss!r}, expected one of {', '.join(LOSSES)}")
    module = load_module(path, input_shapes)
    open_shapes = {x.name: x.shape for x in module.inputs}
    kinds = {x.name: x.dtype for x in module.inputs}
    shapes = {name: _closed(name, shape, batch) for name, shape in open_shapes.items()}
    whole = Model.of(_first(module), shapes, "numpy", dtypes=kinds).graph().outputs[0]
    probabilities = loss == CLASSES and whole.op == "softmax"
    criterion = LOSSES[loss]()

    def objective(model: Any, *parts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        *inputs, target = parts
        found = _first(model)(*inputs)
        return criterion(found.maximum(_LEAST).log() if probabilities else found, target), {"prediction": found}

    sides = [d for d in whole.shape if isinstance(d, int)]
    if loss == CLASSES and len(sides) < 2:
        raise InputError(f"export: the first output has the shape {sides}, and {CLASSES} expects (items, classes, …)")
    target = np.zeros([sides[0], *sides[2:]], np.int32) if loss == CLASSES else np.zeros(sides, np.float32)
    examples = [np.zeros(shape, kinds[name].numpy) for name, shape in shapes.items()]
    learned = module.freeze("*").unfreeze(*learn) if learn else module
    step = TrainStep(learned, AdamW(lr), objective, device="numpy")
    models = {
        STEP: step.as_model(*examples, target, names=[*shapes, "target"]),
        READ: _reader(module, _named(open_shapes), kinds),
    }
    return {
        name: export(model, Path(folder) / name, targets, force=force, readable=readable)
        for name, model in models.items()
    }


def _first(module: Any) -> Any:
    """The function that gives a module's first output."""

    def first(*inputs: Tensor) -> Tensor:
        found = module(*inputs)
        return next(iter(found.values())) if isinstance(found, dict) else found

    return first


def _reader(module: OnnxModule, shapes: Mapping[str, Sequence[int | str]], kinds: Mapping[str, Any]) -> Model:
    """The module as a Model whose weights are states, called as those of a step."""
    states = {f"model.{path}": t.numpy() for path, t in module.state_dict().items()}

    def read(*inputs: Tensor, **weights: Tensor) -> tuple[Any, dict[str, Tensor]]:
        found = module.with_state({path.removeprefix("model."): w for path, w in weights.items()})(*inputs)
        return found if isinstance(found, dict) else {module.output_names[0]: found}, weights

    return Model.of(read, shapes, "numpy", dtypes=kinds, states=states, name=READ)


def _closed(name: str, shape: Sequence[Any], batch: int) -> tuple[int, ...]:
    """A shape for a step: the first dimension is the batch, if it is open."""
    closed = [batch if k == 0 and isinstance(d, Size) else d for k, d in enumerate(shape)]
    if not all(isinstance(d, int) for d in closed):
        text = "x".join(map(str, closed))
        raise InputError(f"export: a step takes batches of one shape: give numbers, as in --input-shape {name}={text}")
    return tuple(closed)


def _named(shapes: Mapping[str, Sequence[Any]]) -> dict[str, list[int | str]]:
    return {name: [d if isinstance(d, int) else str(d) for d in shape] for name, shape in shapes.items()}
