"""How a module's functions are called: the name of its function `run`, what functions get after their arguments, and the numbers in the
entries of kernels."""

from __future__ import annotations

from typing import Final

from singe.extension import FormatError

NAME: Final = "run"
"""The function that executes a whole run; see driver.py."""
ALONE: Final = (0, 1)
"""`part` and `parts` of a call that computes a whole step."""
_DIGITS: Final = 6
"""The most digits of a function's number."""


def function_number(entry: str) -> int:
    """The number of the function of an entry "module:kN"."""
    module, _, number = entry.partition(":k")
    if not module or ":" in module or not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise FormatError(f'wasm: a kernel has the entry {entry!r:.60}, expected "module:kN"')
    return int(number)
