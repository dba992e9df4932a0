"""Grammars over the bytes of UTF-8: expressions of sets of bytes, which rules name so that they may contain themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from ...late_dataclass import dataclass

MAX_CODE: Final = 0x10FFFF
_ENDS: Final = (0x7F, 0x7FF, 0xD7FF, 0xFFFF, MAX_CODE)
"""The last characters of one length in UTF-8, and the last before halves of surrogate pairs."""

CodeRange: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True)
class ByteRange:
    """One byte, from the first to the last."""

    first: int
    last: int


@dataclass(frozen=True)
class Sequenced:
    """One after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Choice:
    """One of these; of none, nothing matches."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Repeated:
    """At least so often, and at most, if there is a number."""

    part: Expression
    least: int
    most: int | None


@dataclass(frozen=True)
class RuleName:
    """What a rule matches."""

    name: str


Expression: TypeAlias = "ByteRange | Sequenced | Choice | Repeated | RuleName"
NOTHING: Final = Sequenced(())


def text(literal: str) -> Expression:
    """This text."""
    return Sequenced(tuple(ByteRange(b, b) for b in literal.encode("utf-8", "surrogatepass")))


def optional(part: Expression) -> Expression:
    """The expression or nothing."""
    return Repeated(part, 0, 1)


def characters(ranges: Sequence[CodeRange]) -> Expression:
    """One character of these ranges."""
    return Choice(tuple(e for first, last in merged(ranges) for e in _utf8(first, last)))


def merged(ranges: Sequence[CodeRange]) -> list[CodeRange]:
    """The same characters in ranges that are in order and apart."""
    found: list[CodeRange] = []
    for first, last in sorted(r for r in ranges if r[0] <= r[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def complement(ranges: Sequence[CodeRange]) -> list[CodeRange]:
    """All other characters."""
    found, at = list[CodeRange](), 0
    for first, last in merged(ranges):
        found.append((at, first - 1))
        at = last + 1
    return merged([*found, (at, MAX_CODE)])


def _utf8(first: int, last: int) -> Iterator[Expression]:
    """Sequences of ranges of bytes for a range of characters, without halves of surrogate pairs."""
    start = 0
    for end in _ENDS:
        low, high = max(first, start), min(last, end)
        if low <= high:
            yield from _same_length(low, high)
        start = 0xE000 if end == 0xD7FF else end + 1


def _same_length(first: int, last: int) -> Iterator[Expression]:
    low, high = chr(first).encode(), chr(last).encode()
    for k in range(1, len(low)):
        rest = (1 << 6 * (len(low) - k)) - 1  # of the bytes from k on
        if first & ~rest != last & ~rest:
            if first & rest:
                yield from _same_length(first, first | rest)
                yield from _same_length((first | rest) + 1, last)
                return
            if last & rest != rest:
                yield from _same_length(first, (last & ~rest) - 1)
                yield from _same_length(last & ~rest, last)
                return
    yield Sequenced(tuple(ByteRange(a, b) for a, b in zip(low, high, strict=True)))
