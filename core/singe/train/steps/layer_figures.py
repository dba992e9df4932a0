"""Figures of the parameters of a step, and of their gradients on a batch: what a Learner tells every so many steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...tensors.layer_statistics import LayerStatistics, figures
from .step import TrainStep

BINS: Final = 32
"""In how many parts, from the least to the most, numbers are counted."""


def layer_figures(step: TrainStep, batch: Sequence[Any]) -> tuple[LayerStatistics, LayerStatistics]:
    """The figures of the weights before the next step, and of the gradients that it will have on this batch."""
    gradients = step.gradients(*batch)
    weights = {path: t.numpy() for path, t in step.model.named_parameters() if path in gradients}
    of_weights, of_gradients = (
        LayerStatistics(tuple(figures(path, str(array.dtype), array, BINS) for path, array in arrays.items()))
        for arrays in (weights, gradients)
    )
    return of_weights, of_gradients
