"""Trainings that `singe train NAME` runs: modules with three things.

SETTINGS          a frozen dataclass of settings, each of which is an option of the command; among them epochs and seed
QUICK             settings with which it takes seconds
train(config, run)  trains, and returns the Learner and its Summary
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, cast

from ...late_dataclass import dataclass
from ..learner import Learner
from ..monitor.dashboard import Kind
from ..monitor.summary import Summary

EXAMPLES: Final[Mapping[str, str]] = {
    "mnist": "Read handwritten digits: a small convolutional network, 99.4% of the test images in minutes",
    "gpt": "Write text, one character after another: a small causal transformer",
    "sentences": "Sort sentences into five classes: a transformer encoder, on sentences made by rules",
    "sums": "Add numbers digit by digit: an LSTM, which must find the carry",
}
"""The modules in this folder, and what they train."""


@dataclass(frozen=True)
class Example:
    """Where and how an example is run, whatever it trains."""

    folder: Path
    device: str = "auto"
    resume: bool = False
    dashboard: Kind | None = "auto"


class ExampleModule(Protocol):
    """What such a module has."""

    SETTINGS: type[Any]
    QUICK: Mapping[str, Any]

    def train(self, config: Any, run: Example) -> tuple[Learner, Summary]: ...


def example(name: str) -> ExampleModule:
    return cast(ExampleModule, importlib.import_module(f"{__name__}.{name}"))
