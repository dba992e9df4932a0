"""The modules of a bundle as texts in which lines that were there before are references: unrolled loops, and kernels that differ in few
lines, are most of what they are.

The lines of all texts, in order, are numbered from 0. A line `=count,at` stands for as many lines as from number `at` on. A line
`=count+back` stands for as many lines of which each goes on from two before it, those `2 · back` and `back` before: they are equal but for
their decimal numbers, and each number takes the same step again. No line of WGSL begins so. gzip, which looks back 32 KiB, then finds the
rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ..errors import InputError

MAX_CHARACTERS: Final = 1 << 27
"""The most characters of all texts, where the end of a line is one."""
MAX_LINES: Final = 1 << 22
"""The most lines that references may stand for: short ones take more time and memory than their characters say."""
_REFERENCE: Final = re.compile(r"=([0-9]{1,9})([,+])([0-9]{1,9})")
_NUMBERS: Final = re.compile(r"([0-9]+)")
_MAX_NUMBER: Final = (1 << 53) - 1
_MAX_BACK: Final = 120
_LEAST_LINES: Final = 2
"""The fewest lines that are worth a reference."""
_MAX_PLACES: Final = 80
"""At how many of the places where a line stands the longest equal lines are looked for."""


class _ReadLine(NamedTuple):
    """A line's form, which lines share that differ in numbers alone, and its numbers."""

    form: int
    numbers: tuple[int, ...]


def folded_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts with references in place of lines; more than `unfolded_texts` takes are refused."""
    count = sum(text.count("\n") + 1 for text in texts.values())
    characters = sum(len(text) + 1 for text in texts.values())
    if characters > MAX_CHARACTERS or count > MAX_LINES:
        raise InputError(
            f"the kernels have {characters} characters in {count} lines, expected at most {MAX_CHARACTERS} in {MAX_LINES}, which "
            "readers of a bundle take: export a smaller part of the model"
        )
    forms: dict[str, int] = {}
    lines: list[_ReadLine] = []
    places: dict[_ReadLine, list[int]] = {}
    found = dict[str, str]()
    for name, text in texts.items():
        own = text.split("\n")
        if any(line.startswith("=") for line in own):
            raise ValueError(f"a line of the module {name} begins with =, expected WGSL")
        at, end = len(lines), len(lines) + len(own)
        lines += [_read(line, forms) for line in own]
        out: list[str] = []
        while at < end:
            count, reference = _longest(lines, places.get(lines[at], ()), at, end)
            out.append(reference or own[at - end])
            for k in range(at, at + count):
                places.setdefault(lines[k], []).append(k)
            at += count
        found[name] = "\n".join(out)
    return found


def _read(line: str, forms: dict[str, int]) -> _ReadLine:
    """A number with a zero before it is part of the form, since its digits do not follow from its value."""
    parts = _NUMBERS.split(line)
    plain = [len(digits) < 16 and str(int(digits)) == digits for digits in parts[1::2]]
    form = "".join("\0" if k % 2 and plain[k // 2] else part for k, part in enumerate(parts))
    numbers = (int(digits) for digits, is_plain in zip(parts[1::2], plain, strict=True) if is_plain)
    return _ReadLine(forms.setdefault(form, len(forms)), tuple(numbers))


def _longest(lines: Sequence[_ReadLine], places: Iterable[int], at: int, end: int) -> tuple[int, str]:
    """How many lines the best reference at a place stands for, and the reference; one line and none, if none is worth it."""
    best, reference = _LEAST_LINES - 1, ""
    for _, start in zip(range(_MAX_PLACES), places, strict=False):
        count = 0
        while at + count < end and lines[start + count] == lines[at + count]:
            count += 1
        if count > best:
            best, reference = count, f"={count},{start}"
    form = lines[at].form
    for back in range(1, min(_MAX_BACK, at // 2) + 1):
        if form != lines[at - back].form or form != lines[at - 2 * back].form:
            continue
        count = 0
        while at + count < end and _goes_on(*(lines[at + count - k * back] for k in (2, 1, 0))):
            count += 1
        if count > best:
            best, reference = count, f"={count}+{back}"
    return (best, reference) if reference else (1, "")


def _goes_on(first: _ReadLine, second: _ReadLine, line: _ReadLine) -> bool:
    if not first.form == second.form == line.form:
        return False
    return all(c - b == b - a for a, b, c in zip(first.numbers, second.numbers, line.numbers, strict=True))


def unfolded_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that were folded; what `folded_texts` does not give raises ValueError."""
    lines: list[str] = []
    room = MAX_CHARACTERS
    found = dict[str, str]()
    for name, text in texts.items():
        start = len(lines)
        for line in text.split("\n"):
            for one in _meant(lines, line):
                lines.append(one)
                room -= len(one) + 1
                if room < 0:
                    raise ValueError(f"the modules have more than {MAX_CHARACTERS} characters")
        found[name] = "\n".join(lines[start:])
    return found


def _meant(lines: Sequence[str], line: str) -> Iterable[str]:
    """The lines that one stands for; those before it grow meanwhile by what is given."""
    match = _REFERENCE.fullmatch(line)
    if match is None:
        yield line
        return
    count, place, is_copy = int(match[1]), int(match[3]), match[2] == ","
    if not (place < len(lines) if is_copy else 0 < 2 * place <= len(lines)):
        raise ValueError(f"{line} has no such lines before it: there are {len(lines)}")
    if len(lines) + count > MAX_LINES:
        raise ValueError(f"{line}: the modules have more than {MAX_LINES} lines")
    for k in range(count):
        yield lines[place + k] if is_copy else _next(lines[-2 * place], lines[-place])


def _next(first: str, second: str) -> str:
    parts, others = _NUMBERS.split(first), _NUMBERS.split(second)
    if len(parts) != len(others) or parts[::2] != others[::2]:
        raise ValueError(f"no line goes on from {first!r:.80} and {second!r:.80}")
    for k in range(1, len(parts), 2):
        if parts[k] != others[k]:
            number = 2 * int(others[k]) - int(parts[k])
            if not 0 <= number <= _MAX_NUMBER:
                raise ValueError(f"no line goes on from {first!r:.80} and {second!r:.80}")
            others[k] = str(number)
    return "".join(others)
