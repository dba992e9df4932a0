"""The npm package of this checkout, npm for tests of it, and packages that tests take from npm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from singe.tools.export.package import write_package

AXE: Final = "4.14.1"
"""The version of axe-core."""
OFFLINE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E40[13]|network|_CERT|CERT_"
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


def axe() -> str:
    """The script of axe-core, which finds what keeps people from using a page; from npm, once."""
    folder = Path(__file__).parents[1] / ".cache" / f"axe-{AXE}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm("install", "--prefix", str(folder), "--ignore-scripts", f"axe-core@{AXE}", cwd=folder)
    return script.read_text("utf-8")


def findings(page: Any, script: str) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on a page: the rule, what it asks for, and the first elements that break it. Transitions, such as of
    colors where the scheme was just changed, are brought to their ends."""
    page.evaluate(script)
    page.evaluate(
        "document.getAnimations().filter((a) => a.effect.getComputedTiming().endTime < Infinity).forEach((a) => a.finish())"
    )
    found = page.evaluate("axe.run().then((r) => r.violations)")
    return [(v["id"], v["help"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found]
