"""Faces in a picture: the heads of detectors with anchors, which give points beside boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...tensors.functions.creation import concatenate, tensor
from ...tensors.tensor import Tensor
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from .base import Asked, Head, Shapes, TaskKind, Tensors, shorn
from .detectors.anchored import is_ssd, ssd
from .detectors.boxes import SETTINGS, chosen, corners, findings, suppressed
from .detectors.grids import cells

OVERLAP: Final = 0.3
_LAYERS: Final[Mapping[tuple[int, int], Sequence[tuple[tuple[int, int], ...]]]] = {
    (128, 128): (((8, 2), (16, 6)),),
    (192, 192): (((8, 2), (16, 6)), ((4, 1),)),
    (224, 224): (((8, 2), (16, 2), (32, 6)),),
    (256, 256): (((16, 2), (32, 6)),),
}
"""The size of such a detector, of faces, near or far, of palms and people ↦ pairs of a stride and how many anchors each of its cells has; the
count of places tells those of one size apart."""
STRIDES: Final = (8, 16, 32)
_RETINA: Final = {"boxes": 4, "scores": 2, "landmarks": 10}
"""The parts of RetinaFace's outputs ↦ how many numbers a place has."""
_LIMIT: Final = 100.0
"""Scores before the sigmoid are kept within this, as in training."""


