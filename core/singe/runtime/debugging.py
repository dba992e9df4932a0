"""`debug`: runs that look at what they compute, and name the op, the layer and the line of the first number that is not finite.

Eagerly every op is looked at. Of a compiled run the outputs and states are; if one is not finite, its Graph runs again with the
results of all nodes. Where an op comes from is noted of what is traced within the block; what was traced before is traced again.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..dtypes import widened
from ..errors import NonFinite, SingeError
from ..lazy_names import LateModule
from ..shapes import show
from ..tracebacks import is_ours

if TYPE_CHECKING:
    from .. import graph as graphs
    from ..compiler import index_ranges
    from ..graph import Graph, Node, Origin
else:
    graphs, index_ranges = map(LateModule, ("graph", "compiler.index_ranges"))

INNER: Final = "the layer "
"""How the name of a layer inside of another one begins."""
_LOOKING: Final[ContextVar[bool]] = ContextVar("looking", default=False)


@contextmanager
def debug(*, nonfinite: bool = True) -> Iterator[None]:
    """A block in which a number that is NaN or infinite is an error: `with sg.debug(nonfinite=True): model(x)`.

    NonFinite names the op, the layer that it is in, and the line of your code. It comes with the first op whose result holds
    NaN, or infinity that none of its operands holds. Of an ONNX model it names the node of the file; of a Program that was loaded,
    which has no Graph, the kernel. It is slow: each result is read from the device.
    """
    token = _LOOKING.set(nonfinite)
    try:
        yield
    finally:
        _LOOKING.reset(token)


def looking() -> bool:
    """Whether a `debug` block is entered."""
    return _LOOKING.get()


def note_origins(nodes: Iterable[Node], node_of: Callable[[Any], Any]) -> None:
    """Remember of nodes that are made now which line of which layer makes them: of all within a block, otherwise of those that index,
    of which an error tells. node_of: the value of a tensor ↦ its node, if it has one."""
    noted = [n for n in nodes if n.row is not None and (looking() or n.op in index_ranges.INDEXING)]
    if not noted:
        return
    origin, forward = _origin()
    for n in noted:
        indices = next(index_ranges.uses(n), None)
        argument = "" if indices is None or forward is None else _argument(forward, indices.indices, node_of)
        graphs.ORIGINS.setdefault(n, origin._replace(argument=argument))


def note_place(nodes: Iterable[Node], place: str) -> None:
    """Remember of nodes that are made within a block to what of a file they belong."""
    for n in nodes if looking() else ():
        graphs.ORIGINS.setdefault(n, graphs.Origin(place))


def check_run(
    graph: Graph | None,
    inputs: Sequence[np.ndarray],
    outputs: Mapping[str, np.ndarray],
    again: Callable[[Graph], Sequence[np.ndarray]],
    giver: Callable[[str], str] | None = None,
) -> None:
    """Refuse a run of which a result is not finite. inputs: the values of the graph's leaves; outputs: results by name; again: the
    outputs of a graph over the same leaves; giver: of a Program, what computes a result."""
    unknown = None if giver is None else "; its layer and line are not known"
    if graph is not None and sum(n.row is not None for n in graph.nodes) == 1:
        values = {
            **dict(zip(graph.leaves, inputs, strict=True)),
            **dict(zip(graph.outputs, outputs.values(), strict=False)),
        }
        _check_nodes(graph, values, unknown)
        return
    name = next((name for name, x in outputs.items() if not finite(x)), None)
    if name is None:
        return
    text = f"the result {name!r} holds {infinite_or_nan(outputs[name])}"
    if graph is None:
        by = f"; {giver(name)} computes it" if giver else ""
        raise NonFinite(
            f"{text}{by}; its layer and line are not known, as the Program has no Graph: to be told them, run the function or the "
            "model of which it was compiled within sg.debug(nonfinite=True)"
        )
    told = [n for n in graph.nodes if n.row is not None and len(n.results) == 1 and n.dtype.is_float]
    every = again(replace(graph, outputs=tuple(told), output_names=tuple(f"n{k}" for k in range(len(told)))))
    _check_nodes(
        graph, {**dict(zip(graph.leaves, inputs, strict=True)), **dict(zip(told, every, strict=True))}, unknown
    )
    raise NonFinite(f"{text}; node by node all of its numbers are finite")


def _check_nodes(graph: Graph, values: Mapping[Node, np.ndarray], unknown: str | None) -> None:
    """Refuse the first node whose result holds NaN, or infinity that none of its inputs holds. unknown: what is said of one whose
    origin was not noted; None: what runs now makes it."""
    for n in graph.nodes:
        if n.row is None or n not in values or finite(values[n]):
            continue
        inputs = [values.get(x, x.value) for x in n.inputs]
        endless = [k for k, x in enumerate(inputs) if x is not None and not finite(x)]
        if endless and not np.isnan(widened(values[n])).any():
            continue
        beside = f"; so does its operand {endless[0] + 1}, {infinite_or_nan(inputs[endless[0]])}" if endless else ""
        origin = graphs.ORIGINS.get(n) or (_origin()[0] if unknown is None else unknown)
        raise NonFinite(f"{n.op}: its result {show(n.shape)} holds {infinite_or_nan(values[n])}{beside}{origin}")


def finite(x: Any) -> bool:
    """Whether an array of any dtype holds neither NaN nor infinity."""
    array = widened(np.asarray(x))
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def infinite_or_nan(x: Any) -> str:
    """What one that is not finite holds, in words."""
    return "NaN" if np.isnan(widened(np.asarray(x))).any() else "infinity"


def origin_of_indices(indices: Any) -> Origin:
    """Where a node comes from that will be made now, and takes the value of a tensor that is traced as its indices."""
    origin, forward = _origin()
    argument = _argument(forward, indices, lambda value: value) if forward and isinstance(indices, graphs.Node) else ""
    return origin._replace(argument=argument)


def name_layer(error: SingeError) -> None:
    """Let an error name the layer in whose call it is raised, if that lies in another."""
    layer = "" if error.layer else _origin()[0].layer
    if layer.startswith(INNER):
        error.layer = layer


def _origin() -> tuple[Origin, FrameType | None]:
    """The layer and the line of the user's code that are running, and the frame of that layer's forward."""
    layers: list[Any] = []
    forward: FrameType | None = None
    inner: FrameType | None = None
    line = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        own = frame.f_locals.get("self") if code.co_name == "__call__" else None
        if hasattr(own, "named_modules"):
            forward = forward if layers else inner
            layers.append(own)
        elif not line and not is_ours(code.co_filename):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            line = f"{code.co_filename}:{frame.f_lineno}{f': {text}' if text else ''}"
        inner, frame = frame, frame.f_back
    layer = ""
    if layers:
        kind = type(layers[0]).__name__
        path = next((path for path, part in layers[-1].named_modules() if part is layers[0]), "")
        layer = f"{INNER}{path!r}, {kind}" if path else kind
    return graphs.Origin(layer, line), forward


def _argument(forward: FrameType, indices: Node, node_of: Callable[[Any], Any]) -> str:
    """The argument of a layer that gives indices as they are, if one does."""
    code, given = forward.f_code, forward.f_locals
    nodes = {
        id(node_of(getattr(given.get(name), "_value", None))): name for name in code.co_varnames[: code.co_argcount]
    }
    while id(indices) not in nodes and index_ranges.passes_on(indices):
        indices = indices.inputs[0]
    return nodes.get(id(indices), "")
