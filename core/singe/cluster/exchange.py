"""How the workers of a RayStep exchange gradients: a table of the ways, and who can take which.

| way | the gradients pass | needs |
|---|---|---|
| nccl | from GPU to GPU: an all-reduce by torch.distributed | workers on NVIDIA GPUs, PyTorch with CUDA |
| gloo | between the hosts of the workers: an all-reduce by torch.distributed | PyTorch |
| objects | through Ray's store of objects, in pieces | |

"auto" takes the first that is for the workers' devices and that all workers can take: NCCL on GPUs, and elsewhere objects, which need
no PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, Protocol, get_args

from ..errors import DeviceError, InputError
from ..runtime.device import Device
from ..train.steps.batches import items_of
from ..train.steps.parallel import weights
from ..train.steps.step import Share

Way = Literal["auto", "objects", "nccl", "gloo"]
AUTO: Final = ("nccl", "objects")
"""What "auto" takes the first possible of."""
NVIDIA: Final = ("cuda", "cupy", "torch:cuda")
"""The beginnings of the names of devices that NCCL can reach."""
STOP_SECONDS: Final = 30.0
"""For a worker to answer that it has stopped an exchange."""
CONTROL: Final = "control"
"""The group of a worker's threads that answers while the worker waits for others."""


def checked_way(argument: Any) -> Way:
    if argument not in get_args(Way):
        raise InputError(
            f"RayWorkers: got exchange={argument!r:.60}, expected one of {', '.join(map(repr, get_args(Way)))}"
        )
    return argument


def refusal(way: str, device: Device) -> str:
    """Why a worker on a device cannot exchange in a way; "" if it can."""
    if way == "objects":
        return ""
    if way == "nccl" and not device.name.startswith(NVIDIA):
        return f"{device.name!r} is no NVIDIA GPU"
    try:
        return torch_group().refusal(way)
    except ImportError as e:
        return f"it needs PyTorch: pip install 'singe[torch]' ({e})"


def chosen_way(asked: Way, refusals: Callable[[str], Sequence[str]]) -> str:
    """The way that all workers take. refusals: of a way, why each of them cannot take it."""
    why: list[str] = []
    for way in AUTO if asked == "auto" else (asked,):
        why = [] if way == "objects" else [text for text in refusals(way) if text]
        if not why:
            return way
    raise DeviceError(
        f'exchange={asked!r}: {len(why)} of the workers cannot: {why[0]}; "auto" takes a way that is there'
    )


def torch_group() -> Any:
    """The module that needs PyTorch."""
    return import_module(".torch_group", __package__)


class Exchange(Protocol):
    """What the process of a RayStep does for the workers that it has at present."""

    def begin(self, parts: Sequence[Sequence[Any]]) -> tuple[list[Share], Sequence[Sequence[Any]]]:
        """The shares of some parts of a batch, without their gradients; and for each worker what it gets its update by. There may be
        fewer parts than workers."""
        ...

    def stop(self) -> None:
        """End what workers wait for, as one is lost or had an error."""
        ...


class ObjectExchange:
    """Each worker adds up one piece of all gradients, and then fetches the others' pieces, all through Ray's store."""

    def __init__(self, ray: Any, workers: Sequence[Any]) -> None:
        self._ray, self._workers = ray, tuple(workers)

    def begin(self, parts: Sequence[Sequence[Any]]) -> tuple[list[Share], Sequence[Sequence[Any]]]:
        count = len(self._workers)
        given = [
            worker.share.options(num_returns=count + 1).remote(count, *part)
            for worker, part in zip(self._workers, parts, strict=False)
        ]
        shares: list[Share] = self._ray.get([first for first, *_ in given])
        by = weights(shares)
        means = [
            worker.mean.remote(by, *pieces)
            for worker, pieces in zip(self._workers, zip(*(pieces for _, *pieces in given), strict=True), strict=True)
        ]
        return shares, [means] * count

    def stop(self) -> None:
        """Nobody waits for another."""


class GroupExchange:
    """The workers are members of a group, which reduces gradients where they are: NCCL or Gloo. A worker without a part of the
    batch takes part with zeros."""

    def __init__(self, ray: Any, workers: Sequence[Any], way: str, seconds: float) -> None:
        self._ray, self._workers = ray, tuple(workers)
        try:
            host, port = ray.get(workers[0].meet.remote(seconds))
            ray.get([w.join.remote(way, host, port, k, len(workers), seconds) for k, w in enumerate(workers)])
        except BaseException:
            self.stop()
            raise

    def begin(self, parts: Sequence[Sequence[Any]]) -> tuple[list[Share], Sequence[Sequence[Any]]]:
        items = [items_of(part) for part in parts] + [0] * (len(self._workers) - len(parts))
        given = [w.share_here.remote(*part) for w, part in zip(self._workers, parts, strict=False)]
        for worker, n in zip(self._workers, items, strict=True):
            worker.reduce.remote(n / sum(items))  # the worker's update, which comes after it, tells if it failed
        return self._ray.get(given), [()] * len(self._workers)

    def stop(self) -> None:
        stopped = [worker.stop.options(concurrency_group=CONTROL).remote() for worker in self._workers]
        self._ray.wait(stopped, num_returns=len(stopped), timeout=STOP_SECONDS)


def exchange_of(way: str, ray: Any, workers: Sequence[Any], seconds: float) -> Exchange:
    """What some workers do. seconds: for all to meet."""
    if way == "objects":
        return ObjectExchange(ray, workers)
    return GroupExchange(ray, workers, way, seconds)


def actor_options(asked: Way) -> Mapping[str, Any]:
    """What Ray must be told of a worker, beside where it is placed."""
    return {} if asked == "objects" else {"concurrency_groups": {CONTROL: 1}}
