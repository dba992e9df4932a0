"""The cases on which losses are compared with PyTorch: record_losses.py computes them there, test_losses.py here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A loss by name, its arguments, and what it is called with. after: a function of the first input, computed before.
    Gradients are compared by every input of floats whose place is in `by`."""

    loss: str
    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    by: tuple[int, ...] = (0,)
    after: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        shown = "-".join(f"{k}={'given' if np.ndim(v) else v}" for k, v in self.options.items())
        shapes = "x".join(map(str, np.shape(self.inputs[0])))
        return "-".join(filter(None, (self.loss, shapes, shown, self.note)))


def _all() -> list[Case]:
    rng = np.random.RandomState(17)  # whose numbers are the same in every version of NumPy

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return rng.normal(0, scale, shape).astype(np.float32)

    def unit(*shape: int) -> np.ndarray:
        return rng.uniform(0.05, 0.95, shape).astype(np.float32)

    def classes(count: int, *shape: int) -> np.ndarray:
        return rng.randint(0, count, shape)

    def signs(*shape: int) -> np.ndarray:
        return np.where(rng.random_sample(shape) < 0.5, -1, 1).astype(np.float32)

    def shares(*shape: int) -> np.ndarray:
        found = rng.uniform(0.1, 1, shape)
        return (found / found.sum(min(1, len(shape) - 1), keepdims=True)).astype(np.float32)

    found: list[Case] = []

    def each(loss: str, *inputs: Any, by: tuple[int, ...] = (0,), after: str = "", **options: Any) -> None:
        """A case for each reduction."""
        for reduction in ("none", "mean", "sum"):
            found.append(Case(loss, inputs, {**options, "reduction": reduction}, by, after))

    weight = rng.uniform(0.2, 2, 5).astype(np.float32)
    some = np.array([0, 3, -100, 1, 4, -100])
    for loss, after in (("CrossEntropyLoss", ""), ("NLLLoss", "log_softmax")):
        each(loss, normal(6, 5, scale=3), classes(5, 6), after=after)
        each(loss, normal(6, 5), some, after=after, weight=weight)
        each(loss, normal(2, 5, 3, 2), classes(5, 2, 3, 2), after=after, weight=weight, ignore_index=2)
        each(loss, normal(5), np.array(3), after=after)
    each("CrossEntropyLoss", normal(6, 5), some, label_smoothing=0.1)
    each("CrossEntropyLoss", normal(6, 5), some, label_smoothing=0.2, weight=weight)
    each("CrossEntropyLoss", normal(2, 5, 3), classes(5, 2, 3), label_smoothing=0.3, weight=weight, ignore_index=1)
    each("CrossEntropyLoss", normal(6, 5), shares(6, 5), by=(0, 1))
    each("CrossEntropyLoss", normal(2, 5, 3), shares(2, 5, 3), weight=weight, label_smoothing=0.1)
    each("CrossEntropyLoss", normal(5), shares(5))
    found.append(Case("CrossEntropyLoss", (normal(4, 5, scale=300), classes(5, 4)), note="large"))
    each("BCELoss", unit(4, 3), unit(4, 3), by=(0, 1))
    each("BCELoss", unit(4, 3), (unit(4, 3) > 0.5).astype(np.float32), weight=unit(3))
    each("BCEWithLogitsLoss", normal(4, 3), unit(4, 3), by=(0, 1))
    each("BCEWithLogitsLoss", normal(4, 3), unit(4, 3), weight=unit(4, 1), pos_weight=unit(3))
    found.append(Case("BCEWithLogitsLoss", (normal(4, 3, scale=200), unit(4, 3)), note="large"))
    for loss in ("MSELoss", "L1Loss"):
        each(loss, normal(4, 3), normal(4, 3), by=(0, 1))
    for delta in (0.5, 1.0, 2.0):
        each("HuberLoss", normal(4, 3, scale=2), normal(4, 3), by=(0, 1), delta=delta)
    for beta in (0.0, 0.5, 1.0):
        each("SmoothL1Loss", normal(4, 3, scale=2), normal(4, 3), by=(0, 1), beta=beta)
    sparse = shares(4, 3) * (unit(4, 3) > 0.4)
    each("KLDivLoss", normal(4, 3), sparse, after="log_softmax")
    each("KLDivLoss", normal(4, 3), np.log(shares(4, 3)), by=(0, 1), after="log_softmax", log_target=True)
    found.append(Case("KLDivLoss", (normal(4, 3), sparse), {"reduction": "batchmean"}, after="log_softmax"))
    each("PoissonNLLLoss", normal(4, 3), rng.poisson(3, (4, 3)).astype(np.float32))
    each("PoissonNLLLoss", unit(4, 3), rng.poisson(3, (4, 3)).astype(np.float32), log_input=False, full=True)
    each("GaussianNLLLoss", normal(4, 3), normal(4, 3), unit(4, 3), by=(0, 1, 2))
    each("GaussianNLLLoss", normal(4, 3), normal(4, 3), unit(4, 1), by=(0, 2), full=True)
    each("GaussianNLLLoss", normal(4, 3), normal(4, 3), unit(4))
    small = np.array([[1e-9, 0.5, 0.02], [0.3, 1e-8, 0.01]], np.float32)
    each("GaussianNLLLoss", normal(2, 3), normal(2, 3), small, by=(0, 2), eps=0.05)
    each("CosineEmbeddingLoss", normal(6, 4), normal(6, 4), signs(6), by=(0, 1), margin=0.1)
    each("CosineEmbeddingLoss", normal(4), normal(4), np.array(1, np.float32), by=(0, 1))
    each("HingeEmbeddingLoss", normal(4, 3), signs(4, 3), margin=0.7)
    each("MarginRankingLoss", normal(8), normal(8), signs(8), by=(0, 1), margin=0.3)
    each("MultiMarginLoss", normal(6, 5), classes(5, 6))
    each("MultiMarginLoss", normal(6, 5), classes(5, 6), p=2, margin=0.6, weight=weight)
    each("MultiMarginLoss", normal(5), np.array(2))
    each("MultiLabelMarginLoss", normal(2, 4), np.array([[3, 0, -1, 1], [2, -1, -1, -1]]))
    each("MultiLabelMarginLoss", normal(4), np.array([1, 2, 0, 3]))
    each("MultiLabelSoftMarginLoss", normal(4, 3), (unit(4, 3) > 0.5).astype(np.float32), weight=unit(3))
    each("SoftMarginLoss", normal(4, 3), signs(4, 3))
    found.append(Case("SoftMarginLoss", (normal(4, 3, scale=200), signs(4, 3)), note="large"))
    each("TripletMarginLoss", normal(6, 4), normal(6, 4), normal(6, 4), by=(0, 1, 2))
    each("TripletMarginLoss", normal(6, 4), normal(6, 4), normal(6, 4), by=(0, 1, 2), swap=True, p=1.0, margin=2.0)
    each("TripletMarginWithDistanceLoss", normal(6, 4), normal(6, 4), normal(6, 4), by=(0, 1, 2), margin=0.5)
    for p in (1.0, 2.0, 3.0, 1.5):
        each("LpLoss", normal(4, 3), normal(4, 3), by=(0, 1), p=p)
    last = "log_softmax of the last axis"
    lengths = np.array([9, 7, 9]), np.array([4, 3, 0])
    padded = np.array([[1, 2, 2, 5], [3, 3, 1, -1], [-1, -1, -1, -1]])
    each("CTCLoss", normal(9, 3, 6, scale=2), padded, *lengths, after=last)
    each("CTCLoss", normal(9, 3, 6), np.array([0, 2, 2, 4, 3, 3, 1]), *lengths, after=last, blank=5)
    each("CTCLoss", normal(7, 6), np.array([2, 2, 1]), np.array(6), np.array(3), after=last)
    short = np.array([[1, 1, 1], [1, 2, 3]]), np.array([4, 4]), np.array([3, 3])  # the first one needs five steps
    each("CTCLoss", normal(4, 2, 5), *short, after=last, zero_infinity=True)
    found.append(
        Case(
            "CTCLoss",
            (normal(5, 2, 4, scale=200), np.array([[1, 2], [3, 3]]), np.array([5, 5]), np.array([2, 2])),
            after=last,
            note="large",
        )
    )
    each(
        "RNNTLoss",
        normal(3, 5, 4, 6),
        np.array([[1, 2, 2], [0, 4, 1], [3, 0, 0]]),
        np.array([5, 4, 1]),
        np.array([3, 2, 0]),
    )
    each(
        "RNNTLoss",
        normal(2, 3, 5, 4, scale=3),
        np.array([[1, 2, 2, 3], [3, 1, 0, 0]]),
        np.array([3, 2]),
        np.array([4, 3]),
        blank=0,
    )
    each(
        "RNNTLoss",
        normal(2, 4, 3, 5),
        np.array([[1, 2], [3, 0]]),
        np.array([4, 3]),
        np.array([2, 1]),
        after=last,
        fused_log_softmax=False,
    )
    each("GramMatrixLoss", normal(2, 3, 4, 2), normal(2, 3, 4, 2), by=(0, 1), layer_weights=[0.5])
    return found


CASES = {f"{number}-{case.name}": case for number, case in enumerate(_all())}
