"""Regular expressions, which a whole text must match: characters, classes, groups, alternatives and counts. What an automaton cannot do
(references to groups, looking around, boundaries of words) is refused by its name."""

from __future__ import annotations

from collections.abc import Sequence
from string import hexdigits
from typing import Final

from ...errors import InputError
from .grammar import MAX_CODE, Choice, CodeRange, Expression, Repeated, Sequenced, characters, complement

MAX_LENGTH: Final = 10_000
MAX_COUNT: Final = 1000
MAX_NESTED: Final = 50
_DIGIT: Final[list[CodeRange]] = [(48, 57)]
_WORD: Final[list[CodeRange]] = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: Final[list[CodeRange]] = [(9, 13), (32, 32)]
_CLASSES: Final = {
    "d": _DIGIT, "w": _WORD, "s": _SPACE, "D": complement(_DIGIT), "W": complement(_WORD), "S": complement(_SPACE),
}  # fmt: skip
_CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
_HEX: Final = {"x": 2, "u": 4}
ALL: Final[list[CodeRange]] = [(0, MAX_CODE)]


class RegularExpression:
    """What a pattern means: `expression`. allowed: other characters than these are left out of it; anchored: whether it has a ^ at the
    start and a $ at the end."""

    def __init__(self, pattern: str, allowed: Sequence[CodeRange] = ALL) -> None:
        if not isinstance(pattern, str) or len(pattern) > MAX_LENGTH:
            raise InputError(f"regex: got {pattern!r:.40}, expected a text of at most {MAX_LENGTH} characters")
        self._forbidden: Final = complement(allowed)
        start = pattern.startswith("^")
        end = pattern.endswith("$") and (len(pattern) - len(pattern[:-1].rstrip("\\"))) % 2 == 1
        self.anchored: Final = start, end
        self._text: Final = pattern[start : len(pattern) - end]
        self._at = self._depth = 0
        self.expression: Final = self._choice()
        if self._at < len(self._text):
            raise self._fault("a ) without its (")

    def _fault(self, what: str) -> InputError:
        return InputError(f"regex {self._text!r:.80}: {what}, at character {self._at}; expected another pattern")

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _next(self) -> str:
        found = self._peek()
        if not found:
            raise self._fault("it ends too early")
        self._at += 1
        return found

    def _characters(self, ranges: Sequence[CodeRange]) -> Expression:
        return characters(complement([*complement(ranges), *self._forbidden]))

    def _choice(self) -> Expression:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._counted(self._one()))
        return Sequenced(tuple(parts))

    def _one(self) -> Expression:
        sign = self._next()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._characters(self._set())
        if sign == ".":
            return self._characters(complement([(10, 10)]))
        if sign == "\\":
            return self._characters(self._escape())
        if sign in "*+?{":
            raise self._fault(f"{sign} with nothing before it")
        if sign in "^$":
            raise self._fault(f"{sign} inside of it, where only its ends may have one")
        return self._characters([(ord(sign), ord(sign))])

    def _group(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise self._fault(f"more than {MAX_NESTED} groups in each other")
        if self._peek() == "?":
            if self._peek(1) != ":":
                raise self._fault(f"the group (?{self._peek(1)}, which is not supported but as (?:")
            self._at += 2
        found = self._choice()
        if self._next() != ")":
            raise self._fault("a ( without its )")
        self._depth -= 1
        return found

    def _counted(self, part: Expression) -> Expression:
        while (sign := self._peek()) and sign in "*+?{":
            self._at += 1
            if sign == "{":
                least, most = self._count()
            else:
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            if self._peek() == "?":  # which of the texts is preferred is the model's to say
                self._at += 1
            elif self._peek() == "+":
                raise self._fault("a count that gives nothing back, which is not supported")
            part = Repeated(part, least, most)
        return part

    def _count(self) -> tuple[int, int | None]:
        inside, sign, _ = self._text[self._at :].partition("}")
        least, comma, most = inside.partition(",")
        if not sign or not all(x.isascii() and x.isdigit() for x in (least, most) if x) or not (least or most):
            raise self._fault("a { that is no count; write \\{ for the character")
        self._at += len(inside) + 1
        low = int(least or 0)
        high = (int(most) if most else None) if comma else low
        if max(low, high or 0) > MAX_COUNT or (high is not None and high < low):
            raise self._fault(f"the count {{{inside:.20}}}, which is not in order or above {MAX_COUNT}")
        return low, high

    def _escape(self) -> Sequence[CodeRange]:
        sign = self._next()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in _HEX:
            digits = self._text[self._at : self._at + _HEX[sign]]
            if len(digits) != _HEX[sign] or not set(digits) <= set(hexdigits):
                raise self._fault(f"\\{sign} without {_HEX[sign]} digits")
            code = int(digits, 16)
            self._at += len(digits)
            return [(code, code)]
        code = _CONTROLS.get(sign, ord(sign))
        if sign not in _CONTROLS and sign.isalnum():
            raise self._fault(f"\\{sign}, which is not supported")
        return [(code, code)]

    def _set(self) -> Sequence[CodeRange]:
        negative = self._peek() == "^"
        self._at += negative
        found: list[CodeRange] = []
        while self._peek() != "]" or not found:
            first = self._member()
            if self._peek() == "-" and self._peek(1) not in ("]", ""):
                self._at += 1
                last = self._member()
                if len(first) > 1 or len(last) > 1 or first[0][0] > last[0][0]:
                    raise self._fault("a range of characters that is not in order")
                found.append((first[0][0], last[0][1]))
            else:
                found += first
        self._at += 1
        return complement(found) if negative else found

    def _member(self) -> Sequence[CodeRange]:
        sign = self._next()
        return self._escape() if sign == "\\" else [(ord(sign), ord(sign))]
