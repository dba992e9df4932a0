"""Tasks that say something of every pixel: the parts of a picture, what stands before the background, how far things are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from ...tensors.functions.creation import arange, full, where
from ...tensors.tensor import Tensor
from ..answers import Arrays, Finding, Findings, PictureMap, masked
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from ..spec import TaskSpec
from .base import Asked, Head, RefusedOutputs, Shapes, TaskKind, Tensors, only

_CLASSES: Final = 256
"""As many classes as a map of integers is supposed to tell apart, at least, and as one of scores is only where labels say so."""
_MAPS: Final = ("pha", "alpha", "matte", "mask", "depth", "disparity")
"""Words in the name of an output that is the map, where there are several."""
_FEATURES: Final = ("embed", "feat", "hidden")
"""Words in the name of an output that is no answer yet, but what another model takes."""


def _channels(shape: tuple[int, ...], asked: Asked) -> tuple[int, bool] | None:
    """Of maps (1, channels, height, width) or (1, height, width, channels): the channels, and whether they are last."""
    if len(shape) != 4 or shape[0] != 1:
        return None
    last = shape[3] < min(shape[1:3]) and (shape[1] >= shape[3])
    count, sides = (shape[3], shape[1:3]) if last else (shape[1], shape[2:])
    return (count, last) if _is_map(sides, asked) else None


def _is_map(sides: tuple[int, ...], asked: Asked) -> bool:
    """Whether height and width have the proportions of the input, to a pixel: otherwise they count something else."""
    (height, width), (own_height, own_width) = sides, asked.size
    return min(sides) > 1 and abs(height * own_width - width * own_height) <= max(own_height, own_width)


def _are_scores(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    found = _channels(only(shapes), asked)
    if found is None or found[0] < 2 or asked.labels not in (None, found[0]):
        return None
    if found[0] >= _CLASSES and asked.labels is None and not asked.chosen:
        return None  # more likely what another model takes
    return {"last": found[1], "chances": next(iter(shapes)) in asked.softmaxes}


def _are_classes(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """A map of integers."""
    name = next(iter(shapes))
    found = _single(shapes[name], asked)
    return {**found, "classes": max(asked.labels or 0, _CLASSES)} if found and name in asked.integers else None


def _single(shape: tuple[int, ...], asked: Asked) -> Mapping[str, Any] | None:
    """Of one map (1, height, width), (1, 1, height, width) or (1, height, width, 1)."""
    if len(shape) == 3 and shape[0] == 1 and _is_map(shape[1:], asked):
        return {"last": False}
    found = _channels(shape, asked)
    return {"last": found[1]} if found and found[0] == 1 else None


def _is_single(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """The output that is called a mask or a depth, or the first one."""
    output = next((name for word in _MAPS for name in shapes if word in name.lower()), next(iter(shapes)))
    found = _single(shapes[output], asked)
    return {**found, "output": output, "chances": output in asked.sigmoids} if found else None


def _are_features(shapes: Shapes, asked: Asked) -> bool:
    """Whether the output that would be decoded, the first, is called so."""
    return any(word in next(iter(shapes)).lower() for word in _FEATURES)


def _is_pair(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    found = _channels(only(shapes), asked)
    return {"last": found[1]} if found and found[0] == 2 else None


def _laid_out(x: Tensor, options: Mapping[str, Any]) -> Tensor:
    """A map as (height, width, channels) of float32."""
    x = x.to(dtype="float32")
    if len(x.shape) == 3:
        return x.permute(1, 2, 0)
    return x[0] if options["last"] else x[0].permute(1, 2, 0)


def _parts(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The likeliest class of each pixel of the picture, and the mean probability of each class where it is the likeliest."""
    logits = _laid_out(only(outputs), options)
    height, width, count = logits.shape
    are = (logits.min() >= 0.0) & ((logits.sum(2) - 1.0).abs().max() < 1e-3)
    chances = where(are, logits, logits.softmax(2)).reshape(-1, count)
    best = chances.argmax(1, keepdims=True)
    mine = (best == arange(count)).to(dtype="float32")
    scores = (chances * mine).sum(0) / mine.sum(0).maximum(1.0)
    classes = frame.nearest(best.reshape(height, width))
    return {"classes": classes.to(dtype="int32"), "scores": scores}


def _known(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The model says no scores."""
    classes = frame.nearest(_laid_out(only(outputs), options)[..., 0]).to(dtype="int32")
    return {"classes": classes.maximum(0).minimum(options["classes"] - 1), "scores": full((options["classes"],), 1.0)}


def _segments(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> Findings:
    classes, scores = outputs["classes"], outputs["scores"]
    counts = np.bincount(classes.reshape(-1), minlength=len(scores))
    order = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
    parts = [
        Finding(spec.label(k), float(scores[k]), k, mask=masked(classes.shape, partial(_where, classes, k)))
        for k in order
    ]
    return Findings(spec.kind, picture, parts)


def _where(classes: np.ndarray, index: int) -> tuple[int, int, np.ndarray]:
    """The mask of a class, as Mask.part says."""
    return 0, 0, np.where(classes == index, np.uint8(255), np.uint8(0))


def _chance(values: Tensor) -> Tensor:
    """What is not between 0 and 1 goes through a sigmoid."""
    are = (values.min() >= 0.0) & (values.max() <= 1.0)
    return where(are, values, values.sigmoid())


def _alpha(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    values = _laid_out(outputs[options["output"]], options)
    alpha = frame.map(values if options["chances"] else _chance(values))[..., 0]
    return {"mask": (alpha * 255.0).round().to(dtype="uint8")}


def _second(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    pair = _laid_out(only(outputs), options)
    alpha = frame.map(pair.softmax(2)[..., 1:])[..., 0]
    return {"mask": (alpha * 255.0).round().to(dtype="uint8")}


def _far(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return {"depth": frame.map(_laid_out(outputs[options["output"]], options))[..., 0]}


def _cutout(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> PictureMap:
    return PictureMap(spec.kind, picture, "mask", outputs["mask"])


def _depth(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> PictureMap:
    return PictureMap(spec.kind, picture, "depth", outputs["depth"])


_WHOLE = {"fit": "stretch"}
SEGMENT = TaskKind(
    "segment", "the parts of a picture, with a mask for each", PICTURE,
    (Head("classes", "the number of a class for each place, integers (1, height, width)", _are_classes, _known, takes_bytes=True),
     Head("maps", "scores of classes for each place, (1, classes, height, width); with 256 and more it wants labels", _are_scores, _parts)),
    _segments, 512, _WHOLE, varied=True,
    refused=(
        RefusedOutputs(
            "what another model takes, as an encoder's of Segment Anything: a model is needed that gives scores of classes", _are_features
        ),
    ),
)  # fmt: skip
CUTOUT = TaskKind(
    "cutout", "what stands before the background, as transparency", PICTURE,
    (Head("alpha", "one map, (1, 1, height, width)", _is_single, _alpha),
     Head("two classes", "scores of background and foreground", _is_pair, _second)), _cutout, 512, _WHOLE, varied=True,
)  # fmt: skip
DEPTH = TaskKind(
    "depth", "how far each pixel is, or how near: as the model says", PICTURE,
    (Head("distance", "one map, (1, height, width)", _is_single, _far),), _depth, 518, _WHOLE, varied=True,
)  # fmt: skip
