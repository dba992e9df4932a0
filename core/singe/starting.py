"""Ctrl-C while the command `singe` imports what it needs, a second or two: one line and exit code 130.

Python imports the package before it runs a command of it, so that the package itself imports this module first. In a process
that is not the command, nothing changes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Final

INTERRUPTED: Final = 130
"""The exit code of a command that Ctrl-C has ended."""
SCRIPTS: Final = ("singe", "singe.exe", "singe-script.py", "singe-script.pyw")
"""What installers call the script that runs the command."""


def _guard_command() -> None:
    """If this process is the command: until `unguard_command` is called, Ctrl-C ends it at once. There is nothing to lose or to clean yet."""
    if not _is_command(getattr(sys, "argv", None) or [""], getattr(sys, "orig_argv", [])):
        return
    import signal  # noqa: PLC0415 (`import singe` does without)

    with suppress(ValueError):  # not in the main thread, which alone hears signals
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)


def unguard_command() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, as usual."""
    import signal  # noqa: PLC0415

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command(argv: list[str], arguments: list[str]) -> bool:
    """argv: as Python has it now. arguments: all that Python was started with."""
    if argv[0] == "-m":  # Python looks for the module, which stands before the module's own arguments
        return arguments[-len(argv) :][:1] in (["singe"], ["-msinge"])
    return os.path.basename(argv[0]) in SCRIPTS


def _end(*_: Any) -> None:
    with suppress(OSError):  # where nobody reads it
        os.write(2, b"\nsinge: interrupted while it started; nothing was done\n")
    os._exit(INTERRUPTED)


_guard_command()
