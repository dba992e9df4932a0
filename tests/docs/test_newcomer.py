"""Tasks of a newcomer, from a clean machine: an empty environment, an empty home, a fresh copy of the repository. Singe is
installed as the first page says, and each page is done from top to bottom, as it is typed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from snippets import ROOT, blocks, commands

TASKS: Final = {
    "the first page of all": "README",
    "a model becomes a page": "docs/start/page",
    "a model runs, and one is written and trained": "docs/start/python",
    "a bundle for a page of one's own": "docs/guides/export",
    "pictures": "docs/guides/pictures",
    "sounds and texts": "docs/guides/sounds",
    "smaller weights": "docs/guides/quantise",
    "where the time goes": "docs/guides/profile",
    "a network from a class": "docs/guides/write",
    "training": "docs/guides/train",
    "headers and workers": "docs/guides/deploy",
    "bundlers": "docs/guides/bundlers",
    "a choice of devices": "docs/guides/devices",
    "an op, a device and a target of one's own": "docs/guides/extend",
}
OFFLINE: Final = re.compile(r"Could not find a version|No matching distribution|NewConnectionError|Max retries")
DO: Final = "import snippets, sys; from pathlib import Path; snippets.run_page(snippets.ROOT / sys.argv[1], snippets.checkout(Path.cwd()))"


@dataclass(frozen=True)
class Machine:
    """A copy of the repository, an environment and a home."""

    copy: Path
    python: Path
    home: Path

    def run(self, command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "XDG_", "SINGE"))}
        path = os.pathsep.join([str(self.python.parent), "/usr/local/bin", "/usr/bin", "/bin"])
        own = {"PATH": path, "HOME": str(self.home), "PYTHONPATH": str(self.copy / "tests" / "docs")}
        return subprocess.run(
            command, cwd=cwd, env=kept | own, capture_output=True, text=True, timeout=500, check=False
        )


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    base = tmp_path_factory.mktemp("machine")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (base / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, base / "copy" / name)
    (base / "home").mkdir()
    venv.create(base / "env", with_pip=True)
    made = Machine(base / "copy", base / "env" / "bin" / "python", base / "home")
    (install,) = (
        command
        for block in blocks(ROOT / "docs" / "start" / "page.md")
        if block.language == "console"
        for command, _ in commands(block.text)
        if command.startswith("pip install")
    )
    done = made.run(["bash", "-c", install], made.copy)
    if done.returncode and OFFLINE.search(done.stdout + done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_done_as_its_page_says(task: str, machine: Machine, tmp_path: Path) -> None:
    done = machine.run([str(machine.python), "-c", DO, f"{TASKS[task]}.md"], tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
