"""The command line, called in this process."""

from __future__ import annotations

import pytest

from singe.tools import cli


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    try:
        code = cli.main([str(a) for a in args])
    except SystemExit as e:
        code = int(e.code or 0)
    return code, *capsys.readouterr()
