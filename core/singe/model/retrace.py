"""A function that is traced again when what it took from outside has changed.

Each Trace of the Model has Programs of its own; one whose values are there again is used again, and traces that give the same
Graph share one. Those that were not used for the longest time are dropped where there are more than MAX_TRACES of them, or where
those that are not in use hold more than MOST_BYTES.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import InputError
from ..graph import Graph
from ..graph.structure import constants, structure
from ..late_dataclass import dataclass
from .source import GraphSource

if TYPE_CHECKING:
    from ..tensors.observed import Observed

MAX_TRACES: Final = 8
"""How many traces are kept, and after how many a warning names what changes."""
MOST_BYTES: Final = 1 << 29
"""Of constants and copies of observed arrays."""
MOST_PROGRAMS: Final = 256
"""How many different Graphs there may be."""

Tracing: TypeAlias = "Callable[[], tuple[Graph, Observed]]"


@dataclass(eq=False)
class Trace:
    """What a Model has of one trace."""

    source: GraphSource
    key: Any
    """Equal for Graphs of which the Programs are equal."""
    bytes: int
    """Of its Graph's constants: each trace copies the tensors that it takes from outside."""
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    """The Model's fields that belong to it, while another trace is in use."""


class Traces:
    """The traces of a Model, and the one in use."""

    def __init__(self, tracing: Tracing, name: str) -> None:
        self.tracing: Final = tracing
        self._name: Final = name
        self._found: list[tuple[Observed, Trace]] = []
        """The latest last."""
        self._count = self._made = 0
        self._observed, self.present = self._traced()

    def apart(self) -> Traces:
        """The same for a Model with other Programs."""
        made = copy.copy(self)
        own = {id(t): Trace(t.source, t.key, t.bytes) for _, t in self._found}
        made._found = [(observed, own[id(t)]) for observed, t in self._found]
        made.present = own[id(self.present)]
        return made

    def holds(self) -> bool:
        """Whether all that the trace in use took from outside is as it was."""
        return self._observed.holds()

    def may_change(self) -> bool:
        """Whether a run may find another value outside, and the function is traced again."""
        return self._observed.has_values()

    def __iter__(self) -> Iterator[Trace]:
        return iter({id(t): t for _, t in self._found}.values())

    def next(self) -> Trace:
        """The trace for the values that are there now."""
        name = self._observed.changed()
        if name is None:  # equal values in other objects
            return self.present
        for k, (observed, trace) in enumerate(self._found):
            if observed.changed() is None:
                self._found.append(self._found.pop(k))
                self._observed, self.present = observed, trace
                return trace
        self._check(name)
        self._observed, self.present = self._traced()
        return self.present

    def _traced(self) -> tuple[Observed, Trace]:
        graph, observed = self.tracing()
        key = structure(graph), tuple((n.name, n.dtype, n.shape) for n in graph.inputs), graph.output_names
        trace = next((t for _, t in self._found if t.key == key), None)
        self._count += 1
        self._made += trace is None
        trace = trace or Trace(GraphSource(graph), key, sum(x.nbytes for x in constants(graph)))
        self._found = _bounded([*self._found[1 - MAX_TRACES :], (observed, trace)])
        return observed, trace

    def _check(self, name: str) -> None:
        """Say which value changes often, and refuse it when the Programs become too many."""
        text = (
            f"{self._name}: {name} has changed again, and the function, which reads it from outside, was traced "
            f"{self._count} times: pass what changes as an argument, or as a part of the batch, as in step(x, y, value)"
        )
        if self._made >= MOST_PROGRAMS:
            raise InputError(text)
        if self._count == MAX_TRACES:
            warnings.warn(f"{text}; each trace takes time", stacklevel=2)


def _bounded(traces: list[tuple[Observed, Trace]]) -> list[tuple[Observed, Trace]]:
    """The last of some traces, and those before it that hold no more than MOST_BYTES."""
    held, size = {id(traces[-1][1])}, 0
    for k, (observed, trace) in reversed([*enumerate(traces[:-1])]):
        size += observed.bytes + (0 if id(trace) in held else trace.bytes)
        if size > MOST_BYTES:
            return traces[k + 1 :]
        held.add(id(trace))
    return traces
