"""Batches of a dataset, epoch by epoch, in an order that a seed decides, made ahead of time by threads.

The batches depend on the dataset, the seed and the epoch alone: not on how many workers there are, nor on which makes what.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import numpy as np

from ..awaitables import IN_PAGE
from ..errors import InputError
from ..runtime.traced import refuse_when_traced
from .dataset import Dataset
from .draws import Draws, as_seed, permutation

Transform: TypeAlias = Callable[[Any, Draws], Any]
"""A batch, and the random numbers of its items ↦ a batch."""
_THREADS: Final = "singe-loader"
"""What the names of workers begin with."""


class Loader:
    """Iterating over it gives the batches of one epoch; the next `for` those of the next epoch.

    dataset: a Dataset, or what `Dataset.of` takes. shuffle: a new order in every epoch, of the seed,
    which by default comes from the sequence that `sg.manual_seed` begins. drop_last: leave out
    a last batch that is not full. collate: makes a batch of a list of items; by default `dataset.batch` does. transform:
    changes a batch, with random numbers that belong to the seed, the epoch and the items (an `Augment`, for example).

    workers: threads that make batches ahead; 0: batches are made when they are asked for. prefetch: how many batches may
    be ahead, by default two for each worker. Python in a page has no threads: there any number of workers acts as 0.

    An error while a batch is made is raised where the batch is due, with notes that name the item and the batch. After it,
    or when a loop is left, no thread goes on.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        drop_last: bool = False,
        workers: int = 0,
        prefetch: int | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        transform: Transform | None = None,
    ) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if value is not None and (
                not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least
            ):
                raise InputError(f"Loader: got {name}={value!r:.40}, expected an integer from {least}")
        self.dataset: Final = Dataset.of(dataset)
        self.batch_size: Final = int(batch_size)
        self.shuffle: Final = shuffle
        self.seed = as_seed(seed)
        self._is_seeded: Final = seed is not None
        self.drop_last: Final = drop_last
        self.workers: Final = workers
        self.prefetch: Final = 2 * workers if prefetch is None else prefetch
        self._collate, self._transform = collate, transform
        self._epoch = self._batch = 0
        self._resumed = False
        self._latest: object = None

    def __len__(self) -> int:
        """The batches of an epoch."""
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __repr__(self) -> str:
        return f"Loader of {len(self)} batches of {self.batch_size} items: {self.dataset!r}"

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return self._epoch

    def state(self) -> dict[str, int]:
        """Where the latest iteration is: which batch comes next, and what `resume` compares. It can be written as JSON."""
        return {"epoch": self._epoch, "batch": self._batch} | self._identity()

    def resume(self, state: Mapping[str, int]) -> None:
        """The next iteration goes on where `state` was taken, to the end of that epoch."""
        known = self._identity()
        if not self._is_seeded and isinstance(state.get("seed"), int):
            known["seed"] = state["seed"]
        differing = [f"{k} {state.get(k)} there, {v} here" for k, v in known.items() if state.get(k) != v]
        if differing:
            raise InputError(
                f"resume: the state is of another loader: {', '.join(differing)}; expected one that a loader of the same settings gave"
            )
        epoch, batch = state.get("epoch"), state.get("batch")
        if not isinstance(epoch, int) or not isinstance(batch, int) or epoch < 0 or not 0 <= batch < max(len(self), 1):
            raise InputError(
                f"resume: got epoch {epoch!r:.40} and batch {batch!r:.40}, and an epoch has {len(self)} batches; expected a state that this loader gave"
            )
        self.seed, self._epoch, self._batch, self._resumed = known["seed"], epoch, batch, True

    def _identity(self) -> dict[str, int]:
        return {
            "items": len(self.dataset), "batch_size": self.batch_size, "seed": self.seed,
            "shuffle": int(self.shuffle), "drop_last": int(self.drop_last),
        }  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        """An epoch that was left in its middle is not repeated: the next one begins, unless `resume` was called."""
        refuse_when_traced(
            "an iteration over a Loader", "take the batch outside of the function, and pass it as an argument"
        )
        if self._batch and not self._resumed:
            self._epoch, self._batch = self._epoch + 1, 0
        self._latest = mine = object()
        return self._epoch_from(self._epoch, self._batch, mine)

    def _epoch_from(self, epoch: int, start: int, mine: object) -> Iterator[Any]:
        last = len(self) - 1
        for number, batch in enumerate(self._made(epoch, start), start):
            if self._latest is mine:
                self._resumed = False
                self._epoch, self._batch = (epoch, number + 1) if number < last else (epoch + 1, 0)
            yield batch

    def _made(self, epoch: int, start: int) -> Iterator[Any]:
        order = permutation(len(self.dataset), self.seed, epoch) if self.shuffle else np.arange(len(self.dataset))
        numbers = range(start, len(self))
        if not self.workers or IN_PAGE:
            for number in numbers:
                yield self._make(order, epoch, number)
            return
        pending: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(self.workers, _THREADS)
        try:
            for number in numbers:
                pending.append(pool.submit(self._make, order, epoch, number))
                if len(pending) > self.prefetch:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            # The garbage collector may end an iteration in any thread, also in one that would wait for itself.
            outside = not threading.current_thread().name.startswith(_THREADS)
            pool.shutdown(wait=outside, cancel_futures=True)

    def _make(self, order: np.ndarray, epoch: int, number: int) -> Any:
        indices = order[number * self.batch_size : (number + 1) * self.batch_size]
        try:
            made = self._collate(self.dataset.items(indices)) if self._collate else self.dataset.batch(indices)
            return self._transform(made, Draws(self.seed, indices, epoch)) if self._transform else made
        except Exception as e:
            e.add_note(f"in batch {number} of epoch {epoch}, which has the items {_listed(indices)}")
            raise


def _listed(indices: Sequence[int] | np.ndarray) -> str:
    shown = ", ".join(str(int(i)) for i in indices[:8])
    return shown + (", …" if len(indices) > 8 else "")
