"""Joins a model with its preparation and its head to one Graph, which takes what its medium gives, and gives what the kind answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..errors import InputError
from ..graph import Graph
from ..model.model import Model
from ..shapes import show
from ..tensors.tensor import Tensor
from .applying import applied
from .chains import CHAINS
from .kinds import KINDS, Head, TaskKind
from .kinds.base import Asked, Shapes
from .kinds.classify import VECTOR
from .labels import SETS
from .medium import Files, Fitted, Wishes
from .saying import SAYING
from .spec import TaskSpec


def build(model: Model, kind_name: str, wishes: Wishes) -> tuple[Graph, TaskSpec, Files]:
    """The Graph of a task, its facts, and the files that travel with it."""
    kind = kind_named(kind_name)
    medium = kind.medium
    wishes = medium.with_files(kind, wishes)
    if not wishes.labels and len(names := SETS.get(kind.labels, ())) == 1:
        wishes = replace(wishes, labels=names)
    fitted = medium.fit(model, kind, wishes)
    _refuse_fixed(fitted, kind, wishes)
    head, options = _head_of(fitted, kind, wishes)
    options = {**options, **fitted.options, **wishes.options}
    facts: Any = fitted.preparation
    spec = replace(facts, **{**kind.preparation, **head.preparation, **wishes.preparation})
    given_inputs = medium.inputs(spec)

    def whole(*given: Tensor) -> dict[str, Tensor]:
        inputs, told = fitted.feed(dict(zip(given_inputs, given, strict=True)), spec)
        return head.decode(applied(fitted.graph, inputs), told, options)

    shapes = {name: shape for name, (_, shape) in given_inputs.items()}
    dtypes = {name: dtype for name, (dtype, _) in given_inputs.items()}
    joined = Model.of(whole, shapes, "numpy", dtypes=dtypes)
    info = TaskSpec(kind.name, spec, head.name, tuple(wishes.labels), wishes.licence, options)
    return joined.graph(), info, fitted.files


def _refuse_fixed(fitted: Fitted, kind: TaskKind, wishes: Wishes) -> None:
    """Refuse wishes, a caller's or of a file beside the model, that the model cannot honour."""
    if wishes.size is not None and fitted.size == (0, 0):
        raise InputError(f"{kind.name}: size {show(wishes.size)}: only pictures have one; leave it out")
    for name in fitted.fixed & wishes.preparation.keys():
        given, own = wishes.preparation[name], getattr(fitted.preparation, name)
        if given != own:
            raise InputError(
                f"{kind.name}: {name} {given!r:.40}: this model takes {own!r} and nothing else; leave it out"
            )


ELSEWHERE: Final[Mapping[str, str]] = {
    "chat": "a language model: sg.language.load(MODEL), or the command `singe chat MODEL`",
    "file-type": "a model as it is: sg.load(MODEL), or the command `singe run MODEL`",
}
"""Kinds of the zoo's models that are no tasks here ↦ what they are used as."""


def kind_named(name: str) -> TaskKind:
    if name in ELSEWHERE:
        raise InputError(f"task: {name} is no task of pictures, texts or sounds, but {ELSEWHERE[name]}")
    if name not in KINDS:
        raise InputError(f"task: got {name!r:.60}, expected one of {', '.join((*KINDS, *CHAINS, *SAYING))}")
    return KINDS[name]


def _head_of(fitted: Fitted, kind: TaskKind, wishes: Wishes) -> tuple[Head, Mapping[str, Any]]:
    """The head that decodes the outputs, and its options."""
    graph = fitted.graph
    shapes: Shapes = {
        name: tuple(d if isinstance(d, int) else 0 for d in x.shape)
        for name, x in zip(graph.output_names, graph.outputs, strict=True)
    }
    heads = [head for head in kind.heads if wishes.head in ("", head.name)]
    if not heads:
        raise InputError(
            f"{kind.name}: head {wishes.head!r:.60}, expected one of {', '.join(head.name for head in kind.heads)}"
        )
    asked = Asked(fitted.size, len(wishes.labels) or None, wishes.labels)
    for head in heads:
        options = head.recognise(shapes, asked)
        if options is not None:
            return head, options
    told = ", ".join(f"{name} {show(shape)}" for name, shape in shapes.items())
    if wishes.labels and any(head.recognise(shapes, Asked(fitted.size, None)) is not None for head in heads):
        raise InputError(
            f"{kind.name}: {len(wishes.labels)} labels, given or named by the file, do not fit the outputs {told}: give as many as there are "
            "classes"
        )
    others = [
        other.name
        for other in KINDS.values()
        if other.medium is kind.medium
        and any(h is not VECTOR and h.recognise(shapes, Asked(fitted.size, None)) is not None for h in other.heads)
    ]  # a vector may have any shape
    if others and not wishes.head:
        raise InputError(
            f"{kind.name}: the outputs {told} are none of those that it decodes; {' and '.join(others)} would take them"
        )
    known = "; ".join(f"{head.name}: {head.about}" for head in heads)
    labels = f", with {len(wishes.labels)} labels" if wishes.labels else ""
    raise InputError(f"{kind.name}: the outputs {told}{labels} are none of those that are known ({known})")
