"""Autodiff: a decorator that records what is computed from watched values, so that gradients can be computed.

`backward` goes through the record from the last op to the first. For each op, a Graph of its gradient is run on the device
inside, with the op's inputs, so a device that is lazy (`Autodiff(Fusion(device))`) compiles the forward and the backward
pass, and what is done with the gradients, as one Program. A move to another Autodiff is recorded, too: its gradient moves back.

The record belongs to the values: it is freed with them, and is not changed by `backward`. So threads may share watched
values, and a number may be differentiated twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from ...awaitables import MaybeAwaitable, map_result, resolve
from ...dtypes import FLOATS, DType
from ...errors import DTypeError, InputError
from ...graph import Builder, Graph, gradient, inline, leaf
from ..device import Build, Device, nodes_of
from .decorator import Decorator


class RecordedOp:
    """What was computed on a device from its values, of which at least one is recorded."""

    __slots__ = ("build", "inputs", "on")

    def __init__(self, on: Autodiff, build: Build, inputs: tuple[RecordedValue, ...]) -> None:
        self.on: Final = on
        self.build: Final = build
        self.inputs: Final = inputs

    def gradients(
        self, seeds: Mapping[int, RecordedValue], wanted: Sequence[int], keep: bool
    ) -> Sequence[RecordedValue]:
        """From the gradients of some outputs, those of the inputs `wanted`."""
        graph = _backward(self, tuple(seeds), wanted)
        return self.on.computing(keep).run(graph, [*self.inputs, *seeds.values()])


class RecordedMove:
    """A recorded value of one device that was moved to another."""

    __slots__ = ("inputs", "on", "target")

    def __init__(self, on: Autodiff, value: RecordedValue, target: Autodiff) -> None:
        self.on: Final = on
        self.inputs: Final = (value,)
        self.target: Final = target

    def gradients(
        self, seeds: Mapping[int, RecordedValue], wanted: Sequence[int], keep: bool
    ) -> Sequence[RecordedValue]:
        moved = (self.on.received(g, self.target, keep) for g in seeds.values())
        return [resolve(g, "sg.value_and_grad of a function on one device") for g in moved]


class RecordedValue:
    """A value of the device inside, with the op that made it if that is recorded."""

    __slots__ = ("__weakref__", "held", "index", "origin", "watched")

    def __init__(
        self, held: Any, origin: RecordedOp | RecordedMove | None = None, index: int = 0, watched: bool = False
    ) -> None:
        self.held: Final = held
        self.origin: Final = origin
        self.index: Final = index
        self.watched: Final = watched

    @property
    def shape(self) -> Any:
        return self.held.shape

    @property
    def dtype(self) -> DType:
        return self.held.dtype

    @property
    def recorded(self) -> bool:
        return self.watched or self.origin is not None


class Autodiff(Decorator):
    """A device around another, which is given or named, that records what is computed, for `backward`.

        ad = sg.Autodiff(sg.Fusion("wasm"))
        x = sg.tensor(array, device=ad, requires_grad=True)
        gradient = (x**2).sum().backward()[x]

    A module on it: model.to(ad).map(sg.Tensor.require_grad). `sg.value_and_grad` needs no such device.
    """

    def __eq__(self, other: object) -> bool:
        """Another Autodiff of the same device is this one: what is recorded is in the values."""
        return isinstance(other, Autodiff) and other.inner == self.inner

    def __hash__(self) -> int:
        return hash((Autodiff, self.inner))

    @property
    def eager(self) -> Device:
        return self.inner.eager

    def import_value(self, value: Any, source: Device) -> RecordedValue:
        return value if source == self else super().import_value(value, source)

    def receive(self, value: Any, source: Device) -> MaybeAwaitable[RecordedValue]:
        if source is self.inner:
            return RecordedValue(value)
        if isinstance(source, Autodiff):
            return self.received(value, source, value.recorded)
        return map_result(self.inner.receive(value, source), RecordedValue)

    def received(self, value: RecordedValue, source: Autodiff, recorded: bool) -> MaybeAwaitable[RecordedValue]:
        """Another Autodiff's value, moved here. recorded: gradients go back."""
        origin = RecordedMove(source, value, self) if recorded and value.recorded else None
        return map_result(self.inner.receive(value.held, source.inner), lambda held: RecordedValue(held, origin))

    def computing(self, keep: bool) -> Device:
        """The device that computes with recorded values. keep: and records what it does."""
        return self if keep else _Unrecorded(self.inner)

    def upload(self, array: np.ndarray) -> RecordedValue:
        return RecordedValue(self.inner.upload(array))

    def fetch(self, value: RecordedValue) -> MaybeAwaitable[np.ndarray]:
        return self.inner.fetch(value.held)

    def exported(self, value: RecordedValue) -> Any:
        return self.inner.exported(value.held)

    def imported(self, array: Any) -> RecordedValue:
        return RecordedValue(self.inner.imported(array))

    def integers(self, value: RecordedValue) -> np.ndarray | None:
        return self.inner.integers(value.held)

    def apply(self, build: Build, values: Sequence[RecordedValue]) -> tuple[RecordedValue, ...]:
        made = self.inner.apply(build, [v.held for v in values])
        if not any(v.recorded for v in values):
            return tuple(map(RecordedValue, made))
        op = RecordedOp(self, build, tuple(values))
        return tuple(RecordedValue(held, op, k) for k, held in enumerate(made))

    def run(self, graph: Graph, values: Sequence[RecordedValue]) -> tuple[RecordedValue, ...]:
        return self.apply(lambda builder, *nodes: inline(graph, builder, nodes), values)

    def watched(self, value: RecordedValue) -> RecordedValue:
        if value.dtype not in FLOATS:
            raise DTypeError(f"a tensor of {value.dtype} has no gradient; expected a float type")
        return RecordedValue(value.held, watched=True)

    def detached(self, value: RecordedValue) -> RecordedValue:
        return RecordedValue(value.held) if value.recorded else value

    def is_recorded(self, value: RecordedValue) -> bool:
        return value.recorded

    def backward(
        self, value: RecordedValue, keep: bool, seed: RecordedValue | None = None
    ) -> Sequence[tuple[Device, RecordedValue, RecordedValue]]:
        if value.dtype not in FLOATS:
            raise DTypeError(f"backward: got a tensor of {value.dtype}, expected one of a float type")
        if not value.recorded:
            raise InputError(
                "backward: the tensor depends on none that asks for its gradient, so there are no gradients; write "
                "x = x.require_grad() (or sg.tensor(…, requires_grad=True)) before it is computed with, and for the parameters of a "
                "module model = model.to(device).map(sg.Tensor.require_grad)"
            )
        ops = _ops_below(value)
        locks = {self.lock, *(op.on.lock for op in ops)}
        with self.lock if len(locks) == 1 else nullcontext():  # who holds the locks of two devices may wait for ever
            return self._gradients(value, ops, seed, keep)

    def _gradients(
        self, value: RecordedValue, ops: Sequence[RecordedOp | RecordedMove], seed: RecordedValue | None, keep: bool
    ) -> Sequence[tuple[Device, RecordedValue, RecordedValue]]:
        one = self.computing(keep)
        first = seed or one.apply(lambda b: b.expand(b.const(1, value.dtype), shape=value.shape), ())[0]
        watched: dict[RecordedValue, RecordedValue] = {}
        places: dict[RecordedValue, Device] = {}
        parts: dict[Any, dict[int, RecordedValue]] = {}  # for an op, the gradient of each of its outputs

        def give(x: RecordedValue, g: RecordedValue, on: Autodiff) -> None:
            into, key = (watched, x) if x.origin is None else (parts.setdefault(x.origin, {}), x.index)
            into: dict[Any, RecordedValue]
            into[key] = on.computing(keep).apply(lambda b, u, v: b.add(u, v), [into[key], g])[0] if key in into else g
            if x.origin is None:
                places[x] = on

        give(value, first, self)
        for op in reversed(ops):
            seeds = parts.pop(op, {})
            wanted = [k for k, x in enumerate(op.inputs) if x.recorded and x.dtype in FLOATS]
            if not seeds or not wanted:
                continue
            for k, g in zip(wanted, op.gradients(seeds, wanted, keep), strict=True):
                give(op.inputs[k], g, op.on)
        return [(places[x], x, g) for x, g in watched.items()]


