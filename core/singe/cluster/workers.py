"""RayWorkers: processes of a Ray cluster that train together, on this machine or on many.

Each worker has a replica of the states and computes the gradients of a part of each batch. The workers average their gradients
among themselves (exchange.py has the ways), so a worker receives and sends at most twice the size of the gradients in a step,
however many workers there are (docs/cluster.md has measurements). A step returns its loss once all workers have theirs: while
they exchange gradients and update weights, the next part of a batch already comes to them.

When a worker is lost, the others do its step again without it, and Ray starts another, which joins when it is ready. No step is
lost, and the batches stay the same. When all are lost at once, a DeviceLost is raised; a Learner with a folder then goes on from
its last checkpoint, on new workers.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import DeviceError, DeviceLost, InputError
from ..late_dataclass import dataclass
from ..nn import Module
from ..runtime.decorators import Fusion
from ..runtime.random_keys import new_seed
from ..tensors.tensor import Tensor
from ..train.steps.batches import mapped
from ..train.steps.objective import Loss
from ..train.steps.optimizers import check_optimizer
from ..train.steps.parallel import average_buffers, joined_values, split
from ..train.steps.step import Share, TrainStep, loss_and_extras
from .engine import engine, is_lost
from .exchange import Exchange, Way, actor_options, checked_way, chosen_way, exchange_of
from .placement import placed
from .worker import Worker

ATTEMPTS: Final = 3
"""How often a step is done again before the loss of workers is taken for a fault of the step: too little memory, for example."""


@dataclass(frozen=True)
class RayWorkers:
    """Processes of a Ray cluster that train together, on this machine or on many; each computes the gradients of a part of a batch.

        learner = sg.train.Learner(model, optimizer, loss, device="wasm", workers=sg.cluster.RayWorkers(4))

    When a worker is lost, the others do its step again, and Ray starts another.

    count: how many workers. options: how Ray places each of them, as `options` of its actors: {"num_cpus": 4, "num_gpus": 0.5}; by
    default one CPU, and where the device is a GPU and the cluster has some, one GPU, which is then the worker's only one: number 0.
    patience: for how many seconds training waits for all workers to start; then those that are ready begin, and the others join
    later. exchange: how gradients are averaged: "nccl" from GPU to GPU, "gloo" between hosts, both by PyTorch, "objects" through Ray's
    store; "auto" is "nccl" on NVIDIA GPUs where PyTorch is installed, otherwise "objects". `step.exchange` tells.
    """

    count: int
    options: Mapping[str, Any] = field(default_factory=dict)
    patience: float = 120.0
    exchange: Way = "auto"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"RayWorkers: got count={self.count!r}, expected at least 1")
        checked_way(self.exchange)

    def placed(self, device: str = "cpu") -> dict[str, Any]:
        """The options of each worker's actor, for a device."""
        return placed(device, self.options)

    def __str__(self) -> str:
        return f"{self.count} worker{'s' * (self.count > 1)} of Ray"

    def step(self, model: Module, optimizer: Any, loss: Loss, *, device: str = "auto", **settings: Any) -> RayStep:
        """A TrainStep over the workers, for a loop of one's own; arguments and results are those of TrainStep. Without a seed it
        has one of the sequence that `sg.manual_seed` begins, which all workers keep: neither that nor a block `nn.drawing` changes it
        later. A fault of the workers' updates, such as too little memory, is raised by the next call."""
        check_optimizer(optimizer, settings.get("clip"), settings.get("accumulate", 1))
        settings["seed"] = new_seed() if settings.get("seed") is None else settings["seed"]  # the same for all workers
        skips = settings.get("nonfinite") == "skip"
        return RayStep(self, functools.partial(TrainStep, model, optimizer, loss, **settings), device, skips)


def none_started(ray: Any, workers: RayWorkers, device: str) -> DeviceError:
    return DeviceError(
        f"none of {workers} could start within {workers.patience:g} s: the cluster has {ray.cluster_resources()}, and each "
        f"worker asks for {workers.placed(device)}; what else runs there may hold it, as the workers of a RayStep do until its close()"
    )


class _Begun(NamedTuple):
    """A step whose loss was returned. skipped: whether each worker skipped it, once its weights are updated; None: it must be done again."""

    batch: Sequence[Any]
    """With arrays of its own, as the caller's may be overwritten once the loss is returned."""
    skipped: Sequence[Any] | None


def _kept(part: Any) -> Any:
    return part if isinstance(part, (Module, Tensor)) else np.array(part)


