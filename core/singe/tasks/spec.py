"""TaskSpec: what a task is, as data. It is in the manifest of a bundle and in a record, and both languages read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from ..errors import FormatError, InputError
from ..late_dataclass import dataclass
from .media import MEDIA
from .medium import OTHER

MAX_LABELS: Final = 1 << 17


@dataclass(frozen=True)
class TaskSpec:
    """What a task is. kind: a row of KINDS. preparation: what was done to make the model's input, the TaskInput of the kind's medium. head:
    the name of what decodes the model's outputs. labels: the names of classes, by number. options: the facts of the head, such as the least
    score."""

    kind: str
    preparation: Any
    head: str
    labels: Sequence[str] = ()
    licence: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def label(self, index: int) -> str:
        return self.labels[index] if 0 <= index < len(self.labels) else f"class {index}"

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest and to a record."""
        return {
            "kind": self.kind, "preparation": self.preparation.to_dict(), "head": self.head, "labels": list(self.labels), "licence": self.licence,
            "options": dict(self.options),
        }  # fmt: skip

    @staticmethod
    def from_dict(data: Any, source: str) -> TaskSpec:
        """What `to_dict` gave, from a file that may hold anything; source: how errors name it."""
        with _facts(source):
            facts = {**data["preparation"]}
            preparation = MEDIA[facts.pop("medium", OTHER)].facts.from_dict(facts)
            made = TaskSpec(
                data["kind"], preparation, data["head"], tuple(data["labels"]), data["licence"], {**data["options"]}
            )  # fmt: skip
            _check_texts(made.labels, made.kind, made.head, made.licence)
            return made


@dataclass(frozen=True)
class ChainSpec:
    """What a task of several models is. kind: a row of CHAINS. parts: the names of the models that there are; in a bundle each but the last
    has a folder of its name. labels: the names of what the last one tells apart. options: other facts that lead from one to the next."""

    kind: str
    parts: Sequence[str]
    labels: Sequence[str]
    licence: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "parts": list(self.parts), "labels": list(self.labels), "licence": self.licence, "options": dict(self.options),
        }  # fmt: skip

    @staticmethod
    def from_dict(data: Any, source: str) -> ChainSpec:
        """What `to_dict` gave, from a file that may hold anything; source: how errors name it."""
        with _facts(source):
            made = ChainSpec(
                data["kind"], tuple(data["parts"]), tuple(data["labels"]), data["licence"], {**data["options"]}
            )
            _check_texts(made.labels, made.kind, made.licence, *made.parts)
            return made


def _check_texts(labels: Sequence[Any], *texts: Any) -> None:
    if len(labels) > MAX_LABELS or not all(isinstance(x, str) for x in (*labels, *texts)):
        raise ValueError(f"kind, licence, names and at most {MAX_LABELS} labels are texts")


@contextmanager
def _facts(source: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, InputError) as e:
        raise FormatError(
            f"{source}: not the facts of a task: {type(e).__name__}: {e}; export the task once more"
        ) from e
