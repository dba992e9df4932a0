"""Whole models in training: built of `torch.nn` by record_models.py, and of `singe.nn` by test_models.py.

Both have the same names of layers, fields and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

STEPS: Final = 5
RATE: Final = 0.2
"""Of the descent."""


class Case(NamedTuple):
    """A function that builds a model of a namespace of layers, and one that draws a batch: inputs, and a target of classes."""

    build: Callable[[Any], Any]
    batch: Callable[[np.random.Generator], tuple[np.ndarray, ...]]


def convolutions(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, bias=False), nn.BatchNorm2d(6, momentum=0.3), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(6, 4),
    )  # fmt: skip


def images(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.normal(size=(6, 2, 12, 12)).astype(np.float32), rng.integers(4, size=6)


def recurrent(nn: Any) -> Any:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(11, 5)
            self.lstm = nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)
            self.norm = nn.LayerNorm(8)
            self.head = nn.Linear(8, 3)

        def forward(self, words: Any) -> Any:
            y, (states, _) = self.lstm(self.embedding(words))
            return self.head(self.norm(y.mean(1)) + states[0].sum(-1, keepdim=True))

    return Classifier()


def words(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.integers(11, size=(5, 7)), rng.integers(3, size=5)


def transformer(nn: Any) -> Any:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.places = nn.Embedding(9, 8), nn.Embedding(6, 8)
            layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, activation="gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(8, 5)

        def forward(self, words: Any, places: Any) -> Any:
            return self.head(self.encoder(self.embedding(words) + self.places(places)).mean(1))

    return Classifier()


def words_and_places(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.integers(9, size=(4, 6)), np.arange(6), rng.integers(5, size=4)


CASES: Final = {
    "convolutions": Case(convolutions, images),
    "recurrent": Case(recurrent, words),
    "transformer": Case(transformer, words_and_places),
}


def batches(case: Case) -> Iterator[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        yield case.batch(rng)
