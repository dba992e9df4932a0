"""The documentation's site: what links lead to, what it loads, how large it is, and that the reference leaves nothing out."""

from __future__ import annotations

import json
import os
import pydoc
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from snippets import ROOT

import singe as sg

pytest.importorskip("markdown_it")
pytest.importorskip("pygments")
sys.path.insert(0, str(ROOT / "docs"))
import docsite
from docsite.contents import pages
from docsite.drawings import DRAWINGS
from docsite.made import text_of
from docsite.synonyms import SYNONYMS

FRONT: Final = 60_000
"""The most bytes of the front page, with all that it loads."""


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {k: v or "" for k, v in attrs}))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    docsite.build(folder, say=lambda text: None)
    return folder


@pytest.mark.slow
def test_it_is_built_without_an_engine(tmp_path: Path) -> None:
    """`make docs`, `make demo` and `make release` install what the extra `docs` names, and no more."""
    code = """
import sys
for name in ("PIL", "onnx", "ray", "wasmtime", "wgpu"):
    sys.modules[name] = None
import docsite
from pathlib import Path
docsite.build(Path(sys.argv[1]))
"""
    paths = os.pathsep.join([str(ROOT / "docs"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site")],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()


@pytest.mark.slow
def test_links_lead_to_pages_and_headings_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    found = {p: Elements(p.read_text()).found for p in site.rglob("*.html")}
    names = {p: {a["id"] for _, a in elements if "id" in a} for p, elements in found.items()}
    for page, elements in found.items():
        assert len([1 for tag, _ in elements if tag == "h1"]) == 1, page
        for tag, attributes in elements:
            link = attributes.get("href", attributes.get("src", ""))
            if re.match(r"https?:|data:", link) or not link:
                assert tag == "a" or not link.startswith("http"), f"{page}: loads {link}"
                continue
            assert not re.match(r"/|\w+:", link), f"{page}: {link} is not relative"
            name, _, heading = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.is_file(), f"{page.relative_to(site)}: {link}"
            assert not heading or target not in names or heading in names[target], f"{page.relative_to(site)}: {link}"


@pytest.mark.slow
def test_the_front_page_is_small(site: Path) -> None:
    assert sum((site / name).stat().st_size for name in ("index.html", "style.css", "docs.css", "docs.js")) < FRONT


@pytest.mark.slow
def test_the_search_knows_every_page(site: Path) -> None:
    text = (site / "search-index.js").read_text()
    assert all(f'"{page.path}.html' in text for page in pages())


def test_other_words_are_for_pages_that_are_there() -> None:
    assert {*SYNONYMS} <= {page.path for page in pages()}
    assert all(len(set(words)) == len(words) for words in SYNONYMS.values())


@pytest.mark.slow
def test_every_drawing_is_in_the_book_and_says_what_it_shows() -> None:
    texts = [page.read_text() for page in sorted((ROOT / "docs" / "book").glob("*.md"))]
    used = {name for text in texts for name in re.findall(r"<!-- drawing (\w+): ", text)}
    assert used == set(DRAWINGS)
    for name, draw in DRAWINGS.items():
        labels = [a["aria-label"] for tag, a in Elements(draw()).found if tag == "svg"]
        assert len(labels) == 1, name
        assert len(labels[0]) > 20, name


def test_every_method_of_tensor_is_documented_and_listed() -> None:
    names = [name for name in dir(sg.Tensor) if not name.startswith("_")]
    assert len(names) > 300
    assert [name for name in names if not (getattr(sg.Tensor, name).__doc__ or "").strip()] == []
    headings = re.findall(r"^### (\w+)$", text_of("singe.Tensor"), re.M)
    assert set(names) - set(headings) <= {"strings"}, "a row of which no input is a tensor"
    assert len(set(headings)) == len(headings), "all ways to call a method are in one place"


def test_help_lists_every_method_of_tensor() -> None:
    text = pydoc.plain(pydoc.render_doc(sg.Tensor))
    names = {name for name in dir(sg.Tensor) if not name.startswith("_")}
    assert names - set(re.findall(r"^ \|  (?:async )?(\w+)", text, re.M)) == set()


def test_code_is_shown_as_it_is_written(site: Path) -> None:
    pages = {page.name: page.read_text("utf-8") for page in site.rglob("*.html")}
    blocks = {name: re.findall(r"<pre.*?</pre>", text, re.S) for name, text in pages.items()}
    assert [name for name, found in blocks.items() if any("\\_" in block for block in found)] == []
    assert [name for name, found in blocks.items() if any("tabindex" not in block[:80] for block in found)] == []
    assert "value_and_grad" in re.sub("<[^>]*>", "", "".join(blocks["singe.optim.html"]))


def test_every_page_of_the_documentation_is_in_the_site() -> None:
    found = {p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md") if p.name != "README.md"}
    assert found - {page.source for page in pages()} == set()


def test_every_public_function_and_class_is_documented_and_listed() -> None:
    text = text_of("singe")
    for name in sg.__all__:
        value: Any = getattr(sg, name)
        if callable(value) and name != "Tensor":
            assert (value.__doc__ or "").strip(), name
            assert f"\n### {name}\n" in text, name


def test_every_command_and_error_is_listed() -> None:
    commands = re.findall(r"^## singe (\w+)$", text_of("commands"), re.M)
    assert {"run", "inspect", "export", "serve", "train", "bench"} <= set(commands)
    assert {"ShapeError", "DeviceLost", "UnsupportedOp"} <= set(re.findall(r"`(\w+)`", text_of("errors")))
    text = text_of("javascript")
    assert re.findall(r"^### (\w+)$", text, re.M)[0] == "load", "where a reader begins"
    exports = json.loads((ROOT / "static" / "package.json").read_text())["exports"]
    modules = [f"singe{name.removeprefix('.')}" for name, given in exports.items() if "types" in given]
    assert re.findall(r"^## (.*)$", text, re.M) == sorted(modules)
    names = {"load", "Model", "Session", "SingeModelElement", "pictureToTensor", "resample", "boxes"}
    assert names <= set(re.findall(r"^### (\w+)$", text, re.M))


def test_the_figures_of_the_comparison_are_those_of_the_measurements() -> None:
    """Each number in its tables, but in that of machines and dates, is in a page of docs/measurements."""
    figure = r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)"
    pages = (ROOT / "docs/measurements").glob("*.md")
    known = {number for page in pages for number in re.findall(figure, page.read_text("utf-8"))}
    _, *parts = re.split(r"^## ", (ROOT / "docs/comparison.md").read_text(), flags=re.M)
    cells = [cell for part in parts for row in re.findall(r"^\| .*", part, re.M) for cell in row.split(" | ")[1:]]
    found = {number for cell in cells for number in re.findall(figure, cell)}
    assert len(found) > 100
    assert found - known == set()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(docsite.DocsError, match="holds something"):
        docsite.build(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
