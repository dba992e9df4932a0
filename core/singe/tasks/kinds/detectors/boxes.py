"""What tasks that find boxes share: the best class of each box, suppression, and places in the picture.

A head gives `boxes`, corners (boxes, 4) in pixels of the input, and `scores`, (boxes, classes) or (boxes,), and may give `classes`, (boxes,),
`landmarks`, (boxes, points, 2 or more), and masks: for each box a map of how sure it is of each place, over 0 where it is (boxes, height,
width), or `patterns` (patterns, height, width), of which `shares` (boxes, patterns) make that map. `chosen` leaves the likeliest of those that
overlap, and brings them to the picture. Masks stay as coarse as the model made them until an answer needs them, since most are of no use:
`mask_scale` says where a pixel of the picture is in them, and `mask_in` makes one as large as its box in the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from ....errors import InputError
from ....tensors.functions.creation import concatenate, tensor
from ....tensors.tensor import Tensor
from ...answers import Arrays, Box, Finding, Findings, masked
from ...picture.preparing import Frame
from ...spec import TaskSpec

LEAST_SCORE: Final = 0.05
"""The score below which a Graph leaves boxes out; a call may ask for more."""
MOST_BOXES: Final = 300
OVERLAP: Final = 0.45
KEEPS_ALL: Final = 1.0
SETTINGS: Final[Mapping[str, Any]] = {"threshold": 0.3, "top": MOST_BOXES}


def corners(center: Tensor, sides: Tensor) -> Tensor:
    """Boxes of centres and sides, (…, 2) each, as corners (…, 4)."""
    return concatenate([center - sides / 2, center + sides / 2], axis=-1)


def chosen(outputs: Mapping[str, Tensor], frame: Frame, overlap: float) -> dict[str, Tensor]:
    """The boxes over LEAST_SCORE, the best first, without those that overlap a better one of their class by more than `overlap`
    (common area over area together; 1 keeps all)."""
    boxes, scores = outputs["boxes"], outputs["scores"]
    classes = outputs.get("classes")
    if classes is None:
        classes = scores.argmax(1).to(dtype="int32")
        scores = scores.amax(1)
    # Boxes of different classes are moved apart, so that one pass compares those of one class only.
    room = 4.0 * max(frame.size)
    apart = (boxes.clip(-room / 4, room / 2) + (classes.to(dtype="float32") * room).unsqueeze(1)).unsqueeze(0)
    kept = apart.non_max_suppression(
        scores.reshape(1, 1, -1), tensor(np.array([MOST_BOXES], np.int64)), tensor(np.array([overlap], np.float32)),
        tensor(np.array([LEAST_SCORE], np.float32)),
    )[:, 2]  # fmt: skip
    result = {
        "boxes": frame.boxes(boxes.take(kept, axis=0)),
        "scores": scores.take(kept, axis=0),
        "classes": classes.take(kept, axis=0),
    }
    if "landmarks" in outputs:
        points = outputs["landmarks"].take(kept, axis=0)
        places = frame.points(points[..., :2])
        result["landmarks"] = concatenate([places, points[..., 2:]], axis=2) if points.shape[2] > 2 else places
    if "patterns" in outputs:
        patterns = outputs["patterns"]
        count, height, width = patterns.shape
        maps = outputs["shares"].take(kept, axis=0) @ patterns.reshape(count, -1)
        result["masks"] = maps.reshape(-1, height, width)
    elif "masks" in outputs:
        result["masks"] = outputs["masks"].take(kept, axis=0)
    if "masks" in result:
        result["mask_scale"] = frame.scale_of(*result["masks"].shape[1:])
    return result


Decode = Callable[[Mapping[str, Tensor], Frame, Mapping[str, Any]], Mapping[str, Tensor]]
"""Makes boxes, scores and what else there is of a model's outputs, in float32."""


def suppressed(decode: Decode, overlap: float = OVERLAP) -> Any:
    """The decoding of a Head: what `decode` finds, of which `chosen` leaves the likeliest."""

    def whole(outputs: Mapping[str, Tensor], frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
        floats = {name: x.to(dtype="float32") for name, x in outputs.items()}
        return chosen(decode(floats, frame, options), frame, overlap)

    return whole


def mask_in(box: Box, values: np.ndarray, scale: np.ndarray, shape: tuple[int, int]) -> tuple[int, int, np.ndarray]:
    """The mask of a box in a picture of this height and width, as Mask.part says: 255 where `values` (height, width), between which are
    straight lines, are over 0. scale: as Frame.scale_of says."""
    edges = ((box.ymin, box.ymax), (box.xmin, box.xmax))
    sides = [_along(*edges[k], shape[k], values.shape[k], scale[k]) for k in (0, 1)]
    (top, y, y_next, y_part), (left, x, x_next, x_part) = sides
    rows = values.astype(np.float64)
    rows = rows[y] + (rows[y_next] - rows[y]) * y_part[:, None]
    found = rows[:, x] + (rows[:, x_next] - rows[:, x]) * x_part
    return top, left, np.where(found > 0, 255, 0).astype(np.uint8)


def _along(low: float, high: float, length: int, count: int, scale: np.ndarray) -> tuple[int, Any, Any, Any]:
    """Of the pixels from low to high: the first one, the elements before and after each in a row of `count`, and how far it is from the one
    before."""
    first, end = (min(max(int(np.floor(edge + 0.5)), 0), length) for edge in (low, high))
    places = np.clip(np.arange(first, end) * float(scale[0]) + float(scale[1]), 0, count - 1)
    before = np.floor(places).astype(np.int64)
    return first, before, np.minimum(before + 1, count - 1), places - before


def findings(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> Findings:
    """The boxes of a score of at least `threshold`, at most `top`. A Finding that is kept keeps no other's mask."""
    threshold, top = settings["threshold"], settings["top"]
    if not LEAST_SCORE <= threshold <= 1:
        raise InputError(
            f"{spec.kind}: threshold is {threshold}, expected a score from {LEAST_SCORE}, below which boxes are left out, to 1"
        )
    landmarks, masks = outputs.get("landmarks"), outputs.get("masks")
    shape = (picture.shape[0], picture.shape[1])
    items: list[Finding] = []
    for k in np.flatnonzero(outputs["scores"] >= threshold)[:top]:
        box, index = Box(*map(float, outputs["boxes"][k])), int(outputs["classes"][k])
        items.append(
            Finding(
                spec.label(index), float(outputs["scores"][k]), index, box, None if landmarks is None else landmarks[k],
                None if masks is None else masked(shape, partial(mask_in, box, masks[k].copy(), outputs["mask_scale"], shape)),
            )
        )  # fmt: skip
    return Findings(spec.kind, picture, items, spec.options.get("joints", ()))
