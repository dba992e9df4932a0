"""A Block is a graph of ONNX while it is written: nodes are added to it, and values have names.

The blocks of regions (the branches of an If, the body of a Loop) stand within that around them, whose values they may read.
A Block also computes dimensions: each is a vector of one int64, made of the shapes of inputs and of what a run finds.
Equal nodes of a Block are one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import DType, bool_, dtype, int64, own, string, strings
from ...errors import CompileError
from ...graph import Graph, Node
from ...ir.arrays import convert
from ...shapes import Dim, Shape, Size, at_least, plain, product
from .facts import ONLY_CAST, first_opset, kinds_of, too_new
from .records import Attribute, NodeRecord, TypeCode, is_closed

SHARED_BYTES: Final = 4096
"""Constants up to this size are compared with others, so that equal ones are written once."""

SizeSource: TypeAlias = Callable[["Block"], str]
"""Gives the name of a vector of one int64."""


class Constants:
    """The initialisers of a model, by name; and all names that are in use. known: arrays that keep the names which they have."""

    def __init__(self, opset: int, known: Mapping[str, Any] | None = None) -> None:
        self.opset: Final = opset
        self._names = {id(array): name for name, array in (known or {}).items()}
        self.arrays: dict[str, np.ndarray] = {}
        self.used: set[str] = set()
        self._known: dict[Any, str] = {}

    def fresh(self, stem: str) -> str:
        """A name that nothing has."""
        name, number = stem, 0
        while name in self.used:
            number += 1
            name = f"{stem}_{number}"
        self.used.add(name)
        return name

    def add(self, value: np.ndarray, stem: str = "constant") -> str:
        small = value.nbytes <= SHARED_BYTES and not value.dtype.hasobject
        key = (value.dtype.str, dtype(value.dtype).name, value.shape, value.tobytes()) if small else id(value)
        if key not in self._known:
            name = self.fresh(self._names.get(id(value), stem))
            self.arrays[name] = value  # which keeps the array, and so its id
            self._known[key] = name
        return self._known[key]


class Block:
    """See the module's docstring."""

    def __init__(self, constants: Constants, graph: Graph, around: Block | None = None) -> None:
        self.constants: Final = constants
        self.graph: Final = graph
        self.around: Final = around
        self.nodes: list[NodeRecord] = []
        self.values: dict[Node, tuple[str, ...]] = {}
        self.sizes: dict[str, SizeSource] = {}
        """How to compute a named size here."""
        self._same: dict[Any, tuple[str, ...]] = {}

    @property
    def opset(self) -> int:
        return self.constants.opset

    def chain(self) -> Iterator[Block]:
        """This block, and those around it, outwards."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.around

    # --- values and nodes ------------------------------------------------------------------------------------------

    def find(self, n: Node) -> tuple[str, ...] | None:
        """The names of a node's values, here or around; None if it is not written yet."""
        return next((block.values[n] for block in self.chain() if n in block.values), None)

    def name(self, n: Node) -> str:
        """The name of the only value of a node."""
        if n.value is not None:
            return self.constant_node(n)
        found = self.find(n)
        assert found is not None, f"{n.op} is not written yet"
        return found[0]

    def constant_node(self, n: Node) -> str:
        value = n.value
        assert value is not None
        if value.dtype == object and n.dtype is not string:
            return self.cast(self.reshape(self.shape(tuple(value.ravel())), value.shape), int64, n.dtype)
        return self.constants.add(value, "weight" if value.ndim > 1 else "constant")

    def const(self, value: Any, kind: DType = int64) -> str:
        """A constant from numbers."""
        if kind is string:
            return self.constants.add(strings(np.asarray(value, object)))
        array = np.asarray(value)
        return self.constants.add(own(array) if array.dtype == kind.numpy else convert(array, kind.numpy))

    def node(self, op: str, *inputs: str, **attributes: Attribute) -> str:
        """A node of one value that is of interest: the name of it."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, outputs: int, *inputs: str, **attributes: Attribute) -> tuple[str, ...]:
        """A node; the names of its values."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        shared = all(isinstance(a, (int, float, str, tuple)) for a in attributes.values())
        key = (op, inputs, outputs, repr(sorted(attributes.items()))) if shared else None
        for block in self.chain() if key else ():
            if key in block._same:
                return block._same[key]
        stem = op.lower()
        made = tuple(self.constants.fresh(stem if k == 0 else f"{stem}.{k}") for k in range(outputs))
        self.nodes.append(NodeRecord(op, inputs, made, attributes))
        if key:
            self._same[key] = made
        return made

    def takes(self, op: str, kind: DType) -> bool:
        """Whether an op takes elements of a type, in the opset that is written."""
        kinds = kinds_of(op, self.opset)
        return kind in kinds if kinds is not None else not too_new(kind, self.opset)

    def carrier(self, op: str, kind: DType) -> DType | None:
        """The type in which an op computes elements of a type: the type itself, or its compute type; None if it takes neither."""
        return next((k for k in (kind, kind.compute) if self.takes(op, k)), None)

    def typed(self, op: str, kind: DType, *inputs: str, **attributes: Attribute) -> str:
        """An op on elements of a type, in the type itself or in its compute type."""
        carrier = self.carrier(op, kind)
        made = self.compared(op, kind, *inputs, **attributes)
        return self.cast(made, carrier or kind, kind)

    def compared(self, op: str, kind: DType, *inputs: str, **attributes: Attribute) -> str:
        """The same of an op whose result has a type of its own."""
        carrier = self.carrier(op, kind)
        if carrier is None:
            raise lacking(op, kind, self.opset)
        return self.node(op, *(self.cast(x, kind, carrier) for x in inputs), **attributes)

    def divide(self, x: str, by: str, kind: DType) -> str:
        """The quotient of integers. A division by zero, of which the result is not specified, must not stop an engine."""
        value = self.constants.arrays.get(by)
        if value is None or not value.all():
            by = self.node("Where", self.node("Equal", by, self.const(0, kind)), self.const(1, kind), by)
        return self.node("Div", x, by)

    def cast(self, x: str, given: DType, to: DType) -> str:
        if given is to:
            return x
        return self.node("Cast", x, to=TypeCode(to))

    # --- shapes ----------------------------------------------------------------------------------------------------

    def reshape(self, x: str, shape: Shape) -> str:
        """The elements under another shape. One open dimension needs not be computed."""
        opened = [k for k, d in enumerate(shape) if not isinstance(d, int)]
        if len(opened) == 1 and all(isinstance(d, Size) or d > 0 for d in shape):
            return self.node("Reshape", x, self.const([d if isinstance(d, int) else -1 for d in shape]))
        wanted = self.shape(shape)
        return self.node("Reshape", x, wanted, **self._with_zeros(shape))

    def _with_zeros(self, shape: Shape) -> dict[str, Attribute]:
        """That a dimension of 0 means 0, if there may be one."""
        if all(isinstance(d, int) and d > 0 for d in shape):
            return {}
        if self.opset >= 14:
            return {"allowzero": 1}
        if any(not isinstance(d, Size) and d == 0 for d in shape):
            raise CompileError("a reshape to a shape with a dimension of 0; give opset=14 or later")
        return {}

    def vector(self, values: Iterable[int]) -> str:
        return self.const(np.fromiter(values, np.int64))

    def shape(self, shape: Shape) -> str:
        """A shape as a vector of int64."""
        shape = plain(tuple(shape))
        if is_closed(shape):
            return self.vector([d for d in shape if isinstance(d, int)])
        parts: list[str] = []
        known: list[int] = []
        for d in (*shape, None):
            if isinstance(d, int):
                known.append(d)
                continue
            if known:
                parts.append(self.vector(known))
                known = []
            if d is not None:
                parts.append(self.dim(d))
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def shape_of(self, x: str, axis: int) -> str:
        """The length of an axis."""
        return self.node("Gather", self.node("Shape", x), self.vector([axis]), axis=0)

    def scalar(self, d: Dim, kind: DType = int64) -> str:
        """A dimension as a scalar."""
        if isinstance(d, int):
            return self.const(np.asarray(d, np.int64), kind)
        return self.cast(self.node("Reshape", self.dim(d), self.vector([])), int64, kind)

    def dim(self, d: Dim) -> str:
        """A dimension as a vector of one element."""
        if isinstance(d, int):
            return self.vector([d])
        total = ""
        for atoms, factor in d.plain.terms:
            part = ""
            for atom in atoms:
                factor_name = self.size(atom) if isinstance(atom, str) else self._opaque(*atom)
                part = self.node("Mul", part, factor_name) if part else factor_name
            if not part or factor != 1:
                number = self.vector([factor])
                part = self.node("Mul", part, number) if part else number
            total = self.node("Add", total, part) if total else part
        return total

    def _opaque(self, word: str, a: Dim, b: Dim) -> str:
        left, right = self.dim(a), self.dim(b)
        if word in ("max", "min"):
            return self.node(word.capitalize(), left, right)
        if word == "div" and at_least(a, 0) and at_least(b, 1):
            return self.node("Div", left, right)
        rest = self.node("Mod", left, right)  # with the sign of the divisor, as in Python
        return rest if word == "mod" else self.node("Div", self.node("Sub", left, rest), right)

    def size(self, name: str) -> str:
        """A named size."""
        for block in self.chain():
            if name in block.sizes:
                return block.sizes[name](self)
        raise CompileError(f"no input and no node gives the size {name!r}")

    def knows(self, name: str) -> bool:
        return any(name in block.sizes for block in self.chain())


