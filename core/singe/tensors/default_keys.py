"""Keys for draws that got none, from the first of these sources that there is:

- the block `with nn.drawing(key):`, of whose key each draw has its own;
- while a function is traced that will run again: a state of it, so that each run draws other numbers;
- the shared sequence (runtime/random_keys.py), which `manual_seed` begins.

So a function draws the same numbers eagerly and compiled. A block's key is a sequence of keys, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Final, SupportsIndex

import numpy as np

from ..dtypes import uint32
from ..errors import InputError
from ..late_dataclass import dataclass
from ..ops import ROWS
from ..runtime import random_keys
from ..runtime.device import Device
from ..runtime.devices import DEFAULT, device_or_default
from ..runtime.devices import device as find_device
from ..shapes import same_form
from .calls import apply_row
from .tensor import Tensor, home_of, value_on
from .tracing import Lifting, Tracer, present_tracer, running_again

STREAM_OF_KEYS: Final = 2
"""Keys are made of other numbers than those that random_normal takes from the streams 0 and 1."""


@dataclass
class KeyBlock:
    """The key of a block, and how many keys were made of it."""

    key: Tensor
    count: int = 0
    placed: dict[Device, Tensor] = field(default_factory=dict)
    """The key on each device where it was used."""
    words: random_keys.Words | None = None
    """The key, once the host needed it."""
    shared: bool = False
    """Whether it stands in for the shared sequence, before which a layer's own generator counts."""

    def taken(self, count: int) -> random_keys.Words:
        """The sequence of keys as it was, before so many are taken."""
        if self.words is None:
            first, second = self.key.tolist()
            self.words = first, second
        found = random_keys.after(self.words, self.count)
        self.count += count
        return found


_block: Final[ContextVar[KeyBlock | None]] = ContextVar("block", default=None)


@contextmanager
def drawing(key: SupportsIndex | Tensor) -> Iterator[KeyBlock]:
    """What draws random numbers in this block, without a key of its own, makes them of this key, each draw of another one;
    in a block in a block, of the inner key."""
    with _within(KeyBlock(_key(key))) as block:
        yield block


@contextmanager
def in_place_of_shared(key: Tensor) -> Iterator[KeyBlock]:
    """What stands in for the shared sequence while a function is traced that has the key among its states."""
    with _within(KeyBlock(key, shared=True)) as block:
        yield block


@contextmanager
def _within(block: KeyBlock | None) -> Iterator[Any]:
    token = _block.set(block)
    try:
        yield block
    finally:
        _block.reset(token)


def _key(argument: Any) -> Tensor:
    if isinstance(argument, Tensor):
        if not same_form(argument.shape, (2,)) or argument.dtype is not uint32:
            raise InputError(f"drawing: got a key of {argument.dtype} {argument.shape}, expected two uint32 numbers")
        return argument
    if isinstance(argument, bool) or not isinstance(argument, SupportsIndex):
        raise InputError(
            f"drawing: got the key {argument!r:.40}, expected an integer, or a tensor of two uint32 numbers"
        )
    return of_words(number_words(argument), find_device(DEFAULT))


@contextmanager
def no_block() -> Iterator[None]:
    """A context in which no block is known, for a function that is traced at its run: what it draws, the run decides."""
    with _within(None):
        yield


def taken(count: int) -> random_keys.Words:
    """So many keys, of the block or the shared sequence: where they begin."""
    block = _block.get()
    return random_keys.taken(count) if block is None else block.taken(count)


def number_words(number: SupportsIndex) -> random_keys.Words:
    """The key of a number, of which 64 bits count."""
    n = number.__index__()
    return n >> 32 & random_keys.WORD, n & random_keys.WORD


def drawn_words(rng: np.random.Generator) -> random_keys.Words:
    """A key that a generator draws."""
    first, second = rng.integers(1 << 32, size=2, dtype=np.uint32)
    return int(first), int(second)


def of_words(words: random_keys.Words, on: Device) -> Tensor:
    return Tensor(on, on.upload(random_keys.as_array(words)))


def next_key(who: str, device: str | Device | None = None, rng: np.random.Generator | None = None) -> Tensor:
    """The key of one draw, on a device, or in the function that is traced. who: what draws, for errors; rng: what stands in
    for the shared sequence."""
    on = _place(device)
    block, again = _block.get(), running_again(on)
    own = rng is not None and (block is None or block.shared)
    if own and again is not None:
        raise InputError(
            f"{who}: it draws from a generator of its own (rng=…), which cannot be called when a compiled function runs; leave "
            "rng out, and it draws of the sequence that sg.manual_seed begins; or draw in `with nn.drawing(key):` in the function, "
            "with a key that is an input"
        )
    if block is not None and not own:
        return _block_key(block, who, on)
    if again is None:
        words = random_keys.next_key() if rng is None else drawn_words(rng)
        return _placed(of_words(words, find_device(DEFAULT)), on) if isinstance(on, Lifting) else of_words(words, on)
    if again.keys is None:
        raise InputError(
            f"{who}: it draws random numbers in the function of an op, which has no state of keys; give it a key as an input"
        )
    return _placed(Tensor(again, again.keys.next(again.builder)), on)


def apart(key: Tensor) -> Tensor:
    """A key made of one, with which another sequence may begin: it has no keys of that to which the one belongs."""
    return apply_row(ROWS["random_bits"], (key,), shape=(2,), stream=STREAM_OF_KEYS)


def _place(device: str | Device | None) -> Device:
    """Where to draw: what is drawn while a function is traced that runs again is part of it."""
    tracer = present_tracer()
    if tracer is not None and running_again(tracer) is not None:
        return device if isinstance(device, Tracer) else tracer
    return device_or_default(device)


def _block_key(block: KeyBlock, who: str, device: Device) -> Tensor:
    """The next key of the block, on a device."""
    if running_again(device) is not None and not isinstance(block.key.device, Tracer):
        raise InputError(
            f"{who}: the key of nn.drawing is not an input of the function that is traced, which would draw the same numbers in "
            "every run; pass the key as an input of the function, and draw in `with nn.drawing(key):` inside it; or leave the "
            "block out, for a compiled function draws new numbers in every run"
        )
    if device not in block.placed:
        block.placed[device] = _placed(block.key, device)
    block.count += 1
    return block.placed[device] + random_keys.as_array(random_keys.after((0, 0), block.count))


def _placed(key: Tensor, device: Device) -> Tensor:
    """A key for draws on a device, which may be a trace."""
    if key.device is device:
        return key
    if isinstance(device, Lifting):
        if not isinstance(key.device, Tracer):
            key = key.to(home_of(list(device.lifted)))
        return Tensor(device, value_on(device, key))
    return key if isinstance(key.device, Tracer) else key.to(device)


def refuse_host_draws(what: str) -> None:
    """Refuse numbers that the host draws while a function is traced that runs again: they would be the same in every run."""
    if running_again(present_tracer()) is not None:
        raise InputError(
            f"{what}: it draws on the host, and the function that is traced would have the same numbers in every run; draw "
            "before, and pass what was drawn as an input or in a module; inside of it, sg.rand, sg.randn and singe.random draw"
        )


def host_generator(rng: random_keys.Rng, what: str) -> np.random.Generator:
    """A generator for draws on the host: the given one, that of a seed, or one of the next key."""
    if rng is not None:
        return np.random.default_rng(rng)
    refuse_host_draws(what)
    return np.random.default_rng(next_key(what).numpy())
