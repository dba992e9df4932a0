"""What a device holds: the count that it keeps, and the record of it that `device.memory()` gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias, get_args

from ...errors import OutOfMemory
from ...late_dataclass import dataclass
from ...shapes import bytes_text

MemoryKind: TypeAlias = Literal["weights", "states", "scratch", "tensors"]
"""What memory is for: constants of Programs, states of sessions, what runs need between their steps, all other arrays."""
KINDS: Final = get_args(MemoryKind)
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class MemoryShare:
    """A part of what a device holds: bytes that were asked for, bytes beyond these in what was taken for them, and how many
    pieces; reserved: bytes taken from the device, idle ones too."""

    in_use: int
    padding: int
    reserved: int
    count: int


@dataclass(frozen=True, repr=False)
class MemoryUse:
    """What a device holds. A number that it does not know is None.

    in_use: bytes that arrays, weights, states and scratch memory need. padding: bytes beyond these in the memory that was taken
    for them. reserved: all bytes taken from the device, with those that are idle. peak: the most bytes in use and padding at a
    time, since the device was opened or `device.reset_peak()`. count: how many pieces of memory are in use. by_kind: of weights,
    states, scratch and tensors; by_pool: of what they were taken from. limit: that of sg.Memory.
    """

    in_use: int | None = None
    padding: int | None = None
    reserved: int | None = None
    peak: int | None = None
    count: int | None = None
    by_kind: Mapping[str, MemoryShare] = field(default_factory=dict)
    by_pool: Mapping[str, MemoryShare] = field(default_factory=dict)
    limit: int | None = None

    def __repr__(self) -> str:
        parts = [(kind, s.in_use, s.padding, s.reserved, s.count) for kind, s in self.by_kind.items()]
        parts += [(f"in {pool}", s.in_use, s.padding, s.reserved, s.count) for pool, s in self.by_pool.items()]
        rows = [*parts, ("all", self.in_use, self.padding, self.reserved, self.count)]
        peak = f"peak {_text(self.peak)}" + ("" if self.limit is None else f", limit {_text(self.limit)}")
        return f"{_table(('memory', 'in use', 'padding', 'reserved', 'count'), rows)}\n{peak}"


class MemoryLedger:
    """Counts what is taken and given back, by kind and by pool."""

    def __init__(self) -> None:
        self._held: Final[dict[tuple[str, str], list[int]]] = {}  # (kind, pool) ↦ bytes in use, padding, count
        self.held = 0
        """Bytes in use and padding."""
        self.peak = 0

    def add(self, kind: MemoryKind, pool: str, in_use: int, size: int) -> None:
        """`size` bytes are taken, for `in_use` that were asked for."""
        row = self._held.setdefault((kind, pool), [0, 0, 0])
        row[0] += in_use
        row[1] += size - in_use
        row[2] += 1
        self.held += size
        self.peak = max(self.peak, self.held)

    def remove(self, kind: MemoryKind, pool: str, in_use: int, size: int) -> None:
        """What `add` counted is given back."""
        row = self._held[kind, pool]
        row[0] -= in_use
        row[1] -= size - in_use
        row[2] -= 1
        self.held -= size

    def reset_peak(self) -> None:
        self.peak = self.held

    def use(self, reserved: Mapping[str, int], limit: int | None) -> MemoryUse:
        """The record. reserved: of each pool."""
        kinds, pools = {}, {}
        for kind in KINDS:
            in_use, padding, count = self._sums(row for (k, _), row in self._held.items() if k == kind)
            kinds[kind] = MemoryShare(in_use, padding, in_use + padding, count)
        for pool, taken in reserved.items():
            in_use, padding, count = self._sums(row for (_, p), row in self._held.items() if p == pool)
            pools[pool] = MemoryShare(in_use, padding, taken, count)
        in_use, padding, count = self._sums(self._held.values())
        return MemoryUse(in_use, padding, sum(reserved.values()), self.peak, count, kinds, pools, limit)

    def refusal(self, what: str, count: int, why: str) -> OutOfMemory:
        """The error for `count` bytes that cannot be had, with what holds the memory."""
        rows = [(kind, s.in_use, s.padding, s.count) for kind, s in self.use({}, None).by_kind.items()]
        return OutOfMemory(
            f"{what} takes {count} bytes ({bytes_text(count)}): {why}\n{_table(('held by', 'in use', 'padding', 'count'), rows)}\n"
            "let go of tensors, models and sessions that are not needed (model.dispose() frees at once), give smaller batches, "
            "or raise the limit if there is one"
        )

    @staticmethod
    def _sums(rows: Iterable[Sequence[int]]) -> tuple[int, int, int]:
        listed = list(rows)
        return sum(r[0] for r in listed), sum(r[1] for r in listed), sum(r[2] for r in listed)


def together(parts: Mapping[str, MemoryUse]) -> MemoryUse:
    """What several devices hold, by their names. The most at a time is not known, since it was not counted together."""

    def total(field_name: str) -> int | None:
        found = [getattr(use, field_name) for use in parts.values()]
        return None if None in found else sum(found)

    kinds = {}
    for kind in dict.fromkeys(kind for use in parts.values() for kind in use.by_kind):
        own = [use.by_kind[kind] for use in parts.values() if kind in use.by_kind]
        kinds[kind] = MemoryShare(
            *(sum(getattr(s, name) for s in own) for name in ("in_use", "padding", "reserved", "count"))
        )
    pools = {f"{name}: {pool}": share for name, use in parts.items() for pool, share in use.by_pool.items()}
    return MemoryUse(total("in_use"), total("padding"), total("reserved"), None, total("count"), kinds, pools)


def _text(value: int | None) -> str:
    return UNKNOWN if value is None else bytes_text(value)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str | int | None]]) -> str:
    """The first column is of names, the last of counts, the others of bytes."""
    cells = [tuple(headings)]
    for name, *sizes, count in rows:
        cells.append(
            (
                str(name),
                *(_text(x if isinstance(x, int) else None) for x in sizes),
                UNKNOWN if count is None else str(count),
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join((line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)))).rstrip()
        for line in cells
    )
