"""A bundle as one HTML file, opened from the disk: it runs on each device, without a connection, and says what it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import ROOT, small_graph
from firefox import firefox
from sites import until

import singe as sg
from singe.model.model import Model
from singe.tasks.picture import spec as images
from singe.tasks.picture.spec import PictureSpec
from singe.tools.export.bundle import draft, export
from singe.tools.export.page import single_page
from singe.tools.export.page.own_page import TASK_PAGES, own_page

PHOTO = ROOT / "docs" / "digits.png"


def told(page: Any) -> str:
    status = page.get_by_test_id("status")
    until(page, "document.querySelector('[data-testid=status]').dataset.state !== 'loading'")
    return status.inner_text()


@pytest.fixture
def opened(browser: Any) -> Any:
    """A function that opens a file; afterwards nothing was asked for elsewhere, and nothing has failed."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)

    def go(path: Path) -> Any:
        page.goto(path.as_uri())
        return page

    yield go
    context.close()
    assert not wrong
    assert not [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
    assert len([url for url in asked if url.startswith("file:")]) == 1


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_it_runs_from_the_disk(opened: Callable[[Path], Any], tmp_path: Path, device: str) -> None:
    export(Model(small_graph(), "numpy", "small </script> & <b>"), tmp_path / "small.html")
    assert [p.name for p in tmp_path.iterdir()] == ["small.html"]
    page = opened(tmp_path / "small.html")
    until(page, "document.querySelector('[data-testid=status]').textContent.includes('nothing is loaded')")
    assert page.title() == "small </script> & <b>"
    page.get_by_test_id("backend").select_option(device)
    for name, text in {"x": "[[1, 2, 3], [0, 0, 1]]", "k": "[[5], [7]]", "keep": "[[true], [0]]"}.items():
        page.get_by_test_id(f"fill-{name}").select_option("JSON")
        page.get_by_test_id(f"json-{name}").fill(text)
    for _ in range(2):  # the second run uses what the first has loaded
        page.get_by_test_id("run").click()
        page.get_by_test_id("status").filter(has_text=f"Done on {device}").wait_for()
    found = [row.locator("td").all_inner_texts() for row in page.get_by_test_id("outputs").locator("tr").all()]
    given = {"x": np.array([[1, 2, 3], [0, 0, 1]], np.float32), "k": np.array([[5], [7]], np.int32)}
    outputs = Model(small_graph(), "numpy")({**given, "keep": np.array([[True], [False]])})
    assert {row[0] for row in found} == set(outputs)
    for name, _, shape, *_, values in found:
        assert shape == str(outputs[name].shape)
        np.testing.assert_allclose([*map(float, values.split(","))], outputs[name].ravel(), rtol=1e-4)


def test_it_takes_a_picture_and_names_the_classes(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    spec = PictureSpec((8, 8), 3, 1.0, (0.0,), (255.0,), "nchw")
    model = Model.of(lambda picture: picture.mean((2, 3)), {"picture": (1, 3, 8, 8)}, "numpy")
    export(model, tmp_path / "colours.html", picture=spec, labels=["red", "green", "blue"])
    page = opened(tmp_path / "colours.html")
    until(page, "document.querySelector('[data-testid=status]').textContent.includes('Ready')")
    page.get_by_test_id("backend").select_option("wasm")
    page.get_by_test_id("file").set_input_files(str(PHOTO))
    page.get_by_test_id("top-1").wait_for()
    wanted = np.argmax(model(images.read_picture(PHOTO, spec)))
    assert page.get_by_test_id("top-1").inner_text() == ["red", "green", "blue"][int(wanted)]


def test_a_folders_page_that_is_opened_as_a_file_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    export(Model(small_graph(), "numpy"), tmp_path / "small", ["wasm"])
    page = browser.new_page()
    page.goto((tmp_path / "small" / "index.html").as_uri())
    until(page, "document.querySelector('[data-testid=status]').dataset.state === 'error'")
    assert "singe serve" in told(page)
    page.close()


def test_the_same_model_gives_the_same_page(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        export(Model(small_graph(), "numpy"), tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_page, "MOST_BYTES", 1000)
    with pytest.raises(sg.InputError, match=r"the most is 1.0 kB; export a folder"):
        export(Model(small_graph(), "numpy"), tmp_path / "small.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.nightly
def test_firefox_runs_it(tmp_path: Path) -> None:
    export(Model(small_graph(), "numpy", "small"), tmp_path / "small.html")
    with firefox() as tab:
        tab.goto((tmp_path / "small.html").as_uri())
        tab.until("document.querySelector('[data-testid=status]').textContent.includes('nothing is loaded')")
        tab.execute("document.querySelector('[data-testid=backend]').value = 'wasm'")
        tab.execute("document.querySelector('[data-testid=run]').click()")
        tab.until("document.querySelector('[data-testid=status]').textContent.includes('Done on wasm')")


def test_every_script_that_a_bundle_has_is_named_in_the_page() -> None:
    """No relative import is left but those of workers, which such a page does not start."""
    page = single_page.single_page(draft(Model(small_graph(), "numpy")).alone().files).decode()
    left = [m.start() for m in single_page._SCRIPT.finditer(page.replace('\\"', '"'))]
    text = page.replace('\\"', '"')
    assert all(single_page._WORKER.search(text[at - 20 : at]) for at in left)


@pytest.mark.parametrize("name", sorted(set(TASK_PAGES.values())))
def test_a_tasks_page_is_not_refused_on_the_disk(name: str) -> None:
    """The lines that refuse a folder's page there are left out, and nothing else: `start` describes the bundle and offers its devices."""
    page = single_page.single_page({"index.html": own_page(name, "")}).decode()
    start = page[page.index("async function start(") :]
    assert "location.protocol" not in page
    assert start.index("await describe()") < start.index("new Option(") < start.index("\n}\n")
