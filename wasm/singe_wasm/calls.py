"""How a module's functions are called: the name of its function `run`, what functions get after their arguments, and the numbers in the
entries of kernels."""

from __future__ import annotations

import re
from typing import Final

from singe.extension import FormatError

NAME: Final = "run"
"""The function that executes a whole run; see driver.py."""
ALONE: Final = (0, 1)
"""`part` and `parts` of a call that computes a whole step."""
_ENTRY: Final = re.compile(r"[^:]+:k(\d{1,6})", re.ASCII)


def function_number(entry: str) -> int:
    """The number of the function of an entry "module:kN"."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise FormatError(f'wasm: a kernel has the entry {entry!r:.60}, expected "module:kN"')
    return int(found[1])
