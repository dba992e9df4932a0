"""CHANGELOG.md has the versions in order, and a version's part is short enough to be read."""

from __future__ import annotations

import re
from typing import Final

from snippets import ROOT

import singe as sg

LONGEST: Final = 60
"""Lines of a version, its heading included."""


def parts() -> dict[str, list[str]]:
    """The heading of each version ↦ the lines of its part."""
    _, *found = re.split(r"^(?=## )", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)
    lines = [part.rstrip().splitlines() for part in found]
    return {first: [first, *rest] for first, *rest in lines}


def test_what_is_not_released_comes_first_and_then_the_versions_from_the_latest_on() -> None:
    first, *versions = parts()
    assert first == "## [Unreleased]"
    found = [re.fullmatch(r"## \[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", heading) for heading in versions]
    numbers = [tuple(int(n) for n in match.groups()) for match in found if match]
    assert len(numbers) == len(versions) >= 1
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_latest_version_is_that_of_the_package() -> None:
    _, latest, *_ = parts()
    assert latest.startswith(f"## [{sg.__version__}] - ")


def test_a_version_takes_a_page_at_most() -> None:
    _, *versions = parts().values()
    assert {lines[0]: len(lines) for lines in versions if len(lines) > LONGEST} == {}
