"""DataParallel: a TrainStep over several devices of this process.

Each device holds a replica of the states, and computes the gradients of a part of the batch in a thread of its own. Their mean,
weighted by the items of the parts, updates all replicas, so the weights are those of one device with the whole batch, but for
rounding. That holds for a loss that is the mean over the items of its batch. Two kinds of layers see their part only: batch
norms normalise by it, and the running statistics are the mean of the parts' own; layers that draw, draw other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np

from ...awaitables import IN_PAGE
from ...errors import DeviceError, InputError, ShapeError
from ...nn import Module
from ...runtime.decorators import Fusion, Router
from ...runtime.device import Device
from ...runtime.devices import separate
from ...runtime.random_keys import Words, begun, checked_seed, new_seed
from ...shapes import show
from ...tensors.default_keys import taken
from ...tensors.tensor import Tensor
from .batches import mapped, rows_in
from .nonfinite import Nonfinite
from .objective import Loss
from .step import Precision, Share, TrainStep, loss_and_extras


class AnyStep(Protocol):
    """What trains on a batch: a TrainStep, or several that work together."""

    def __call__(self, *batch: Any) -> Any: ...

    def evaluate(self, *batch: Any) -> Any: ...

    @property
    def skipped(self) -> int: ...

    @property
    def model(self) -> Module: ...

    def averaged(self) -> Module: ...

    def lent(self, on: Fusion) -> Module: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def resume(self, state: Mapping[str, np.ndarray]) -> None: ...

    def observe(self, value: float) -> float: ...


class RemoteStep(AnyStep, Protocol):
    """A Step that runs elsewhere."""

    @property
    def exchange(self) -> str:
        """How those that work together exchange gradients, in a word."""
        ...

    @property
    def workers(self) -> int:
        """How many work at present."""
        ...

    def evaluations(self, batches: Iterable[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], Any]]:
        """(batch, what `evaluate` gives for it) of some batches, in their order, several at the same time."""
        ...

    def close(self) -> None:
        """End what runs elsewhere. What was learned stays, and another step starts it again."""
        ...


class Workers(Protocol):
    """Where else steps can run: singe.cluster.RayWorkers."""

    def step(self, model: Module, optimizer: Any, loss: Loss, *, device: str, **settings: Any) -> RemoteStep:
        """What trains there. settings: those of a TrainStep. When it raises a DeviceLost, it goes on after `resume`."""
        ...


class DataParallel:
    """A TrainStep over several devices of this process, each of which computes the gradients of a part of the batch in a thread
    of its own; arguments and results are those of TrainStep.

        step = sg.train.DataParallel(model, sg.optim.AdamW(1e-3), loss, device=["webgpu", "wasm"])
        value = step(x, y)

    Their mean updates the weights of all, as on one device for a loss that is the mean over the items of its batch; batch norms
    normalise by each part. device: the devices. A name that comes again is another device of that backend: ["wasm", "wasm"]
    computes on two cores.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        loss: Loss,
        *,
        device: Sequence[str | Device],
        clip: float | None = None,
        accumulate: int = 1,
        seed: int | None = None,
        precision: Precision = "float32",
        nonfinite: Nonfinite = "ignore",
        training: bool = True,
    ) -> None:
        if IN_PAGE:
            raise DeviceError("several devices need threads, which Python in a page does not have; give one device")
        if isinstance(device, str) or not device:
            raise InputError(f"DataParallel: got device={device!r:.60}, expected a list of devices")
        self.devices: Final = separate(device)
        self._steps: Final = [
            TrainStep(
                model, optimizer, loss, device=on, clip=clip, accumulate=accumulate, seed=seed, precision=precision,
                nonfinite=nonfinite, training=training, replica=k,
            )
            for k, on in enumerate(self.devices)
        ]  # fmt: skip
        for step in self._steps[1:]:  # which have one model
            step._trace_in_turn(self._steps[0])
        self._follows = seed is None
        """Whether each step takes a key of the shared sequence, or of the block around it."""
        self._threads: Final = ThreadPoolExecutor(len(self._steps), "singe-replica")

    def __call__(self, *batch: Any) -> Any:
        """Train on a batch, of which each device gets a part."""
        parts = split(batch, len(self._steps))
        if self._follows:
            self._begin(taken(1))
        shares = self._at_once(lambda step, part: step.share(*part), self._steps, parts)
        gradients, buffers = average(shares)
        found = joined_values(shares)
        self._at_once(lambda step: step.update(gradients, buffers, float(found["loss"])), self._steps)
        return loss_and_extras(found)

    def evaluate(self, *batch: Any) -> Any:
        """The loss on a batch in inference mode, on the first device, as that of a TrainStep."""
        return self._steps[0].evaluate(*batch)

    @property
    def skipped(self) -> int:
        """How many steps changed no weight, as that of a TrainStep."""
        return self._steps[0].skipped

    @property
    def model(self) -> Module:
        """The model with its present weights, in inference mode."""
        return self._steps[0].model

    def averaged(self) -> Module:
        """As that of a TrainStep."""
        return self._steps[0].averaged()

    def lent(self, on: Fusion) -> Module:
        """The model on a device around the first one, as that of a TrainStep."""
        return self._steps[0].lent(on)

    def seed(self, seed: int) -> None:
        """As that of a TrainStep; each replica draws other numbers."""
        self._begin(begun(checked_seed(seed, "DataParallel")))
        self._follows = False

    def _begin(self, sequence: Words) -> None:
        for step in self._steps:
            step._begin(sequence)

    def state(self) -> dict[str, np.ndarray]:
        """As that of a TrainStep, which can go on from it."""
        if self._follows:
            self.seed(new_seed())
        return self._steps[0].state()

    def resume(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state`."""
        self._follows = False
        for step in self._steps:
            step.resume(state)

    def observe(self, value: float) -> float:
        """As that of a TrainStep."""
        scale, *_ = [step.observe(value) for step in self._steps]
        return scale

    def _at_once(self, function: Callable[..., Any], *each: Sequence[Any]) -> list[Any]:
        """The results of a function for each of some replicas, at the same time; an error is raised when all have ended."""
        started = [self._threads.submit(function, *given) for given in zip(*each, strict=False)]
        for one in started:
            one.exception()
        return [one.result() for one in started]


def step_over(
    devices: Sequence[Device] | Router,
    workers: Workers | None,
    model: Module,
    optimizer: Any,
    loss: Loss,
    **settings: Any,
) -> tuple[AnyStep, RemoteStep | None]:
    """The step that a Learner takes on one device, on several, or with workers; and again, if it runs elsewhere. A Router: each of
    its devices computes the parts of the model that are on it."""
    if isinstance(devices, Router):
        return TrainStep(model, optimizer, loss, device=devices, **settings), None
    if workers is not None:
        remote = workers.step(model, optimizer, loss, device=devices[0].name, **settings)
        return remote, remote
    if len(devices) > 1:
        return DataParallel(model, optimizer, loss, device=devices, **settings), None
    return TrainStep(model, optimizer, loss, device=devices[0], **settings), None


def split(batch: Sequence[Any], count: int) -> list[list[Any]]:
    """At most `count` parts of a batch, none of them empty, as equal as can be. Each has the Modules of the batch."""
    given = [mapped(_array, part) for part in batch]
    rows = [x for part in given for x in rows_in(part)]
    counts = {len(x) if x.ndim else 0 for x in rows}
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(show(x.shape) for x in rows) or "nothing"
        raise ShapeError(
            f"a batch for several devices has the shapes {shapes}; expected as many items in each of its parts"
        )
    (items,) = counts
    ends = [int(end) for end in np.linspace(0, items, min(count, items) + 1)]
    return [[mapped(partial(_cut, low, high), part) for part in given] for low, high in pairwise(ends)]


def _array(part: Any) -> Any:
    return part if isinstance(part, Module) else part.numpy() if isinstance(part, Tensor) else np.asarray(part)


def _cut(low: int, high: int, part: Any) -> Any:
    return part if isinstance(part, Module) else part[low:high]


def average(shares: Sequence[Share]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The gradients and the buffers of all shares together, each weighted by its items."""
    return mean([np.asarray(s.gradients) for s in shares], weights(shares)), average_buffers(shares)


def average_buffers(shares: Sequence[Share]) -> dict[str, np.ndarray]:
    """The buffers of all shares together. Those that are no floats are equal in all."""
    first = shares[0].buffers
    by = weights(shares)
    return {n: mean([s.buffers[n] for s in shares], by) if x.dtype.kind == "f" else x for n, x in first.items()}


def weights(shares: Sequence[Share]) -> list[float]:
    """How much each share counts."""
    items = sum(s.items for s in shares)
    return [s.items / items for s in shares]


def mean(arrays: Sequence[np.ndarray], by: Sequence[float]) -> np.ndarray:
    """The weighted mean of arrays; the only one as it is."""
    if len(arrays) == 1:
        return arrays[0]
    with np.errstate(over="ignore", invalid="ignore"):  # of a step in float16 that is skipped
        total = arrays[0] * arrays[0].dtype.type(by[0])
        for x, weight in zip(arrays[1:], by[1:], strict=True):
            total += x * x.dtype.type(weight)
    return total


def joined_values(shares: Sequence[Share]) -> dict[str, np.ndarray]:
    """The values of the shares, as one batch would have them: means of numbers, and arrays with a row for each item joined."""
    found: dict[str, np.ndarray] = {}
    by = weights(shares)
    for name, first in shares[0].values.items():
        values = [s.values[name] for s in shares]
        if any(v.shape[:1] != (s.items,) for v, s in zip(values, shares, strict=True)) and first.ndim:
            raise ShapeError(
                f"the loss function returns {name!r} of shape {show(first.shape)} for a part of {shares[0].items} items; over several "
                "devices it can return numbers, and arrays with a row for each item"
            )
        dtype = first.dtype if first.dtype.kind == "f" else np.float64  # a mean of integers is none
        found[name] = (
            np.concatenate(values) if first.ndim else np.asarray(np.dot(by, [float(v) for v in values]), dtype)
        )
    return found
