"""The Graph of a Program once more, within a `debug` block, in which its nodes know where they come from."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..errors import SingeError
from ..graph import Graph
from ..runtime.debugging import looking
from .retrace import Tracing
from .source import GraphSource, Source


class Remade:
    """Calling it traces a function again, imports a file again, or gives the Graph that there is: None, if nothing of these is held
    any more. It holds none itself, but for what is compiled within a block."""

    def __init__(
        self,
        graph: Graph,
        source: Source,
        tracing: Tracing | None,
        sizes: Mapping[str, int],
        values: Mapping[str, np.ndarray],
    ) -> None:
        """graph: of the Program, which the source, or a trace, gives at these sizes and values."""
        self._graph: Final = _held(graph)
        self._source: Final = _held(source)
        self._tracing: Final = None if tracing is None else _held(tracing)
        self._sizes: Final = sizes
        self._values: Final = values
        self._leaves: Final = _leaves(graph)

    def __call__(self) -> Graph | None:
        try:
            found = self._again()
        except SingeError:  # of a function that cannot be traced now
            found = None
        return found if isinstance(found, Graph) and _leaves(found) == self._leaves else self._graph()

    def _again(self) -> Any:
        if self._tracing is None:
            source = self._source()
        else:
            from ..tensors.default_keys import no_block  # noqa: PLC0415 (a model of a file needs no tensors)

            tracing = self._tracing()
            with no_block():
                source = None if tracing is None else GraphSource(tracing()[0])
        return None if source is None else source.graph(self._sizes, self._values)


def _held(x: Any) -> Callable[[], Any]:
    return (lambda: x) if looking() else weakref.ref(x)


def _leaves(graph: Graph) -> list[Any]:
    return [(x.name, x.shape, x.dtype) for x in graph.leaves]
