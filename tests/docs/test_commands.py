"""Each script and each option that a page names exists: scripts start, and `singe` takes the options."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from snippets import ROOT

from singe.tools.options import parser

PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "demos/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SCRIPT: Final = re.compile(r"\bpython3? ((?:tests|demos|wasm)/[\w./-]+\.py)")
COMMAND: Final = re.compile(r"(?:`|^\$ )singe ([a-z]+)((?:[^`\n\\]|\\\n)*)", re.M)


SCRIPTS: Final = sorted({name for page in PAGES for name in SCRIPT.findall(page.read_text("utf-8"))})


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_starts(name: str, tmp_path: Path) -> None:
    assert (ROOT / name).is_file()
    done = subprocess.run(
        [sys.executable, str(ROOT / name), "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_options_of_singe_exist() -> None:
    (commands,) = (action.choices for action in parser(examples=True)._actions if action.dest == "command")
    assert isinstance(commands, dict)
    found = 0
    for page in PAGES:
        for name, rest in COMMAND.findall(page.read_text("utf-8")):
            assert name in commands, f"{page.relative_to(ROOT)}: singe {name}"
            if name == "train":  # its options are those of an example
                continue
            for option in re.findall(r"(?<!\S)--[a-z][\w-]*", rest):
                found += 1
                assert option in commands[name]._option_string_actions, (
                    f"{page.relative_to(ROOT)}: singe {name} {option}"
                )
    assert found > 30
