"""What tasks that find boxes share: the best class of each box, suppression, and places in the picture.

A head gives `boxes`, corners (boxes, 4) in pixels of the input, and `scores`, (boxes, classes) or (boxes,), and may give `classes`, (boxes,)
and `landmarks`, (boxes, points, 2). `chosen` leaves the likeliest of those that overlap, and brings them to the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.functions.creation import concatenate, tensor
from ...tensors.tensor import Tensor
from ..answers import Arrays, Box, Finding, Findings
from ..picture.preparing import Frame
from ..spec import TaskSpec

LEAST_SCORE: Final = 0.05
"""The score below which a Graph leaves boxes out; a call may ask for more."""
MOST_BOXES: Final = 300
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
        result["landmarks"] = frame.points(outputs["landmarks"].take(kept, axis=0))
    return result


def findings(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> Findings:
    """The boxes of a score of at least `threshold`, at most `top`."""
    threshold, top = settings["threshold"], settings["top"]
    if not LEAST_SCORE <= threshold <= 1:
        raise InputError(
            f"{spec.kind}: threshold is {threshold}, expected a score from {LEAST_SCORE}, below which boxes are left out, to 1"
        )
    landmarks = outputs.get("landmarks")
    items = [
        Finding(
            spec.label(int(index)), float(score), int(index), Box(*map(float, box)),
            landmarks=None if landmarks is None else landmarks[k],
        )
        for k, (box, score, index) in enumerate(zip(outputs["boxes"], outputs["scores"], outputs["classes"], strict=True))
        if score >= threshold
    ]  # fmt: skip
    return Findings(spec.kind, picture, items[:top])
