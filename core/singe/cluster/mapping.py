"""map: the outputs of a model for all items of a dataset, computed by processes of a Ray cluster.

    for logits in sg.cluster.map(model, dataset, batch_size=256, workers=sg.cluster.RayWorkers(8)):
        …

The workers read the items themselves; this process sends them numbers of items and gets outputs. A batch whose worker is lost
is done again by another. With Ray Data, whose datasets are tables, use Predictor:

    table.map_batches(sg.cluster.Predictor, fn_constructor_args=(model,), concurrency=8, batch_format="numpy")
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..errors import InputError
from ..model.files import load
from ..model.model import Model
from ..nn import Module
from ..nn._module import with_parts
from ..runtime.decorators import Fusion
from ..runtime.devices import device as open_device
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor
from .engine import engine
from .placement import count_of, on_gpu, own_device
from .workers import RayWorkers, none_started


class Predictor:
    """A model that is called with batches: an array, a tuple of them in order, or a dict by name, as Ray Data
    has them (with one entry, the name does not matter).

    model: a Module, which is used in inference mode, or the path of a file for `sg.load`.
    """

    def __init__(self, model: Module | str | Path, device: str = "auto") -> None:
        self._call = load(model, device) if isinstance(model, (str, Path)) else _called(model, device)

    def __call__(self, batch: Any) -> Any:
        """Arrays, as the model returns them; of a dict, a dict, of which "output" is the result if there is only one."""
        if not isinstance(batch, dict):
            return self._call(*batch) if isinstance(batch, (tuple, list)) else self._call(batch)
        found = self._call(*batch.values()) if len(batch) == 1 else self._call(**batch)
        return found if isinstance(found, dict) else {"output": found}


def map(
    model: Module | str | Path,
    dataset: Any,
    *,
    batch_size: int = 64,
    workers: RayWorkers | None = None,
    device: str = "auto",
) -> Iterator[Any]:
    """The outputs batch by batch, in the order of the items.

    model: a Module, or the path of a file for `sg.load`, which each worker can read. dataset: a Dataset, or what `Dataset.of`
    takes; its items are what the model takes: one array, or a tuple of them. workers: by default one for each CPU of the cluster, or,
    where the device is a GPU and the cluster has some, one for each GPU.
    """
    if isinstance(model, Model):
        raise InputError(
            "map: got a compiled Model, which stays in its process; give the Module, or the path of the model's file"
        )
    if batch_size < 1:
        raise InputError(f"map: got batch_size={batch_size!r}, expected at least 1")
    return _mapped(model, Dataset.of(dataset), batch_size, workers, device)


def _mapped(model: Any, items: Dataset, size: int, workers: RayWorkers | None, device: str) -> Iterator[Any]:
    ray = engine()
    ends = range(0, len(items), size)
    each = workers or RayWorkers(max(1, (on_gpu(device) and count_of("GPU")) or count_of("CPU")))
    actor = ray.remote(max_restarts=-1, max_task_retries=-1, **each.placed(device))(_ItemReader)
    shared = ray.put((model, items))
    readers = [actor.remote(device) for _ in range(min(each.count, len(ends)))]
    if readers and not ray.wait([reader.there.remote() for reader in readers], timeout=each.patience)[0]:
        raise none_started(ray, each, device)
    pool = ray.util.ActorPool(readers)
    yield from pool.map(lambda reader, first: reader.batch.remote([shared], first, min(first + size, len(items))), ends)


class _ItemReader:
    """The actor: it reads its batches itself."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._found: tuple[Predictor, Dataset] | None = None

    def there(self) -> None:
        """An answer, for who waits until it has started."""

    def batch(self, shared: list[Any], first: int, last: int) -> Any:
        """The outputs of a batch. shared: a list with a reference to the model and the items, which are fetched once."""
        if self._found is None:
            model, items = engine().get(shared[0])
            self._found = Predictor(model, own_device(self._device)), items
        predict, items = self._found
        return predict(items.batch(np.arange(first, last)))


def _called(model: Module, device: str) -> Any:
    """A Module as a function of arrays; batches of one shape share a Program."""
    on = Fusion(open_device(device).eager)
    placed = model.eval().to(on)

    def call(*batch: Any, **named: Any) -> Any:
        given = [tensor(x, device=on) for x in batch]
        found = placed(*given, **{name: tensor(x, device=on) for name, x in named.items()})
        return with_parts(found, lambda part: part.numpy() if isinstance(part, Tensor) else part)

    return call
