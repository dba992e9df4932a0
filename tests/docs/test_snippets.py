"""Every block of code in the documentation's own pages does what the page says."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from snippets import ROOT, blocks, checkout, fits, run_page

import singe as sg
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from browsers import chromium

DOCS: Final = ROOT / "docs"
PAGES: Final = sorted(p for folder in ("start", "guides", "book") for p in (DOCS / folder).glob("*.md"))
ALONE: Final = [DOCS / "tensors.md", DOCS / "own-kernels.md"]
"""Pages of docs/ itself whose blocks run without more; those of cluster.md need several processes."""


@pytest.mark.slow
@pytest.mark.parametrize("page", [*PAGES, *ALONE], ids=lambda p: p.relative_to(DOCS).as_posix())
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (
        'evice="webgpu"' in page.read_text()
        or "-device webgpu" in page.read_text()
        or 'device("webgpu")' in page.read_text()
    ):
        try:
            sg.device("webgpu")
        except sg.DeviceError as e:
            pytest.skip(f"no webgpu here: {e}")
    folder = checkout(tmp_path)
    monkeypatch.chdir(folder)
    run_page(page, folder)


@pytest.mark.slow
def test_the_page_of_the_start_reads_its_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path)
    monkeypatch.chdir(folder)
    run_page(DOCS / "start" / "page.md", folder)
    with Server(folder / "public", port=0) as server, chromium(()) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page: Any = browser.new_page()
        page.goto(server.address)
        page.locator("output").filter(has_text=re.compile("This is")).wait_for()
        assert page.locator("output").text_content() == "This is a 1"
        server.shutdown()


@pytest.mark.slow
def test_the_pages_of_pictures_and_sounds_take_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path)
    monkeypatch.chdir(folder)
    for name in ("pictures", "sounds"):
        run_page(DOCS / "guides" / f"{name}.md", folder)
    with Server(folder / "public", port=0) as server, chromium(()) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page: Any = browser.new_page()
        for name, file, answer in (
            ("picture", ROOT / "demos/classify/samples/cat.jpg", r"^\d: \d+%$"),
            ("sound", folder / "tone.wav", r"^437.5 Hz$"),
        ):
            page.goto(f"{server.address}{name}.html")
            page.wait_for_function("document.querySelector('input').onchange !== null")
            page.set_input_files("input", file)
            page.locator("output").filter(has_text=re.compile(answer)).wait_for()
        server.shutdown()


def test_every_page_has_blocks_of_known_words() -> None:
    """A misspelt word would leave a block out."""
    known = {"python", "console", "js", "html", "text", "wgsl", "json", "http", "nginx", "c", "rust", "ts", "toml"}
    known |= {"jsx", "vue", "svelte"}  # which tests/browser/embedding/test_frameworks.py runs
    found = {block.language for page in [*PAGES, *ALONE] for block in blocks(page)}
    assert found <= known
    assert all(page.read_text().count("```") == 2 * len(list(blocks(page))) for page in [*PAGES, *ALONE])


def test_numbers_and_left_out_lines_fit_what_is_printed() -> None:
    assert fits("a  1.5 ms\n...\nend", "a 20.25  s\nb\nc\nend\n")
    assert not fits("a  1 ms", "a 1 ms\nmore")
    assert not fits("b 1 ms", "a 1 ms")