def anchors(size: tuple[int, int], layers: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The centres (anchors, 2) of x and y, from 0 to 1, row by row, those of one cell together."""
    found: list[np.ndarray] = []
    for stride, each in layers:
        height, width = (-(-side // stride) for side in size)
        y, x = np.divmod(np.arange(height * width), width)
        centers = np.stack([(x + 0.5) / width, (y + 0.5) / height], axis=1)
        found.append(np.repeat(centers, each, axis=0))
    return np.concatenate(found).astype(np.float32)


def recognise(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, places, 4 + 2 · points) and (1, places, 1); some files have each in parts, one for each stride."""
    regressors = [n for n, s in shapes.items() if len(s) == 3 and s[2] > 4 and s[2] % 2 == 0]
    scores = [n for n, s in shapes.items() if len(s) == 3 and s[2] == 1]
    places = sum(shapes[n][1] for n in regressors)
    layers = next((x for x in _LAYERS.get(asked.size, ()) if len(anchors(asked.size, x)) == places), None)
    if layers is None or places != sum(shapes[n][1] for n in scores):
        return None
    order = sorted(regressors, key=lambda n: -shapes[n][1]), sorted(scores, key=lambda n: -shapes[n][1])
    return {"boxes": order[0], "scores": order[1], "layers": [list(layer) for layer in layers]}


def decoded(outputs: Tensors, size: tuple[int, int], options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The boxes, scores and landmarks of all anchors, in pixels of the input."""
    rows = concatenate([outputs[n][0].to(dtype="float32") for n in options["boxes"]], axis=0)
    scores = concatenate([outputs[n][0].to(dtype="float32") for n in options["scores"]], axis=0)
    height, width = size
    sides = tensor(np.array([width, height], np.float32))
    middle = tensor(anchors(size, tuple((a, b) for a, b in options["layers"]))) * sides
    points = rows[:, 4:].reshape(rows.shape[0], -1, 2) + middle.unsqueeze(1)
    return {
        "boxes": corners(rows[:, :2] + middle, rows[:, 2:4]),
        "scores": scores.maximum(-_LIMIT).minimum(_LIMIT).sigmoid(),
        "landmarks": points,
    }


def _by_stride(shapes: Shapes, widths: Mapping[str, int], size: tuple[int, int], each: int) -> dict[str, Any] | None:
    """Of outputs (1, places, width) or (places, width) of each stride, with so many places in a cell: the names of those of each part, whose
    width it is; two parts of one width are told apart by their names, which begin with the part's."""
    left = {name: shorn(s) if len(s) == 3 else s for name, s in shapes.items()}
    found: dict[str, Any] = {part: [] for part in widths}
    for stride in STRIDES:
        count = each * len(cells(size, (stride,)))
        for part, width in widths.items():
            alike = [name for name, s in left.items() if s == (count, width)]
            named = [name for name in alike if name.lower().startswith(part)]
            if len(alike) != list(widths.values()).count(width) or (len(alike) > 1 and len(named) != 1):
                return None
            found[part].append((named or alike)[0])
    return found if len(left) == len(STRIDES) * len(widths) else None


def _is_yunet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    return _by_stride(shapes, {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}, asked.size, 1)


def _is_scrfd(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    points = {"kps": 10} if len(shapes) == 3 * len(STRIDES) else {}
    return _by_stride(shapes, {"score": 1, "bbox": 4, **points}, asked.size, 2)


def _is_retina(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, places, 4), (1, places, 2) and (1, places, 10), with two places in a cell."""
    count = 2 * len(cells(asked.size, STRIDES))
    found = {
        part: next((n for n, s in shapes.items() if s == (1, count, width)), None) for part, width in _RETINA.items()
    }
    return found if len(shapes) == len(_RETINA) and all(found.values()) else None


def _is_ssd(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    return is_ssd(shapes, Asked(asked.size, 1))


def _joined(outputs: Tensors, options: Mapping[str, Any], part: str) -> Tensor:
    """The rows of all strides, (places, width)."""
    rows = [outputs[name].to(dtype="float32") for name in options[part]]
    return concatenate([x.reshape(-1, x.shape[-1]) for x in rows], axis=0)


def _places(size: tuple[int, int], each: int) -> tuple[Tensor, Tensor]:
    """The corners (places, 2) of the cells of all strides, in pixels, and the strides (places, 1)."""
    rows = np.repeat(cells(size, STRIDES), each, axis=0)
    return tensor(rows[:, :2] * rows[:, 2:]), tensor(rows[:, 2:])


def _yunet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    rows, points = _joined(outputs, options, "bbox"), _joined(outputs, options, "kps")
    place, stride = _places(frame.size, 1)
    sure = [_joined(outputs, options, part).maximum(0.0).minimum(1.0) for part in ("cls", "obj")]
    found = {
        "boxes": corners(place + rows[:, :2] * stride, rows[:, 2:].exp() * stride),
        "scores": (sure[0] * sure[1]).sqrt(),
        "landmarks": (points * stride + place.tile((1, 5))).reshape(-1, 5, 2),
    }
    return chosen(found, frame, OVERLAP)


def _scrfd(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    place, stride = _places(frame.size, 2)
    far = _joined(outputs, options, "bbox") * stride
    found = {
        "boxes": concatenate([place - far[:, :2], place + far[:, 2:]], axis=1),
        "scores": _joined(outputs, options, "score"),
    }
    if "kps" in options:
        found["landmarks"] = (_joined(outputs, options, "kps") * stride + place.tile((1, 5))).reshape(-1, 5, 2)
    return chosen(found, frame, 0.4)


def _retina(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    rows, points, scores = (outputs[options[part]][0].to(dtype="float32") for part in ("boxes", "landmarks", "scores"))
    place, stride = _places(frame.size, 2)
    middle = place + stride * 0.5
    sides = stride * tensor(np.tile([[2.0], [4.0]], (stride.shape[0] // 2, 1)).astype(np.float32))
    found = {
        "boxes": corners(middle + rows[:, :2] * sides * 0.1, sides * (rows[:, 2:] * 0.2).exp()),
        "scores": scores[:, 1:],
        "landmarks": (middle.tile((1, 5)) + points * sides * 0.1).reshape(-1, 5, 2),
    }
    return chosen(found, frame, 0.4)


def _blaze(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return chosen(decoded(outputs, frame.size, options), frame, OVERLAP)


FACES = TaskKind(
    "faces", "faces in a picture, with a box and points for each", PICTURE,
    (Head("blazeface", "BlazeFace: anchors of two strides", recognise, _blaze, {"mean": (127.5,), "std": (127.5,)}),
     Head("yunet", "YuNet: cls, obj, bbox and kps of three strides", _is_yunet, _yunet, {"order": "bgr", "mean": (0.0,), "std": (1.0,)}),
     Head("scrfd", "SCRFD: score, bbox, and perhaps kps, of three strides", _is_scrfd, _scrfd, {"fit": "corner", "mean": (127.5,), "std": (128.0,)}),
     Head("retina", "RetinaFace: (1, places, 4), (1, places, 2) and (1, places, 10)", _is_retina, _retina,
          {"order": "bgr", "mean": (104.0, 117.0, 123.0), "std": (1.0,)}),
     Head("ssd", "scores of nothing and of a face, and boxes as parts of the input: UltraFace", _is_ssd, suppressed(ssd, OVERLAP),
          {"fit": "stretch", "mean": (127.0,), "std": (128.0,)})),
    findings, 640, {"fit": "contain", "fill": 0.0}, "face", {**SETTINGS, "threshold": 0.5},
)  # fmt: skip
