"""The npm package of this checkout, and npm for tests of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from singe.tools.export.package import write_package

OFFLINE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E40[13]|network"
)


def npm(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """The output of npm; the test is skipped if npm is missing, or a registry that it asks."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    command = ["npm", *arguments, "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=300, check=False
    )
    asks = arguments[0] == "install" and "--offline" not in arguments
    if done.returncode and asks and OFFLINE.search(done.stderr):
        pytest.skip(f"npm's registry cannot be reached: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def npm_package(folder: Path) -> Path:
    """The archive of the package, made in a folder."""
    write_package(folder / "package")
    npm("pack", str(folder / "package"), "--pack-destination", str(folder), cwd=folder)
    return next(folder.glob("*.tgz"))
