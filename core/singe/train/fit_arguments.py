"""What `fit` is asked for: data that gives batches, as often as there are epochs; and where it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import GeneratorType
from typing import Any, Final

import numpy as np

from ..data import Dataset
from ..errors import InputError
from ..tensors.tensor import Tensor

ARRAYS: Final = (np.ndarray, Tensor)
ONCE: Final = (GeneratorType, map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())))
"""Iterators that cannot begin again; others may."""


def check_asked(train: Any, valid: Any, epochs: Any, done: int | None, watched: Mapping[str, str]) -> None:
    """Refuse what `fit` cannot do, before anything is begun. done: how many epochs are; None: only a checkpoint says that.
    watched: who asks for a value of each epoch ↦ its name."""
    if not isinstance(epochs, (int, np.integer)) or epochs < 1:
        raise InputError(f"fit: got epochs={epochs!r}, expected up to which epoch to train, at least 1")
    left = 1 if done is None else epochs - done
    check_data("fit", "training data", train, left)
    if valid is not None:
        check_data("fit", "validation data", valid, left)
        return
    for who in [who for who, value in watched.items() if value.startswith("valid.")]:
        raise InputError(
            f"fit: {who} watches {watched[who]!r}, and there is no validation data; give fit some, or watch a value of "
            "training, such as 'train.loss'"
        )


def check_data(where: str, what: str, data: Any, epochs: int = 1) -> None:
    """Refuse what does not give batches in each of some epochs."""
    loader = "sg.data.Loader(data, batch_size)"
    if isinstance(data, (*ARRAYS, Dataset, str, dict)) or not isinstance(data, Iterable):
        hint = "; epochs have their name: fit(train, epochs=…)" if isinstance(data, (int, float)) else ""
        raise InputError(
            f"{where}: got {type(data).__name__} as {what}, expected what gives batches, such as {loader}{hint}"
        )
    if isinstance(data, tuple) and data and all(isinstance(part, ARRAYS) for part in data):
        raise InputError(
            f"{where}: got a tuple of arrays as {what}, expected what gives batches: {loader} makes them of (x, y); batches "
            "of one array each are given in a list"
        )
    if isinstance(data, ONCE) and epochs > 1:
        raise InputError(
            f"{where}: got {type(data).__name__} as {what}, which gives its batches once, for {epochs} epochs; expected what "
            f"gives them in each, such as {loader}, or a list of batches"
        )


def position(data: Iterable[Any]) -> dict[str, Any] | None:
    """Where a Loader is."""
    state = getattr(data, "state", None)
    return None if state is None else state()


def length(data: Iterable[Any]) -> int | None:
    return len(data) if hasattr(data, "__len__") else None  # pyright: ignore[reportArgumentType]


def check_statistics(every: object, shared: bool) -> None:
    """Refuse statistics every so many steps, if that is no number of them, or if a step is shared by several devices."""
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise InputError(f"Learner: statistics: got {every!r:.60}, expected a number of steps, at least 1")
    if shared:
        raise InputError("Learner: statistics are those of a step on one device; give one, and no workers")
