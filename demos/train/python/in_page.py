"""A network that Python trains in a page: `await opened(network, device)`.

../../shared/python-worker.js calls it. Arrays come as buffers and go flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from model import BATCH, IMAGE, batch, reader, step

import singe as sg

MODEL: Final = "model."
COUNT: Final = "optimizer.step"


class Training:
    """Steps of training, and readings with the weights that they have reached."""

    def __init__(self, network: str, device: str) -> None:
        self._step: Final = step(network, device)
        self._first: Final = self._step.state()
        self._step.program(*batch())
        model = reader(self._step.model, network, device)
        model.program()
        self._reader: Final = model.session()
        self._given = True
        """Whether the reader's weights are those of the step."""

    def weights(self) -> list[dict[str, Any]]:
        """What weights there are, the first layer's first."""
        return [
            {"name": s.name.removeprefix(MODEL), "dtype": s.dtype.name, "shape": list(s.shape or ())}
            for s in self._reader.states
        ]

    async def step(self, x: Any, y: Any) -> dict[str, Any]:
        """A step on a batch: its loss and logits before the weights change."""
        self._given = False
        images = np.frombuffer(x, np.float32).reshape(BATCH, *IMAGE)
        loss, outputs = await self._step.run_async(images, np.frombuffer(y, np.int32))
        return {"loss": loss, "logits": outputs["logits"].ravel()}

    async def answer(self, x: Any) -> np.ndarray:
        """The logits of images."""
        if not self._given:
            state = await self._step.state_async()
            for name in self._reader.names:
                self._reader.write(name, state[name])
            self._given = True
        found = await self._reader.run_async(np.frombuffer(x, np.float32).reshape(-1, *IMAGE))
        return found.ravel()

    async def read(self, name: str) -> np.ndarray:
        """The elements of a weight."""
        return (await self._step.state_async())[MODEL + name].ravel()

    def put(self, arrays: Sequence[Any], done: int) -> None:
        """Go on from these weights, in the order of `weights`, after so many steps."""
        given = {
            s.name: np.frombuffer(a, s.dtype.numpy).reshape(s.shape or ())
            for s, a in zip(self._reader.states, arrays, strict=True)
        }
        self._resume({**self._first, **given, COUNT: np.full_like(self._first[COUNT], done)})

    def reset(self) -> None:
        self._resume(self._first)

    def _resume(self, state: dict[str, np.ndarray]) -> None:
        self._given = False
        self._step.resume(state)


async def opened(network: str, device: str) -> Training:
    await sg.device_async(device)
    return Training(network, device)
