"""Pictures: a task's Graph takes pixels of any size, and prepares them for the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...dtypes import int8, int64
from ...errors import InputError
from ...graph import Graph, Node
from ...model.model import Model
from ...shapes import Size, show
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from ..answers import Answer
from ..medium import Files, Fitted, Following, Medium, Run, Wishes
from .pixels import pixels_of
from .preparing import Frame, prepared
from .spec import LAYOUTS, PictureInput, layout_of

if TYPE_CHECKING:
    from ..kinds import TaskKind
    from ..spec import TaskSpec

INPUT: Final = "picture"
"""The name of a Graph's input of pixels (height, width, 4)."""
MAX_SIDE: Final = 1 << 13


def _fit(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
    place, spec = _input_of(model, kind, wishes)
    graph = _for_one_picture(model, place, spec)
    others = {k: _extra(x, spec.size) for k, x in enumerate(graph.inputs) if k != place}
    own = graph.inputs[place].dtype

    def feed(inputs: Mapping[str, Tensor], spec: PictureInput) -> tuple[Sequence[Tensor], Frame]:
        ready, frame = prepared(inputs[INPUT], spec, own)
        return [ready if k == place else others[k] for k in range(len(graph.inputs))], frame

    return Fitted(graph, spec, feed, spec.size, fixed=frozenset() if own.is_float else frozenset(("mean", "std")))


def _input_of(model: Model, kind: TaskKind, wishes: Wishes) -> tuple[int, PictureInput]:
    """The number of the input that takes the picture, and how it is prepared as far as the input says."""
    place = next((k for k, x in enumerate(model.inputs) if len(x.shape or ()) == 4), None)
    if place is None:
        told = ", ".join(map(str, model.inputs)) or "none"
        raise InputError(
            f"{kind.name}: the model takes no picture: an input of four axes is expected; its inputs are {told}"
        )
    found = model.inputs[place]
    shape = tuple(found.shape or ())
    layout = str(wishes.preparation.get("layout") or layout_of(shape))
    height, width, channels = (shape[1 + LAYOUTS[layout].index(axis)] for axis in range(3))
    asked = wishes.size or wishes.usual_size or (kind.size, kind.size)
    size = (height if isinstance(height, int) else asked[0], width if isinstance(width, int) else asked[1])
    if wishes.size is not None and size != wishes.size:
        raise InputError(f"{kind.name}: size {show(wishes.size)}: the model takes pictures of {show(size)}")
    if not all(0 < side <= MAX_SIDE for side in size):
        raise InputError(f"{kind.name}: size {show(size)}: expected sides from 1 to {MAX_SIDE}")
    if isinstance(shape[0], int) and shape[0] != 1:
        raise InputError(
            f"{kind.name}: the model takes {shape[0]} pictures at once, expected 1; export it with a batch of 1"
        )
    std = 255.0 if found.dtype.is_float else 1.0
    mean = 128.0 if found.dtype is int8 else 0.0
    count = channels if isinstance(channels, int) else 3
    return place, PictureInput(size, count, mean=(mean,), std=(std,), layout=layout, input=found.name)


def _for_one_picture(model: Model, place: int, spec: PictureInput) -> Graph:
    """The model's Graph for one picture of the task's size."""
    axes = (*spec.size, spec.channels)
    wanted = (1, *(axes[k] for k in LAYOUTS[spec.layout]))
    sizes = {str(d): n for d, n in zip(model.inputs[place].shape or (), wanted, strict=True) if isinstance(d, Size)}
    rest = {str(d): 1 for k, x in enumerate(model.inputs) if k != place for d in x.shape or () if isinstance(d, Size)}
    return model.graph({**rest, **sizes})


def _extra(x: Node, size: tuple[int, int]) -> Tensor:
    """What detectors take beside the picture: the size (1, 2) of what their boxes are places in, how much it was scaled, or a mask of ones."""
    if x.dtype is int64 and x.shape == (1, 2):
        return tensor(np.array([size[::-1]], np.int64))
    if (
        x.dtype.is_float and x.shape == (1, 2) and "shape" in x.name
    ):  # of Paddle, and the first YOLO: height before width
        return tensor(np.array([size], x.dtype.numpy))
    if x.dtype.is_float and x.shape == (1, 2) and "scale" in x.name:
        return tensor(np.ones((1, 2), x.dtype.numpy))
    if len(x.shape) == 3 and all(isinstance(d, int) for d in x.shape):
        return tensor(np.ones(x.shape, x.dtype.numpy))  # pyright: ignore[reportArgumentType, reportCallIssue]
    raise InputError(
        f"task: the model takes {x.name!r}: {x.dtype}{show(x.shape)} beside a picture; expected one input, of pictures"
    )


def _open(kind: TaskKind, info: TaskSpec, files: Files) -> Callable[[Run, Mapping[str, Any]], Following]:
    def begin(run: Run, settings: Mapping[str, Any]) -> Following:
        def one(source: Any) -> Answer:
            pixels = pixels_of(source)
            return kind.answer(run({INPUT: pixels}), info, pixels, settings)

        return lambda sources: list(map(one, sources))

    return begin


PICTURE: Final = Medium(
    "picture", PictureInput, frozenset(("mean", "std", "crop", "fit", "order", "fill", "filter", "layout")),
    lambda spec: {INPUT: ("uint8", ("height", "width", 4))}, _fit, _open,
    real_outputs=True,
)  # fmt: skip
