"""Describes a model as text: its inputs, outputs and ops, and what each layer gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import Kind
from ..report import LEFT, RIGHT, fields, table
from ..shapes import Needed, show
from ..tensors.layer_statistics import LayerStatistics, figures
from .arguments import TensorSpec
from .model import Model


def describe_model(model: Model) -> str:
    """Inputs, outputs, open sizes, and the ops; or, if a Graph cannot be built yet, what must be known for it."""
    objects = [(name, kind, "?") for name, kind in model.source.objects.items() if kind.name != "tensor"]
    parts = [_specs("input", model.inputs, objects), _specs("output", model.outputs), *_open_sizes(model)]
    if model.needed:
        parts.append(_needed(model.needed))
    else:
        parts.append(table([("op", LEFT), ("count", RIGHT)], list(model.graph().ops().items())))
    return "\n\n".join(parts)


def describe_layers(model: Model) -> str:
    """Each value that a node of the file (or of a record's graph) computes, in this order."""
    source, ops = model.source.with_layers()
    graph = Model(source, model.device, model.name).graph()
    found = dict(zip(graph.output_names, graph.outputs, strict=True))
    order = [*(name for name in ops if name in found), *(name for name in found if name not in ops)]
    return table(
        [("layer", LEFT), ("op", LEFT), ("dtype", LEFT), ("shape", LEFT)],
        [(name, ops.get(name, ""), found[name].dtype, show(found[name].shape)) for name in order],
    )


def layer_statistics(model: Model, args: Sequence[Any], kwargs: Mapping[str, Any]) -> LayerStatistics:
    """The figures of the float and integer values that the nodes compute in a run."""
    source, ops = model.source.with_layers()
    every = Model(source, model.device, model.name)
    found = every(*args, **kwargs)
    named = found if isinstance(found, dict) else {source.output_names[0]: found}
    numbers = {name: x for name, x in named.items() if isinstance(x, np.ndarray) and x.dtype.kind not in "OSUT"}
    order = [*(name for name in ops if name in numbers), *(name for name in numbers if name not in ops)]
    return LayerStatistics.of(figures(name, ops.get(name, ""), numbers[name]) for name in order)


def _needed(needed: Needed) -> str:
    """The sizes and values for each set of which a separate Program is compiled."""
    reasons: dict[str, list[str]] = {}
    for what, found in (("the size", needed.sizes), ("the values of the input", needed.inputs)):
        for name, why in found.items():
            reasons.setdefault(why, []).append(f"{what} {name}")
    pairs = [(("one program for each set of", ", ".join(what)), ("because", why)) for why, what in reasons.items()]
    return fields([pair for both in pairs for pair in both])


def _open_sizes(model: Model) -> list[str]:
    """The open sizes and their bounds."""
    sizes = model.sizes
    notes = {name: f"at most {most}" for name, most in sizes.bounds.items()}
    if not sizes.names:
        return []
    return [table([("open size", LEFT), ("bound", LEFT)], [(name, notes.get(name, "none")) for name in sizes.names])]


def _specs(heading: str, specs: Sequence[TensorSpec], objects: Sequence[tuple[str, Kind, str]] = ()) -> str:
    return table(
        [(heading, LEFT), ("dtype", LEFT), ("shape", LEFT)],
        [*((p.name, p.dtype, "?" if p.shape is None else show(p.shape)) for p in specs), *objects],
    )
