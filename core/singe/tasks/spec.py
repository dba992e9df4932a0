"""TaskSpec: what a task is, as data. It is in the manifest of a bundle and in a record, and both languages read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field
from typing import Any, Final

from ..errors import FormatError, InputError
from ..late_dataclass import dataclass
from ..shapes import show
from .picture_spec import PictureSpec

FITS: Final = ("cover", "contain", "corner", "stretch")
"""How a picture meets the model's size: its centre alone; all of it, centred or at the top left, with a border; or out of proportion."""
ORDERS: Final = ("rgb", "bgr")
FILTERS: Final = ("linear", "cubic")
MAX_LABELS: Final = 1 << 17


@dataclass(frozen=True)
class PictureInput(PictureSpec):
    """How pixels of any size become a model's input, in the Graph: a PictureSpec, and how the picture meets that size.

    fit: one of FITS. fill: the value of a border, from 0 to 255. order: "rgb" or "bgr". filter: how pixels are weighed where
    sizes differ; both are antialiased.
    """

    fit: str = "cover"
    fill: float = 114.0
    order: str = "rgb"
    filter: str = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        for value, known, what in (
            (self.fit, FITS, "fit"),
            (self.order, ORDERS, "order"),
            (self.filter, FILTERS, "filter"),
        ):
            if value not in known:
                raise InputError(f"pictures: {what} {value!r}: expected {' or '.join(known)}")
        if not 0 <= self.fill <= 255:
            raise InputError(f"pictures: fill {self.fill}: expected a value of pixels, from 0 to 255")

    def __str__(self) -> str:
        mean, std = (" ".join(f"{x:g}" for x in numbers) for numbers in (self.mean, self.std))
        return f"{self.fit} {show(self.size)}, {self.order}, less {mean}, by {std}"


@dataclass(frozen=True)
class TaskSpec:
    """What a task is. kind: a row of KINDS. preparation: what was done to make the model's input. head: the name of what decodes the
    model's outputs. labels: the names of classes, by number. options: the facts of the head, such as the least score."""

    kind: str
    preparation: PictureInput
    head: str
    labels: Sequence[str] = ()
    licence: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def label(self, index: int) -> str:
        return self.labels[index] if 0 <= index < len(self.labels) else f"class {index}"

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest and to a record."""
        found = asdict(self.preparation)
        prepared = {**found, "size": list(found["size"]), "mean": list(found["mean"]), "std": list(found["std"])}
        return {
            "kind": self.kind, "preparation": prepared, "head": self.head, "labels": list(self.labels), "licence": self.licence,
            "options": dict(self.options),
        }  # fmt: skip

    @staticmethod
    def from_dict(data: Any, source: str) -> TaskSpec:
        """What `to_dict` gave, from a file that may hold anything; source: how errors name it."""
        with _facts(source):
            prepared = {**data["preparation"]}
            for name in ("size", "mean", "std"):
                prepared[name] = tuple(prepared[name])
            made = TaskSpec(
                data["kind"], PictureInput(**prepared), data["head"], tuple(data["labels"]), data["licence"], {**data["options"]}
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
