"""How values of options are read.

Options that take NAME=VALUE are given once per name and are split at the last "=".
"""

from __future__ import annotations

import argparse
import math
import re
from contextlib import suppress
from typing import Any, Final

_DIMENSION: Final = re.compile(r"[0-9]+|[A-Za-z_]\w*(<=[0-9]+)?")


def pair(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    if not value:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE, got {text!r}")
    return name, value


def state(text: str) -> tuple[str, str]:
    past, _, present = text.rpartition("=")
    if not past or not present:
        raise argparse.ArgumentTypeError(
            f"expected PAST=PRESENT, an input and the output that is its next value, got {text!r}"
        )
    return past, present


def shape(text: str) -> tuple[str, tuple[int | str, ...]]:
    # The last "=" that is not part of "<=".
    name, sign, value = text.replace("<=", "≤").rpartition("=")
    parts = [] if value == "scalar" else value.replace("≤", "<=").split("x")
    if not sign or not all(_DIMENSION.fullmatch(p) for p in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=1x3x224x224, NAME=Nx10 or NAME=scalar, got {text!r}")
    return name, tuple(int(p) if p.isdigit() else p for p in parts)


def fixed(text: str) -> dict[str, int]:
    found = [part.partition("=") for part in text.split(",")]
    if not all(name and number.isdigit() for name, _, number in found):
        raise argparse.ArgumentTypeError(f"expected sizes such as N=1,L=128, got {text!r}")
    return {name: int(number) for name, _, number in found}


def tolerance(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (found := float(text)) < math.inf:
            return found
    raise argparse.ArgumentTypeError(f"expected a number, at least 0, got {text!r}")


def duration(text: str) -> float:
    """Seconds, of a text such as 2ms or 0.5s."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time such as 2ms or 0.5s, got {text!r}")
    return float(found[1]) * (1e-3 if found[2] == "ms" else 1)


def names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split(",")))


def numbers(text: str) -> tuple[float, ...]:
    return tuple(_read(float, part, text, "numbers with commas between them") for part in text.split(","))


def sides(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    first, second = (_read(int, part, text, "224 or 240x320") for part in (height, width or height))
    return first, second


def count(text: str) -> int:
    return _read(int, text, text, "a number")


def name_or_number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() else text


def positive(text: str) -> int:
    value = _read(int, text, text, "a number above 0")
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _read(kind: type, part: str, text: str, wanted: str) -> Any:
    try:
        return kind(part)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}") from None
