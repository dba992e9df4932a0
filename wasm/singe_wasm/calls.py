"""How a module's functions are called: the name of its function `run`, what functions get after their arguments, the numbers in the
entries of kernels, and what threads find in the head of a call."""

from __future__ import annotations

from typing import Final

from singe.extension import FormatError

NAME: Final = "run"
"""The function that executes a whole run; see driver.py."""
ALONE: Final = (0, 1)
"""`part` and `parts` of a call that computes a whole step."""
_DIGITS: Final = 6
"""The most digits of a function's number."""
SPACE_BITS: Final = 20
"""The bits of a head that are a function's number. After them comes the word of the group that is the address of a workspace, of which each
part needs its own; 0: there is none."""
FUNCTION: Final = (1 << SPACE_BITS) - 1
PARTS_BITS: Final = 26
"""The bits before the number of parts of which threads may do some; 0: the call is made at once."""
MOST_PARTS: Final = 31
SPACE_WORDS: Final = 64
"""The words before each other workspace, where the call's group is copied with its address."""

# --- the words at the start of the memory by which threads share a run: see shared_runs.py

STATE: Final = 0
"""The number of the run, the parts of the call, and the first ticket that is not taken: 32, 16 and 16 bits. 0: there is no run."""
GROUP: Final = 8
"""The address of the call's group."""
RUN: Final = 16
"""What a run's caller says: its number, the address of the first workspace, the bytes between two; and whether a thread has failed."""
NUMBER, SPACES, STRIDE, FAILED = range(RUN, RUN + 16, 4)
BUSY: Final = 64
"""How many other threads may have a ticket."""
WAITING: Final = 68
"""Whether the thread of the run sleeps until BUSY is 0."""
SLEEPING: Final = 128
"""How many other threads sleep, or are about to, until STATE changes."""
STATE_BYTES: Final = 256
"""The bytes at the start of the memory that are for these words; a cache line for those of each side."""


def function_number(entry: str) -> int:
    """The number of the function of an entry "module:kN"."""
    module, _, number = entry.partition(":k")
    if not module or ":" in module or not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise FormatError(f'wasm: a kernel has the entry {entry!r:.60}, expected "module:kN"')
    return int(number)
