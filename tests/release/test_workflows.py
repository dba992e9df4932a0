"""The workflows of .github parse, run only what exists here, and take actions by their commit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from release import ROOT

yaml: Any = pytest.importorskip("yaml", reason="no package PyYAML")

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS: Final = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
COMMANDS: Final = ("make", "python -m pip", "python -m playwright", "python -m pytest", "npm publish")
"""How a command of a workflow starts."""


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from yaml.safe_load(path.read_text("utf-8"))["jobs"].items()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_exists_and_takes_actions_by_their_commit(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow.keys() == {"name", True, "permissions", "jobs"}, "YAML reads `on` as true"
    assert workflow["permissions"] == {"contents": "read"}
    names = dict(jobs(path))
    for name, job in names.items():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= names.keys(), name
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file(), name
            continue
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), step
                continue
            assert step["run"].startswith(COMMANDS), step
            words = shlex.split(re.sub(r"\$\{\{.*?\}\}", "x", step["run"]))
            if words[0] == "make":
                assert set(words[1:]) <= TARGETS, step
            for word in words:
                assert not word.startswith("tests/") or (ROOT / word).exists(), step


def test_each_action_has_one_commit_and_its_version_beside_it() -> None:
    found: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for line in re.findall(r"uses: (\w.*)", path.read_text("utf-8")):
            match = re.fullmatch(r"([\w/-]+)@(\w{40} # v\d+\.\d+\.\d+)", line)
            assert match, line
            found.setdefault(match[1], set()).add(match[2])
    assert all(len(versions) == 1 for versions in found.values()), found


def test_the_tests_run_on_three_systems_and_in_three_browsers() -> None:
    tests = dict(jobs(ROOT / ".github" / "workflows" / "tests.yml"))
    systems = [tests["linux"]["runs-on"], *tests["systems"]["strategy"]["matrix"]["system"]]
    assert [name.partition("-")[0] for name in systems] == ["ubuntu", "macos", "windows"]
    browsers = tests["browsers"]["strategy"]["matrix"]["include"]
    assert {row["browser"] for row in browsers} == {"chromium", "firefox", "webkit"}


def test_only_jobs_that_upload_or_attest_have_more_rights() -> None:
    release = dict(jobs(ROOT / ".github" / "workflows" / "release.yml"))
    rights = {name: job.get("permissions", {}).get("id-token") for name, job in release.items()}
    assert rights == {"tests": None, "build": "write", "python": "write", "npm": "write"}
    assert all(release[name]["environment"] == "release" for name in ("python", "npm"))
