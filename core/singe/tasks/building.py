"""Joins a model with its preparation and its head to one Graph, which takes pixels and gives what the kind of task answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..dtypes import int64
from ..errors import InputError
from ..graph import Graph, Node
from ..late_dataclass import dataclass
from ..model.model import Model
from ..shapes import Size, show
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor, home_of, value_on
from .chains import CHAINS
from .kinds import KINDS, Head, TaskKind
from .kinds.base import Asked, Shapes
from .picture_spec import LAYOUTS, layout_of
from .pictures import prepared
from .spec import PictureInput, TaskSpec

PICTURE: Final = "picture"
"""The name of a Graph's input of pixels (height, width, 4)."""
MAX_SIDE: Final = 1 << 13


@dataclass(frozen=True)
class Wishes:
    """What a caller says of a model beyond its file. picture: fields of PictureInput; None and "": as the model and its head suggest."""

    labels: Sequence[str] = ()
    size: tuple[int, int] | None = None
    head: str = ""
    licence: str = ""
    picture: Mapping[str, Any] | None = None


def build(model: Model, kind_name: str, wishes: Wishes) -> tuple[Graph, TaskSpec]:
    """The Graph of a task, and its facts."""
    kind = kind_named(kind_name)
    place, spec = _input_of(model, kind, wishes)
    graph = _for_one_picture(model, place, spec)
    head, options = _head_of(graph, kind, wishes, spec.size)
    spec = replace(spec, **{**kind.picture, **head.picture, **(wishes.picture or {})})
    others = {k: _extra(x, spec.size) for k, x in enumerate(graph.inputs) if k != place}
    own = graph.inputs[place].dtype

    def whole(picture: Tensor) -> dict[str, Tensor]:
        given, frame = prepared(picture, spec, own)
        inputs = [given if k == place else others[k] for k in range(len(graph.inputs))]
        return head.decode(_applied(graph, inputs), frame, options)

    joined = Model.of(whole, {PICTURE: ("height", "width", 4)}, "numpy", dtypes={PICTURE: "uint8"})
    return joined.graph(), TaskSpec(kind.name, spec, head.name, tuple(wishes.labels), wishes.licence, options)


def kind_named(name: str) -> TaskKind:
    if name not in KINDS:
        raise InputError(f"task: got {name!r:.60}, expected one of {', '.join((*KINDS, *CHAINS))}")
    return KINDS[name]


def _applied(graph: Graph, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """The outputs of a Graph, of Tensors."""
    home = home_of(inputs)
    outputs = home.run(graph, [value_on(home, x) for x in inputs])
    return {name: Tensor(home, x) for name, x in zip(graph.output_names, outputs, strict=True)}


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
    layout = str((wishes.picture or {}).get("layout") or layout_of(shape))
    height, width, channels = (shape[1 + LAYOUTS[layout].index(axis)] for axis in range(3))
    asked = wishes.size or (kind.size, kind.size)
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
    count = channels if isinstance(channels, int) else 3
    return place, PictureInput(size, count, std=(std,), layout=layout, input=found.name)


def _for_one_picture(model: Model, place: int, spec: PictureInput) -> Graph:
    """The model's Graph for one picture of the task's size."""
    axes = (*spec.size, spec.channels)
    wanted = (1, *(axes[k] for k in LAYOUTS[spec.layout]))
    sizes = {str(d): n for d, n in zip(model.inputs[place].shape or (), wanted, strict=True) if isinstance(d, Size)}
    rest = {str(d): 1 for k, x in enumerate(model.inputs) if k != place for d in x.shape or () if isinstance(d, Size)}
    return model.graph({**rest, **sizes})


def _extra(x: Node, size: tuple[int, int]) -> Tensor:
    """What detectors take beside the picture: the size (1, 2) of what their boxes are places in, or a mask of ones."""
    if x.dtype is int64 and x.shape == (1, 2):
        return tensor(np.array([size[::-1]], np.int64))
    if len(x.shape) == 3 and all(isinstance(d, int) for d in x.shape):
        return tensor(np.ones(x.shape, x.dtype.numpy))  # pyright: ignore[reportArgumentType, reportCallIssue]
    raise InputError(
        f"task: the model takes {x.name!r}: {x.dtype}{show(x.shape)} beside a picture; expected one input, of pictures"
    )


def _head_of(graph: Graph, kind: TaskKind, wishes: Wishes, size: tuple[int, int]) -> tuple[Head, Mapping[str, Any]]:
    """The head that decodes the outputs, and its options."""
    shapes: Shapes = {
        name: tuple(d if isinstance(d, int) else 0 for d in x.shape)
        for name, x in zip(graph.output_names, graph.outputs, strict=True)
    }
    heads = [head for head in kind.heads if wishes.head in ("", head.name)]
    if not heads:
        raise InputError(
            f"{kind.name}: head {wishes.head!r:.60}, expected one of {', '.join(head.name for head in kind.heads)}"
        )
    asked = Asked(size, len(wishes.labels) or None)
    for head in heads:
        options = head.recognise(shapes, asked)
        if options is not None:
            return head, options
    told = ", ".join(f"{name} {show(shape)}" for name, shape in shapes.items())
    known = "; ".join(f"{head.name}: {head.about}" for head in heads)
    labels = f", with {len(wishes.labels)} labels" if wishes.labels else ""
    raise InputError(f"{kind.name}: the outputs {told}{labels} are none of those that are known ({known})")
