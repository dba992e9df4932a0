"""Call, the argument of an adapter: one ONNX node, with its inputs as nodes of a Graph and type-checked attributes.

An adapter is a function from a Call to the node's outputs, entered in ADAPTERS under the name of an ONNX op. Rows take
shapes, axes and the like as attributes where ONNX passes tensors: `value`, `dims` and `ints` give the contents of such an
input. Symbolic sizes are known (as Sizes). Numbers that a run computes may be the lengths of axes: they become sizes found
in mid-run (`dims`, `found`). They may not decide how many axes there are (`unknown`). Nothing large is computed here:
folding is bounded by MAX_FOLDED.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from ...errors import ImportFailure, SizeNeeded, ValueNeeded
from ...graph import Builder, Node, Value, postorder, symbols_of
from ...late_dataclass import dataclass
from ...ops import find_row
from ...shapes import Dim, Size, axis_of, product, symbols
from ..model import OnnxGraph
from ..scope import Scope
from ..tensors import MAX_FOLDED as MAX_FOLDED  # noqa: PLC0414 (adapters take it from here)

MAX_COMPUTED: Final = 1 << 10
"""The most numbers of one input that a run turns into sizes."""

T = TypeVar("T", int, float, str)


@dataclass(frozen=True, eq=False)
class Call:
    """One node. op: its name, as in ADAPTERS; version: of its domain's opset; outputs: the names of its outputs ("": not
    wanted); scope: the scope of its names; values: the inputs of an op that also takes values that are no tensors (see
    graph/objects.py)."""

    b: Builder
    op: str
    version: int
    inputs: tuple[Node | None, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[str, ...]
    scope: Scope
    values: tuple[Value, ...] = ()

    @property
    def name(self) -> str:
        """The name of its first output that is wanted."""
        return next(filter(None, self.outputs), "")

    def fail(self, text: str) -> ImportFailure:
        return ImportFailure(text)

    # --- inputs ---

    def maybe(self, i: int) -> Node | None:
        """Input i, or None if it is omitted."""
        return self.inputs[i] if i < len(self.inputs) else None

    def x(self, i: int = 0) -> Node:
        """Input i, which must not be omitted."""
        found = self.maybe(i)
        if found is None:
            raise self.fail(f"input {i} is missing")
        return found

    def ranked(self, i: int, *ranks: int) -> Node:
        """Input i, which must have one of these numbers of axes."""
        x = self.x(i)
        if len(x.shape) not in ranks:
            raise self.fail(f"input {i} is {x!r}; expected {' or '.join(map(str, ranks))} axes")
        return x

    def all(self) -> list[Node]:
        """Every input: at least one, none of them omitted."""
        return [self.x(i) for i in range(max(1, len(self.inputs)))]

    def known(self, i: int) -> np.ndarray | None:
        """The value of input i (an object array if it contains Sizes); None if only a run computes it."""
        x = self.x(i)
        if x.value is not None:
            return x.value
        below = postorder([x], lambda n: n.lowered or n.inputs)
        if any(n.is_input for n in below):
            return None
        for n in below:
            for shape, _ in n.results:
                count = product(shape)
                if not isinstance(count, int):
                    return None
                if count > MAX_FOLDED:
                    raise self.fail(
                        f"input {i} needs a constant of {count} elements ({n}); at most {MAX_FOLDED} are computed on import"
                    )
        return self.b.value_of(x)

    def value(self, i: int) -> np.ndarray:
        """The value of input i, which must be known."""
        found = self.known(i)
        if found is None:
            inputs = inputs_below(self.b, [self.x(i)])
            raise ValueNeeded(
                f"input {i} must be known before a run, and is computed from the model's input "
                f"{', '.join(map(repr, inputs)) or 'none'}; export the model with a constant there",
                inputs,
            )
        return found

    def unknown(self, text: str, dim: Dim) -> SizeNeeded | ValueNeeded:
        """The error that a dimension must be a number: it names the open sizes, or the inputs whose values decide it."""
        found = [self.b.size_nodes[s] for s in sorted(symbols(dim)) if s in self.b.size_nodes]
        inputs = inputs_below(self.b, found)
        return ValueNeeded(text, inputs) if inputs else SizeNeeded(text, symbols(dim))

    def vector(self, i: int) -> Node:
        """Input i, integers that a run computes, as a vector whose length is known."""
        x = self.x(i)
        count = product(x.shape)
        if len(x.shape) > 1 or not x.dtype.is_int:
            raise self.fail(f"input {i} is {x.dtype} of rank {len(x.shape)}; expected a vector of integers")
        text = f"input {i} has {count} elements that a run computes"
        if not isinstance(count, int):
            raise self.unknown(f"{text}: their number must be known before a run", count)
        if count > MAX_COMPUTED:
            raise self.fail(f"{text}, at most {MAX_COMPUTED} are supported")
        return self.b.reshape(x, shape=(count,)) if x.shape == () else x

    def found(self, row: str, *inputs: Node, **attrs: Any) -> tuple[Dim, ...]:
        """The sizes that a row of ops/sizes.py gives in mid-run."""
        n = self.b.node(find_row(row), *inputs, what=self.op, **attrs)
        return tuple(shape[0] for shape, _ in n.results)

    def dims(self, i: int, **limits: Dim) -> tuple[Dim, ...]:
        """The integers in input i. They may be Sizes, and a run may compute them; then they must not be negative. limits:
        see the row `sizes`."""
        value = self.known(i)
        if value is None:
            x = self.vector(i)
            sizes = self.found("sizes", x, **limits)
            return tuple(s if d is None else d for d, s in zip(self.elements(x), sizes, strict=True))
        return self._integers(i, value)

    def _integers(self, i: int, value: np.ndarray) -> tuple[Dim, ...]:
        if value.ndim > 1 or value.dtype.kind not in "iuO":
            raise self.fail(f"input {i} is {value.dtype} of rank {value.ndim}; expected a vector of integers")
        if value.size > MAX_FOLDED:
            raise self.fail(f"input {i} has {value.size} numbers; at most {MAX_FOLDED} are supported")
        return tuple(d if isinstance(d, Size) else int(d) for d in value.ravel())

    def elements(self, x: Node) -> list[Dim | None]:
        """The elements of a vector of integers, None for those that only a run computes."""
        count = product(x.shape)
        assert isinstance(count, int)
        value = x.value if x.value is not None else self.b.value_of(x)
        if value is not None and value.dtype.kind in "iuO":
            return [d if isinstance(d, Size) else int(d) for d in value.ravel()]
        if x.op in ("reshape", "cast") and x.inputs[0].dtype.is_int:
            return self.elements(x.inputs[0])
        if x.op == "concat":
            return [d for part in x.inputs for d in self.elements(part)]
        return [None] * count

    def ints(self, i: int) -> tuple[int, ...]:
        """The integers in input i, all of which must be known numbers."""
        return tuple(self.number(d, f"input {i}") for d in self._integers(i, self.value(i)))

    def length(self, i: int, most: Dim | None = None) -> Dim:
        """The only integer in input i, as a length: from 0 to `most`."""
        found = self.dims(i, **({} if most is None else {"most": most}))
        if len(found) != 1:
            raise self.fail(f"input {i} has {len(found)} elements, expected one number")
        return self.lengths(found)[0]

    def number(self, d: Dim, what: str) -> int:
        if isinstance(d, int):
            return d
        raise self.unknown(f"{what} is {d}, and must be a number", d)

    def known_shape(self, x: Node, what: str) -> tuple[int, ...]:
        return tuple(self.number(d, what) for d in x.shape)

    # --- attributes ---

    def attr(self, name: str, default: T) -> T:
        """An attribute of the default's type."""
        value = self.attributes.get(name, default)
        if type(value) is not type(default):
            raise self.fail(f"attribute {name!r} is {value!r:.60}; expected {type(default).__name__}")
        return value

    def items(self, name: str, kind: type[T]) -> tuple[T, ...] | None:
        """An attribute that is a list of values of one type, or None if it is omitted."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, tuple) or set(map(type, value)) - {kind}:
            raise self.fail(f"attribute {name!r} is {value!r:.60}; expected a list of {kind.__name__}")
        return value

    def subgraph(self, name: str) -> OnnxGraph:
        """An attribute that is a graph."""
        graph = self.attributes.get(name)
        if not isinstance(graph, OnnxGraph):
            raise self.fail(f"the graph {name!r} is missing")
        return graph

    def flag(self, name: str, default: bool = False) -> bool:
        return self.attr(name, int(default)) != 0

    def axis(self, default: int, rank: int) -> int:
        """The attribute "axis" as an index below rank."""
        return axis_of(self.attr("axis", default), rank, "axis")

    def listed(self, name: str, i: int) -> tuple[Dim, ...] | None:
        """Integers that older versions of an op take as attribute `name` and newer ones as input i."""
        given = self.items(name, int)
        if given is not None:
            return given
        return None if self.maybe(i) is None else self.dims(i)

    def numbers(self, name: str, i: int) -> tuple[int, ...] | None:
        """Like `listed`, but all must be known numbers."""
        given = self.items(name, int)
        return given if given is not None or self.maybe(i) is None else self.ints(i)

    def is_computed(self, *inputs: int) -> bool:
        """Whether only a run computes some of these inputs."""
        return any(self.maybe(i) is not None and self.known(i) is None for i in inputs)

    def is_found(self, name: str, i: int) -> bool:
        """Whether only a run computes the integers that are attribute `name` in older versions and input i in newer ones."""
        return name not in self.attributes and self.is_computed(i)

    def lengths(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """A shape that the model gives, after a check that no length is negative."""
        if any(isinstance(d, int) and d < 0 for d in shape):
            raise self.fail(f"the shape {tuple(shape)} has a negative length")
        return tuple(shape)


def inputs_below(b: Builder, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The model's inputs from which these nodes are computed, including the values that decide sizes found in mid-run."""
    reached = postorder(
        nodes, lambda n: (*(n.lowered or n.inputs), *(b.size_nodes[s] for s in symbols_of(n) if s in b.size_nodes))
    )
    return tuple(n.name for n in reached if n.is_input)


Adapter: TypeAlias = Callable[[Call], "Node | Sequence[Value]"]

ADAPTERS: Final[dict[str, Adapter]] = {}
"""ONNX ops that are not a row one to one, by name: "Gemm", "com.microsoft.FusedGemm"."""
OBJECTS: Final[set[str]] = set()
"""Those that take values that are no tensors, too: as `Call.values`."""


def tensors_of(results: Node | Sequence[Value]) -> list[Node]:
    """The results of an adapter, or of a graph, that are all tensors."""
    found = [results] if isinstance(results, Node) else list(results)
    nodes = [x for x in found if isinstance(x, Node)]
    if len(nodes) < len(found):
        raise ImportFailure("expected tensors, got a value that is none")
    return nodes


def adapter(*ops: str, objects: bool = False) -> Callable[[Adapter], Adapter]:
    """Enters a function in ADAPTERS, and its ops in OBJECTS if they take objects."""

    def enter(function: Adapter) -> Adapter:
        for op in ops:
            if op in ADAPTERS:
                raise ValueError(f"{op} has an adapter already")
            ADAPTERS[op] = function
            if objects:
                OBJECTS.add(op)
        return function

    return enter
