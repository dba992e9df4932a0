"""Documents agree with the tree: links lead to files, every room has a README, the glossary's places exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def documents() -> list[Path]:
    """The Markdown files of the repository, without files that a build made."""
    folders = [ROOT / name for name in ("core", "gpu", "webgpu", "cuda", "wasm", "static", "demos", "docs", "tests")]
    found = [*ROOT.glob("*.md"), *(p for folder in folders for p in folder.rglob("*.md"))]
    return [p for p in found if not {".cache", "site", "node_modules"} & set(p.relative_to(ROOT).parts)]


@pytest.mark.parametrize("path", documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"https?:", link)]
    for link in links:
        name, _, heading = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.relative_to(ROOT)} links to {link}"
        if heading and target.suffix == ".md":
            headings = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", target.read_text(), re.M)]  # fmt: skip
            assert heading in headings, f"{path.relative_to(ROOT)} links to {link}"


def test_every_room_has_a_readme() -> None:
    rooms = [p for p in (ROOT / "core" / "singe").iterdir() if (p / "__init__.py").exists()]
    assert len(rooms) > 10
    assert [room.name for room in rooms if not (room / "README.md").is_file()] == []


def test_the_glossary_points_at_what_is_there() -> None:
    """A word has one entry; `singe/…` is a file or a room."""
    lines = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| word |")]
    words = [w.strip() for entry, *_ in rows for w in re.sub(r"\([^)]*\)", "", entry).split(",")]
    assert len(words) == len(set(words)) > 40, "one word, one entry"
    for entry, _, place in rows:
        for name in re.findall(r"`([\w/.]+/[\w/.]+)`", place):
            assert (ROOT / "core" / name).exists() or (ROOT / name).exists(), f"{entry}: {name}"


def test_no_document_names_a_file_of_this_machine() -> None:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    for path in (ROOT / name for name in done.stdout.split() if name.endswith(".md")):
        assert not re.search(r"(?<![\w.])/(?:work|root|home)/", path.read_text()), path
