"""The command line: runs the command that the arguments name (options.py) by its function in commands.py.

Exit codes: 0; 1 if `diff` finds a difference; 2 for an error that the caller can fix, with one line on standard error
(`--verbose` adds the traceback); 130 when interrupted; 143 when SIGTERM ended a training, which can be resumed.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from ..errors import SingeError
from .options import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments give; returns the exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    args = parser(examples=given[:1] == ["train"]).parse_args(given)
    try:
        from . import commands, opening  # noqa: PLC0415 (`singe --help` need not wait for what commands import)

        with opening.notes():
            code = getattr(commands, args.command)(args)
        # Unlike stdout.flush(), this does nothing where stdout was closed before the command began.
        print(end="", flush=True)
    except BrokenPipeError:  # the reader of our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (SingeError, OSError, MemoryError) as e:
        if args.verbose:
            traceback.print_exc()
        print(f"singe {args.command}: {_line(e)}", file=sys.stderr)
        return 2
    return code or 0


def _line(e: SingeError | OSError | MemoryError) -> str:
    text = f"{e.filename}: {e.strerror}" if isinstance(e, OSError) and e.strerror and e.filename else str(e)
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split())) or type(e).__name__
