"""Metrics of classification and segmentation, all from counts of hits and misses for each class.

The shapes tell what is meant:

    predictions                       targets
    floats (batch, classes, …)        integers (batch, …)              the class with the largest number is predicted
    integers (batch, …)               integers (batch, …)              classes; needs num_classes
    floats or bools (batch)           integers 0 and 1 (batch)         one class: above the threshold or not
    floats or bools (batch, labels)   integers 0 and 1 of that shape   several labels, each above the threshold or not

The threshold is compared with the predictions as they are: it is 0.5 for probabilities, 0 for logits.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..errors import DTypeError, InputError, ShapeError
from ..late_dataclass import dataclass
from ._metric import Metric, State, array, one_of, ratio, shares

Average: TypeAlias = Literal["micro", "macro", "weighted"] | None
AVERAGES = ("micro", "macro", "weighted", None)


def numbers(what: str, x: np.ndarray) -> np.ndarray:
    """Targets, which must be integers."""
    if x.dtype.kind not in "biu":
        raise DTypeError(f"{what}: the targets are {x.dtype}, expected integers: the numbers of classes, or 0 and 1")
    return x.astype(np.int64)


def many_classes(what: str, x: np.ndarray, y: np.ndarray, num_classes: int | None) -> bool:
    """Whether each target is one of several classes; otherwise it is a 0 or 1."""
    if x.ndim == y.ndim + 1 and x.ndim > 1 and (x.shape[0], *x.shape[2:]) == y.shape:
        return True
    if x.shape != y.shape:
        raise ShapeError(
            f"{what}: predictions {x.shape} and targets {y.shape}, expected (batch, classes, …) and (batch, …), or one shape"
        )
    if x.dtype.kind in "iu" and num_classes is None:
        raise InputError(f"{what}: the predictions are numbers of classes; say how many there are: num_classes=…")
    return x.dtype.kind in "iu"


def chosen_classes(
    what: str, x: np.ndarray, y: np.ndarray, num_classes: int | None, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """The predicted class and the right one of each place that counts, and how many classes there are."""
    classes = x.shape[1] if x.ndim > y.ndim else num_classes
    assert classes is not None
    guess = x.argmax(1) if x.ndim > y.ndim else x
    if ignore_index is not None:
        kept = y != ignore_index
        guess, y = guess[kept], y[kept]
    check_classes(what, "predictions", guess, classes)
    check_classes(what, "targets", y, classes)
    return guess.ravel(), y.ravel(), classes


def chosen_labels(
    x: np.ndarray, y: np.ndarray, threshold: float, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each label is predicted, and whether it is right: two arrays of bools (places, labels)."""
    guess, right = x if x.dtype == bool else x > threshold, y == 1
    kept = np.ones(y.shape, bool) if ignore_index is None else y != ignore_index
    if y.ndim == 1:
        return guess[kept].reshape(-1, 1), right[kept].reshape(-1, 1)
    # An ignored label counts as neither predicted nor right: that changes no count of positives.
    guess, right = (np.moveaxis(z & kept, 1, -1).reshape(-1, y.shape[1]) for z in (guess, right))
    return guess, right


def check_classes(what: str, name: str, z: np.ndarray, classes: int) -> None:
    """Refuse numbers that are no classes."""
    if z.size and not (z.min() >= 0 and z.max() < classes):
        raise InputError(
            f"{what}: the {name} are classes from {z.min()} to {z.max()}, expected 0 to {classes - 1}; "
            "ignore_index=… leaves one out"
        )


@dataclass(frozen=True, kw_only=True)
class _Score(Metric):
    """A score of each class, from its true and false positives and negatives.

    average: "macro": the mean over the classes that occur, in predictions or targets; "weighted": by how often each is
    the target; "micro": the score of all classes as one; None: an array of the classes' scores. What is 0 / 0 is 0.
    """

    average: Average = "macro"
    num_classes: int | None = None
    threshold: float = 0.5
    ignore_index: int | None = None

    def __post_init__(self) -> None:
        one_of(type(self).__name__, "average", self.average, AVERAGES)

    def count(self, prediction: Any, target: Any) -> State:
        what = type(self).__name__
        x, y = array(prediction), numbers(what, array(target))
        if many_classes(what, x, y, self.num_classes):
            guess, y, classes = chosen_classes(what, x, y, self.num_classes, self.ignore_index)
            true, guessed, right = (np.bincount(z, minlength=classes) for z in (y[guess == y], guess, y))
        else:
            guess, y = chosen_labels(x, y, self.threshold, self.ignore_index)
            true, guessed, right = (z.sum(0) for z in (guess & y, guess, y))
        return {
            "true_positive": true,
            "false_positive": guessed - true,
            "false_negative": right - true,
            "places": np.full(true.shape, len(guess)),
        }

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        """The score of each class."""
        raise NotImplementedError

    def value(self, state: State) -> Any:
        tp, fp, fn, places = (
            state[k].astype(float) for k in ("true_positive", "false_positive", "false_negative", "places")
        )
        tn = places - tp - fp - fn
        if not places.sum():
            return float("nan")
        if self.average == "micro":
            return float(self.score(*(x.sum(keepdims=True) for x in (tp, fp, fn, tn)))[0])
        each = self.score(tp, fp, fn, tn)
        if self.average is None:
            return each
        weights = (tp + fp + fn > 0).astype(float) if self.average == "macro" else tp + fn
        return float((each * weights).sum() / weights.sum()) if weights.sum() else 0.0


