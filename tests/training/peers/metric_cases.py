"""The data on which metrics are compared with other packages: record_metrics.py computes them there, test_metrics.py here."""

from __future__ import annotations

import numpy as np

R = np.random.RandomState(23)  # whose numbers are the same in every version of NumPy

COUNT = 60
CLASS_SCORES = R.normal(size=(COUNT, 5)).astype(np.float32)
CLASSES = np.where(R.random_sample(COUNT) < 0.5, CLASS_SCORES.argmax(1), R.randint(0, 5, COUNT))
SHARES = np.exp(CLASS_SCORES) / np.exp(CLASS_SCORES).sum(1, keepdims=True)
BINARY_SCORES = np.round(R.random_sample(COUNT), 1).astype(np.float32)  # with ties
BINARY = (R.random_sample(COUNT) < BINARY_SCORES * 0.8 + 0.1).astype(np.int64)
LABEL_SCORES = R.random_sample((COUNT, 4)).astype(np.float32)
LABELS = (R.random_sample((COUNT, 4)) < LABEL_SCORES).astype(np.int64)
REGIONS = R.randint(0, 3, (4, 8, 8))
REGION_SCORES = (R.normal(size=(4, 3, 8, 8)) + (np.arange(3)[:, None, None] == REGIONS[:, None]) * 1.5).astype(
    np.float32
)
NUMBERS = R.normal(3, 2, (COUNT, 3)).astype(np.float32)
GUESSES = (NUMBERS + R.normal(0, 0.7, (COUNT, 3))).astype(np.float32)
LOGITS = R.normal(0, 2, (6, 7, 11)).astype(np.float32)
TOKENS = np.where(R.random_sample((6, 7)) < 0.2, -100, R.randint(0, 11, (6, 7)))
PICTURES = R.random_sample((3, 2, 180, 192)).astype(np.float32)
NOISY = np.clip(PICTURES + R.normal(0, 0.15, PICTURES.shape), 0, 1).astype(np.float32)
REAL = R.normal(size=(80, 6)) @ R.normal(size=(6, 6))
GENERATED = R.normal(0.3, 1.2, size=(70, 6)) @ R.normal(size=(6, 6))

TEXTS = [
    "the cat is on the mat",
    "there is a cat on the mat which the dog did not see at all",
    "It is a guide to action which ensures that the military always obeys the commands of the party",
    "he read the book because he was interested in world history",
]
REFERENCES = [
    ["the cat sat on the mat", "there is a cat on the mat"],
    ["a cat that the dog did not see is on the mat", "there is a cat on the mat that the dog did not see"],
    [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ],
    ["he was interested in world history because he read the book"],
]
"""Those of the third text are from Papineni et al., "BLEU: a method for automatic evaluation of machine translation", 2002."""
FIRST = [r[0] for r in REFERENCES]
