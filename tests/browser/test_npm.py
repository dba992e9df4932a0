"""The npm package, from `npm pack` of static/: it installs offline, has types, and runs a bundle in node."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import ROOT, STATIC, assert_close, packed, small_case
from pages import node


def npm(*arguments: str, cwd: Path) -> str:
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    done = subprocess.run(["npm", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    package = json.loads((STATIC / "package.json").read_text("utf-8"))
    assert package["version"] == project["version"]
    assert f'VERSION = "{project["version"]}"' in (STATIC / "singe-format.js").read_text("utf-8")


def test_the_package_installs_and_runs(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    source = tmp_path / "static"
    shutil.copytree(STATIC, source)
    listed = json.loads(npm("pack", "--json", "--pack-destination", str(tmp_path), cwd=source))[0]
    names = {entry["path"] for entry in listed["files"]}
    wanted = {path.name for pattern in ("singe*.js", "singe*.d.ts") for path in STATIC.glob(pattern)}
    assert {"package.json", "README.md"} <= names
    assert wanted - {"singe-python.js"} <= names
    assert not [name for name in names if name.startswith("front")]
    user = tmp_path / "user"
    user.mkdir()
    (user / "package.json").write_text('{"name": "user", "private": true}')
    npm("install", "--offline", "--no-audit", "--no-fund", str(tmp_path / listed["filename"]), cwd=user)
    inputs, expected = small_case(6)
    body = "return answer(load, given.url, {}, given.cases);"
    done = node(body, runner="singe", cwd=user, url=bundle("small").as_uri(), cases=[packed(inputs)])
    assert_close(done["outputs"][0], expected)
    assert (
        node("return typeof (await import('singe/picture')).pictureToTensor;", runner="singe", cwd=user) == "function"
    )


def test_every_module_that_is_imported_is_there() -> None:
    """Also those that are imported when they are wanted: what a bundler follows."""
    for path in STATIC.glob("singe*.js"):
        for part in path.read_text("utf-8").split('"./')[1:]:
            name = part.split('"')[0]
            if name.startswith("singe") and name.endswith(".js"):
                assert (STATIC / name).exists(), f"{path.name} imports {name}"
