"""Random numbers for layers, from keys that a caller gives or from generators of their own.

    with nn.drawing(key):  # a number, or a tensor of two uint32 numbers (singe.random)
        y = model(x)       # the model is in training mode

Each draw in the block has its own key, made of the given one and of how many were before it, so equal keys give equal
numbers. A traced function that takes the key as an input draws new numbers in every run:

    program = sg.compile(step, x, singe.random.key(0))  # def step(x, key): with nn.drawing(key): …

Without such a block a layer draws from its generator (`rng`: a generator, or a seed).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, SupportsIndex

import numpy as np

from ..dtypes import uint32
from ..errors import InputError
from ..frontend.calls import call_row
from ..frontend.functions.creation import tensor
from ..frontend.tensor import Tensor, home_of, value_on
from ..frontend.tracing import Lifting, Tracer, runs_again
from ..ops import ROWS
from ..runtime.device import Device
from ..shapes import Shape
from ._module import Module
from .init import Rng

_SALT: Final = 0x9E3779B9
"""Times the number of a draw, it is added to the first word of the key, so that the draws of key 5 are not those of 6."""
_WORD: Final = (1 << 32) - 1
_PASS_KEY: Final = "pass the key as an input of the function, and draw in `with nn.drawing(key):` inside it"


@dataclass
class _Draws:
    """The key of a block, and how many keys were made of it."""

    key: Tensor
    count: int = 0
    placed: dict[Device, Tensor] = field(default_factory=dict)
    """The key on each device where it was used."""


_draws: Final[ContextVar[_Draws | None]] = ContextVar("draws", default=None)


@contextmanager
def drawing(key: SupportsIndex | Tensor) -> Iterator[None]:
    """Layers that draw random numbers in this block make them of this key, each draw of another one; in a block in a block,
    of the inner key."""
    token = _draws.set(_Draws(_key(key)))
    try:
        yield
    finally:
        _draws.reset(token)


def next_key(x: Tensor) -> Tensor:
    """The next key of the `drawing` block, for layers of one's own, on the device of x:
    `singe.random.normal(nn.next_key(x), x.shape)`."""
    found = _next(x.device, "next_key")
    if found is None:
        raise InputError("next_key: there is no block `with nn.drawing(key):` here, from whose key it could be made")
    return found


def _key(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        if given.shape != (2,) or given.dtype is not uint32:
            raise InputError(f"drawing: got a key of {given.dtype} {given.shape}, expected two uint32 numbers")
        return given
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise InputError(f"drawing: got the key {given!r:.40}, expected an integer, or a tensor of two uint32 numbers")
    number = operator.index(given)
    return tensor([number >> 32 & _WORD, number & _WORD], uint32)


def _next(device: Device, who: str) -> Tensor | None:
    """The next key of the block, on a device; None without a block."""
    draws = _draws.get()
    if draws is None:
        return None
    if runs_again(device) and not isinstance(draws.key.device, Tracer):
        raise InputError(
            f"{who}: the key of nn.drawing is not an input of the function that is traced, which would draw the same numbers in "
            f"every run; {_PASS_KEY}"
        )
    if device not in draws.placed:
        draws.placed[device] = _placed(draws.key, device)
    draws.count += 1
    return draws.placed[device] + np.array([draws.count * _SALT & _WORD, 0], np.uint32)


def _placed(key: Tensor, device: Device) -> Tensor:
    """A key for draws on a device, which may be a trace."""
    if isinstance(device, Lifting):
        if not isinstance(key.device, Tracer):
            key = key.to(home_of(list(device.lifted)))
        return Tensor(device, value_on(device, key))
    return key if isinstance(key.device, Tracer) else key.to(device)


class Random(Module):
    """A layer that may draw; `training` is set by train() and eval()."""

    rng: np.random.Generator
    training: bool
    _draws: ClassVar[str] = "in training it draws"
    _fixed: ClassVar[str] = "compile module.eval()"
    """What gives the same numbers in every run."""

    def _seed(self, rng: Rng) -> None:
        self.rng = np.random.default_rng(rng)
        self.training = False

    def _new_key(self, x: Tensor) -> Tensor:
        """The key of one draw, on the device of x."""
        name = type(self).__name__
        key = _next(x.device, name)
        if key is not None:
            return key
        if runs_again(x.device):
            raise InputError(
                f"{name}: {self._draws} random numbers, of which a compiled function would have the same in every run; "
                f"{_PASS_KEY}, or {self._fixed}"
            )
        return _placed(tensor(self.rng.integers(1 << 32, size=2, dtype=np.uint32)), x.device)

    def _drawn(self, x: Tensor, shape: Shape) -> Tensor:
        """Numbers from 0 to 1, on the device of x."""
        return call_row(ROWS["random_unit"], (self._new_key(x),), shape=shape)
