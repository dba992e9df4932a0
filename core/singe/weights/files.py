"""`load_weights`: reads the parameters of a Module from a record or from a PyTorch file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np

from ..errors import FormatError, InputError, ShapeError
from ..nn import Module
from . import pytorch, records

M = TypeVar("M", bound=Module)


def load_weights(module: M, path: str | Path | bytes, strict: bool = True, key: str | None = None) -> M:
    """The module with the weights of a file (or its bytes) that `singe.save` or `torch.save` wrote.

    strict: the names must be the same on both sides; otherwise only common names are used. key: selects one of several
    state dicts in a PyTorch file. Nothing in the file is executed.
    """
    data, name = (path, "weights") if isinstance(path, bytes) else (_read(path), str(path))
    try:
        return module.with_state(read_state(data, name, key), strict)
    except (InputError, ShapeError) as e:
        raise type(e)(str(e) if str(e).startswith(name) else f"{name}: {e}") from None


def read_state(data: bytes, name: str, key: str | None) -> dict[str, np.ndarray]:
    """The arrays of a file by name."""
    if pytorch.is_pytorch(data):
        return pytorch.read_pytorch(data, name, key)
    if not records.is_container(data):
        raise FormatError(
            f"{name}: neither a record of Singe's nor a file that torch.save wrote; it starts with {data[:8]!r}"
        )
    if key is not None:
        raise InputError(f"{name}: a record has no keys, got key={key!r}")
    return records.read_weights(data, name)


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise InputError(f"cannot read the weights {path}: {e.strerror}") from e
