"""The README from top to bottom, as it is typed. Modules of JavaScript are tested as files, in tests/browser/embedding."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from snippets import ROOT, blocks, checkout, run, run_page

from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from browsers import chromium

LANGUAGES = ("console", "html", "js", "python")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the README was followed."""
    pytest.importorskip("PIL")
    made = checkout(tmp_path_factory.mktemp("readme"))
    fetched = run([sys.executable, "demos/weights.py", "classify"], made)
    if "could not be fetched" in fetched.stderr:
        pytest.skip(fetched.stderr)
    (made / "classify.singe").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run_page(ROOT / "README.md", made)
    return made


def test_every_block_has_a_known_word() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert {block.language for block in blocks(ROOT / "README.md")} == set(LANGUAGES)
    assert text.count("```") == 2 * len(list(blocks(ROOT / "README.md")))


@pytest.mark.slow
def test_the_readme_from_top_to_bottom(folder: Path) -> None:
    for name in ("model", "digits", "circle"):
        assert (folder / "public" / name / "model.json").is_file()


@pytest.mark.slow
def test_its_first_page_answers(folder: Path) -> None:
    with Server(folder / "public", port=0) as server, chromium(()) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page: Any = browser.new_page()
        page.goto(server.address)
        page.wait_for_function("document.body.innerText !== ''")
        assert len([float(number) for number in page.evaluate("document.body.innerText").split()]) == 10
        server.shutdown()
