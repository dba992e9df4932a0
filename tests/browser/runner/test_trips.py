"""How many trips to the server, one after another, a page makes until its first answer: every request takes 400 ms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browsers import chromium
from bundles import small_model
from sites import serving, until

from singe.tools.cli import main as singe
from singe.tools.export import bundle
from singe.tools.serving.folder_server import Server, _Handler

LATENCY: Final = 0.4
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>wait</title><link rel="icon" href="data:,">HINTS
<script type="module">
  import { load } from "./model/singe.jsQUERY";
  const model = await load("./model/QUERY", OPTIONS);
  const { logits } = await model.run({ input: new Float32Array(784) });
  document.title = `${model.worker} ${logits.shape}`;
</script>"""


class Far(_Handler):
    """The handler of `singe serve`, a while away; it notes when requests come."""

    asked: Final[list[float]] = []

    def do_GET(self) -> None:
        self.asked.append(time.monotonic())
        time.sleep(LATENCY)
        super().do_GET()


def trips() -> int:
    """The longest row of requests, each of which came after the one before was answered."""
    depths: list[int] = []
    starts = sorted(Far.asked)
    for start in starts:
        depths.append(1 + max((d for s, d in zip(starts, depths, strict=False) if s + LATENCY <= start), default=0))
    Far.asked.clear()
    return max(depths)


@pytest.fixture(scope="module", params=["joined", "built"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a bundle with the scripts of a checkout, or of a release."""
    made = tmp_path_factory.mktemp("trips")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "built":
            found = request.getfixturevalue("built_scripts")
            patch.setattr(bundle, "bundle_scripts", lambda: found)
        assert singe(["export", str(small_model(made / "m.onnx")), "-o", str(made / "model")]) == 0
        yield made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    server = Server(folder, port=0)
    server.RequestHandlerClass = Far
    with serving(server):
        yield server.address


@pytest.fixture
def visit(folder: Path, address: str) -> Iterator[Callable[..., int]]:
    """Visits a page in a browser of its own, in a new tab each time; gives the trips."""
    with chromium() as browser:
        context = browser.new_context()

        def visit(hints: str = "", query: str = "", worker: bool = False) -> int:
            options = f'{{ device: "wasm", worker: {str(worker).lower()} }}'
            text = PAGE.replace("HINTS", hints).replace("QUERY", query).replace("OPTIONS", options)
            (folder / "page.html").write_text(text)
            page: Any = context.new_page()
            Far.asked.clear()
            page.goto(f"{address}page.html")
            until(page, "document.title !== 'wait'")
            assert page.title() == f"{str(worker).lower()} 1,10"
            found = trips()
            page.wait_for_timeout(500)  # what was fetched is being kept
            page.close()
            return found

        yield visit
        context.close()


def test_the_page_of_a_bundle(folder: Path, address: str) -> None:
    """It is ready before anything large is fetched; a run asks for all the rest at once, and nothing twice."""
    assert singe(["export", str(folder / "m.onnx"), "-o", str(folder / "model")]) == 0

    def visit() -> tuple[int, int]:
        page: Any = context.new_page()
        Far.asked.clear()
        page.goto(f"{address}model/")
        page.wait_for_selector("[data-testid=status][data-state=ready]")
        shown = trips()
        page.select_option("[data-testid=backend]", "wasm")
        page.click("[data-testid=run]")
        until(page, "document.querySelector('[data-testid=status]').textContent.startsWith('Done')")
        found = shown, trips() if Far.asked else 0
        page.wait_for_timeout(500)  # what was fetched is being kept
        page.close()
        return found

    with chromium() as browser:
        context = browser.new_context()
        assert visit() == (2, 1)
        assert visit() == (1, 0)
        context.close()


def hinted(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The hints and the query of `singe export --snippet`."""
    model = str(folder / "m.onnx")
    assert singe(["export", model, "-o", str(folder / "model"), "--snippet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    hints = [line for line in lines if line.startswith("<link")]
    assert len(hints) == 4
    return "".join(hints), "?v=" + hints[0].split("?v=")[1].split('"')[0]


def test_without_hints(visit: Callable[..., int]) -> None:
    assert visit() <= 4
    assert visit() <= 3, "the manifest and the script may have changed"


def test_without_hints_in_a_worker(visit: Callable[..., int]) -> None:
    assert visit(worker=True) <= 5


def test_with_a_version_alone(visit: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, query = hinted(folder, capsys)
    assert visit(query=query) <= 4
    assert visit(query=query) == 1
    assert visit(query=query, worker=True) <= 3, "the page, and what only a worker needs"
    assert visit(query=query, worker=True) == 1


def test_with_hints(visit: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hints, query = hinted(folder, capsys)
    assert visit(hints, query) <= 2
    assert visit(hints, query) == 1, "all but the page is in the browser"


def test_with_hints_in_a_worker(visit: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hints, query = hinted(folder, capsys)
    assert visit(hints, query, worker=True) <= 3
    assert visit(hints, query, worker=True) == 1