@dataclass(frozen=True, kw_only=True)
class Precision(_Score):
    """How much of what is predicted to be of a class is: tp / (tp + fp)."""

    label: ClassVar = "precision"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        return shares(tp, tp + fp)


@dataclass(frozen=True, kw_only=True)
class Recall(_Score):
    """How much of a class is found: tp / (tp + fn)."""

    label: ClassVar = "recall"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        return shares(tp, tp + fn)


@dataclass(frozen=True, kw_only=True)
class Specificity(_Score):
    """How much of what is not of a class is not predicted to be: tn / (tn + fp)."""

    label: ClassVar = "specificity"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        return shares(tn, tn + fp)


@dataclass(frozen=True, kw_only=True)
class FBeta(_Score):
    """The mean of precision and recall in which recall weighs beta² times as much: (1 + β²) p r / (β² p + r)."""

    beta: float = 1.0

    @property
    def name(self) -> str:
        return f"F{self.beta:g}"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        square = self.beta**2
        return shares((1 + square) * tp, (1 + square) * tp + square * fn + fp)


@dataclass(frozen=True, kw_only=True)
class Dice(_Score):
    """The overlap of regions: 2 · tp / (2 · tp + fp + fn), which is FBeta's for beta = 1."""

    label: ClassVar = "dice"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        return shares(2 * tp, 2 * tp + fp + fn)


@dataclass(frozen=True, kw_only=True)
class IoU(_Score):
    """The intersection of regions over their union: tp / (tp + fp + fn)."""

    label: ClassVar = "IoU"

    def score(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
        return shares(tp, tp + fp + fn)


@dataclass(frozen=True, kw_only=True)
class Accuracy(Metric):
    """How many predictions are right. top_k: how many classes, those with the largest numbers, count as predicted.

    Of several labels each one counts for itself.
    """

    top_k: int = 1
    threshold: float = 0.5
    ignore_index: int | None = None

    @property
    def name(self) -> str:
        return "accuracy" if self.top_k == 1 else f"top-{self.top_k} accuracy"

    def count(self, prediction: Any, target: Any) -> State:
        x, y = array(prediction), numbers("Accuracy", array(target))
        several = many_classes("Accuracy", x, y, num_classes=0)
        if not several:
            right = (x if x.dtype == bool else x > self.threshold) == (y == 1)
        elif x.ndim == y.ndim:
            right = x == y
        elif self.top_k == 1:
            right = x.argmax(1) == y
        else:
            if not 1 <= self.top_k <= x.shape[1]:
                raise InputError(
                    f"Accuracy: top_k is {self.top_k}, and there are {x.shape[1]} classes; expected fewer than these"
                )
            best = np.argsort(-x, 1, kind="stable")[:, : self.top_k]
            right = (best == np.expand_dims(y, 1)).any(1)
        kept = np.ones(y.shape, bool) if self.ignore_index is None else y != self.ignore_index
        return {"right": np.asarray((right & kept).sum()), "places": np.asarray(kept.sum())}

    def value(self, state: State) -> float:
        return ratio(state["right"], state["places"])


@dataclass(frozen=True, kw_only=True)
class Hamming(Accuracy):
    """The part of labels, or of classes, that are predicted wrongly."""

    label: ClassVar = "hamming"
    best: ClassVar = "least"

    @property
    def name(self) -> str:
        return self.label

    def value(self, state: State) -> float:
        return 1 - super().value(state)


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(Metric):
    """How often each class (a row) is taken for each (a column); normalize: over the "true" classes, over what is
    predicted ("pred"), or over "all", so that rows, columns or all numbers sum to 1."""

    label: ClassVar = "confusion matrix"
    best: ClassVar = None
    num_classes: int | None = None
    normalize: Literal["true", "pred", "all"] | None = None
    threshold: float = 0.5
    ignore_index: int | None = None

    def __post_init__(self) -> None:
        one_of("ConfusionMatrix", "normalize", self.normalize, ("true", "pred", "all", None))

    def count(self, prediction: Any, target: Any) -> State:
        x, y = array(prediction), numbers("ConfusionMatrix", array(target))
        if many_classes("ConfusionMatrix", x, y, self.num_classes):
            guess, y, classes = chosen_classes("ConfusionMatrix", x, y, self.num_classes, self.ignore_index)
        elif y.ndim > 1:
            raise ShapeError("ConfusionMatrix: got several labels for each example, expected one class")
        else:
            guess, y = (z[:, 0] for z in chosen_labels(x, y, self.threshold, self.ignore_index))
            classes = 2
        return {"matrix": np.bincount(y * classes + guess, minlength=classes**2).reshape(classes, classes)}

    def value(self, state: State) -> np.ndarray:
        matrix = state["matrix"]
        if self.normalize is None:
            return matrix
        axes: Any = {"true": 1, "pred": 0, "all": (0, 1)}[self.normalize]
        return shares(matrix, np.broadcast_to(matrix.sum(axes, keepdims=True), matrix.shape))
