"""The blocks of code of a page, run in order as a reader would, in a folder that looks like a checkout.

- `python`: all of a page share their names. `console`: each line after `$` is a command; what is shown under it must be
  what it prints, but for numbers, spaces, and lines for which `...` stands. `js`: a module for node.
- A block with a file's name (```html public/index.html) is written to that file.
- Blocks of other words are not code to run, nor are those of `ELSEWHERE`.

A page gets nothing but a checkout and the packages that it says to install: what else it needs, its own blocks make or fetch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from singe.ops import ROWS

ROOT: Final = Path(__file__).parents[2]
FENCE: Final = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.M | re.S)
NOT_RUN: Final = {
    "pip install": "changes the environment",
    "npm ": "changes the environment",
    "singe chat": "reads what is typed, and needs a model",
    "singe host": "runs until it is stopped",
    "singe serve": "runs until it is stopped",
    "make ": "runs for long",
}
"""How a command starts that is not run ↦ why."""
ELSEWHERE: Final = {
    "README.md": ("js",),
    "docs/guides/language.md": ("python", "console", "js"),
    "docs/guides/texts.md": ("python",),
    "docs/guides/tflite.md": ("python", "console"),
}
"""A page ↦ languages of which its blocks are not run here: those of README.md are files of demos/embed, and parts of pages; those of
language.md need a model of a hundred megabytes: tests/conformance/language/test_generation.py, test_lora.py beside it, and
tests/browser/models/test_language_page.py call the same; those of texts.md need a model that a network gives: tests/unit/tasks/test_texts.py;
those of tflite.md need MediaPipe's model: tests/conformance/tflite/test_mediapipe.py."""
LINKED: Final = ("core", "gpu", "webgpu", "wasm", "static", "demos", "docs", "tests", "pyproject.toml")


@dataclass(frozen=True)
class Block:
    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 1)


def checkout(folder: Path) -> Path:
    """Make a folder look like a checkout in which the npm package is installed."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "singe").symlink_to(ROOT / "static")
    return folder


def run_page(page: Path, folder: Path) -> None:
    rows = dict(ROWS)
    try:
        run_blocks(page, folder)
    finally:  # without the ops that the page declares
        for name in ROWS.keys() - rows.keys():
            del ROWS[name]


def run_blocks(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    left_out = ELSEWHERE.get(page.relative_to(ROOT).as_posix(), ())
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.language in left_out:
            continue
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec", dont_inherit=True), names)
        elif block.language == "console":
            run_console(block.text, folder, where)
        elif block.language == "js":
            run_module(block, folder, where)


def run_console(text: str, folder: Path, where: str) -> None:
    for command, shown in commands(text):
        if command.startswith(tuple(NOT_RUN)):
            continue
        done = run(["bash", "-c", command], folder)
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
        assert fits(shown, done.stdout), f"{where}: {command} shows\n{shown}\nand printed\n{done.stdout}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command, whose lines may end with a backslash, and what is shown under it."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.split("\n")
        count = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield "\n".join(lines[:count]), "\n".join(lines[count:]).strip("\n")


def fits(shown: str, printed: str) -> bool:
    """Whether the lines shown are those printed; nothing shown fits anything."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(plain(line)) + r"\n" for line in shown.split("\n")
    )
    return (
        not shown
        or re.fullmatch(pattern, "".join(plain(line) + "\n" for line in printed.strip("\n").split("\n"))) is not None
    )


def plain(line: str) -> str:
    """A line without what differs from run to run: numbers, units of time, and how far columns are apart."""
    return re.sub(r"[\s─]+", " ", re.sub(r"\d+([.,]\d+)*( *(µs|ms|s|min)\b)?", "0", line)).strip()


def run_module(block: Block, folder: Path, where: str) -> None:
    if shutil.which("node") is None:
        import pytest  # noqa: PLC0415 (not in a newcomer's environment)

        pytest.skip("no node here")
    (folder / "snippet.mjs").write_text(block.text, "utf-8")
    done = run(["node", "snippet.mjs"], folder)
    assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
