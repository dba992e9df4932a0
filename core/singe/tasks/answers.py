"""What a task answers with: small dataclasses, the same in both languages by `to_dict`. Coordinates are pixels of the source."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np

from ..errors import InputError
from ..files import write_as
from ..late_dataclass import dataclass
from ..texts import escaped


class AnswerItem(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


Item = TypeVar("Item", bound=AnswerItem)
MANY: Final = 8
"""So many items are shown of an answer."""
_AXES: Final = ("x", "y", "z", "visibility")
Forms = Mapping[str, Callable[[], bytes]]
"""What the name of a file ends with ↦ what gives its bytes."""
_PICTURES: Final = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
"""What the name of a picture ends with ↦ its form in Pillow."""


@dataclass(frozen=True)
class Box:
    """The edges of a box."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    def to_dict(self) -> dict[str, float]:
        return {"xmin": self.xmin, "ymin": self.ymin, "xmax": self.xmax, "ymax": self.ymax}


@dataclass(frozen=True)
class Mask:
    """A mask that is made when it is asked for, since it has the size of the picture. shape: the picture's height and width; part: gives the
    first row and the first column of a box, and the pixels in it; beyond it, all are 0."""

    shape: tuple[int, int]
    part: Callable[[], tuple[int, int, np.ndarray]]

    def whole(self) -> np.ndarray:
        top, left, pixels = self.part()
        if pixels.shape == self.shape:
            return pixels
        found: np.ndarray = np.zeros(self.shape, np.uint8)
        found[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
        return found


def masked(shape: tuple[int, ...], part: Callable[[], tuple[int, int, np.ndarray]]) -> np.ndarray:
    """A Mask of a Finding, which is an array to who asks for it."""
    return cast("np.ndarray", Mask((shape[0], shape[1]), part))


class _MaskField:
    """`Finding.mask`, which is given as an array or as a Mask, and is an array from when it is asked for."""

    def __get__(self, item: Any, _: type | None = None) -> Any:
        if item is None:
            return self
        mask = vars(item)["mask"]
        if isinstance(mask, Mask):
            mask = vars(item)["mask"] = mask.whole()
        return mask

    def __set__(self, item: Any, value: Any) -> None:
        vars(item)["mask"] = None if value is self else value  # self is the field's default


@dataclass(frozen=True)
class Finding:
    """A class that was found. index: its number in the model; box, landmarks, handedness and mask: where the task gives them.

    mask: a uint8 array of the picture's height and width, 255 where it is, made when it is asked for. landmarks: rows of x and y, and z and
    visibility if the model has them. handedness: "Left" or "Right", in a picture that is not mirrored.
    """

    label: str
    score: float
    index: int
    box: Box | None = None
    landmarks: np.ndarray | None = field(default=None, compare=False)
    mask: np.ndarray | None = field(default=cast("Any", _MaskField()), compare=False)
    handedness: str = ""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"label": self.label, "score": self.score, "index": self.index}
        if self.box is not None:
            found["box"] = self.box.to_dict()
        if self.landmarks is not None:
            found["landmarks"] = [dict(zip(_AXES, map(float, row), strict=False)) for row in self.landmarks]
        if self.handedness:
            found["handedness"] = self.handedness
        if self.mask is not None:
            found["mask"] = _map(self.mask)
        return found

    def __str__(self) -> str:
        where = "" if self.box is None else " at ({:.0f}, {:.0f}) to ({:.0f}, {:.0f})".format(*_corners(self.box))
        part = ""
        if (mask := self.lazy_mask()) is not None:
            part = f", {np.count_nonzero(mask.part()[2]) / max(1, math.prod(mask.shape)):.1%} of the picture"
        points = "" if self.landmarks is None else f", {len(self.landmarks)} landmarks"
        hand = f"{self.handedness.lower()} " if self.handedness else ""
        return f"{hand}{escaped(self.label)} {self._told_score()}{where}{part}{points}"

    def lazy_mask(self) -> Mask | None:
        """The mask before it is an array of the picture's size; of one that is an array already, a Mask that gives it."""
        mask = vars(self)["mask"]
        return Mask(mask.shape, lambda: (0, 0, mask)) if isinstance(mask, np.ndarray) else mask

    def _told_score(self) -> str:
        return f"{self.score:.1%}"


def _corners(box: Box) -> tuple[float, float, float, float]:
    return box.xmin, box.ymin, box.xmax, box.ymax


def _map(values: np.ndarray) -> dict[str, Any]:
    return {"width": values.shape[1], "height": values.shape[0], "data": values.reshape(-1).tolist()}


def _npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


@dataclass(frozen=True)
class Answer:
    """What a task says of one input. picture: of one, its pixels (height, width, 4), which `plot` draws on."""

    kind: str
    picture: np.ndarray | None = field(repr=False, compare=False)

    def to_dict(self) -> Any:
        """As JSON has it, and as JavaScript gets it."""
        raise NotImplementedError

    def plot(self) -> Any:
        """The picture with the answer drawn on it, as a picture of Pillow."""
        from .drawing import drawn  # noqa: PLC0415 (Pillow, which only pictures need)

        if self.picture is None:
            raise InputError(f"{self.kind}: there is no picture to draw on")
        return drawn(self, self.picture)

    @property
    def suffix(self) -> str:
        """Of a file that `save` writes, where nobody says."""
        return next(iter(self._forms()))

    def save(self, path: str | Path) -> None:
        """Write a file of the form that the end of its name says: .png, .jpg or .webp, what `plot` draws; .json, what `to_dict` gives;
        a sound .wav, notes .mid, lines of text .txt, a vector, a mask and a depth .npy."""
        write_as(path, self._forms())

    def _forms(self) -> Forms:
        """The forms of its files, the usual one first."""
        return {**({} if self.picture is None else self._drawn_forms()), **self._told_forms()}

    def _drawn_forms(self) -> Forms:
        def as_picture(form: str) -> Callable[[], bytes]:
            def drawn() -> bytes:
                file = io.BytesIO()
                self.plot().save(file, form)
                return file.getvalue()

            return drawn

        return {suffix: as_picture(form) for suffix, form in _PICTURES.items()}

    def _told_forms(self) -> Forms:
        return {".json": lambda: json.dumps(self.to_dict(), ensure_ascii=False).encode()}


