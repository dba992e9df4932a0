"""What a medium is: a row that says how sources of one sort become the inputs of a task's Graph, and these those of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from ..errors import InputError
from ..late_dataclass import dataclass
from ..model.model import Model
from ..tensors.tensor import Tensor
from .answers import Answer, Arrays

if TYPE_CHECKING:
    from ..graph import Graph
    from ..runtime.device import Device
    from .kinds import TaskKind
    from .places import Place
    from .spec import TaskSpec

OTHER: Final = "picture"
"""The medium of facts that name none: they are of the time when pictures were all."""


class TaskInput:
    """How sources become a model's input: facts, which are in the manifest of a bundle and in a record. Each medium has a dataclass of
    its own; `str` of one is a few words for people."""

    medium: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        facts: Mapping[str, Any] = asdict(self)  # pyright: ignore[reportArgumentType] (those who derive are dataclasses)
        return {
            "medium": self.medium,
            **{name: list(x) if isinstance(x, tuple) else x for name, x in facts.items()},
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Of facts that may be anything: what does not fit is an error of one kind or another."""
        return cls(**{name: tuple(x) if isinstance(x, list) else x for name, x in facts.items()})


@dataclass(frozen=True)
class Wishes:
    """What a caller says of a model beyond its file. preparation: fields of the medium's TaskInput; files: those beside the model that the
    medium reads, by name; options: what these say of the head's options; None and "": as the model and its head suggest. usual_size: that
    where neither the model nor the caller says one."""

    labels: Sequence[str] = ()
    size: tuple[int, int] | None = None
    head: str = ""
    licence: str = ""
    preparation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    usual_size: tuple[int, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Fitted:
    """A model for a task's inputs. graph: the model's; feed: its inputs, of those of the task's Graph and of the preparation, and what heads
    get beside its outputs; size: what Asked says; files: what a task needs of them later, by name; fixed: the wishes that the model
    decides, of the fields of `preparation`, whatever its kind and head suggest; options: what is known of the head's."""

    graph: Graph
    preparation: TaskInput
    feed: Callable[[Mapping[str, Tensor], Any], tuple[Sequence[Tensor], Any]]
    size: tuple[int, int] = (0, 0)
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    fixed: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


Files = Mapping[str, bytes]
"""What travels with a task beside its Graph: in a record, and in the folder of a bundle."""
Run = Callable[[Mapping[str, np.ndarray]], Arrays]
"""Runs a task's Graph: inputs by name ↦ outputs by name."""
Following = Callable[[Sequence[Any]], "list[Answer]"]
"""Answers for several sources; it may keep what it saw."""
Inputs = Mapping[str, tuple[str, Sequence[int | str]]]
"""The names of a Graph's inputs ↦ a dtype and a shape."""
Begin = Callable[[Run, Mapping[str, Any]], Following]
"""Begins to answer, with the settings of a call."""


@dataclass(frozen=True)
class Medium:
    """A row of MEDIA. facts: its TaskInput. wishes: the fields of it that a caller may give. inputs: of a task's Graph, for such facts.
    fit: makes a model ready for them. open: a task, with the files that travel with it. reads: the names of files beside a model that say
    something of it, and with_files: wishes with what these say, where the caller does not. network: makes a Model of weights that stand
    without one, by its architecture. stream: where what comes is parts of one source, answers as they come. real_outputs: whether outputs that a model
    quantises are read as the numbers that they stand for."""

    name: str
    facts: type[TaskInput]
    wishes: frozenset[str]
    inputs: Callable[[Any], Inputs]
    fit: Callable[[Model, TaskKind, Wishes], Fitted]
    open: Callable[[TaskKind, TaskSpec, Files], Begin]
    reads: Sequence[str] = ()
    with_files: Callable[[TaskKind, Wishes], Wishes] = lambda kind, wishes: wishes
    network: Callable[[TaskKind, Place, str | Device], Model] | None = None
    stream: (
        Callable[[TaskKind, TaskSpec, Run, Mapping[str, Any]], Callable[[Iterable[Any]], Iterator[Answer]]] | None
    ) = None
    real_outputs: bool = False

    def refuse(self, given: Mapping[str, Any]) -> None:
        """Refuse what is no wish."""
        if unknown := given.keys() - self.wishes:
            raise InputError(f"task: got {', '.join(sorted(unknown))}, which it does not take; see help(sg.task)")


def is_list(source: Any) -> bool:
    """Whether a task is given several at once, and answers with a list."""
    return isinstance(source, Sequence) and not isinstance(source, (str, bytes, bytearray, memoryview))
