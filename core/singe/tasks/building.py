"""Joins a model with its preparation and its head to one Graph, which takes what its medium gives, and gives what the kind answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..errors import InputError
from ..graph import Graph, Node
from ..hints import spelt_like
from ..model.model import Model
from ..shapes import show
from ..tensors.tensor import Tensor
from .applying import applied
from .chains import CHAINS
from .kinds import KINDS, Head, TaskKind
from .kinds.base import Asked, Shapes
from .kinds.classify import VECTOR
from .labels import SETS, numberings
from .medium import OTHER, Files, Fitted, Wishes
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
    head, options, labels = _head_of(fitted, kind, wishes)
    options = {**options, **fitted.options, **wishes.options}
    facts: Any = fitted.preparation
    suggested = {name: x for name, x in {**kind.preparation, **head.preparation}.items() if name not in fitted.fixed}
    spec = replace(facts, **{**suggested, **wishes.preparation})
    given_inputs = medium.inputs(spec)

    def whole(*given: Tensor) -> dict[str, Tensor]:
        inputs, told = fitted.feed(dict(zip(given_inputs, given, strict=True)), spec)
        return head.decode(applied(fitted.graph, inputs), told, options)

    shapes = {name: shape for name, (_, shape) in given_inputs.items()}
    dtypes = {name: dtype for name, (dtype, _) in given_inputs.items()}
    joined = Model.of(whole, shapes, "numpy", dtypes=dtypes)
    info = TaskSpec(kind.name, spec, head.name, tuple(labels), wishes.licence, options)
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
        known = (*KINDS, *CHAINS, *SAYING)
        raise InputError(f"task: got {name!r:.60}, expected one of {', '.join(known)}{spelt_like(str(name), known)}")
    return KINDS[name]


_STORED: Final = frozenset(("int8", "uint8"))
_SAME: Final = frozenset(("reshape", "cast", "transpose"))
"""Ops that leave numbers what they are."""


def _comes_of(node: Node, op: str) -> bool:
    while node.op in _SAME:
        node = node.inputs[0]
    return node.op == op


def _is_rounded(node: Node) -> bool:
    """Whether it is integers times a number: what quantised ones stand for."""
    return node.op == "mul" and any(x.op == "cast" and not x.inputs[0].dtype.is_float for x in node.inputs)


def _refuse_stored(kind: TaskKind, head: Head, outputs: Sequence[tuple[str, Node]]) -> None:
    """Refuse numbers of a picture's model that are quantised: their scales are not in the Graph."""
    stored = [name for name, x in outputs if x.dtype.name in _STORED and len(x.shape) > 1]
    if stored and not head.takes_bytes and kind.medium.facts.medium == OTHER:
        raise InputError(
            f"{kind.name}: {', '.join(stored)}: integers of 8 bits, of which the model does not say what they stand for; convert it with outputs "
            "of floats"
        )


def _head_of(fitted: Fitted, kind: TaskKind, wishes: Wishes) -> tuple[Head, Mapping[str, Any], Sequence[str]]:
    """The head that decodes the outputs, its options, and the labels: those that are wished for, or the same in another numbering."""
    graph = fitted.graph
    shapes: Shapes = {
        name: tuple(d if isinstance(d, int) else 0 for d in x.shape)
        for name, x in zip(graph.output_names, graph.outputs, strict=True)
    }
    pairs = list(zip(graph.output_names, graph.outputs, strict=True))
    integers = frozenset(name for name, x in pairs if not x.dtype.is_float)
    sigmoids, softmaxes = (frozenset(name for name, x in pairs if _comes_of(x, op)) for op in ("sigmoid", "softmax"))
    heads = [head for head in kind.heads if wishes.head in ("", head.name)]
    if not heads:
        raise InputError(
            f"{kind.name}: head {wishes.head!r:.60}, expected one of {', '.join(head.name for head in kind.heads)}"
        )
    rounded = frozenset(name for name, x in pairs if _is_rounded(x))
    any_labels = Asked(fitted.size, None, (), integers, sigmoids, softmaxes, rounded, bool(wishes.head))
    told = ", ".join(f"{name} {show(shape)}" for name, shape in shapes.items())
    for refused in kind.refused:
        if refused.recognise(shapes, any_labels):
            raise InputError(f"{kind.name}: the outputs {told} are {refused.about}")
    for labels in numberings(wishes.labels):
        asked = replace(any_labels, labels=len(labels) or None, names=labels)
        for head in heads:
            options = head.recognise(shapes, asked)
            if options is not None:
                _refuse_stored(kind, head, pairs)
                return head, options, labels
    if wishes.labels and any(head.recognise(shapes, any_labels) is not None for head in heads):
        raise InputError(
            f"{kind.name}: {len(wishes.labels)} labels, given or named by the file, do not fit the outputs {told}: give as many as there are "
            "classes"
        )
    others = [
        other.name
        for other in KINDS.values()
        if other.medium is kind.medium
        and any(h is not VECTOR and h.recognise(shapes, any_labels) is not None for h in other.heads)
    ]  # a vector may have any shape
    if others and not wishes.head:
        raise InputError(
            f"{kind.name}: the outputs {told} are none of those that it decodes; {' and '.join(others)} would take them"
        )
    known = "; ".join(f"{head.name}: {head.about}" for head in heads)
    labels = f", with {len(wishes.labels)} labels" if wishes.labels else ""
    raise InputError(f"{kind.name}: the outputs {told}{labels} are none of those that are known ({known})")
