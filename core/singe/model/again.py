"""A function that is traced again when what it took from outside has changed.

Each trace is a Variant of the Model, with Programs of its own; a variant whose values are there again is used again, and traces
that give the same Graph share one.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import InputError
from ..frontend.observed import Observed
from ..graph import Graph
from ..graph.structure import structure
from .source import GraphSource

VARIANTS: Final = 8
"""How many variants are kept, and after how many traces a warning names what changes."""
MOST_PROGRAMS: Final = 256
"""How many different Graphs there may be."""

Trace = Callable[[], tuple[Graph, Observed]]


@dataclass(eq=False)
class Variant:
    """What a Model has of one trace."""

    source: GraphSource
    key: Any
    """Equal for Graphs of which the Programs are equal."""
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    """The Model's fields that belong to it, while another variant is in use."""


class Again:
    """The variants of a Model, and the one in use."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace: Final = trace
        self._name: Final = name
        self._found: list[tuple[Observed, Variant]] = []
        """The latest last."""
        self._traces = self._made = 0
        self._observed, self.variant = self._traced()

    def apart(self) -> Again:
        """The same for a Model with other Programs."""
        made = copy.copy(self)
        own = {id(v): Variant(v.source, v.key) for _, v in self._found}
        made._found = [(observed, own[id(v)]) for observed, v in self._found]
        made.variant = own[id(self.variant)]
        return made

    def holds(self) -> bool:
        """Whether all that the variant in use took from outside is as it was."""
        return self._observed.holds()

    def next(self) -> Variant:
        """The variant for the values that are there now."""
        name = self._observed.changed()
        if name is None:  # equal values in other objects
            return self.variant
        for k, (observed, variant) in enumerate(self._found):
            if observed.changed() is None:
                self._found.append(self._found.pop(k))
                self._observed, self.variant = observed, variant
                return variant
        self._check(name)
        self._observed, self.variant = self._traced()
        return self.variant

    def _traced(self) -> tuple[Observed, Variant]:
        graph, observed = self._trace()
        key = structure(graph), tuple((n.name, n.dtype, n.shape) for n in graph.inputs), graph.output_names
        variant = next((v for _, v in self._found if v.key == key), None)
        self._traces += 1
        self._made += variant is None
        variant = variant or Variant(GraphSource(graph), key)
        self._found = [*self._found[1 - VARIANTS :], (observed, variant)]
        return observed, variant

    def _check(self, name: str) -> None:
        """Say which value changes often, and refuse it when the Programs become too many."""
        text = (
            f"{self._name}: {name} has changed again, and the function, which reads it from outside, was traced "
            f"{self._traces} times: pass what changes as an argument, or as a part of the batch, as in step(x, y, value)"
        )
        if self._made >= MOST_PROGRAMS:
            raise InputError(text)
        if self._traces == VARIANTS:
            warnings.warn(f"{text}; each trace takes time", stacklevel=2)
