"""How many trips to the server, one after another, a page makes until its first answer.

Every answer takes a while, and a request that came after another was answered counts as one trip more. On a busy machine a
request may also come late because the browser had no time: such a count is too high, never too low. So where a count is higher
than it should be, the pages are visited again, by a new browser, with the server farther away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import pytest
from browsers import chromium
from bundles import small_model
from sites import serving, until

from singe.tools.cli import main as singe
from singe.tools.export import bundle
from singe.tools.serving.folder_server import Server, _Handler

LATENCIES: Final = (0.4, 1.5, 5.0)  # seconds that an answer takes, in one attempt after another
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>wait</title><link rel="icon" href="data:,">HINTS
<script type="module">
  import { load } from "./model/singe.jsQUERY";
  const model = await load("./model/QUERY", OPTIONS);
  const { logits } = await model.run({ input: new Float32Array(784) });
  document.title = `${model.worker} ${logits.shape}`;
</script>"""


class Far(_Handler):
    """The handler of `singe serve`, a while away; it notes when requests come."""

    latency: ClassVar[float] = LATENCIES[0]
    asked: Final[list[float]] = []

    def do_GET(self) -> None:
        self.asked.append(time.monotonic())
        time.sleep(self.latency)
        super().do_GET()


class Visit(NamedTuple):
    """What the page holds, and the most trips that it should make."""

    most: int
    hints: str = ""
    query: str = ""
    worker: bool = False


def trips() -> int:
    """The longest row of requests, each of which came after the one before was answered; 0 where none was made."""
    depths: list[int] = []
    starts = sorted(Far.asked)
    for start in starts:
        depths.append(1 + max((d for s, d in zip(starts, depths, strict=False) if s + Far.latency <= start), default=0))
    Far.asked.clear()
    return max(depths, default=0)


def fewest(visits: Callable[[Any], list[int]], most: list[int]) -> list[int]:
    """The trips of `visits` in a new browser: of the first attempt in which none was higher than `most`, or of the last one."""
    found: list[int] = []
    for latency in LATENCIES:
        Far.latency = latency
        with chromium() as browser:
            context = browser.new_context()
            found = visits(context)
            context.close()
        if all(count <= limit for count, limit in zip(found, most, strict=True)):
            break
    return found


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
def check(folder: Path, address: str) -> Callable[..., None]:
    """Checks the trips of visits by one browser, one after another, each in a new tab."""

    def check(*visits: Visit) -> None:
        def made(context: Any) -> list[int]:
            return [count(context, visit) for visit in visits]

        most = [visit.most for visit in visits]
        found = fewest(made, most)
        assert all(0 < count <= limit for count, limit in zip(found, most, strict=True)), (
            f"{found} trips; at most {most} wanted"
        )

    def count(context: Any, visit: Visit) -> int:
        worker = str(visit.worker).lower()
        options = f'{{ device: "wasm", worker: {worker} }}'
        text = PAGE.replace("HINTS", visit.hints).replace("QUERY", visit.query).replace("OPTIONS", options)
        (folder / "page.html").write_text(text)
        page = context.new_page()
        Far.asked.clear()
        page.goto(f"{address}page.html")
        until(page, "document.title !== 'wait'")
        assert page.title() == f"{worker} 1,10"
        found = trips()
        page.wait_for_timeout(500)  # what was fetched is being kept
        page.close()
        return found

    return check


def test_the_page_of_a_bundle(folder: Path, address: str) -> None:
    """It is ready before anything large is fetched; a run asks for all the rest at once, and nothing twice."""
    assert singe(["export", str(folder / "m.onnx"), "-o", str(folder / "model")]) == 0

    def visit(context: Any) -> list[int]:
        """Until the page is ready, and until it has answered."""
        page = context.new_page()
        Far.asked.clear()
        page.goto(f"{address}model/")
        page.wait_for_selector("[data-testid=status][data-state=ready]")
        shown = trips()
        page.select_option("[data-testid=backend]", "wasm")
        page.click("[data-testid=run]")
        until(page, "document.querySelector('[data-testid=status]').textContent.startsWith('Done')")
        found = [shown, trips()]
        page.wait_for_timeout(500)  # what was fetched is being kept
        page.close()
        return found

    wanted = [2, 1, 1, 0]
    assert fewest(lambda context: visit(context) + visit(context), wanted) == wanted


def hinted(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The hints and the query of `singe export --snippet`."""
    model = str(folder / "m.onnx")
    assert singe(["export", model, "-o", str(folder / "model"), "--snippet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    hints = [line for line in lines if line.startswith("<link")]
    assert len(hints) == 4
    return "".join(hints), "?v=" + hints[0].split("?v=")[1].split('"')[0]


def test_without_hints(check: Callable[..., None]) -> None:
    """On the second visit too: the manifest and the script may have changed."""
    check(Visit(4), Visit(3))


def test_without_hints_in_a_worker(check: Callable[..., None]) -> None:
    check(Visit(5, worker=True))


def test_with_a_version_alone(check: Callable[..., None], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first visit with a worker fetches the page, and what only a worker needs."""
    _, query = hinted(folder, capsys)
    check(
        Visit(4, query=query),
        Visit(1, query=query),
        Visit(3, query=query, worker=True),
        Visit(1, query=query, worker=True),
    )


def test_with_hints(check: Callable[..., None], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the second visit all but the page is in the browser."""
    hints, query = hinted(folder, capsys)
    check(Visit(2, hints, query), Visit(1, hints, query))


def test_with_hints_in_a_worker(check: Callable[..., None], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hints, query = hinted(folder, capsys)
    check(Visit(3, hints, query, worker=True), Visit(1, hints, query, worker=True))
