"""No page promises to install Singe from a package index, where it is not, without saying so; no file names an address of the
project, which has none yet."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

import pytest
from release import ROOT

NOT_YET: Final = "on no package index yet"
PROMISE: Final = re.compile(
    r"""\b(?:pip3? install|npm (?:install|i|add)|pnpm add|yarn add)(?: -\S+)* ['"]?singe(?![\w/-])"""
    r"""|micropip\.install\(\[?['"]singe['"]|["/]npm:singe\b"""
)
FOLDERS: Final = ("core", "demos", "docs", "gpu", "static", "wasm", "webgpu")
PAGES: Final = [
    ROOT / "README.md",
    *sorted(
        path
        for folder in FOLDERS
        for kind in ("*.md", "*.html")
        for path in (ROOT / folder).rglob(kind)
        if not {"node_modules", "site", ".cache"} & set(path.relative_to(ROOT).parts)
    ),
]


def test_no_page_promises_what_is_on_no_index() -> None:
    for path in PAGES:
        text = " ".join(path.read_text("utf-8").split())
        for promise in PROMISE.findall(text):
            assert NOT_YET in text, f"{path.relative_to(ROOT)}: {promise} does not work; say that Singe is {NOT_YET}"


@pytest.mark.parametrize("name", ["README.md", "docs/start/page.md", "docs/start/python.md", "wasm/pyodide/README.md"])
def test_where_readers_begin_it_is_said(name: str) -> None:
    assert NOT_YET in " ".join((ROOT / name).read_text("utf-8").split())


def test_the_addresses_of_the_project_are_those_that_the_page_of_releases_says() -> None:
    """npm and PyPI show them; the first address goes into both files, and the sentence goes."""
    package = json.loads((ROOT / "static" / "package.json").read_text("utf-8"))
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    assert ("repository" in package) == bool(urls), "name the repository in package.json and in pyproject.toml"
    said = "no public address yet" in (ROOT / "tests" / "release" / "README.md").read_text("utf-8")
    assert said != bool(urls), "tests/release/README.md says whether there is an address"


@pytest.mark.parametrize(
    ("text", "promises"),
    [
        ("pip install singe", True),
        ("pip install -U 'singe[wasm]'", True),
        ('await micropip.install("singe")', True),
        ("npm install singe", True),
        ("pip install '.[wasm]'", False),
        ("npm install ./singe-0.1.0.tgz", False),
        ("pip install singe-0.1.0-py3-none-any.whl", False),
        ("pip install dist/singe-*.whl", False),
    ],
)
def test_what_a_promise_is(text: str, promises: bool) -> None:
    assert bool(PROMISE.search(text)) == promises
