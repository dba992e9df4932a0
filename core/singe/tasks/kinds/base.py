"""What a kind of task is: a row with its heads, each of which decodes the outputs of some models to the outputs of the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from ...late_dataclass import dataclass
from ...tensors.tensor import Tensor
from ..answers import Answer, Arrays
from ..medium import Files, Medium
from ..spec import TaskSpec

Shapes = Mapping[str, tuple[int, ...]]
"""A model's outputs ↦ their shapes, for an input of the task's size."""
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Asked:
    """What is known when a head is looked for. size: a picture's height and width in the input; labels: how many are given, or None; names: those;
    integers, sigmoids, softmaxes, rounded: the outputs that are integers, a sigmoid's, a softmax's, or what quantised integers stand for; chosen: whether
    the caller names the head."""

    size: tuple[int, int]
    labels: int | None
    names: Sequence[str] = ()
    integers: frozenset[str] = frozenset()
    sigmoids: frozenset[str] = frozenset()
    softmaxes: frozenset[str] = frozenset()
    rounded: frozenset[str] = frozenset()
    chosen: bool = False


@dataclass(frozen=True)
class Head:
    """How some models' outputs are decoded.

    recognise: the head's options, if outputs of these shapes are its own, otherwise None. decode: the outputs of the kind, of the
    model's, of what the medium tells of its input, and of the options. preparation: fields of the medium's TaskInput that these models expect,
    where they differ from the kind's. about: for people. takes_bytes: whether outputs of 8 bits are what they say, and no quantised numbers.
    """

    name: str
    about: str
    recognise: Callable[[Shapes, Asked], Mapping[str, Any] | None]
    decode: Callable[[Tensors, Any, Mapping[str, Any]], dict[str, Tensor]]
    preparation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    takes_bytes: bool = False


@dataclass(frozen=True)
class RefusedOutputs:
    """Outputs that a kind knows and does not decode. about: what they are, and what to give instead."""

    about: str
    recognise: Callable[[Shapes, Asked], bool]


Live = Callable[[Sequence[Arrays], int, bool], Answer]
"""Of the outputs of the rows that are known now, how much came in all, and whether it ends here."""


@dataclass(frozen=True)
class TaskKind:
    """A row of KINDS. medium: what it is given; answer: of the Graph's outputs, and of what the medium read; size: how much a model takes at
    once that leaves it open: the sides of a picture, the tokens of a text; preparation: fields of the medium's TaskInput; labels: the set of
    labels that the models usually have; settings: what a call may choose ↦ its default; asks: what the medium reads of a source, with settings;
    varied: whether its models have learned from pixels prepared in several ways, which their files do not say;
    live: of a medium that comes in parts, begins to answer for these; holds: what a task keeps of the files that travel with it; network:
    of a model that is made by its architecture, the head; forms: how models may take what they are given, of sounds names of rows of FORMS, of
    texts SPANS; refused: outputs that no head takes."""

    name: str
    about: str
    medium: Medium
    heads: Sequence[Head]
    answer: Callable[[Arrays, TaskSpec, Any, Mapping[str, Any]], Answer]
    size: int = 224
    preparation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asks: Callable[[Any, TaskSpec, Mapping[str, Any]], Any] = lambda source, spec, settings: source
    live: Callable[[TaskSpec, Mapping[str, Any]], Live] | None = None
    holds: Callable[[Files], Any] = lambda files: None
    network: str = ""
    varied: bool = False
    forms: Sequence[str] = ()
    refused: Sequence[RefusedOutputs] = ()


SCORE_WORDS: Final = ("logits", "scores", "probabilities")
"""Words in the names of outputs that are scores of classes or of words, not vectors."""


def only(outputs: Mapping[str, Any]) -> Any:
    """The first output; a head is chosen by its shape."""
    return next(iter(outputs.values()))


def shorn(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without the leading sides of 1."""
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape
