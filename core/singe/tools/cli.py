"""The command line: runs the command that the arguments name (options/) by its function in commands.py.

Exit codes: 0; 1 if `diff` finds a difference; 2 for an error that the caller can fix, with one line on standard error
(`--verbose` adds the traceback); 130 when interrupted; 143 when SIGTERM ended a training, which can be resumed.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from ..ending import end_by_interrupts
from ..errors import SingeError
from ..report import clean
from ..starting import INTERRUPTED, unguard_command
from ..texts import say
from ..tracebacks import FULL, SWITCH
from .options import parser

ADVICE: Final = {
    errno.EACCES: "; give a place that this user may read and write",
    getattr(errno, "EDQUOT", -1): "; remove what is not needed, or write elsewhere",
    errno.EFBIG: "; the system allows no file of this size here: write elsewhere",
    errno.ENOSPC: "; remove what is not needed, or write elsewhere",
    errno.EROFS: "; write elsewhere",
}
"""Numbers of the system's errors of files ↦ what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments give; returns the exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        if argv is None:
            end_by_interrupts()
            unguard_command()
        args = parser(examples=given[:1] == ["train"]).parse_args(given)
        if args.verbose:
            os.environ[SWITCH] = FULL
    except KeyboardInterrupt:
        return INTERRUPTED
    try:
        from . import commands, progress  # noqa: PLC0415 (`singe --help` need not wait for what commands import)

        with progress.notes():
            code = getattr(commands, args.command)(args)
        # Unlike stdout.flush(), this does nothing where stdout was closed before the command began.
        print(end="", flush=True)
    except BrokenPipeError:  # the reader of our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        if argv is None:  # more of them would show where Python was as it ended
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return INTERRUPTED
    except (SingeError, OSError, MemoryError) as e:
        if args.verbose:
            traceback.print_exc()
        say(f"singe {args.command}: {_line(e)}", file=sys.stderr)
        return 2
    return code or 0


def _line(e: SingeError | OSError | MemoryError) -> str:
    text = str(e)
    if isinstance(e, OSError) and e.strerror:
        place = f"{e.filename}: " if e.filename else ""
        text = f"{place}{e.strerror}{ADVICE.get(e.errno or 0, '')}"
    return clean(text) or type(e).__name__
