"""Router: several devices under one name, between which tensors are moved.

A Router has no values of its own: `router[i]` is a device like any other, an op runs where its operands are, and `x.to(router[i])`
moves a tensor. Around a Router, a decorator is a Router of such decorators (decorator.py): `Autodiff(Router(a, b))[1]` is an
`Autodiff` of b, so that gradients go back through moves by the rule of Autodiff alone.

With `fallback=True` a device inside is a WithFallback, which hands on what its device cannot do.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...awaitables import resolve
from ...errors import CompileError, DeviceError, DeviceLost, InputError, UnsupportedOp
from ...graph import Builder, Graph, leaf
from ..device import Build, Device, nodes_of
from ..devices import device
from ..memory.settings import Memory
from ..memory.usage import MemoryUse, together
from .decorator import Decorator

UNABLE: Final = (CompileError, UnsupportedOp, DeviceError)
"""The errors of a device that cannot do what it was asked to; others are of the caller, and would come on each device."""

_log: Final = logging.getLogger("singe")


class Router(Decorator):
    """Several devices, which are given or named, as one.

        device = sg.Router("webgpu", "numpy")
        x = sg.tensor(array, device=device[0])
        y = x.to(device[1])                       # moves it; gradients go back through moves

    A tensor lives on one of the devices, an op runs where its operands are, and nothing moves by itself. Where one device is
    expected, a Router is the first. sg.Autodiff(sg.Fusion(router))[1] is such a device around the second.

    fallback: an op that a device cannot do is done by the next one that can, and its result is moved back; describe() says
    which ops these were. Programs of models run on their device alone, and so does what fails only when it is read.
    """

    def __new__(cls, *devices: Device | str, fallback: bool = False) -> Router:
        return object.__new__(cls)

    def __init__(self, *devices: Device | str, fallback: bool = False) -> None:
        given = [one for x in devices for one in (x if isinstance(x, Router) else (device(x),))]
        if not given:
            raise InputError('Router: got no devices, expected some, as in sg.Router("webgpu", "numpy")')
        self._given: Final = tuple(given)
        self._fallback: Final = fallback
        self._devices: Final[tuple[Device, ...]] = (
            tuple(WithFallback(one, given[k + 1 :]) for k, one in enumerate(given)) if fallback else self._given
        )
        super().__init__(self._devices[0])

    @property
    def first(self) -> Device:
        return self._devices[0]

    @property
    def label(self) -> str:
        return f"router({', '.join(one.label for one in self._devices)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._given, self._fallback)

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def __getitem__(self, number: int) -> Device:
        try:
            return self._devices[operator.index(number)]
        except (IndexError, TypeError):
            there = ", ".join(f"[{k}] {one!r}" for k, one in enumerate(self._devices))
            raise InputError(f"Router: got the number {number!r:.40} of a device; there are {there}") from None

    def synchronize(self) -> None:
        for one in self._devices:
            one.synchronize()

    def describe(self) -> Mapping[str, Any]:
        """Of each device, by its number and name, what it says of itself."""
        return {f"{k} {one.name}": one.describe() for k, one in enumerate(self._devices)}

    def memory(self) -> MemoryUse:
        """The sums over the devices, each of which counts once; `router[k].memory()` is that of one."""
        first = {one.eager: k for k, one in reversed(list(enumerate(self._devices)))}
        return together({f"{k} {one.name}": one.memory() for one, k in sorted(first.items(), key=lambda item: item[1])})

    def clean(self) -> None:
        for one in self._devices:
            one.clean()

    def reset_peak(self) -> None:
        for one in self._devices:
            one.reset_peak()

    def configure(self, memory: Memory) -> None:
        for one in self._devices:
            one.configure(memory)


def _made(devices: Sequence[Device], fallback: bool) -> Router:
    """The function that unpickling calls."""
    return Router(*devices, fallback=fallback)


class WithFallback(Decorator):
    """A device, and those to which an op goes that it cannot do: operands are moved there, and results back."""

    def __init__(self, inner: Device | str, others: Sequence[Device]) -> None:
        super().__init__(inner)
        self._others: Final = tuple(others)
        self._fallen: Final[dict[str, str]] = {}

    @property
    def label(self) -> str:
        return " else ".join(one.label for one in (self.inner, *self._others))

    def __reduce__(self) -> tuple[Any, ...]:
        return WithFallback, (self.inner, self._others)

    def import_value(self, value: Any, source: Device) -> Any:
        return value if source is self.inner else super().import_value(value, source)

    def receive(self, value: Any, source: Device) -> Any:
        return value if source is self.inner else super().receive(value, source)

    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        def ops() -> set[str]:
            builder = Builder()
            nodes_of(build(builder, *(leaf(v.shape, v.dtype, f"x{k}") for k, v in enumerate(values))))
            return {n.op for n in builder.made_since(0) if n.row is not None}

        return self._done(lambda on, held: on.apply(build, held), values, ops)

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        return self._done(lambda on, held: on.run(graph, held), values, lambda: {n.op for n in graph.nodes if n.row})

    def _done(
        self,
        work: Callable[[Device, Sequence[Any]], tuple[Any, ...]],
        values: Sequence[Any],
        ops: Callable[[], set[str]],
    ) -> tuple[Any, ...]:
        """What `work` gives on the first device that can do it. ops: the names of what it computes."""
        try:
            return work(self.inner, values)
        except DeviceLost:
            raise
        except UNABLE as e:
            for other in self._others:
                try:
                    found = work(other, [_moved(v, self.inner, other) for v in values])
                except UNABLE:
                    continue
                self._tell(ops(), other, e)
                return tuple(_moved(v, other, self.inner) for v in found)
            raise

    def _tell(self, ops: set[str], other: Device, why: Exception) -> None:
        if new := sorted(ops - self._fallen.keys()):
            _log.warning("%s cannot do %s, which runs on %s: %s", self.inner.label, ", ".join(new), other.label, why)
            self._fallen.update(dict.fromkeys(new, other.label))

    def describe(self) -> Mapping[str, Any]:
        """What the device says of itself, and the ops that ran elsewhere, with where."""
        return {**self.inner.describe(), "fallback": dict(self._fallen)}


def _moved(value: Any, source: Device, target: Device) -> Any:
    return resolve(target.receive(value, source), "a Router without fallback")
