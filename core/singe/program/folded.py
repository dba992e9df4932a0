"""Long lists of a Program's header in a bundle's manifest, in which rows that repeat are written once: the layers of a network differ in
where their weights are.

A list of such a form has among its rows lists [turns, [step, …]]: each stands for `turns` times as many rows as there are steps, each of
which is the row as many before as there are steps, with the step added to its number. The number of a word is itself, that of a buffer the
second part of its place. static/README.md has the fields in which they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

LISTS: Final = ("buffers", "words")
MAX_ROWS: Final = 1 << 22
"""The most rows that the lists of a bundle's Programs repeat, all together."""
_MAX_STEP: Final = 1 << 53
_MAX_PERIOD: Final = 1024
_AHEAD: Final = 8
"""Rows by which a period is guessed."""
_LEAST_ROWS: Final = 16
"""The fewest rows that are worth a fold."""


def folded(program: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a Program with its lists folded, also those of its steps for particular sizes."""
    found = {**program, **{name: _fold(program[name]) for name in LISTS}}
    if program.get("specialised"):
        found["specialised"] = [folded(part) for part in program["specialised"]]
    return found


def unfolded(program: Mapping[str, Any]) -> dict[str, Any]:
    """The header that was folded; what has another form than `folded` gives raises ValueError, TypeError, KeyError or IndexError."""
    if (count := repeated(program)) > MAX_ROWS:
        raise ValueError(f"its lists repeat {count} rows, expected at most {MAX_ROWS}")
    found, *others = ({**part, **{name: _unfold(part[name]) for name in LISTS}} for part in _parts(program))
    return {**found, "specialised": others} if others else found


def repeated(program: Mapping[str, Any]) -> int:
    """How many rows the lists of a folded header repeat; errors as those of `unfolded`."""
    lists = (part[name] for part in _parts(program) for name in LISTS)
    return sum(_repeated(row) for rows in lists for row in rows if isinstance(row, list))


def _parts(program: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [program, *(program.get("specialised") or ())]


def _fold(rows: Sequence[Any]) -> list[Any]:
    known: dict[str, int] = {}
    kinds = np.array([known.setdefault(_kind(row), len(known)) for row in rows], np.int64)
    numbers = np.array([row if isinstance(row, int) else row["place"][1] for row in rows], np.int64)
    out: list[Any] = []
    at = 0
    while at < len(rows):
        period, turns = _best(kinds, numbers, at)
        if turns * period >= _LEAST_ROWS + period:
            steps = numbers[at : at + period] - numbers[at - period : at]
            out.append([turns, steps.tolist()])
            at += turns * period
        else:
            out.append(rows[at])
            at += 1
    return out


def _best(kinds: np.ndarray, numbers: np.ndarray, at: int) -> tuple[int, int]:
    """The period with which the most rows repeat from here on, and how often they do."""
    ahead = np.arange(_AHEAD)
    most = min(at, _MAX_PERIOD, (len(numbers) - at - _AHEAD) // 2)
    if most < 1:
        return 1, 0
    periods = np.arange(1, most + 1)[:, None]
    here, before, after = at + ahead, at - periods + ahead, at + periods + ahead
    same = (kinds[before] == kinds[here]) & (kinds[after] == kinds[here])
    same &= numbers[after] - numbers[here] == numbers[here] - numbers[before]
    found = 1, 0
    for period in (np.flatnonzero(same.all(1)) + 1).tolist():
        turns = 0
        steps = numbers[at : at + period] - numbers[at - period : at]
        for start in range(at, len(numbers) - period + 1, period):
            own, other = slice(start, start + period), slice(start - period, start)
            if (kinds[own] != kinds[other]).any() or (numbers[own] - numbers[other] != steps).any():
                break
            turns += 1
        if (turns - 1) * period > (found[1] - 1) * found[0]:
            found = period, turns
    return found


def _kind(row: Any) -> str:
    """What a row is but for its number."""
    return "" if isinstance(row, int) else json.dumps({**row, "place": row["place"][0]}, sort_keys=True)


def _repeated(row: Any) -> int:
    """How many rows a list among the rows stands for."""
    turns, steps = row
    fits = type(turns) is int and turns > 0 and isinstance(steps, list) and len(steps) > 0
    if not fits or not all(type(step) is int and abs(step) < _MAX_STEP for step in steps):
        raise ValueError(f"rows repeat as {row!r:.80}, expected [turns, [step, …]] of whole numbers")
    return turns * len(steps)


def _unfold(rows: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for row in rows:
        if not isinstance(row, list):
            out.append(row)
            continue
        steps = row[1]
        if len(steps) > len(out):
            raise ValueError(f"a list repeats {len(steps)} rows, and {len(out)} are before it")
        for k in range(_repeated(row)):
            before, step = out[-len(steps)], steps[k % len(steps)]
            out.append(
                before + step
                if isinstance(before, int)
                else {**before, "place": [before["place"][0], before["place"][1] + step]}
            )
    return out
