"""What a task of several models is: a row with its parts, each a Graph of its own, and the function that goes from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ...graph import Graph
from ...late_dataclass import dataclass
from ...model.model import Model
from ..answers import Answer, Arrays
from ..spec import ChainSpec

Step = Callable[[Mapping[str, np.ndarray]], Arrays]
"""A part that is ready: inputs by name ↦ outputs by name."""


@dataclass(frozen=True)
class ChainPart:
    """One of the models. files: the names that it may have in the zoo's row, and in a folder; words: parts of the names that makers give it;
    build: the Graph of its preparation, the model and its decoding; optional: whether the task does without it; activations: what it computes
    in, as a Model has it."""

    files: Sequence[str]
    words: Sequence[str]
    build: Callable[[Model], Graph]
    optional: bool = False
    activations: str = "float32"


@dataclass(frozen=True)
class ChainParts:
    """What a chain works with. steps: those of the models that there are, by the names of the parts."""

    steps: Mapping[str, Step]
    info: ChainSpec


Following = Callable[[np.ndarray], Answer]
"""Answers for the pixels (height, width, 4) of one picture after the other; it may keep what it saw."""


@dataclass(frozen=True)
class Chain:
    """A row of CHAINS. parts: by name, the last is the one that answers. files: what it has beside its models, which may be absent ↦ parts
    of the names that makers give it. facts: labels and options of a ChainSpec, of the models and of the paths of all files. begin: with the
    settings of a call. settings: as in TaskKind."""

    name: str
    about: str
    parts: Mapping[str, ChainPart]
    files: Mapping[str, Sequence[str]]
    facts: Callable[[Mapping[str, Model], Mapping[str, Path]], tuple[Sequence[str], Mapping[str, Any]]]
    begin: Callable[[ChainParts, Mapping[str, Any]], Following]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
