"""Fusion: a decorator that makes a device lazy. Ops are recorded, and run together when a value is read.

A read runs one Graph with several results: the value that is read, and every live value (one that somebody still holds)
whose pending computation shares a node with it, directly or through other live values. So if only the loss of a
training step is read, the new weights are computed in the same Program. Each step then begins with computed weights,
has the same Graph, and is compiled only once. A value that nobody holds any more is an intermediate of that Graph and
gets no memory of its own. Values that share only computed nodes stay pending.

Invariant: a pending node depends on pending nodes, constants and Leaves. Computed values are always Leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from ...awaitables import MaybeAwaitable
from ...dtypes import DType
from ...errors import DeviceError, SingeError
from ...graph import Builder, Graph, Node, inline, postorder
from ...ops import SIZES
from ..debugging import note_origins
from ..device import Build, Device, nodes_of
from .decorator import Decorator

MAX_PENDING_CHAIN: Final = 1000
"""The longest chain of ops that may be pending. A longer chain is run even if nobody reads its result."""


class Leaf(Node):
    """An input of pending work: a node that has been computed, with its value on the inner device."""

    __slots__ = ("held",)

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(None, (), {}, ((held.shape, held.dtype),), name=name)
        self.held: Final = held


class LazyValue:
    """A handle on a node: pending, or a Leaf. depth: the length of the longest chain of pending ops that ends in it."""

    __slots__ = ("__weakref__", "depth", "node")

    def __init__(self, node: Node, depth: int = 0) -> None:
        self.node = node
        self.depth = depth

    @property
    def shape(self) -> Any:
        return self.node.shape

    @property
    def dtype(self) -> DType:
        return self.node.dtype


class Fusion(Decorator):
    """A lazy device around another, which is given or named: ops are recorded, and run as one Program when a value is read.

        x = sg.tensor(array, device=sg.Fusion("wasm"))
        y = (x * 2 + 1).sum().item()    # compiled once, as one kernel

    For gradients by `backward` write sg.Autodiff(sg.Fusion(device)), in this order.
    """

    def __init__(self, inner: Device | str) -> None:
        super().__init__(inner)
        self._numbers: Final = count()
        # In the order of creation, so that equal steps give equal Graphs.
        self._pending: Final[weakref.WeakValueDictionary[int, LazyValue]] = weakref.WeakValueDictionary()

    @property
    def eager(self) -> Device:
        return self.inner.eager

    # Its values are its own, so it cannot pass them to a device inside that records gradients.
    detached = Device.detached
    is_recorded = Device.is_recorded

    def watched(self, value: LazyValue) -> Any:
        raise DeviceError(f"{self!r} does not record gradients; use sg.Autodiff(sg.Fusion(device)), in this order")

    def backward(self, value: LazyValue, keep: bool, seed: LazyValue | None = None) -> Any:
        return self.watched(value)

    def upload(self, array: np.ndarray) -> LazyValue:
        with self.lock:
            return self.holding(self.inner.upload(array))

    def receive(self, value: Any, source: Device) -> MaybeAwaitable[LazyValue]:
        return self.holding(value) if source is self.inner else super().receive(value, source)

    def holding(self, value: Any) -> LazyValue:
        """A value of the device inside as one of this device's."""
        return LazyValue(self._leaf(value))

    def computed(self, values: Sequence[LazyValue]) -> list[Any]:
        """Values as those of the device inside; those that are pending are computed by one Program."""
        with self.lock:
            if pending := [v for v in values if not isinstance(v.node, Leaf)]:
                self._compute(pending)
            return [v.node.held for v in values if isinstance(v.node, Leaf)]

    def fetch(self, value: LazyValue) -> MaybeAwaitable[np.ndarray]:
        with self.lock:
            self._realise(value)
            assert isinstance(value.node, Leaf)
            return self.inner.fetch(value.node.held)

    def exported(self, value: LazyValue) -> Any:
        with self.lock:
            self._realise(value)
            assert isinstance(value.node, Leaf)
            return self.inner.exported(value.node.held)

    def imported(self, array: Any) -> LazyValue:
        return self.holding(self.inner.imported(array))

    def integers(self, value: LazyValue) -> np.ndarray | None:
        return self.inner.integers(value.node.held) if isinstance(value.node, Leaf) else None

    def apply(self, build: Build, values: Sequence[LazyValue]) -> tuple[LazyValue, ...]:
        with self.lock:
            depth = 1 + max((v.depth for v in values), default=0)
            builder = Builder()
            made = tuple(LazyValue(n, depth) for n in nodes_of(build(builder, *(v.node for v in values))))
            note_origins(builder.made_since(0), lambda value: getattr(value, "node", None))
            for value in made:
                if not isinstance(value.node, Leaf):
                    self._pending[next(self._numbers)] = value
            for value in made:
                if depth > MAX_PENDING_CHAIN or not all(isinstance(d, int) for d in value.shape):
                    self._realise(value)  # a shape that depends on data is known only after the value is computed
        return made

    def run(self, graph: Graph, values: Sequence[LazyValue]) -> tuple[LazyValue, ...]:
        return self.apply(lambda builder, *nodes: inline(graph, builder, nodes), values)

    def _leaf(self, held: Any) -> Leaf:
        return Leaf(f"x{next(self._numbers)}", held)

    def _realise(self, value: LazyValue) -> None:
        """Compute a value if it is pending, together with the live values that are connected to it."""
        if isinstance(value.node, Leaf):
            return
        together = self._connected(value)
        try:
            self._compute(together)
        except SingeError:
            if len(together) == 1:
                raise
            self._compute([value])  # the error may come from a value that nobody has read yet

    def _compute(self, values: Sequence[LazyValue]) -> None:
        outputs = tuple(dict.fromkeys(v.node for v in values))
        nodes = postorder(outputs)
        leaves = tuple(n for n in nodes if isinstance(n, Leaf))
        bound = {size: n for n in nodes for size in n.attrs.get(SIZES, ()) if size}
        graph = Graph(leaves, outputs, tuple(f"y{k}" for k in range(len(outputs))), bound)
        found = self.inner.run(graph, [n.held for n in leaves])
        computed = {n: self._leaf(held) for n, held in zip(outputs, found, strict=True)}
        for v in values:
            v.node, v.depth = computed[v.node], 0

    def _connected(self, value: LazyValue) -> list[LazyValue]:
        """The live pending values that share pending nodes with this one, directly or through others, oldest first."""
        live = [v for v in self._pending.values() if not isinstance(v.node, Leaf)]
        group = list(range(len(live)))  # union-find: for each live value a smaller member of its group, or itself

        def first(k: int) -> int:
            while group[k] != k:
                group[k] = k = group[group[k]]
            return k

        owner: dict[Node, int] = {}
        for k, v in enumerate(live):
            stack = [v.node]
            while stack:
                n = stack.pop()
                if n in owner:
                    a, b = first(owner[n]), first(k)
                    group[max(a, b)] = min(a, b)
                elif not (isinstance(n, Leaf) or n.is_const):
                    owner[n] = k
                    stack.extend(n.inputs)
        wanted = first(owner[value.node])
        return [v for k, v in enumerate(live) if first(k) == wanted]