class RayStep:
    """What `RayWorkers.step` gives. The workers end with it, or with `close`."""

    def __init__(self, workers: RayWorkers, make: Callable[..., TrainStep], device: str, skips: bool) -> None:
        """skips: whether steps may change no weight."""
        self._ray = engine()
        self._skips: Final = skips
        self._wanted: Final = workers
        self._device: Final = device
        self._errors: Any = self._ray.exceptions.RayError
        self._actor = self._ray.remote(**workers.placed(device), **actor_options(workers.exchange))(Worker)
        self._here = make
        self._make = self._ray.put(make)
        self._started = 0
        self._done = 0
        """How many steps all workers have done, as far as is known."""
        self._begun: _Begun | None = None
        """The step after these."""
        self._skipped = 0
        self._workers: list[Any] = []
        self._coming: list[tuple[Any, Any]] = []
        """Workers that start, and what is there when they are ready."""
        self._kept: dict[str, np.ndarray] | None = None
        """The states, after `close`."""
        self._exchange: Exchange | None = None
        """That of the workers that did the last step; None, if others are to do the next."""
        self.exchange = ""
        """How the workers exchange gradients: "nccl", "gloo" or "objects"."""
        self._start(workers.count)
        self._begin()

    def __call__(self, *batch: Any) -> Any:
        """Train on a batch, of which each worker gets a part."""
        if self._kept is not None:
            self.resume(self._kept)
        shares: list[Share] = []
        for attempt in range(ATTEMPTS + 1):
            if self._coming or self._exchange is None:
                self._settle()
                self._welcome()
            try:
                self._do(batch, shares)
                break
            except self._errors as e:
                self._survive_or_raise(e, attempt)
        if not all(share.finite for share in shares):
            self._settle()  # which may raise
        return loss_and_extras(joined_values(shares))

    @property
    def skipped(self) -> int:
        """How many steps changed no weight, as those of a TrainStep."""
        if self._skips:
            self._settle()
        return self._skipped

    def __repr__(self) -> str:
        return f"<RayStep of {self._wanted} on {self._device}: present: {self.workers}, exchange: {self.exchange}>"

    def evaluate(self, *batch: Any) -> Any:
        """The loss on a batch in inference mode, by the first worker, as that of a TrainStep."""
        if self._kept is not None:
            return self._copied_here().evaluate(*batch)
        return self._ask(lambda worker: worker.evaluate.remote(*batch))

    def evaluations(self, batches: Iterable[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], Any]]:
        """(batch, what `evaluate` gives for it) of some batches, in their order: each is evaluated by one of the workers, while the
        others have other ones. That of a worker which is lost is done again by another."""
        self._settle()
        begun = deque[tuple[Sequence[Any], Any]]()
        for k, batch in enumerate(batches):
            if len(begun) >= self.workers:
                yield self._ended(*begun.popleft())
            begun.append((batch, self._workers[k % self.workers].evaluate.remote(*batch)))
        while begun:
            yield self._ended(*begun.popleft())

    def _ended(self, batch: Sequence[Any], there: Any) -> tuple[Sequence[Any], Any]:
        found = self._answer(there)
        return batch, self.evaluate(*batch) if found is None else found

    @property
    def model(self) -> Module:
        """The model with its present weights, in inference mode."""
        if self._kept is not None:
            return self._copied_here().model
        return self._ask(lambda worker: worker.model.remote())

    def lent(self, on: Fusion) -> Module:
        """The model on a device of this process."""
        return self.model.to(on)

    def state(self) -> dict[str, np.ndarray]:
        """As that of a TrainStep, which can go on from it."""
        found = self._ask(lambda worker: worker.state.remote()) if self._kept is None else self._kept
        return {name: np.array(x) for name, x in found.items()}

    def close(self) -> None:
        """End the workers, so that others may have what they took. What was learned stays here; another step starts others."""
        if not self._workers:
            return
        try:
            self._kept = self.state()
        finally:
            for worker in [*self._workers, *(worker for worker, _ in self._coming)]:
                self._ray.kill(worker)
            self._workers, self._coming = [], []

    def resume(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state`; on new workers, if all were lost."""
        if not self._workers:
            self._start(self._wanted.count - len(self._coming))
            self._begin()
        self._settle()
        held = self._ray.put(dict(state))
        self._ray.get([worker.resume.remote(held, self._done) for worker in self._workers])
        self._kept = None

    def averaged(self) -> Module:
        """As that of a TrainStep."""
        return self._copied_here().averaged()

    def _copied_here(self) -> TrainStep:
        """A step in this process with the present states."""
        step = self._here(device="numpy")
        step.resume(self.state())
        return step

    def observe(self, value: float) -> float:
        """As that of a TrainStep."""
        here = self._copied_here()
        scale = here.observe(value)
        self.resume(here.state())
        return scale

    @property
    def workers(self) -> int:
        """How many workers train at present."""
        return len(self._workers)

    # --- a step ---

    def _do(self, batch: Sequence[Any], shares: list[Share]) -> None:
        """A step of the present workers, who may still update their weights afterwards; shares: is filled before a weight changes."""
        exchange = self._agreed()
        try:
            shares[:], means = exchange.begin(split(batch, len(self._workers)))
            self._end()  # a worker does what it is asked in order
            buffers, loss = average_buffers(shares), float(joined_values(shares)["loss"])
            skipped = [
                worker.update.remote(self._done + 1, buffers, loss, *mean)
                for worker, mean in zip(self._workers, means, strict=True)
            ]
            self._begun = _Begun([mapped(_kept, part) for part in batch], skipped)
        except BaseException:
            self._exchange = None
            exchange.stop()
            raise

    def _end(self) -> None:
        """Wait until the step that was begun is done."""
        if self._begun is not None and self._begun.skipped is not None:
            try:
                skipped = self._ray.get(list(self._begun.skipped))
            except self._errors as e:
                if not is_lost(e):
                    self._begun = None
                raise
            self._skipped += any(skipped)
            self._begun = None
            self._done += 1

    def _settle(self) -> None:
        """The same; where workers are lost, those that are left do it again."""
        for attempt in range(ATTEMPTS + 1):
            if self._begun is None:
                return
            try:
                if self._begun.skipped is None:
                    self._do(self._begun.batch, [])
                self._end()
            except self._errors as e:
                self._survive_or_raise(e, attempt)

    def _survive_or_raise(self, e: BaseException, attempt: int) -> None:
        """Go on after an error that is the loss of workers."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.stop()
        if not is_lost(e) or attempt == ATTEMPTS:
            raise e
        steps = self._done + (self._begun is not None)
        self._survive(e, steps + 1)
        if self._begun is not None:
            self._begun = None if self._done == steps else self._begun._replace(skipped=None)

    def _agreed(self) -> Exchange:
        """The exchange of the present workers."""
        if self._exchange is None:
            self._choose()
            self._exchange = exchange_of(self.exchange, self._ray, self._workers, self._wanted.patience)
        return self._exchange

    def _choose(self) -> None:
        """Choose the way of the present workers."""
        ask = lambda way: self._ray.get([worker.refusal.remote(way) for worker in self._workers])
        self.exchange = chosen_way(self._wanted.exchange, ask)

    # --- workers that come and go ---

    def _start(self, count: int) -> None:
        for _ in range(count):
            worker = self._actor.remote(self._make, self._started, self._device)
            self._started += 1
            self._coming.append((worker, worker.done.remote()))

    def _begin(self) -> None:
        """Wait for the first workers."""
        ready = [there for _, there in self._coming]
        self._ray.wait(ready, num_returns=len(ready), timeout=self._wanted.patience)
        self._welcome()
        if not self._workers:
            raise none_started(self._ray, self._wanted, self._device)
        self._choose()

    def _welcome(self) -> None:
        """Let those take part that are ready now."""
        if not self._coming:
            return
        ready, _ = self._ray.wait([there for _, there in self._coming], num_returns=len(self._coming), timeout=0)
        for worker, there in [c for c in self._coming if c[1] in ready]:
            self._coming.remove((worker, there))
            if self._answer(there) is not None and (not self._workers or self._caught_up(worker)):
                self._workers.append(worker)
                self._exchange = None

    def _survive(self, e: BaseException, step: int) -> None:
        """After an error in this step, bring the workers that are left to the same step, and start others for those that are not."""
        alive: list[tuple[int, Any]] = []
        limit = None if self.exchange == "objects" else self._wanted.patience  # one may hang in what PyTorch does
        for worker, there in [(w, w.done.remote()) for w in self._workers]:
            done = self._answer(there, limit)
            if done is None:
                self._ray.kill(worker)
            else:
                alive.append((done, worker))
        if not alive:
            self._workers, self._begun = [], None
            raise DeviceLost(f"all of {self._wanted} were lost in step {step}: {str(e).splitlines()[0]}") from e
        self._done, first = max(alive, key=lambda each: each[0])
        self._workers = [first]
        for done, worker in alive:
            if worker is not first and (done == self._done or self._caught_up(worker)):
                self._workers.append(worker)
        self._start(self._wanted.count - len(self._workers) - len(self._coming))

    def _caught_up(self, worker: Any) -> bool:
        """Whether a worker has the states of the first one now; not, if one of the two is lost: the next step finds out which."""
        return self._answer(worker.resume.remote(self._workers[0].state.remote(), self._done)) is not None

    def _answer(self, there: Any, limit: float | None = None) -> Any:
        """What a worker gives; None, if it is lost, or does not answer within so many seconds. An error of what it runs is raised."""
        try:
            return self._ray.get(there, timeout=limit)
        except self._errors as e:
            if not is_lost(e):
                raise
            return None

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        """The answer of the first worker that has one."""
        self._settle()
        for worker in self._workers:
            found = self._answer(question(worker))
            if found is not None:
                return found
        raise DeviceLost(f"all of {self._wanted} were lost after step {self._done}")
