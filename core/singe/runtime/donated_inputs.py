"""Donated inputs: a run overwrites them, and uses their memory for an output (`ProgramData.donated`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..program.program import ProgramData


def check_donated(program: ProgramData, arrays: Sequence[Any]) -> None:
    """Refuse a donated device array that is also another input: the run would overwrite what it reads."""
    for j in program.donated.values():
        for k, x in enumerate(arrays):
            if k != j and x is arrays[j]:
                own, other = (program.buffers[program.inputs[i]].name for i in (j, k))
                raise InputError(f"input {own!r} is donated, and the same array is input {other!r}: upload it twice")


def writable(program: ProgramData, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """NumPy arrays that a run may use: donated arrays are copied if it must not overwrite them.

    That is if they are not writeable or not contiguous, or if another input shares their memory.
    """
    given = list(arrays)
    for j in program.donated.values():
        x = given[j]
        apart = not any(np.may_share_memory(x, other) for k, other in enumerate(arrays) if k != j)
        if not (apart and x.flags.writeable and x.flags.c_contiguous):
            given[j] = x.copy()
    return given