@dataclass(frozen=True, repr=False)
class ItemsAnswer(Answer, Sequence[Item]):
    """An answer that is a sequence of `items`. Each of them has a `to_dict`, and is a line for people."""

    items: Sequence[Item] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def to_dict(self) -> list[dict[str, Any]]:
        return [item.to_dict() for item in self.items]

    def _listed(self, head: str, most: int | None = None) -> str:
        """A line, and below it the items, or as many as are shown."""
        left = 0 if most is None else max(0, len(self.items) - most)
        return "\n".join(
            [head, *(f"  {item}" for item in self.items[:most]), *([f"  … and {left} more"] if left else [])]
        )


@dataclass(frozen=True, repr=False)
class Findings(ItemsAnswer[Finding]):
    """What was found, the likeliest first: classes, objects, faces, parts of a picture, texts. joints: pairs of landmarks with a line between;
    windows: of a text, in how many parts it was read."""

    joints: Sequence[Sequence[int]] = field(default=(), compare=False)
    windows: int = 1

    def __repr__(self) -> str:
        of = f" in {self.windows} windows" if self.windows > 1 else ""
        return self._listed(f"<{self.kind}: {len(self.items)} found{of}>", MANY)


@dataclass(frozen=True)
class Entity:
    """A part of a text that was found: text[start:end]."""

    label: str
    score: float
    text: str
    start: int
    end: int

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "score": self.score, "text": self.text, "start": self.start, "end": self.end}

    def __str__(self) -> str:
        return f"{escaped(self.label)} {self.score:.1%} at {self.start} to {self.end}: {escaped(self.text)}"


@dataclass(frozen=True, repr=False)
class Entities(ItemsAnswer[Entity]):
    """The parts of a text that were found, in its order. windows: in how many parts the text was read."""

    windows: int = 1

    def __repr__(self) -> str:
        return self._listed(f"<{self.kind}: {len(self.items)} found>")


@dataclass(frozen=True)
class Line:
    """A line of text. box: the edges of all of it; corners (4, 2): x and y, from the top left one on, clockwise."""

    text: str
    score: float
    box: Box
    corners: np.ndarray = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        corners = [dict(zip("xy", map(float, row), strict=True)) for row in self.corners]
        return {"text": self.text, "score": self.score, "box": self.box.to_dict(), "corners": corners}

    def __str__(self) -> str:
        return f"{escaped(self.text)} ({self.score:.1%})"


@dataclass(frozen=True, repr=False)
class Page(ItemsAnswer[Line]):
    """The lines of text of a picture, in reading order."""

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.items)

    def _forms(self) -> Forms:
        return {**super()._forms(), ".txt": f"{self.text}\n".encode}

    def __repr__(self) -> str:
        return self._listed(f"<{self.kind}: {len(self.items)} lines>")


@dataclass(frozen=True, repr=False)
class PictureMap(Answer):
    """A number for each pixel: `mask` of a cutout, 0 to 255 in uint8; `depth`, in float32."""

    name: str = "mask"
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), compare=False)

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__.get("name"):
            return self.values
        raise AttributeError(f"{name!r}: an answer of {self.kind!r} has {self.__dict__.get('name')!r}")

    def to_dict(self) -> dict[str, Any]:
        return {self.name: _map(self.values)}

    def _forms(self) -> Forms:
        clear = (".jpg", ".jpeg") if self.name == "mask" else ()  # which have no transparency
        return {
            **{suffix: form for suffix, form in super()._forms().items() if suffix not in clear},
            ".npy": lambda: _npy(self.values),
        }

    def __repr__(self) -> str:
        height, width = self.values.shape
        spread = f"{self.values.min():.4g} to {self.values.max():.4g}" if self.values.size else "empty"
        return f"<{self.kind}: {self.name} of {width} × {height} pixels, {spread}>"


@dataclass(frozen=True, repr=False)
class TaskVector(Answer):
    """A vector of length 1: the product of two says how alike their sources are. windows: of a text, in how many parts it was read."""

    vector: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    windows: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {"vector": self.vector.tolist()}

    def _forms(self) -> Forms:
        return {".npy": lambda: _npy(self.vector), **self._told_forms()}

    def similarity(self, other: TaskVector) -> float:
        """The cosine of two vectors, from −1 to 1."""
        return float(self.vector @ other.vector)

    def __repr__(self) -> str:
        of = f" of {self.windows} windows" if self.windows > 1 else ""
        return f"<{self.kind}: a vector of {self.vector.size} numbers{of}>"


Arrays = Mapping[str, np.ndarray]
"""The outputs of a task's Graph."""
