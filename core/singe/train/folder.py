"""The names of what a run's folder holds: the Learner and its logs write it, reports read it."""

from __future__ import annotations

from typing import Final

FACTS: Final = "run.json"
FORMAT: Final = "singe-run/1"
"""That of FACTS."""
CONFIG: Final = "config.json"
EPOCHS: Final = "epochs.csv"
BATCHES: Final = "batches.sqlite"
LAYERS: Final = "layers.csv"
TENSORBOARD: Final = "tensorboard"
REPORT: Final = "report.html"
CHECKPOINTS: Final = "checkpoints"
BEST: Final = "best.safetensors"
"""The weights of the best epoch."""
