"""`make release`: what is built passes its checks, and what the checks are for does not."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest
import release


@pytest.mark.slow
@pytest.mark.nightly
def test_a_release_is_built_checked_and_runs(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    pytest.importorskip("markdown_it", reason="no package markdown-it-py: pip install '.[docs]'")
    out = tmp_path / "dist"
    try:
        table = release.release(out)
    except release.UnreachableError as e:
        pytest.skip(f"a package index cannot be reached: {e}")
    print(table)
    sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
    assert len(sums) == len(release.ARTEFACTS)
    for name, found in sums.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == found
    told = json.loads((out / "provenance.json").read_text())
    assert told["sha256"] == {Path(name).name: found for name, found in sums.items()}
    assert len(told["commit"]) == 40
    assert told["tools"].keys() >= {*release.PINS, "python", "node", "npm", "publint"}


@pytest.mark.parametrize(
    "name", [".git/HEAD", "core/singe/__pycache__/a.pyc", "env.sh", "a/node_modules/b.js", "tests/.cache/x", "x.pyc"]
)
def test_what_belongs_to_a_working_copy_is_found(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", f"singe-0/{name}")
    bench = release.Bench.__new__(release.Bench)
    with pytest.raises(release.ReleaseError, match="belong to a working copy"):
        release.no_strays(bench, "source", tmp_path / "a.tar.gz")
    with pytest.raises(release.ReleaseError, match="lacks the licence"):
        release.licence(bench, "source", tmp_path / "a.tar.gz")
    with pytest.raises(release.ReleaseError, match="name their folder in pyproject"):
        release.complete(bench, "source", tmp_path / "a.tar.gz")


def test_a_file_that_is_too_large_is_found(tmp_path: Path) -> None:
    for name, artefact in release.ARTEFACTS.items():
        file = tmp_path / name
        with file.open("wb") as data:
            data.truncate(artefact.most + 1)
        with pytest.raises(release.ReleaseError, match="expected at most"):
            release.size(release.Bench.__new__(release.Bench), name, file)
