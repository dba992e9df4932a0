"""Names lead to one thing: a class has its name alone, and files that are named in READMEs and in code are there."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("core/singe", "gpu/singe_gpu", "webgpu/singe_webgpu", "cuda/singe_cuda", "wasm/singe_wasm")
IN_CODE: Final = re.compile(r"(?<![\w./-])((?:\w+/)+\w+\.py)\b")
IN_README: Final = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|js))`")


@pytest.fixture(scope="module")
def files() -> Sequence[str]:
    """The files of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"this is no checkout of git: {listed.stderr.strip()}")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def classes() -> Mapping[str, Sequence[str]]:
    """Each name of a class ↦ the places where one has it. Classes within functions are the function's own."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_a_class_has_its_name_alone() -> None:
    found = classes()
    assert len(found) > 500
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def ends(files: Sequence[str]) -> frozenset[str]:
    """All ends of the files' paths, from the name alone to the whole path."""
    parts = [name.split("/") for name in files]
    return frozenset("/".join(p[k:]) for p in parts for k in range(len(p)))


def test_files_that_code_names_are_there(files: Sequence[str]) -> None:
    known = ends(files)
    lost = [
        f"{name}: {path}"
        for name in files
        if name.startswith(PACKAGES) and name.endswith(".py")
        for path in IN_CODE.findall((ROOT / name).read_text("utf-8"))
        if path not in known
    ]
    assert lost == []


def test_files_that_readmes_name_are_there(files: Sequence[str]) -> None:
    known = ends(files)
    folders = ("core/", "gpu/", "webgpu/", "cuda/", "wasm/", "static/", "tests/")
    readmes = [name for name in files if name.endswith("README.md") and name.startswith(folders)]
    lost = [
        f"{name}: {path}"
        for name in readmes
        for path in IN_README.findall((ROOT / name).read_text("utf-8"))
        if path.removeprefix("../") not in known
    ]
    assert len(readmes) > 40
    assert lost == []


def test_test_modules_have_names_of_their_own(files: Sequence[str]) -> None:
    """pytest collects no two modules of one name from folders that are no packages."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in files:
        if name.startswith("tests/") and name.rpartition("/")[2].startswith("test_") and name.endswith(".py"):
            found[name.rpartition("/")[2]].append(name)
    assert len(found) > 200
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