class _Unrecorded(Decorator):
    """Runs ops over recorded values without recording them."""

    def apply(self, build: Build, values: Sequence[RecordedValue]) -> tuple[RecordedValue, ...]:
        return tuple(map(RecordedValue, self.inner.apply(build, [v.held for v in values])))

    def run(self, graph: Graph, values: Sequence[RecordedValue]) -> tuple[RecordedValue, ...]:
        return tuple(map(RecordedValue, self.inner.run(graph, [v.held for v in values])))


def _ops_below(value: RecordedValue) -> list[RecordedOp | RecordedMove]:
    """The recorded ops on which a value depends, each after those that it depends on."""
    order: list[RecordedOp | RecordedMove] = []
    seen: set[RecordedOp | RecordedMove] = set()
    stack = [(value.origin, False)]
    while stack:
        op, ready = stack.pop()
        if op is None or (op in seen and not ready):
            continue
        if ready:
            order.append(op)
            continue
        seen.add(op)
        stack.append((op, True))
        stack.extend((x.origin, False) for x in op.inputs)
    return order


def _backward(op: RecordedOp, outputs: Sequence[int], wanted: Sequence[int]) -> Graph:
    """The Graph that computes, from the inputs of an op and the gradients of some outputs, those of the inputs `wanted`."""
    b = Builder()
    inputs = [leaf(x.shape, x.dtype, f"x{k}") for k, x in enumerate(op.inputs)]
    made = nodes_of(op.build(b, *inputs))
    of = [made[k] for k in outputs]
    seeds = [leaf(y.shape, y.dtype, f"g{k}") for k, y in zip(outputs, of, strict=True)]
    found = gradient(
        Graph(tuple(inputs), tuple(of), ("",) * len(of), b.size_nodes), b, seeds, [inputs[k] for k in wanted]
    )
    return Graph((*inputs, *seeds), tuple(found), tuple(f"d{k}" for k in wanted), b.size_nodes)
