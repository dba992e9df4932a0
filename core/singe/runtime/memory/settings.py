"""`sg.Memory`: how a device takes memory, how much of it, and how much of what nobody uses it keeps."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, get_args

from ...errors import DeviceError, InputError
from ...late_dataclass import dataclass
from ...shapes import bytes_text

Strategy: TypeAlias = Literal["exclusive", "pages", "exact"]
STRATEGIES: Final = get_args(Strategy)
UNITS: Final = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
_AMOUNT: Final = r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*"


@dataclass(frozen=True)
class Memory:
    """How a device takes memory: `sg.Cuda(0, memory=sg.Memory("pages", limit="8 GiB"))`.

    strategy: for arrays and scratch memory; None is the device's own.
        "exclusive"  a buffer for each, of one of four sizes for each power of two; one that is given back serves the next
        "pages"      slices of large buffers
        "exact"      a buffer of just the size for each, which is freed with it
    limit: the most bytes to take from the device, as a number or a text. Where more is needed, idle memory is freed first; then
    it is an sg.OutOfMemory, which lists what holds the memory. None: all that there is.
    keep: the most bytes of idle memory that are kept for what comes next; None is the device's own.

    Weights and states are always buffers of just their size, which are freed with them.
    """

    strategy: Strategy | None
    limit: int | None
    keep: int | None

    def __init__(
        self, strategy: Strategy | None = None, limit: int | str | None = None, keep: int | str | None = None
    ) -> None:
        if strategy not in (None, *STRATEGIES):
            raise InputError(f"Memory: got the strategy {strategy!r:.40}, expected one of {', '.join(STRATEGIES)}")
        if strategy == "exact" and keep is not None:
            raise InputError('Memory: "exact" keeps no idle memory; leave keep out, or take "exclusive" or "pages"')
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "limit", _bytes(limit, "limit", 1))
        object.__setattr__(self, "keep", _bytes(keep, "keep", 0))

    def check_strategy(self, known: Collection[str], device: str, why: str) -> None:
        """Refuse a strategy that a device lacks, with the reason."""
        if self.strategy is not None and self.strategy not in known:
            raise DeviceError(
                f'{device} has no memory strategy "{self.strategy}": {why}; use {" or ".join(map(repr, known))}, or leave it out'
            )


def _bytes(amount: int | str | None, what: str, least: int) -> int | None:
    """A number of bytes, given as such or as a text with a unit."""
    if amount is None:
        return None
    found = amount
    if isinstance(amount, str):
        parts = re.fullmatch(_AMOUNT, amount)
        unit = UNITS.get(parts[2]) if parts else None
        found = None if parts is None or unit is None else int(float(parts[1]) * unit)
    if type(found) is not int or found < least:
        raise InputError(
            f'Memory: got {what}={amount!r:.40}, expected at least {least} bytes as an int, or as a text such as "2 GiB" or "500 MB"'
        )
    return found


def limit_reached(limit: int, taken: int) -> str:
    """Why there is no more, in words."""
    return (
        f"sg.Memory limits this device to {limit} bytes ({bytes_text(limit)}), of which {bytes_text(taken)} are taken"
    )