def lacking(op: str, kind: DType, opset: int) -> CompileError:
    """The error for an op that takes no elements of a type."""
    since = first_opset(op, (kind, kind.compute))
    newer = f"; give opset={since} or later" if since is not None and since > opset else ""
    return CompileError(f"ONNX's {op} takes no {kind} in opset {opset}{newer}")


def give_sizes(block: Block, leaves: Mapping[str, Node]) -> None:
    """Let a block find the sizes of its inputs, each value's name ↦ its node, in their shapes."""
    for name, leaf in leaves.items():
        if leaf.dtype.name in ONLY_CAST:  # an op for shapes does not take it
            continue
        for axis, d in enumerate(leaf.shape):
            alone = plain(d)
            if isinstance(alone, Size) and alone.terms == (((str(alone),), 1),) and str(alone) not in block.sizes:
                block.sizes[str(alone)] = _length(name, axis)


def _length(name: str, axis: int) -> SizeSource:
    return lambda block: block.shape_of(name, axis)


def count_of(shape: Shape) -> int | None:
    """How many elements there are; None if that depends on the run."""
    count = product(shape)
    return count if isinstance(count, int) else None


def is_one(shape: Shape) -> bool:
    return math.prod(d if isinstance(d, int) else 2 for d in shape) == 1


def truth(value: bool) -> np.ndarray:
    return np.asarray(value, bool_.numpy)
