"""Which value of a metric is the best: what a run says, or else what the metric's name says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Mode: TypeAlias = Literal["least", "most"]
LEAST: Final = ("loss", "error", "perplexity", "mse", "mae", "cer", "wer", "distance", "fid", "entropy")
"""Ends of words in the names of metrics of which the least value is the best."""
NEITHER: Final = ("lr", "rate", "norm", "scale", "momentum", "seconds")
"""Words in the names of values that are neither good nor bad."""


def best_mode(name: str, modes: Mapping[str, Mode]) -> Mode | None:
    """Which value of a metric is the best; None of one such as the learning rate."""
    if name in modes:
        return modes[name]
    words = set(re.split(r"[^a-z]+", name.lower()))
    if words & set(NEITHER):
        return None
    return "least" if any(word.endswith(LEAST) for word in words) else "most"
