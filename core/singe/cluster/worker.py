"""Worker: one replica of a RayStep, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import DeviceError
from ..nn import Module
from ..tensors.functions.creation import from_dlpack
from ..tensors.tensor import Tensor
from ..train.steps.parallel import mean
from ..train.steps.step import Share, TrainStep
from .engine import PeerLost, engine
from .exchange import refusal, torch_group
from .placement import own_device

NONE: Final = np.empty(0, np.float32)
"""In place of the gradients of a Share that goes without them."""


class Worker:
    """The actor. Its gradients go as pieces, by `share` and `mean`, or they stay here, for a group's `reduce`."""

    def __init__(self, make: Callable[..., TrainStep], number: int, device: str) -> None:
        self._step = make(replica=number, device=own_device(device))
        self._done = 0
        self._store: Any = None
        self._group: Any = None
        self._gradients: Any = None
        """Of the last share that stayed here."""
        self._mean: Any = None
        """Of the whole group, as a tensor of PyTorch."""

    def done(self) -> int:
        """How many steps it has done."""
        return self._done

    # --- by pieces ---

    def share(self, pieces: int, *batch: Any) -> tuple[Any, ...]:
        """Its Share without the gradients, and these in as many pieces."""
        found = self._step.share(*batch)
        return _without(found), *np.array_split(np.asarray(found.gradients), pieces)

    def mean(self, by: Sequence[float], *pieces: np.ndarray) -> np.ndarray:
        """The mean of the same piece of all shares."""
        return mean(pieces, by)

    # --- by a group ---

    def refusal(self, way: str) -> str:
        """Why it cannot exchange in a way; "" if it can."""
        return refusal(way, self._step.device)

    def meet(self, seconds: float) -> tuple[str, int]:
        """The address where a new group meets."""
        host = engine().util.get_node_ip_address()
        self._store, port = torch_group().meeting(host, seconds)
        return host, port

    def join(self, way: str, host: str, port: int, rank: int, size: int, seconds: float) -> None:
        """Become a member of a group, and leave the one before."""
        self._group = torch_group().TorchGroup(way)
        self._group.join(host, port, rank, size, seconds)

    def share_here(self, *batch: Any) -> Share:
        """Its Share without the gradients, which stay: on the device, where others can use its memory."""
        self._gradients = None
        found = self._step.share(*batch, on_device=self._step.device.eager.shares)
        self._gradients = found.gradients
        return _without(found)

    def reduce(self, weight: float) -> None:
        """Take part in the mean of all gradients, with this weight; 0: it has none."""
        gradients, self._gradients, self._mean = self._gradients, None, None
        if self._group is None:
            raise PeerLost("the worker is in no group")
        if weight and gradients is None:
            raise DeviceError("the worker has no gradients, as its part of the step failed")
        self._mean = self._group.mean(gradients, weight, self._step.gradient_count)

    def stop(self) -> None:
        """End what it waits for; called beside other methods."""
        if self._group is not None:
            self._group.stop()

    # --- by either ---

    def update(self, done: int, buffers: Mapping[str, np.ndarray], loss: float, *pieces: np.ndarray) -> bool:
        """The second half of a step: whether it was skipped. Without pieces of the means a group has reduced them."""
        before = self._step.skipped
        self._step.update(np.concatenate(pieces) if pieces else self._reduced(), buffers, loss)
        self._done = done
        return self._step.skipped > before

    def _reduced(self) -> np.ndarray | Tensor:
        """What the group has reduced, where the step can use it."""
        found, self._mean = self._mean, None
        if found is None:
            raise PeerLost("the workers have no mean of the gradients, as their exchange failed")
        on = self._step.device.eager
        return from_dlpack(found, device=on) if on.shares else found.cpu().numpy()

    def evaluate(self, *batch: Any) -> Any:
        return self._step.evaluate(*batch)

    def model(self) -> Module:
        return self._step.model

    def state(self) -> dict[str, np.ndarray]:
        return self._step.state()

    def resume(self, state: Mapping[str, np.ndarray], done: int) -> int:
        """Go on from a `state`: how many steps are done now."""
        self._step.resume(state)
        self._done = done
        return done


def _without(share: Share) -> Share:
    """A Share without its gradients."""
    return Share(share.items, share.values, NONE, share.buffers, share.finite)
